"""The scorer: Ragas in a child process that has no way out but this one.

The child (``python -m eval score --relay``) gets one case of placeholder text on its
stdin and asks, over the same pipe, for completions and vectors. They are made here: by
the judge's guarded transport with the scope's guard, and by the local embedder. So
the originals, the keys and the network stay in this process, and no second transport
has to be trusted (I1, I7). Ragas is never imported here (I11).

A metric that fails is ``None`` with a reason out of a fixed list: neither the judge's
words nor a library's message get into it (I6).
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import math
import os
import sys
from collections.abc import AsyncIterator, Awaitable, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import rag
from rag.errors import BoundaryRefused, ModelFailed, ModelTimeout, VeilragError
from rag.ports import ChatModel, Embedder, OutboundGuard
from rag.settings import Settings
from rag.types import Message, Score, ScoreCase

METRICS = ("faithfulness", "answer_relevancy")
REASONS: Mapping[str, str] = {
    "no_judge": "no judge model is configured",
    "no_ragas": "Ragas is not installed: install veilrag[eval]",
    "no_guard": "no guard was given for the judge's requests",
    "no_embedder": "answer relevancy needs the local embedder",
    "empty_question": "the question is empty",
    "empty_answer": "the answer is empty",
    "no_context": "there is no context to judge the answer by",
    "unparsable": "the judge's reply could not be read",
    "no_number": "the metric gave no number",
    "boundary_refused": "the privacy boundary refused the judge's request",
    "model_timeout": "the judge did not answer in time",
    "model_failed": "the judge failed",
    "embedder_failed": "the embedder failed",
    "too_many": "the metric asked too often",
    "timeout": "the scorer did not finish in time",
    "ended": "the scorer ended without a result",
    "failed": "the metric failed",
}
"""Every reason there is, by its code."""

ERROR_CODES: tuple[tuple[type[VeilragError], str], ...] = (
    (BoundaryRefused, "boundary_refused"),
    (ModelTimeout, "model_timeout"),
    (ModelFailed, "model_failed"),
)
"""Our errors as the child hears of them, the narrower kinds first."""

MOST_ASKS = 32
LINE_LIMIT = 32_000_000
CHILD = (sys.executable, "-P", "-m", "eval", "score", "--relay")
"""``-P`` keeps the working directory out of the child's path: a folder named ``eval`` there
must not run in its place."""
CHILD_ENVIRONMENT = ("HOME", "LANG", "LC_ALL", "PATH", "SYSTEMROOT", "TMPDIR", "VIRTUAL_ENV")


def reason(code: str) -> str:
    return REASONS.get(code, REASONS["failed"])


def all_null(code: str) -> dict[str, Score]:
    """Every metric without a value, for one reason."""
    return {name: Score(None, reason(code)) for name in METRICS}


def child_environment() -> dict[str, str]:
    """What the child may know of this process's environment: no key, no proxy, no tracing."""
    kept = {name: os.environ[name] for name in CHILD_ENVIRONMENT if name in os.environ}
    above = str(Path(rag.__file__).parent.parent)
    return {
        **kept,
        "PYTHONPATH": above,
        "PYTHONUTF8": "1",
        "RAGAS_DO_NOT_TRACK": "true",
        "LANGSMITH_TRACING": "false",
        "LANGCHAIN_TRACING_V2": "false",
        "HF_HUB_OFFLINE": "1",
    }


def read_score(value: object) -> Score:
    """One metric as the child said it: a number, cut to 0-1, or the reason of a known code."""
    if not isinstance(value, dict):
        return Score(None, reason("failed"))
    number = value.get("score")
    if isinstance(number, int | float) and not isinstance(number, bool) and math.isfinite(number):
        return Score(min(1.0, max(0.0, float(number))))
    return Score(None, reason(str(value.get("code"))))


class RagasScorer:
    """Implements ``Scorer``. ``timeout``: seconds for one case, waiting for its turn included."""

    def __init__(
        self,
        judge: ChatModel | None,
        embedder: Embedder | None,
        *,
        timeout: float = 300.0,
        turn: asyncio.Semaphore | None = None,
        command: Sequence[str] = CHILD,
    ) -> None:
        self._judge = judge
        self._embedder = embedder
        self._timeout = timeout
        self._command = command
        self._turn = turn or asyncio.Semaphore(1)  # a child with Ragas in it weighs 220 MB

    def _missing(self, guard: OutboundGuard | None) -> str | None:
        if self._judge is None:
            return "no_judge"
        if find_spec("ragas") is None:
            return "no_ragas"
        return "no_guard" if guard is None else None

    async def score(
        self, case: ScoreCase, guard: OutboundGuard | None = None
    ) -> Mapping[str, Score]:
        """Every metric of ``METRICS``. Never raises but for cancellation, which ends the child."""
        code = self._missing(guard)
        if code is not None or self._judge is None or guard is None:
            return all_null(code or "failed")
        try:
            async with asyncio.timeout(self._timeout), self._turn, _child(self._command) as process:
                return await _Conversation(process, self._judge, self._embedder, guard).run(case)
        except TimeoutError:
            return all_null("timeout")
        except (OSError, ValueError):  # gone, or speaking no JSON
            return all_null("ended")


class ConfiguredScorer:
    """Implements ``Scorer`` with the judge that the settings name, opened for each case.

    The judge is ``judge_model``, or the chat model where none is named; the embedder is
    the local one, whatever embeds the documents. Both open in milliseconds beside the
    seconds that Ragas takes, and cost nothing while nobody asks for scores.
    """

    def __init__(self, settings: Settings) -> None:
        judge = settings.judge_model or settings.chat_model
        self._settings = settings.model_copy(update={"chat_model": judge, "embeddings": "local"})
        self._turn = asyncio.Semaphore(1)

    async def score(
        self, case: ScoreCase, guard: OutboundGuard | None = None
    ) -> Mapping[str, Score]:
        """Every metric of ``METRICS``; none when no judge model is configured."""
        if not self._settings.has_model:
            return all_null("no_judge")
        from rag.models.chat import open_chat
        from rag.models.embeddings import open_embedder

        async with contextlib.AsyncExitStack() as stack:
            try:
                judge = await stack.enter_async_context(open_chat(self._settings))
                embedder = await stack.enter_async_context(open_embedder(self._settings))
            except VeilragError:
                return all_null("failed")
            return await RagasScorer(judge, embedder, turn=self._turn).score(case, guard)


def open_scorer(settings: Settings) -> ConfiguredScorer:
    """The scorer of these settings. Opens nothing yet (I11)."""
    return ConfiguredScorer(settings)


@contextlib.asynccontextmanager
async def _child(command: Sequence[str]) -> AsyncIterator[asyncio.subprocess.Process]:
    """The scorer's process; killed and waited for however the block ends."""
    process = await asyncio.create_subprocess_exec(
        *command,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        env=child_environment(),
        limit=LINE_LIMIT,
    )
    try:
        yield process
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.wait()


class _Conversation:
    """One case with one child: what it asks for is answered, until it has the scores."""

    def __init__(
        self,
        process: asyncio.subprocess.Process,
        judge: ChatModel,
        embedder: Embedder | None,
        guard: OutboundGuard,
    ) -> None:
        if process.stdin is None or process.stdout is None:
            raise OSError("the scorer has no pipes")
        self._in, self._out = process.stdin, process.stdout
        self._judge, self._embedder, self._guard = judge, embedder, guard
        self._asks = 0

    async def run(self, case: ScoreCase) -> dict[str, Score]:
        await self._send(
            {
                "question": case.question,
                "answer": case.answer,
                "contexts": list(case.contexts),
                "reference": case.reference,
                "metrics": list(METRICS),
            }
        )
        answering: set[asyncio.Task[None]] = set()
        try:
            while line := await self._out.readline():
                said = json.loads(line)
                if not isinstance(said, dict):
                    break
                if isinstance(said.get("scores"), dict):
                    return {name: read_score(said["scores"].get(name)) for name in METRICS}
                answering.add(asyncio.create_task(self._answer(said)))
            return all_null("ended")
        finally:
            for task in answering:
                task.cancel()
            await asyncio.gather(*answering, return_exceptions=True)

    async def _send(self, value: Mapping[str, Any]) -> None:
        self._in.write(json.dumps(value, allow_nan=False).encode() + b"\n")
        await self._in.drain()

    async def _answer(self, said: Mapping[str, Any]) -> None:
        self._asks += 1
        if self._asks > MOST_ASKS:
            answer = {"error": "too_many"}
        elif said.get("ask") == "complete":
            answer = await self._checked(self._complete(str(said.get("prompt", ""))))
        elif said.get("ask") == "embed":
            answer = await self._checked(self._embed(said.get("texts")))
        else:
            answer = {"error": "failed"}
        with contextlib.suppress(ConnectionError):
            await self._send({"id": said.get("id"), **answer})

    async def _checked(self, work: Awaitable[dict[str, Any]]) -> dict[str, Any]:
        """What ``work`` gives, or the code of its error: a score never breaks an answer."""
        results = await asyncio.gather(work, return_exceptions=True)
        result = results[0]
        if not isinstance(result, BaseException):
            return result
        for kind, code in ERROR_CODES:
            if isinstance(result, kind):
                return {"error": code}
        return {"error": "failed"}

    async def _complete(self, prompt: str) -> dict[str, Any]:
        said = await self._judge.complete([Message("user", prompt)], self._guard)
        return {"text": said.text}

    async def _embed(self, texts: object) -> dict[str, Any]:
        """Vectors of the local embedder. A remote one is not asked: the judge is outside enough."""
        if self._embedder is None or self._embedder.remote:
            return {"error": "no_embedder"}
        if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
            return {"error": "embedder_failed"}
        vectors = await self._embedder.embed(texts)
        return {"vectors": vectors.astype(float).tolist()}
