"""The time of one question apart from the model, against the plain pipeline.

**ask** is ``Engine.run_graph``, whole: the question is scanned, protected, rewritten,
searched for with each rewrite, the evidence protected by its stored spans and the known
forms, the prompts checked by the guard, the answer restored and scanned. The model is
replaced by one that answers at once; the time it takes to make up its reply is taken
off, the guard's check of its requests is not.

**plain** is what is done without stored spans: the same detector scans the question and
each passage of the final ``top_k`` when asked. It gets the same rewrites for nothing,
searches the same store with the same embedder side by side, and is charged neither for
placeholders nor for a guard, a graph, restoring or scanning an answer. **plain, every
passage** scans each distinct passage that the searches brought, as a pipeline does that
protects in the retriever.

All are taken in one process in one run, in turn, after a round that does not count; the
ratio is that of the medians, and the median of the ratios question by question. A
question that the boundary refuses in that round is left out, and counted. Beside
the time by the clock stands the processor time of this process: the database's own is
not in it, but neither is the load of the machine.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from eval.material import Material, open_material
from eval.report import machine
from eval.statistics import mean, median, percentile
from rag.errors import BoundaryRefused
from rag.ports import OutboundGuard
from rag.settings import load_settings
from rag.types import Completion, Hit, Message

if TYPE_CHECKING:
    from rag.engine import Engine

COLLECTION = "bench"
TARGET = 5.0
WORDINGS = ("In short: {}", "{} Say what the papers hold.", "Looking for this: {}")


class InstantModel:
    """Answers at once, by copying; ``spent`` is what that took, in seconds, guard apart."""

    name, trusted = "instant", False

    def __init__(self) -> None:
        self.spent = 0.0

    async def complete(self, messages: Sequence[Message], guard: OutboundGuard) -> Completion:
        said = [{"role": message.role, "content": message.content} for message in messages]
        body = json.dumps({"model": self.name, "messages": said}).encode()
        headers = [("content-type", "application/json")]
        guard.check("POST", "http://model.invalid/v1/chat/completions", headers, body)
        started = time.perf_counter()
        reply = compose(messages[-1].content)
        self.spent += time.perf_counter() - started
        return Completion(reply)


def compose(prompt: str) -> str:
    """Three wordings of the question, or the opening of the first passage with its citation."""
    before, _, question = prompt.rpartition("Question: ")
    if not before.startswith("Context:"):
        return "\n".join(wording.format(question.strip()) for wording in WORDINGS)
    passage = before.partition("[1] ")[2].partition("\n\n[2] ")[0]
    return f"{passage[:300].strip()} [1]"


@dataclass(frozen=True, slots=True)
class Moment:
    """Now, by the clock and by the processor time of this process."""

    clock: float = field(default_factory=time.perf_counter)
    processor: float = field(default_factory=time.process_time)


@dataclass(slots=True)
class Taken:
    """Seconds by what was timed, in the order of the questions asked: clock and processor."""

    seconds: dict[str, list[float]] = field(default_factory=dict)
    processor: dict[str, list[float]] = field(default_factory=dict)
    passages: list[int] = field(default_factory=list)
    characters: list[int] = field(default_factory=list)
    refused: int = 0

    def add(self, name: str, start: Moment, end: Moment, off: float = 0.0) -> None:
        """What lies between two moments, ``off`` seconds taken off."""
        self.seconds.setdefault(name, []).append(end.clock - start.clock - off)
        self.processor.setdefault(name, []).append(end.processor - start.processor - off)


@dataclass(frozen=True, slots=True)
class Bench:
    """One engine, its documents, and how it is asked."""

    engine: Engine
    rewrites: int
    top_k: int

    async def ask(self, question: str, taken: Taken) -> tuple[str, ...]:
        """Time ``/ask`` with the instant model; gives the rewrites that were searched for."""
        model = InstantModel()
        engine = replace(self.engine, chat=model)
        started = Moment()
        result = await engine.run_graph(question, self.rewrites, self.top_k, collection=COLLECTION)
        taken.add("ask", started, Moment(), off=model.spent)
        return result.rewrites

    async def ask_extractive(self, question: str, taken: Taken) -> None:
        """Time ``/ask`` as it is without any model, the quoting of sentences included."""
        engine = replace(self.engine, chat=None)
        started = Moment()
        await engine.run_graph(question, self.rewrites, self.top_k, collection=COLLECTION)
        taken.add("ask_extractive", started, Moment())

    async def plain(self, question: str, rewrites: Sequence[str], taken: Taken) -> None:
        """Time retrieval and the scans of question and passages."""
        started = Moment()
        await self._scan(question)
        scanned = Moment()
        final, every = await self._retrieve([question, *rewrites])
        searched = Moment()
        for hit in final:
            await self._scan(hit.chunk.text)
        done = Moment()
        rest = [hit for hit in every if hit.chunk.id not in {h.chunk.id for h in final}]
        for hit in rest:
            await self._scan(hit.chunk.text)
        taken.add("plain", started, done)
        taken.add("plain_every", started, Moment())
        taken.add("scan_question", started, scanned)
        taken.add("search", scanned, searched)
        taken.add("scan_passages", searched, done)
        taken.passages.append(len(every))
        taken.characters += [len(hit.chunk.text) for hit in final]

    async def _scan(self, text: str) -> None:
        await asyncio.to_thread(self.engine.detector.detect, text)

    async def _retrieve(self, queries: Sequence[str]) -> tuple[list[Hit], list[Hit]]:
        """The final ``top_k``, and each distinct hit of all queries."""
        from rag.graphs.retriever.fusion import best_rank

        results = await asyncio.gather(*(self._search(query) for query in queries))
        distinct = {hit.chunk.id: hit for result in results for hit in result}
        return best_rank(results, self.top_k), list(distinct.values())

    async def _search(self, query: str) -> list[Hit]:
        from rag.graphs.retriever.fusion import fuse
        from rag.graphs.retriever.nodes import CANDIDATES

        engine = self.engine
        search = await engine.store.search(
            engine.store.default_tenant, [COLLECTION], engine.embedder.space
        )
        [vector] = await engine.embedder.embed([query])
        limit = self.top_k * CANDIDATES
        rankings = await asyncio.gather(
            search.dense(vector, limit, {}), search.lexical(query, limit, {})
        )
        return fuse(rankings)[: self.top_k]

    async def round(self, questions: Sequence[str], first: int, taken: Taken) -> None:
        """Every question once, the three in turn; who comes first changes with ``first``."""
        for number, question in enumerate(questions, first):
            rewrites = await self.ask(question, taken) if number % 2 == 0 else ()
            if not rewrites:
                wordings = WORDINGS[: self.rewrites]
                rewrites = tuple(wording.format(question) for wording in wordings)
            await self.plain(question, rewrites, taken)
            if number % 2 == 1:
                await self.ask(question, taken)
            await self.ask_extractive(question, taken)

    async def answered(self, questions: Sequence[str]) -> list[str]:
        """Those that the boundary lets through, each asked once: the round that warms up."""
        kept = []
        for question in questions:
            with contextlib.suppress(BoundaryRefused):
                await self.round([question], 0, Taken())
                kept.append(question)
        return kept


async def ingest(engine: Engine, material: Material) -> int:
    """Ingest the material; the number of its chunks."""
    results = await engine.ingestor().ingest_many(list(material.files), COLLECTION)
    failed = [result.source for result in results if result.status == "failed"]
    if failed:
        raise SystemExit(f"{len(failed)} documents could not be ingested")
    return sum(result.chunks for result in results)


async def run(options: argparse.Namespace) -> dict[str, Any]:
    """Measure in a temporary database; the figures as JSON."""
    from rag.engine import Engine

    with (
        tempfile.TemporaryDirectory(prefix="veilrag-bench-") as folder,
        open_material(options.data, options.questions) as material,
    ):
        settings = load_settings(data_dir=Path(folder), _env_file=None).model_copy(
            update={"database_url": None, "embeddings": "local"}
        )
        async with Engine.open(settings) as engine:
            chunks = await ingest(engine, material)
            bench = Bench(engine, options.rewrites, options.top_k)
            questions = await bench.answered(material.questions)
            taken = Taken(refused=len(material.questions) - len(questions))
            for number in range(options.rounds):
                await bench.round(questions, number, taken)
    return figures(taken, material, chunks, options)


def summary(seconds: Sequence[float]) -> dict[str, float | None]:
    """Milliseconds: median, p95, mean, least."""
    ms = [1_000 * value for value in seconds]
    return {
        "median": median(ms),
        "p95": percentile(ms, 95),
        "mean": mean(ms),
        "min": min(ms, default=None),
    }


def ratio(plain: Sequence[float], ask: Sequence[float]) -> dict[str, float | None]:
    """How many times ``plain`` costs ``ask``: of the medians, and the median of the pairs."""
    middle, other = median(plain), median(ask)
    of_medians = middle / other if middle and other else None
    pairs = [p / a for p, a in zip(plain, ask, strict=True)]
    return {"of_medians": of_medians, "median_of_pairs": median(pairs), "p5": percentile(pairs, 5)}


def figures(
    taken: Taken, material: Material, chunks: int, options: argparse.Namespace
) -> dict[str, Any]:
    """Everything that was measured, and whether the target is met."""
    seconds: Mapping[str, Sequence[float]] = taken.seconds
    ratios = {
        f"{plain}/{ask}": ratio(seconds[plain], seconds[ask])
        for plain in ("plain", "plain_every")
        for ask in ("ask", "ask_extractive")
    }
    reached = ratios["plain/ask"]["of_medians"]
    return {
        "benchmark": "ask",
        "material": material.name,
        "documents": len(material.files),
        "chunks": chunks,
        "questions": len(material.questions) - taken.refused,
        "questions_refused": taken.refused,
        "rounds": options.rounds,
        "rewrites": options.rewrites,
        "top_k": options.top_k,
        "passage_characters": median(taken.characters),
        "passages_every": median(taken.passages),
        "milliseconds": {name: summary(values) for name, values in seconds.items()},
        "processor_milliseconds": {name: summary(v) for name, v in taken.processor.items()},
        "ratio": ratios,
        "processor_ratio": ratio(taken.processor["plain"], taken.processor["ask"]),
        "target": TARGET,
        "met": reached is not None and reached >= TARGET,
        "machine": machine(),
    }


LABELS = {
    "ask": "ask, model's time taken off",
    "ask_extractive": "ask, without a model",
    "plain": "plain: scan question and final passages",
    "plain_every": "plain: scan every passage retrieved",
    "scan_question": "  of it: scan of the question",
    "search": "  of it: search",
    "scan_passages": "  of it: scan of the final passages",
}


def show(figures: Mapping[str, Any]) -> None:
    """The figures as a table."""
    from rich.console import Console
    from rich.table import Table

    title = (
        f"One question apart from the model: {figures['questions']} questions, "
        f"{figures['rounds']} rounds, {figures['rewrites']} rewrites, top {figures['top_k']}"
    )
    table = Table("", "median ms", "p95 ms", "processor ms", title=title)
    for name, label in LABELS.items():
        row, processor = figures["milliseconds"][name], figures["processor_milliseconds"][name]
        cells = (row["median"], row["p95"], processor["median"])
        table.add_row(label, *(f"{cell:.1f}" for cell in cells))
    console = Console()
    console.print(table)
    for name, value in figures["ratio"].items():
        console.print(
            f"{name}: {value['of_medians']:.1f} times (pairs: median "
            f"{value['median_of_pairs']:.1f}, 5th percentile {value['p5']:.1f})"
        )
    if figures["questions_refused"]:
        console.print(f"left out, refused by the boundary: {figures['questions_refused']}")
    console.print(
        f"plain/ask by processor time: {figures['processor_ratio']['of_medians']:.1f} times"
    )
    console.print(f"target {figures['target']}: {'met' if figures['met'] else 'missed'}")
