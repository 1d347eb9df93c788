"""Markdown: the content stays the text itself; headings are found by their offsets in it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import accumulate

from rag.ingest.headings import Heading, sections_of
from rag.ingest.loaders.read import Read

_FRONT_MATTER = re.compile(r"---[ \t]*\n((?:.*\n)*?)(?:---|\.\.\.)[ \t]*(?:\n|\Z)")
_FIELD = re.compile(r"^([A-Za-z][\w .-]{0,60}?)[ \t]*:[ \t]+(\S.*?)[ \t]*$")
_MOST_FRONT_MATTER = 20_000
_MOST_FIELDS = 40
_ATX = re.compile(r"[ \t]{0,3}#{1,6}[ \t]*(.*?)(?:[ \t]+#+)?[ \t]*$")


def read_markdown(text: str) -> Read:
    """``text`` itself with its headings, and the front matter's plain fields as metadata."""
    front = _FRONT_MATTER.match(text[:_MOST_FRONT_MATTER])
    body = front.end() if front else 0
    sections = sections_of(_headings(text, body))
    return Read(text, sections, _fields(front[1]) if front else {})


def _fields(front_matter: str) -> dict[str, str]:
    found = (_FIELD.match(line) for line in front_matter.split("\n"))
    fields = [(m[1].lower(), m[2].strip("\"'")) for m in found if m]
    return {key: value[:1_000] for key, value in fields[:_MOST_FIELDS] if value}


def _headings(text: str, body: int) -> Iterator[Heading]:
    from markdown_it import MarkdownIt

    parser = MarkdownIt("commonmark", {"maxNesting": 20}).enable("table")
    parser.core.ruler.disable(["inline", "text_join"])
    lines = text[body:].split("\n")
    starts = list(accumulate((len(line) + 1 for line in lines), initial=body))
    for token in parser.parse(text[body:]):
        if token.type != "heading_open" or token.level or token.map is None:
            continue
        first, after = token.map
        if token.markup.startswith("#"):
            words = _ATX.match(lines[first])
            start, end = words.span(1) if words else (0, len(lines[first]))
            start, end = starts[first] + start, starts[first] + end
        else:  # the words stand above a line of = or -
            start, end = starts[first], starts[after - 1] - 1
        start, end = _trimmed(text, start, end)
        if start < end:
            yield Heading(int(token.tag[1]), start, end, starts[first])


def _trimmed(text: str, start: int, end: int) -> tuple[int, int]:
    while start < end and text[start].isspace():
        start += 1
    while start < end and text[end - 1].isspace():
        end -= 1
    return start, end
