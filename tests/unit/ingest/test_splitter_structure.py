"""Chunks carry the header row, the lead or the sender that they would say nothing without."""

from __future__ import annotations

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rag.ingest.splitter import split
from rag.models.local import TokenPlaces
from rag.types import ChunkDraft, Document, EntityType, Section, Span

TABLE = "Tenant | Street | Rent\n" + "".join(
    f"Ottoline {chr(97 + n)} | Quay Street | {n * 100}\n" for n in range(14)
)
MARKDOWN = "| Tenant | 2024 |\n|---|---|\n" + "| Ottoline | paid |\n" * 14
LIST = "Nothing here matters. To the viewing please bring:\n\n" + "".join(
    f"- paper number {n} of the file\n" for n in range(14)
)
THREAD = (
    "From: Ottoline Farouk <o@mail.example>\nDate: 3 March\nSubject: The boiler\n\n"
    + "It is cold again. " * 12
    + "\n\nOn Mon, 3 Mar 2025 at 10:00, Bo Amadi <bo@mail.example> wrote:\n"
    + "> The man comes on Friday. " * 12
    + "\n\n-----Original Message-----\nFrom: Cyra Szabo\nSent: 1 March\nTo: Bo Amadi\n"
    + "Subject: Cold\n\nNo heat."
)


def cut(text: str, size: int = 120) -> list[tuple[str, list[str]]]:
    """Each chunk's text with its headings."""
    drafts = split(Document("d.txt", text), [], size, 0)
    return [(text[d.start : d.end], [text[s:e] for s, e in d.headings]) for d in drafts]


@pytest.mark.parametrize(
    ("table", "header"), [(TABLE, "Tenant | Street | Rent"), (MARKDOWN, "| Tenant | 2024 |")]
)
def test_rows_come_with_their_header(table: str, header: str) -> None:
    """Every chunk of a table holds its header row, in the text or among its headings."""
    chunks = cut("Some words before.\n\n" + table + "\nAnd after.")
    assert len(chunks) > 2
    for text, headings in chunks:
        if "Ottoline" in text:
            assert header in [*headings, *text.splitlines()]


def test_a_header_row_is_not_left_alone() -> None:
    """The first row stays with the header where there is another place to cut."""
    chunks = cut("Some words before it that fill the chunk up to here and more.\n\n" + TABLE, 110)
    assert all("Rent\nOttoline a" in text for text, _ in chunks if "Rent" in text)


def test_rows_of_data_are_no_header() -> None:
    """A table without names of columns gets none."""
    rows = "".join(f"{n} | {n + 1}\n" for n in range(40))
    assert all(headings == [] for _, headings in cut(rows, 80))


def test_the_header_is_a_place_of_the_content() -> None:
    """So that the personal data in it is known from the document's spans."""
    [first, *rest] = split(Document("d.txt", TABLE), [], 120, 0)
    assert first.headings == ()
    assert all(draft.headings == ((0, 22),) for draft in rest)


def test_items_come_with_their_lead() -> None:
    """The sentence that ends in a colon, not the whole paragraph."""
    chunks = cut(LIST)
    assert len(chunks) > 3
    lead = "To the viewing please bring:"
    assert all(lead in text or headings == [lead] for text, headings in chunks)


def test_a_thread_is_cut_by_message() -> None:
    """No chunk holds words of two messages, each tells who wrote it."""
    chunks = cut(THREAD)
    for text, headings in chunks:
        assert sum(word in text for word in ("cold again", "man comes", "No heat")) <= 1
        told = "\n".join([*headings, text])
        if "cold again" in text:
            assert "Ottoline Farouk" in told
            assert "The boiler" in told
        if "man comes" in text:
            assert "Bo Amadi <bo@mail.example> wrote:" in told
    assert chunks[-1][0].startswith("-----Original Message-----")


def test_what_follows_a_table_is_told_nothing_of_it() -> None:
    """A header row belongs to its rows alone."""
    text = TABLE + "\n\n" + "Other words. " * 20
    assert cut(text)[-1][1] == []


def test_a_message_ends_at_another_heading() -> None:
    """An attachment is no part of the message above it."""
    text = "From: Bo\nTo: Cy\nSubject: X\n\nHello.\n\nplan.txt\n\nthe plan"
    at = text.index("plan.txt")
    document = Document("m.eml", text, sections=(Section(0), Section(at, ((at, at + 8),))))
    assert split(document, [], 500, 0)[-1].headings == ((at, at + 8),)


@pytest.fixture(scope="module")
def places() -> TokenPlaces:
    return TokenPlaces()


@pytest.mark.parametrize(
    "text",
    [
        "The lease of the workshop was signed in spring. " * 60,
        "工作坊的租约是在春天签署的。" * 60,
        "0123456789 abcdef " * 90,
    ],
)
def test_chunks_hold_at_most_so_many_tokens(places: TokenPlaces, text: str) -> None:
    """Counted by the local model's own tokenizer, whatever the script."""
    drafts = split(Document("d.txt", text), [], 10_000, 0, tokens=50, places=places)
    counts = [len(places(text[draft.start : draft.end])) for draft in drafts]
    assert max(counts) <= 52  # a token may fall apart in two at an edge
    assert sum(counts) / len(counts) > 20


def test_token_places_are_in_order_and_within(places: TokenPlaces) -> None:
    """Offsets count characters, over lines and long pieces alike."""
    text = "Zoë naïve 🦔 word\n\n" + "x" * 5_000 + "\nend"
    found = list(places(text))
    assert found == sorted(found)
    assert text[found[-1] :].strip() == "end"


STRUCTURED = st.lists(
    st.sampled_from(
        ["a | b | c\n", "|--|--|\n", "- item\n", "Bring:\n", "\n", "From: x\n", "To: y\n", "z w. ",
         "Subject: s\n", "1) one\n", "t\tu\n", "On Mon, May 5 at 5 x wrote:\n", "> q\n", "____\n"]
    ),
    max_size=60,
).map("".join)  # fmt: skip


@given(STRUCTURED, st.integers(10, 80), st.lists(st.integers(0, 200), max_size=6))
@settings(max_examples=300, deadline=None)
def test_structure_loses_nothing_and_cuts_no_span(text: str, size: int, starts: list[int]) -> None:
    """Tables, lists and messages in any mixture: all of it in chunks, no span parted."""
    spans = [Span(start, start + 7, EntityType.PERSON) for start in starts]
    drafts: list[ChunkDraft] = split(Document("d.txt", text), spans, size, 0)
    covered = {at for draft in drafts for at in range(draft.start, draft.end)}
    assert {at for at, c in enumerate(text) if not c.isspace()} <= covered
    for draft in drafts:
        assert all(0 <= s < e <= draft.start for s, e in draft.headings)
        for at in (draft.start, draft.end):
            assert not any(span.start < at < min(span.end, len(text)) for span in spans)


@pytest.mark.parametrize(
    "text",
    ["-" * 200_000 + "x", "| a " * 60_000, "- i\n" * 60_000, "From: a\nTo: b\nDate: c\n" * 20_000],
)
def test_structure_is_found_in_time(text: str) -> None:
    """No text makes it quadratic."""
    began = time.monotonic()
    split(Document("d.txt", text), [], 2_000, 0)
    assert time.monotonic() - began < 20
