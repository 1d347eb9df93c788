"""Span resolution: many findings in, sorted spans without overlap out.

Presidio's own merging is off; these are all the rules:

1. Every finding is trimmed: white space and stray punctuation go, a possessive ``'s``
   stays outside.
2. A direct identifier beats a type that a policy may leave alone (place, organisation,
   date, URL, other): the latter must never hide the former.
3. Among equals the surer tier wins (certain from 0.9, likely from 0.6), then the longer,
   then the higher score, then the earlier.
4. What sticks out of the winner is not given up: the loser keeps the remainder, trimmed,
   as long as a letter or digit is left in it (two for a name). So no residue of a number
   leaves, and an organisation with a person's name in it is protected as a whole when
   both types are.
5. Neighbours are never merged. A name that a recognizer found in parts is joined by the
   name recognizer, which can see that the parts belong together.
"""

from __future__ import annotations

import re
from bisect import bisect_left, insort
from collections.abc import Iterable, Iterator

from rag.privacy.policy import DIRECT
from rag.types import EntityType, Span

CERTAIN, LIKELY = 0.9, 0.6

_NAMES = frozenset({EntityType.PERSON, EntityType.ORGANISATION, EntityType.PLACE})
_POSSESSIVE = re.compile(r"(?:['’ʼ][sS]|(?<=[sS])['’ʼ])$")
_DOTTED_END = re.compile(r"(?:\b[^\W\d_]|\b(?:jr|sr|esq|inc|ltd|co|corp|st|phd))\.$", re.IGNORECASE)
_WORDY_STRIP = " \t\r\n\f\v\u00a0\u2007\u202f.,;:!?*_~`'\"’‘“”«»()[]{}<>|/\\-–—=+#•·"
_PHRASES = frozenset({EntityType.ADDRESS, EntityType.DATE, EntityType.BIRTH_DATE, EntityType.URL})
_PHRASE_STRIP = " \t\r\n\f\v\u00a0\u2007\u202f.,;:!?'\"’”*"
_SPACE_STRIP = " \t\r\n\f\v\u00a0\u2007\u202f,;"


def resolve(text: str, findings: Iterable[Span]) -> list[Span]:
    """Sorted, trimmed spans of ``text`` that do not overlap, by the rules above."""
    trimmed = {t for s in findings if (t := trim(text, s)) is not None}
    taken: list[tuple[int, int, Span]] = []
    for span in sorted(trimmed, key=_precedence):
        for piece in list(_free(span, taken)):
            kept = trim(text, piece) if piece != span else piece
            if kept is not None and _substantial(text, kept, cut=piece != span):
                insort(taken, (kept.start, kept.end, kept))
    return [span for _, _, span in taken]


def trim(text: str, span: Span) -> Span | None:
    """The span without its margins, ``None`` when nothing is left."""
    strip = _strip(span.type)
    start, end = span.start, span.end
    while start < end and text[start] in strip:
        start += 1
    while end > start and text[end - 1] in strip:
        if text[end - 1] == "." and span.type in _NAMES and _DOTTED_END.search(text[start:end]):
            break
        end -= 1
    if span.type in _NAMES and (possessive := _POSSESSIVE.search(text, start, end)):
        end = possessive.start()
    return Span(start, end, span.type, span.score) if start < end else None


def _strip(type: EntityType) -> str:
    if type in _NAMES:
        return _WORDY_STRIP
    return _PHRASE_STRIP if type in _PHRASES else _SPACE_STRIP


def tier(score: float) -> int:
    """2 certain, 1 likely, 0 weak."""
    return (score >= LIKELY) + (score >= CERTAIN)


def _precedence(span: Span) -> tuple[bool, int, int, float, int, str]:
    return (
        span.type not in DIRECT,
        -tier(span.score),
        span.start - span.end,
        -span.score,
        span.start,
        span.type,
    )


def _free(span: Span, taken: list[tuple[int, int, Span]]) -> Iterator[Span]:
    """The stretches of ``span`` that nothing in ``taken`` (sorted) covers."""
    at = span.start
    first = max(0, bisect_left(taken, (span.start,)) - 1)
    for index in range(first, len(taken)):
        start, end, _ = taken[index]
        if start >= span.end:
            break
        if end <= at:
            continue
        if start > at:
            yield Span(at, start, span.type, span.score)
        at = end
    if at < span.end:
        yield Span(at, span.end, span.type, span.score)


def _substantial(text: str, span: Span, *, cut: bool) -> bool:
    """Whether a letter or digit is left, two letters in the remainder of a name."""
    characters = sum(c.isalnum() for c in text[span.start : span.end])
    return characters >= (2 if cut and span.type in _NAMES else 1)
