"""I3, I4 for any text: protecting loses nothing, and restoring finds it again."""

from __future__ import annotations

import asyncio
import importlib.util
from pathlib import Path
from types import ModuleType

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rag.privacy.forms import read_words
from rag.privacy.protect import Piece
from rag.privacy.shapes import SHAPES
from rag.types import EntityType, Span


def _kit() -> ModuleType:
    """The fakes of this folder, for tests that cannot take fixtures."""
    path = Path(__file__).with_name("conftest.py")
    spec = importlib.util.spec_from_file_location("privacy_boundary_kit", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


build_scope = _kit().build_scope

FRAGMENTS = [
    *("Sunniva", "Thorsrud", "THORSRUD", "thorsrud", "Egil", "José", "Jose\u0301", "S.", "Ms"),
    *("07700 900142", "+44 7700 900142", "a@b.example", "May", "王小明", "Ольга", "1987"),
    *("[PERSON_1_k7q]", "PERSON_1_k7q", "<PERSON_1>", "person 1 k7q", "k7q", "PERSON_1_", "[", "]"),
    *("[[", "]]", "<", ">", "&lt;", "\\", "\\[", "\\_", "_", "{{", "}}", "%5B", "@", "§", "«", "»"),
    *("](", "![", ")", "(", "https://a.example/", "www.b.example/", "<a href='", "'>", "]: "),
    *(" ", " ", " ", "\n", "\r\n", "\u00a0", "\u200b", "'s", "s", "'", ".", ", ", "0", "and", "x"),
]
TEXTS = st.lists(st.one_of(st.sampled_from(FRAGMENTS), st.text(max_size=3)), max_size=14).map(
    "".join
)
TYPES = st.sampled_from(
    [EntityType.PERSON, EntityType.PHONE, EntityType.EMAIL, EntityType.CARD, EntityType.PLACE]
)


@st.composite
def pieces(draw: st.DrawFn) -> Piece:
    """A text with any spans in it, overlapping or not."""
    text = draw(TEXTS)
    if not text:
        return Piece(text)
    ends = st.integers(0, len(text))
    ranges = draw(st.lists(st.tuples(ends, ends, TYPES), max_size=5))
    spans = [Span(min(a, b), max(a, b), kind) for a, b, kind in ranges if a != b]
    return Piece(text, tuple(sorted(spans)))


@pytest.mark.parametrize("shape", list(SHAPES))
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(piece=pieces())
def test_protect_then_restore_is_the_identity(shape: str, piece: Piece) -> None:
    """Any text with any spans comes back byte for byte, in every shape, with nothing to report."""
    scope = build_scope(shape=shape, nonce="k7q", policy="strict")
    [protected] = asyncio.run(scope.protect([piece]))
    restored = scope.restore(protected)
    assert restored.text == piece.text
    assert restored.unresolved == ()
    assert scope.knows(protected)


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(piece=pieces())
def test_restoring_agrees_for_every_beginning(piece: Piece) -> None:
    """Only words to the left count: a beginning that ends in text restores to a beginning."""
    scope = build_scope(nonce="k7q", policy="strict")
    [protected] = asyncio.run(scope.protect([piece]))
    cuts = [n for n, char in enumerate(protected) if char == " "]
    for cut in cuts:
        head = scope.restore(protected[:cut]).text
        if not any(mark in protected for mark in ("](", "://", "www.", "<", "]:")):
            assert piece.text.startswith(head)


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(batch=st.lists(pieces(), min_size=1, max_size=4), seed=st.randoms())
def test_the_order_of_pieces_changes_numbers_only(batch: list[Piece], seed: object) -> None:
    """In any order of the pieces the same places have the same subjects."""
    order = list(range(len(batch)))
    seed.shuffle(order)  # type: ignore[attr-defined]

    def layout(order: list[int]) -> list[list[int]]:
        scope = build_scope(nonce="k7q", policy="strict")
        protected = asyncio.run(scope.protect([batch[n] for n in order]))
        by_piece = dict(zip(order, protected, strict=True))
        names: dict[str, int] = {}
        return [
            [
                names.setdefault(f"{token.type}{token.number}", len(names))
                for token in scope._finder.find(by_piece[n], strict=scope._strict)
            ]
            for n in range(len(batch))
        ]

    assert layout(order) == layout(list(range(len(batch))))


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(batches=st.lists(st.lists(pieces(), max_size=3), min_size=1, max_size=3))
def test_two_subjects_never_share_a_placeholder(batches: list[list[Piece]]) -> None:
    """Over several calls of a scope every placeholder has one subject and every subject one."""
    scope = build_scope(nonce="k7q", policy="strict")
    for batch in batches:
        asyncio.run(scope.protect(batch))
    placeholders = [subject.placeholder for subject in scope._subjects]
    assert len(set(placeholders)) == len(placeholders)
    people = [s for s in scope._subjects if s.names]
    for one in people:
        for other in people:
            if one is not other:
                assert one.name.key != other.name.key or one.gender != other.gender


def _whole_words(piece: Piece) -> tuple[Span, ...]:
    """Spans that cut no word in two: what is left of one may be refused, and rightly."""
    read = read_words(piece.text)
    inside = {
        at
        for start, end in zip(read.starts, read.ends, strict=True)
        for at in range(start + 1, end)
    }
    return tuple(s for s in piece.spans if not {s.start, s.end} & inside)


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(batch=st.lists(pieces(), min_size=1, max_size=4))
def test_the_guard_passes_what_was_protected(batch: list[Piece]) -> None:
    """What one call protected, each text a message of its own, is an honest request."""
    import json

    from rag.errors import BoundaryRefused

    scope = build_scope(nonce="k7q", policy="strict")
    batch = [Piece(piece.text, _whole_words(piece)) for piece in batch]
    protected = asyncio.run(scope.protect(batch))
    if any(word in piece.text for piece in batch for word in ("&", "%", "\\", "k7q", "PERSON")):
        return  # escapes are decoded by the guard and refused where they spell a name
    body = json.dumps({"messages": [{"content": f" .\n{text}\n. "} for text in protected]})
    try:
        scope.guard().check("POST", "https://m.example/v1", [], body.encode("utf-8"))
    except BoundaryRefused as refused:
        assert "an original" not in str(refused)  # noqa: PT017
