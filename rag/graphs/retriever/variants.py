"""The child graph, embed -> search -> filter, compiled once under each variant's name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from langgraph.graph import END, START, StateGraph

from rag.errors import UnknownName
from rag.graphs.context import AskContext
from rag.graphs.retriever.nodes import embed, filter_hits, search_dense, search_hybrid
from rag.graphs.retriever.state import RetrieverState

SEARCHES: Final[Mapping[str, Any]] = {"dense": search_dense, "hybrid": search_hybrid}


def compile_retriever(name: str) -> Any:
    """A compiled child graph by its variant's name. Raises ``UnknownName``."""
    if name not in SEARCHES:
        raise UnknownName(f"No such retriever; there are: {', '.join(SEARCHES)}.")
    graph = StateGraph(RetrieverState, context_schema=AskContext)
    graph.add_node("embed", embed)
    graph.add_node("search", SEARCHES[name])
    graph.add_node("filter", filter_hits)
    graph.add_edge(START, "embed")
    graph.add_edge("embed", "search")
    graph.add_edge("search", "filter")
    graph.add_edge("filter", END)
    return graph.compile(name=name)
