"""The trace of a request: the names of the nodes that it visited, in order."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from langgraph.runtime import Runtime

from rag.graphs.answer.state import AnswerState
from rag.graphs.context import AskContext

Node = Callable[[AnswerState, Runtime[AskContext]], Awaitable[dict[str, Any]]]


def visited(name: str, node: Node) -> Any:
    """``node``, recording its visit under ``name``."""

    async def visit(state: AnswerState, runtime: Runtime[AskContext]) -> dict[str, Any]:
        changed = await node(state, runtime)
        return {**changed, "trace": [*state.get("trace", []), name]}

    return visit
