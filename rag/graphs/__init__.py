"""The graphs: a child retriever inside linear parents, over ports alone."""

from __future__ import annotations

from typing import Any


def compile_graphs() -> dict[str, Any]:
    """Every parent shape by name, compiled."""
    from rag.graphs.answer.linear import compile_linear

    return {"linear": compile_linear()}


def compile_retrievers() -> dict[str, Any]:
    """Every child variant by name, compiled."""
    from rag.graphs.retriever.variants import SEARCHES, compile_retriever

    return {name: compile_retriever(name) for name in SEARCHES}
