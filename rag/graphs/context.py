"""What the nodes need beside the state: one frozen value for each request.

The mapping of placeholders lives in its ``scope`` and nowhere else (I8): graphs are
compiled once and shared, contexts never are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from rag.graphs.prompts import TEMPLATES
from rag.ports import ChatModel, ChunkSearch, Embedder, OutboundGuard, Scorer
from rag.privacy.scope import Scope
from rag.types import Completion, Message


@dataclass(slots=True)
class Outbox:
    """What left, or without a model would have left, in order; protected text only."""

    prompts: list[list[Message]] = field(default_factory=list)
    calls: int = 0


@dataclass(frozen=True, slots=True)
class CountingGuard:
    """The scope's guard; counts in the outbox what it let pass."""

    inner: OutboundGuard
    outbox: Outbox

    def check(self, method: str, url: str, headers: Sequence[tuple[str, str]], body: bytes) -> None:
        self.inner.check(method, url, headers, body)
        self.outbox.calls += 1


@dataclass(frozen=True, slots=True)
class AskContext:
    """The runtime context of parent and child graphs."""

    scope: Scope
    guard: OutboundGuard
    outbox: Outbox
    search: ChunkSearch
    embedder: Embedder
    scorer: Scorer
    chat: ChatModel | None = None
    retriever: Any = None
    """The compiled child graph (a LangGraph ``CompiledStateGraph``)."""
    filters: Mapping[str, Any] = field(default_factory=dict)
    context_chars: int = 8_000

    async def complete(self, messages: list[Message]) -> Completion | None:
        """Record ``messages``, and ask the model where one is configured."""
        self.outbox.prompts.append(messages)
        if self.chat is None:
            return None
        return await self.chat.complete(messages, self.guard)


def guard_of(scope: Scope, outbox: Outbox) -> CountingGuard:
    """The guard of a request: it refuses what the scope knows, our templates excepted."""
    return CountingGuard(scope.guard(TEMPLATES), outbox)
