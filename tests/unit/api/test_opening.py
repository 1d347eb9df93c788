"""The process answers while its engine opens, and says what is missing."""

from __future__ import annotations

import asyncio
import contextlib
import resource
import subprocess
import sys
import threading
import time
from collections.abc import AsyncIterator
from typing import Any

import pytest

from api.deps import Opening, open_engine, to_the_end
from api.serve import bind, serve
from rag.errors import DatabaseUnavailable, DetectorFailed, Misconfigured
from rag.settings import Settings


def until_status(service: Any, path: str, status: int) -> Any:
    end = time.monotonic() + 10
    while (response := service.client.get(path)).status_code != status:
        assert time.monotonic() < end, response.text
        time.sleep(0.02)
    return response


def test_health_answers_while_the_engine_opens(start: Any) -> None:
    """Alive at once, ready later: asks are 503 with Retry-After in between, then served."""
    gate = threading.Event()

    @contextlib.asynccontextmanager
    async def slow(_settings: Settings) -> AsyncIterator[Any]:
        await asyncio.to_thread(gate.wait)
        yield service.engine

    service = start(opener=slow)
    try:
        assert service.client.get("/healthz").json() == {"status": "ok"}
        waiting = service.client.get("/readyz")
        refused = service.client.post("/ask", json={"question": "q"})
    finally:
        gate.set()
    assert waiting.status_code == 503
    assert waiting.json()["not_ready"] == ["loading"]
    assert refused.status_code == 503
    assert refused.json()["error"]["code"] == "unavailable"
    assert int(refused.headers["retry-after"]) > 0
    assert until_status(service, "/readyz", 200).json() == {"status": "ready"}
    assert service.client.post("/ask", json={"question": "q"}).status_code == 200


def test_a_failed_opening_is_named_and_the_process_stays(start: Any) -> None:
    """What is missing and what to do stands in /readyz; the process answers on."""
    reason = "The language model is not installed: pip install it."

    @contextlib.asynccontextmanager
    async def failing(_settings: Settings) -> AsyncIterator[Any]:
        raise DetectorFailed(reason)
        yield

    service = start(opener=failing)
    end = time.monotonic() + 10
    while service.client.get("/readyz").json()["not_ready"] != [reason]:
        assert time.monotonic() < end
    assert service.client.get("/healthz").status_code == 200
    assert service.client.post("/ask", json={"question": "q"}).status_code == 503


def test_an_unexpected_failure_of_opening_is_named_by_type(start: Any) -> None:
    """A foreign error's text is not shown, not even by /readyz."""

    @contextlib.asynccontextmanager
    async def failing(_settings: Settings) -> AsyncIterator[Any]:
        raise OSError("password=harring")
        yield

    service = start(opener=failing)
    end = time.monotonic() + 10
    while (reply := service.client.get("/readyz")).json()["not_ready"] == ["loading"]:
        assert time.monotonic() < end
    assert reply.json()["not_ready"] == ["opening failed (OSError), see the log"]


def test_a_database_that_comes_later_is_waited_for(start: Any) -> None:
    """Opening is tried again while only the database is missing."""
    tries: list[int] = []

    @contextlib.asynccontextmanager
    async def second(_settings: Settings) -> AsyncIterator[Any]:
        tries.append(1)
        if len(tries) == 1:
            raise DatabaseUnavailable("The database cannot be reached.")
        yield service.engine

    service = start(opener=second)
    until_status(service, "/readyz", 200)
    assert len(tries) == 2


def test_a_part_that_stops_answering_is_not_ready(service: Any) -> None:
    """Ready means that every part answers now, not that it once did."""
    until_status(service, "/readyz", 200)
    service.engine.missing = ["database"]
    reply = service.client.get("/readyz")
    assert (reply.status_code, reply.json()["not_ready"]) == (503, ["database"])
    service.engine.missing = []
    assert service.client.get("/readyz").status_code == 200


def test_the_engine_is_closed_at_the_end(start: Any, stop: Any) -> None:
    """Stopping the server closes the engine in the task that opened it."""

    class Ready:
        async def ready(self) -> list[str]:
            return []

    seen: list[tuple[str, int]] = []

    @contextlib.asynccontextmanager
    async def noted(_settings: Settings) -> AsyncIterator[Any]:
        seen.append(("opened", id(asyncio.current_task())))
        yield Ready()
        seen.append(("closed", id(asyncio.current_task())))

    service = start(opener=noted)
    until_status(service, "/readyz", 200)
    stop()
    assert [word for word, _ in seen] == ["opened", "closed"]
    assert len({task for _, task in seen}) == 1


def test_a_running_service_leaves_no_core_dump(service: Any) -> None:
    """Core dumps hold everything: their size is limited to nothing (I6)."""
    service.client.get("/healthz")
    assert resource.getrlimit(resource.RLIMIT_CORE) == (0, 0)


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", "veil.example", ""])
def test_without_keys_only_loopback_is_served(host: str) -> None:
    """Without API keys another address is refused before anything is opened."""
    with pytest.raises(Misconfigured, match="loopback only"):
        serve(Settings(_env_file=None), host, 0)


def test_a_taken_port_is_said_so() -> None:
    """A port in use is a clear error, not a traceback."""
    with bind("127.0.0.1", 0) as taken:
        taken.listen()
        with pytest.raises(Misconfigured, match="cannot be bound"):
            bind("127.0.0.1", taken.getsockname()[1])


def test_importing_the_service_loads_nothing_heavy() -> None:
    """Import is free (I11): no model, graph or database library comes with ``api``."""
    heavy = "spacy presidio_analyzer langgraph langchain_openai psycopg wordllama numpy torch"
    code = (
        "import sys, api.app, api.serve; api.app.create_app();"
        f"print([m for m in {heavy.split()!r} if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


async def test_an_upload_outlives_its_request_and_stopping_waits_for_it() -> None:
    """Whoever cancels the request, the upload's work ends, and the engine is not closed before."""
    opening = Opening(Settings(_env_file=None), open_engine)
    done: list[int] = []

    async def work() -> None:
        await asyncio.sleep(0.1)
        done.append(1)

    request = asyncio.create_task(to_the_end(opening, work()))
    await asyncio.sleep(0)
    request.cancel()
    await asyncio.gather(request, return_exceptions=True)
    assert request.cancelled()
    await opening.stop()
    assert done == [1]
