"""Files are read in a child process, so that a hostile one harms nothing but its own reading.

A small pool of children, each used again and again: they start with limits on memory, on
files (none may grow) and without network (``rag.ingest.converter``), and are killed when a
document takes longer than it may. A child that dies takes one document with it, which is
refused with a typed error; the next one gets a new child. Nothing is written anywhere: bytes
go in and text comes out over pipes, as JSON, so that a child that was taken over can answer
with wrong text at worst.
"""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import json
import os
import signal
import struct
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from pathlib import Path
from typing import IO, Any, cast

import rag
from rag import errors
from rag.errors import Malformed, TooLarge, Unavailable, VeilragError
from rag.ingest.limits import Limits
from rag.types import Document, Section

_KEPT = ("PATH", "LANG", "LC_ALL", "LD_LIBRARY_PATH", "SYSTEMROOT", "TESSDATA_PREFIX", "TMPDIR")
"""Of the environment; a child gets no key, no address and no password from it."""
_START_SECONDS = 60.0
_MOST_ANSWER = 1_000_000_000
_BROKEN = frozenset({"SIGSEGV", "SIGBUS", "SIGILL", "SIGFPE", "SIGTRAP"})


async def convert(
    name: str,
    data: bytes,
    media_type: str | None = None,
    *,
    password: str | None = None,
    limits: Limits | None = None,
) -> Document:
    """The document in ``data``, read in a child process.

    ``password`` opens an encrypted file. Raises the ``DocumentRefused`` kinds, ``TooLarge``
    (also for what takes too much memory or time) and ``Unavailable`` when no child starts.
    """
    return await _POOL.convert(_Job(name, data, media_type, password, limits or Limits()))


def convert_now(
    name: str,
    data: bytes,
    media_type: str | None = None,
    *,
    password: str | None = None,
    limits: Limits | None = None,
) -> Document:
    """``convert`` for who has no event loop, such as a worker process."""
    return _POOL.run(_Job(name, data, media_type, password, limits or Limits()))


def close_converters() -> None:
    """End the idle children; the next conversion starts new ones."""
    _POOL.close()


class _Job:
    """One document on its way, which another thread may give up."""

    def __init__(
        self, name: str, data: bytes, media_type: str | None, password: str | None, limits: Limits
    ) -> None:
        limits.admit_bytes(len(data))
        head = {
            "name": name,
            "media_type": media_type,
            "password": password,
            "limits": asdict(limits),
        }
        self.head = json.dumps(head).encode()
        self.data = data
        self.limits = limits
        self._lock = threading.Lock()
        self._child: _Child | None = None
        self.stopped = ""

    def taken_by(self, child: _Child | None) -> None:
        with self._lock:
            self._child = child
            if self.stopped and child is not None:
                child.kill()

    def stop(self, why: str) -> None:
        """Kill the child that works on it, and let none begin."""
        with self._lock:
            self.stopped = self.stopped or why
            if self._child is not None:
                self._child.kill()


class _Pool:
    """Children that wait for the next document, and threads that wait for the children."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._lock = threading.Lock()
        self._idle: list[_Child] = []
        self._threads: ThreadPoolExecutor | None = None

    async def convert(self, job: _Job) -> Document:
        with self._lock:
            if self._threads is None:
                self._threads = ThreadPoolExecutor(self._size, thread_name_prefix="convert")
            threads = self._threads
        try:
            return await asyncio.get_running_loop().run_in_executor(threads, self.run, job)
        except asyncio.CancelledError:
            job.stop("cancelled")
            raise

    def run(self, job: _Job) -> Document:
        """Convert in this thread. A child is used by one thread at a time."""
        if job.stopped:
            raise Unavailable("The conversion was given up.")
        child = self._take(job.limits)
        clock = _Clock(job.limits.seconds, lambda: job.stop("time"))
        job.taken_by(child)
        clock.start()
        try:
            answer = child.ask(job.head, job.data, clock.start)
        except (OSError, EOFError, ValueError):
            raise _death(child.end(), job.stopped) from None
        finally:
            clock.stop()
            job.taken_by(None)
        if job.stopped or answer.get("last"):
            child.end()
        else:
            self._give_back(child)
        return _document(answer)

    def close(self) -> None:
        with self._lock:
            idle, self._idle = self._idle, []
            threads, self._threads = self._threads, None
        for child in idle:
            child.end()
        if threads is not None:
            threads.shutdown(wait=False)

    def _take(self, limits: Limits) -> _Child:
        while True:
            with self._lock:
                child = self._idle.pop() if self._idle else None
            if child is None:
                return _Child(limits.memory)
            if child.alive() and child.memory == limits.memory:
                return child
            child.end()

    def _give_back(self, child: _Child) -> None:
        with self._lock:
            if len(self._idle) < self._size:
                self._idle.append(child)
                return
        child.end()


class _Clock:
    """Does something once, when it was not started anew or stopped for so many seconds."""

    def __init__(self, seconds: float, action: Callable[[], None]) -> None:
        self._seconds, self._action = seconds, action
        self._timer: threading.Timer | None = None

    def start(self) -> None:
        self.stop()
        self._timer = threading.Timer(self._seconds, self._action)
        self._timer.daemon = True
        self._timer.start()

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()


class _Child:
    """A process of ``rag.ingest.converter`` and the pipes to it."""

    def __init__(self, memory: int) -> None:
        self.memory = memory
        environment = {name: os.environ[name] for name in _KEPT if name in os.environ}
        environment |= {
            "PYTHONPATH": os.pathsep.join([_root(), *map(os.path.abspath, filter(None, sys.path))]),
            "PYTHONDONTWRITEBYTECODE": "1",
            "PYTHONUTF8": "1",
        }
        try:
            self._process = subprocess.Popen(  # noqa: S603  this interpreter, no shell
                [sys.executable, "-P", "-s", "-m", "rag.ingest.converter", str(memory)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env=environment,
                cwd="/",
                start_new_session=True,
            )
        except OSError:
            raise Unavailable("The converter could not be started.") from None
        clock = _Clock(_START_SECONDS, self.kill)
        clock.start()
        try:
            ready = self._read(1)
        except (OSError, EOFError):
            self.end()
            raise Unavailable("The converter could not be started.") from None
        finally:
            clock.stop()
        if ready != b"R":
            self.end()
            raise Unavailable("The converter could not be started.")

    def ask(self, head: bytes, data: bytes, progress: Callable[[], None]) -> Mapping[str, Any]:
        """Send a document and wait for the answer. Raises ``OSError``, ``EOFError``."""
        stdin = cast(IO[bytes], self._process.stdin)
        stdin.write(struct.pack(">IQ", len(head), len(data)))
        stdin.write(head)
        stdin.write(data)
        stdin.flush()
        while not (size := int.from_bytes(self._read(8), "big")):
            progress()
        if size > _MOST_ANSWER:
            raise EOFError
        return cast(Mapping[str, Any], json.loads(self._read(size)))

    def alive(self) -> bool:
        return self._process.poll() is None

    def kill(self) -> None:
        """End it at once, with what it started."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            if self._process.poll() is None:
                os.killpg(self._process.pid, signal.SIGKILL)

    def end(self) -> int:
        """Close the pipes, wait shortly, kill; gives how the process ended."""
        for pipe in (self._process.stdin, self._process.stdout):
            with contextlib.suppress(OSError):
                if pipe is not None:
                    pipe.close()
        try:
            return self._process.wait(timeout=2)
        except subprocess.TimeoutExpired:
            self.kill()
            return self._process.wait()

    def _read(self, size: int) -> bytes:
        found = cast(IO[bytes], self._process.stdout).read(size)
        if len(found) < size:
            raise EOFError
        return found


def _root() -> str:
    return str(Path(rag.__file__).resolve().parents[1])


def _death(status: int, stopped: str) -> VeilragError:
    """What the end of a child says about the document it worked on."""
    if stopped == "time":
        return TooLarge("The document takes too long to read.")
    if stopped:
        return Unavailable("The conversion was given up.")
    ended = signal.Signals(-status).name if -status in set(signal.Signals) else ""
    if ended in _BROKEN:
        return Malformed("The document broke its reader.")
    return TooLarge("The document takes too much memory or time to read.")


def _document(answer: Mapping[str, Any]) -> Document:
    """The document that a child answers with; raises the error that it answers with."""
    if "error" in answer:
        raise _KINDS.get(str(answer["error"]), Malformed)(str(answer["message"]))
    return Document(
        source=str(answer["source"]),
        content=str(answer["content"]),
        metadata=dict(answer["metadata"]),
        sections=tuple(
            Section(int(start), tuple((int(a), int(b)) for a, b in headings), page)
            for start, headings, page in answer["sections"]
        ),
        language=str(answer["language"]),
    )


_KINDS: Mapping[str, type[VeilragError]] = {
    kind.__name__: kind
    for kind in vars(errors).values()
    if isinstance(kind, type) and issubclass(kind, VeilragError)
}
_POOL = _Pool(max(1, min(4, os.cpu_count() or 1)))
atexit.register(close_converters)
