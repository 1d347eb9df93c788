"""The writing side: one transaction a document, its rows by binary COPY.

A document is replaced whole or not at all. Spans are offsets into its ``surface()``, so
what is stored must give back the very same surface: metadata that JSON would change is
refused. Forms belong to the document that gave them and go with it.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

from rag.errors import InvalidInput, NotFound, SpaceMismatch
from rag.ports import Vectors
from rag.store.cleaning import clean, clean_metadata
from rag.store.pool import Connection, Pool
from rag.store.spaces import Collection, find_collections, take_collection
from rag.store.statements import statement
from rag.store.time_ordered import new_id
from rag.store.vectors import to_binary
from rag.types import (
    Alias,
    ChunkDraft,
    Document,
    EntityType,
    Ingested,
    Space,
    Span,
    StoredDocument,
)

HEADING_SEPARATOR = " > "
MOST_SOURCE_BYTES = 2_000
"""An index entry holds no more than 2,704 bytes."""

_CHUNK_TYPES = [
    *("uuid", "uuid", "uuid", "uuid", "int4", "int4", "int4", "text", "int4[]", "int4"),
    *("text", "text", "int4", "bytea"),  # the last takes halfvec's own bytes
]
_SPAN_TYPES = ["uuid", "uuid", "int4", "int4", "text", "float4"]
_ALIAS_TYPES = ["uuid", "uuid", "uuid", "int8", "int8", "int2", "text", "bool"]


class PostgresDocuments:
    """Obeys ``rag.ports.DocumentStore``, for one tenant."""

    def __init__(self, pool: Pool, tenant: UUID) -> None:
        self._pool = pool
        self._tenant = tenant

    async def find(self, collection: str, source: str) -> tuple[UUID, str, str] | None:
        async with self._pool.transaction(self._tenant) as connection:
            cursor = await connection.execute(
                statement("find_document"),
                {"collection": clean(collection), "source": clean(source)},
            )
            row = await cursor.fetchone()
        return None if row is None else (row[0], row[1], row[2])

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
    ) -> Ingested:
        document = storable(document)
        _check_embeddings(space, chunks, embeddings)
        entities = _counted(spans)
        async with self._pool.transaction(self._tenant) as connection:
            home = await take_collection(connection, clean(collection), space)
            await connection.execute(
                statement("add_language"), {"id": home.id, "language": document.language}
            )
            cursor = await connection.execute(
                statement("put_document"),
                {
                    "id": new_id(),
                    "collection": home.id,
                    "space": home.space_id,
                    "source": document.source,
                    "content_hash": content_hash,
                    "content": document.content,
                    "metadata": json.dumps(document.metadata, ensure_ascii=False),
                    "language": document.language,
                    "detector": detector,
                    "chunks": len(chunks),
                    "entities": json.dumps(entities),
                },
            )
            row = await cursor.fetchone()
            assert row is not None
            own, fresh = row
            if not fresh:
                for name in ("drop_chunks", "drop_spans", "drop_aliases"):
                    await connection.execute(statement(name), {"id": own})
            await self._copy_chunks(connection, home, own, document, chunks, embeddings)
            await self._copy_spans(connection, own, spans)
            await self._copy_aliases(connection, home.id, own, aliases)
        return Ingested(
            source=document.source,
            status="ready" if fresh else "replaced",
            id=own,
            chunks=len(chunks),
            entities=entities,
        )

    async def list_page(
        self, collection: str, limit: int, after: UUID | None
    ) -> list[StoredDocument]:
        """Oldest first, those after the document ``after``. Raises ``NotFound``."""
        async with self._pool.transaction(self._tenant) as connection:
            await find_collections(connection, [clean(collection)])
            cursor = await connection.execute(
                statement("list_documents"),
                {"collection": clean(collection), "after": after, "limit": max(0, limit)},
            )
            return [_stored(row) for row in await cursor.fetchall()]

    async def get(self, id: UUID) -> tuple[StoredDocument, str, list[Span]]:
        async with self._pool.transaction(self._tenant) as connection:
            cursor = await connection.execute(statement("get_document"), {"id": id})
            row = await cursor.fetchone()
            if row is None:
                raise NotFound("There is no such document.")
            cursor = await connection.execute(statement("document_spans"), {"id": id})
            spans = [Span(s[0], s[1], EntityType(s[2]), s[3]) for s in await cursor.fetchall()]
        return _stored(row), row[9], spans

    async def delete(self, id: UUID) -> None:
        async with self._pool.transaction(self._tenant) as connection:
            cursor = await connection.execute(statement("delete_document"), {"id": id})
            if await cursor.fetchone() is None:
                raise NotFound("There is no such document.")

    async def stale(self, detector: str, limit: int = 100) -> list[UUID]:
        """Documents whose spans another detector version found, oldest first (I10)."""
        async with self._pool.transaction(self._tenant) as connection:
            cursor = await connection.execute(
                statement("stale_documents"), {"detector": detector, "limit": limit}
            )
            return [row[0] for row in await cursor.fetchall()]

    async def respan(
        self, id: UUID, detector: str, spans: Sequence[Span], aliases: Sequence[Alias]
    ) -> None:
        """Exchange a document's spans and forms for another detector's. Raises ``NotFound``."""
        async with self._pool.transaction(self._tenant) as connection:
            cursor = await connection.execute(statement("lock_document"), {"id": id})
            row = await cursor.fetchone()
            if row is None:
                raise NotFound("There is no such document.")
            for name in ("drop_spans", "drop_aliases"):
                await connection.execute(statement(name), {"id": id})
            await self._copy_spans(connection, id, spans)
            await self._copy_aliases(connection, row[0], id, aliases)
            entities = json.dumps(_counted(spans))
            await connection.execute(
                statement("set_detector"),
                {"id": id, "detector": detector, "entities": entities},
            )

    async def _copy_chunks(
        self,
        connection: Connection,
        home: Collection,
        id: UUID,
        document: Document,
        chunks: Sequence[ChunkDraft],
        embeddings: Vectors,
    ) -> None:
        if not chunks:
            return
        content = document.content
        async with connection.cursor().copy(statement("copy_chunks")) as copy:
            copy.set_types(_CHUNK_TYPES)
            for chunk, embedding in zip(chunks, embeddings, strict=True):
                headings = [edge for pair in chunk.headings for edge in pair]
                await copy.write_row(
                    (
                        self._tenant,
                        new_id(),
                        home.id,
                        id,
                        chunk.n,
                        chunk.start,
                        chunk.end,
                        heading_of(content, chunk.headings),
                        headings,
                        chunk.page,
                        content[chunk.start : chunk.end],
                        document.language,
                        home.space_id,
                        to_binary(embedding),
                    )
                )

    async def _copy_spans(self, connection: Connection, id: UUID, spans: Sequence[Span]) -> None:
        if not spans:
            return
        async with connection.cursor().copy(statement("copy_spans")) as copy:
            copy.set_types(_SPAN_TYPES)
            for s in spans:
                await copy.write_row((self._tenant, id, s.start, s.end, s.type.value, s.score))

    async def _copy_aliases(
        self, connection: Connection, collection: UUID, id: UUID, aliases: Sequence[Alias]
    ) -> None:
        rows = folded(aliases)
        if not rows:
            return
        async with connection.cursor().copy(statement("copy_aliases")) as copy:
            copy.set_types(_ALIAS_TYPES)
            for a in rows:
                own = (self._tenant, collection, id)
                await copy.write_row((*own, a.first, a.form, a.words, a.type.value, a.weak))


def folded(aliases: Sequence[Alias]) -> list[Alias]:
    """One row a form and type; weak only when every one of them is."""
    rows: dict[tuple[int, EntityType], Alias] = {}
    for alias in aliases:
        known = rows.setdefault((alias.form, alias.type), alias)
        if known.weak and not alias.weak:
            rows[alias.form, alias.type] = alias
    return list(rows.values())


def heading_of(content: str, headings: Sequence[tuple[int, int]]) -> str:
    """The heading path as text, outermost first."""
    return HEADING_SEPARATOR.join(content[start:end] for start, end in headings)


def storable(document: Document) -> Document:
    """The document as it will be read back, with the same surface to the character.

    Raises ``InvalidInput`` when it would be another one (spans count characters in it).
    """
    source = clean(document.source)
    if len(source.encode()) > MOST_SOURCE_BYTES:
        raise InvalidInput(f"The name of a source has at most {MOST_SOURCE_BYTES} bytes.")
    kept = Document(
        source=source,
        content=clean(document.content),
        metadata=_as_json(clean_metadata(document.metadata)),
        sections=document.sections,
        language=clean(document.language),
    )
    if kept.surface() != clean(document.surface()):
        raise InvalidInput("Metadata must be plain JSON: text, numbers, true, false, null, lists.")
    return kept


def _as_json(metadata: Mapping[str, Any]) -> Mapping[str, Any]:
    try:
        read: Mapping[str, Any] = json.loads(json.dumps(metadata, allow_nan=False))
    except (TypeError, ValueError, RecursionError):
        raise InvalidInput("Metadata must be plain JSON.") from None
    return read


def _check_embeddings(space: Space, chunks: Sequence[ChunkDraft], embeddings: Vectors) -> None:
    if len(embeddings) != len(chunks):
        raise InvalidInput("There must be one embedding a chunk.")
    if len(chunks) and embeddings.shape[1:] != (space.dimension,):
        raise SpaceMismatch(f"{space.model} gives {space.dimension} dimensions; these have others.")


def _counted(spans: Sequence[Span]) -> dict[str, int]:
    return dict(sorted(Counter(span.type.value for span in spans).items()))


def _stored(row: Sequence[Any]) -> StoredDocument:
    return StoredDocument(
        id=row[0],
        source=row[1],
        collection=row[2],
        chunks=row[3],
        entities=row[4],
        metadata=row[5],
        language=row[6],
        detector=row[7],
        created_at=row[8].isoformat(),
    )
