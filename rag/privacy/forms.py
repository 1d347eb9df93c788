"""The forms in which a subject may be named, and the look-up of groups of words among them.

A form's key is what is compared and hashed: plain words of the shadow joined by one
space, or, for numbers and codes, everything but letters and digits dropped. A *weak*
form is also a common word or, in a name, a place, or is very short: alone it proves
nothing, so protecting asks for evidence (see ``protect``) and the guard does not refuse
on it. Names are read in ``names``.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from itertools import accumulate
from typing import NamedTuple

from rag.privacy.lexicon import is_common_key
from rag.privacy.lexicon import words as vocabulary
from rag.privacy.names import WEAK_LETTERS, parse_name
from rag.privacy.shadow import breaks_word, may_break_words, plain, shadow, word_spans
from rag.types import Alias, EntityType, Span

COMPACT = frozenset(
    {
        EntityType.PHONE,
        EntityType.CARD,
        EntityType.BANK_ACCOUNT,
        EntityType.NATIONAL_ID,
        EntityType.TAX_ID,
        EntityType.DOCUMENT_ID,
        EntityType.WALLET,
    }
)
"""Types whose separators mean nothing: compared by letters and digits alone."""

_DATES = frozenset({EntityType.DATE, EntityType.BIRTH_DATE})
NAMES_OF_THINGS = frozenset({EntityType.PLACE, EntityType.ORGANISATION})

_RUN = re.compile(r"\S{11,}")
_NUMBER_GAP = re.compile(r"[\s().\-/+:,_]{0,4}")
_MOST_NUMBER_WORDS = 10
_MOST_RUN_WORDS = 16
_MOST_LEADING = 4
_LINE = re.compile(r"[\n,;]+")
_UNIT_WORDS = vocabulary("flat apt apartment unit room suite floor no box po etage")
"""A part of an address that begins so tells nothing without the rest."""


@dataclass(frozen=True, slots=True)
class Form:
    """One way in which a subject may be written."""

    text: str = field(repr=False)
    key: str = field(repr=False)
    weak: bool = False
    derived: bool = False
    compact: bool = False


class Group(NamedTuple):
    """Consecutive words ``text[start:end]`` as they may be looked up."""

    start: int
    end: int
    words: int
    first_key: str
    key: str

    def __repr__(self) -> str:
        return f"Group(start={self.start}, end={self.end}, words={self.words})"


@dataclass(frozen=True, slots=True)
class Words:
    """The words of a text: their plain keys and where each starts and ends in it."""

    keys: list[str] = field(repr=False)
    starts: list[int] = field(repr=False)
    ends: list[int] = field(repr=False)

    def __len__(self) -> int:
        return len(self.keys)

    def add(self, key: str, start: int, end: int) -> None:
        self.keys.append(key)
        self.starts.append(start)
        self.ends.append(end)


def read_words(text: str) -> Words:
    """Split ``text`` into words, with offsets into ``text``.

    A word that a line break or Markdown's emphasis cuts is there whole, and then in parts.
    """
    cast = shadow(text)
    spans = word_spans(cast.text)
    keys = [plain(cast.text[start:end]) for start, end in spans]
    if not cast.one_to_one:
        spans = [cast.original(start, end) for start, end in spans]
    words = Words(keys, [start for start, _ in spans], [end for _, end in spans])
    return _with_whole_words(text, words) if may_break_words(text) else words


def _with_whole_words(text: str, parts: Words) -> Words:
    """``parts`` with every broken word, whole, before its first part."""
    whole = Words([], [], [])
    at = 0
    while at < len(parts):
        last = at
        while last + 1 < len(parts) and breaks_word(text, parts.ends[last], parts.starts[last + 1]):
            last += 1
        if last > at:
            whole.add("".join(parts.keys[at : last + 1]), parts.starts[at], parts.ends[last])
        for n in range(at, last + 1):
            whole.add(parts.keys[n], parts.starts[n], parts.ends[n])
        at = last + 1
    return whole


def read_keys(text: str) -> list[str]:
    """The keys of ``read_words``."""
    return read_words(text).keys if may_break_words(text) else _keys(text)


def _keys(text: str) -> list[str]:
    """The plain words of ``text`` as they are written."""
    cast = shadow(text).text
    return [plain(cast[start:end]) for start, end in word_spans(cast)]


def words_key(text: str) -> str:
    """The words of ``text`` joined by one space."""
    return " ".join(_keys(text))


def compact_key(text: str) -> str:
    """The letters and digits of ``text``; a phone's trunk and country prefix are kept."""
    return "".join(_keys(text))


def forms_of(type: EntityType, original: str) -> list[Form]:
    """Every form of a subject that is written ``original``: the full one first."""
    if type is EntityType.PERSON:
        return _person_forms(original)
    key = key_of(type, original)
    if not key:
        return []
    if _is_weak_thing(type, key):  # compared as it is written, even if it is a number
        return [Form(original, words_key(original), weak=True)]
    forms = [Form(original, key, compact=type in COMPACT)]
    if type is EntityType.ADDRESS:
        forms += _address_parts(original)
    elif type is EntityType.CREDENTIAL:
        forms += _secret_lines(original)
    elif type in _DATES and len(digits := key.replace(" ", "")) > 5 and digits.isdigit():
        forms.append(Form(original, digits, derived=True, compact=True))
    elif type is EntityType.BANK_ACCOUNT and len(key) > 15 and key[:2].isalpha():
        forms.append(Form(original, key[4:], derived=True, compact=True))
    return _distinct(forms)


def key_of(type: EntityType, text: str) -> str:
    """The key of ``text`` as a value of ``type``."""
    if type is EntityType.PHONE:
        return phone_key(text)[1]
    return compact_key(text) if type in COMPACT else words_key(text)


# --- people --------------------------------------------------------------------------


def _person_forms(original: str) -> list[Form]:
    key = words_key(original)
    if not key:
        return []
    name = parse_name(original)
    forms = [Form(original, key, weak=not name.titles and name.is_weak())]
    for part in name.parts():
        forms.append(Form(part.text, part.key, weak=part.weak, derived=True))
    return _distinct(forms)


# --- everything else -------------------------------------------------------------------


def _is_weak_thing(type: EntityType, key: str) -> bool:
    """Short values, and words that mean something else, need evidence."""
    if type in COMPACT or any(char.isdigit() for char in key):
        return len(key.replace(" ", "")) < WEAK_LETTERS
    return " " not in key and (len(key) < WEAK_LETTERS or is_common_key(key))


def _address_parts(original: str) -> Iterator[Form]:
    """Parts of an address that tell as much alone: street with number, postcode."""
    for line in _LINE.split(original):
        key = words_key(line)
        telling = any(c.isdigit() for c in key) and any(c.isalpha() for c in key)
        if telling and " " in key and key.split(" ", 1)[0] not in _UNIT_WORDS:
            yield Form(line.strip(), key, derived=True)


def _secret_lines(original: str) -> Iterator[Form]:
    """The lines of a wrapped secret; each is secret by itself."""
    for line in original.splitlines():
        if len(line.strip()) >= 16:
            yield Form(line.strip(), words_key(line), derived=True)


_TWO_DIGIT_CODES = vocabulary(
    """20 27 30 31 32 33 34 36 39 40 41 43 44 45 46 47 48 49 51 52 53 54 55 56 57 58 60 61 62 63
    64 65 66 81 82 84 86 90 91 92 93 94 95 98"""
)
_EXTENSION = re.compile(r"(?i)(?:ext|x|#)\.?\s*\d{1,6}\s*$")
_TRUNK = re.compile(r"\(\s*0\s*\)")


def phone_key(text: str) -> tuple[str, str]:
    """``(country code or "", national number without trunk zero)`` of a phone number (E.164)."""
    bare = _TRUNK.sub("", _EXTENSION.sub("", text))
    digits = compact_key(bare)
    if not digits.isdigit():
        return "", digits
    if bare.lstrip(" (").startswith(("+", "\uff0b")):
        return _split_country(digits)
    if digits.startswith("00") and len(digits) > 9:
        return _split_country(digits[2:])
    if digits.startswith("1") and len(digits) == 11:
        return "1", digits[1:]
    return "", digits.lstrip("0") or digits


def _split_country(digits: str) -> tuple[str, str]:
    size = 1 if digits[:1] in ("1", "7") else 2 if digits[:2] in _TWO_DIGIT_CODES else 3
    return digits[:size], digits[size:].lstrip("0") or digits


def _distinct(forms: Iterable[Form]) -> list[Form]:
    """The first of each key."""
    kept: dict[str, Form] = {}
    for form in forms:
        if form.key:
            kept.setdefault(form.key, form)
    return list(kept.values())


# --- look-up -----------------------------------------------------------------------------


def word_groups(text: str, most: int = 5) -> Iterator[Group]:
    """Every group that may be a known form: see ``groups_of``."""
    return groups_of(text, read_words(text), most)


def groups_of(text: str, words: Words, most: int = 5) -> Iterator[Group]:
    """Groups of one to ``most`` words; longer runs without a space; and numbers.

    A number is looked up by its digits and letters however it is separated, a phone
    number also without its country code: those groups are their own ``first_key``.
    """
    for at in range(len(words)):
        yield from groups_at(words, at, most)
    yield from long_runs(text, words, most)
    yield from numbers(text, words)


def groups_at(words: Words, at: int, most: int = 5) -> Iterator[Group]:
    """Groups of one to ``most`` words that begin with word ``at``."""
    keys, start, ends = words.keys, words.starts[at], words.ends
    first = key = keys[at]
    yield Group(start, ends[at], 1, first, key)
    for last in range(at + 1, min(at + most, len(keys))):
        key = f"{key} {keys[last]}"
        yield Group(start, ends[last], last - at + 1, first, key)


def long_runs(text: str, words: Words, most: int = 5) -> Iterator[Group]:
    """Runs without a space of more than ``most`` words: addresses of mail and of the web."""
    for run in _RUN.finditer(text):
        if run.group().isalnum():
            continue
        first = bisect_left(words.starts, run.start())
        last = bisect_left(words.starts, run.end(), first)
        if most < last - first <= _MOST_RUN_WORDS:
            keys = words.keys[first:last]
            start, end = words.starts[first], words.ends[last - 1]
            yield Group(start, end, len(keys), keys[0], " ".join(keys))


def numbers(text: str, words: Words) -> Iterator[Group]:
    """Groups of neighbouring words that together hold at least four digits."""
    keys, starts, ends = words.keys, words.starts, words.ends
    digits = [0 if key.isalpha() else sum(char.isdigit() for char in key) for key in keys]
    if not any(digits):
        return
    for at in range(len(keys)):
        if not digits[at] and not _leads_number(words, at, digits):
            continue
        joined, found = "", 0
        for last in range(at, min(at + _MOST_NUMBER_WORDS, len(keys))):
            if last > at and not _NUMBER_GAP.fullmatch(text, ends[last - 1], starts[last]):
                break
            if last > at and not digits[last] and len(keys[last]) > 4:
                break
            joined += keys[last]
            found += digits[last]
            if found >= 4:
                yield from _number_groups(text, starts[at], ends[last], joined)


def _leads_number(words: Words, at: int, digits: Sequence[int]) -> bool:
    """Whether letters belong to the number behind them: few, or with nothing between."""
    if at + 1 >= len(digits) or not digits[at + 1]:
        return False
    return len(words.keys[at]) <= _MOST_LEADING or words.ends[at] == words.starts[at + 1]


def _number_groups(text: str, start: int, end: int, joined: str) -> Iterator[Group]:
    yield Group(start, end, 1, joined, joined)
    if not 6 <= len(joined) <= 17 or not joined.isdigit():
        return
    plus = start > 0 and text[start - 1] in "+\uff0b"
    keys = {joined.lstrip("0")}
    if plus or joined[0] in "01":
        keys.add(phone_key(text[start - plus : end])[1])
    for key in keys - {joined, ""}:
        yield Group(start - plus, end, 1, key, key)


class FormHasher:
    """Keyed hashes of forms: BLAKE2b over the key, 64 bits, signed as Postgres' bigint is."""

    def __init__(self, secret: bytes) -> None:
        self._keyed = blake2b(digest_size=8, key=blake2b(secret, digest_size=32).digest())

    def hash(self, key: str) -> int:
        keyed = self._keyed.copy()
        keyed.update(key.encode("utf-8", "surrogatepass"))
        return int.from_bytes(keyed.digest(), "big", signed=True)


def aliases_of(spans: Iterable[Span], surface: str, hasher: FormHasher) -> list[Alias]:
    """Every form of every span of a document, hashed for the index; no text.

    A form of one word that this document uses at least as often for a place or an
    organisation as in a person's name is weak.
    """
    spans = list(spans)
    things = Counter(words_key(_text(s, surface)) for s in spans if s.type in NAMES_OF_THINGS)
    people = Counter(
        word
        for span in spans
        if span.type is EntityType.PERSON
        for word in set(words_key(_text(span, surface)).split())
    )
    weak: dict[tuple[EntityType, str, bool], bool] = {}
    for kind, original in {(span.type, _text(span, surface)) for span in spans}:
        for form in forms_of(kind, original):
            one = kind is EntityType.PERSON and " " not in form.key
            thing = one and things[form.key] >= max(people[form.key], 1)
            slot = (kind, form.key, form.compact)
            weak[slot] = weak.get(slot, True) and (form.weak or thing)
    return [
        _alias(kind, key, compact, is_weak, hasher)
        for (kind, key, compact), is_weak in sorted(weak.items())
    ]


def _text(span: Span, surface: str) -> str:
    return surface[span.start : span.end]


def _alias(type: EntityType, key: str, compact: bool, weak: bool, hasher: FormHasher) -> Alias:
    words = 1 if compact else key.count(" ") + 1
    first = key if compact else key.split(" ", 1)[0]
    return Alias(hasher.hash(first), hasher.hash(key), words, type, weak)


def start_of_words(keys: Sequence[str]) -> list[int]:
    """Where each word starts in ``"".join(keys)``, and the length of that."""
    return [0, *accumulate(map(len, keys))]
