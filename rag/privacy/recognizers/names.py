"""The shape of people's names, shared by everything that looks for them."""

from __future__ import annotations

from typing import Any

import regex

from rag.privacy.lexicon import (
    is_ambiguous_title,
    is_common_word,
    is_given_name,
    is_place,
    is_title,
    words,
)

APOSTROPHE = "'’ʼ‘`´"
_LETTERS = r"[\p{L}\p{M}]+"
CAPITALISED = rf"[\p{{Lu}}\p{{Lt}}][\p{{L}}\p{{M}}]*(?:[{APOSTROPHE}\-‐‑]{_LETTERS})*"
"""A word as names have them: Farrell, O'Farrell, L’Estrange, Al-Khateeb."""
ELIDED = rf"(?:d|l|dell|dall|all|de)[{APOSTROPHE}]{CAPITALISED}"
INITIALS = r"\p{Lu}\.(?:[ \-]?\p{Lu}\.)*"
PARTICLE = (
    r"(?:van|von|vom|der|den|de|del|della|di|da|dos|das|do|du|la|le|el|al|bin|bint|ibn|ter|ten|te|"
    r"zu|zum|zur|af|av|y|e|op|in|'t|’t)"
)
SUFFIX = r"(?:[Jj][Rr]|[Ss][Rr]|II|III|IV|Esq|[Pp]h\.?D|MD)\b\.?"
_PART = rf"(?:{ELIDED}|{INITIALS}|{CAPITALISED})"
_PARTS = rf"(?:{PARTICLE}[ ]){{0,3}}{_PART}"
NAME = rf"{_PARTS}(?:[ ]{_PARTS}){{0,4}}(?:,?[ ]{SUFFIX})?"
"""A name in ordinary casing, with initials, particles and a suffix."""
WORDS = rf"{_LETTERS}(?:[{APOSTROPHE}\-‐‑.]{_LETTERS}){{0,3}}\.?"
ANY_NAME = rf"{WORDS}(?:[ ]{WORDS}){{0,4}}"
"""Up to five words of letters in any casing."""
TITLE = (
    r"(?:Mr|Mrs|Ms|Mx|Miss|Mister|Dr|Prof|Professor|Doctor|Sir|Dame|Lord|Lady|Rev|Reverend|Capt|"
    r"Captain|Lt|Lieutenant|Sgt|Sergeant|Col|Colonel|Judge|Justice|Sheikh|Imam|Rabbi|Herr|Frau|Hr|"
    r"Fru|Dhr|Mevr|Mme|Mlle|Madame|Monsieur|Señora?|Signora?|Sra|Don|Doña)"
)

_LEADING = regex.compile(rf"(?:{TITLE}\b\.?|{CAPITALISED})[ ]+")
_TOKEN = regex.compile(rf"{_LETTERS}(?:[{APOSTROPHE}]{_LETTERS})*")
_PARTICLES = words(
    "van von vom der den de del della di da dos das do du la le el al bin bint ibn ter ten te zu "
    "zum zur af av y e op in t"
)
_SUFFIXES = words("jr sr ii iii iv esq phd md")
_LABELS = words(
    """name names surname forename tel telephone phone fax mobile email mail address customer client
    tenant patient employee contact todo note notes id date subject re fwd cc bcc dear hi hello hey
    regards sincerely thanks signed signature attn sir madam sirs team all everyone none unknown
    n/a tbd yes no from to sent hr it api url pdf faq kyc gdpr ceo cto cfo iban bic ssn dob nhs cvc
    cvv pin usa uk eu monday tuesday wednesday thursday friday saturday sunday january february
    march april june july august september october november december invoice order total"""
)


def tokens(name: str) -> list[str]:
    """The words of a name, case-folded, without initials and suffixes."""
    found = [t[0].casefold() for t in _TOKEN.finditer(name)]
    return [t for t in found if len(t) > 1 and t not in _SUFFIXES]


def is_particle(word: str) -> bool:
    return word.casefold() in _PARTICLES


def is_label(word: str) -> bool:
    """Whether forms have the word in front of a value or it stands for nobody."""
    return word.casefold() in _LABELS


def proper(word: str) -> bool:
    """Whether the word is hardly anything but a proper name."""
    return not is_common_word(word) and not is_label(word)


def credible(name: str) -> float:
    """How well the words alone suit a person, 0 to 1: the prior of every recognizer of names."""
    parts = [t for t in tokens(name) if t not in _PARTICLES and not _bare_title(t)]
    if not parts or all(is_label(t) for t in parts):
        return 0.0
    unknown = [t for t in parts if proper(t) and not is_place(t)]
    given = is_given_name(parts[0])
    if len(parts) == 1:
        return _credible_word(parts[0], given=given, unknown=bool(unknown))
    if unknown and (given or proper(parts[0]) or any(len(t) > 2 for t in unknown)):
        return 0.9 if given or len(unknown) > 1 else 0.85
    if given:
        return 0.45
    return 0.5 if proper(parts[0]) else 0.3


def _bare_title(word: str) -> bool:
    return is_title(word) and not is_ambiguous_title(word)


def _credible_word(word: str, *, given: bool, unknown: bool) -> float:
    if len(word) < 3 and not given:
        return 0.3
    if unknown:
        return 0.8 if given else 0.65
    if given:
        return 0.5
    return 0.35 if is_place(word) else 0.15


def headless(text: str, start: int, end: int) -> tuple[int, int]:
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


def compiled(pattern: str, *, ignore_case: bool = False) -> Any:
    """A multi-line pattern of the ``regex`` module."""
    return regex.compile(pattern, regex.MULTILINE | (regex.IGNORECASE if ignore_case else 0))
