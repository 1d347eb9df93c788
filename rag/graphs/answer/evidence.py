"""The evidence of a request: hits as passages, cut to the budget of the prompt."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from rag.graphs.answer.citations import excerpt
from rag.privacy.protect import Piece
from rag.types import Hit


def passage(hit: Hit) -> str:
    """The chunk's text under its heading path, unless the text already opens with it."""
    heading, text = hit.chunk.heading, hit.chunk.text
    return f"{heading}\n{text}" if _leads(hit) else text


def _leads(hit: Hit) -> bool:
    heading = hit.chunk.heading
    return bool(heading) and heading.split(" > ")[-1] not in hit.chunk.text.split("\n", 1)[0]


def piece_of(hit: Hit) -> Piece:
    """The passage with every span that is known of it."""
    text = passage(hit)
    by = len(text) - len(hit.chunk.text)
    spans = [span.shifted(by) for span in hit.chunk.spans]
    if by:
        spans = [*hit.chunk.heading_spans, *spans]
    return Piece(text, tuple(spans))


def fit(hits: Sequence[Hit], budget: int) -> tuple[list[Hit], list[Piece]]:
    """The leading hits whose passages fit ``budget`` characters together; at least one.

    A first passage longer than the budget is cut, never inside a span. The hits that are
    kept are the sources, so that a citation's number always names what the model saw.
    """
    kept: list[Hit] = []
    pieces: list[Piece] = []
    left = budget
    for hit in hits:
        piece = piece_of(hit)
        if len(piece.text) > left:
            if not kept:
                kept.append(hit)
                pieces.append(_cut(piece, budget))
            break
        kept.append(hit)
        pieces.append(piece)
        left -= len(piece.text)
    return kept, pieces


def _cut(piece: Piece, budget: int) -> Piece:
    text = excerpt(piece.text, piece.spans, budget)
    return replace(piece, text=text, spans=tuple(s for s in piece.spans if s.end <= len(text)))
