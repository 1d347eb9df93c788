"""The application: routes, layers, lifespan. Nothing happens at import or at create (I11)."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from typing import Any

from fastapi import FastAPI

from api import errors
from api.deps import OpenEngine, Opening, State, open_engine
from api.middleware import BodyLimit, Doorkeeper, Envelope, KeyCheck
from api.process import harden
from api.routes import ask, documents, health, privacy
from api.schemas import ErrorOut
from rag import __version__
from rag.settings import Settings, load_settings

NO_TELEMETRY: dict[str, Any] = {
    "tracing": False,
    "metrics": False,
    "logs": False,
    "operation_spans": False,
    "auto_configure": False,
}
"""FastAPI's own OpenTelemetry hands request bodies and exception texts to whatever provider
the process has, and adds exporters from environment variables: off by name (I6)."""


def create_app(settings: Settings | None = None, *, opener: OpenEngine = open_engine) -> FastAPI:
    """The service. Its lifespan reads the settings when none are given, and opens the engine.

    ``opener`` opens the engine; a test may give a fake one that obeys the same interface.
    """

    @contextlib.asynccontextmanager
    async def lifespan(_app: FastAPI) -> AsyncIterator[State]:
        harden()
        current = settings or load_settings()
        opening = Opening(current, opener)
        opening.start()
        try:
            yield {"settings": current, "opening": opening}
        finally:
            await opening.stop()

    app = FastAPI(
        title="veilrag",
        version=__version__,
        lifespan=lifespan,
        docs_url=None,  # these pages load their scripts from elsewhere
        redoc_url=None,
        redirect_slashes=False,
        telemetry=NO_TELEMETRY,  # type: ignore[arg-type]
        responses={status: {"model": ErrorOut} for status in (403, 413, 422, 500, 503)},
    )
    for layer in (BodyLimit, KeyCheck, Doorkeeper, Envelope):  # the last one added is outermost
        app.add_middleware(layer)
    errors.install(app)
    for group in (ask, documents, privacy, health):
        app.include_router(group.router)
    return app
