"""The readable view and the way back to the original."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag.privacy.recognizers.view import view
from rag.types import EntityType, Span


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain text", "plain text"),
        ("a%40b", "a@b"),
        ("J%C3%B8rgen", "Jørgen"),
        ("100% sure, 5%ff", "100% sure, 5%ff"),
        ("a&#64;b &amp; c&nbsp;d", "a@b & c d"),
        ("Jos\\u00e9", "José"),
        ("ro\u200bsa\u00adm", "rosam"),
        ("\uff11\uff12\uff13", "123"),
        ("010\u2011555", "010-555"),
        ("a%0Ab", "a%0Ab"),
        ("a\ud800b", "a\ufffdb"),
    ],
)
def test_it_shows_what_a_reader_sees(text: str, shown: str) -> None:
    """Escapes are decoded and the invisible is gone."""
    assert view(text).text == shown


def test_a_span_leads_back_to_the_whole_escape() -> None:
    """A span over decoded characters covers their escapes in the original."""
    text = "see jo%40host.org now"
    seen = view(text)
    start = seen.text.index("jo@host.org")
    span = seen.original(Span(start, start + 11, EntityType.EMAIL, 0.9))
    assert text[span.start : span.end] == "jo%40host.org"


PIECES = st.sampled_from(
    ["a", "é", " ", "%40", "%C3%B8", "&amp;", "&#64;", "\u200b", "\\u00e9", "1"]
)


@given(st.lists(PIECES, max_size=20), st.data())
def test_the_way_back_shows_the_same(pieces: list[str], data: st.DataObject) -> None:
    """The original stretch of any span of the view reads as that span."""
    text = "".join(pieces)
    seen = view(text)
    if not seen.text:
        return
    start = data.draw(st.integers(0, len(seen.text) - 1))
    end = data.draw(st.integers(start + 1, len(seen.text)))
    span = seen.original(Span(start, end, EntityType.OTHER, 0.5))
    assert 0 <= span.start < span.end <= len(text)
    assert seen.text[start:end] in view(text[span.start : span.end]).text
