"""People, places and organisations: what the name model says, judged and put in shape.

A title stays outside the span; initials, suffixes, particles, elisions and hyphens stay
inside, also where the model cut them off. The text's own evidence is added (``evidence``).
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from rag.privacy.lexicon import is_common_word, is_given_name, is_place, is_title, words
from rag.privacy.recognizers.casing import recase
from rag.privacy.recognizers.evidence import evident
from rag.privacy.recognizers.model import NameModel
from rag.privacy.recognizers.names import (
    APOSTROPHE,
    CAPITALISED,
    INITIALS,
    NAME,
    PARTICLE,
    SUFFIX,
    compiled,
    credible,
    headless,
    proper,
)
from rag.privacy.recognizers.rules import SECONDS
from rag.types import EntityType, Span

_RUN = compiled(NAME)
_WRAPPED = compiled(r"(?P<line>^[^\n]{40,}[\p{L}\p{M},])\n(?=\p{L})")
_TABULAR = compiled(r"[;|\t<>{}]")
_MARKS = compiled(r"</?[A-Za-z][^<>\n]{0,300}>|[*_`#|;]+(?=\s|\p{L})|(?<=\p{L})[*_`|;]+(?!\p{L})")
_SPLIT = compiled(r"\s*\n\s*|[ ]{2,}|\t")
_MODEL_NUMBER = compiled(r"[ -]\d")
_PLACE_WORDS = compiled(rf"(?<![\p{{L}}\d]){CAPITALISED}(?:[ -]{CAPITALISED}){{0,3}}")
_WORD = compiled(r"[^ ,]+")
_GROW_RIGHT = compiled(
    rf"(?:[ ](?:(?:{PARTICLE}[ ]){{0,3}}(?P<word>{CAPITALISED})|{INITIALS}(?=[ ]{CAPITALISED})))"
    rf"|,?[ ]{SUFFIX}"
)
_GROW_LEFT = compiled(rf"(?P<word>{CAPITALISED}|{INITIALS})[ ]\Z")
_MONTH_OR_DIGIT = compiled(
    r"\d|january|february|march|april|june|july|august|september|october|november|december",
    ignore_case=True,
)
_ORGANISED = compiled(
    r"\b(?:ltd|inc|llc|gmbh|corp|company|co|bank|university|college|school|hospital|council|"
    r"group|institute|ministry|department|association|club|party|times|news|press|street|road|"
    r"house|hotel|centre|center|airport|station|park|river|lake|mount|county)\b", ignore_case=True
)  # fmt: skip


class PeopleRecognizer:
    """Findings of the model and of the evidence rules, all over one text."""

    name = "people"

    def __init__(self, model: NameModel) -> None:
        self._model = model

    def find(self, text: str) -> list[Span]:
        text = _unwrapped(text)
        cased, changed = recase(_unmarked(text))
        spans = list(self._modelled(cased, changed))
        spans += evident(text)
        spans += _gazetteer(text)
        spans += _unknown_rows(cased)
        return spans

    def _modelled(self, text: str, changed: list[tuple[int, int]]) -> Iterator[Span]:
        for entity in _joined(text, self._model.entities(text)):
            match entity.type:
                case EntityType.PERSON:
                    yield from _people(text, entity, recased=_within(entity, changed))
                case EntityType.DATE:
                    if _MONTH_OR_DIGIT.search(text, entity.start, entity.end):
                        yield Span(entity.start, entity.end, EntityType.DATE, 0.5)
                case EntityType.PLACE | EntityType.ORGANISATION | EntityType.OTHER:
                    yield from _misjudged(text, entity)


def _joined(text: str, entities: list[Span]) -> list[Span]:
    """Neighbouring people that are the parts of one name, or a row of names, as one finding."""
    joined: list[Span] = []
    for entity in entities:
        before = joined[-1] if joined else None
        if before and entity.type is before.type is EntityType.PERSON:
            count = len(text[before.start : entity.end].split())
            if text[before.end : entity.start] == " " and (count < 4 or count > 5):
                joined[-1] = replace(before, end=entity.end)
                continue
        joined.append(entity)
    return joined


def _gazetteer(text: str) -> Iterator[Span]:
    """Countries, states and big cities that are no ordinary words; the model misses some."""
    for match in _PLACE_WORDS.finditer(text, timeout=SECONDS):
        found = [m.span() for m in _WORD.finditer(text, *match.span())]
        at = 0
        while at < len(found):
            start = found[at][0]
            ends = [end for _, end in found[at : at + 4] if is_place(text[start:end])]
            if ends and not is_common_word(text[start : ends[-1]]):
                yield Span(start, ends[-1], EntityType.PLACE, 0.5)
                at += text.count(" ", start, ends[-1])
            at += 1


def _unknown_rows(text: str) -> Iterator[Span]:
    """Two to four capitalised words in a row that are no words and no places.

    The model passes over many a rare name; what it does call a person or a thing counts more.
    """
    for match in _PLACE_WORDS.finditer(text, timeout=SECONDS):
        row: list[tuple[int, int]] = []
        for start, end in [*(m.span() for m in _WORD.finditer(text, *match.span())), (0, 0)]:
            if _unknown(text[start:end]):
                row.append((start, end))
                continue
            if 2 <= len(row) <= 4 and not is_place(text[row[0][0] : row[-1][1]]):
                yield Span(row[0][0], row[-1][1], EntityType.PERSON, 0.45)
            row = []


def _unwrapped(text: str) -> str:
    """The text with a blank for each line break inside running prose, of equal length."""

    def unwrap(match: Any) -> str:
        line = str(match["line"])
        prose = line.count(" ") > 5 and line.count(",") < 4 and not _TABULAR.search(line)
        return line + (" " if prose else "\n")

    return str(_WRAPPED.sub(unwrap, text))


def _unmarked(text: str) -> str:
    """The text with marks of HTML and Markdown as blanks and commas, of equal length."""
    return str(_MARKS.sub(lambda m: "," + " " * (len(m[0]) - 1), text))


def _within(span: Span, ranges: list[tuple[int, int]]) -> bool:
    index = bisect_right(ranges, (span.start, len(ranges) and ranges[-1][1] + 1)) - 1
    return index >= 0 and span.start < ranges[index][1]


def _people(text: str, entity: Span, *, recased: bool) -> Iterator[Span]:
    """The people in what the model took for one."""
    for start, end in _lines(text, entity.start, entity.end):
        for run in _RUN.finditer(text, start, end, timeout=SECONDS):
            for first, last in _apart(text, *_grown(text, *headless(text, *run.span()))):
                if score := _score(text, first, last, recased=recased):
                    yield Span(first, last, EntityType.PERSON, score)


def _apart(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Six words or more without a particle are several people, two words each."""
    found = [m.span() for m in _WORD.finditer(text, start, end)]
    if len(found) < 6 or len(found) % 2 or any(text[s].islower() for s, _ in found):
        yield start, end
        return
    for (first, _), (_, last) in zip(found[::2], found[1::2], strict=True):
        yield first, last


def _lines(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """The parts of a finding between line breaks and wide gaps."""
    at = start
    for gap in _SPLIT.finditer(text, start, end):
        yield at, gap.start()
        at = gap.end()
    yield at, end


def _grown(text: str, start: int, end: int) -> tuple[int, int]:
    """With the parts of the same name that the model left out on either side."""
    while match := _GROW_RIGHT.match(text, end):
        word = match["word"]
        if word is not None and (not proper(word) or is_place(word) or word.isupper()):
            break
        end = match.end()
    for _ in range(3):
        match = _GROW_LEFT.search(text, max(0, start - 40), start)
        if not match or is_title(match["word"]):
            break
        if not (is_given_name(match["word"]) or match["word"].endswith(".")):
            break
        start = match.start()
    return start, end


def _score(text: str, start: int, end: int, *, recased: bool) -> float:
    """The model's finding under the prior of its words and of what it touches."""
    around = text[max(0, start - 1) : start] + text[end : end + 1]
    if any(c.isalnum() or c in "_@=$%\\" for c in around):
        return 0.0
    prior = credible(text[start:end])
    single = " " not in text[start:end]
    if single and not is_given_name(text[start:end]):
        acronym = text[start:end].isupper() and end - start < 4
        if acronym or _MODEL_NUMBER.match(text, end):
            return 0.0
    if recased and single and not is_given_name(text[start:end]):
        return min(prior, 0.35)
    if prior <= 0.15:
        return 0.0
    return min(prior, 0.85 if text.count(" ", start, end) < 4 else 0.5)


def _misjudged(text: str, entity: Span) -> Iterator[Span]:
    """A place or organisation; a person where the words say so and nothing says otherwise."""
    found = text[entity.start : entity.end].replace("\n", " ")
    if entity.type is not EntityType.OTHER and _named_thing(found):
        yield Span(entity.start, entity.end, entity.type, 0.7)
    parts = found.split()
    if len(parts) == 1 and _owns_something(text, entity):
        yield Span(entity.start, _singular_end(text, entity), EntityType.PERSON, 0.6)
    if not 2 <= len(parts) <= 4 or not _RUN.fullmatch(found) or _ORGANISED.search(found):
        return
    if (
        is_given_name(parts[0])
        and proper(parts[-1])
        and not is_place(found)
        and not is_place(parts[-1])
    ):
        yield Span(entity.start, entity.end, EntityType.PERSON, 0.7)
    elif all(_unknown(part) for part in parts):
        yield Span(entity.start, entity.end, EntityType.PERSON, 0.5)


def _unknown(word: str) -> bool:
    """No word, no place, no acronym: in a row of such words the model guesses, so they hide.

    The small model takes many a name at the beginning of a sentence for an organisation;
    a firm of such a name is hidden for a person then, which harms less than the reverse.
    """
    if len(word) < 3 or word.isupper() or _ORGANISED.fullmatch(word) or is_title(word):
        return False
    return not is_common_word(word) and not is_place(word)


def _named_thing(found: str) -> bool:
    """No clause or bucket (H1, S3) and no currency."""
    return sum(c.isalpha() for c in found) > 2 and found.strip() not in _CURRENCIES


def _owns_something(text: str, entity: Span) -> bool:
    """Whether a single unknown word owns what people own: ``Sorrel's flat``."""
    word = text[entity.start : entity.end]
    if not proper(word) or is_place(word) or word.isupper():
        return False
    return any(
        match.start() >= 0
        for match in _OWNED.finditer(text, entity.start, min(len(text), entity.end + 40))
        if match.start() == entity.end or match.start() == entity.end - 2
    )


def _singular_end(text: str, entity: Span) -> int:
    """Without the plural of a family whose name stands elsewhere in the text."""
    word = text[entity.start : entity.end]
    plural = word.endswith("s") and text[entity.end : entity.end + 1] in APOSTROPHE
    known = plural and compiled(rf"\b{word[:-1]}\b").search(text)
    return entity.end - 1 if known else entity.end


_CURRENCIES = words("EUR USD GBP CHF NOK SEK DKK PLN JPY CNY AUD CAD")
_OWNED = compiled(
    r"['’]s?[ ](?:old[ ]|new[ ]|own[ ])?(?:flat|car|house|garage|phone|mother|father|wife|husband|"
    r"partner|son|daughter|brother|sister|mail|email|e-mail|address|birthday|salary|contract|"
    r"doctor|room|key|keys|report|lease|desk|laptop|account|passport|landlord|boss|manager|dog|"
    r"cat|bike|family|parents|friend|neighbour|neighbor|office|claim|diagnosis|insurance|name)\b",
)
