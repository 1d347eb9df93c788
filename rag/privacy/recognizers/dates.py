"""Dates, and which of them are birth dates.

A date is somebody's birth date when the words before it say so ("born", "DOB", a
``birthDate`` key) or a birthday is its subject. Other dates are found too, as ``DATE``.
"""

from __future__ import annotations

import regex

from rag.privacy.lexicon import words
from rag.privacy.recognizers.rules import SECONDS, has_word
from rag.types import EntityType, Span

_MONTH = (
    r"(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|"
    r"sept?(?:ember)?|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)\.?"
)
_DAY = r"(?:0?[1-9]|[12]\d|3[01])(?:st|nd|rd|th|\.)?"
_YEAR = r"(?:1[89]|20)\d{2}"
_FULL = (
    rf"(?:{_YEAR}[-./]\s?(?:0?[1-9]|1[0-2])[-./]\s?(?:0?[1-9]|[12]\d|3[01])"
    rf"|(?:0?[1-9]|[12]\d|3[01])\s?([-./])\s?(?:0?[1-9]|[12]\d|3[01])\s?\1\s?(?:{_YEAR}|\d{{2}})"
    rf"|{_DAY}(?:\s?of)?[\s-]{_MONTH},?[\s-](?:{_YEAR}|['’]\d{{2}})"
    rf"|{_MONTH}\s{_DAY}(?:,\s?|\s){_YEAR})"
)
_DATE = regex.compile(rf"(?<![\w@./-]|\d,)(?:{_FULL})(?![\w/]|[.-]\d)", regex.IGNORECASE)
_IN_NAME = regex.compile(rf"(?<=_){_YEAR}-[01]\d-[0-3]\d(?=[_.])")
_PARTIAL = regex.compile(
    rf"(?<!\w)(?:{_DAY}(?:\s?of)?\s{_MONTH}|{_MONTH}\s{_DAY}(?!\d)|{_MONTH},?\s{_YEAR}|{_YEAR})(?![\w/]|[.-]\d)",
    regex.IGNORECASE,
)
_BIRTH = words("born birth dob birthdate birthday bday birthdays geboren né née nacido nato født")
_BIRTH_BEFORE = regex.compile(
    r"(?:\bborn(?:\s(?:on|in|at))?|\bd\.?\s?o\.?\s?b\b\.?|\b(?:date|day|year)[\s_]?of[\s_]?birth|"
    r"birth[\s_]?(?:date|day)|\bb-?day|\bbirth|\bgeb(?:\.|oren)(?:\sam)?|\bné+e?(?:\sle)?|"
    r"\bnacid[oa](?:\sel)?|\bnat[oa](?:\sil)?|\bfødt|\(\s?[*b]\.?)"
    r"[^\d.;\n]{0,32}$",
    regex.IGNORECASE,
)
_BIRTH_AFTER = regex.compile(
    r"\s?(?:\((?:d\.?o\.?b\.?|born|date of birth)\)"
    r"|is\s(?:my|his|her|their|\w+['’]s)\s(?:birthday|date of birth))",
    regex.IGNORECASE,
)


class DateRecognizer:
    """Calendar dates: ``BIRTH_DATE`` beside a word of birth, else ``DATE``."""

    name = "date"

    def find(self, text: str) -> list[Span]:
        spans = []
        for pattern, plain in ((_DATE, 0.8), (_IN_NAME, 0.8), (_PARTIAL, 0.0)):
            for match in pattern.finditer(text, timeout=SECONDS):
                start, end = match.span()
                if self._birth(text, start, end):
                    spans.append(Span(start, end, EntityType.BIRTH_DATE, 0.95))
                elif plain:
                    spans.append(Span(start, end, EntityType.DATE, plain))
        return spans

    def _birth(self, text: str, start: int, end: int) -> bool:
        before = text[max(0, start - 60) : start]
        if _BIRTH_BEFORE.search(before, timeout=SECONDS):
            return True
        if _BIRTH_AFTER.match(text, end, timeout=SECONDS):
            return True
        return has_word(text, start, start, words("dob birthday"), before=24, after=0)
