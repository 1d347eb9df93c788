"""Nodes of the parent graph: anonymize, rewrite, sub_retrieve, synthesize, evaluate.

Plain functions ``(state, runtime)`` that return only the keys they change. Whatever
varies is protected by the scope before it enters a message (I1); retrieval works on
original words (I5); the answer is restored for the asker alone (I4, I12).
"""

from __future__ import annotations

import asyncio
from typing import Any

from langgraph.runtime import Runtime

from rag.errors import BoundaryRefused, ModelFailed
from rag.graphs.answer.citations import resolve
from rag.graphs.answer.evidence import fit, passage
from rag.graphs.answer.rewriting import parse_rewrites
from rag.graphs.answer.rules import NOTHING, answer_by_quoting, rewrite_by_rules
from rag.graphs.answer.state import AnswerState
from rag.graphs.answer.unsourced import hide_unsourced, unsourced_values
from rag.graphs.context import AskContext
from rag.graphs.prompts import answer_messages, rewrite_messages
from rag.graphs.retriever.fusion import best_rank
from rag.privacy.links import inert
from rag.privacy.protect import Piece
from rag.types import Hit, ScoreCase


async def anonymize(state: AnswerState, runtime: Runtime[AskContext]) -> dict[str, Any]:
    """The question with placeholders, by its own spans and by the forms that are known."""
    if not state.get("anonymize", True):
        return {"anonymized_question": state["question"], "pii_mapping": {}, "question_spans": ()}
    scope = runtime.context.scope
    spans = await scope.detect(state["question"])
    [protected] = await scope.protect([Piece(state["question"], spans)])
    return {
        "anonymized_question": protected,
        "pii_mapping": scope.masked(),
        "question_spans": spans,
    }


async def rewrite(state: AnswerState, runtime: Runtime[AskContext]) -> dict[str, Any]:
    """``rewrite_n`` other wordings, by the model or by rules; forged placeholders drop out."""
    count = state.get("rewrite_n", 3)
    question = state["anonymized_question"]
    if count == 0:
        return {"rewrites": []}
    wanted, warnings = await _rewrites(question, count, runtime.context)
    kept = [text for text in wanted if runtime.context.scope.knows(text)]
    if len(kept) < len(wanted):
        warnings.append("rewrites_dropped")
    return {"rewrites": kept, "warnings": [*state.get("warnings", []), *warnings]}


async def _rewrites(question: str, count: int, context: AskContext) -> tuple[list[str], list[str]]:
    """Queries and warnings. A model that fails here costs the rewrites, not the answer."""
    try:
        completion = await context.complete(rewrite_messages(question, count))
    except BoundaryRefused:
        raise
    except ModelFailed:
        return rewrite_by_rules(question, count), ["rewrite_failed"]
    if completion is None:
        return rewrite_by_rules(question, count), []
    rewrites = parse_rewrites(completion.text, count)
    if not rewrites:
        return rewrite_by_rules(question, count), ["rewrite_unreadable"]
    return rewrites, []


async def sub_retrieve(state: AnswerState, runtime: Runtime[AskContext]) -> dict[str, Any]:
    """The child graph once for each query, concurrently; the union, each chunk once."""
    context = runtime.context
    top_k = state.get("top_k", 5)
    restored = [context.scope.restore(text).text for text in state["rewrites"]]
    queries = [state["question"], *(t for t in dict.fromkeys(restored) if t != state["question"])]
    outside = await _for_embedder(queries, state, context)
    results = await asyncio.gather(
        *(_retrieve(*pair, top_k, context) for pair in zip(queries, outside, strict=True))
    )
    hits = await _with_spans(best_rank(results, top_k), context)
    hits, pieces = fit(hits, context.context_chars)
    if not state.get("anonymize", True):
        return {"retrieved": hits, "contexts": [piece.text for piece in pieces]}
    # The question once more: what a passage gave away must not leave in it either.
    asked = Piece(state["question"], state["question_spans"])
    protected, *contexts = await context.scope.protect([asked, *pieces])
    return {
        "retrieved": hits,
        "contexts": contexts,
        "anonymized_question": protected,
        "pii_mapping": context.scope.masked(),
    }


async def _for_embedder(queries: list[str], state: AnswerState, context: AskContext) -> list[str]:
    """What a remote embedder may see of each query; nothing is prepared for a local one.

    A rewrite is a model's words: it is scanned and protected like the question (I1).
    """
    if not context.embedder.remote:
        return [""] * len(queries)
    if context.embedder.trusted or not state.get("anonymize", True):
        return queries
    spans = [state["question_spans"]]
    spans += [await context.scope.detect(query) for query in queries[1:]]
    pieces = [Piece(query, found) for query, found in zip(queries, spans, strict=True)]
    return [context.scope.type_words(text) for text in await context.scope.protect(pieces)]


async def _with_spans(hits: list[Hit], context: AskContext) -> list[Hit]:
    """The hits with the running detector's spans: what another version found is found anew."""
    filled = await context.search.fill(hits)
    stale = {hit.chunk.document_id for hit in filled if hit.chunk.detector != context.detector}
    if not stale:
        return filled
    for document in sorted(stale):
        await context.detect_again(document)
    filled = await context.search.fill(hits)
    return [hit for hit in filled if hit.chunk.detector == context.detector]


async def _retrieve(query: str, protected: str, top_k: int, context: AskContext) -> list[Hit]:
    state = {"query": query, "outside_query": protected, "top_k": top_k}
    # The runtime context is handed on explicitly: a child called by hand does not inherit it.
    result = await context.retriever.ainvoke(state, context=context)
    chunks: list[Hit] = result["chunks"]
    return chunks


async def synthesize(state: AnswerState, runtime: Runtime[AskContext]) -> dict[str, Any]:
    """The answer from the protected contexts, then restored and made inert for the asker."""
    context = runtime.context
    contexts = state["contexts"]
    warnings = list(state.get("warnings", []))
    messages = answer_messages(state["anonymized_question"], contexts)
    completion = await context.complete(messages)
    if completion is None:
        quoted = answer_by_quoting(state["anonymized_question"], contexts)
        protected = NOTHING if quoted is None else quoted
        warnings.append("no_model")
    else:
        protected, dropped = resolve(completion.text, contexts)
        if dropped:
            warnings.append("citations_dropped")
        if completion.finish_reason == "length":
            warnings.append("answer_cut_short")
    restored = context.scope.restore(protected)
    sources = [passage(hit) for hit in state["retrieved"]]
    invented: tuple[str, ...] = ()
    if completion is not None:
        found = await context.scope.detect(restored.text)
        invented = unsourced_values(
            restored.text, context.policy.select(found), [state["question"], *sources]
        )
    return {
        "answer": inert(restored.text, sources),
        "protected_answer": hide_unsourced(protected, invented),
        "unresolved": restored.unresolved,
        "unsourced": len(invented),
        "warnings": warnings,
    }


async def evaluate(state: AnswerState, runtime: Runtime[AskContext]) -> dict[str, Any]:
    """Scores of the protected answer where they are wanted; the judge is outside too (I7)."""
    if not state.get("with_evaluation", False):
        return {"eval_score": None}
    case = ScoreCase(
        question=state["anonymized_question"],
        answer=state["protected_answer"],
        contexts=tuple(state["contexts"]),
    )
    return {"eval_score": await runtime.context.scorer.score(case, runtime.context.guard)}
