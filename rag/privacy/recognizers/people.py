"""People, places and organisations: what the name model says, judged, and what the text says.

Evidence in the text itself is a title, a label or JSON key, a salutation or signature, a
chat line, a neighbouring e-mail address. A title stays outside the span; initials,
suffixes, particles, elisions and hyphens stay inside.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator
from typing import Any

from rag.privacy.lexicon import (
    is_ambiguous_title,
    is_common_word,
    is_given_name,
    is_place,
    is_title,
)
from rag.privacy.recognizers.casing import recase
from rag.privacy.recognizers.model import NameModel
from rag.privacy.recognizers.names import (
    ANY_NAME,
    CAPITALISED,
    INITIALS,
    NAME,
    PARTICLE,
    SUFFIX,
    TITLE,
    compiled,
    credible,
    is_label,
    proper,
)
from rag.privacy.recognizers.rules import SECONDS
from rag.types import EntityType, Span

_RUN = compiled(NAME)
_SPLIT = compiled(r"\s*\n\s*|[ ]{2,}|\t")
_GROW_RIGHT = compiled(
    rf"(?:[ ](?:(?:{PARTICLE}[ ]){{0,3}}(?P<word>{CAPITALISED})|{INITIALS}(?=[ ]{CAPITALISED})))|,?[ ]{SUFFIX}"
)
_GROW_LEFT = compiled(rf"(?P<word>{CAPITALISED}|{INITIALS})[ ]\Z")
_LEADING = compiled(rf"(?:{TITLE}\b\.?|{CAPITALISED})[ ]+")
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
        cased, changed = recase(text)
        spans = [span for span in self._modelled(cased, changed)]
        spans += _evident(text)
        return spans

    def _modelled(self, text: str, changed: list[tuple[int, int]]) -> Iterator[Span]:
        for entity in self._model.entities(text):
            match entity.type:
                case EntityType.PERSON:
                    yield from _people(text, entity, recased=_within(entity, changed))
                case EntityType.DATE:
                    if _MONTH_OR_DIGIT.search(text, entity.start, entity.end):
                        yield Span(entity.start, entity.end, EntityType.DATE, 0.5)
                case EntityType.PLACE | EntityType.ORGANISATION | EntityType.OTHER:
                    yield from _misjudged(text, entity)


def _within(span: Span, ranges: list[tuple[int, int]]) -> bool:
    index = bisect_right(ranges, (span.start, len(ranges) and ranges[-1][1] + 1)) - 1
    return index >= 0 and span.start < ranges[index][1]


def _people(text: str, entity: Span, *, recased: bool) -> Iterator[Span]:
    """The people in what the model took for one."""
    for start, end in _lines(text, entity.start, entity.end):
        for run in _RUN.finditer(text, start, end, timeout=SECONDS):
            span = _grown(text, *_headless(text, *run.span()))
            score = _score(text, *span, recased=recased)
            if score:
                yield Span(*span, EntityType.PERSON, score)


def _lines(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """The parts of a finding between line breaks and wide gaps."""
    at = start
    for gap in _SPLIT.finditer(text, start, end):
        yield at, gap.start()
        at = gap.end()
    yield at, end


def _headless(text: str, start: int, end: int) -> tuple[int, int]:
    """Without titles and without words that stand before names: ``Customer``, ``Hi``."""
    while match := _LEADING.match(text, start, end):
        word = match[0].strip()
        title = is_title(word) and not (is_ambiguous_title(word) and not word.endswith("."))
        heading = is_label(word) or (
            is_common_word(word)
            and not is_given_name(word)
            and _has_proper(text[match.end() : end])
        )
        if match.end() >= end or not (title or heading):
            break
        start = match.end()
    return start, end


def _has_proper(rest: str) -> bool:
    parts = rest.split()
    return len(parts) > 1 and any(proper(p) for p in parts)


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
    if recased and single and not is_given_name(text[start:end]):
        return min(prior, 0.35)
    return 0.0 if prior <= 0.15 else min(prior, 0.85)


def _misjudged(text: str, entity: Span) -> Iterator[Span]:
    """A place or organisation; a person where the words say so and nothing says otherwise."""
    found = text[entity.start : entity.end]
    if entity.type is not EntityType.OTHER:
        yield Span(entity.start, entity.end, entity.type, 0.7)
    parts = found.split()
    if not 2 <= len(parts) <= 4 or not _RUN.fullmatch(found) or _ORGANISED.search(found):
        return
    if (
        is_given_name(parts[0])
        and proper(parts[-1])
        and not is_place(found)
        and not is_place(parts[-1])
    ):
        yield Span(entity.start, entity.end, EntityType.PERSON, 0.7)


_ROLE = (
    r"(?:customer|patient|client|employee|tenant|contact(?:[ ]person)?|owner|author|manager|"
    r"applicant|(?:card|account|policy)?[ _-]?holder|guest|student|member|borrower|landlord|witness|"
    r"spouse|partner|parent|guardian|beneficiary|signatory|recipient|sender|driver|candidate|"
    r"caretaker|doctor|physician|gp|nurse|lawyer|solicitor|attorney|accountant|supervisor|"
    r"line[ ]manager|reported[ ]by|prepared[ ]by|approved[ ]by|signed(?:[ ]by)?|written[ ]by|"
    r"created[ ]by|assigned[ ]to|assignee|from|to|cc|bcc|attn|attention|emergency[ ]contact|"
    r"next[ ]of[ ]kin|person|speaker|interviewer|interviewee|teacher|director|officer|agent)"
)
_KIND = (
    r"(?:full|first|last|middle|given|family|maiden|sur|fore|legal|birth|display|"
    rf"{_ROLE})(?:['’]s)?[ _-]?"
)
_QUOTE = r"[\"'*_]{0,3}"
_JSON_VALUE = rf"\"\s*:\s*\"(?:{TITLE}\.?[ ])?(?P<v>{ANY_NAME})\""
_TABLE = (
    (rf"\b{TITLE}\b\.?[ ](?P<v>{NAME})", False, "titled"),
    (r"\b(?:mr|mrs|ms|dr|prof)\b\.?[ ](?P<v>\p{Ll}{3,}(?:[ ]\p{Ll}{3,})?)(?=[\s.,;:!?'’]|$)", False, "lower"),
    (rf"(?<![\p{{L}}])(?i:{_KIND}names?|surname|forename){_QUOTE}[ ]?[:=|\t][ ]?{_QUOTE}"
     rf"(?:{TITLE}\.?[ ])?(?P<v>{NAME})(?![\p{{L}}\d@])", False, "named"),
    (rf"(?<![\p{{L}}])(?i:name|{_ROLE}){_QUOTE}[ ]?[:=][ ]?{_QUOTE}"
     rf"(?:{TITLE}\.?[ ])?(?P<v>{NAME})(?![\p{{L}}\d@])", False, "role"),
    (rf"\"(?:{_KIND}name|surname|forename){_JSON_VALUE}", True, "named"),
    (rf"\"(?:name|{_ROLE}){_JSON_VALUE}", True, "role"),
    (rf"(?:^|(?<=[.!?\"“(]\s)|(?<=\n))\s*(?:Dear|Hi|Hello|Hey|Hallo)[ ](?:{TITLE}\.?[ ])?(?P<v>{NAME})"
     r"(?=\s*[,!.:\n]|\s+and\b|$)", False, "role"),
    (rf"(?i:regards|wishes|sincerely|faithfully|cheers|thanks|truly|respectfully|greetings)[,!.]?[ ]*"
     rf"\r?\n\s*(?P<v>{NAME})[ ]*$", False, "role"),
    (rf"\b(?:my|his|her|their|whose)[ ]name[ ](?:is|was)[ ](?:{TITLE}\.?[ ])?(?P<v>{ANY_NAME}?)"
     r"(?=[.,;!?\n]|\s+(?:and|but|from|who|i)\b|$)", True, "named"),
    (rf"\b(?:I[ ]am|I['’]m|this[ ]is|called|named|known[ ]as|née|nee)[ ](?P<v>{NAME})(?=[.,;!?\n]|[ ]|$)",
     False, "role"),
    (r"^\s*\[?(?:\d{4}-\d\d-\d\d[ T])?\d{1,2}:\d{2}(?::\d{2})?(?:[ ]?[AaPp][Mm])?\]?[ ]?[-–]?[ ]?<?"
     r"(?P<v>[\p{L}][\p{L}'’.-]*(?:[ ][\p{L}][\p{L}'’.-]*){0,2})>?:[ ]", False, "role"),
    (rf"(?P<v>{CAPITALISED}(?:[ ](?:{PARTICLE}[ ]){{0,2}}(?:{CAPITALISED}|{INITIALS})){{1,3}})"
     r"[ ]?[-–,:|]?[ ]?[<(\[]?(?:mailto:)?(?=[\w.+-]+@[\w.-]+)", False, "role"),
)  # fmt: skip
_EVIDENCE = [(compiled(p, ignore_case=i), kind) for p, i, kind in _TABLE]
_PAIR = compiled(
    rf"(?<![\p{{L}}\d_@./\\-])(?P<given>\p{{Lu}}[\p{{L}}\p{{M}}]+)[ ](?:{INITIALS}[ ])?(?:{PARTICLE}[ ]){{0,2}}"
    rf"(?P<family>{CAPITALISED})(?:,?[ ]{SUFFIX})?(?![\p{{L}}\d_@])"
)


def _evident(text: str) -> Iterator[Span]:
    """People whom the text itself introduces as such."""
    for pattern, kind in _EVIDENCE:
        for match in pattern.finditer(text, timeout=SECONDS):
            start, end = _headless(text, *match.span("v"))
            if score := _JUDGES[kind](text[start:end]):
                yield Span(start, end, EntityType.PERSON, score)
    for match in _PAIR.finditer(text, overlapped=True, timeout=SECONDS):
        if _paired(match):
            yield Span(match.start(), match.end(), EntityType.PERSON, 0.7)


def _paired(match: Any) -> bool:
    """A known given name before a word that is nothing else."""
    given, family = match["given"], match["family"]
    known = is_given_name(given) and not is_common_word(given) and not is_place(given)
    return known and proper(family) and not is_place(family) and not family.isupper()


def _titled(name: str) -> float:
    prior = credible(name)
    return 0.95 if prior >= 0.5 else (0.6 if prior else 0.0)


def _lower(name: str) -> float:
    return 0.8 if proper(name.split()[0]) else 0.0


def _named(name: str) -> float:
    prior = credible(name)
    if not prior or name.casefold() in ("see below", "not given", "not applicable"):
        return 0.0
    cased = any(c.isupper() for c in name)
    return 0.92 if prior >= 0.5 or cased else 0.3


def _role(name: str) -> float:
    prior = credible(name)
    return 0.85 if prior >= 0.5 else (0.3 if prior > 0.3 else 0.0)


_JUDGES: dict[str, Callable[[str], float]] = {
    "titled": _titled,
    "lower": _lower,
    "named": _named,
    "role": _role,
}
