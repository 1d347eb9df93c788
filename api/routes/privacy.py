"""``POST /privacy/preview``: what would leave."""

from __future__ import annotations

from fastapi import APIRouter, Request

from api.deps import EngineDep, while_connected
from api.schemas import PreviewBody, PreviewOut

router = APIRouter(tags=["privacy"])


@router.post("/privacy/preview", response_model=PreviewOut)
async def preview(request: Request, body: PreviewBody, engine: EngineDep) -> PreviewOut:
    """The text as a model would get it, and where what was found in the text given."""
    result = await while_connected(request, engine.preview(body.text, body.policy))
    return PreviewOut.model_validate(result, from_attributes=True)
