"""The writing side: one transaction a document, its rows by binary COPY.

A document is replaced whole or not at all. Spans are offsets into its ``surface()``, so
what is stored must give back the very same surface: metadata that JSON would change is
refused. Forms belong to the document that gave them and go with it.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from rag.errors import InvalidInput, NotFound, SpaceMismatch
from rag.ports import Part, Vectors
from rag.store.cleaning import clean, clean_metadata
from rag.store.pool import Connection, Pool
from rag.store.spaces import Collection, find_collections, take_collection
from rag.store.statements import statement
from rag.store.time_ordered import new_id
from rag.store.vectors import to_binary
from rag.types import (
    HEADING_SEPARATOR,
    Alias,
    ChunkDraft,
    Document,
    EntityType,
    Ingested,
    Known,
    Space,
    Span,
    StoredDocument,
)

MOST_SOURCE_BYTES = 2_000
"""An index entry holds no more than 2,704 bytes."""

_CHUNK_TYPES = [
    *("uuid", "uuid", "uuid", "uuid", "int4", "int4", "int4", "text", "int4[]", "int4"),
    *("text", "text", "int4", "bytea", "text"),  # bytea takes halfvec's own bytes
]
_SPAN_TYPES = ["uuid", "uuid", "int4", "int4", "text", "float4"]
_ALIAS_TYPES = ["uuid", "uuid", "uuid", "int8", "int8", "int2", "text", "bool"]


_ENDING = re.compile(r"\.[A-Za-z0-9]{1,8}$")
_WORD_JOINTS = re.compile(r"[\W_]+")


@dataclass(frozen=True, slots=True)
class _Head:
    """What a document's row holds before its chunks are there."""

    document: Document
    content_hash: str
    detector: str
    file_hash: str | None
    origin: str | None


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
        *,
        file_hash: str | None = None,
        origin: str | None = None,
    ) -> Ingested:
        document = storable(document)
        _check_embeddings(space, chunks, embeddings)
        head = _Head(document, content_hash, detector, file_hash, origin)
        headings = [heading_of(document.content, chunk.headings) for chunk in chunks]
        content = document.content
        part = Part(0, content, tuple(chunks), tuple(headings), embeddings, (), ())
        async with self._pool.transaction(self._tenant) as connection:
            home, own, fresh = await self._begin(connection, collection, space, head)
            await self._copy_chunks(connection, home, own, document, part)
            await self._copy_spans(connection, own, spans)
            await self._copy_aliases(connection, home.id, own, aliases)
            entities = _counted(spans)
            await _finish(connection, own, content_hash, len(chunks), entities)
        return _ingested(document, own, len(chunks), entities, fresh=fresh)

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
        document = storable(head)
        entities: Counter[str] = Counter()
        chunks = n = 0
        async with self._pool.transaction(self._tenant) as connection:
            first = _Head(document, "", detector, file_hash, origin)
            home, own, fresh = await self._begin(connection, collection, space, first)
            async for part in parts:
                _check_embeddings(space, part.chunks, part.embeddings)
                await connection.execute(
                    statement("add_content"), {"id": own, "n": n, "text": part.text}
                )
                await self._copy_chunks(connection, home, own, document, part)
                await self._copy_spans(connection, own, part.spans)
                await self._copy_aliases(connection, home.id, own, part.aliases)
                entities.update(_counted(part.spans))
                chunks, n = chunks + len(part.chunks), n + 1
            found = dict(sorted(entities.items()))
            await _finish(connection, own, content_hash(), chunks, found)
        return _ingested(document, own, chunks, found, fresh=fresh)

    async def _begin(
        self, connection: Connection, collection: str, space: Space, head: _Head
    ) -> tuple[Collection, UUID, bool]:
        """The document's row, the old version's rows gone: (its collection, its id, is it new)."""
        document = head.document
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
                "content_hash": head.content_hash,
                "content": document.content,
                "metadata": json.dumps(document.metadata, ensure_ascii=False),
                "language": document.language,
                "detector": head.detector,
                "chunks": 0,
                "entities": "{}",
                "file_hash": head.file_hash,
                "origin": head.origin,
            },
        )
        row = await cursor.fetchone()
        assert row is not None
        own, fresh = row
        if not fresh:
            for name in ("drop_chunks", "drop_spans", "drop_aliases", "drop_contents"):
                await connection.execute(statement(name), {"id": own})
        return home, own, fresh

    async def known(self, collection: str, sources: Sequence[str]) -> Mapping[str, Known]:
        if not sources:
            return {}
        names = [clean(source) for source in sources]
        parameters = {"collection": clean(collection), "sources": names}
        rows = await self._pool.fetch(self._tenant, "known_documents", parameters)
        return {row[0]: Known(*row[1:]) for row in rows}

    async def of_origin(self, collection: str, origin: str) -> Mapping[str, UUID]:
        parameters = {"collection": clean(collection), "origin": origin}
        rows = await self._pool.fetch(self._tenant, "documents_of_origin", parameters)
        return {row[0]: row[1] for row in rows}

    async def mark(self, id: UUID, file_hash: str | None, origin: str | None) -> None:
        async with self._pool.transaction(self._tenant) as connection:
            await connection.execute(
                statement("mark_document"), {"id": id, "file_hash": file_hash, "origin": origin}
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
            content = row[9] or await _content_of_parts(connection, id)
        return _stored(row), content, spans

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
        self, connection: Connection, home: Collection, id: UUID, document: Document, part: Part
    ) -> None:
        if not part.chunks:
            return
        async with connection.cursor().copy(statement("copy_chunks")) as copy:
            copy.set_types(_CHUNK_TYPES)
            rows = zip(part.chunks, part.headings, part.embeddings, strict=True)
            for chunk, heading, embedding in rows:
                await copy.write_row(
                    (
                        self._tenant,
                        new_id(),
                        home.id,
                        id,
                        chunk.n,
                        chunk.start,
                        chunk.end,
                        heading,
                        [edge for pair in chunk.headings for edge in pair],
                        chunk.page,
                        part.text[chunk.start - part.start : chunk.end - part.start],
                        document.language,
                        home.space_id,
                        to_binary(embedding),
                        about_words(document) if chunk.n == 0 else "",
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


def about_words(document: Document) -> str:
    """The words of source and metadata, by which the first chunk is found as well.

    The words alone, without the ending: ``lease_2024.pdf`` would be one word of the search else.
    """
    name = _ENDING.sub("", document.source)
    fields = [name, *(str(value) for value in document.metadata.values())]
    found = [word for field in fields for word in _WORD_JOINTS.split(field)]
    return " ".join(word for word in found if len(word) > 1 or not word.isascii())


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


async def _finish(
    connection: Connection, id: UUID, content_hash: str, chunks: int, entities: dict[str, int]
) -> None:
    await connection.execute(
        statement("finish_document"),
        {
            "id": id,
            "content_hash": content_hash,
            "chunks": chunks,
            "entities": json.dumps(entities),
        },
    )


async def _content_of_parts(connection: Connection, id: UUID) -> str:
    cursor = await connection.execute(statement("content_parts"), {"id": id})
    row = await cursor.fetchone()
    return "" if row is None else str(row[0])


def _ingested(
    document: Document, id: UUID, chunks: int, entities: dict[str, int], *, fresh: bool
) -> Ingested:
    return Ingested(document.source, "ready" if fresh else "replaced", id, chunks, entities)
