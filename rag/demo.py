"""The demonstration: the sample folder, three questions, and what a model would be sent."""

from __future__ import annotations

from importlib.resources import as_file, files

from rich.console import Console

from rag.engine import Engine
from rag.settings import Settings
from rag.show import ingest_progress, show_result, waiting

COLLECTION = "demo"


async def run_demo(settings: Settings, console: Console) -> None:
    """Ingest the packaged samples, ask the three questions, print answers and prompts."""
    from rag.ingest.pipeline import find_files
    from rag.samples import QUESTIONS

    with waiting(console, "Starting the database and loading the models"):
        opening = Engine.open(settings)
        engine = await opening.__aenter__()
    try:
        with as_file(files("rag.samples") / "papers") as folder:
            found = list(find_files([folder]))
            with ingest_progress(console, len(found)) as on_progress:
                results = await engine.ingestor().ingest_many(found, COLLECTION, on_progress)
        for question in QUESTIONS[:3]:
            answer = await engine.run_graph(question.text, collection=COLLECTION)
            show_result(console, question.text, answer, outbound=True)
            console.print()
        console.print(f"{len(results)} sample documents; ask your own with: veilrag ask '...'")
    finally:
        await opening.__aexit__(None, None, None)
