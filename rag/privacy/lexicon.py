"""What a word may be besides a name: a common word, a place, a title, a nickname.

Pure look-ups in packaged data, loaded at first use and kept (about 10 MB resident);
case never matters. The word list is SCOWL's small size, in which a word is lower-case
only if it is a word and not just a name; places are GeoNames' countries, US states and
cities of at least 100,000 people (see data/NOTICE); nicknames come from the package
``nicknames``. Larger libraries were left aside: frequency lists are lower-cased, so a
frequent name looks like a word, and complete gazetteers weigh tens of megabytes.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from functools import cache
from importlib.resources import files


def words(text: str) -> frozenset[str]:
    """The words of a vocabulary written as text."""
    return frozenset(text.split())


TITLES = words(
    """mr mrs ms miss mx mister madam sir dame lord lady dr doctor prof professor rev reverend
    fr father sister brother capt captain lt lieutenant sgt sergeant col colonel maj major
    gen general hon judge justice sheikh imam rabbi herr frau hr fru dhr mevr mme mlle
    monsieur madame señor señora sr sra don doña signor signora"""
)
_AMBIGUOUS_TITLES = words("don sr fr hon gen miss general major father brother")

_MORE_WORDS = words(
    """january february march april may june july august september october november december
    monday tuesday wednesday thursday friday saturday sunday easter christmas english french
    german dutch spanish italian polish danish"""
)
_MOSTLY_NAMES = words(
    """jack harry jerry jimmy billy bobby johnny nelly peter josh roger nick frank eric"""
)
"""In the word list, but hardly ever written in lower case as anything but a name."""


_CONTRACTION = re.compile(r"(.+)['’ʼ](?:s|t|re|ve|ll|d|m)")


def is_common_word(word: str) -> bool:
    """Whether an English dictionary has it as an ordinary word: may, will, mark, don't."""
    folded = _fold(word)
    if folded in _words():
        return True
    if contraction := _CONTRACTION.fullmatch(folded):
        head = contraction[1]
        return len(head) == 1 or head in _words() or head.removesuffix("n") in _words()
    return False


def is_common_key(key: str) -> bool:
    """``is_common_word`` for a plain word of a shadow: folded, letters and digits alone."""
    return key in _words()


def is_place_key(key: str) -> bool:
    """``is_place`` for a plain word of a shadow."""
    return key in _places()


def is_place(word: str) -> bool:
    """Whether a country, US state or big city is called so: Washington, Jordan, New York."""
    return _fold(word) in _places()


def is_title(word: str) -> bool:
    """Whether it goes before a name and belongs to nobody: Mr, Ms., Dr, Prof."""
    return _fold(word).rstrip(".") in TITLES


def is_ambiguous_title(word: str) -> bool:
    """Whether the title is often another word as well, so that it proves no name."""
    return _fold(word).rstrip(".") in _AMBIGUOUS_TITLES


def is_given_name(word: str) -> bool:
    """Whether it is an English given name or nickname of the packaged list."""
    return _fold(word) in _given_names()


def nicknames_of(given_name: str) -> frozenset[str]:
    """Lower-case nicknames of a given name, and given names of a nickname: Bob, Robert."""
    return _given_names().get(_fold(given_name), frozenset())


def _fold(word: str) -> str:
    return unicodedata.normalize("NFKC", word).casefold().strip()


@cache
def _words() -> frozenset[str]:
    return (frozenset(_lines("words.txt")) | _MORE_WORDS) - _MOSTLY_NAMES


@cache
def _places() -> frozenset[str]:
    names = [_fold(name) for name in _lines("places.txt")]
    return frozenset(names) | frozenset(_plain(name) for name in names)


@cache
def _given_names() -> Mapping[str, frozenset[str]]:
    text = files("nicknames").joinpath("names.csv").read_text(encoding="utf-8")
    related: dict[str, set[str]] = {}
    for line in text.splitlines()[1:]:
        one, _, other = (_fold(part) for part in line.split(","))
        related.setdefault(one, set()).add(other)
        related.setdefault(other, set()).add(one)
    return {name: frozenset(others) for name, others in related.items()}


def _lines(name: str) -> list[str]:
    text = files("rag.privacy").joinpath("data", name).read_text(encoding="utf-8")
    return [line for line in text.splitlines() if line and not line.startswith("#")]


def _plain(name: str) -> str:
    """Without diacritics, as a keyboard without them writes it: Zürich, Zurich."""
    parts = unicodedata.normalize("NFD", name)
    return "".join(c for c in parts if not unicodedata.combining(c))
