"""Numbers of placeholders for a scope that lives and dies with one request (I8)."""

from __future__ import annotations

from collections import Counter


class MemoryAllocator:
    """Obeys ``rag.ports.Allocator``: counts up from 1 for each coarse type."""

    def __init__(self) -> None:
        self._last: Counter[str] = Counter()

    async def allocate(self, type: str, count: int) -> list[int]:
        """``count`` numbers that this scope has not used for ``type`` yet."""
        first = self._last[type] + 1
        self._last[type] += count
        return list(range(first, first + count))
