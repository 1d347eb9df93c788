"""The ``veilrag`` command: ingest, ask, serve, migrate, purge, doctor, demo.

A thin door: it opens the engine, shows progress and prints. Errors come out as one
line with their code; a person's text is printed to the asker alone.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer
from rich.console import Console
from rich.markup import escape

from rag.errors import InvalidInput, VeilragError
from rag.settings import Settings, load_settings

if TYPE_CHECKING:
    from rag.doctor import Finding
    from rag.types import Ingested, Result

T = TypeVar("T")

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help="Ask your own documents; no detected direct identifier reaches a model provider.",
)
out = Console()
err = Console(stderr=True)

Collection = Annotated[str, typer.Option(help="The named set of documents.")]


@app.command()
def ingest(
    paths: Annotated[list[Path], typer.Argument(help="Files and folders.")],
    collection: Collection = "default",
    sync: Annotated[
        bool, typer.Option("--sync", help="Also delete what is gone from these folders.")
    ] = False,
) -> None:
    """Read, detect, cut, embed and store documents; unchanged ones are left alone.

    With --sync the collection is kept in step with the folders: documents that came from one of
    them and are no longer there are deleted. A run that was broken off goes on where it stopped.
    """
    results = _run(partial(_ingest, paths=paths, collection=collection, sync=sync))
    _print_ingested(results)
    if any(result.status == "failed" for result in results):
        raise typer.Exit(1)


@app.command()
def ask(
    question: str,
    collection: Collection = "default",
    retriever: Annotated[str, typer.Option(help="dense or hybrid.")] = "hybrid",
    rewrites: Annotated[int, typer.Option(help="Further wordings to search with.")] = 3,
    top_k: Annotated[int, typer.Option(help="Passages to answer from.")] = 5,
    evaluate: Annotated[bool, typer.Option(help="Score the answer with Ragas.")] = False,
    show_outbound: Annotated[
        bool, typer.Option(help="Also print what a model was, or would have been, sent.")
    ] = False,
) -> None:
    """Answer a question from the documents."""

    async def answer(settings: Settings) -> Result:
        from rag.engine import Engine

        async with Engine.open(settings) as engine:
            return await engine.run_graph(
                question,
                rewrites,
                top_k,
                with_evaluation=evaluate,
                retriever=retriever,
                collection=collection,
            )

    from rag.show import show_result

    show_result(out, question, _run(answer), outbound=show_outbound)


@app.command()
def serve(
    host: Annotated[str, typer.Option(help="Without API keys, loopback only.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="0 takes a free one.")] = 8000,
) -> None:
    """Serve the HTTP API; prints its URL. Ready when GET /readyz says 200."""
    from api.serve import serve as run
    from rag.engine import seal

    with _errors_as_lines():
        settings = load_settings()
        seal(settings)
        run(settings, host, port)


@app.command()
def migrate() -> None:
    """Bring the database's schema up to date."""
    from rag.store import migrate_database

    applied = _run(migrate_database)
    out.print("\n".join(f"applied {name}" for name in applied) or "The schema is up to date.")


@app.command()
def purge() -> None:
    """Take deleted documents out of the database's files."""
    from rag.store import purge_database

    moved = _run(purge_database).log
    out.print("Deleted documents are gone from the data files.")
    if not moved:
        out.print("The write-ahead log could not be moved on: the server overwrites it in time.")


@app.command()
def doctor(
    as_json: Annotated[bool, typer.Option("--json", help="For programs.")] = False,
) -> None:
    """Ask every part whether it works; say what to do where one does not."""
    from rag.doctor.report import as_json as report
    from rag.doctor.report import show, worst

    findings = _examined()
    if as_json:
        out.print_json(data=report(findings))
    else:
        show(out, findings)
    if worst(findings) == "fail":
        raise typer.Exit(1)


def _examined() -> list[Finding]:
    """All findings; settings that cannot be read are one of them."""
    from rag.doctor import Finding, examine
    from rag.engine import seal

    async def collected(settings: Settings) -> list[Finding]:
        return [finding async for finding in examine(settings)]

    try:
        settings = load_settings()
        seal(settings)
        return asyncio.run(collected(settings))
    except VeilragError as error:
        return [Finding.fail("settings", "settings", error.message)]


@app.command()
def demo() -> None:
    """Ingest the sample folder, ask three questions, show what a model would be sent."""
    from rag.demo import run_demo

    _run(partial(run_demo, console=out))


async def _ingest(
    settings: Settings, *, paths: list[Path], collection: str, sync: bool
) -> list[Ingested]:
    from rag.engine import Engine
    from rag.ingest.pipeline import find_files
    from rag.ingest.sync import found_in
    from rag.show import ingest_progress

    missing = [path for path in paths if not path.exists()]
    if missing:
        raise InvalidInput(f"No such file or folder: {', '.join(map(str, missing))}.")
    base = Path.cwd()
    files, there = found_in(paths, base) if sync else (list(find_files(paths, base)), {})
    if not files and not sync:
        raise InvalidInput("There is no file to ingest.")
    async with Engine.open(settings) as engine:
        with ingest_progress(err, len(files)) as on_progress:
            return await engine.ingest_files(files, collection, there, on_progress)


def _print_ingested(results: list[Ingested]) -> None:
    for result in results:
        if result.status == "failed":
            err.print(f"[red]failed[/] {escape(result.source)}: {result.error}")
    kinds = ("ready", "replaced", "unchanged", "deleted", "failed")
    counts = {kind: sum(result.status == kind for result in results) for kind in kinds}
    chunks = sum(result.chunks for result in results)
    summary = ", ".join(f"{count} {kind}" for kind, count in counts.items() if count)
    out.print(f"{len(results)} documents: {summary or 'none'}; {chunks} chunks.")


def _run(work: Callable[[Settings], Coroutine[Any, Any, T]]) -> T:
    """``work`` with the settings, in a process whose only way out is the guarded one."""
    from rag.engine import seal

    with _errors_as_lines():
        settings = load_settings()
        seal(settings)
        return asyncio.run(work(settings))


class _errors_as_lines:
    """Our own errors end the command with one line and status 1, never a traceback."""

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: type | None, error: BaseException | None, trace: object) -> None:
        if isinstance(error, VeilragError):
            err.print(f"[red]{error.code}[/]: {escape(error.message)}")
            raise typer.Exit(1) from None


def main() -> None:
    """The entry point of the ``veilrag`` command."""
    app()


if __name__ == "__main__":
    main()
