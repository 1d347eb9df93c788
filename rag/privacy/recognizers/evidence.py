"""What a text itself says about who is a person.

A title, a label or JSON key, a salutation or signature, a chat line, a relation ("my
cousin …"), a neighbouring e-mail address, or a known given name before a word that is
nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from rag.privacy.lexicon import is_common_word, is_given_name, is_place
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
    headless,
    proper,
)
from rag.privacy.recognizers.rules import SECONDS
from rag.types import EntityType, Span

_RELATION = (
    r"(?:cousin|brother|sister|mother|father|mum|mom|dad|son|daughter|wife|husband|partner|"
    r"friend|colleague|neighbou?r|boss|aunt|uncle|niece|nephew|grandmother|grandfather|fiancée?|"
    r"girlfriend|boyfriend|flatmate|roommate|landlord|landlady|tenant|caretaker|dentist|notary|"
    r"lawyer|solicitor|accountant|therapist|nurse|patient|supervisor|assistant|secretary|"
    r"manager|director|engineer|teacher|officer|plumber|electrician|witness|client|customer)"
)
_ROLE = (
    r"(?:customer|patient|client|employee|tenant|contact(?:[ ]person)?|owner|author|manager|"
    r"applicant|(?:card|account|policy)?[ _-]?holder|guest|student|member|borrower|landlord|"
    r"witness|"
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
    (r"\b(?:mr|mrs|ms|dr|prof)\b\.?[ ](?P<v>\p{Ll}{3,}(?:[ ]\p{Ll}{3,})?)(?=[\s.,;:!?'’]|$)",
     False, "lower"),
    (rf"(?<![\p{{L}}])(?i:{_KIND}names?|surname|forename){_QUOTE}[ ]?[:=|\t][ ]?{_QUOTE}"
     rf"(?:{TITLE}\.?[ ])?(?P<v>{NAME})(?![\p{{L}}\d@])", False, "named"),
    (rf"(?<![\p{{L}}])(?i:name|{_ROLE}){_QUOTE}[ ]?[:=][ ]?{_QUOTE}"
     rf"(?:{TITLE}\.?[ ])?(?P<v>{NAME})(?![\p{{L}}\d@])", False, "role"),
    (rf"\"(?:{_KIND}name|surname|forename){_JSON_VALUE}", True, "named"),
    (rf"\"(?:name|{_ROLE}){_JSON_VALUE}", True, "role"),
    (rf"(?:^|(?<=[.!?\"“(]\s)|(?<=\n))\s*(?:Dear|Hi|Hello|Hey|Hallo)[ ](?:{TITLE}\.?[ ])?"
     rf"(?P<v>{NAME})"
     r"(?=\s*[,!.:\n]|\s+and\b|$)", False, "role"),
    (rf"(?i:regards|wishes|sincerely|faithfully|cheers|thanks|truly|respectfully|greetings)[,!.]?"
     rf"[ ]*\r?\n\s*(?P<v>{NAME})[ ]*$", False, "role"),
    (rf"\b(?i:my|his|her|their|whose)[ ](?i:full[ ]|first[ ]|last[ ])?(?i:name)[ ](?i:is|was)[ ]"
     rf"(?:{TITLE}\.?[ ])?(?P<v>{NAME}|\p{{Ll}}{{3,}}(?:[ ]\p{{Ll}}{{3,}})?)"
     r"(?=[.,;!?\n]|[ ]|$)", False, "named"),
    (rf"(?<![\p{{L}}-])(?i:{_RELATION})[ ](?P<v>{NAME})(?![\p{{L}}\d_@])", False, "role"),
    (rf"\b(?:I[ ]am|I['’]m|this[ ]is|called|named|known[ ]as|née|nee)[ ](?P<v>{NAME})"
     r"(?=[.,;!?\n]|[ ]|$)",
     False, "role"),
    (r"^\s*\[?(?:\d{4}-\d\d-\d\d[ T])?\d{1,2}:\d{2}(?::\d{2})?(?:[ ]?[AaPp][Mm])?\]?[ ]?[-–]?[ ]?<?"
     r"(?P<v>[\p{L}][\p{L}'’.-]*(?:[ ][\p{L}][\p{L}'’.-]*){0,2})>?:[ ]", False, "role"),
    (rf"(?P<v>{CAPITALISED}(?:[ ](?:{PARTICLE}[ ]){{0,2}}(?:{CAPITALISED}|{INITIALS})){{1,3}})"
     r"[ ]?[-–,:|]?[ ]?[<(\[]?(?:mailto:)?(?=[\w.+-]+@[\w.-]+)", False, "role"),
)  # fmt: skip
_EVIDENCE = [(compiled(p, ignore_case=i), kind) for p, i, kind in _TABLE]
_PAIR = compiled(
    rf"(?<![\p{{L}}\d_@./\\-])(?P<given>\p{{Lu}}[\p{{L}}\p{{M}}]+)[ ](?:{INITIALS}[ ])?"
    rf"(?:{PARTICLE}[ ]){{0,2}}"
    rf"(?P<family>{CAPITALISED})(?:,?[ ]{SUFFIX})?(?![\p{{L}}\d_@])"
)


_LOWER_PAIR = compiled(
    r"(?<![\p{L}\d_@./\\-])(?P<given>\p{Ll}{3,})[ ](?P<family>\p{Ll}{3,})(?![\p{L}\d_@./-])"
)


def evident(text: str) -> Iterator[Span]:
    """People whom the text itself introduces as such."""
    for pattern, kind in _EVIDENCE:
        for match in pattern.finditer(text, timeout=SECONDS):
            start, end = headless(text, *match.span("v"))
            if score := _JUDGES[kind](text[start:end]):
                yield Span(start, end, EntityType.PERSON, score)
    for match in _LOWER_PAIR.finditer(text, overlapped=True, timeout=SECONDS):
        if _paired(match):
            yield Span(match.start(), match.end(), EntityType.PERSON, 0.6)
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
    return 0.8 if proper(name.split(maxsplit=1)[0]) else 0.0


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
