"""Many files at once, in bounded memory: who is next, what is known of it, how far we are."""

from __future__ import annotations

import asyncio
import os
import sys
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field

from rag.ingest.files import File
from rag.types import Ingested, Known

FEW_BYTES, FEW_FILES = 150_000, 100
"""Less is analysed in this process: a worker takes two seconds to start."""
_LOOK_UP = 200
_MOST_BYTES = 64_000_000
"""Of files that are read and not yet stored; a larger one waits until it is alone."""


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a batch is; ``all_bytes`` and ``seconds`` let the time left be told."""

    files: int
    all_files: int
    bytes: int
    all_bytes: int
    chunks: int
    failed: int
    seconds: float


OnProgress = Callable[[Progress], None]
"""Called after every file."""

One = Callable[[File, Known | None], Awaitable[Ingested]]
LookUp = Callable[[Sequence[str]], Awaitable[Mapping[str, Known]]]


def workers_for(files: Sequence[File], wanted: int) -> int:
    """How many processes a batch is worth; 0 for few files. All but one processor, of two both."""
    total = sum(file.size for file in files)
    if total < FEW_BYTES and len(files) < FEW_FILES:
        return 0
    processors = (
        len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    )
    count = wanted or max(processors - 1, min(processors, 2))
    return max(1, min(count, max(len(files), total // FEW_BYTES)))


def _processors() -> int:
    """Those that this process may run on."""
    if sys.platform == "linux":
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


class Batch:
    """Files on their way, ``width`` at once, outcomes in their order."""

    def __init__(
        self, files: Sequence[File], *, width: int, on_progress: OnProgress | None = None
    ) -> None:
        self._files = files
        self._width = width
        self._on_progress = on_progress
        self._outcomes: list[Ingested | None] = [None] * len(files)
        self._room = _Room(_MOST_BYTES)
        self._all_bytes = sum(file.size for file in files)
        self._began = time.monotonic()
        self._done = self._bytes = self._chunks = self._failed = 0
        self._sources: dict[str, asyncio.Lock] = {}

    async def run(self, one: One, look_up: LookUp) -> list[Ingested]:
        """``one`` for every file; what it raises ends the batch."""
        waiting: asyncio.Queue[tuple[int, Known | None] | None] = asyncio.Queue(2 * _LOOK_UP)
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._look_ahead(waiting, look_up))
                for _ in range(self._width):
                    group.create_task(self._work(waiting, one, look_up))
        except BaseExceptionGroup as errors:
            raise errors.exceptions[0] from None
        return [outcome for outcome in self._outcomes if outcome is not None]

    async def _look_ahead(
        self, waiting: asyncio.Queue[tuple[int, Known | None] | None], look_up: LookUp
    ) -> None:
        for first in range(0, len(self._files), _LOOK_UP):
            some = self._files[first : first + _LOOK_UP]
            known = await look_up([file.source for file in some])
            for n, file in enumerate(some, first):
                await waiting.put((n, known.get(file.source)))
        for _ in range(self._width):
            await waiting.put(None)

    async def _work(
        self,
        waiting: asyncio.Queue[tuple[int, Known | None] | None],
        one: One,
        look_up: LookUp,
    ) -> None:
        while (item := await waiting.get()) is not None:
            n, known = item
            file = self._files[n]
            again = file.source in self._sources
            lock = self._sources.setdefault(file.source, asyncio.Lock())
            async with lock, self._room.of(file.size):
                if again:  # a name that comes twice: the later one replaces
                    known = (await look_up([file.source])).get(file.source)
                self._finish(n, await one(file, known))

    def _finish(self, n: int, outcome: Ingested) -> None:
        self._outcomes[n] = outcome
        self._done += 1
        self._bytes += self._files[n].size
        self._chunks += 0 if outcome.status == "unchanged" else outcome.chunks
        self._failed += outcome.status == "failed"
        if self._on_progress:
            self._on_progress(
                Progress(
                    self._done,
                    len(self._files),
                    self._bytes,
                    self._all_bytes,
                    self._chunks,
                    self._failed,
                    time.monotonic() - self._began,
                )
            )


@dataclass(slots=True)
class _Room:
    """So many bytes at once; what is larger than all of it goes alone."""

    most: int
    taken: int = 0
    changed: asyncio.Condition = field(default_factory=asyncio.Condition)

    def of(self, size: int) -> _Place:
        return _Place(self, min(size, self.most))


@dataclass(slots=True)
class _Place:
    room: _Room
    size: int

    async def __aenter__(self) -> None:
        room = self.room
        async with room.changed:
            await room.changed.wait_for(lambda: room.taken + self.size <= room.most)
            room.taken += self.size

    async def __aexit__(self, *error: object) -> None:
        async with self.room.changed:
            self.room.taken -= self.size
            self.room.changed.notify_all()
