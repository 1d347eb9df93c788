"""A document that is searched in parts is stored as if it had been read whole."""

from __future__ import annotations

import asyncio
import io
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rag.errors import EmptyDocument, Malformed
from rag.ingest.analysis import Analyst, Cut
from rag.ingest.embedding_text import SpanIndex
from rag.ingest.parts import Reading
from rag.ingest.pipeline import content_hash
from rag.ingest.segments import read_blocks, scan, segments
from rag.ingest.workers import Here
from rag.ports import Part, Vectors
from rag.privacy.forms import FormHasher
from rag.testing.fakes import NameDetector
from rag.types import ChunkDraft, Document, EntityType, Section

HASHER = FormHasher(b"k" * 32)
WORDS = ("Ottoline Farouk", "Bo Amadi", "boiler", "spring", "x" * 11, "keys.")
CUT = Cut(tokens=1_000, chars=60, overlap=0)


async def embed(document: Document, drafts: list[ChunkDraft], index: SpanIndex) -> Vectors:
    """As many vectors as drafts; checks that the drafts lie in what is at hand."""
    assert all(0 <= d.start < d.end <= len(document.content) for d in drafts)
    return np.ones((len(drafts), 2), np.float32)


def read(document: Document, size: int, margin: int, *, whole: bool) -> tuple[list[Part], str]:
    """The parts of a document and its digest."""
    detector = NameDetector(["Ottoline Farouk", "Bo Amadi"])
    head = Document(document.source, "", document.metadata)
    blocks: Iterator[str] = (
        document.content[at : at + 37] for at in range(0, len(document.content), 37)
    )
    reading = Reading(
        head,
        segments(blocks, size, margin),
        Here(Analyst(detector, HASHER, CUT, None), 10.0),
        embed,  # type: ignore[arg-type]
        document if whole else None,
    )

    async def collect() -> list[Part]:
        return [part async for part in reading]

    return asyncio.run(collect()), reading.content_hash()


@given(
    st.lists(st.tuples(st.sampled_from(WORDS), st.sampled_from([" ", "\n", "\n\n"])), min_size=1),
    st.integers(40, 150),
    st.integers(16, 40),
    st.booleans(),
)
@settings(max_examples=300, deadline=None)
def test_parts_are_joined_without_a_seam(
    given_words: list[tuple[str, str]], size: int, margin: int, whole: bool
) -> None:
    """Content, digest, spans and coverage are those of the whole; no chunk parts a span."""
    content = "".join(word + gap for word, gap in given_words)
    document = Document("Bo Amadi.txt", content, {"by": "Ottoline Farouk"})
    parts, digest = read(document, size, margin, whole=whole)
    spans = sorted(span for part in parts for span in part.spans)
    assert "".join(part.text for part in parts) == content
    assert digest == content_hash(document)
    assert spans == NameDetector(["Ottoline Farouk", "Bo Amadi"]).detect(document.surface())
    drafts = [draft for part in parts for draft in part.chunks]
    assert [draft.n for draft in drafts] == list(range(len(drafts)))
    covered = {at for draft in drafts for at in range(draft.start, draft.end)}
    assert {at for at, c in enumerate(content) if not c.isspace()} <= covered
    for draft in drafts:
        for at in (draft.start, draft.end):
            assert not any(s.start < at < s.end for s in spans if s.end <= len(content))


def test_a_chunk_of_a_later_part_knows_its_heading() -> None:
    """The heading path lies in an earlier part of the document."""
    content = "Rules\n\n" + "Nobody may smoke. " * 30
    document = Document("r.md", content, sections=(Section(0, ((0, 5),), page=3),))
    parts, _ = read(document, 100, 16, whole=True)
    last = parts[-1]
    assert len(parts) > 3
    assert last.headings == ("Rules",) * len(last.chunks)
    assert {(draft.headings, draft.page) for draft in last.chunks} == {(((0, 5),), 3)}


def test_memory_is_that_of_a_part() -> None:
    """Blocks are asked for only as parts are made of them."""
    asked = 0

    def blocks() -> Iterator[str]:
        nonlocal asked
        for _ in range(1_000):
            asked += 1
            yield "some words here. " * 10

    found = segments(blocks(), 500, 50)
    next(found)
    assert asked < 6


def text_of(data: bytes) -> str:
    """What a file of these bytes is read as."""
    return "".join(read_blocks(lambda: io.BytesIO(data), scan(lambda: io.BytesIO(data))))


@pytest.mark.parametrize(
    ("encoding", "text"),
    [
        ("utf-8", "Zoë 工作坊 🦔\n"),
        ("utf-8-sig", "Zoë\n"),
        ("utf-16", "Zoë 工作坊\n"),
        ("cp1252", "Zoë für “Ünal” – Käse\n"),
        ("cp1251", "Мастерская сдаётся в аренду с весны до осени каждый год\n"),
        ("shift_jis", "工房の賃貸契約は春に署名されました。\n"),
    ],
)
def test_encodings_are_found_in_blocks(encoding: str, text: str) -> None:
    """A long file reads as a short one does, also where a block parts a character."""
    many = text * (3_000_000 // len(text.encode(encoding)))
    assert text_of(many.encode(encoding)) == many


def test_the_encoding_is_told_by_what_is_not_ascii() -> None:
    """A megabyte of plain letters says nothing of what comes after it."""
    text = "plain words\n" * 200_000 + "Мастерская сдаётся в аренду с весны до осени\n" * 50
    assert text_of(text.encode("cp1251")) == text


def test_line_ends_are_plain() -> None:
    """Also where a block ends between the two characters of one."""
    data = b"a" * ((1 << 20) - 1) + b"\r\nb\rc"
    assert text_of(data) == "a" * ((1 << 20) - 1) + "\nb\nc"


@pytest.mark.parametrize(
    ("data", "refusal"),
    [(b" \n" * 600_000, EmptyDocument), (bytes(range(256)) * 9_000, Malformed)],
)
def test_a_long_file_of_no_text_is_refused(data: bytes, refusal: type[Exception]) -> None:
    """Blank and binary files have no text."""
    with pytest.raises(refusal):
        text_of(data)


def test_names_of_types_stay(tmp_path: Path) -> None:
    """A span of a part keeps its type."""
    parts, _ = read(Document("a.txt", "Bo Amadi has the keys. " * 20), 100, 16, whole=False)
    assert {span.type for part in parts for span in part.spans} == {EntityType.PERSON}
