"""The scorer against children that misbehave: every metric is null with a reason.

The children are small programs that speak, or fail to speak, the relay's protocol; the
judge and the embedder are fakes behind their ports.
"""

from __future__ import annotations

import asyncio
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from rag.errors import BoundaryRefused, ModelFailed, ModelTimeout
from rag.models.scorer import METRICS, MOST_ASKS, REASONS, RagasScorer, child_environment
from rag.ports import OutboundGuard, Vectors
from rag.types import Completion, Message, Score, ScoreCase, Space

CASE = ScoreCase("Who holds the key?", "[PERSON_1_k] holds it.", ("[PERSON_1_k] has a key.",))
SPEAK = "import json, sys\ndef say(**v): print(json.dumps(v), flush=True)\n"
HEAR = "def hear(): return json.loads(sys.stdin.readline())\nhear()\n"


class FakeJudge:
    name, trusted = "judge", False

    def __init__(self, fails: Exception | None = None) -> None:
        self.fails = fails
        self.asked: list[tuple[str, OutboundGuard]] = []

    async def complete(self, messages: Sequence[Message], guard: OutboundGuard) -> Completion:
        self.asked.append((messages[-1].content, guard))
        if self.fails is not None:
            raise self.fails
        return Completion("said")


class FakeEmbedder:
    space, trusted = Space("fake", 2), False

    def __init__(self, remote: bool = False) -> None:
        self.remote = remote
        self.asked = 0

    async def embed(self, texts: Sequence[str], guard: OutboundGuard | None = None) -> Vectors:
        self.asked += 1
        return np.ones((len(texts), 2), dtype=np.float32)


class FakeGuard:
    def check(self, method: str, url: str, headers: Sequence[tuple[str, str]], body: bytes) -> None:
        return


def scorer(
    child: str,
    judge: FakeJudge | None = None,
    embedder: FakeEmbedder | None = None,
    timeout: float = 20,
) -> RagasScorer:
    return RagasScorer(
        judge or FakeJudge(),
        embedder or FakeEmbedder(),
        timeout=timeout,
        command=[sys.executable, "-c", SPEAK + HEAR + child],
    )


def nulls(code: str) -> dict[str, Score]:
    return {name: Score(None, REASONS[code]) for name in METRICS}


async def test_without_a_judge_every_metric_is_null() -> None:
    """Nothing is started when no judge model is configured; the reason says so."""
    given = await RagasScorer(None, FakeEmbedder()).score(CASE, FakeGuard())
    assert given == nulls("no_judge")


async def test_without_a_guard_the_judge_is_not_asked() -> None:
    """The judge is outside: no guard, no request."""
    judge = FakeJudge()
    assert await RagasScorer(judge, FakeEmbedder()).score(CASE) == nulls("no_guard")
    assert judge.asked == []


@pytest.mark.parametrize(
    ("child", "code"),
    [
        ("sys.exit(3)", "ended"),
        ("print('no json', flush=True)", "ended"),
        ("print('[1]', flush=True)", "ended"),
        ("say(scores='none')", "ended"),
        ("say(scores={})", "failed"),
        ("say(scores={m: 'x' for m in ('faithfulness', 'answer_relevancy')})", "failed"),
        (
            "say(scores={m: {'code': 'Ann'} for m in ('faithfulness', 'answer_relevancy')})",
            "failed",
        ),
        (
            "say(scores={m: {'score': True} for m in ('faithfulness', 'answer_relevancy')})",
            "failed",
        ),
        ('print(\'{"scores": {"faithfulness": {"score": NaN}}}\', flush=True)', "failed"),
    ],
)
async def test_a_child_that_fails_gives_reasons(child: str, code: str) -> None:
    """A child that dies or says nonsense is a reason of ours, never its own words."""
    assert await scorer(child).score(CASE, FakeGuard()) == nulls(code)


async def test_a_child_that_cannot_start_gives_a_reason() -> None:
    """A missing interpreter is no exception either."""
    missing = RagasScorer(FakeJudge(), FakeEmbedder(), command=["/nonexistent/python"])
    assert await missing.score(CASE, FakeGuard()) == nulls("ended")


async def test_a_child_that_never_ends_is_killed_in_time(tmp_path: Path) -> None:
    """After the timeout the metrics are null and the process is gone."""
    pid = tmp_path / "pid"
    child = f"import os, time; open({str(pid)!r}, 'w').write(str(os.getpid())); time.sleep(60)"
    started = time.monotonic()
    assert await scorer(child, timeout=1.0).score(CASE, FakeGuard()) == nulls("timeout")
    assert time.monotonic() - started < 10
    with pytest.raises(ProcessLookupError):
        os.kill(int(pid.read_text()), 0)


async def test_cancelling_kills_the_child(tmp_path: Path) -> None:
    """An asker who left leaves no process behind."""
    pid = tmp_path / "pid"
    child = f"import os, time; open({str(pid)!r}, 'w').write(str(os.getpid())); time.sleep(60)"
    task = asyncio.create_task(scorer(child).score(CASE, FakeGuard()))
    for _ in range(200):
        await asyncio.sleep(0.05)
        if pid.exists() and pid.read_text():
            break
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    with pytest.raises(ProcessLookupError):
        os.kill(int(pid.read_text()), 0)


PASS_ON = """
say(id=1, ask={ask!r}, prompt='p', texts=['t'])
said = hear()
say(scores={{m: {{'score': None, 'code': said.get('error')}} for m in
    ('faithfulness', 'answer_relevancy')}})
"""


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (BoundaryRefused(), "boundary_refused"),
        (ModelTimeout(), "model_timeout"),
        (ModelFailed(), "model_failed"),
        (KeyError("Wilma Tarnow"), "failed"),
    ],
)
async def test_a_failing_judge_is_a_code(error: Exception, code: str) -> None:
    """Our errors have their codes; a foreign one does not break the answer, nor speak."""
    child = PASS_ON.format(ask="complete")
    assert await scorer(child, FakeJudge(error)).score(CASE, FakeGuard()) == nulls(code)


async def test_the_scopes_guard_goes_with_every_request() -> None:
    """What the child asks leaves under the guard of the scope that is scored."""
    judge, guard = FakeJudge(), FakeGuard()
    await scorer(PASS_ON.format(ask="complete"), judge).score(CASE, guard)
    assert judge.asked == [("p", guard)]


async def test_a_remote_embedder_is_not_asked() -> None:
    """Answer relevancy is computed locally or not at all."""
    embedder = FakeEmbedder(remote=True)
    child = PASS_ON.format(ask="embed")
    assert await scorer(child, embedder=embedder).score(CASE, FakeGuard()) == nulls("no_embedder")
    assert embedder.asked == 0


async def test_a_child_can_ask_only_so_often() -> None:
    """A child gone wrong cannot spend the judge's budget."""
    judge = FakeJudge()
    child = """
for n in range(100):
    say(id=n, ask='complete', prompt='p')
errors = [hear().get('error') for n in range(100)]
say(scores={m: {'score': None, 'code': 'too_many'} for m in ('faithfulness', 'answer_relevancy')
    if errors.count('too_many') == 68})
"""
    assert await scorer(child, judge).score(CASE, FakeGuard()) == nulls("too_many")
    assert len(judge.asked) == MOST_ASKS


async def test_the_case_goes_over_the_pipe_and_nowhere_else(tmp_path: Path) -> None:
    """Neither arguments, environment nor a file of the child hold a word of the case."""
    seen = tmp_path / "seen"
    child = (
        f"import os\nwith open({str(seen)!r}, 'w') as out:\n"
        "    out.write(' '.join(sys.orig_argv) + str(dict(os.environ)))\nsay(scores={})"
    )
    await scorer(child).score(CASE, FakeGuard())
    written = seen.read_text()
    assert "RAGAS_DO_NOT_TRACK" in written
    assert "PERSON_1_k" not in written


def test_the_child_gets_no_key_and_no_tracing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only what a Python process needs is handed on; telemetry is off."""
    for name in ("OPENAI_API_KEY", "VEILRAG_SECRET_KEY", "DATABASE_URL", "HTTPS_PROXY"):
        monkeypatch.setenv(name, "tell-tale")
    monkeypatch.setenv("LANGSMITH_TRACING", "true")
    environment = child_environment()
    assert "tell-tale" not in environment.values()
    assert environment["LANGSMITH_TRACING"] == "false"
    assert environment["RAGAS_DO_NOT_TRACK"] == "true"
