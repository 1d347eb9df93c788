"""Markdown: the content stays the text itself; headings are found by their offsets in it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import accumulate

from rag.errors import TooLarge
from rag.ingest.headings import Heading, sections_of
from rag.ingest.loaders.read import Read

_FRONT_MATTER = re.compile(r"---[ \t]*\n((?:.*\n)*?)(?:---|\.\.\.)[ \t]*(?:\n|\Z)")
_MOST_FRONT_MATTER = 20_000
_MOST_FIELDS = 40
_HEADING_LINE = re.compile(r"^ {0,3}(?:#{1,6}(?:\s|$)|=+[ \t]*$|-+[ \t]*$)", re.M)
_MOST_HEADINGS = 20_000
_KEY = re.compile(r"[A-Za-z][\w .-]{0,60}")


def read_markdown(text: str) -> Read:
    """``text`` itself with its headings, and the front matter's plain fields as metadata.

    Raises ``TooLarge``.
    """
    if sum(1 for _ in _HEADING_LINE.finditer(text)) > _MOST_HEADINGS:
        raise TooLarge(f"The document has more than {_MOST_HEADINGS} headings.")
    front = _FRONT_MATTER.match(text[:_MOST_FRONT_MATTER])
    body = front.end() if front else 0
    sections = sections_of(_headings(text, body))
    return Read(text, sections, _fields(front[1]) if front else {})


def _fields(front_matter: str) -> dict[str, str]:
    fields: dict[str, str] = {}
    for line in front_matter.split("\n"):
        key, colon, value = line.partition(": ")
        value = value.strip().strip("\"'")
        if colon and value and _KEY.fullmatch(key.rstrip()) and len(fields) < _MOST_FIELDS:
            fields[key.rstrip().lower()] = value[:1_000]
    return fields


def _headings(text: str, body: int) -> Iterator[Heading]:
    from markdown_it import MarkdownIt

    parser = MarkdownIt("commonmark", {"maxNesting": 20})
    parser.core.ruler.disable(["inline", "text_join"])
    lines = text[body:].split("\n")
    starts = list(accumulate((len(line) + 1 for line in lines), initial=body))
    for token in parser.parse(text[body:]):
        if token.type != "heading_open" or token.level or token.map is None:
            continue
        first, after = token.map
        # the words stand after #s, or above a line of = or -
        last = first if token.markup.startswith("#") else after - 2
        start, end = starts[first], starts[last] + len(lines[last])
        if last == first and token.markup.startswith("#"):
            start, end = _inside_marks(text, start, end)
        start, end = _trimmed(text, start, end)
        if start < end:
            yield Heading(int(token.tag[1]), start, end, starts[first])


def _inside_marks(text: str, start: int, end: int) -> tuple[int, int]:
    """The words of ``## words ##``."""
    start, end = _trimmed(text, start, end)
    while start < end and text[start] == "#":
        start += 1
    closing = end
    while closing > start and text[closing - 1] == "#":
        closing -= 1
    if closing == start or text[closing - 1].isspace():
        end = closing
    return start, end


def _trimmed(text: str, start: int, end: int) -> tuple[int, int]:
    while start < end and text[start].isspace():
        start += 1
    while start < end and text[end - 1].isspace():
        end -= 1
    return start, end
