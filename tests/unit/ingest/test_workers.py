"""Analysing processes: real ones, with a detector that a text can bring down."""

from __future__ import annotations

import asyncio
import os
from functools import partial

import pytest

from rag.errors import DetectorFailed, Unavailable
from rag.ingest.analysis import Cut, Task
from rag.ingest.workers import Recipe, Workers
from rag.testing.fakes import TroubledDetector

CUT = Cut(tokens=100, chars=100, overlap=0)
RECIPE = Recipe(partial(TroubledDetector, ["Ottoline Farouk"]), None, b"k" * 32)


def workers(recipe: Recipe = RECIPE, *, timeout: float = 10.0, count: int = 1) -> Workers:
    return Workers(recipe, CUT, count, timeout, version="fake-1")


async def test_a_task_is_analysed_elsewhere() -> None:
    """Spans, chunks and forms come back as they would be found here."""
    async with workers() as running:
        found = await running.run(Task("Ottoline Farouk has the keys.", "\nname.txt"))
    assert [(span.start, span.end) for span in found.spans] == [(0, 15)]
    assert [(draft.start, draft.end) for draft in found.drafts] == [(0, 29)]
    assert found.aliases


async def test_a_text_that_ends_its_process_fails_alone() -> None:
    """It is tried twice, then refused; the next one gets a new process."""
    async with workers() as running:
        with pytest.raises(DetectorFailed, match="twice"):
            await running.run(Task("END-THE-PROCESS"))
        assert (await running.run(Task("Ottoline Farouk"))).spans


async def test_a_killed_process_is_replaced_and_its_task_tried_again() -> None:
    """Whoever killed it: nothing is lost."""
    async with workers() as running:
        await running.run(Task("a"))
        [worker] = running._all
        os.kill(worker.pid, 9)
        assert (await running.run(Task("Ottoline Farouk"))).spans


async def test_a_task_out_of_time_fails_closed() -> None:
    """Its process is ended, the text is not stored unsearched (I2)."""
    async with workers(timeout=0.3) as running:
        with pytest.raises(DetectorFailed, match="in time"):
            await running.run(Task("TAKE-LONG"))
        assert not running._all


async def test_another_detector_is_refused() -> None:
    """What a worker finds is stored under the parent's version: it must be the same (I10)."""
    recipe = Recipe(partial(TroubledDetector, [], "fake-2"), None, b"k" * 32)
    async with workers(recipe) as running:
        with pytest.raises(Unavailable, match="another detector"):
            await running.run(Task("a"))


async def test_a_process_that_cannot_start_is_unavailable() -> None:
    """A recipe that ends the process gives an error, not a wait."""
    recipe = Recipe(RECIPE.detector, None, b"k" * 32, prepare=partial(os._exit, 4))
    async with workers(recipe) as running:
        with pytest.raises(Unavailable):
            await running.run(Task("a"))


async def test_no_secret_is_in_a_workers_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keys and passwords stay with the parent; the forms' key comes over the pipe."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-quillfeather")
    monkeypatch.setenv("DATABASE_URL", "postgresql://u:quillfeather@db/x")
    async with workers() as running:
        await running.run(Task("a"))
        [worker] = running._all
        with open(f"/proc/{worker.pid}/environ", "rb") as file:  # noqa: ASYNC230
            environment = file.read()
    assert b"quillfeather" not in environment


async def test_processes_end_with_the_block() -> None:
    """Also when tasks are under way."""
    async with workers(count=2) as running:
        await asyncio.gather(running.run(Task("a")), running.run(Task("b")))
        pids = [worker.pid for worker in running._all]
        waiting = asyncio.create_task(running.run(Task("TAKE-LONG")))
        await asyncio.sleep(0.2)
        waiting.cancel()
    assert pids
    assert not any(os.path.exists(f"/proc/{pid}") for pid in pids)  # noqa: ASYNC240
