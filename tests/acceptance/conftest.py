"""The service as its own process, over real HTTP, with the recording stub for its models.

Each test has a collection of its own in one shared service; a test whose settings differ
launches another. What a service prints is kept, and no test's people may be in it.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx2
import psycopg
import pytest

from rag.testing.stub import Record, Script, Stub, serve_stub

START_SECONDS = 90
POOL_SIZE = 4
PEOPLE = (
    *("Holloway", "Pemberton", "Ashcroft", "Whitlock", "Fairbanks", "Margaret", "Frederick"),
    *("7700 900", "4929 7183", "vane.example"),
)
"""Words of the tests' people that no output of the shared service may hold."""


class Service:
    """A running ``veilrag serve``."""

    def __init__(self, data_dir: Path, environment: dict[str, str], before: str = "") -> None:
        self.data_dir = data_dir
        self._out = data_dir.parent / f"{data_dir.name}.{time.monotonic_ns()}.out"
        self._err = self._out.with_suffix(".err")
        program = f"import sys; {before}\nfrom rag.cli import main; main()"
        command = [sys.executable, "-c", program, "serve", "--port", "0"]
        with self._out.open("wb") as out, self._err.open("wb") as err:
            self.process = subprocess.Popen(
                command, stdout=out, stderr=err, env=environment, cwd=data_dir.parent
            )
        self.url = self._await_url()
        self.client = httpx2.Client(base_url=self.url, trust_env=False, timeout=120)

    def _await_url(self) -> str:
        until = time.monotonic() + START_SECONDS
        while time.monotonic() < until:
            found = re.match(r"(http://\S+)\n", self._out.read_text())
            if found:
                return found[1]
            assert self.process.poll() is None, self.output()
            time.sleep(0.02)
        raise AssertionError(f"no URL was printed: {self.output()}")

    def output(self) -> str:
        """Everything it printed so far."""
        return self._out.read_text() + self._err.read_text()

    def until_ready(self) -> Service:
        until = time.monotonic() + START_SECONDS
        while (reply := self.client.get("/readyz")).status_code != 200:
            assert self.process.poll() is None, self.output()
            assert time.monotonic() < until, reply.text + self.output()[:2000]
            time.sleep(0.05)
        return self

    def stop(self, how: int = signal.SIGTERM) -> None:
        if self.process.poll() is None:
            self.process.send_signal(how)
            self.process.wait(60)
        self.client.close()

    def add(self, text: str, source: str = "note.md", collection: str = "default") -> str:
        """Upload a text as a file; its document's id."""
        reply = self.client.post(
            "/documents",
            files={"file": (source, text.encode(), "text/markdown")},
            data={"collection": collection},
        )
        assert reply.status_code == 201, reply.text
        [document] = reply.json()["documents"]
        assert document["status"] in {"ready", "replaced", "unchanged"}, reply.text
        return str(document["id"])

    def ask(self, question: str, **fields: Any) -> dict[str, Any]:
        """The answer to a question that must be answered."""
        reply = self.client.post("/ask", json={"question": question, **fields})
        assert reply.status_code == 200, reply.text
        answer: dict[str, Any] = reply.json()
        return answer

    @contextlib.contextmanager
    def database(self) -> Iterator[psycopg.Connection]:
        """A connection to the embedded server as its owner, past every row-level rule."""
        lines = (self.data_dir / "postgres" / "postmaster.pid").read_text().splitlines()
        with psycopg.connect(
            host=lines[4].strip(), user="postgres", dbname="veilrag", autocommit=True
        ) as connection:
            yield connection


Launch = Callable[..., Service]


def environment_of(data_dir: Path, stub: Stub | None, settings: dict[str, str]) -> dict[str, str]:
    """Nothing of this process's settings but where programs are."""
    names = ("PATH", "HOME", "LANG", "PYTHONPATH")
    kept = {name: os.environ[name] for name in names if name in os.environ}
    given = {
        "VEILRAG_DATA_DIR": str(data_dir),
        "VEILRAG_LOG_LEVEL": "DEBUG",
        "VEILRAG_MODEL_RETRIES": "0",
        **{f"VEILRAG_{name.upper()}": value for name, value in settings.items()},
    }
    if stub is not None:
        given |= {"OPENAI_BASE_URL": stub.base_url, "OPENAI_API_KEY": "stub-key"}
    return {**kept, **given}


@pytest.fixture(scope="session")
def shared_stub() -> Iterator[Stub]:
    """The stub of the shared service."""
    with serve_stub() as stub:
        yield stub


@pytest.fixture
def stub(shared_stub: Stub) -> Stub:
    """The shared service's stub, empty and with the default script."""
    shared_stub.script = Script()
    shared_stub.forget()
    return shared_stub


@pytest.fixture(scope="session")
def shared_service(
    shared_stub: Stub, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Service]:
    """One service with default settings (but for the log level and a small pool)."""
    data_dir = tmp_path_factory.mktemp("shared") / "data"
    environment = environment_of(data_dir, shared_stub, {"pool_size": str(POOL_SIZE)})
    running = Service(data_dir, environment)
    try:
        yield running.until_ready()
    finally:
        running.stop()
    printed = running.output()
    assert [name for name in PEOPLE if name in printed] == []
    assert "Traceback" not in printed


_tails = itertools.count()


@pytest.fixture
def service(shared_service: Service, stub: Stub) -> Service:
    """The shared service, ready."""
    return shared_service.until_ready()


@pytest.fixture(scope="session")
def _remote(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Service, Stub]]:
    """One service that embeds at a stub of its own, four texts at a time."""
    with serve_stub() as stub:
        data_dir = tmp_path_factory.mktemp("remote") / "data"
        settings = {"embeddings": "openai:stub-embed", "embedding_batch_texts": "4"}
        running = Service(data_dir, environment_of(data_dir, stub, settings))
        try:
            yield running.until_ready(), stub
        finally:
            running.stop()
        assert "Traceback" not in running.output()


@pytest.fixture
def remote(_remote: tuple[Service, Stub]) -> tuple[Service, Stub]:
    """That service, ready, and its stub, empty and with the default script."""
    service, stub = _remote
    stub.script = Script()
    stub.forget()
    return service.until_ready(), stub


@pytest.fixture
def collection() -> str:
    """A collection that no other test uses."""
    return f"test-{next(_tails)}"


@pytest.fixture
def launch(tmp_path: Path) -> Iterator[Launch]:
    """Start a service with settings of its own; it ends with the test."""
    with contextlib.ExitStack() as stack:

        def begin(
            stub: Stub | None = None,
            *,
            data_dir: Path | None = None,
            before: str = "",
            environment: dict[str, str] | None = None,
            **settings: str,
        ) -> Service:
            folder = data_dir or tmp_path / "data"
            variables = environment_of(folder, stub, settings) | (environment or {})
            running = Service(folder, variables, before)
            stack.callback(running.stop)
            return running

        yield begin


@pytest.fixture
def new_stub() -> Iterator[Callable[..., Stub]]:
    """Start a stub of one's own."""
    with contextlib.ExitStack() as stack:
        yield lambda **script: stack.enter_context(serve_stub(Script(**script)))


def between(pattern: str, record: Record) -> tuple[str, ...]:
    """What stands in a prompt where ``pattern`` has groups."""
    found = re.search(pattern, record.prompt, re.DOTALL)
    assert found, record.prompt
    return found.groups()


@pytest.fixture(name="between")
def _between() -> Callable[[str, Record], tuple[str, ...]]:
    return between


def normal(prompt: str) -> str:
    """A prompt with each placeholder-looking token numbered by its first appearance."""
    seen: dict[str, str] = {}
    token = re.compile(r"\b[A-Z]{2,}_\d+_\w+\b")
    return token.sub(lambda m: seen.setdefault(m[0], f"(({len(seen)}))"), prompt)


@pytest.fixture(name="normal")
def _normal() -> Callable[[str], str]:
    return normal
