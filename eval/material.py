"""What a benchmark works on: the packaged samples, or a folder and a list of questions."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.resources import as_file, files
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rag.ingest.files import File


@dataclass(frozen=True, slots=True)
class Material:
    """Files to ingest and questions to ask of them."""

    name: str
    files: tuple[File, ...]
    questions: tuple[str, ...]


@contextmanager
def open_material(data: Path | None, questions: Path | None) -> Iterator[Material]:
    """The samples, or ``data`` with the lines of ``questions``."""
    from rag.ingest.files import find_files

    if data is not None:
        if questions is None:
            raise SystemExit("--data needs --questions: a file with one question a line")
        asked = tuple(line for line in questions.read_text("utf-8").splitlines() if line.strip())
        yield Material(data.name, tuple(find_files([data])), asked)
        return
    from rag.samples import QUESTIONS

    with as_file(files("rag.samples") / "papers") as folder:
        asked = tuple(question.text for question in QUESTIONS)
        yield Material("samples", tuple(find_files([folder])), asked)
