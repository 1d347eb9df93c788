"""State of the parent graphs. ``rewrites``, ``contexts`` and ``protected_answer`` hold
placeholders; ``answer`` is restored; ``pii_mapping`` is a masked, read-only view (I8)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypedDict

from rag.types import Hit, Score, Span


class AnswerState(TypedDict, total=False):
    """Keys of the parent state; a node returns only those that it changes."""

    question: str
    anonymize: bool
    anonymized_question: str
    question_spans: tuple[Span, ...]
    pii_mapping: Mapping[str, str]
    rewrite_n: int
    rewrites: list[str]
    top_k: int
    retrieved: list[Hit]
    contexts: list[str]
    answer: str
    protected_answer: str
    with_evaluation: bool
    eval_score: Mapping[str, Score] | None
    unresolved: tuple[str, ...]
    unsourced: int
    warnings: list[str]
    trace: list[str]
