"""A scope over fakes of the ports, and pieces whose originals are named in the test."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import pytest

from rag.privacy.forms import FormHasher, aliases_of
from rag.privacy.policy import load_policy
from rag.privacy.protect import Piece
from rag.privacy.scope import Scope
from rag.privacy.shapes import SHAPES
from rag.types import Alias, EntityType, Span

HASHER = FormHasher(b"a secret of these tests")


class NoDetector:
    """Finds nothing: what is protected is protected by its spans and by known forms."""

    version = "none"

    def detect(self, text: str) -> list[Span]:
        return []


class ListedAliases:
    """An alias index in memory; counts its queries."""

    def __init__(self, aliases: Iterable[Alias] = ()) -> None:
        self.aliases = list(aliases)
        self.queries: list[str] = []

    async def known_first(self, first: Sequence[int]) -> set[int]:
        self.queries.append("first")
        return {alias.first for alias in self.aliases} & set(first)

    async def known_forms(self, form: Sequence[int]) -> list[Alias]:
        self.queries.append("forms")
        wanted = set(form)
        return [alias for alias in self.aliases if alias.form in wanted]


class Counting:
    """An allocator that counts from 1."""

    def __init__(self) -> None:
        self.last: dict[str, int] = {}

    async def allocate(self, type: str, count: int) -> list[int]:
        start = self.last.get(type, 0) + 1
        self.last[type] = start + count - 1
        return list(range(start, start + count))


def build_scope(
    aliases: ListedAliases | None = None,
    *,
    policy: str = "default",
    shape: str = "bracket",
    nonce: str | None = None,
    detector: object = None,
    detect_timeout: float = 5.0,
) -> Scope:
    return Scope(
        policy=load_policy(policy),
        detector=detector or NoDetector(),  # type: ignore[arg-type]
        aliases=aliases or ListedAliases(),
        allocator=Counting(),
        hasher=HASHER,
        detect_timeout=detect_timeout,
        nonce=nonce,
        shape=SHAPES[shape],
    )


def marked(text: str, **originals: str | list[str]) -> Piece:
    """``text`` with a span for the first occurrence of each original, by type."""
    spans = []
    for kind, values in originals.items():
        for value in [values] if isinstance(values, str) else values:
            start = text.index(value)
            spans.append(Span(start, start + len(value), EntityType[kind]))
    return Piece(text, tuple(sorted(spans)))


def indexed(*pieces: Piece) -> ListedAliases:
    """The index that ingesting these texts would have made."""
    return ListedAliases(
        alias for piece in pieces for alias in aliases_of(piece.spans, piece.text, HASHER)
    )


@pytest.fixture
def make_scope() -> Callable[..., Scope]:
    return build_scope


@pytest.fixture
def mark() -> Callable[..., Piece]:
    return marked


@pytest.fixture
def index() -> Callable[..., ListedAliases]:
    return indexed
