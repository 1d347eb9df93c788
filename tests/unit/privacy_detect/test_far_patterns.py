"""A pattern that looks arbitrarily far ahead is bounded, however long the document."""

from __future__ import annotations

import regex

from rag.privacy.recognizers.rules import FLAGS, REACH, WINDOW, Rule, RuleSet, looks_far
from rag.types import EntityType

AHEAD = Rule(
    "ahead",
    EntityType.TAX_ID,
    r"\b(?=.*?[a-z])(?=.*?[0-9]{4})\w{10}\b",
    0.5,
    flags=int(FLAGS | regex.DOTALL),
)


def test_a_far_look_ahead_is_known_for_one() -> None:
    """An unbounded dot that crosses lines; within a line it ends by itself."""
    assert looks_far(AHEAD)
    assert not looks_far(Rule("near", EntityType.TAX_ID, r"(?=.*?[0-9])\w{10}", 0.5))


def test_a_long_document_is_read_in_time() -> None:
    """Half a million characters in which every attempt would look to the end and fail."""
    assert RuleSet("far", [AHEAD], seconds=1.0).find("abcdefghij " * 45_000) == []


def test_matches_at_the_borders_of_windows_are_found_once() -> None:
    """A value may lie across a border, or begin right at it."""
    rules = RuleSet("far", [AHEAD])
    for at in (WINDOW - 11, WINDOW - 5, WINDOW, WINDOW + 1, WINDOW + REACH - 5):
        text = "x " * ((at - 1) // 2) + " " * (1 + (at - 1) % 2) + "ABCDE1234F" + " x" * 2_000
        found = [text[span.start : span.end] for span in rules.find(text)]
        assert found == ["ABCDE1234F"], at
