"""How a person's name is built: titles, parts, particles, initials, suffix.

Two readings of one name are compared part by part (I3): "Ms Olsgaard", "M. Olsgaard" and
"Olsgaard, Marit" can be "Marit Olsgaard", "Per Olsgaard" cannot. Nothing here decides who
is who; it says what is compatible.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import NamedTuple

from rag.privacy.lexicon import is_ambiguous_title, is_common_word, is_place, is_title, words
from rag.privacy.shadow import WORD, plain, shadow

WEAK_LETTERS = 4
"""A form of fewer letters or digits proves nothing alone."""

_FEMALE = words("ms mrs miss madam madame frau fru mme mlle senora sra dona signora lady dame sister")
_MALE = words("mr mister sir herr hr dhr monsieur senor sr signor lord father brother")
_SUFFIXES = words("jr sr jnr snr ii iii iv phd md esq qc kc mba dds junior senior")
_PARTICLES = words(
    """van von der den de del della di da das do dos du des la le el al bin ibn ben bint ter ten
    te zu zur zum af av e y i nee abu ap mac o d l"""
)
_SUFFIX_KEYS = [[suffix] for suffix in sorted(_SUFFIXES)]
_BETWEEN = re.compile(r"[\s_,;]+")
_SPACED_HYPHEN = re.compile(r"\s+[-\u2010-\u2015]\s+")
_UMLAUTS = str.maketrans({"ä": "ae", "ö": "oe", "ü": "ue", "å": "aa", "ø": "oe", "æ": "ae"})


_TITLES_BEFORE = re.compile(r"([^\W\d_]+)(?:\.[ \t\u00a0]?|[ \t\u00a0]|\.?\s+(and|&)\s|\.?\r?\n)\s?\Z")
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


def is_weak_word(word: str) -> bool:
    """Whether one plain word alone is no name for certain: short, common, a place."""
    return len(word) < WEAK_LETTERS or is_common_word(word) or is_place(word)


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

    @property
    def initial(self) -> bool:
        return len(self.key) == 1

    def matches(self, other: Unit) -> bool:
        """Equal, or one an initial of the other."""
        if self.initial or other.initial:
            return self.key[:1] == other.key[:1]
        return self.key == other.key


@dataclass(frozen=True, slots=True)
class PersonName:
    """A name read into its parts, in the order given name to family name."""

    titles: tuple[str, ...] = field(repr=False)
    units: tuple[Unit, ...] = field(repr=False)
    suffix: str = field(default="", repr=False)

    @property
    def key(self) -> tuple[str, ...]:
        return (*(unit.key for unit in self.units), *((self.suffix,) if self.suffix else ()))

    @property
    def gender(self) -> str:
        """``f`` or ``m`` where the title says so, else empty."""
        if any(title in _FEMALE for title in self.titles):
            return "f"
        return "m" if any(title in _MALE for title in self.titles) else ""

    def titled(self, title: str) -> PersonName:
        """The name with the titles of ``title`` (see ``title_before``) before its own."""
        return replace(self, titles=(*title.split(), *self.titles)) if title else self

    @property
    def fullness(self) -> tuple[int, int, int]:
        """The greater, the more of the name is there."""
        full = [unit for unit in self.units if not unit.initial]
        return len(full), len(self.units), sum(len(unit.key) for unit in self.units)

    def is_weak(self) -> bool:
        """Whether the whole name may mean something else: every part is a weak word."""
        return not self.suffix and all(_weak(unit.key) for unit in self.units)

    def can_be(self, full: PersonName) -> bool:
        """Whether this mention can mean the person of that at least as full name."""
        if self.gender and full.gender and self.gender != full.gender:
            return False
        if self.suffix and full.suffix and self.suffix != full.suffix:
            return False
        if not self.units or len(self.units) > len(full.units):
            return False
        return self._within(full) or self._reversed_of(full)

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
        key = self.units[0].key
        if len(key) < WEAK_LETTERS:
            return False
        return any(
            key in unit.key.split()[1:] or key in (f"{unit.key}s", f"{unit.key}es")
            for unit in full.units
            if not unit.initial
        )

    def _reversed_of(self, full: PersonName) -> bool:
        mine = [unit.key for unit in self.units]
        return len(mine) == 2 and mine == [unit.key for unit in reversed(full.units)]

    def parts(self) -> Iterator[Part]:
        """The forms that this name gives besides itself: see ``forms.forms_of``."""
        units = [unit for unit in self.units if not unit.initial]
        if len(self.units) > 1 or self.titles or self.suffix:
            yield self._joined(self.units)
        if len(self.units) > 1:
            yield from self._pairs(units)
            for unit in units:
                yield Part(unit.text, unit.key, _weak(unit.key))
        for unit in units:
            yield from self._of_unit(unit)

    def _joined(self, units: tuple[Unit, ...]) -> Part:
        text = " ".join(unit.text for unit in units)
        key = " ".join(" ".join(filter(None, (unit.particles, unit.key))) for unit in units)
        return Part(text, key, _weak(key))

    def _pairs(self, units: list[Unit]) -> Iterator[Part]:
        first, last = self.units[0], self.units[-1]
        yield self._joined((first, last))
        for one, two in pairwise(self.units):
            if not one.initial and not two.initial:
                yield self._joined((one, two))
        if not first.initial and not last.initial:
            yield self._joined((last, first))
            yield Part(f"{last.text} {first.key[0]}", f"{last.key} {first.key[0]}", weak=True)
            weak = _weak(last.key)
            yield Part(f"{first.text[0]}. {last.text}", f"{first.key[0]} {last.key}", weak)
            yield Part(first.text + last.text, _glue(first.key + last.key), False)
            yield Part(last.text + first.text, _glue(last.key + first.key), False)

    def _of_unit(self, unit: Unit) -> Iterator[Part]:
        if unit.particles:
            key = f"{unit.particles} {unit.key}"
            yield Part(unit.text, key, len(unit.key) < 2)
        words = unit.key.split()
        if len(words) > 1:
            for word in words:
                if len(word) > 1:
                    yield Part(word, word, _weak(word))
        if unit.accented != unit.key:
            umlauts = plain(unit.accented.translate(_UMLAUTS))
            if umlauts != unit.key:
                yield Part(unit.text, umlauts, _weak(umlauts))


def _glue(key: str) -> str:
    return key.replace(" ", "")


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
        accented = WORD.findall(shadow(part).text)
        if accented:
            found.append(_Token(part, accented, [plain(word) for word in accented]))
    return found


def parse_name(text: str) -> PersonName:
    """Read a written name. Never fails: what is no name has no units."""
    if "-" in text or not text.isascii():
        text = _SPACED_HYPHEN.sub("-", text)
    tokens = _uninverted(text) if "," in text else _tokens(text)
    first, last = 0, len(tokens)
    while first < last - 1 and len(tokens[first].keys) == 1 and is_title(tokens[first].keys[0]):
        first += 1
    suffix = ""
    while last > first + 1 and tokens[last - 1].keys in _SUFFIX_KEYS:
        last -= 1
        suffix = tokens[last].keys[0]
    titles = tuple(token.keys[0] for token in tokens[:first])
    return PersonName(titles, tuple(_units(tokens[first:last])), suffix)


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
        yield Unit(" ".join(token.keys), text, " ".join(particles), " ".join(token.accented))
        particles, written = [], []


def _is_particle(token: _Token) -> bool:
    """Whether it only leads to the next part; with a full stop it is an initial."""
    return len(token.keys) == 1 and token.keys[0] in _PARTICLES and "." not in token.text
