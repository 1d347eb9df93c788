"""What the nodes need beside the state: one frozen value for each request.

The mapping of placeholders lives in its ``scope`` and nowhere else (I8): graphs are
compiled once and shared, contexts never are.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol
from uuid import UUID

from rag.graphs.prompts import TEMPLATES
from rag.ports import ChatModel, ChunkSearch, Embedder, OutboundGuard, Scorer
from rag.privacy.policy import Policy
from rag.privacy.scope import Scope
from rag.types import Completion, Message


@dataclass(slots=True)
class Outbox:
    """What left, or without a model would have left, in order; protected text only."""

    prompts: list[list[Message]] = field(default_factory=list)
    calls: int = 0


class MakesGuards(Protocol):
    """What gives the guard for the moment: the scope learns subjects as a request goes on."""

    def guard(self, templates: frozenset[str] = ...) -> OutboundGuard: ...


@dataclass(frozen=True, slots=True)
class CountingGuard:
    """Asks for the guard at every check, and counts in the outbox what it let pass."""

    source: MakesGuards
    outbox: Outbox

    def check(self, method: str, url: str, headers: Sequence[tuple[str, str]], body: bytes) -> None:
        self.source.guard(TEMPLATES).check(method, url, headers, body)
        self.outbox.calls += 1


class Trusted:
    """Lets everything pass, for an endpoint that the settings declare trusted."""

    def guard(self, templates: frozenset[str] = frozenset()) -> Trusted:
        return self

    def check(self, method: str, url: str, headers: Sequence[tuple[str, str]], body: bytes) -> None:
        return


@dataclass(frozen=True, slots=True)
class AskContext:
    """The runtime context of parent and child graphs."""

    scope: Scope
    policy: Policy
    guard: OutboundGuard
    outbox: Outbox
    search: ChunkSearch
    embedder: Embedder
    scorer: Scorer
    detector: str
    """The running detector's version."""
    detect_again: Callable[[UUID], Awaitable[None]]
    """Finds a document's personal data anew and stores it."""
    chat: ChatModel | None = None
    retriever: Any = None
    """The compiled child graph (a LangGraph ``CompiledStateGraph``)."""
    filters: Mapping[str, Any] = field(default_factory=dict)
    context_chars: int = 8_000

    def embedder_guard(self) -> OutboundGuard | None:
        """For a call of the embedder: none where it is local, an open one where trusted."""
        if not self.embedder.remote:
            return None
        if self.embedder.trusted:
            return CountingGuard(Trusted(), self.outbox)
        return self.guard

    async def complete(self, messages: list[Message]) -> Completion | None:
        """Record ``messages``, and ask the model where one is configured."""
        self.outbox.prompts.append(messages)
        if self.chat is None:
            return None
        return await self.chat.complete(messages, self.guard)
