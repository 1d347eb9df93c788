"""Fakes that obey the ports: in memory, deterministic, without a model or a database.

The suite under ``tests/contracts`` runs on these and on the real adapters, so that a test
that uses a fake proves something of the real thing.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any
from uuid import UUID, uuid4

import numpy as np
from numpy.typing import NDArray

from rag.errors import NotFound, SpaceMismatch
from rag.ports import OutboundGuard, Part, Vectors
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

SEPARATOR = " > "
_DEFAULT_TENANT = UUID(int=1)
_WORD = re.compile(r"\w+")


def words(text: str) -> list[str]:
    return [word.casefold() for word in _WORD.findall(text)]


class BagEmbedder:
    """Obeys ``Embedder``: each word hashed to one dimension, so that shared words are near."""

    remote = False
    trusted = True

    def __init__(self, dimension: int = 64) -> None:
        self.space = Space("fake-bag-of-words", dimension)

    async def embed(self, texts: Sequence[str], guard: OutboundGuard | None = None) -> Vectors:
        return np.stack([self._vector(text) for text in texts]) if texts else self._nothing()

    def _nothing(self) -> Vectors:
        return np.zeros((0, self.space.dimension), dtype=np.float32)

    def _vector(self, text: str) -> NDArray[np.float32]:
        vector = np.zeros(self.space.dimension, dtype=np.float32)
        for word in words(text):
            digest = hashlib.blake2b(word.encode("utf-8", "replace"), digest_size=4).digest()
            vector[int.from_bytes(digest, "big") % self.space.dimension] += 1.0
        length = float(np.linalg.norm(vector))
        return vector / np.float32(length) if length else vector


class NameDetector:
    """Obeys ``Detector``: finds the given texts on word boundaries, the longest first."""

    def __init__(
        self, names: Mapping[str, EntityType] | Sequence[str], version: str = "fake-1"
    ) -> None:
        known = names if isinstance(names, Mapping) else dict.fromkeys(names, EntityType.PERSON)
        self.version = version
        self._types = dict(known)
        ordered = sorted(known, key=len, reverse=True)
        pattern = "|".join(rf"(?<!\w){re.escape(name)}(?!\w)" for name in ordered)
        self._pattern = re.compile(pattern or r"(?!)")

    def detect(self, text: str) -> list[Span]:
        return [
            Span(found.start(), found.end(), self._types[found.group()])
            for found in self._pattern.finditer(text)
        ]


class TroubledDetector(NameDetector):
    """A ``NameDetector`` that a text can tell to end its process or to take half a minute."""

    def detect(self, text: str) -> list[Span]:
        if "END-THE-PROCESS" in text:
            os._exit(3)
        if "TAKE-LONG" in text:
            time.sleep(30)
        return super().detect(text)


class ScriptedChat:
    """Obeys ``ChatModel``: gives the replies in turn, the last for ever; an error is raised."""

    name = "fake-chat"

    def __init__(self, *replies: str | Exception, trusted: bool = False) -> None:
        self.trusted = trusted
        self._replies = list(replies) or [""]
        self.asked: list[tuple[Message, ...]] = []

    async def complete(self, messages: Sequence[Message], guard: OutboundGuard) -> Completion:
        body = {"messages": [{"role": m.role, "content": m.content} for m in messages]}
        url = "http://fake.invalid/v1/chat/completions"
        guard.check("POST", url, [], json.dumps(body, ensure_ascii=False).encode())
        self.asked.append(tuple(messages))
        reply = self._replies.pop(0) if len(self._replies) > 1 else self._replies[0]
        if isinstance(reply, Exception):
            raise reply
        return Completion(reply)


class FixedScorer:
    """Obeys ``Scorer``: the same scores for every case, which it keeps to be looked at."""

    def __init__(self, **scores: Score) -> None:
        self._scores = scores or {"faithfulness": Score(1.0)}
        self.cases: list[ScoreCase] = []

    async def score(
        self, case: ScoreCase, guard: OutboundGuard | None = None
    ) -> Mapping[str, Score]:
        self.cases.append(case)
        return dict(self._scores)


@dataclass(slots=True)
class _Entry:
    stored: StoredDocument
    tenant: UUID
    content: str
    content_hash: str
    space: Space
    chunks: list[tuple[Chunk, tuple[tuple[int, int], ...], NDArray[np.float32] | None]]
    spans: list[Span]
    aliases: list[Alias]
    file_hash: str | None = None
    origin: str | None = None


@dataclass(slots=True)
class MemoryStore:
    """Offers what ``rag.store.store.Store`` does, in memory."""

    default_tenant: UUID = _DEFAULT_TENANT
    entries: dict[UUID, _Entry] = field(default_factory=dict)

    @staticmethod
    @asynccontextmanager
    async def open(settings: object = None) -> AsyncIterator[MemoryStore]:
        yield MemoryStore()

    def documents(self, tenant: UUID) -> MemoryDocuments:
        return MemoryDocuments(self, tenant)

    async def search(self, tenant: UUID, collections: Sequence[str], space: Space) -> MemorySearch:
        for name in collections:
            self.require(tenant, name, space)
        return MemorySearch(self, tenant, tuple(collections), space)

    async def search_all(self, tenant: UUID) -> MemorySearch:
        named = {e.stored.collection for e in self.entries.values() if e.tenant == tenant}
        return MemorySearch(self, tenant, tuple(named), Space("any", 1))

    def subkey(self, purpose: str) -> bytes:
        return hashlib.blake2b(purpose.encode(), digest_size=32).digest()

    async def ping(self) -> None:
        return

    def of(self, tenant: UUID, collections: Sequence[str]) -> list[_Entry]:
        """Oldest first."""
        return [
            entry
            for entry in self.entries.values()
            if entry.tenant == tenant and entry.stored.collection in collections
        ]

    def require(self, tenant: UUID, collection: str, space: Space | None) -> None:
        there = self.of(tenant, [collection])
        if not there and not (collection == "default" and tenant == self.default_tenant):
            raise NotFound("There is no such collection.")
        for entry in there:
            if space is not None and entry.space != space:
                known = entry.space
                raise SpaceMismatch(
                    f"The collection was embedded with {known.model} ({known.dimension} "
                    f"dimensions), not with {space.model} ({space.dimension} dimensions)."
                )


@dataclass(frozen=True, slots=True)
class MemoryDocuments:
    """Obeys ``DocumentStore``."""

    store: MemoryStore
    tenant: UUID

    async def find(self, collection: str, source: str) -> tuple[UUID, str, str] | None:
        entry = self._named(collection, source)
        if entry is None:
            return None
        return entry.stored.id, entry.content_hash, entry.stored.detector

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
        from rag.store.documents import storable

        document = storable(document)
        if len(chunks) and embeddings.shape != (len(chunks), space.dimension):
            raise SpaceMismatch(f"{space.model} gives {space.dimension} dimensions.")
        if self.store.of(self.tenant, [collection]):
            self.store.require(self.tenant, collection, space)
        known = self._named(collection, document.source)
        own = known.stored.id if known else uuid4()
        entities = dict(sorted(Counter(span.type.value for span in spans).items()))
        stored = StoredDocument(
            id=own,
            source=document.source,
            collection=collection,
            chunks=len(chunks),
            entities=entities,
            metadata=document.metadata,
            language=document.language,
            detector=detector,
            created_at=known.stored.created_at if known else datetime.now(UTC).isoformat(),
        )
        self.store.entries[own] = _Entry(
            stored=stored,
            tenant=self.tenant,
            content=document.content,
            content_hash=content_hash,
            space=space,
            chunks=[
                (_chunk(stored, document.content, draft), draft.headings, _directed(vector))
                for draft, vector in zip(chunks, embeddings, strict=True)
            ],
            spans=sorted(spans),
            aliases=list(aliases),
            file_hash=file_hash,
            origin=origin,
        )
        status = "replaced" if known else "ready"
        return Ingested(document.source, status, own, len(chunks), entities)

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
        read = [part async for part in parts]
        nothing = np.zeros((0, space.dimension), dtype=np.float32)
        return await self.put(
            collection,
            space,
            replace(head, content="".join(part.text for part in read)),
            content_hash(),
            detector,
            [chunk for part in read for chunk in part.chunks],
            np.concatenate([nothing, *(part.embeddings for part in read)]),
            [span for part in read for span in part.spans],
            [alias for part in read for alias in part.aliases],
            file_hash=file_hash,
            origin=origin,
        )

    async def known(self, collection: str, sources: Sequence[str]) -> Mapping[str, Known]:
        there = self.store.of(self.tenant, [collection])
        return {e.stored.source: _known(e) for e in there if e.stored.source in sources}

    async def of_origin(self, collection: str, origin: str) -> Mapping[str, UUID]:
        there = self.store.of(self.tenant, [collection])
        return {e.stored.source: e.stored.id for e in there if e.origin == origin}

    async def mark(self, id: UUID, file_hash: str | None, origin: str | None) -> None:
        entry = self.store.entries.get(id)
        if entry is not None and entry.tenant == self.tenant:
            entry.file_hash, entry.origin = file_hash, origin

    async def list_page(
        self, collection: str, limit: int, after: UUID | None
    ) -> list[StoredDocument]:
        self.store.require(self.tenant, collection, None)
        page = [entry.stored for entry in self.store.of(self.tenant, [collection])]
        ids = [stored.id for stored in page]
        begin = ids.index(after) + 1 if after in ids else 0
        return page[begin : begin + limit]

    async def get(self, id: UUID) -> tuple[StoredDocument, str, list[Span]]:
        entry = self._own(id)
        return entry.stored, entry.content, list(entry.spans)

    async def delete(self, id: UUID) -> None:
        self._own(id)
        del self.store.entries[id]

    async def stale(self, detector: str, limit: int = 100) -> list[UUID]:
        own = [entry.stored for entry in self.store.entries.values() if entry.tenant == self.tenant]
        return [stored.id for stored in own if stored.detector != detector][:limit]

    async def respan(
        self, id: UUID, detector: str, spans: Sequence[Span], aliases: Sequence[Alias]
    ) -> None:
        entry = self._own(id)
        entities = dict(sorted(Counter(span.type.value for span in spans).items()))
        entry.stored = replace(entry.stored, detector=detector, entities=entities)
        entry.spans, entry.aliases = sorted(spans), list(aliases)

    def _own(self, id: UUID) -> _Entry:
        entry = self.store.entries.get(id)
        if entry is None or entry.tenant != self.tenant:
            raise NotFound("There is no such document.")
        return entry

    def _named(self, collection: str, source: str) -> _Entry | None:
        there = self.store.of(self.tenant, [collection])
        return next((entry for entry in there if entry.stored.source == source), None)


@dataclass(frozen=True, slots=True)
class MemorySearch:
    """Obeys ``ChunkSearch`` and ``AliasIndex``."""

    store: MemoryStore
    tenant: UUID
    collections: tuple[str, ...]
    space: Space

    async def dense(
        self, embedding: NDArray[np.float32], limit: int, filters: Mapping[str, Any]
    ) -> list[Hit]:
        wanted = _directed(embedding)
        if wanted is None:
            return []
        found = [
            (chunk, float(wanted @ vector))
            for entry in self._entries(filters)
            for chunk, _, vector in entry.chunks
            if vector is not None
        ]
        near = [(chunk, min(1.0, max(-1.0, cosine))) for chunk, cosine in found]
        hits = [Hit(chunk, score=0.5 + cosine / 2, similarity=cosine) for chunk, cosine in near]
        return sorted(hits, key=lambda hit: -hit.score)[: max(0, limit)]

    async def lexical(self, query: str, limit: int, filters: Mapping[str, Any]) -> list[Hit]:
        wanted = set(words(query))
        hits = []
        for entry in self._entries(filters):
            for chunk, _, _ in entry.chunks:
                held = words(chunk.heading + "\n" + chunk.text)
                if chunk.n == 0:
                    held += words(_about(entry.stored))
                shared = wanted & set(held)
                if shared:
                    hits.append(Hit(chunk, score=len(shared) / (len(wanted) + len(held))))
        return sorted(hits, key=lambda hit: -hit.score)[: max(0, limit)]

    async def fill(self, hits: Sequence[Hit]) -> list[Hit]:
        known = {
            chunk.id: (entry.spans, headings, entry.stored.detector)
            for entry in self._entries({})
            for chunk, headings, _ in entry.chunks
        }
        return [
            replace(hit, chunk=_marked(hit.chunk, *known[hit.chunk.id]))
            for hit in hits
            if hit.chunk.id in known
        ]

    async def known_first(self, first: Sequence[int]) -> set[int]:
        return {alias.first for alias in self._aliases()} & set(first)

    async def known_forms(self, form: Sequence[int]) -> list[Alias]:
        weak: dict[tuple[int, int, int, EntityType], bool] = {}
        for a in self._aliases():
            if a.form in set(form):
                key = (a.first, a.form, a.words, a.type)
                weak[key] = weak.get(key, True) and a.weak
        return [Alias(*key, weak=value) for key, value in weak.items()]

    def _aliases(self) -> list[Alias]:
        return [alias for entry in self._entries({}) for alias in entry.aliases]

    def _entries(self, filters: Mapping[str, Any]) -> list[_Entry]:
        return [
            entry
            for entry in self.store.of(self.tenant, self.collections)
            if all(_matches(entry.stored.metadata, key, value) for key, value in filters.items())
        ]


def _about(stored: StoredDocument) -> str:
    from rag.store.documents import about_words

    return about_words(Document(stored.source, "", stored.metadata))


def _known(entry: _Entry) -> Known:
    stored = entry.stored
    return Known(
        stored.id,
        entry.content_hash,
        stored.detector,
        entry.file_hash,
        entry.origin,
        stored.chunks,
        stored.entities,
    )


def _matches(metadata: Mapping[str, Any], key: str, value: Any) -> bool:
    many = value if isinstance(value, list | tuple | set | frozenset) else [value]
    return key in metadata and any(
        metadata[key] == one and isinstance(metadata[key], bool) == isinstance(one, bool)
        for one in many
    )


def _directed(vector: NDArray[np.float32]) -> NDArray[np.float32] | None:
    length = float(np.linalg.norm(vector))
    return vector / np.float32(length) if np.isfinite(length) and length > 0 else None


def _chunk(stored: StoredDocument, content: str, draft: ChunkDraft) -> Chunk:
    return Chunk(
        id=uuid4(),
        document_id=stored.id,
        source=stored.source,
        n=draft.n,
        start=draft.start,
        end=draft.end,
        text=content[draft.start : draft.end],
        heading=SEPARATOR.join(content[start:end] for start, end in draft.headings),
        page=draft.page,
    )


def _marked(
    chunk: Chunk, spans: Sequence[Span], headings: Sequence[tuple[int, int]], detector: str
) -> Chunk:
    heading_spans: list[Span] = []
    offset = 0
    for start, end in headings:
        heading_spans += [span.shifted(offset) for span in _clipped(spans, start, end)]
        offset += end - start + len(SEPARATOR)
    inside = _clipped(spans, chunk.start, chunk.end)
    return replace(
        chunk, spans=tuple(inside), heading_spans=tuple(heading_spans), detector=detector
    )


def _clipped(spans: Sequence[Span], start: int, end: int) -> list[Span]:
    return [
        Span(max(s.start, start) - start, min(s.end, end) - start, s.type, s.score)
        for s in spans
        if s.start < end and s.end > start
    ]
