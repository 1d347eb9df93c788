"""The configured scorer over real HTTP: guarded transport, local embedder, Ragas' child."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator, Mapping, Sequence

import pytest

from rag.errors import BoundaryRefused
from rag.models.scorer import METRICS, REASONS, open_scorer
from rag.settings import Settings, load_settings
from rag.testing.stub import Script, Stub, judge, serve_stub
from rag.types import Score, ScoreCase

pytest.importorskip("ragas", reason="the extra eval is not installed", exc_type=ImportError)

ORIGINAL = "Hedda Marlund"
CASE = ScoreCase(
    question="Who waters the plants on floor 2?",
    answer="[PERSON_1_x4] waters the plants on floor 2.",
    contexts=("The plants on floor 2 are watered by [PERSON_1_x4].",),
)
RAW = ScoreCase(CASE.question, f"{ORIGINAL} waters them.", CASE.contexts)


class NameGuard:
    """Refuses a request in which the original stands."""

    def check(self, method: str, url: str, headers: Sequence[tuple[str, str]], body: bytes) -> None:
        if ORIGINAL.encode() in body:
            raise BoundaryRefused


def settings(stub: Stub, **more: object) -> Settings:
    given = {"openai_base_url": stub.base_url, "model_retries": 0, "model_timeout": 10, **more}
    return load_settings(_env_file=None, **given)


@pytest.fixture(scope="module")
def stub() -> Iterator[Stub]:
    with serve_stub(Script(answer=judge, rewrite=judge)) as running:
        yield running


@pytest.fixture(autouse=True)
def _fresh(stub: Stub) -> None:
    stub.forget()
    stub.script = Script(answer=judge, rewrite=judge)


def score(stub: Stub, case: ScoreCase, **more: object) -> Mapping[str, Score]:
    return asyncio.run(open_scorer(settings(stub, **more)).score(case, NameGuard()))


def test_a_willing_judge_gives_two_numbers(stub: Stub) -> None:
    """All statements faithful is 1; the relevancy is a number of the local embedder's."""
    scores = score(stub, CASE, judge_model="the-judge", chat_model="the-chat")
    assert scores["faithfulness"] == Score(1.0)
    assert scores["answer_relevancy"].score is not None
    assert 0 < scores["answer_relevancy"].score <= 1
    assert len(stub.chats) == 5
    assert {record.json["model"] for record in stub.chats} == {"the-judge"}
    assert stub.embeddings == []


def test_an_original_never_reaches_the_judge(stub: Stub) -> None:
    """A case that was not protected is refused at the transport; the reason names no text."""
    scores = score(stub, RAW)
    assert scores == {name: Score(None, REASONS["boundary_refused"]) for name in METRICS}
    assert not any(ORIGINAL.encode() in sent for sent in stub.sent)


def test_a_failing_judge_is_a_reason(stub: Stub) -> None:
    """A 500 whose body quotes the prompt leaves none of it in the reason."""
    stub.script.status = 500
    scores = score(stub, CASE)
    assert scores == {name: Score(None, REASONS["model_failed"]) for name in METRICS}


def test_a_slow_judge_is_a_reason(stub: Stub) -> None:
    """A judge beyond the model's timeout ends its metric, not the request."""
    stub.script.delay = 30
    started = time.monotonic()
    scores = score(stub, CASE, model_timeout=1)
    assert scores == {name: Score(None, REASONS["model_timeout"]) for name in METRICS}
    assert time.monotonic() - started < 25


def test_without_a_model_nothing_is_started() -> None:
    """No key and no base URL: null at once, for that reason."""
    started = time.monotonic()
    scores = asyncio.run(open_scorer(Settings(_env_file=None)).score(CASE, NameGuard()))
    assert scores == {name: Score(None, REASONS["no_judge"]) for name in METRICS}
    assert time.monotonic() - started < 1


@pytest.mark.slow
def test_a_real_small_judge_fails_as_a_value() -> None:
    """A 135M model seldom writes the JSON that is asked: a number or a reason, no exception.

    Asked for one metric only, for each of its long prompts takes such a model many seconds.
    """
    from rag.testing.llama import is_installed, serve_llama

    if not is_installed():
        pytest.skip("the small language model is not installed")
    with serve_llama(context=2048) as llama:
        small = load_settings(
            _env_file=None,
            openai_base_url=llama.base_url,
            chat_model=llama.model,
            model_retries=0,
            model_timeout=60,
            max_output_tokens=40,
        )
        without_contexts = ScoreCase(CASE.question, CASE.answer, ())
        scores = asyncio.run(open_scorer(small).score(without_contexts, NameGuard()))
    assert scores["faithfulness"] == Score(None, REASONS["no_context"])
    value = scores["answer_relevancy"]
    assert (value.score is None) == (value.reason == REASONS["unparsable"])
