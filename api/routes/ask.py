"""``POST /ask``: one question through one graph."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fastapi import APIRouter, Request

from api.deps import EngineDep, SettingsDep, while_connected
from api.errors import request_id_of
from api.schemas import AskBody, AskOut, PrivacyOut, ScoreOut, SourceOut
from rag.errors import InvalidInput, TooLarge

if TYPE_CHECKING:
    from rag.settings import Settings
    from rag.types import Result

router = APIRouter(tags=["ask"])


@router.post("/ask", response_model=AskOut)
async def ask(request: Request, body: AskBody, engine: EngineDep, settings: SettingsDep) -> AskOut:
    """The answer with the real values, its sources, and what the boundary did."""
    check(body, settings)
    result = await while_connected(
        request,
        engine.run_graph(
            body.question,
            body.rewrite_n,
            body.top_k,
            body.anonymize,
            body.with_evaluation,
            graph=body.graph,
            retriever=body.retriever,
            collection=body.collection,
            filters=body.filters,
            policy=body.policy,
        ),
    )
    return shown(result, request_id_of(request))


def check(body: AskBody, settings: Settings) -> None:
    """Refuse what a schema cannot say. Raises ``InvalidInput``, ``TooLarge``."""
    if not body.question.strip():
        raise InvalidInput("The question is empty.")
    if len(body.question) > settings.max_question_chars:
        raise TooLarge(f"The question is longer than {settings.max_question_chars} characters.")
    if body.thread_id is not None:
        raise InvalidInput("Threads are not supported yet: leave thread_id null.")


def shown(result: Result, request_id: str) -> AskOut:
    """The result as the contract names it. What went out is not part of it."""
    scores = result.eval_score
    return AskOut(
        answer=result.answer,
        rewrites=list(result.rewrites),
        sources=[SourceOut.model_validate(s, from_attributes=True) for s in result.sources],
        eval_score=None
        if scores is None
        else {n: ScoreOut.model_validate(s, from_attributes=True) for n, s in scores.items()},
        request_id=request_id,
        thread_id=None,
        trace=list(result.trace),
        confidence=result.confidence,
        top_similarity=result.top_similarity,
        warnings=list(result.warnings),
        privacy=PrivacyOut.model_validate(result.privacy, from_attributes=True),
    )
