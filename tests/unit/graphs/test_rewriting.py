"""Rewrites are read from whatever shape a model gives them in."""

from __future__ import annotations

import pytest

from rag.graphs.answer.rewriting import parse_rewrites


@pytest.mark.parametrize(
    "text",
    [
        "rent of flat 4\nwho pays flat 4",
        "1. rent of flat 4\n2. who pays flat 4",
        "- rent of flat 4\n- who pays flat 4\n",
        '["rent of flat 4", "who pays flat 4"]',
        '```json\n["rent of flat 4", "who pays flat 4"]\n```',
        '{"queries": ["rent of flat 4", "who pays flat 4"], "note": "x"}',
        '{"a": "rent of flat 4", "b": "who pays flat 4"}',
        'Here are the queries:\n"rent of flat 4"\n"who pays flat 4"',
        "Query 1: rent of flat 4\nQuery 2: who pays flat 4",
    ],
)
def test_two_queries_in_every_shape(text: str) -> None:
    """Lines, numbered, bulleted, JSON, fenced JSON, JSON with more keys, quoted lines."""
    assert parse_rewrites(text, 5) == ["rent of flat 4", "who pays flat 4"]


def test_no_more_than_asked_for() -> None:
    """A talkative model does not multiply the searches."""
    assert parse_rewrites("a b\nc d\ne f", 2) == ["a b", "c d"]


@pytest.mark.parametrize("text", ["", "\n\n", "[]", "{}", "```\n```", "[1, 2]", "x" * 500])
def test_nothing_that_reads_as_a_query(text: str) -> None:
    """An empty list tells the caller to fall back on rules."""
    assert parse_rewrites(text, 3) == []


def test_a_number_that_belongs_to_the_query_stays() -> None:
    """Only a list's numbering is taken off."""
    assert parse_rewrites("2024 budget of flat 4", 3) == ["2024 budget of flat 4"]


def test_deeply_nested_json_is_no_crash() -> None:
    """A hostile reply is a reply without queries."""
    assert parse_rewrites("[" * 200 + "]" * 200, 3) == []
