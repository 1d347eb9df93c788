"""Policies select spans; the lexicon knows what else a word may be."""

from __future__ import annotations

import pytest

from rag.errors import UnknownName
from rag.privacy.lexicon import is_common_word, is_given_name, is_place, is_title, nicknames_of
from rag.privacy.policy import Policy, load_policy
from rag.types import EntityType, Span


def test_the_default_leaves_places_organisations_and_dates() -> None:
    """Default protects direct identifiers only."""
    optional = {"PLACE", "ORGANISATION", "DATE", "URL", "OTHER"}
    assert {t.value for t in EntityType} - {
        t.value for t in load_policy("default").protect
    } == optional


def test_strict_protects_every_type() -> None:
    """Strict leaves no type out and asks for less certainty."""
    strict = load_policy("strict")
    assert strict.protect == frozenset(EntityType)
    assert strict.stricter_than(load_policy("default"))
    assert not load_policy("default").stricter_than(strict)


def test_a_higher_threshold_is_not_stricter() -> None:
    """A policy that asks for more certainty protects less."""
    default = load_policy("default")
    assert not Policy("bold", default.protect, 0.9).stricter_than(default)
    assert default.stricter_than(default)


def test_it_selects_by_type_and_score() -> None:
    """Spans keep their order; the threshold itself is enough."""
    policy = Policy("p", frozenset({EntityType.PERSON}), 0.5)
    spans = [
        Span(0, 1, EntityType.PERSON, 0.5),
        Span(2, 3, EntityType.PLACE, 0.9),
        Span(4, 5, EntityType.PERSON, 0.49),
    ]
    assert policy.select(spans) == spans[:1]


def test_an_unknown_policy_is_an_error() -> None:
    """A policy that is not there is never the default one."""
    with pytest.raises(UnknownName):
        load_policy("none")


@pytest.mark.parametrize(
    "word", ["May", "will", "MARK", "Rose", "Hope", "grant", "June", "don't", "I'll"]
)
def test_common_words(word: str) -> None:
    """Names that are dictionary words are known as such in any casing."""
    assert is_common_word(word)


@pytest.mark.parametrize("word", ["Haugland", "Kirsti", "Jack", "O'Connell", "", "Yusuf"])
def test_names_are_no_common_words(word: str) -> None:
    """What is hardly anything but a name is not a common word."""
    assert not is_common_word(word)


@pytest.mark.parametrize(
    "word", ["Washington", "jordan", "PARIS", "New York", "Zurich", "Zürich", "Texas"]
)
def test_places(word: str) -> None:
    """Countries, US states and big cities, with and without diacritics."""
    assert is_place(word)
    assert not is_place("Haugland")


@pytest.mark.parametrize("word", ["Dr.", "mr", "Ms", "PROF", "Frau"])
def test_titles(word: str) -> None:
    """Titles with and without their dot."""
    assert is_title(word)
    assert not is_title("Haugland")


def test_nicknames() -> None:
    """A given name leads to its nicknames and back."""
    assert "bob" in nicknames_of("Robert")
    assert "robert" in nicknames_of("BOB")
    assert nicknames_of("Haugland") == frozenset()
    assert is_given_name("Alice")
