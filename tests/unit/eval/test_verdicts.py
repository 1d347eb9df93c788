"""Reading a judge's reply, and naming what went wrong."""

from __future__ import annotations

import pytest
from pydantic import BaseModel

from eval.relay import AskFailed
from eval.verdicts import Unparsable, missing, outcome, parse_reply
from rag.models.scorer import METRICS, REASONS
from rag.types import ScoreCase


class Wanted(BaseModel):
    question: str
    noncommittal: int


GOOD = '{"question": "Who has the key?", "noncommittal": 0}'


@pytest.mark.parametrize(
    "reply",
    [
        GOOD,
        f"```json\n{GOOD}\n```",
        f"Sure, here it is: {GOOD} Anything else?",
        f'{{"note": "first thoughts"}} {GOOD}',
        f"{{ not json {GOOD}",
        f'{{"outer": {GOOD}}}',
    ],
)
def test_the_wanted_object_is_found(reply: str) -> None:
    """Fences, prose, other objects and broken braces around the object do not hide it."""
    assert parse_reply(reply, Wanted).question == "Who has the key?"


@pytest.mark.parametrize("reply", ["", "no", "{", '{"question": 1}', "[1, 2]", "{" * 5000, "null"])
def test_a_reply_without_it_is_unparsable(reply: str) -> None:
    """Anything else is one named failure, also a reply made to break a parser."""
    with pytest.raises(Unparsable):
        parse_reply(reply, Wanted)


@pytest.mark.parametrize(
    ("value", "code"),
    [
        (float("nan"), "no_number"),
        (float("inf"), "no_number"),
        (AskFailed("boundary_refused"), "boundary_refused"),
        (Unparsable(), "unparsable"),
        (ZeroDivisionError(), "failed"),
    ],
)
def test_a_failed_metric_is_null_with_a_code(value: float | BaseException, code: str) -> None:
    """NaN and every exception become ``None`` and a code that has a reason."""
    assert outcome(value) == {"score": None, "code": code}
    assert code in REASONS


@pytest.mark.parametrize(("value", "score"), [(-0.1, 0.0), (0.25, 0.25), (1.0000001, 1.0)])
def test_a_score_lies_between_0_and_1(value: float, score: float) -> None:
    """A cosine can be negative or a rounding over one; a score cannot."""
    assert outcome(value) == {"score": score, "code": None}


@pytest.mark.parametrize(
    ("case", "codes"),
    [
        (ScoreCase("q", "a", ("c",)), [None, None]),
        (ScoreCase("q", "a", ()), ["no_context", None]),
        (ScoreCase("q", "a", (" ",)), ["no_context", None]),
        (ScoreCase("q", " ", ("c",)), ["empty_answer", "empty_answer"]),
        (ScoreCase("", "a", ("c",)), ["empty_question", "empty_question"]),
    ],
)
def test_what_a_case_lacks_is_said_before_the_judge_is_asked(
    case: ScoreCase, codes: list[str | None]
) -> None:
    """An empty field costs only the metrics that need it."""
    assert [missing(name, case) for name in METRICS] == codes
