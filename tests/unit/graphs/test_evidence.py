"""Evidence: passages under their headings, cut to the budget, spans carried along."""

from __future__ import annotations

from uuid import UUID

from rag.graphs.answer.evidence import fit, passage, piece_of
from rag.graphs.answer.unsourced import hide_unsourced, unsourced_values
from rag.types import Chunk, EntityType, Hit, Span


def hit(text: str, heading: str = "", n: int = 0, **spans: tuple[Span, ...]) -> Hit:
    return Hit(
        Chunk(UUID(int=n), UUID(int=9), "a.md", n, 0, len(text), text, heading, None, **spans), 0.5
    )


def test_a_passage_stands_under_its_heading_path() -> None:
    """The model sees what the passage is about."""
    assert passage(hit("He left in May.", "Staff > Leavers")) == "Staff > Leavers\nHe left in May."


def test_a_passage_that_opens_with_its_heading_does_not_repeat_it() -> None:
    """The heading line of the first chunk of a section is in the chunk."""
    assert passage(hit("## Leavers\nHe left.", "Staff > Leavers")) == "## Leavers\nHe left."


def test_spans_follow_the_text_behind_the_heading() -> None:
    """A span still covers the same letters once a heading stands in front."""
    found = hit(
        "Ola Brenn left.",
        "About Ada Quist",
        spans=(Span(0, 9, EntityType.PERSON),),
        heading_spans=(Span(6, 15, EntityType.PERSON),),
    )
    piece = piece_of(found)
    assert [piece.text[s.start : s.end] for s in piece.spans] == ["Ada Quist", "Ola Brenn"]


def test_hits_beyond_the_budget_are_no_sources() -> None:
    """A citation's number always names what the model saw."""
    hits, pieces = fit([hit("a" * 60, n=1), hit("b" * 60, n=2)], budget=100)
    assert [h.chunk.n for h in hits] == [1]
    assert len(pieces) == 1


def test_a_first_passage_beyond_the_budget_is_cut_but_not_in_a_span() -> None:
    """There is always some evidence, and never half a name."""
    text = "x" * 45 + "Ola Brenn" + "y" * 50
    found = hit(text, spans=(Span(45, 54, EntityType.PERSON),))
    _, [piece] = fit([found], budget=50)
    assert piece.text == "x" * 45 + "..."
    assert piece.spans == ()


def test_what_a_source_holds_is_not_unsourced() -> None:
    """Spelling and separators do not matter."""
    answer = "Call 07700-900411 or Ada Quist."
    spans = [Span(5, 17, EntityType.PHONE), Span(21, 30, EntityType.PERSON)]
    assert unsourced_values(answer, spans, ["tel 07700 900411"]) == ("Ada Quist",)


def test_an_unsourced_value_is_taken_out_of_what_a_judge_sees() -> None:
    """What the model invented is not sent on."""
    assert hide_unsourced("Ask Ada Quist.", ["Ada Quist"]) == "Ask [unsourced]."
