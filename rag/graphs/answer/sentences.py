"""Sentences of a passage, for the answer that quotes: lines first, then sentence ends."""

from __future__ import annotations

import re

_END = re.compile(r"(?<=[.!?])[\"'”’)\]]*\s+(?=[^\W\d_a-z]|[\"'“‘(\[<{]|\d)")
_ABBREVIATION = re.compile(
    r"(?:\b(?:Mr|Mrs|Ms|Mx|Dr|Prof|St|No|Nr|Inc|Ltd|Co|vs|etc|e\.g|i\.e|ca|approx|jr|sr)|\b[A-Z])\.$"
)


def sentences(text: str) -> list[str]:
    """The sentences of ``text`` in order, without blank ones; a line break ends a sentence
    when the next line starts a paragraph, a list item, a heading or a row."""
    found: list[str] = []
    for block in re.split(r"\n\s*\n|\n(?=\s*(?:[-*•#|>]|\d+[.)]\s|[\w \-/]{1,40}:))", text):
        found.extend(_of_block(" ".join(block.split())))
    return found


def _of_block(block: str) -> list[str]:
    parts: list[str] = []
    start = 0
    for end in _END.finditer(block):
        piece = block[start : end.start()]
        if _ABBREVIATION.search(piece):
            continue
        parts.append(block[start : end.end()].strip())
        start = end.end()
    parts.append(block[start:].strip())
    return [part for part in parts if part]
