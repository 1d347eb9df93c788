"""Cuts a document into chunks along its structure, never inside a span of personal data.

A chunk stays within one section (one heading path, one page) and one message of a thread.
Where that is too long it is cut at the strongest border in reach: a blank line, a row or
list item, the end of a sentence, of a line, a word; not between a table's header or a list's
lead and what follows where there is another. Chunks of a table, a list or a message that
begin after its header row, lead or sender have that among their headings. No border lies
inside a span or a character that takes several code points. Every character that is not
blank is in some chunk.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

from rag.ingest.structure import Structure
from rag.types import ChunkDraft, Document, Section, Span

_BLANK_LINE = re.compile(r"\n[^\S\n]*\n\s*")
_ROW = re.compile(
    r"""(?<=[.!?:;|"'”)\]])[^\S\n]*\n\s*    # the line before is complete
    | \n(?=[^\S\n]*                       # or the next is an item, or a field
        (?:[-*+•|>#]|\d+[.)]|[^\s:][^:\n]{0,60}:\s))""",
    re.X,
)
_SENTENCE = re.compile(r"""(?<!\b[A-Z])[.!?…]["'”’)\]]*\s+|[。！？]\s*""")
_LINE = re.compile(r"\n\s*")
_WORD = re.compile(r"\s+")
_STRUCTURED = (_BLANK_LINE, _ROW, _SENTENCE, _LINE)
_JOINERS = frozenset("\u200c\u200d")
_MOST_MARKS = 30
"""Of combining marks in a row: past what UAX #15 calls stream-safe, no border is promised."""


TokenPlaces = Callable[[str], Sequence[int]]
"""Where the tokens of a text begin, in order; offsets count characters."""


@dataclass(frozen=True, slots=True)
class Size:
    """How long a chunk may be: in characters and, where ``places`` are known, in tokens.

    ``overlap`` is how many characters neighbours within a section may share.
    """

    chars: int
    overlap: int = 0
    tokens: int | None = None
    places: Sequence[int] = field(default=(), repr=False)

    def reach(self, begins: int, times: int = 1) -> int:
        """The end of the longest chunk that begins there (``times`` that long)."""
        chars = begins + max(1, self.chars) * times
        if self.tokens is None:
            return chars
        last = bisect_left(self.places, begins) + self.tokens * times
        return min(chars, self.places[last]) if last < len(self.places) else chars


def split(
    document: Document,
    spans: Sequence[Span],
    chunk_chars: int,
    overlap: int,
    *,
    tokens: int | None = None,
    places: TokenPlaces | None = None,
    core: tuple[int, int] | None = None,
) -> list[ChunkDraft]:
    """Chunks in order, numbered from 0; ``spans`` may reach past the content.

    No chunk is longer than ``chunk_chars`` characters and, with ``places``, ``tokens`` tokens,
    unless a span is. Neighbours within a section share up to ``overlap`` characters. With a
    ``core`` only that stretch is cut into chunks; one ends behind a span over its edge.
    """
    content = document.content
    structure = Structure(content, _ends(document.sections))
    borders = _Borders(content, spans, structure)
    size = Size(max(1, chunk_chars), min(overlap, max(1, chunk_chars) // 2))
    if tokens is not None and places is not None:
        size = replace(size, tokens=max(1, tokens), places=places(content))
    drafts: list[ChunkDraft] = []
    for region in _clipped(_regions(document, borders), borders, core):
        section = region.section
        for start, end in _cut(region, borders, size):
            headings = (*section.headings, *structure.told(start))
            drafts.append(ChunkDraft(len(drafts), start, end, headings, section.page))
    return drafts


def _ends(sections: Sequence[Section]) -> list[int]:
    """Where the heading path changes."""
    return [b.start for a, b in pairwise(sections) if a.headings != b.headings]


def _clipped(
    regions: Sequence[_Region], borders: _Borders, core: tuple[int, int] | None
) -> Iterator[_Region]:
    """What of the regions lies in the core."""
    if core is None:
        yield from regions
        return
    low, high = (borders.at_or_after(edge) for edge in core)
    for region in regions:
        start, end = max(low, region.start), min(high, region.end)
        if start < end:
            yield replace(region, start=start, end=end)


@dataclass(frozen=True, slots=True)
class _Region:
    """What one section holds for."""

    start: int
    end: int
    section: Section


class _Borders:
    """Where a text may be cut."""

    def __init__(self, text: str, spans: Iterable[Span], structure: Structure) -> None:
        self.text = text
        self.structure = structure
        self._starts: list[int] = []
        self._ends: list[int] = []
        for span in sorted(spans):
            if span.start >= min(span.end, len(text)):
                continue
            if self._ends and span.start < self._ends[-1]:
                self._ends[-1] = max(self._ends[-1], min(span.end, len(text)))
            else:
                self._starts.append(span.start)
                self._ends.append(min(span.end, len(text)))

    def around(self, at: int) -> tuple[int, int] | None:
        """The stretch of spans that ``at`` lies strictly inside."""
        n = bisect_right(self._starts, at) - 1
        if n >= 0 and self._starts[n] < at < self._ends[n]:
            return self._starts[n], self._ends[n]
        return None

    def allows(self, at: int) -> bool:
        """A chunk may end, and the next begin, at ``at``."""
        return self.around(at) is None and not self._in_character(at)

    def _in_character(self, at: int) -> bool:
        text = self.text
        if not 0 < at < len(text):
            return False
        after, before = text[at], text[at - 1]
        if "\ud800" <= before <= "\udbff" and "\udc00" <= after <= "\udfff":
            return True
        if not (_continues(after) or before in _JOINERS):
            return False
        run = text[max(0, at - _MOST_MARKS) : at]
        return len(run) < _MOST_MARKS or not all(map(_continues, run))

    def at_or_after(self, at: int) -> int:
        """The first border from ``at`` on."""
        while not self.allows(at):
            stretch = self.around(at)
            at = stretch[1] if stretch else at + 1
        return at

    def last_match(
        self, pattern: re.Pattern[str], low: int, high: int, *, apart: bool = True
    ) -> int | None:
        """The last border in ``(low, high]`` behind a match of ``pattern``.

        Unless ``apart``, one that leaves a header or a lead apart is none.
        """
        found = None
        for match in pattern.finditer(self.text, low, min(high + 1, len(self.text))):
            at = match.end()
            if low < at <= high and self.allows(at) and (apart or not self.structure.holds(at)):
                found = at
        return found

    def trimmed(self, start: int, end: int) -> tuple[int, int]:
        """``[start, end)`` without blanks at its edges, spans left whole."""
        while start < end and self.text[start].isspace():
            start += 1
        while end > start and self.text[end - 1].isspace():
            end -= 1
        if start < end:
            left, right = self._whole_at(start), self._whole_at(end)
            return (left[0] if left else start), (right[1] if right else end)
        return start, end

    def _whole_at(self, at: int) -> tuple[int, int] | None:
        """The stretch around ``at``; a mark on a trimmed blank stays with it."""
        if stretch := self.around(at):
            return stretch
        low = high = at
        while low > 0 and self._in_character(low):
            low -= 1
        while high < len(self.text) and self._in_character(high):
            high += 1
        return (low, high) if low < high else None


def _continues(character: str) -> bool:
    """The character changes the one before: combining, variation, skin tone, joiner."""
    return (
        bool(unicodedata.combining(character))
        or character in _JOINERS
        or unicodedata.category(character) in {"Mn", "Me", "Mc"}
        or "\U0001f3fb" <= character <= "\U0001f3ff"
    )


def _regions(document: Document, borders: _Borders) -> list[_Region]:
    """The sections' stretches of the content; one of only a heading joins what follows."""
    content, end = document.content, len(document.content)
    sections = [s for s in sorted(document.sections, key=lambda s: s.start) if s.start < end]
    if not sections or sections[0].start > 0:
        sections.insert(0, Section(0))
    sections = _with_messages(sections, [m.start for m in borders.structure.messages])
    starts = [borders.at_or_after(section.start) for section in sections]
    regions: list[_Region] = []
    waiting: int | None = None
    for section, start, stop in zip(sections, starts, [*starts[1:], end], strict=True):
        if start >= stop:
            continue
        begins = start if waiting is None else waiting
        if _only_heading(content, start, stop, section):
            waiting = begins
        else:
            regions.append(_Region(begins, stop, section))
            waiting = None
    if waiting is not None:  # headings at the very end, with nothing under them
        if regions:
            regions[-1] = replace(regions[-1], end=end)
        else:
            regions.append(_Region(waiting, end, sections[-1]))
    return regions


def _with_messages(sections: Sequence[Section], starts: Sequence[int]) -> list[Section]:
    """The sections, parted where a message of a thread begins."""
    known = [section.start for section in sections]
    new = sorted(set(starts) - set(known))
    parted = [replace(sections[bisect_right(known, at) - 1], start=at) for at in new]
    return sorted([*sections, *parted], key=lambda section: section.start)


def _only_heading(content: str, start: int, stop: int, section: Section) -> bool:
    """Nothing but the section's own heading and its marks is in ``[start, stop)``."""
    if not section.headings:
        return not content[start:stop].strip()
    heading_start, heading_end = section.headings[-1]
    if not start <= heading_start < heading_end <= stop:
        return not content[start:stop].strip()
    rest = content[start:heading_start] + content[heading_end:stop]
    return not rest.strip("#=- \t\n")


def _cut(region: _Region, borders: _Borders, size: Size) -> Iterator[tuple[int, int]]:
    at = region.start
    begins = at
    while at < region.end:
        cut = _next_border(borders, begins, at, region, size)
        start, end = borders.trimmed(begins, cut)
        if start < end:
            yield start, end
        at = cut
        begins = _overlapped(borders, at, size.overlap, max(region.start, start + 1))


def _overlapped(borders: _Borders, at: int, overlap: int, low: int) -> int:
    """Where the next chunk begins: at a word up to ``overlap`` characters before ``at``."""
    if overlap <= 0:
        return at
    for match in _WORD.finditer(borders.text, max(low, at - overlap), at):
        if borders.allows(match.end()):
            return match.end()
    return at


def _next_border(borders: _Borders, begins: int, at: int, region: _Region, size: Size) -> int:
    """The end of the chunk from ``begins``, past ``at``, as far on as its size allows."""
    full = size.reach(begins)
    if full >= region.end:
        return region.end
    reach = full
    if size.reach(begins, 2) >= region.end:  # two chunks are left: of like length
        reach = min(full, begins + (region.end - begins) // 2 + (full - begins) // 8 + 1)
    reach = max(reach, at + 1)
    low = max(at, begins + (full - begins) // 3)
    for apart in (False, True):
        for pattern in _STRUCTURED:
            if low < reach and (found := borders.last_match(pattern, low, reach, apart=apart)):
                return found
    if found := borders.last_match(_WORD, at, full):
        return found
    for cut in range(full, at, -1):
        if borders.allows(cut):
            return cut
    return min(region.end, borders.at_or_after(max(at + 1, full)))
