"""Headings found in a text, as the sections they open."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from rag.types import Section


@dataclass(frozen=True, slots=True)
class Heading:
    """The words of a heading at ``[start, end)``; its section begins at ``opens``."""

    level: int
    start: int
    end: int
    opens: int


def sections_of(headings: Iterable[Heading]) -> tuple[Section, ...]:
    """A section for every heading with the path that leads to it, outermost first."""
    path: list[Heading] = []
    sections = [Section(0)]
    for heading in headings:
        while path and path[-1].level >= heading.level:
            path.pop()
        path.append(heading)
        if sections[-1].start == heading.opens:
            sections.pop()
        sections.append(Section(heading.opens, tuple((h.start, h.end) for h in path)))
    return tuple(sections)
