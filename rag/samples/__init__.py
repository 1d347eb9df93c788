"""A small company's papers with invented people, and questions that they answer.

Used by the demonstration and the tests. Nothing is read before ``QUESTIONS`` is asked
for (I11). Telephone numbers, mail domains, card and account numbers are those that are
reserved for examples.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Any

PAPERS = "papers"

QUESTIONS: tuple[Question, ...]
"""Three for the demonstration (a name, a number, an address), then more for tests."""


@dataclass(frozen=True, slots=True)
class Question:
    """A question, what its answer is (``kind``), holds (``expected``) and comes from."""

    text: str
    kind: str
    expected: str
    source: str


def papers() -> Traversable:
    """The folder of the papers."""
    return files(__name__) / PAPERS


@cache
def _questions() -> tuple[Question, ...]:
    rows = json.loads((files(__name__) / "questions.json").read_text("utf-8"))
    return tuple(Question(**row) for row in rows)


def __getattr__(name: str) -> Any:
    if name == "QUESTIONS":
        return _questions()
    raise AttributeError(name)
