"""Chunks follow the structure, hold everything, and cut nothing personal in two."""

from __future__ import annotations

import unicodedata
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rag.ingest.loaders import load
from rag.ingest.splitter import split
from rag.samples import papers
from rag.types import ChunkDraft, Document, EntityType, Section, Span

TEXT = st.text(
    st.sampled_from(
        "ab Z.!?,:;|-#1\n\n \t\u0301\u0308\u200d\u3002\U0001f469\U0001f3fd\ud83d\ude00é中"
    ),
    max_size=400,
)


def spans_in(length: int) -> st.SearchStrategy[list[Span]]:
    """Spans anywhere, also overlapping, also past the content as in ``surface()``."""
    places = st.tuples(st.integers(0, length + 20), st.integers(1, 60))
    return st.lists(places, max_size=8).map(
        lambda given: [Span(start, start + size, EntityType.PERSON) for start, size in given]
    )


@st.composite
def documents(draw: st.DrawFn) -> tuple[Document, list[Span]]:
    content = draw(TEXT)
    starts = sorted(draw(st.sets(st.integers(0, max(0, len(content))), max_size=5)))
    sections = tuple(
        Section(start, ((start, min(len(content), start + 4)),), page)
        for page, start in enumerate(starts, 1)
    )
    return Document("d.md", content, sections=sections), draw(spans_in(len(content)))


CASES = st.tuples(documents(), st.integers(1, 120), st.integers(0, 60))


@given(CASES)
@settings(max_examples=400, deadline=None)
def test_every_character_that_is_not_blank_is_in_some_chunk(
    case: tuple[tuple[Document, list[Span]], int, int],
) -> None:
    """Nothing of a document is lost by cutting it."""
    (document, spans), size, overlap = case
    covered = {
        at
        for draft in split(document, spans, size, overlap)
        for at in range(draft.start, draft.end)
    }
    missing = {at for at, c in enumerate(document.content) if not c.isspace()} - covered
    assert missing == set()


@given(CASES)
@settings(max_examples=400, deadline=None)
def test_no_chunk_begins_or_ends_inside_a_span(
    case: tuple[tuple[Document, list[Span]], int, int],
) -> None:
    """Personal data is whole in every chunk, or not in it at all (I10)."""
    (document, spans), size, overlap = case
    end = len(document.content)
    for draft in split(document, spans, size, overlap):
        for at in (draft.start, draft.end):
            assert not any(span.start < at < min(span.end, end) for span in spans)


@given(CASES)
@settings(max_examples=400, deadline=None)
def test_no_chunk_begins_inside_a_character(
    case: tuple[tuple[Document, list[Span]], int, int],
) -> None:
    """Combining marks, joined emoji and halves of surrogates stay with what they belong to."""
    (document, spans), size, overlap = case
    content = document.content
    for draft in split(document, spans, size, overlap):
        for at in (draft.start, draft.end):
            if not 0 < at < len(content) or _is_long_run(content, at):
                continue
            before, after = content[at - 1], content[at]
            assert not unicodedata.combining(after)
            assert "\u200d" not in (before, after)
            assert not ("\ud800" <= before <= "\udbff" and "\udc00" <= after <= "\udfff")


def _is_long_run(content: str, at: int) -> bool:
    run = content[max(0, at - 30) : at]
    return len(run) == 30 and all(unicodedata.combining(c) or c in "\u200d\U0001f3fd" for c in run)


@given(CASES)
@settings(max_examples=400, deadline=None)
def test_chunks_are_numbered_in_order_and_not_blank(
    case: tuple[tuple[Document, list[Span]], int, int],
) -> None:
    """Numbers count from 0, places only move forward, each chunk says something."""
    (document, spans), size, overlap = case
    drafts = split(document, spans, size, overlap)
    assert [draft.n for draft in drafts] == list(range(len(drafts)))
    assert all(a.end < b.end and a.start < b.start for a, b in pairwise(drafts))
    assert all(document.content[draft.start : draft.end].strip() for draft in drafts)


@given(
    TEXT.map(lambda text: "".join(c for c in text if c.isascii())),
    st.integers(20, 120),
    st.integers(0, 60),
)
@settings(max_examples=200, deadline=None)
def test_chunks_are_no_longer_than_asked(text: str, size: int, overlap: int) -> None:
    """Without spans or combined characters the size is a bound."""
    drafts = split(Document("d.txt", text), [], size, overlap)
    assert all(draft.end - draft.start <= size for draft in drafts)


def cut(text: str, size: int = 100, overlap: int = 0, name: str = "d.md") -> list[str]:
    """The texts of the chunks of ``text``."""
    document = load(name, text.encode())
    return [document.content[d.start : d.end] for d in split(document, [], size, overlap)]


def test_sections_are_chunks_of_their_own() -> None:
    """A chunk has one heading path."""
    assert cut("# A\n\none\n\n## B\n\ntwo\n") == ["# A\n\none", "## B\n\ntwo"]


def test_a_heading_alone_is_joined_with_what_follows() -> None:
    """A chunk of only a heading answers nothing."""
    assert cut("# A\n\n## B\n\ntwo\n\n# C\n") == ["# A\n\n## B\n\ntwo\n\n# C"]


def test_only_a_heading_is_still_a_chunk() -> None:
    """A document of one heading is found by it."""
    assert cut("# All there is\n") == ["# All there is"]


def test_heading_paths_are_offsets_of_the_content() -> None:
    """The path of a chunk is read from the content, so its spans are known."""
    document = load("d.md", b"# A\n\none\n\n## B b\n\ntwo\n")
    paths = [[document.content[s:e] for s, e in d.headings] for d in split(document, [], 100, 0)]
    assert paths == [["A"], ["A", "B b"]]


@pytest.mark.parametrize(
    ("text", "first"),
    [
        ("word " * 10 + "end.\n\n" + "more " * 12, "word " * 10 + "end."),
        ("a: 1; b: x. Y\n" * 9, ("a: 1; b: x. Y\n" * 5).rstrip()),
        ("- item of a list\n" * 9, ("- item of a list\n" * 4).rstrip()),
        ("| a row | of it |\n" * 9, ("| a row | of it |\n" * 4).rstrip()),
        (
            "One two three. Four five six! " * 5,
            ("One two three. Four five six! " * 2).rstrip(),
        ),
        ("word" + " word" * 40, ("word" + " word" * 13)),
    ],
)
def test_the_strongest_border_in_reach_is_taken(text: str, first: str) -> None:
    """Blank lines before rows and items, those before sentences, those before words."""
    assert cut(text, 72, name="d.txt")[0] == first


def test_neighbours_overlap_by_whole_words() -> None:
    """With an overlap each chunk repeats the end of the one before."""
    texts = cut(" ".join(f"w{n:03d}" for n in range(60)), 50, 20, name="d.txt")
    assert all(b.split()[0] in a.split()[-4:] for a, b in pairwise(texts))


@pytest.mark.parametrize(
    "value", ["07700 900142", "someone@example.org", "Ottoline Farouk-Baptiste"]
)
@pytest.mark.parametrize("padding", range(30, 110))
def test_a_value_is_whole_wherever_the_border_would_fall(value: str, padding: int) -> None:
    """Detected before cutting, a value lies in one chunk, at every offset."""
    text = "x" * padding + " " + value + " " + "y" * 90
    start = text.index(value)
    drafts = split(
        Document("d.txt", text), [Span(start, start + len(value), EntityType.PHONE)], 60, 0
    )
    assert any(d.start <= start and start + len(value) <= d.end for d in drafts)
    assert not any(d.start < start + len(value) <= d.end and d.start > start for d in drafts)


def test_a_span_longer_than_a_chunk_is_kept_whole() -> None:
    """Size gives way to wholeness."""
    text = "a " * 20 + "b" * 300 + " c" * 20
    drafts = split(Document("d.txt", text), [Span(40, 340, EntityType.URL)], 50, 0)
    assert any(d.start <= 40 and d.end >= 340 for d in drafts)


def test_a_section_that_begins_inside_a_span_waits_for_its_end() -> None:
    """Pages and headings are borders only where no personal data is cut by them."""
    document = Document(
        "d.pdf", "Ottoline\nFarouk lives", sections=(Section(0, page=1), Section(9, page=2))
    )
    drafts = split(document, [Span(0, 15, EntityType.PERSON)], 100, 0)
    assert drafts == [ChunkDraft(0, 0, 15, (), 1), ChunkDraft(1, 16, 21, (), 2)]


def test_chunks_of_a_pdf_have_one_page() -> None:
    """No chunk runs over the border of a page."""
    data = papers().joinpath("tenancy-agreement.pdf").read_bytes()
    document = load("lease.pdf", data)
    second = document.sections[1].start
    drafts = split(document, [], 400, 0)
    assert {d.page for d in drafts} == {1, 2}
    assert all((d.page == 2) == (d.start >= second) for d in drafts)
    assert all(d.end <= second for d in drafts if d.page == 1)


@pytest.mark.parametrize(
    "text", ["x" * 300_000, "\n" * 300_000 + "x", "e" + "\u0301" * 300_000, "a. " * 100_000]
)
def test_monotonous_text_is_cut_in_time(text: str) -> None:
    """No text makes cutting quadratic: a third of a million characters in seconds."""
    import time

    began = time.monotonic()
    split(Document("d.txt", text), [], 1_000, 100)
    assert time.monotonic() - began < 10
