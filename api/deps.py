"""What routes get: the lifespan's typed state, the opened engine, and how work is run.

The engine opens in the background, so that the process answers ``/healthz`` at once;
until it is there every route that needs it is 503, and ``/readyz`` says why.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import logging
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Annotated, Any, TypedDict, TypeVar

from fastapi import Depends, Request
from starlette.requests import ClientDisconnect

from api.errors import place_of
from rag.errors import DatabaseUnavailable, Unavailable, VeilragError
from rag.settings import Settings

if TYPE_CHECKING:
    from rag.engine import Engine

log = logging.getLogger("api.deps")

OpenEngine = Callable[[Settings], AbstractAsyncContextManager["Engine"]]
T = TypeVar("T")

MAX_UPLOADS = 4
"""Uploads whose bytes are in memory at one time; the next ones wait unread."""

RETRY_SECONDS = (1.0, 2.0, 4.0, 8.0)
"""Pauses before the engine is opened again while its database cannot be reached."""


@contextlib.asynccontextmanager
async def open_engine(settings: Settings) -> AsyncIterator[Engine]:
    """The engine, imported in a worker thread, for importing it takes seconds (I11)."""
    module = await asyncio.to_thread(importlib.import_module, "rag.engine")
    async with module.Engine.open(settings) as engine:
        yield engine


class Opening:
    """The engine on its way up, up, or failed; opened and closed in one task."""

    def __init__(self, settings: Settings, opener: OpenEngine) -> None:
        self._settings = settings
        self._opener = opener
        self._closing = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._engine: Engine | None = None
        self.reasons: list[str] = ["loading"]
        self.uploads: set[asyncio.Task[Any]] = set()
        self.upload_slots = asyncio.Semaphore(MAX_UPLOADS)

    @property
    def engine(self) -> Engine:
        """The engine; ``Unavailable`` with the reasons until it is open."""
        if self._engine is None:
            raise Unavailable(f"The service is not ready: {'; '.join(self.reasons)}")
        return self._engine

    def start(self) -> None:
        self._task = asyncio.create_task(self._run())

    async def stop(self) -> None:
        """Let uploads finish, then close the engine."""
        if self.uploads:
            await asyncio.wait(self.uploads)
        self._closing.set()
        if self._task is None:
            return
        if self._engine is None:
            self._task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._task

    async def _run(self) -> None:
        for pause in (*RETRY_SECONDS, None):
            if await self._hold_open() or self._closing.is_set():
                return
            await self._pause(pause or RETRY_SECONDS[-1])
        while not (await self._hold_open() or self._closing.is_set()):
            await self._pause(RETRY_SECONDS[-1])

    async def _pause(self, seconds: float) -> None:
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._closing.wait(), seconds)

    async def _hold_open(self) -> bool:
        """Open the engine and keep it until the end; False when opening is worth another try."""
        try:
            async with self._opener(self._settings) as engine:
                self._engine, self.reasons = engine, []
                log.info("ready")
                await self._closing.wait()
                self._engine, self.reasons = None, ["stopping"]
        except VeilragError as error:
            self._fail(error.message, error)
            return not isinstance(error, DatabaseUnavailable)
        except Exception as error:  # outermost of this task: the process stays up, not ready
            self._fail(f"opening failed ({type(error).__name__}), see the log", error)
        return True

    def _fail(self, reason: str, error: Exception) -> None:
        self._engine, self.reasons = None, [reason]
        log.error("not ready: %s (%s)", reason, place_of(error))


class State(TypedDict):
    """What the lifespan yields to every request."""

    settings: Settings
    opening: Opening


def settings_of(request: Request) -> Settings:
    settings: Settings = request.scope["state"]["settings"]
    return settings


def opening_of(request: Request) -> Opening:
    opening: Opening = request.scope["state"]["opening"]
    return opening


def engine_of(request: Request) -> Engine:
    return opening_of(request).engine


SettingsDep = Annotated[Settings, Depends(settings_of)]
OpeningDep = Annotated[Opening, Depends(opening_of)]
EngineDep = Annotated["Engine", Depends(engine_of)]


async def while_connected(request: Request, work: Coroutine[Any, Any, T]) -> T:
    """Run ``work`` and cancel it when the client leaves, so that nothing runs for nobody.

    The body must have been read. Raises ``ClientDisconnect`` when the client left.
    """
    working = asyncio.ensure_future(work)
    watching = asyncio.ensure_future(_disconnected(request))
    try:
        await asyncio.wait({working, watching}, return_when=asyncio.FIRST_COMPLETED)
        if not working.done():
            raise ClientDisconnect
        return working.result()
    finally:
        for task in (working, watching):
            task.cancel()
        await asyncio.gather(working, watching, return_exceptions=True)


async def _disconnected(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass


async def to_the_end(opening: Opening, work: Coroutine[Any, Any, T]) -> T:
    """Run ``work`` in a task of its own that ends even when the client or its request does not."""
    task = asyncio.create_task(work)
    opening.uploads.add(task)
    task.add_done_callback(opening.uploads.discard)
    return await asyncio.shield(task)
