"""What the process prints of itself: our messages, and of everything else only the place (I6)."""

from __future__ import annotations

import logging
import subprocess
import sys

import pytest

from api.process import PlaceFormatter

SECRET = "Tomke Harring"


def formatted(name: str, message: str, *args: object, error: BaseException | None = None) -> str:
    info = (type(error), error, error.__traceback__) if error else None
    record = logging.LogRecord(name, logging.ERROR, "/x/place.py", 7, message, args, info)
    return PlaceFormatter().format(record)


@pytest.mark.parametrize("name", ["api.x", "rag.store", "veilrag", "uvicorn.error"])
def test_our_messages_are_shown(name: str) -> None:
    """Loggers whose texts are fixed are shown as they are."""
    assert formatted(name, "opened %d", 3).endswith(f"ERROR {name} opened 3")


@pytest.mark.parametrize("name", ["psycopg.pool", "asyncio", "py.warnings", "apix", "uvicorn.asgi"])
def test_foreign_messages_are_not(name: str) -> None:
    """A library's message may quote a value: only logger and place are shown."""
    line = formatted(name, "failed: %s", SECRET)
    assert line.endswith(f"ERROR {name} (place:7)")


def test_an_exception_is_shown_by_type_and_place() -> None:
    """Neither an exception's text nor its cause's nor a traceback is printed."""
    try:
        try:
            raise KeyError(SECRET)
        except KeyError as cause:
            raise ValueError(SECRET) from cause
    except ValueError as error:
        line = formatted("uvicorn.error", "Exception in ASGI application\n", error=error)
    assert "Harring" not in line
    assert "\n" not in line
    assert "builtins.ValueError at test_process.py:" in line


SCRIPT = """
import asyncio, logging, threading, warnings
from api.process import configure_logging
configure_logging("DEBUG")
secret = "Tomke Harring"
class Unraisable:
    def __del__(self): raise ValueError(secret)
def fail(): raise ValueError(secret)
{code}
"""

LAST_PRINTERS = {
    "main": "fail()",
    "thread": "t = threading.Thread(target=fail); t.start(); t.join()",
    "unraisable": "Unraisable()",
    "warning": "warnings.warn(secret)",
    "a task nobody awaited": (
        "async def lost():\n    async def f(): fail()\n    t = asyncio.ensure_future(f())\n"
        "    await asyncio.sleep(0); del t\nasyncio.run(lost())"
    ),
    "a callback of the loop": (
        "async def call():\n    asyncio.get_running_loop().call_soon(fail)\n"
        "    await asyncio.sleep(0.01)\nasyncio.run(call())"
    ),
    "a library's logger": "logging.getLogger('some.library').error(secret)",
    "a library's debug": "logging.getLogger('openai').debug(secret)",
    "a grandchild of ours is ours": "logging.getLogger('rag.x').info('fine')",
}


@pytest.mark.parametrize("code", LAST_PRINTERS.values(), ids=LAST_PRINTERS)
def test_no_last_printer_of_the_interpreter_shows_a_value(code: str) -> None:
    """Uncaught exceptions, warnings and lost tasks reach stderr without their texts."""
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT.format(code=code)],
        check=False,
        capture_output=True,
        text=True,
    )
    assert "Harring" not in done.stderr + done.stdout
    assert "Traceback" not in done.stderr
    assert ("openai" in code) == (done.stderr == "")


TELEMETRY = """
import asyncio, contextlib, os
os.environ["FASTAPI_OTEL_AUTO_CONFIGURE"] = "true"
import httpx2
from opentelemetry import _logs, trace
kept = []
class Tracer(trace.NoOpTracer):
    def start_span(self, *args, **kwargs):
        kept.append((args, kwargs))
        return super().start_span(*args, **kwargs)
class Tracers(trace.TracerProvider):
    def get_tracer(self, *args, **kwargs): return Tracer()
class Logger(_logs.NoOpLogger):
    def emit(self, *args, **kwargs): kept.append((args, kwargs))
class Loggers(_logs.LoggerProvider):
    def get_logger(self, *args, **kwargs): return Logger("x")
trace.set_tracer_provider(Tracers())
_logs.set_logger_provider(Loggers())
from fastapi import FastAPI
from api.app import create_app
from rag.settings import Settings

async def run(app, path, **sent):
    state = {}
    async with app.router.lifespan_context(app) as yielded:
        state.update(yielded or {})
        async def with_state(scope, receive, send):
            await app({**scope, "state": state}, receive, send)
        transport = httpx2.ASGITransport(with_state, raise_app_exceptions=False)
        async with httpx2.AsyncClient(transport=transport, base_url="http://localhost") as client:
            await client.post(path, **sent)

@contextlib.asynccontextmanager
async def opener(settings):
    yield object()

async def main():
    plain = FastAPI(telemetry={"auto_configure": False})
    @plain.post("/ask")
    def ask(): raise ValueError("Tomke Harring")
    await run(plain, "/ask", json={})
    assert kept, "the framework's telemetry was not provoked: this test proves nothing"
    kept.clear()
    ours = create_app(Settings(_env_file=None), opener=opener)
    await run(ours, "/ask", json={"question": "Tomke Harring"})
    await run(ours, "/ask", json={"Tomke Harring": 1})
    print(len(kept))
asyncio.run(main())
"""


def test_the_frameworks_telemetry_is_off() -> None:
    """A telemetry provider in the process, or variables that name one, get nothing from us (I6)."""
    done = subprocess.run(
        [sys.executable, "-c", TELEMETRY], check=False, capture_output=True, text=True
    )
    assert done.stdout.strip() == "0", done.stderr
