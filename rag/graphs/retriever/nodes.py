"""Nodes of the child graph: embed, search, filter.

They work inside the boundary on original words, so that masking costs no recall (I5);
only a remote embedder sees type words instead.
"""

from __future__ import annotations

import asyncio
from typing import Any

from langgraph.runtime import Runtime

from rag.graphs.context import AskContext
from rag.graphs.retriever.fusion import fuse
from rag.graphs.retriever.state import RetrieverState
from rag.types import Hit

DENSE_WEIGHT, LEXICAL_WEIGHT = 0.3, 0.7
"""For the local static embeddings; see ARCHITECTURE.md for the figures."""

CANDIDATES = 4
"""How many times ``top_k`` each ranking brings before fusion and filter."""


async def embed(state: RetrieverState, runtime: Runtime[AskContext]) -> dict[str, Any]:
    """The query's vector: of its own words locally, of type words for a remote model."""
    context = runtime.context
    embedder = context.embedder
    text = state.get("outside_query", "") if embedder.remote else state["query"]
    vectors = await embedder.embed([text], context.embedder_guard())
    return {"embedding": vectors[0]}


async def _dense(state: RetrieverState, context: AskContext) -> list[Hit]:
    if not state["embedding"].any():
        return []  # an empty query has no direction
    limit = state["top_k"] * CANDIDATES
    return await context.search.dense(state["embedding"], limit, context.filters)


async def search_dense(state: RetrieverState, runtime: Runtime[AskContext]) -> dict[str, Any]:
    """Nearest chunks alone."""
    return {"rankings": [await _dense(state, runtime.context)]}


async def search_hybrid(state: RetrieverState, runtime: Runtime[AskContext]) -> dict[str, Any]:
    """Nearest chunks and full-text hits, side by side."""
    context = runtime.context
    limit = state["top_k"] * CANDIDATES
    rankings = await asyncio.gather(
        _dense(state, context), context.search.lexical(state["query"], limit, context.filters)
    )
    return {"rankings": list(rankings)}


async def filter_hits(state: RetrieverState, runtime: Runtime[AskContext]) -> dict[str, Any]:
    """Fuse where there are several rankings, drop what scores nothing, cut at ``top_k``."""
    rankings = state["rankings"]
    hits = rankings[0]
    if len(rankings) > 1:
        hits = fuse(rankings, (DENSE_WEIGHT, LEXICAL_WEIGHT))
    return {"chunks": [hit for hit in hits if hit.score > 0][: state["top_k"]]}
