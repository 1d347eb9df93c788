"""What the inner layers ask of the outer ones, and nothing more.

An adapter implements a port; a fake in ``rag.testing`` obeys the same contract, and
one suite under ``tests/contracts`` runs on both. Everything here is a Protocol:
adapters do not inherit.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from rag.types import (
    Alias,
    Chunk,
    ChunkDraft,
    Completion,
    Document,
    EntityType,
    Hit,
    Ingested,
    Known,
    Message,
    Score,
    ScoreCase,
    Space,
    Span,
    StoredDocument,
)

Vectors = NDArray[np.float32]
"""``(n, dimension)`` float32, each row of unit norm."""


@dataclass(frozen=True, slots=True)
class Part:
    """A stretch of a document that is too long to be held whole, with what was found in it.

    Everything counts characters of the whole document; ``headings`` are the heading texts of
    ``chunks``, which may lie in earlier parts.
    """

    start: int
    text: str = field(repr=False)
    chunks: tuple[ChunkDraft, ...]
    headings: tuple[str, ...] = field(repr=False)
    embeddings: Vectors = field(repr=False)
    spans: tuple[Span, ...]
    aliases: tuple[Alias, ...]


class Detector(Protocol):
    """Finds personal data. Synchronous and CPU-bound: call it in a worker thread."""

    @property
    def version(self) -> str:
        """Changes whenever the same text could get other spans."""
        ...

    def detect(self, text: str) -> list[Span]:
        """Resolved spans of all types in ``text``: sorted, not overlapping.

        Raises ``DetectorFailed`` when any part of it errs, times out or skips (I2),
        ``TooLarge`` when the text is longer than it takes.
        """
        ...


class AliasIndex(Protocol):
    """Forms of subjects known to the collections that the caller may read, by keyed hash."""

    async def known_first(self, first: Sequence[int]) -> set[int]:
        """Those of the first-word hashes that some known form begins with."""
        ...

    async def known_forms(self, form: Sequence[int]) -> list[Alias]:
        """The known forms among these hashes; one form may come with several types."""
        ...


class Allocator(Protocol):
    """Hands out the numbers of placeholders; durable before a placeholder leaves."""

    async def allocate(self, type: str, count: int) -> list[int]:
        """``count`` fresh numbers (from 1, never repeated within the scope) for a coarse type."""
        ...


class OutboundGuard(Protocol):
    """Decides over one outbound request, seen whole, just before it leaves."""

    def check(self, method: str, url: str, headers: Sequence[tuple[str, str]], body: bytes) -> None:
        """Raises ``BoundaryRefused`` when an original is in it or it cannot be read whole."""
        ...


class ChatModel(Protocol):
    """An OpenAI-compatible chat endpoint, outside the boundary unless ``trusted``."""

    @property
    def name(self) -> str: ...

    @property
    def trusted(self) -> bool: ...

    async def complete(self, messages: Sequence[Message], guard: OutboundGuard) -> Completion:
        """One completion. Raises ``ModelFailed``, ``ModelTimeout``, ``BoundaryRefused``."""
        ...


class Embedder(Protocol):
    """Text to unit vectors of one space. ``remote`` ones get type words for originals (I5)."""

    @property
    def space(self) -> Space: ...

    @property
    def remote(self) -> bool: ...

    @property
    def trusted(self) -> bool: ...

    async def embed(self, texts: Sequence[str], guard: OutboundGuard | None = None) -> Vectors:
        """Vectors in the order of ``texts``; a row that could not be embedded is all zeros.

        A remote embedder requires a guard. Raises as ``ChatModel.complete`` does.
        """
        ...


class ChunkSearch(Protocol):
    """Reading side of the store, bound to one tenant and the collections it may read."""

    async def dense(
        self, embedding: NDArray[np.float32], limit: int, filters: Mapping[str, Any]
    ) -> list[Hit]:
        """Nearest chunks by cosine, best first; score = similarity mapped to 0-1."""
        ...

    async def lexical(self, query: str, limit: int, filters: Mapping[str, Any]) -> list[Hit]:
        """Chunks by full-text rank (terms joined by OR), best first, scores 0-1."""
        ...

    async def fill(self, hits: Sequence[Hit]) -> list[Hit]:
        """The same hits with their chunks' spans filled in, by one lookup (I10)."""
        ...


class DocumentStore(Protocol):
    """Writing side of the store, bound to one tenant."""

    async def find(self, collection: str, source: str) -> tuple[UUID, str, str] | None:
        """``(id, content hash, detector version)`` of the stored version, if any."""
        ...

    async def put(
        self,
        collection: str,
        space: Space,
        document: Document,
        content_hash: str,
        detector: str,
        chunks: Sequence[ChunkDraft],
        embeddings: Vectors,
        spans: Sequence[Span],
        aliases: Sequence[Alias],
        *,
        file_hash: str | None = None,
        origin: str | None = None,
    ) -> Ingested:
        """Store or replace in one transaction. ``spans`` are offsets into ``surface()``.

        Raises ``SpaceMismatch`` when the collection lives in another space.
        """
        ...

    async def put_parts(
        self,
        collection: str,
        space: Space,
        head: Document,
        content_hash: Callable[[], str],
        detector: str,
        parts: AsyncIterator[Part],
        *,
        file_hash: str | None = None,
        origin: str | None = None,
    ) -> Ingested:
        """As ``put``, part by part: memory is that of one part, the transaction is still one.

        ``head`` is the document without its content; ``content_hash`` is asked when the last
        part is written. An error of ``parts`` leaves everything as it was.
        """
        ...

    async def known(self, collection: str, sources: Sequence[str]) -> Mapping[str, Known]:
        """What is stored under these sources, by one look-up."""
        ...

    async def of_origin(self, collection: str, origin: str) -> Mapping[str, UUID]:
        """The documents that came from a folder, by source."""
        ...

    async def mark(self, id: UUID, file_hash: str | None, origin: str | None) -> None:
        """Remember the bytes and the folder that an unchanged document came from."""
        ...

    async def list_page(
        self, collection: str, limit: int, after: UUID | None
    ) -> list[StoredDocument]: ...

    async def get(self, id: UUID) -> tuple[StoredDocument, str, list[Span]]:
        """The document, its content, its spans. Raises ``NotFound``."""
        ...

    async def stale(self, detector: str, limit: int = 100) -> list[UUID]:
        """Documents whose spans another detector version found (I10)."""
        ...

    async def respan(
        self, id: UUID, detector: str, spans: Sequence[Span], aliases: Sequence[Alias]
    ) -> None:
        """Exchange a document's spans and forms for another detector's. Raises ``NotFound``."""
        ...

    async def delete(self, id: UUID) -> None:
        """Make its rows unreachable at once. Raises ``NotFound``."""
        ...


class Scorer(Protocol):
    """Scores one answer. A metric that fails is a value with a reason, not an exception."""

    async def score(
        self, case: ScoreCase, guard: OutboundGuard | None = None
    ) -> Mapping[str, Score]:
        """Every metric of this scorer by name.

        The judge is outside (I7): without a guard it is not asked, and every metric is
        ``None`` with the reason.
        """
        ...


class Resource(Protocol):
    """What the engine opens, closes in reverse, and asks whether it is ready."""

    async def ping(self) -> None:
        """Return when ready; raise ``Unavailable`` with what to do about it."""
        ...


__all__ = [
    "AliasIndex",
    "Allocator",
    "ChatModel",
    "Chunk",
    "ChunkSearch",
    "Detector",
    "DocumentStore",
    "Embedder",
    "EntityType",
    "OutboundGuard",
    "Part",
    "Resource",
    "Scorer",
    "Vectors",
]
