"""Citations resolve to what they name, and no excerpt cuts into personal data."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from rag.graphs.answer.citations import excerpt, resolve
from rag.types import EntityType, Span


def test_a_short_text_is_left_whole() -> None:
    """Nothing is appended to what was not cut."""
    assert excerpt("short", []) == "short"


def test_a_long_text_is_cut_at_the_limit() -> None:
    """Three hundred characters plus three dots."""
    assert excerpt("x" * 301, []) == "x" * 300 + "..."


def test_a_cut_moves_in_front_of_the_span_that_it_would_split() -> None:
    """Half a name would be a new form that nobody knows."""
    text = "a" * 295 + "Ineke Vandal" + "b" * 50
    assert excerpt(text, [Span(295, 307, EntityType.PERSON)]) == "a" * 295 + "..."


def test_a_span_from_the_start_is_kept_whole() -> None:
    """There is nothing in front of it to cut at."""
    text = "k" * 400 + " tail"
    assert excerpt(text, [Span(0, 400, EntityType.CREDENTIAL)]) == "k" * 400 + "..."


@given(
    st.text(max_size=80),
    st.lists(st.tuples(st.integers(0, 80), st.integers(1, 20)), max_size=4),
    st.integers(1, 60),
)
def test_no_cut_ever_falls_inside_a_span(
    text: str, marks: list[tuple[int, int]], limit: int
) -> None:
    """For any text and any resolved spans, whatever the limit."""
    spans: list[Span] = []
    for start, length in sorted(marks):
        if start + length <= len(text) and (not spans or start >= spans[-1].end):
            spans.append(Span(start, start + length, EntityType.PERSON))
    cut = excerpt(text, spans, limit)
    if cut != text:
        at = len(cut) - 3
        assert text.startswith(cut[:at])
        assert not any(span.start < at < span.end for span in spans)


def test_a_citation_of_no_passage_is_dropped_and_counted() -> None:
    """Two passages: the third citation names nothing."""
    assert resolve("Yes [1], no [3].", ["a", "b"]) == ("Yes [1], no.", 1)


def test_of_several_numbers_only_the_valid_stay() -> None:
    """A joint citation keeps its valid part."""
    assert resolve("Yes [1, 7].", ["a", "b"]) == ("Yes [1].", 1)


def test_a_bracketed_number_that_a_passage_holds_is_a_quotation() -> None:
    """The text of a source is never cut."""
    assert resolve("See clause [12].", ["as clause [12] says"]) == ("See clause [12].", 0)
