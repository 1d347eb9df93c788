"""One document's way in: read, detect on the whole, cut, embed, store, all or nothing.

Keeps I10 (personal data is found once, on ``surface()``, before anything is cut), I2
(when detection or embedding fails nothing is stored, and the old version stays) and I1
for ingestion: what a remote embedder gets are type words instead of originals.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import replace
from importlib.metadata import version as installed
from typing import TYPE_CHECKING, Any
from uuid import UUID

import numpy as np

from rag.errors import InvalidInput, ModelFailed, NotFound, TooLarge, VeilragError
from rag.ingest.analysis import Analyst, Cut, Task
from rag.ingest.batch import Batch, OnProgress, Progress, workers_for
from rag.ingest.convert import convert
from rag.ingest.embedding_text import EmbeddingText, SpanIndex, about, embedding_text
from rag.ingest.files import File, file_of, find_files
from rag.ingest.limits import Limits
from rag.ingest.loaders import prepare
from rag.ingest.parts import Reading
from rag.ingest.segments import (
    MARGIN_CHARS,
    PART_CHARS,
    Scanned,
    Segment,
    read_blocks,
    scan,
    segments,
)
from rag.ingest.splitter import TokenPlaces
from rag.ingest.workers import Here, Recipe, Runner, Workers
from rag.ports import AliasIndex, Detector, DocumentStore, Embedder, Vectors
from rag.settings import Settings
from rag.types import Alias, ChunkDraft, Document, Ingested, Known, Span

if TYPE_CHECKING:
    from rag.privacy.forms import FormHasher
    from rag.privacy.policy import Policy
    from rag.privacy.scope import Scope

__all__ = ["File", "Ingestor", "OnProgress", "Progress", "content_hash", "file_of", "find_files"]

LONG_BYTES = 8_000_000
"""A plain text file of more is read in parts, never whole."""
_HEAD_BYTES = 65_536


def content_hash(document: Document) -> str:
    """The version of a document: a digest of everything of it that may leave."""
    return hashlib.sha256(document.surface().encode("utf-8")).hexdigest()


class Ingestor:
    """The pipeline, bound to one tenant's documents.

    ``known`` opens the index of forms that the tenant's documents gave away; they protect
    what goes to a remote embedder beside the document's own spans. ``recipe`` tells how
    worker processes open their parts; without one, batches are analysed in this process.
    """

    def __init__(
        self,
        *,
        settings: Settings,
        detector: Detector,
        embedder: Embedder,
        store: DocumentStore,
        hasher: FormHasher,
        policy: Policy,
        known: Callable[[], Awaitable[AliasIndex]] | None = None,
        places: TokenPlaces | None = None,
        recipe: Recipe | None = None,
    ) -> None:
        self._settings = settings
        self._detector = detector
        self._embedder = embedder
        self._store = store
        self._hasher = hasher
        self._policy = policy
        self._known = known
        self._recipe = recipe
        self._limits = Limits(bytes=settings.max_body_bytes, characters=settings.max_document_chars)
        # never all connections: a batch leaves some for who asks; one long transaction at a time
        self._storing = asyncio.Semaphore(max(1, settings.pool_size // 2))
        self._one_long = asyncio.Lock()
        self._cut = Cut(settings.chunk_tokens, settings.chunk_chars, settings.chunk_overlap_chars)
        self._here = Here(Analyst(detector, hasher, self._cut, places), settings.detect_timeout)

    async def ingest(self, document: Document, collection: str = "default") -> Ingested:
        """Store a document, ``ready | unchanged | replaced``; a failure stores nothing.

        Raises ``DocumentRefused`` kinds, ``TooLarge``, ``DetectorFailed``, ``SpaceMismatch``
        and what the embedder and the store raise.
        """
        prepared = await asyncio.to_thread(prepare, document)
        known = await self._stored(collection, prepared.source)
        return await self._ingest(prepared, collection, known, self._here)

    async def ingest_bytes(
        self,
        name: str,
        data: bytes,
        media_type: str | None = None,
        collection: str = "default",
        metadata: Mapping[str, Any] | None = None,
        *,
        password: str | None = None,
    ) -> Ingested:
        """Read a file's bytes and ingest them; ``metadata`` wins over what the file says."""
        file = file_of(name, data, media_type)
        known = await self._stored(collection, name)
        return await self._ingest_data(
            file, data, collection, known, self._here, metadata or {}, password
        )

    async def ingest_many(
        self,
        files: Iterable[File],
        collection: str = "default",
        on_progress: OnProgress | None = None,
    ) -> list[Ingested]:
        """Every file; one that fails is reported by its code and the rest goes on.

        Outcomes come in the order of the files. More than a few are analysed by processes
        side by side. Files whose bytes were stored already are told by their digest.
        """
        given = list(files)
        count = workers_for(given, self._settings.ingest_workers) if self._recipe else 0
        async with AsyncExitStack() as stack:
            runner: Runner = self._here
            if count and self._recipe:
                runner = await stack.enter_async_context(
                    Workers(
                        self._recipe,
                        self._cut,
                        count,
                        self._settings.detect_timeout,
                        version=self._detector.version,
                    )
                )
            batch = Batch(given, width=runner.width + 1, on_progress=on_progress)

            async def one(file: File, known: Known | None) -> Ingested:
                return await self._ingest_file(file, collection, known, runner)

            async def known(sources: Sequence[str]) -> Mapping[str, Known]:
                return await self._store.known(collection, sources)

            return await batch.run(one, known)

    async def detect_again(self, id: UUID) -> None:
        """Exchange a stored document's spans for those of the running detector (I10).

        One that was deleted meanwhile is no failure. Raises ``DetectorFailed``; then the old
        spans stay, under the old version's name.
        """
        try:
            stored, content, _ = await self._store.get(id)
            document = Document(stored.source, content, stored.metadata)
            spans, aliases = await self._search(document)
            await self._store.respan(id, self._detector.version, spans, aliases)
        except NotFound:
            return

    async def _search(self, document: Document) -> tuple[list[Span], list[Alias]]:
        """Spans and forms of a document, in parts where it is long."""
        if not self._is_long(document):
            tail = document.surface()[len(document.content) :]
            found = await self._here.run(Task(document.content, tail, core=(0, 0)))
            return found.spans, found.aliases
        reading = self._reading(document, segments_of(document, self._part_size), self._here)
        reading = replace(reading, embed=_nothing)
        spans: list[Span] = []
        aliases: list[Alias] = []
        async for part in reading:
            spans += part.spans
            aliases += part.aliases
        return spans, aliases

    # -- one file ---------------------------------------------------------------------

    async def _stored(self, collection: str, source: str) -> Known | None:
        return (await self._store.known(collection, [source])).get(source)

    async def _ingest_file(
        self, file: File, collection: str, known: Known | None, runner: Runner
    ) -> Ingested:
        try:
            if file.opened is not None and file.size > LONG_BYTES:
                with await asyncio.to_thread(file.opened) as opened:
                    head = await asyncio.to_thread(opened.read, _HEAD_BYTES)
                if is_plain_text(file, head):
                    return await self._ingest_long(file, collection, known, runner)
            self._limits.admit_bytes(file.size)
            data = await asyncio.to_thread(file.read, self._limits.bytes)
            return await self._ingest_data(file, data, collection, known, runner)
        except VeilragError as error:
            return Ingested(file.source, "failed", error=error.message, error_code=error.code)

    async def _ingest_data(
        self,
        file: File,
        data: bytes,
        collection: str,
        known: Known | None,
        runner: Runner,
        metadata: Mapping[str, Any] | None = None,
        password: str | None = None,
    ) -> Ingested:
        digest = await asyncio.to_thread(file_digest, data, file.media_type, metadata)
        if known and known.file_hash == digest and known.detector == self._detector.version:
            return await self._unchanged(file, known, digest)
        document = await convert(
            file.source, data, file.media_type, password=password, limits=self._limits
        )
        if metadata:
            document = prepare(_with_metadata(document, metadata))
        if document.source != file.source:
            known = await self._stored(collection, document.source)
        return await self._ingest(document, collection, known, runner, file, digest)

    async def _ingest(
        self,
        document: Document,
        collection: str,
        known: Known | None,
        runner: Runner,
        file: File | None = None,
        file_hash: str | None = None,
    ) -> Ingested:
        if len(document.content) > self._settings.max_document_chars:
            raise TooLarge(
                f"The document is longer than {self._settings.max_document_chars} characters."
            )
        version, digest = self._detector.version, content_hash(document)
        if known and (known.content_hash, known.detector) == (digest, version):
            return await self._unchanged(file or file_of(document.source, b""), known, file_hash)
        origin = file.origin if file else None
        if self._is_long(document):
            reading = self._reading(document, segments_of(document, self._part_size), runner)
            return await self._put_parts(collection, reading, file_hash, origin)
        surface = document.surface()
        tail = surface[len(document.content) :]
        found = await runner.run(Task(document.content, tail, sections=document.sections))
        index = SpanIndex(found.spans)
        vectors = await self._embed(document, found.drafts, index, about(document, surface, index))
        async with self._storing:
            return await self._store.put(
                *(collection, self._embedder.space, document, digest, version),
                *(found.drafts, vectors, found.spans, found.aliases),
                file_hash=file_hash,
                origin=origin,
            )

    async def _unchanged(self, file: File, known: Known, file_hash: str | None) -> Ingested:
        """What is stored already; from which bytes and folder it came now is remembered."""
        if (known.file_hash, known.origin) != (file_hash, file.origin):
            async with self._storing:
                await self._store.mark(known.id, file_hash, file.origin)
        return Ingested(file.source, "unchanged", known.id, known.chunks, known.entities)

    # -- what is too long to be searched at once --------------------------------------

    @property
    def _part_size(self) -> tuple[int, int]:
        """Characters of a part and of its margins: all of it fits the detector."""
        size = max(1, min(PART_CHARS, self._settings.max_detect_chars // 2))
        return size, min(MARGIN_CHARS, size // 8)

    def _is_long(self, document: Document) -> bool:
        return len(document.content) > self._settings.max_detect_chars

    async def _ingest_long(
        self, file: File, collection: str, known: Known | None, runner: Runner
    ) -> Ingested:
        """A plain text file of any size, in the memory of a few parts of it."""
        if file.size > self._settings.max_file_bytes:
            raise TooLarge(f"The document is larger than {self._settings.max_file_bytes} bytes.")
        assert file.opened is not None
        scanned = await asyncio.to_thread(scan, file.opened)
        digest = file_digest(scanned.digest.encode(), file.media_type, None)
        if known and known.file_hash == digest and known.detector == self._detector.version:
            return await self._unchanged(file, known, digest)
        head = await asyncio.to_thread(prepare_head, file.source)
        parts = segments(_checked(file, scanned), *self._part_size)
        return await self._put_parts(
            collection, self._reading(head, parts, runner, whole=False), digest, file.origin
        )

    def _reading(
        self, document: Document, parts: Iterator[Segment], runner: Runner, *, whole: bool = True
    ) -> Reading:
        """Its parts. One scope serves them all: who is named in one is protected in the next."""
        head = replace(document, content="")
        scope: Scope | None = None

        async def embed(
            stretch: Document, drafts: Sequence[ChunkDraft], index: SpanIndex
        ) -> Vectors:
            nonlocal scope
            if self._embedder.remote and scope is None:
                scope = await self._new_scope()
            rest = EmbeddingText(head.surface(), tuple(reading.fields))
            return await self._embed(stretch, drafts, index, rest, scope)

        reading = Reading(head, parts, runner, embed, document if whole else None)
        return reading

    async def _put_parts(
        self, collection: str, reading: Reading, file_hash: str | None, origin: str | None
    ) -> Ingested:
        async with self._one_long, self._storing:
            return await self._store.put_parts(
                *(collection, self._embedder.space, reading.head, reading.content_hash),
                *(self._detector.version, aiter(reading)),
                file_hash=file_hash,
                origin=origin,
            )

    # -- embedding --------------------------------------------------------------------

    async def _embed(
        self,
        document: Document,
        drafts: Sequence[ChunkDraft],
        index: SpanIndex,
        rest: EmbeddingText,
        scope: Scope | None = None,
    ) -> Vectors:
        texts = [embedding_text(document, draft, index) for draft in drafts]
        if self._embedder.remote:
            vectors = await self._embed_outside(texts, rest, scope or await self._new_scope())
        else:
            vectors = await self._embedder.embed([text.text for text in texts])
        expected = (len(drafts), self._embedder.space.dimension)
        if vectors.shape != expected or not np.isfinite(vectors).all():
            raise ModelFailed("The embedding model did not answer with a vector for every chunk.")
        return vectors

    async def _embed_outside(
        self, texts: Sequence[EmbeddingText], rest: EmbeddingText, scope: Scope
    ) -> Vectors:
        """A scope of the document's own: its placeholders become type words and are gone (I5).

        ``rest`` does not leave, but whom it names is protected in what does.
        """
        if self._embedder.trusted:
            outbound = [text.text for text in texts]
        else:
            from rag.privacy.protect import Piece

            pieces = [Piece(text.text, text.spans) for text in (*texts, rest)]
            protected = await scope.protect(pieces)
            outbound = [scope.type_words(text) for text in protected[:-1]]
        return await self._embedder.embed(outbound, scope.guard())

    async def _new_scope(self) -> Scope:
        from rag.privacy.allocation import MemoryAllocator
        from rag.privacy.scope import Scope

        return Scope(
            policy=self._policy,
            detector=self._detector,
            aliases=await self._known() if self._known else _NothingKnown(),
            allocator=MemoryAllocator(),
            hasher=self._hasher,
            detect_timeout=self._settings.detect_timeout,
        )


class _NothingKnown:
    """An index of no forms."""

    async def known_first(self, first: Sequence[int]) -> set[int]:
        return set()

    async def known_forms(self, form: Sequence[int]) -> list[Any]:
        return []


def is_plain_text(file: File, head: bytes) -> bool:
    """Whether a file that begins so can be read in blocks. Raises ``DocumentRefused`` kinds."""
    from rag.ingest.formats import Format, find_format

    return find_format(file.source, head, file.media_type) is Format.TEXT


def segments_of(document: Document, size: tuple[int, int]) -> Iterator[Segment]:
    """The parts of a document that is in memory."""
    return segments([document.content], *size)


def file_digest(data: bytes, media_type: str | None, metadata: Mapping[str, Any] | None) -> str:
    """Tells a file that would give the same document: bytes, what came with them, who reads."""
    told = [installed("veilrag"), media_type, metadata or {}]
    digest = hashlib.sha256(json.dumps(told, sort_keys=True, default=str).encode())
    digest.update(data)
    return digest.hexdigest()


def prepare_head(source: str) -> Document:
    """A document without its content, its name checked."""
    return replace(prepare(Document(source, "-")), content="")


def _checked(file: File, scanned: Scanned) -> Iterator[str]:
    """The blocks of a file that is the same at the end as it was when it was scanned."""
    assert file.opened is not None
    yield from read_blocks(file.opened, scanned)
    if scan(file.opened).digest != scanned.digest:
        raise InvalidInput("The file changed while it was read.")


async def _nothing(document: Document, drafts: Sequence[ChunkDraft], index: SpanIndex) -> Vectors:
    return np.zeros((len(drafts), 1), np.float32)


def _with_metadata(document: Document, metadata: Mapping[str, Any]) -> Document:
    return Document(
        document.source,
        document.content,
        {**document.metadata, **metadata},
        document.sections,
        document.language,
    )
