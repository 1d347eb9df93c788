"""The forms that documents gave away, by keyed hash: I1's second net. No text is kept."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from rag.store.pool import Pool
from rag.types import Alias, EntityType


class PostgresAliases:
    """Obeys ``rag.ports.AliasIndex``."""

    def __init__(self, pool: Pool, tenant: UUID, collections: Sequence[UUID]) -> None:
        self._store = pool
        self._owner = tenant
        self._readable = list(collections)

    async def known_first(self, first: Sequence[int]) -> set[int]:
        return {row[0] for row in await self._hashes("known_first", first)}

    async def known_forms(self, form: Sequence[int]) -> list[Alias]:
        return [
            Alias(first=row[0], form=row[1], words=row[2], type=EntityType(row[3]), weak=row[4])
            for row in await self._hashes("known_forms", form)
        ]

    async def _hashes(self, name: str, hashes: Sequence[int]) -> list[tuple[Any, ...]]:
        if not hashes or not self._readable:
            return []
        parameters = {"collections": self._readable, "hashes": list(set(hashes))}
        return await self._store.fetch(self._owner, name, parameters)
