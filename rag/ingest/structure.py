"""What a stretch of text needs told when it is read apart: header rows, leads, who wrote it.

A table's rows say nothing without their header, list items nothing without the line that
leads to them, a message of a thread nothing without its sender. Each is found as a range of
the content, never copied, so that the personal data in it is known from the document's spans.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

MOST_CHARS = 300
"""A longer header row or lead would crowd out what it is put before."""

_LINE = re.compile(r"[^\n]*\n|[^\n]+")
_ITEM = re.compile(r"\s{0,12}(?:[-*+•‣–]|\d{1,3}[.)]|\(?[a-zA-Z]\))\s+\S")
_NO_HEADER = re.compile(r"[\W\d_]*\d[\W\d_]*\Z|[^@]*@|\W*\Z")
_SENTENCE_END = re.compile(r"[.!?…][\"'”’)\]]*\s+")
_FIELD = re.compile(
    r"[>\s*]{0,12}(?:(?P<from>from|von|de|da|fra|från|van|od)"
    r"|(?P<date>date|sent|datum|gesendet|envoyé|enviado|inviato|dato|skickat|verzonden)"
    r"|(?P<subject>subject|betreff|objet|asunto|oggetto|assunto|emne|ämne|onderwerp)"
    r"|(?P<other>to|an|à|para|til|aan|cc|bcc|reply-to|importance|attachments?))"
    r"\*?[ \t]?:\*?[ \t]*\S",
    re.I,
)
_WROTE = re.compile(
    r"[>\s]{0,12}(?:On\s.{6,200}\swrote:|Am\s.{6,200}\sschrieb.{0,100}:"
    r"|Le\s.{6,200}\sécrit\s?:)\s{0,9}\Z"
)
_SEPARATOR = re.compile(
    r"[>\s]{0,12}(?:-{2,}.{3,60}-{2,}|_{5,}|={5,}|Begin forwarded.{0,40}:)\s*\Z"
)

Range = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Context:
    """``ranges`` belong before every chunk of ``[start, end)`` that does not hold them.

    What lies in ``(start, until]`` is no good place to cut: the first row or item would stand
    apart from its header or lead.
    """

    start: int
    end: int
    ranges: tuple[Range, ...]
    until: int


@dataclass(frozen=True, slots=True)
class _Row:
    start: int
    end: int
    text: str

    @property
    def blank(self) -> bool:
        return not self.text.strip()


class Structure:
    """The messages, tables and lists of a content; each kind in order, not overlapping.

    None of them reaches over a place of ``ends``, where another heading begins.
    """

    def __init__(self, content: str, ends: Sequence[int] = ()) -> None:
        self._ends = sorted(ends)
        rows = [_Row(m.start(), m.end(), m[0]) for m in _LINE.finditer(content)]
        self.messages = list(_messages(rows, len(content)))
        self._kinds = [self.messages, list(_tables(rows)), list(_lists(content, rows))]
        self._starts = [[context.start for context in kind] for kind in self._kinds]

    def told(self, start: int) -> list[Range]:
        """The ranges that a chunk beginning at ``start`` has to be told, outermost first."""
        return [
            place
            for context in self._around(start)
            for place in context.ranges
            if place[1] <= start
        ]

    def holds(self, at: int) -> bool:
        """A cut at ``at`` would part a header or lead from what it leads to."""
        return any(context.start < at <= context.until for context in self._around(at))

    def _around(self, at: int) -> Iterator[Context]:
        for kind, starts in zip(self._kinds, self._starts, strict=True):
            n = bisect_right(starts, at) - 1
            if n < 0 or at >= kind[n].end:
                continue
            if bisect_right(self._ends, kind[n].start) == bisect_right(self._ends, at):
                yield kind[n]


def _messages(rows: Sequence[_Row], end: int) -> Iterator[Context]:
    """From each block of From, Date and Subject lines, or "... wrote:", to the next."""
    found = [*_header_blocks(rows), *_attributions(rows)]
    found.sort()
    kept: list[tuple[int, tuple[Range, ...], int]] = []
    for start, ranges, until in found:
        if kept and start < kept[-1][2]:  # an attribution just before its own header block
            continue
        kept.append((start, ranges, until))
    for n, (start, ranges, until) in enumerate(kept):
        stop = kept[n + 1][0] if n + 1 < len(kept) else end
        yield Context(start, stop, ranges, until)


def _header_blocks(rows: Sequence[_Row]) -> Iterator[tuple[int, tuple[Range, ...], int]]:
    n = 0
    while n < len(rows):
        block: list[tuple[str, _Row]] = []
        while n < len(rows) and (field := _FIELD.match(rows[n].text)):
            block.append((field.lastgroup or "", rows[n]))
            n += 1
        names = [name for name, _ in block]
        if "from" in names and len({"date", "subject", "other"} & set(names)) >= 2:
            first = n - len(block)
            told = [
                _trimmed(row)
                for name, row in block
                if name in {"from", "date", "subject"} and len(row.text) <= MOST_CHARS
            ]
            body = next((row for row in rows[n:] if not row.blank), block[-1][1])
            yield _with_separator(rows, first).start, tuple(told), body.start
        n += not block


def _with_separator(rows: Sequence[_Row], first: int) -> _Row:
    """The line that sets a quoted message off belongs to it."""
    above = first - 1
    while above >= 0 and first - above <= 2 and rows[above].blank:
        above -= 1
    if above >= 0 and len(rows[above].text) <= 120 and _SEPARATOR.match(rows[above].text):
        return rows[above]
    return rows[first]


def _attributions(rows: Sequence[_Row]) -> Iterator[tuple[int, tuple[Range, ...], int]]:
    for n, row in enumerate(rows):
        if not row.text.rstrip().endswith(":") or len(row.text) > MOST_CHARS:
            continue
        if _WROTE.match(row.text):
            yield row.start, (_trimmed(row),), row.end
        elif (
            n
            and len(rows[n - 1].text) <= MOST_CHARS
            and _WROTE.match(rows[n - 1].text.rstrip("\n") + " " + row.text)
        ):  # wrapped
            yield rows[n - 1].start, ((_trimmed(rows[n - 1])[0], _trimmed(row)[1]),), row.end


def _tables(rows: Sequence[_Row]) -> Iterator[Context]:
    """Three or more lines of cells in a row, the first of them names."""
    n = 0
    while n < len(rows):
        first, kind = n, _cell_mark(rows[n].text)
        while kind and n < len(rows) and _cell_mark(rows[n].text) == kind:
            n += 1
        if kind and n - first >= 3:
            ruled = _is_rule(rows[first + 1].text)
            if ruled or _is_header(rows[first].text, kind):
                body = rows[min(n - 1, first + 1 + ruled)]
                yield Context(
                    rows[first].start, rows[n - 1].end, (_trimmed(rows[first]),), body.start
                )
        n += not kind


def _cell_mark(line: str) -> str:
    """What parts the cells of a line: ``|``, a tab, or nothing."""
    stripped = line.strip()
    if stripped.startswith("|") or " | " in line:
        return "|"
    return "\t" if "\t" in stripped else ""


def _is_rule(line: str) -> bool:
    """The line of dashes that Markdown sets under a header row."""
    return "--" in line and not line.strip(" \t\n|:+=-")


def _is_header(line: str, mark: str) -> bool:
    cells = [cell.strip() for cell in line.strip().strip("|").split(mark)]
    filled = [cell for cell in cells if cell]
    return (
        len(line) <= MOST_CHARS
        and len(filled) >= 2
        and len({cell.casefold() for cell in filled}) == len(filled)
        and not any(_NO_HEADER.match(cell) or len(cell) > 100 for cell in filled)
    )


def _lists(content: str, rows: Sequence[_Row]) -> Iterator[Context]:
    """Two or more items under a line that ends in a colon."""
    n = 0
    while n < len(rows):
        if not _ITEM.match(rows[n].text):
            n += 1
            continue
        first, items = n, 0
        while n < len(rows) and (kind := _in_list(rows, n)):
            items += kind == "item"
            n += 1
        lead = _lead(content, rows, first)
        if lead and items >= 2:
            yield Context(lead[0], rows[n - 1].end, (lead,), rows[first].start)


def _in_list(rows: Sequence[_Row], n: int) -> str:
    """An item, what continues one, or the blank line before the next; else nothing."""
    row = rows[n]
    if row.blank:
        return "blank" if n + 1 < len(rows) and _ITEM.match(rows[n + 1].text) else ""
    if _ITEM.match(row.text):
        return "item"
    return "" if rows[n - 1].blank else "more"


def _lead(content: str, rows: Sequence[_Row], first: int) -> Range | None:
    """The sentence above the first item that ends in a colon."""
    above = first - 1
    if above >= 0 and rows[above].blank:
        above -= 1
    if above < 0 or not rows[above].text.rstrip().endswith(":"):
        return None
    end = _trimmed(rows[above])[1]
    while above > 0 and not rows[above - 1].blank and end - rows[above - 1].start <= MOST_CHARS:
        above -= 1
    start = _trimmed(rows[above])[0]
    for match in _SENTENCE_END.finditer(content, start, end):
        start = match.end()
    return (start, end) if 0 < end - start <= MOST_CHARS else None


def _trimmed(row: _Row) -> Range:
    stripped = row.text.strip()
    start = row.start + len(row.text) - len(row.text.lstrip())
    return start, start + len(stripped)
