"""I7: scores of an answer through the whole engine; the judge sees placeholders only.

The real engine on an embedded database, the stub as chat model and judge, Ragas in its
child. One request is made and several facts are read off it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from rag.engine import Engine
from rag.settings import load_settings
from rag.testing.noleak import assert_no_leak
from rag.testing.stub import Script, Stub, echo, judge, question_of, serve_stub
from rag.types import Result

pytest.importorskip("ragas", reason="the extra eval is not installed", exc_type=ImportError)

NOTE = """# Plants

Mr Walter Penhallow waters the plants on floor 2 and has done so for years.
You reach him by e-mail at walter.penhallow@example.org or by phone on 020 7946 0712.
"""
ORIGINALS = ["Walter Penhallow", "Penhallow", "walter.penhallow@example.org", "020 7946 0712"]
QUESTION = "How do I reach Walter Penhallow, who waters the plants on floor 2?"


def is_judged(prompt: str) -> bool:
    return "JSON Schema" in prompt


def reply(prompt: str) -> str:
    return judge(prompt) if is_judged(prompt) else question_of(prompt)


async def ask(stub: Stub, folder: Path) -> Result:
    settings = load_settings(
        _env_file=None, data_dir=folder, openai_base_url=stub.base_url, model_retries=0
    )
    async with Engine.open(settings) as engine:
        await engine.ingest_text(NOTE, "plants.md", {})
        return await engine.run_graph(QUESTION, 1, 2, with_evaluation=True)


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Result, Stub]]:
    with serve_stub(Script(answer=echo, rewrite=reply)) as stub:
        yield asyncio.run(ask(stub, tmp_path_factory.mktemp("data"))), stub


def test_an_answer_is_scored_on_request(asked: tuple[Result, Stub]) -> None:
    """Both metrics are numbers when the judge is willing."""
    scores = asked[0].eval_score
    assert scores is not None
    assert scores["faithfulness"].score == 1.0
    relevancy = scores["answer_relevancy"].score
    assert relevancy is not None
    assert 0 < relevancy <= 1


def test_the_judge_sees_no_original(asked: tuple[Result, Stub]) -> None:
    """It was asked, and nothing that it was sent holds an original in any spelling."""
    stub = asked[1]
    assert sum(is_judged(record.prompt) for record in stub.chats) >= 4
    assert_no_leak(stub, ORIGINALS)


def test_the_asker_gets_the_originals_all_the_same(asked: tuple[Result, Stub]) -> None:
    """Scoring changes nothing in the answer: the values are restored."""
    assert "020 7946 0712" in asked[0].answer


def test_the_judges_requests_are_counted(asked: tuple[Result, Stub]) -> None:
    """``outbound_calls`` counts every request that left, the judge's among them."""
    result, stub = asked
    assert result.privacy.outbound_calls == len(stub.chats)
