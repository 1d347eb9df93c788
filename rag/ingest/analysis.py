"""What is done to a text before it is embedded and stored: detect, cut, take its forms down.

Pure and CPU-bound, so that it runs here or in a worker process alike. A text that is longer
than the detector takes at once comes in parts with a margin on either side: what lies over
the edge of a part is seen whole from both (I10), and the forms of every part protect the rest.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from rag.errors import DetectorFailed
from rag.ingest.splitter import TokenPlaces, split
from rag.ports import Detector
from rag.types import Alias, ChunkDraft, Document, Section, Span

if TYPE_CHECKING:
    from rag.privacy.forms import FormHasher


@dataclass(frozen=True, slots=True)
class Cut:
    """The sizes of chunks."""

    tokens: int
    chars: int
    overlap: int


@dataclass(frozen=True, slots=True)
class Task:
    """A document, or a part of one: ``core`` is what is cut into chunks.

    ``tail`` is what of the surface follows the content; its spans come behind the text's.
    """

    text: str = field(repr=False)
    tail: str = field(default="", repr=False)
    core: tuple[int, int] | None = None
    sections: tuple[Section, ...] = field(default=(), repr=False)


@dataclass(frozen=True, slots=True)
class Analysis:
    """Spans of text and tail, chunks of the core, forms; offsets are the task's own."""

    spans: list[Span]
    drafts: list[ChunkDraft]
    aliases: list[Alias]


class Analyst:
    """The parts that an analysis takes, opened once a process."""

    def __init__(
        self, detector: Detector, hasher: FormHasher, cut: Cut, places: TokenPlaces | None
    ) -> None:
        self._detector = detector
        self._hasher = hasher
        self._cut = cut
        self._places = places

    @property
    def version(self) -> str:
        """The detector's."""
        return self._detector.version

    def analyse(self, task: Task) -> Analysis:
        """Raises ``DetectorFailed`` and ``TooLarge``."""
        from rag.privacy.forms import aliases_of

        surface = task.text + task.tail
        spans = self._detector.detect(surface)
        if any(not 0 <= span.start < span.end <= len(surface) for span in spans):
            raise DetectorFailed("The detector named a place outside of the text.")
        drafts = split(
            Document("", task.text, sections=task.sections),
            spans,
            self._cut.chars,
            self._cut.overlap,
            tokens=self._cut.tokens,
            places=self._places,
            core=task.core,
        )
        return Analysis(spans, drafts, aliases_of(spans, surface, self._hasher))


def shifted(draft: ChunkDraft, by: int, n: int) -> ChunkDraft:
    """The draft as the ``n``-th, its places moved."""
    headings = tuple((start + by, end + by) for start, end in draft.headings)
    return replace(draft, n=n, start=draft.start + by, end=draft.end + by, headings=headings)


def seam(border: int, *views: Sequence[Span]) -> int:
    """The first place from ``border`` on that no span of either view lies over."""
    moved = True
    while moved:
        moved = False
        for span in (span for view in views for span in view):
            if span.start < border < span.end:
                border, moved = span.end, True
    return border
