"""A service over real HTTP with a scripted engine behind it: no model, no database."""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import httpx2
import pytest
import uvicorn

from api.app import create_app
from api.serve import bind, configuration
from rag.errors import NotFound
from rag.settings import Settings
from rag.types import Ingested, Preview, PreviewEntity, Receipt, Result, Source, StoredDocument

DOCUMENT = UUID("6f1c3a52-4df0-4c05-9a3e-6a1f0b7c2d10")


class FakeEngine:
    """Obeys the engine's interface; what it does is set by the test."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        self.asked: list[tuple[tuple[Any, ...], dict[str, Any]]] = []
        self.ingested: list[tuple[Any, ...]] = []
        self.given: list[tuple[dict[str, Any], str | None]] = []
        self.fail: BaseException | None = None
        self.delay = 0.0
        self.missing: list[str] = []
        self.cancelled = 0
        self.refuse: dict[str, Exception] = {}

    async def _work(self) -> None:
        try:
            await asyncio.sleep(self.delay)
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        if self.fail is not None:
            raise self.fail

    async def run_graph(self, *args: Any, **options: Any) -> Result:
        self.asked.append((args, options))
        await self._work()
        return Result(
            answer="Tomke Harring keeps the keys [1].",
            rewrites=("who keeps the keys",),
            sources=(Source("keys.md", 0, "Tomke Harring keeps the keys.", DOCUMENT, 0.9, 0, 29),),
            eval_score=None,
            trace=("anonymize", "synthesize"),
            confidence="high",
            top_similarity=0.8,
            warnings=(),
            privacy=Receipt("default", {"PERSON": 1}, 2),
            outbound=(),
        )

    async def preview(self, text: str, policy: str | None = None) -> Preview:
        await self._work()
        return Preview("[PERSON_1] calls", (PreviewEntity("PERSON", 0, 13, "[PERSON_1]"),))

    async def ingest_bytes(
        self,
        name: str,
        data: bytes,
        media_type: str | None,
        collection: str,
        metadata: dict[str, Any],
        *,
        password: str | None,
    ) -> Ingested:
        await self._work()
        self.given.append((metadata, password))
        if name in self.refuse:
            raise self.refuse[name]
        self.ingested.append((name, data, media_type, collection))
        return Ingested(name, "ready", uuid4(), 1, {"PERSON": 1})

    async def ingest_text(
        self, text: str, source: str, metadata: dict[str, Any], collection: str
    ) -> Ingested:
        await self._work()
        self.ingested.append((text, source, metadata, collection))
        return Ingested(source, "ready", uuid4(), 1)

    async def list_documents(
        self, collection: str, limit: int, after: UUID | None
    ) -> list[StoredDocument]:
        return [self._stored(n) for n in range(2)][:limit]

    async def get_document(self, id: UUID) -> tuple[StoredDocument, str, list[Any]]:
        if id != DOCUMENT:
            raise NotFound("There is no such document.")
        return self._stored(0), "content", []

    async def delete_document(self, id: UUID) -> None:
        if id != DOCUMENT:
            raise NotFound("There is no such document.")

    async def ready(self) -> list[str]:
        return self.missing

    def _stored(self, n: int) -> StoredDocument:
        return StoredDocument(
            DOCUMENT, f"{n}.md", "default", 1, {"PERSON": 1}, {}, "en", "1", "2026-01-01T00:00:00Z"
        )


class Running:
    """A served app, its fake engine, and a client for it."""

    def __init__(self, url: str, engine: FakeEngine, client: httpx2.Client) -> None:
        self.url, self.engine, self.client = url, engine, client

    @property
    def port(self) -> int:
        return int(self.url.rsplit(":", 1)[1])


Start = Callable[..., Running]


@contextlib.contextmanager
def running(settings: Settings, engine: FakeEngine, opener: Any = None) -> Iterator[Running]:
    """Serve in a thread until the block ends."""

    @contextlib.asynccontextmanager
    async def opened(_settings: Settings) -> AsyncIterator[FakeEngine]:
        yield engine

    bound = bind("127.0.0.1", 0)
    config = configuration(create_app(settings, opener=opener or opened))
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [bound]})
    thread.start()
    try:
        until = time.monotonic() + 10
        while not server.started and time.monotonic() < until:
            time.sleep(0.01)
        url = f"http://127.0.0.1:{bound.getsockname()[1]}"
        with httpx2.Client(base_url=url, trust_env=False, timeout=10) as client:
            yield Running(url, engine, client)
    finally:
        server.should_exit = True
        thread.join(20)
        bound.close()
        assert not thread.is_alive()


@pytest.fixture
def stack() -> Iterator[contextlib.ExitStack]:
    """What was started in a test and ends with it."""
    with contextlib.ExitStack() as opened:
        yield opened


@pytest.fixture
def start(tmp_path: Path, stack: contextlib.ExitStack) -> Start:
    """Start a service with these settings."""

    def begin(opener: Any = None, **settings: Any) -> Running:
        made = Settings(data_dir=tmp_path, _env_file=None, **settings)
        return stack.enter_context(running(made, FakeEngine(), opener))

    return begin


@pytest.fixture
def stop(stack: contextlib.ExitStack) -> Callable[[], None]:
    """Stop what was started."""
    return stack.close


@pytest.fixture(scope="session")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """One service with the default settings for all tests that change nothing in it."""
    settings = Settings(data_dir=tmp_path_factory.mktemp("data"), _env_file=None)
    with running(settings, FakeEngine()) as service:
        until = time.monotonic() + 10
        while service.client.get("/readyz").status_code != 200:
            assert time.monotonic() < until
        yield service


@pytest.fixture
def service(shared: Running) -> Running:
    """The shared service, its engine as new."""
    shared.engine.reset()
    return shared
