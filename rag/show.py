"""What a person sees in the terminal: progress of long work, an answer beside what left."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich.console import Console
from rich.markup import escape
from rich.panel import Panel
from rich.progress import (
    BarColumn,
    DownloadColumn,
    ProgressColumn,
    Task,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.progress import Progress as RichProgress
from rich.table import Table
from rich.text import Text

from rag.types import Message, Result

if TYPE_CHECKING:
    from rag.ingest.batch import OnProgress, Progress


class _Rate(ProgressColumn):
    """Chunks a second since the beginning."""

    def render(self, task: Task) -> Text:
        seconds = task.elapsed or 0.0
        rate = task.fields["chunks"] / seconds if seconds else 0.0
        return Text(f"{task.fields['chunks']:,} chunks, {rate:,.0f}/s")


class _Files(ProgressColumn):
    """Files done, and how many of them failed."""

    def render(self, task: Task) -> Text:
        done, all_files, failed = (task.fields[k] for k in ("files", "all_files", "failed"))
        told = f"{done:,}/{all_files:,} files"
        return Text(told + (f", {failed:,} failed" if failed else ""))


@contextmanager
def ingest_progress(console: Console, files: int) -> Iterator[OnProgress]:
    """Files, bytes, chunks a second and the time left, counted in bytes."""
    columns = (
        *(TextColumn("Ingesting"), BarColumn(), _Files(), DownloadColumn(), _Rate()),
        *(TimeElapsedColumn(), TextColumn("left"), TimeRemainingColumn(elapsed_when_finished=True)),
    )
    with RichProgress(*columns, console=console) as bars:
        task = bars.add_task("ingest", total=None, files=0, all_files=files, failed=0, chunks=0)

        def on_progress(now: Progress) -> None:
            bars.update(
                task,
                completed=now.bytes,
                total=now.all_bytes,
                files=now.files,
                failed=now.failed,
                chunks=now.chunks,
            )

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
