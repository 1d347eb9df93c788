"""One document, one verdict: what was surely found once is found everywhere in the text.

Whole names count in any casing, in either order, and with any thin separator (so also in
file names and paths); single parts of a name count unless they are also a word or a
place, which count only as they were written where the name was found, outside other
names and inside a sentence. An e-mail address of two name-like parts is evidence too.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from rag.privacy.lexicon import is_common_word, is_given_name, is_place, words
from rag.privacy.policy import DIRECT
from rag.privacy.recognizers.names import is_label, is_particle, tokens
from rag.types import EntityType, Span

_TOKEN = re.compile(r"[^\W\d_]+(?:[\u0300-\u036f]+[^\W\d_]*)*(?:['’ʼ‘`´][^\W\d_]+)*")
_GAP = re.compile(r"\.?\s{1,2}|,\s?|[._\-‐‑+·]")
_WIDE_GAP = re.compile(r"\n\s*\n|[.,]\s*\n")
_POSSESSIVE = re.compile(r"['’ʼ]s$", re.IGNORECASE)
_INITIAL_BEFORE = re.compile(r"(?<!\w)[^\W\d_]\.\s?$")
_SENTENCE_START = re.compile(r"(?:^|[.!?:;\n\"“(\[•*-]\s*)$")
_OF_TIME = re.compile(
    r"\b(?:in|of|on|by|since|until|till|during|last|next|this|each|every|\d)\s$", re.IGNORECASE
)
_ROLES = words(
    """info noreply reply admin hr webmaster helpdesk postmaster support sales office contact team
    hello mail billing accounts jobs press legal privacy security it ops dev data"""
)
_SURE_NAME, _SURE_WORD, _SEEN = 0.7, 0.8, 0.6


@dataclass(slots=True)
class _Forms:
    """Token sequences to look for, by their first token; the exact text for weak ones."""

    any_case: dict[str, set[tuple[str, ...]]] = field(default_factory=dict)
    as_written: dict[str, set[str]] = field(default_factory=dict)

    def add(self, parts: Sequence[str]) -> None:
        if parts:
            self.any_case.setdefault(parts[0], set()).add(tuple(parts))

    def add_written(self, word: str) -> None:
        self.as_written.setdefault(word.casefold(), set()).add(word)


def echoes(text: str, spans: Iterable[Span]) -> list[Span]:
    """Further people in ``text``, known from those of ``spans`` that are sure."""
    found = list(spans)
    forms = _forms(text, found)
    if not forms.any_case and not forms.as_written:
        return []
    others = sorted((s.start, s.end) for s in found if s.type not in DIRECT and s.score > 0.5)
    return list(_search(text, forms, others))


def _forms(text: str, spans: Iterable[Span]) -> _Forms:
    forms = _Forms()
    for span in spans:
        written = text[span.start : span.end]
        if span.type is EntityType.PERSON:
            _learn_name(forms, written, span.score)
        elif span.type is EntityType.EMAIL:
            _learn_address(forms, written)
    return forms


def _learn_name(forms: _Forms, written: str, score: float) -> None:
    units = [u for u in written.replace(",", " ").split() if tokens(u)]
    if len(units) > 1 and score >= _SURE_NAME:
        parts = tokens(written)
        if not all(is_common_word(p) for p in parts):
            forms.add(parts)
            forms.add([*tokens(units[-1]), *tokens(" ".join(units[:-1]))])
        for unit in units:
            _learn_part(forms, unit)
    elif len(units) == 1 and score >= _SURE_WORD:
        _learn_part(forms, units[0])
    elif len(units) == 1 and score >= _SEEN and not _otherwise(units[0]):
        forms.add_written(_POSSESSIVE.sub("", units[0]))


def _learn_part(forms: _Forms, unit: str) -> None:
    parts = tokens(unit)
    if is_particle(unit) or len("".join(parts)) < 3:
        return
    if len(parts) == 1 and _otherwise(parts[0]):
        if unit[:1].isupper():
            forms.add_written(unit)
    else:
        forms.add(parts)


def _otherwise(word: str) -> bool:
    return is_common_word(word) or is_place(word) or is_label(word)


def _learn_address(forms: _Forms, address: str) -> None:
    """``marit.olsgaard@…`` says who Marit and Olsgaard are; ``sales.team@…`` nothing."""
    parts = [p.casefold() for p in re.split(r"[._\-+\d]+", address.partition("@")[0]) if len(p) > 2]
    parts = [p for p in parts if p.isalpha()]
    if not parts or any(p in _ROLES or (is_common_word(p) and not is_given_name(p)) for p in parts):
        return
    if len(parts) == 2:
        forms.add(parts)
        forms.add(parts[::-1])
    for part in parts:
        if not _otherwise(part):
            forms.add_written(part.capitalize())
            forms.add_written(part.upper())


def _search(text: str, forms: _Forms, others: list[tuple[int, int]]) -> Iterator[Span]:
    found = [_Word(m.start(), _POSSESSIVE.sub("", m[0])) for m in _TOKEN.finditer(text)]
    for index, word in enumerate(found):
        length = max(
            (len(f) for f in _candidates(forms, word.folded) if _matches(text, found, index, f)),
            default=0,
        )
        if length:
            last = found[index + length - 1]
            end = last.end - (length == 1 and _plural(forms, word.folded))
            score = 0.85 if length > 1 else 0.75
            yield Span(_with_initial(text, word.start), end, EntityType.PERSON, score)
        elif word.text in forms.as_written.get(word.folded, ()) and (
            not _otherwise(word.folded) or _stands_alone(text, word.start, word.end, others)
        ):
            yield Span(word.start, word.end, EntityType.PERSON, 0.6)


class _Word:
    """A word of the text, without a possessive ending."""

    __slots__ = ("end", "folded", "start", "text")

    def __init__(self, start: int, text: str) -> None:
        self.start, self.end = start, start + len(text)
        self.text, self.folded = text, text.casefold()


def _candidates(forms: _Forms, first: str) -> Iterator[tuple[str, ...]]:
    yield from forms.any_case.get(first, ())
    if _plural(forms, first):
        yield (first,)


def _plural(forms: _Forms, word: str) -> bool:
    """Whether a known name stands in the plural (the Olsgaards), of which only the name counts."""
    singular = word[:-1]
    known = len(word) > 4 and word.endswith("s") and (singular,) in forms.any_case.get(singular, ())
    return known and (word,) not in forms.any_case.get(word, ())


def _matches(text: str, found: list[_Word], index: int, form: tuple[str, ...]) -> bool:
    words_here = found[index : index + len(form)]
    if tuple(w.folded for w in words_here) != form:
        return False
    for left, right in pairwise(words_here):
        gap = text[left.end : right.start]
        if not _GAP.fullmatch(gap) or _WIDE_GAP.search(gap):
            return False
    return True


def _with_initial(text: str, start: int) -> int:
    """``M. Olsgaard`` is one name."""
    match = _INITIAL_BEFORE.search(text, max(0, start - 4), start)
    return match.start() if match else start


def _stands_alone(text: str, start: int, end: int, others: list[tuple[int, int]]) -> bool:
    """Inside a sentence and in no place, organisation or date."""
    before = text[max(0, start - 10) : start]
    if _SENTENCE_START.search(before) or _OF_TIME.search(before):
        return False
    index = bisect_right(others, (start, len(text))) - 1
    return index < 0 or others[index][1] < end
