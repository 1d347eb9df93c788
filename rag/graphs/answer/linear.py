"""The default shape: anonymize -> rewrite -> sub_retrieve -> synthesize -> evaluate."""

from __future__ import annotations

from typing import Any, Final

from langgraph.graph import END, START, StateGraph

from rag.graphs.answer import nodes
from rag.graphs.answer.state import AnswerState
from rag.graphs.answer.visits import visited
from rag.graphs.context import AskContext

PATH: Final = ("anonymize", "rewrite", "sub_retrieve", "synthesize", "evaluate")


def compile_linear() -> Any:
    """The compiled parent graph, without a checkpointer: its state holds raw text (I6)."""
    graph = StateGraph(AnswerState, context_schema=AskContext)
    for name in PATH:
        graph.add_node(name, visited(name, getattr(nodes, name)))
    for start, end in zip((START, *PATH), (*PATH, END), strict=True):
        graph.add_edge(start, end)
    return graph.compile(name="linear")
