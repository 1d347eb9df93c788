"""What came of a metric: the judge's reply read, a value checked, a failure named.

Knows Ragas' shapes but not Ragas, so that it can be tried without a child process.
"""

from __future__ import annotations

import json
import math
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from eval.relay import AskFailed
from rag.types import ScoreCase

Reply = TypeVar("Reply", bound=BaseModel)


class Unparsable(Exception):
    """The judge's reply holds no JSON object of the wanted shape."""


def parse_reply(text: str, model: type[Reply]) -> Reply:
    """The first JSON object in ``text`` that is a ``model``, whatever stands around it.

    Raises ``Unparsable``.
    """
    decoder = json.JSONDecoder()
    at = text.find("{")
    while at != -1:
        try:
            value, _ = decoder.raw_decode(text, at)
            return model.model_validate(value)
        except (json.JSONDecodeError, ValidationError, RecursionError):
            at = text.find("{", at + 1)
    raise Unparsable from None


def missing(name: str, case: ScoreCase) -> str | None:
    """The code of what the case lacks for this metric."""
    if not case.question.strip():
        return "empty_question"
    if not case.answer.strip():
        return "empty_answer"
    if name == "faithfulness" and not any(text.strip() for text in case.contexts):
        return "no_context"
    return None


def outcome(value: float | BaseException) -> dict[str, Any]:
    """A metric's value, or the code of why there is none. NaN is none (Ragas' word for failed)."""
    if isinstance(value, AskFailed):
        return {"score": None, "code": value.code}
    if isinstance(value, Unparsable):
        return {"score": None, "code": "unparsable"}
    if isinstance(value, BaseException):
        return {"score": None, "code": "failed"}
    if not math.isfinite(value):
        return {"score": None, "code": "no_number"}
    return {"score": min(1.0, max(0.0, value)), "code": None}
