"""One document's way in: read, detect on the whole, cut, embed, store, all or nothing.

Keeps I10 (personal data is found once, on ``surface()``, before anything is cut), I2
(when detection or embedding fails nothing is stored, and the old version stays) and I1
for ingestion: what a remote embedder gets are type words instead of originals.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar
from uuid import UUID

import numpy as np

from rag.errors import DetectorFailed, ModelFailed, NotFound, TooLarge, VeilragError
from rag.ingest.embedding_text import EmbeddingText, SpanIndex, about, embedding_text
from rag.ingest.files import File, file_of, find_files
from rag.ingest.limits import Limits
from rag.ingest.loaders import load, prepare
from rag.ingest.splitter import split
from rag.ports import AliasIndex, Detector, DocumentStore, Embedder, Vectors
from rag.settings import Settings
from rag.types import ChunkDraft, Document, Ingested, Span

if TYPE_CHECKING:
    from rag.privacy.forms import FormHasher
    from rag.privacy.policy import Policy
    from rag.privacy.scope import Scope

__all__ = ["File", "Ingestor", "OnProgress", "content_hash", "file_of", "find_files"]

T = TypeVar("T")

OnProgress = Callable[[int, int], None]
"""Called after every file with the files done and the chunks stored so far."""

_CHARS_PER_TIMEOUT = 20_000
"""So many characters are granted one ``detect_timeout``."""


def content_hash(document: Document) -> str:
    """The version of a document: a digest of everything of it that may leave."""
    return hashlib.sha256(document.surface().encode("utf-8")).hexdigest()


class Ingestor:
    """The pipeline, bound to one tenant's documents.

    ``known`` opens the index of forms that the tenant's documents gave away; they protect
    what goes to a remote embedder beside the document's own spans.
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
    ) -> None:
        self._settings = settings
        self._detector = detector
        self._embedder = embedder
        self._store = store
        self._hasher = hasher
        self._policy = policy
        self._known = known
        self._limits = Limits(bytes=settings.max_body_bytes, characters=settings.max_detect_chars)

    async def ingest(self, document: Document, collection: str = "default") -> Ingested:
        """Store a document, ``ready | unchanged | replaced``; a failure stores nothing.

        Raises ``DocumentRefused`` kinds, ``TooLarge``, ``DetectorFailed``, ``SpaceMismatch``
        and what the embedder and the store raise.
        """
        return await self._ingest(await asyncio.to_thread(prepare, document), collection)

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
        document = await asyncio.to_thread(
            load, name, data, media_type, self._limits, password=password
        )
        if metadata:
            document = prepare(_with_metadata(document, metadata))
        return await self._ingest(document, collection)

    async def ingest_many(
        self,
        files: Iterable[File],
        collection: str = "default",
        on_progress: OnProgress | None = None,
    ) -> list[Ingested]:
        """Every file in turn; one that fails is reported by its code and the rest goes on."""
        outcomes: list[Ingested] = []
        for file in files:
            outcomes.append(await self._ingest_file(file, collection))
            if on_progress:
                on_progress(len(outcomes), sum(outcome.chunks for outcome in outcomes))
        return outcomes

    async def detect_again(self, id: UUID) -> None:
        """Exchange a stored document's spans for those of the running detector (I10).

        One that was deleted meanwhile is no failure. Raises ``DetectorFailed``; then the old
        spans stay, under the old version's name.
        """
        try:
            stored, content, _ = await self._store.get(id)
            document = Document(stored.source, content, stored.metadata)
            surface = document.surface()
            spans = await self._detect(surface)
            aliases = await asyncio.to_thread(self._aliases, spans, surface)
            await self._store.respan(id, self._detector.version, spans, aliases)
        except NotFound:
            return

    async def _ingest_file(self, file: File, collection: str) -> Ingested:
        try:
            self._limits.admit_bytes(file.size)
            data = await asyncio.to_thread(file.read, self._limits.bytes)
            return await self.ingest_bytes(file.source, data, file.media_type, collection)
        except VeilragError as error:
            return Ingested(file.source, "failed", error=error.message, error_code=error.code)

    async def _ingest(self, document: Document, collection: str) -> Ingested:
        digest, version = content_hash(document), self._detector.version
        if stored := await self._unchanged(document.source, collection, digest, version):
            return stored
        surface = document.surface()
        spans = await self._detect(surface)
        cut, aliases = await asyncio.gather(
            asyncio.to_thread(self._split, document, spans),
            asyncio.to_thread(self._aliases, spans, surface),
        )
        vectors = await self._embed(document, cut, spans, surface)
        return await self._store.put(
            collection,
            self._embedder.space,
            document,
            digest,
            version,
            cut,
            vectors,
            spans,
            aliases,
        )

    async def _unchanged(
        self, source: str, collection: str, digest: str, version: str
    ) -> Ingested | None:
        """The stored document when it is of the same content and the same detector."""
        found = await self._store.find(collection, source)
        if found is None or found[1:] != (digest, version):
            return None
        try:
            stored, _, _ = await self._store.get(found[0])
        except NotFound:  # deleted meanwhile
            return None
        return Ingested(source, "unchanged", stored.id, stored.chunks, stored.entities)

    async def _detect(self, surface: str) -> list[Span]:
        """Spans of the whole document, in a worker thread, in time in proportion to its size."""
        if len(surface) > self._settings.max_detect_chars:
            raise TooLarge("The document is longer than the detector takes.")
        allowed = self._settings.detect_timeout * (1 + len(surface) / _CHARS_PER_TIMEOUT)
        try:
            async with asyncio.timeout(allowed):
                spans = await asyncio.to_thread(self._detector.detect, surface)
        except TimeoutError:
            raise DetectorFailed("The detector did not finish in time.") from None
        if any(not 0 <= span.start < span.end <= len(surface) for span in spans):
            raise DetectorFailed("The detector named a place outside of the text.")
        return spans

    def _split(self, document: Document, spans: Sequence[Span]) -> list[ChunkDraft]:
        settings = self._settings
        return split(document, spans, settings.chunk_chars, settings.chunk_overlap_chars)

    def _aliases(self, spans: Sequence[Span], surface: str) -> list[Any]:
        from rag.privacy.forms import aliases_of

        return aliases_of(spans, surface, self._hasher)

    async def _embed(
        self,
        document: Document,
        drafts: Sequence[ChunkDraft],
        spans: Sequence[Span],
        surface: str,
    ) -> Vectors:
        index = SpanIndex(spans)
        texts = [embedding_text(document, draft, index) for draft in drafts]
        if self._embedder.remote:
            vectors = await self._embed_outside(texts, about(document, surface, index))
        else:
            vectors = await self._embedder.embed([text.text for text in texts])
        expected = (len(drafts), self._embedder.space.dimension)
        if vectors.shape != expected or not np.isfinite(vectors).all():
            raise ModelFailed("The embedding model did not answer with a vector for every chunk.")
        return vectors

    async def _embed_outside(self, texts: Sequence[EmbeddingText], rest: EmbeddingText) -> Vectors:
        """A scope of the document's own: its placeholders become type words and are gone (I5).

        ``rest`` does not leave, but whom it names is protected in what does.
        """
        scope = self._scope(await self._known() if self._known else _NothingKnown())
        if self._embedder.trusted:
            outbound = [text.text for text in texts]
        else:
            from rag.privacy.protect import Piece

            pieces = [Piece(text.text, text.spans) for text in (*texts, rest)]
            protected = await scope.protect(pieces)
            outbound = [scope.type_words(text) for text in protected[:-1]]
        return await self._embedder.embed(outbound, scope.guard())

    def _scope(self, known: AliasIndex) -> Scope:
        from rag.privacy.allocation import MemoryAllocator
        from rag.privacy.scope import Scope

        return Scope(
            policy=self._policy,
            detector=self._detector,
            aliases=known,
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


def _with_metadata(document: Document, metadata: Mapping[str, Any]) -> Document:
    return Document(
        document.source,
        document.content,
        {**document.metadata, **metadata},
        document.sections,
        document.language,
    )
