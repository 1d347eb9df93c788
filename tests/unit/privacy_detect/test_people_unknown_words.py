"""A row of unknown words that the model takes for a thing is hidden as a person."""

from __future__ import annotations

import pytest

from rag.privacy.detect import PresidioDetector
from rag.types import EntityType


@pytest.fixture(scope="module")
def detector() -> PresidioDetector:
    """The real detector, loaded once."""
    return PresidioDetector.open()


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("Hedwig Tarlund waters the plants on Fridays.", "Hedwig Tarlund"),
        ("Who is Njambi Karanja's manager?", "Njambi Karanja"),
        ("Signed by Leofric\nAhmadi for the company.", "Leofric\nAhmadi"),
    ],
)
def test_unknown_words_in_a_row_are_a_person(
    detector: PresidioDetector, text: str, name: str
) -> None:
    """At the beginning of a sentence, possessive, broken over a line."""
    people = [text[s.start : s.end] for s in detector.detect(text) if s.type is EntityType.PERSON]
    assert people == [name]


@pytest.mark.parametrize(
    "text", ["They signed the Paris Agreement.", "The United Nations met.", "We visited New York."]
)
def test_known_words_in_a_row_are_no_person(detector: PresidioDetector, text: str) -> None:
    """Dictionary words and places stay what they are."""
    assert not [s for s in detector.detect(text) if s.type is EntityType.PERSON]
