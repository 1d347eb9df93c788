"""Span resolution: the rules, one by one, and what holds for any input."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from rag.privacy.policy import DIRECT
from rag.privacy.resolve import resolve, trim
from rag.types import EntityType, Span

TEXT = "Kirsti Haugland - kirsti@example.org, Nordhavn Ltd. 5105 1051 0510 5100"


def at(found: str, type: EntityType, score: float, text: str = TEXT) -> Span:
    start = text.index(found)
    return Span(start, start + len(found), type, score)


def shown(spans: list[Span], text: str = TEXT) -> list[tuple[str, str]]:
    return [(s.type.value, text[s.start : s.end]) for s in spans]


def test_the_surer_wins_and_the_loser_keeps_the_rest() -> None:
    """A name that swallowed an address gives it back."""
    name = at("Kirsti Haugland - kirsti@example.org", EntityType.PERSON, 0.85)
    mail = at("kirsti@example.org", EntityType.EMAIL, 0.99)
    assert shown(resolve(TEXT, [name, mail])) == [
        ("PERSON", "Kirsti Haugland"),
        ("EMAIL", "kirsti@example.org"),
    ]


def test_the_longer_wins_among_the_equally_sure() -> None:
    """A number is not cut short by a narrower pattern."""
    card = at("5105 1051 0510 5100", EntityType.CARD, 0.95)
    phone = at("5105 1051 0510", EntityType.PHONE, 0.97)
    assert shown(resolve(TEXT, [phone, card])) == [("CARD", "5105 1051 0510 5100")]


def test_no_residue_of_a_number_is_given_up() -> None:
    """What sticks out of a surer finding stays protected."""
    phone = at("1051 0510 5100", EntityType.PHONE, 0.6)
    card = at("5105 1051 0510", EntityType.CARD, 0.95)
    found = resolve(TEXT, [phone, card])
    assert shown(found) == [("CARD", "5105 1051 0510"), ("PHONE", "5100")]


def test_an_optional_type_never_hides_a_direct_one() -> None:
    """However sure an organisation is, the person in it is a person."""
    text = "Kirsti Haugland Heating Ltd"
    organisation = Span(0, len(text), EntityType.ORGANISATION, 1.0)
    person = Span(0, 15, EntityType.PERSON, 0.5)
    assert shown(resolve(text, [organisation, person]), text) == [
        ("PERSON", "Kirsti Haugland"),
        ("ORGANISATION", "Heating Ltd"),
    ]


def test_neighbours_are_not_merged() -> None:
    """Two findings side by side stay two."""
    text = "a@x.org b@x.org"
    spans = [Span(0, 7, EntityType.EMAIL, 0.9), Span(8, 15, EntityType.EMAIL, 0.9)]
    assert resolve(text, spans) == spans


def test_margins_and_possessives_stay_outside() -> None:
    """White space, quotes and 's are not part of a name; the dot of "jr." is."""
    for text, expected in [
        (" “Rosa Quint’s ", "Rosa Quint"),
        ("Rosa Quint's", "Rosa Quint"),
        ("the Quints'", "the Quints"),
        ("Ivar Brandt jr.", "Ivar Brandt jr."),
        ("Rosa Quint.", "Rosa Quint"),
    ]:
        span = trim(text, Span(0, len(text), EntityType.PERSON, 0.9))
        assert span is not None
        assert text[span.start : span.end] == expected


SPANS = st.lists(
    st.builds(
        lambda start, length, kind, score: Span(start, min(start + length, 60), kind, score),
        st.integers(0, 59),
        st.integers(1, 30),
        st.sampled_from(EntityType),
        st.sampled_from([0.3, 0.5, 0.7, 0.85, 0.95, 1.0]),
    ),
    max_size=12,
)


@given(st.text("ab1 .'\n", min_size=60, max_size=60), SPANS)
def test_it_is_sorted_and_disjoint(text: str, spans: list[Span]) -> None:
    """Any findings come out sorted, non-empty and not overlapping, whatever their order."""
    found = resolve(text, spans)
    assert found == sorted(found)
    assert all(a.end <= b.start for a, b in pairwise(found))
    assert all(s.start < s.end for s in found)
    assert found == resolve(text, spans[::-1])


@given(SPANS)
def test_no_direct_character_is_lost(spans: list[Span]) -> None:
    """Every letter under a direct finding is under a direct finding afterwards."""
    text = "x1" * 30
    covered = {i for s in resolve(text, spans) if s.type in DIRECT for i in range(s.start, s.end)}
    numbers = [s for s in spans if s.type in DIRECT and s.type is not EntityType.PERSON]
    assert all(i in covered for s in numbers for i in range(s.start, s.end))
