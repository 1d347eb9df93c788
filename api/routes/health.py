"""``/healthz``: the process answers. ``/readyz``: every part does, or which one does not."""

from __future__ import annotations

import asyncio

from fastapi import APIRouter, Request
from starlette.responses import JSONResponse, Response

from api.deps import OpeningDep, SettingsDep
from api.errors import error_response, request_id_of
from api.schemas import ErrorOut, Health
from rag.errors import VeilragError

router = APIRouter(tags=["health"])

GRACE_SECONDS = 0.5
"""For a part to say itself that it timed out; the whole stays under five seconds."""


@router.get("/healthz", response_model=Health)
async def healthz() -> Health:
    """200 as long as the process answers, also while it loads."""
    return Health(status="ok")


@router.get("/readyz", response_model=Health, responses={503: {"model": ErrorOut}})
async def readyz(request: Request, opening: OpeningDep, settings: SettingsDep) -> Response:
    """200 when everything is loaded and answers; else 503 with ``not_ready``, the reasons."""
    reasons = opening.reasons
    if not reasons:
        try:
            async with asyncio.timeout(settings.database_timeout + GRACE_SECONDS):
                reasons = await opening.engine.ready()
        except TimeoutError:
            reasons = ["a part did not answer in time"]
        except VeilragError as error:
            reasons = [error.message]
    if not reasons:
        return JSONResponse({"status": "ready"})
    message = f"Not ready: {'; '.join(reasons)}"
    return error_response(503, request_id_of(request), message=message, more={"not_ready": reasons})
