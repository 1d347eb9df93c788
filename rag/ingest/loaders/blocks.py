"""A document as it is written down: paragraphs, headings, tables and pages, one after another.

Loaders of formats with a structure write into ``Blocks`` and get a ``Read`` with sections.
Rows of a table are lines ``a | b``; blocks are a blank line apart.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rag.errors import TooLarge
from rag.ingest.cleaning import clean
from rag.ingest.limits import BoundedText, Limits
from rag.ingest.loaders.read import Read
from rag.types import Section

_BLANKS = re.compile(r"[^\S\n]+")
_AROUND_LINE = re.compile(r" ?\n ?")
_MANY_LINES = re.compile(r"\n{3,}")
_SPACES = re.compile(r"\s+")
_MOST_SECTIONS = 50_000


@dataclass(frozen=True, slots=True)
class _Step:
    """A heading of the path, at ``[start, end)``."""

    level: int
    start: int
    end: int


class Blocks:
    """Text that grows block by block, within the limits."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._text = BoundedText(limits.characters)
        self._sections: list[Section] = []
        self._path: list[_Step] = []
        self._page: int | None = None
        self._changed = True

    @property
    def length(self) -> int:
        return self._text.length

    def paragraph(self, text: str, gap: int = 2) -> None:
        """Add running text; its own line breaks stay, runs of blanks become one."""
        text = tidy(text)
        if text:
            self._put(text, gap)

    def line(self, text: str) -> None:
        """A paragraph right under the one before."""
        self.paragraph(text, gap=1)

    def heading(self, text: str, level: int) -> None:
        """Words that open a section, ended by the next of the same ``level`` or a lower one."""
        text = one_line(text)
        if not text:
            return
        while self._path and self._path[-1].level >= level:
            self._path.pop()
        start = self._text.length + (2 if self._text.length else 0)
        self._path.append(_Step(level, start, start + len(text)))
        self._changed = True
        self._put(text, 2)

    def leave(self, level: int) -> None:
        """What follows stands under no heading of ``level`` or a deeper one."""
        while self._path and self._path[-1].level >= level:
            self._path.pop()
            self._changed = True

    def turn_to(self, page: int | None) -> None:
        """What follows is on this page."""
        if page is not None and page > self._limits.pages:
            raise TooLarge(f"The document has more than {self._limits.pages} pages.")
        self._page, self._changed = page, True

    def table(self, rows: Iterable[Sequence[str]]) -> None:
        """Rows as lines; those without any text are left out."""
        gap = 2
        for count, row in enumerate(rows, 1):
            self.admit_row(count, row)
            cells = [one_line(cell) for cell in row]
            if any(cells):
                self._put(" | ".join(cells).rstrip(" |"), gap)
                gap = 1

    def admit_row(self, count: int, row: Sequence[object]) -> None:
        """Raise ``TooLarge`` for too many rows or columns."""
        if count > self._limits.rows:
            raise TooLarge(f"A table has more than {self._limits.rows} rows.")
        if len(row) > self._limits.columns:
            raise TooLarge(f"A table has more than {self._limits.columns} columns.")

    def include(self, read: Read) -> None:
        """Add another document under the present heading."""
        content = clean(read.content).rstrip()
        lead = len(content) - len(content.lstrip())
        if not content.strip():
            return
        outer, page, level = list(self._path), self._page, self._level()
        self._changed = True
        self._put(content[lead:], 2)
        base = self._text.length - len(content)
        for section in read.sections:
            steps = [_Step(level, s + base, e + base) for s, e in section.headings]
            self._section(max(section.start + base, base + lead), [*outer, *steps], section.page)
        self._path, self._page, self._changed = outer, page, True

    def read(self, metadata: Mapping[str, Any], language: str | None = None) -> Read:
        return Read(self._text.whole(), tuple(self._sections), metadata, language)

    def _level(self) -> int:
        return self._path[-1].level + 1 if self._path else 1

    def _put(self, text: str, gap: int) -> None:
        if self._text.length:
            self._text.add("\n" * gap)
        if self._changed:
            self._section(self._text.length, self._path, self._page)
            self._changed = False
        self._text.add(text)

    def _section(self, start: int, path: Sequence[_Step], page: int | None) -> None:
        if self._sections and self._sections[-1].start >= start:
            self._sections.pop()
        if len(self._sections) >= _MOST_SECTIONS:
            raise TooLarge(f"The document has more than {_MOST_SECTIONS} sections.")
        headings = tuple((step.start, step.end) for step in path)
        self._sections.append(Section(start, headings, page))


def tidy(text: str) -> str:
    """Blanks collapsed, at most one empty line in a row, none at the ends."""
    text = _AROUND_LINE.sub("\n", _BLANKS.sub(" ", clean(text)))
    return _MANY_LINES.sub("\n\n", text).strip()


def one_line(text: str) -> str:
    return _SPACES.sub(" ", clean(text)).strip()
