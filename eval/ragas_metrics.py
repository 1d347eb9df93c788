"""Ragas' metrics, asked through the relay. Runs in the scorer's child process only (I11).

Two things differ from Ragas as it comes. Its example prompts speak of people by name
("John", "Albert Einstein"); an original of the same name in the asker's documents would
make every such request a refusal of the guard, so the examples here name nobody. And
the judge's reply is read by us, not by a client of its own: the relay is the only door.

A metric that fails is a code, one of ``rag.models.scorer.REASONS``; nothing that the
judge wrote gets into a reason.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Mapping, Sequence
from typing import Any

os.environ["RAGAS_DO_NOT_TRACK"] = "true"  # read once by Ragas, at its first event

from ragas.embeddings.base import BaseRagasEmbedding
from ragas.llms.base import InstructorBaseRagasLLM
from ragas.metrics.collections import AnswerRelevancy, Faithfulness
from ragas.metrics.collections.answer_relevancy.util import (
    AnswerRelevanceInput,
    AnswerRelevanceOutput,
)
from ragas.metrics.collections.faithfulness.util import (
    NLIStatementInput,
    NLIStatementOutput,
    StatementFaithfulnessAnswer,
    StatementGeneratorInput,
    StatementGeneratorOutput,
)

from eval.relay import Relay
from eval.verdicts import Reply, Unparsable, missing, outcome, parse_reply
from rag.types import ScoreCase

ATTEMPTS = 2


class RelayJudge(InstructorBaseRagasLLM):
    """Ragas' judge: the parent's chat model, a bounded number of attempts for a readable reply."""

    def __init__(self, relay: Relay) -> None:
        self._relay = relay

    def generate(self, prompt: str, response_model: type[Reply]) -> Reply:
        raise NotImplementedError("the relay is asynchronous")

    async def agenerate(self, prompt: str, response_model: type[Reply]) -> Reply:
        for _ in range(ATTEMPTS - 1):
            try:
                return parse_reply(await self._relay.complete(prompt), response_model)
            except Unparsable:
                continue
        return parse_reply(await self._relay.complete(prompt), response_model)


class RelayEmbeddings(BaseRagasEmbedding):
    """Ragas' embeddings: the parent's local embedder."""

    def __init__(self, relay: Relay) -> None:
        super().__init__()
        self._relay = relay

    def embed_text(self, text: str, **_: Any) -> list[float]:
        raise NotImplementedError("the relay is asynchronous")

    async def aembed_text(self, text: str, **_: Any) -> list[float]:
        return (await self.aembed_texts([text]))[0]

    async def aembed_texts(self, texts: list[str], **_: Any) -> list[list[float]]:
        return await self._relay.embed(texts)


STATEMENT_EXAMPLES = [
    (
        StatementGeneratorInput(
            question="When is the reading room open, and what may be brought in?",
            answer="It opens at nine and closes at five. Pencils are allowed, but ink is not.",
        ),
        StatementGeneratorOutput(
            statements=[
                "The reading room opens at nine.",
                "The reading room closes at five.",
                "Pencils are allowed in the reading room.",
                "Ink is not allowed in the reading room.",
            ]
        ),
    )
]
VERDICT_EXAMPLES = [
    (
        NLIStatementInput(
            context="The reading room opens at nine. Visitors leave their bags at the desk.",
            statements=["The reading room opens at nine.", "Bags may be taken inside."],
        ),
        NLIStatementOutput(
            statements=[
                StatementFaithfulnessAnswer(
                    statement="The reading room opens at nine.",
                    reason="The context says so in the same words.",
                    verdict=1,
                ),
                StatementFaithfulnessAnswer(
                    statement="Bags may be taken inside.",
                    reason="The context says that bags stay at the desk.",
                    verdict=0,
                ),
            ]
        ),
    )
]
QUESTION_EXAMPLES = [
    (
        AnswerRelevanceInput(response="The reading room opens at nine."),
        AnswerRelevanceOutput(question="When does the reading room open?", noncommittal=0),
    ),
    (
        AnswerRelevanceInput(response="I don't know when the new wing will open."),
        AnswerRelevanceOutput(question="When will the new wing open?", noncommittal=1),
    ),
]


def faithfulness(relay: Relay) -> Faithfulness:
    metric = Faithfulness(llm=RelayJudge(relay))
    metric.statement_generator_prompt.examples = STATEMENT_EXAMPLES
    metric.nli_statement_prompt.examples = VERDICT_EXAMPLES
    return metric


def answer_relevancy(relay: Relay) -> AnswerRelevancy:
    metric = AnswerRelevancy(llm=RelayJudge(relay), embeddings=RelayEmbeddings(relay))
    metric.prompt.examples = QUESTION_EXAMPLES
    return metric


async def _faithfulness(relay: Relay, case: ScoreCase) -> float:
    metric = faithfulness(relay)
    result = await metric.ascore(
        user_input=case.question,
        response=case.answer,
        retrieved_contexts=list(case.contexts),
    )
    return float(result.value)


async def _answer_relevancy(relay: Relay, case: ScoreCase) -> float:
    result = await answer_relevancy(relay).ascore(user_input=case.question, response=case.answer)
    return float(result.value)


RUNS = {"faithfulness": _faithfulness, "answer_relevancy": _answer_relevancy}


async def score(relay: Relay, case: ScoreCase, names: Sequence[str]) -> Mapping[str, Any]:
    """Every metric side by side; one that fails does not touch the others."""
    scores = {name: {"score": None, "code": missing(name, case)} for name in names}
    wanted = [name for name in names if scores[name]["code"] is None]
    runs: list[Awaitable[float]] = [RUNS[name](relay, case) for name in wanted]
    values = await asyncio.gather(*runs, return_exceptions=True)
    scores.update({name: outcome(value) for name, value in zip(wanted, values, strict=True)})
    return scores
