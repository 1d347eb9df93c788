"""Ragas itself, in its child process, with a scripted judge behind the port.

One child costs seconds, so each is run once and several facts are read off it.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping, Sequence

import numpy as np
import pytest

from rag.models.scorer import REASONS, RagasScorer
from rag.ports import OutboundGuard, Vectors
from rag.types import Completion, Message, Score, ScoreCase, Space

pytest.importorskip("ragas", reason="the extra eval is not installed", exc_type=ImportError)

CASE = ScoreCase(
    question="Who keeps the spare key of [ADDRESS_1_q7]?",
    answer="[PERSON_1_q7] keeps the spare key. It is blue.",
    contexts=("The spare key is with [PERSON_1_q7].", "The lift is out of order."),
)
STATEMENTS = '{"statements": ["[PERSON_1_q7] keeps the spare key.", "The spare key is blue."]}'
VERDICTS = """Here you are:
```json
{"statements": [
  {"statement": "[PERSON_1_q7] keeps the spare key.", "reason": "said so", "verdict": 1},
  {"statement": "The spare key is blue.", "reason": "not said", "verdict": 0}]}
```"""
QUESTION = '{"question": "Who keeps the spare key?", "noncommittal": 0}'


class ScriptedJudge:
    """Replies by what the prompt asks for; remembers every prompt."""

    name, trusted = "scripted", False

    def __init__(self, statements: str, verdicts: str, question: str) -> None:
        self.replies = {"judge the faithfulness": verdicts, "Break down": statements}
        self.question = question
        self.prompts: list[str] = []

    async def complete(self, messages: Sequence[Message], guard: OutboundGuard) -> Completion:
        prompt = "\n".join(message.content for message in messages)
        self.prompts.append(prompt)
        guard.check("POST", "http://judge/v1/chat/completions", [], prompt.encode())
        for words, reply in self.replies.items():
            if words in prompt:
                return Completion(reply)
        return Completion(self.question)


class AngleEmbedder:
    """The asked question at 0 degrees, every other text at 60: their cosine is one half."""

    space, remote, trusted = Space("angle", 2), False, True

    async def embed(self, texts: Sequence[str], guard: OutboundGuard | None = None) -> Vectors:
        turns = [0.0 if "ADDRESS_1" in text else np.pi / 3 for text in texts]
        return np.array([[np.cos(t), np.sin(t)] for t in turns], dtype=np.float32)


class CountingGuard:
    def __init__(self) -> None:
        self.checked = 0

    def check(self, method: str, url: str, headers: Sequence[tuple[str, str]], body: bytes) -> None:
        self.checked += 1


Run = tuple[Mapping[str, Score], ScriptedJudge, CountingGuard]


def run(judge: ScriptedJudge) -> Run:
    guard = CountingGuard()
    scores = asyncio.run(RagasScorer(judge, AngleEmbedder(), timeout=120).score(CASE, guard))
    return scores, judge, guard


@pytest.fixture(scope="module")
def good() -> Run:
    return run(ScriptedJudge(STATEMENTS, VERDICTS, QUESTION))


@pytest.fixture(scope="module")
def bad() -> Run:
    return run(ScriptedJudge('{"statements": []}', "", "I would rather not say."))


def test_faithfulness_is_the_share_of_supported_statements(good: Run) -> None:
    """One of two statements is supported: one half, as Ragas defines it."""
    assert good[0]["faithfulness"] == Score(0.5)


def test_answer_relevancy_is_the_mean_cosine(good: Run) -> None:
    """Every question made from the answer lies at 60 degrees of the asked one: one half."""
    score = good[0]["answer_relevancy"]
    assert score.score == pytest.approx(0.5, abs=1e-6)
    assert score.reason is None


def test_every_prompt_passes_the_guard(good: Run) -> None:
    """All that the judge was sent went through the scope's guard, one by one."""
    _, judge, guard = good
    assert guard.checked == len(judge.prompts) == 5


def test_the_prompts_of_ours_name_nobody(good: Run) -> None:
    """An original that is a name of Ragas' examples would make an honest request a refusal."""
    sent = "\n".join(good[1].prompts)
    assert not re.search(r"\b(John|Albert|Einstein|Paris|Germany|France)\b", sent)


def test_the_judge_gets_the_placeholders_as_they_are(good: Run) -> None:
    """The case reaches the judge unchanged: the prompts hold the text that was scored."""
    assert any(CASE.contexts[0] in prompt for prompt in good[1].prompts)


def test_nan_is_null_with_a_reason(bad: Run) -> None:
    """Ragas gives NaN for an answer without statements; a score is a number or nothing."""
    assert bad[0]["faithfulness"] == Score(None, REASONS["no_number"])


def test_an_unreadable_judge_costs_only_its_metric(bad: Run) -> None:
    """A reply without JSON is a reason, after a bounded number of attempts."""
    scores, judge, _ = bad
    assert scores["answer_relevancy"] == Score(None, REASONS["unparsable"])
    assert sum("Break down" not in prompt for prompt in judge.prompts) == 2
