"""The reading side: dense and full-text search, and the spans of what was found.

Dense search is exact: the candidates are laid out before they are ordered, so no
approximate index can be chosen. Under row-level security an approximate search loses rows,
and up to about 50,000 visible rows an exact one is faster as well. Beyond, an index of its
own for the space (``create index … using hnsw ((embedding::halfvec(n)) halfvec_cosine_ops)
where space = …``, up to 4,000 dimensions) would serve: it would be a second statement
beside ``dense_exact``, chosen in ``dense`` by the number of candidates.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from rag.errors import InvalidInput, SpaceMismatch
from rag.store.cleaning import clean, clean_metadata
from rag.store.pool import Pool
from rag.store.vectors import has_direction, to_text
from rag.types import HEADING_SEPARATOR, Chunk, EntityType, Hit, Space, Span


@dataclass(frozen=True, slots=True)
class View:
    """What one caller may read: collections of one tenant, all in one space."""

    pool: Pool
    tenant: UUID
    collections: tuple[UUID, ...]
    languages: tuple[str, ...]
    space: Space
    space_id: int | None
    """``None``: nothing was ever embedded in this space."""


class PostgresChunks:
    """Obeys ``rag.ports.ChunkSearch``."""

    def __init__(self, view: View) -> None:
        self._view = view

    async def dense(
        self, embedding: NDArray[np.float32], limit: int, filters: Mapping[str, Any]
    ) -> list[Hit]:
        view = self._view
        if embedding.shape != (view.space.dimension,):
            raise SpaceMismatch(f"{view.space.model} gives {view.space.dimension} dimensions.")
        if view.space_id is None or limit < 1 or not has_direction(embedding):
            return []
        rows = await self._rows(
            "dense_exact",
            {"embedding": to_text(embedding), "space": view.space_id},
            limit,
            filters,
        )
        return [
            Hit(_chunk(row), score=_within(0.5 + row[9] / 2, 0.0), similarity=_within(row[9], -1.0))
            for row in rows
        ]

    async def lexical(self, query: str, limit: int, filters: Mapping[str, Any]) -> list[Hit]:
        view = self._view
        if not view.languages or limit < 1:
            return []
        parameters = {"query": clean(query), "languages": list(view.languages)}
        rows = await self._rows("lexical", parameters, limit, filters)
        return [Hit(_chunk(row), score=_within(row[9], 0.0)) for row in rows]

    async def fill(self, hits: Sequence[Hit]) -> list[Hit]:
        """The hits with their spans; one whose chunk was deleted meanwhile is left out.

        Without its spans it could not be protected.
        """
        if not hits:
            return []
        ids = list({hit.chunk.id for hit in hits})
        rows = await self._view.pool.fetch(self._view.tenant, "chunk_spans", {"chunks": ids})
        known: dict[UUID, _Marks] = {}
        for chunk, start, stop, headings, detector, *span in rows:
            marks = known.setdefault(chunk, _Marks((start, stop), _pairs(headings), detector, []))
            if span[0] is not None:
                marks.spans.append(Span(span[0], span[1], EntityType(span[2]), span[3]))
        return [
            replace(hit, chunk=known[hit.chunk.id].on(hit.chunk))
            for hit in hits
            if hit.chunk.id in known
        ]

    async def _rows(
        self, name: str, own: Mapping[str, Any], limit: int, filters: Mapping[str, Any]
    ) -> list[tuple[Any, ...]]:
        parameters = {
            **own,
            "collections": list(self._view.collections),
            "limit": limit,
            "filters": as_filters(filters),
        }
        return await self._view.pool.fetch(self._view.tenant, name, parameters)


@dataclass(frozen=True, slots=True)
class _Marks:
    """Where a chunk and its headings lie in the document, and the spans that touch them."""

    place: tuple[int, int]
    headings: list[tuple[int, int]]
    detector: str
    spans: list[Span]

    def on(self, chunk: Chunk) -> Chunk:
        heading_spans: list[Span] = []
        offset = 0
        for start, stop in self.headings:
            heading_spans += [span.shifted(offset) for span in clipped(self.spans, start, stop)]
            offset += stop - start + len(HEADING_SEPARATOR)
        return replace(
            chunk,
            spans=tuple(clipped(self.spans, *self.place)),
            heading_spans=tuple(heading_spans),
            detector=self.detector,
        )


def clipped(spans: Sequence[Span], start: int, stop: int) -> list[Span]:
    """What lies of the spans in ``[start, stop)``, relative to ``start``, in order."""
    return sorted(
        replace(span, start=max(span.start, start) - start, end=min(span.end, stop) - start)
        for span in spans
        if span.start < stop and span.end > start
    )


def as_filters(filters: Mapping[str, Any]) -> str:
    """``{key: value or [values]}`` as JSON of ``{key: [values]}``. Raises ``InvalidInput``."""
    wanted = {
        clean(str(key)): clean_metadata(list(value) if _is_many(value) else [value])
        for key, value in filters.items()
    }
    try:
        return json.dumps(wanted, allow_nan=False)
    except (TypeError, ValueError, RecursionError):
        raise InvalidInput("Filters must be plain JSON.") from None


def _is_many(value: Any) -> bool:
    return isinstance(value, list | tuple | set | frozenset)


def _pairs(edges: Sequence[int]) -> list[tuple[int, int]]:
    return list(zip(edges[::2], edges[1::2], strict=True))


def _within(value: float, least: float) -> float:
    return min(1.0, max(least, float(value)))


def _chunk(row: Sequence[Any]) -> Chunk:
    return Chunk(
        id=row[0],
        document_id=row[1],
        source=row[2],
        n=row[3],
        start=row[4],
        end=row[5],
        text=row[6],
        heading=row[7],
        page=row[8],
    )
