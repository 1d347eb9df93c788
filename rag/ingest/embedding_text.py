"""The text of a chunk as it is embedded: its heading path in front, spans moved along."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from rag.types import ChunkDraft, Document, Span


@dataclass(frozen=True, slots=True)
class EmbeddingText:
    """``text`` with its spans, relative to it."""

    text: str = field(repr=False)
    spans: tuple[Span, ...] = ()


class SpanIndex:
    """A document's spans, found by place."""

    def __init__(self, spans: Sequence[Span]) -> None:
        self._spans = sorted(spans)
        self._ends = [span.end for span in self._spans]

    def within(self, start: int, end: int) -> list[Span]:
        """What of the spans lies in ``[start, end)``, clipped to it."""
        found = []
        for span in self._spans[bisect_left(self._ends, start + 1) :]:
            if span.start >= end:
                break
            found.append(replace(span, start=max(span.start, start), end=min(span.end, end)))
        return found


def embedding_text(document: Document, draft: ChunkDraft, spans: SpanIndex) -> EmbeddingText:
    """Headings that the chunk does not itself hold, ``>`` between, then the chunk's text."""
    outer = [(s, e) for s, e in draft.headings if not (draft.start <= s and e <= draft.end)]
    parts: list[str] = []
    placed: list[Span] = []
    length = 0
    for n, (start, end) in enumerate([*outer, (draft.start, draft.end)]):
        separator = "" if n == 0 else "\n" if n == len(outer) else " > "
        length += len(separator)
        placed += [span.shifted(length - start) for span in spans.within(start, end)]
        parts += [separator, document.content[start:end]]
        length += end - start
    return EmbeddingText("".join(parts), tuple(placed))


def about(document: Document, surface: str, spans: SpanIndex) -> EmbeddingText:
    """What ``surface`` holds beside the content: the source's name and the metadata."""
    start = min(len(document.content), len(surface))
    within = spans.within(start, len(surface))
    return EmbeddingText(surface[start:], tuple(span.shifted(-start) for span in within))
