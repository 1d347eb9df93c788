"""How a person's name is built: titles, parts, particles, initials, suffix.

Two readings of one name are compared part by part (I3): "Ms Olsgaard", "M. Olsgaard" and
"Olsgaard, Marit" can be "Marit Olsgaard", "Per Olsgaard" cannot. Nothing here decides who
is who; it says what is compatible.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import NamedTuple

from rag.privacy.lexicon import is_ambiguous_title, is_common_key, is_place_key, is_title, words
from rag.privacy.shadow import WORD, may_break_words, mended, plain, shadow, word_spans

WEAK_LETTERS = 4
"""A form of fewer letters or digits proves nothing alone."""
_HANDLE_LETTERS = 5
"""A surname of fewer letters with an initial joined to it proves nothing."""

_FEMALE = words(
    "ms mrs miss madam madame frau fru mme mlle senora sra dona signora lady dame sister"
)
_MALE = words("mr mister sir herr hr dhr monsieur senor sr signor lord father brother")
_GENERATIONS = {
    **dict.fromkeys(("jr", "jnr", "junior"), "jr"),
    **dict.fromkeys(("sr", "snr", "senior"), "sr"),
    **{"ii": "ii", "iii": "iii", "iv": "iv", "2nd": "ii", "3rd": "iii", "4th": "iv"},
}
_AGES = words("elder younger")
_DEGREES = words("phd md esq qc kc mba dds")
_SUFFIXES = frozenset({*_GENERATIONS, *_DEGREES})
_PARTICLES = words(
    """van von der den de del della di da das do dos du des la le el al bin ibn ben bint ter ten
    te zu zur zum af av e y i nee abu ap mac o d l"""
)
_FUNCTION_WORDS = words(
    """a an the in on at of to by for from with and or but as so if i we you he she it they is are
    was be this that my your his her our their not no"""
)
_CERTAIN_CAPITALS = 3
"""Two capitals may be the initials of given names."""
_BETWEEN = re.compile(r"[\s_,;]+")
_HYPHEN = re.compile(r"[-\u2010-\u2015]")
_SPACED_HYPHEN = re.compile(r"\s+[-\u2010-\u2015]\s+")
_UMLAUTS = str.maketrans({"ä": "ae", "ö": "oe", "ü": "ue", "å": "aa", "ø": "oe", "æ": "ae"})


_TITLES_BEFORE = re.compile(
    r"([^\W\d_]+)(?:\.[ \t\u00a0]?|[ \t\u00a0]|\.?\s+(and|&)\s|\.?\r?\n)\s?\Z"
)
_TITLE_REACH = 24
_MOST_TITLES = 4


def title_before(text: str, start: int) -> str:
    """The titles that stand right before ``text[start:]``, plain and joined by one space.

    "Ms. Dr. " gives ``ms dr``; empty where there is none, and before a couple's name ("Mr and
    Mrs"), which is neither's. A title that is often another word counts with a capital alone,
    and not behind another capital, where it ends a name ("Ostervik Sr. Kvistad").
    """
    found: list[str] = []
    while len(found) < _MOST_TITLES:
        match = _TITLES_BEFORE.search(text, max(0, start - _TITLE_REACH), start)
        if match is None or not is_title(match[1]):
            break
        if match[2] is not None:
            return ""
        if is_ambiguous_title(match[1]) and not _surely_title(text, *match.span(1)):
            break
        found.append(plain(shadow(match[1]).text))
        start = match.start()
    return " ".join(reversed(found))


def _surely_title(text: str, start: int, end: int) -> bool:
    before = text[max(0, start - _TITLE_REACH) : start].rstrip(" ").rpartition(" ")[2]
    name = before[:1].isupper() and not is_title(before) and before[-1:] not in ".,;:!?"
    return text[start].isupper() and not name and (start == 0 or not text[start - 1].isalnum())


_SUFFIX_AFTER = re.compile(
    r"(?:,\s?|\s{1,2})(?:the\s(?P<age>elder|younger)\b|(?P<word>[^\W_]{2,6})(?![^\W_]))"
    r"(?P<more>\s[^\W\d_])?",
    re.IGNORECASE,
)


def suffix_after(text: str, end: int) -> str:
    """The suffix right after ``text[:end]`` that tells father and son apart, or nothing.

    One of ``jr sr ii iii iv elder younger``, however it is written.
    """
    match = _SUFFIX_AFTER.match(text, end)
    if match is None:
        return ""
    if match["age"]:
        return match["age"].casefold()
    word = match["word"]
    generation = _GENERATIONS.get(word.casefold(), "")
    numeral = generation[:1] == "i" and not word.isupper() and not word[0].isdigit()
    mere_word = len(word) == _LETTERS_OF_JUNIOR and word.islower() and match["more"]
    return "" if numeral or mere_word else generation


_LETTERS_OF_JUNIOR = 6
"""Junior and senior are words also: "Ostervik, senior clerk"."""


def is_weak_word(word: str) -> bool:
    """Whether one plain word alone is no name for certain: short, common, a place."""
    return len(word) < WEAK_LETTERS or is_common_key(word) or is_place_key(word)


@dataclass(frozen=True, slots=True)
class Part:
    """A piece of a name that may stand alone."""

    text: str = field(repr=False)
    key: str = field(repr=False)
    weak: bool


@dataclass(frozen=True, slots=True)
class Unit:
    """One written part of a name: "Pia-Lotte", "R.", "van der Aa" (particles "van der")."""

    key: str = field(repr=False)  # plain words joined by one space, without particles
    text: str = field(repr=False)
    particles: str = field(default="", repr=False)
    accented: str = field(default="", repr=False)

    halves: tuple[str, ...] = field(default=(), repr=False)  # "osullivan", "burke"

    @property
    def initial(self) -> bool:
        return len(self.key) == 1

    @property
    def glued(self) -> str:
        return self.key.replace(" ", "")

    @property
    def spellings(self) -> list[str]:
        """Its keys: as written, without apostrophes, and as one word."""
        if " " not in self.key or not self.halves:
            return [self.key]
        return list(dict.fromkeys((self.key, " ".join(self.halves), self.glued)))

    def matches(self, other: Unit) -> bool:
        """Equal, or one an initial of the other."""
        if self.initial or other.initial:
            return self.key[:1] == other.key[:1]
        return self.glued == other.glued


@dataclass(frozen=True, slots=True)
class PersonName:
    """A name read into its parts, in the order given name to family name."""

    titles: tuple[str, ...] = field(repr=False)
    units: tuple[Unit, ...] = field(repr=False)
    suffix: str = field(default="", repr=False)  # jr sr ii iii iv elder younger
    turnable: bool = False  # it may have been written with the family name first

    @property
    def key(self) -> tuple[str, ...]:
        return (*(unit.glued for unit in self.units), *((self.suffix,) if self.suffix else ()))

    @property
    def whole(self) -> str:
        """Equal where all parts are equal."""
        return " ".join(unit.glued for unit in self.units)

    @property
    def log_in(self) -> str:
        """What it is if it is one word as log-ins are: no capital, or one inside, or a digit."""
        text = self.units[0].text if len(self.units) == 1 else ""
        proper = text[:1].isupper() and (text[1:].islower() or text.isupper())
        return "" if proper or not text else self.units[0].glued

    @property
    def asks(self) -> frozenset[str]:
        """What it can be short for bears one of these among its ``marks``."""
        found = {self.whole, *(unit.glued for unit in self.units if not unit.initial)}
        if len(self.units) == 1:
            found |= {key.removesuffix(end) for key in found for end in ("s", "es")}
        return frozenset(found)

    @property
    def marks(self) -> frozenset[str]:
        """The words by which a shorter mention of it may be known."""
        found = {self.whole, *(handle for handle, _ in self._handles())}
        for unit in self.units:
            found |= {unit.glued, *unit.halves, *unit.key.split()[1:]}
        return frozenset(found)

    @property
    def gender(self) -> str:
        """``f`` or ``m`` where the title says so, else empty."""
        if any(title in _FEMALE for title in self.titles):
            return "f"
        return "m" if any(title in _MALE for title in self.titles) else ""

    def placed(self, title: str, suffix: str) -> PersonName:
        """The name with what its place in a text adds: ``title_before``, ``suffix_after``."""
        if not title and (not suffix or self.suffix):
            return self
        titles = (*title.split(), *self.titles)
        return replace(self, titles=titles, suffix=self.suffix or suffix)

    @property
    def fullness(self) -> tuple[int, int, int]:
        """The greater, the more of the name is there."""
        full = [unit for unit in self.units if not unit.initial]
        return len(full), len(self.units), sum(len(unit.key) for unit in self.units)

    def is_weak(self) -> bool:
        """Whether the whole name may mean something else: one word that is weak, or initials."""
        return not self.suffix and not self._is_full() and all(_weak(u.key) for u in self.units)

    def _is_full(self) -> bool:
        """Whether two parts are written out: so many words together mean nobody else."""
        written = [u for u in self.units if not u.initial and u.key not in _FUNCTION_WORDS]
        return len(written) > 1

    def can_be(self, full: PersonName) -> bool:
        """Whether this mention can mean the person of that at least as full name."""
        if self.gender and full.gender and self.gender != full.gender:
            return False
        if self.suffix and full.suffix and self.suffix != full.suffix:
            return False
        if not self.units or len(self.units) > len(full.units):
            return False
        return self._within(full) or self._reversed_of(full) or self._log_in_of(full)

    def _within(self, full: PersonName) -> bool:
        """Its units occur in ``full`` in order, at least one of them written out."""
        written, rest = False, iter(full.units)
        for unit in self.units:
            other = next((other for other in rest if unit.matches(other)), None)
            if other is None:
                return len(self.units) == 1 and self._plural_or_half_of(full)
            written = written or not (unit.initial or other.initial)
        return written

    def _plural_or_half_of(self, full: PersonName) -> bool:
        """ "Brandt" of "Möller-Brandt", "the Sorrels" of "Sorrel"."""
        key = self.units[0].glued
        if len(key) < WEAK_LETTERS:
            return False
        return any(
            key in unit.halves
            or key in unit.key.split()[1:]
            or key in (f"{unit.glued}s", f"{unit.glued}es")
            for unit in full.units
            if not unit.initial
        )

    def _reversed_of(self, full: PersonName) -> bool:
        if not (self.turnable or full.turnable) or len(self.units) != 2 != len(full.units):
            return False
        pairs = list(zip(self.units, reversed(full.units), strict=False))
        written = any(not (one.initial or other.initial) for one, other in pairs)
        return written and len(full.units) == 2 and all(a.matches(b) for a, b in pairs)

    def _log_in_of(self, full: PersonName) -> bool:
        key = self.log_in
        return bool(key) and any(handle == key for handle, _ in full._handles())

    def parts(self) -> Iterator[Part]:
        """The forms that this name gives besides itself: see ``forms.forms_of``."""
        units = [unit for unit in self.units if not unit.initial]
        yield self._joined(*self.units, weak=self.is_weak() if len(self.units) > 1 else None)
        if len(self.units) > 1:
            yield from self._pairs()
            for unit in units:
                yield Part(unit.text, unit.key, _weak(unit.key))
            for handle, surname in self._handles():
                yield Part(self.units[-1].text, handle, _weak_handle(handle, surname))
        for unit in units:
            yield from self._of_unit(unit)

    def _joined(self, *units: Unit, weak: bool | None = None) -> Part:
        text = " ".join(unit.text for unit in units)
        key = " ".join(" ".join(filter(None, (unit.particles, unit.key))) for unit in units)
        return Part(text, key, _weak(key) if weak is None else weak)

    def _pairs(self) -> Iterator[Part]:
        first, last = self.units[0], self.units[-1]
        full = not first.initial and not last.initial and self._is_full()
        yield self._joined(first, last, weak=False if full else None)
        for one, two in pairwise(self.units):
            if not one.initial and not two.initial:
                yield self._joined(one, two)
        if first.initial or last.initial:
            return
        yield self._joined(last, first)
        weak = _weak(last.key)
        for key in last.spellings:
            for given in first.spellings:
                if (given, key) != (first.key, last.key):
                    yield Part(f"{first.text} {last.text}", f"{given} {key}", False)
            yield Part(f"{last.text} {first.key[0]}", f"{key} {first.key[0]}", weak=True)
            yield Part(f"{first.text[0]}. {last.text}", f"{first.key[0]} {key}", weak)

    def _handles(self) -> Iterator[tuple[str, str]]:
        """What log-ins are made of, with the part that must tell: both names, or an initial."""
        if len(self.units) < 2 or self.units[-1].initial:
            return
        first, last = self.units[0], self.units[-1]
        surnames = (last.glued, *last.halves) if len(last.halves) > 1 else (last.glued,)
        initial = first.key[0]
        for surname in dict.fromkeys(surnames):
            if not first.initial:
                yield first.glued + surname, ""
                yield surname + first.glued, ""
            yield initial + surname, surname
            if initial != "s":  # "the Thorsruds" are the family
                yield surname + initial, surname

    def _of_unit(self, unit: Unit) -> Iterator[Part]:
        if unit.particles:
            key = f"{unit.particles} {unit.key}"
            yield Part(unit.text, key, len(unit.key) < 2)
        words = unit.key.split()
        if len(words) > 1:
            for word in (*words, *unit.spellings, *unit.halves):
                if len(word) > 1:
                    yield Part(word, word, _weak(word))
        if unit.accented != unit.key:
            umlauts = plain(unit.accented.translate(_UMLAUTS))
            if umlauts != unit.key:
                yield Part(unit.text, umlauts, _weak(umlauts))


def _weak_handle(handle: str, surname: str) -> bool:
    """Whether a log-in may be another word; ``surname`` is what it has besides an initial."""
    if not surname:
        return is_common_key(handle)
    return len(surname) < _HANDLE_LETTERS or is_common_key(surname) or is_common_key(handle)


def _weak(key: str) -> bool:
    if not key.isascii() and " " in key and len(key) == 2 * key.count(" ") + 1:
        return False  # a script without spaces: each letter is a word, two make a name
    return all(map(is_weak_word, key.split()))


class _Token(NamedTuple):
    """One written word of a name, with its normalized words: with and without accents."""

    text: str
    accented: list[str]
    keys: list[str]

    def __repr__(self) -> str:
        return "_Token(...)"


def _tokens(text: str) -> list[_Token]:
    found = []
    for part in _BETWEEN.split(text):
        cast = shadow(part).text
        accented = [cast[start:end] for start, end in word_spans(cast)]
        if len(accented) > 1 and accented[-1].isdigit() and part[-1:].isdigit():
            accented.pop()  # the number of a log-in
        if accented:
            found.append(_Token(part, accented, [plain(word) for word in accented]))
    return found


def parse_name(text: str) -> PersonName:
    """Read a written name. Never fails: what is no name has no units."""
    if may_break_words(text):
        text = mended(text)
    if "-" in text or not text.isascii():
        text = _SPACED_HYPHEN.sub("-", text)
    tokens = _uninverted(text) if "," in text else _tokens(text)
    first = 0
    while first < len(tokens) - 1 and _only_key(tokens[first], is_title):
        first += 1
    last, suffix = _suffixed(tokens, first)
    named, turnable = tokens[first:last], False
    if "," not in text and len(named) > 1:
        named, turnable = _turned(named)
    titles = tuple(token.keys[0] for token in tokens[:first])
    return PersonName(titles, tuple(_units(named)), suffix, turnable)


def _only_key(token: _Token, test: Callable[[str], bool]) -> bool:
    return len(token.keys) == 1 and test(token.keys[0])


def _suffixed(tokens: list[_Token], first: int) -> tuple[int, str]:
    """Where the suffixes behind a name begin, and the one that tells generations apart."""
    last, suffix = len(tokens), ""
    while last > first + 1 and _only_key(tokens[last - 1], _SUFFIXES.__contains__):
        last -= 1
        suffix = _GENERATIONS.get(tokens[last].keys[0], suffix)
    if last > first + 2 and tokens[last - 2].keys == ["the"] and tokens[last - 1].keys[0] in _AGES:
        return last - 2, tokens[last - 1].keys[0]
    return last, suffix


def _turned(tokens: list[_Token]) -> tuple[list[_Token], bool]:
    """ "KVISTAD Oda" as "Oda KVISTAD": capitals before small letters show the family name."""
    size = 0
    while size < len(tokens) and tokens[size].text.isupper() and "." not in tokens[size].text:
        size += 1
    if not size or not any(map(str.islower, tokens[-1].text)) or len(tokens[size - 1].text) < 2:
        return tokens, False
    if len(tokens[size - 1].text) < _CERTAIN_CAPITALS:
        return tokens, True
    return tokens[size:] + tokens[:size], True


def _uninverted(text: str) -> list[_Token]:
    """The tokens of "Olsgaard, Marit" as of "Marit Olsgaard"; a suffix after a comma stays."""
    left, _, right = text.partition(",")
    before, after = _tokens(left), _tokens(right)
    if not before or not after or "," in right or after[0].keys[0] in _SUFFIXES:
        return before + after
    return after + before


def _units(tokens: list[_Token]) -> Iterator[Unit]:
    particles: list[str] = []
    written: list[str] = []
    for at, token in enumerate(tokens):
        if 0 < at < len(tokens) - 1 and _is_particle(token):
            particles += token.keys
            written.append(token.text)
            continue
        if len(token.keys) > 1 and all(len(key) == 1 and key.isascii() for key in token.keys):
            yield from (Unit(key, key.upper(), accented=key) for key in token.keys)  # "M.R."
            continue
        text = " ".join([*written, token.text.strip(".,;:\"'()[]")])
        key, accented = " ".join(token.keys), " ".join(token.accented)
        yield Unit(key, text, " ".join(particles), accented, _halves(token))
        particles, written = [], []


def _halves(token: _Token) -> tuple[str, ...]:
    """What hyphens part, each without apostrophes; nothing where each letter is a word."""
    if len(token.keys) < 2 or all(len(key) == 1 for key in token.keys):
        return ()
    glued = [
        "".join(map(plain, WORD.findall(shadow(part).text))) for part in _HYPHEN.split(token.text)
    ]
    return tuple(half for half in glued if half)


def _is_particle(token: _Token) -> bool:
    """Whether it only leads to the next part; with a full stop it is an initial."""
    return len(token.keys) == 1 and token.keys[0] in _PARTICLES and "." not in token.text
