"""Processes that analyse texts side by side: detection holds the interpreter lock.

Each is this interpreter anew (never a fork: the parent has threads and connections), opens the
detector once and answers one task at a time over its pipes. It has no key, no database and,
where the recipe seals it, no network. One that dies or takes too long is replaced; its task is
tried once more and then fails (I2), the others go on. When the parent dies the pipes end, and
so do they.

The pipes carry pickles: both ends are this program, and what they exchange is text, spans and
numbers. Bytes of a user's file are read elsewhere, in ``rag.ingest.convert``.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import pickle
import struct
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol, Self

import rag
from rag.errors import DetectorFailed, Unavailable, VeilragError
from rag.ingest.analysis import Analysis, Analyst, Cut, Task
from rag.ingest.splitter import TokenPlaces
from rag.ports import Detector

_KEPT = ("PATH", "LANG", "LC_ALL", "LD_LIBRARY_PATH", "SYSTEMROOT", "TMPDIR", "HOME")
_START_SECONDS = 120.0
_CHARS_PER_TIMEOUT = 20_000
"""So many characters are granted one ``detect_timeout``."""
_CUT_A_SECOND = 100_000
_SIZE = struct.Struct(">Q")


class Runner(Protocol):
    """Where tasks are analysed; ``width`` of them at once."""

    @property
    def width(self) -> int: ...

    async def run(self, task: Task) -> Analysis:
        """Raises ``DetectorFailed`` and ``TooLarge``."""
        ...


def allowed_seconds(timeout: float, task: Task) -> float:
    """Time in proportion to the text, and some for cutting it."""
    length = len(task.text) + len(task.tail)
    return timeout * (1 + length / _CHARS_PER_TIMEOUT) + length / _CUT_A_SECOND


class Here:
    """A runner in this process: for few documents the start of another costs more."""

    width = 1

    def __init__(self, analyst: Analyst, timeout: float) -> None:
        self._analyst = analyst
        self._timeout = timeout

    async def run(self, task: Task) -> Analysis:
        try:
            async with asyncio.timeout(allowed_seconds(self._timeout, task)):
                return await asyncio.to_thread(self._analyst.analyse, task)
        except TimeoutError:
            raise DetectorFailed("The detector did not finish in time.") from None


@dataclass(frozen=True, slots=True)
class Recipe:
    """How a worker opens its parts. Everything in it can be pickled; ``secret`` keys the forms."""

    detector: Callable[[], Detector]
    places: Callable[[], TokenPlaces] | None
    secret: bytes = field(repr=False)
    prepare: Callable[[], None] | None = None

    def analyst(self, cut: Cut) -> Analyst:
        from rag.privacy.forms import FormHasher

        if self.prepare:
            self.prepare()
        places = self.places() if self.places else None
        return Analyst(self.detector(), FormHasher(self.secret), cut, places)


class Workers:
    """A runner of ``count`` processes, which start when they are first needed.

    ``version`` is the detector's that they must open: what they find is stored under it.
    """

    def __init__(
        self, recipe: Recipe, cut: Cut, count: int, timeout: float, *, version: str
    ) -> None:
        self.width = max(1, count)
        self._recipe = recipe
        self._version = version
        self._cut = cut
        self._timeout = timeout
        self._idle: asyncio.LifoQueue[_Worker | None] = asyncio.LifoQueue()
        self._all: set[_Worker] = set()

    async def __aenter__(self) -> Self:
        for _ in range(self.width):
            self._idle.put_nowait(None)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for worker in list(self._all):
            await self._end(worker)

    async def run(self, task: Task) -> Analysis:
        worker = await self._idle.get()
        try:
            for last in (False, True):
                if worker is None:
                    worker = await self._start()
                try:
                    seconds = allowed_seconds(self._timeout, task)
                    found: Analysis = await worker.ask(task, seconds)
                    return found
                except (EOFError, OSError, TimeoutError) as error:
                    await self._end(worker)
                    worker = None
                    if last or isinstance(error, TimeoutError):
                        raise _lost(error) from None
                except BaseException as error:
                    if not isinstance(error, VeilragError):  # cancelled: an answer is under way
                        await self._end(worker)
                        worker = None
                    raise
            raise AssertionError
        finally:
            self._idle.put_nowait(worker)

    async def _start(self) -> _Worker:
        worker = await _Worker.start()
        self._all.add(worker)
        try:
            opened = await worker.ask((self._recipe, self._cut), _START_SECONDS)
            if opened != self._version:
                raise Unavailable("A process that searches documents has another detector.")
        except (EOFError, OSError, TimeoutError):
            await self._end(worker)
            raise Unavailable("A process that searches documents could not start.") from None
        except BaseException:
            await self._end(worker)
            raise
        return worker

    async def _end(self, worker: _Worker) -> None:
        self._all.discard(worker)
        await worker.end()


def _lost(error: BaseException) -> DetectorFailed:
    if isinstance(error, TimeoutError):
        return DetectorFailed("The detector did not finish in time.")
    return DetectorFailed("The process that searched the document died, twice.")


class _Worker:
    """One process and the pipes to it."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process

    @property
    def pid(self) -> int:
        return self._process.pid

    @classmethod
    async def start(cls) -> Self:
        code = "from rag.ingest.workers import serve; serve()"
        try:
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-P", "-c", code),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.DEVNULL,
                env=_environment(),
                start_new_session=True,  # Ctrl-C is the parent's; it ends them
            )
        except OSError:
            raise Unavailable("A process that searches documents could not start.") from None
        return cls(process)

    async def ask(self, message: Any, seconds: float) -> Any:
        """Raises what the worker raised; ``EOFError``, ``OSError`` when it died."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        async with asyncio.timeout(seconds):
            data = pickle.dumps(message)
            self._process.stdin.write(_SIZE.pack(len(data)) + data)
            await self._process.stdin.drain()
            head = await self._process.stdout.readexactly(_SIZE.size)
            answer = await self._process.stdout.readexactly(_SIZE.unpack(head)[0])
        result = pickle.loads(answer)  # noqa: S301 - our own process, see above
        if isinstance(result, VeilragError):
            raise result
        return result

    async def end(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            self._process.kill()
        await self._process.wait()
        if self._process.stdin is not None:
            self._process.stdin.close()


def _environment() -> dict[str, str]:
    """No key, no address, no password; the same code as here."""
    root = str(Path(rag.__file__).resolve().parents[1])
    paths = [root, *(os.path.abspath(path) for path in sys.path if path)]
    kept = {name: os.environ[name] for name in _KEPT if name in os.environ}
    return kept | {"PYTHONPATH": os.pathsep.join(paths), "PYTHONUTF8": "1"}


def serve() -> None:
    """A worker's whole life: the recipe first, then tasks until the pipe ends."""
    source, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what a library prints is no answer
    analyst: Analyst | None = None
    while (message := _read(source)) is not None:
        try:
            if analyst is None:
                recipe, cut = message
                analyst = recipe.analyst(cut)
                result: Any = analyst.version
            else:
                result = analyst.analyse(message)
        except VeilragError as error:
            result = error
        data = pickle.dumps(result)
        try:
            answers.write(_SIZE.pack(len(data)) + data)
            answers.flush()
        except BrokenPipeError:
            return


def _read(source: Any) -> Any:
    head = source.read(_SIZE.size)
    if len(head) < _SIZE.size:
        return None
    (size,) = _SIZE.unpack(head)
    data = source.read(size)
    return pickle.loads(data) if len(data) == size else None  # noqa: S301 - our own parent
