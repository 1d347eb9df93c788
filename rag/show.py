"""What a person sees in the terminal: progress of long work, an answer beside what left."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from rich.console import Console
from rich.markup import escape
from rich.panel import Panel
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from rag.types import Message, Result

Progressed = Callable[..., None]


@contextmanager
def ingest_progress(console: Console, files: int) -> Iterator[Progressed]:
    """A bar over files; the callback takes the pipeline's progress value."""
    columns = (
        TextColumn("Ingesting"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("files, {task.fields[chunks]} chunks"),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=console) as progress:
        task = progress.add_task("ingest", total=files, chunks=0)

        def on_progress(done: int, chunks: int) -> None:
            progress.update(task, completed=done, chunks=chunks)

        yield on_progress


@contextmanager
def waiting(console: Console, what: str) -> Iterator[None]:
    """A spinner while something short of a countable amount goes on."""
    with console.status(what):
        yield


def show_result(console: Console, question: str, result: Result, *, outbound: bool) -> None:
    """The answer with its sources and, if wanted, what a model was or would have been sent."""
    console.print(Panel(escape(result.answer), title=escape(question), title_align="left"))
    console.print(_sources(result))
    if result.eval_score:
        for name, score in result.eval_score.items():
            value = "-" if score.score is None else f"{score.score:.3f}"
            console.print(f"{name}: {value}" + (f" ({score.reason})" if score.reason else ""))
    if outbound:
        sent = "was sent" if result.privacy.outbound_calls else "would have been sent"
        text = _prompt(result.outbound[-1]) if result.outbound else "nothing"
        console.print(Panel(text, title=f"What a model {sent}", title_align="left", style="dim"))


def _sources(result: Result) -> Table:
    table = Table("", "source", "excerpt", box=None, pad_edge=False)
    for number, source in enumerate(result.sources, start=1):
        where = source.source + (f", page {source.page}" if source.page else "")
        table.add_row(f"[{number}]", escape(where), escape(" ".join(source.content.split())[:120]))
    return table


def _prompt(messages: Sequence[Message]) -> str:
    users = [message.content for message in messages if message.role == "user"]
    return escape("\n\n".join(users))
