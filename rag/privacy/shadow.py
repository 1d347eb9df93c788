"""The shadow of a text: what two spellings of one name have in common, with a map back.

NFKC, case-folded, format characters removed, look-alike letters folded to Latin,
every digit decimal, every space a space. Diacritics stay, composed (NFC and NFD cast the
same shadow); ``plain`` strips them for a look-up. Protecting and the guard both compare
shadows, so that neither sees a name that the other does not (I1).
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from rag.privacy.lexicon import is_common_key

_PLAIN_ASCII = re.compile(r"[\t\n\v\f\r\x20-\x7e]*")
_IGNORABLE = re.compile(
    "[\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f"
    "\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb"
    "\U000110bd\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)
"""Default-ignorable code points and control characters: invisible, so never part of a name."""

_LOOKALIKE_SCRIPTS = re.compile("[\u0370-\u03ff\u0400-\u052f\u0531-\u0587\u13a0-\u13f5]")
_MARKS = "\u0300-\u036f\u0483-\u0487\u0591-\u05c7\u0610-\u061a\u064b-\u065f\u0670\u06d6-\u06ed"
_INDIC = "\u0900-\u0dff"
_UNSPACED = "\u0e00-\u0eff\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
WORD = re.compile(
    rf"[{_UNSPACED}]|[^\W_{_UNSPACED}](?:[^\W_{_UNSPACED}]|[{_MARKS}{_INDIC}])*", re.UNICODE
)
"""A run of letters and digits; in scripts written without spaces, one letter."""
ASCII_WORD = re.compile(r"[a-z0-9]+")
"""The same in a shadow that is ASCII."""
_LETTERS = re.compile(r"[^\W\d_]+")
_NUMBERED = re.compile(r"[^\W\d_]{4}[0-9]{1,4}(?![^\W_])")
_NUMBERED_WORD = re.compile(r"([^\W\d_]{4,})[0-9]{1,4}")
_INSIDE = re.compile(r"[-\u2010\u2011\u00ad][ \t]*\r?\n[ \t]*|\*{1,3}|`|~~")
_BROKEN = re.compile(rf"(?:{_INSIDE.pattern})(?=[^\W\d_])")

_DASHES = "\u2010\u2011\u2012\u2013\u2014\u2015\u2212\u2e3a\u2e3b\ufe58\u058a"
_APOSTROPHES = "\u2018\u2019\u201b\u02b9\u02bb\u02bc\u02bd\u2032\u0060\u00b4\u055a\ua78c"
_ALWAYS = {
    **dict.fromkeys(_DASHES, "-"),
    **dict.fromkeys(_APOSTROPHES, "'"),
    # Latin letters drawn like other Latin letters
    **dict(zip("ᴀʙᴄᴅᴇꜰɢʜɪᴊᴋʟᴍɴᴏᴘʀꜱᴛᴜᴠᴡʏᴢ", "abcdefghijklmnoprstuvwyz", strict=True)),
    **{"ı": "i", "ɑ": "a", "ɡ": "g", "ɩ": "i", "ȷ": "j", "ʋ": "v", "ſ": "s"},
}
_CAPITALS = {
    # the Latin letter that the capital looks like, by its small letter
    **dict(zip("αβεζηικμνορτυχϲϳ", "abezhikmnoptyxcj", strict=True)),
    **dict(zip("авекмнорстухіјѕһԁԛԝӏүԍ", "abekmhopctyxijshdqwiyg", strict=True)),
    **dict(zip("օսԼ".casefold(), "oul", strict=True)),
    **dict(zip("ᎪᏴᏟᎠᎬᎻᎫᎨᏦᏞᎷᏢᏒᏚᎢᏙᎳᏃ", "abcdehjkklmprstvwz", strict=True)),
}
_SMALL = {
    # where the small letter looks like another one than its capital does
    **{"α": "a", "γ": "y", "η": "n", "ν": "v", "ρ": "p", "σ": "o", "υ": "u", "ω": "w", "μ": "u"},
    **{"п": "n", "г": "r", "ѵ": "v", "ь": "b", "ӏ": "l", "ո": "n", "հ": "h", "ց": "g", "զ": "q"},
}
_STROKES = str.maketrans(
    {"ø": "o", "ł": "l", "đ": "d", "ð": "d", "ħ": "h", "ŧ": "t", "ŋ": "n", "æ": "ae", "œ": "oe"}
    | {"þ": "th", "ı": "i", "ƶ": "z", "ɨ": "i", "ʼ": ""}
)


@dataclass(frozen=True, slots=True)
class Shadow:
    """A normalized text; ``original`` maps a range of it back to the text that cast it."""

    text: str = field(repr=False)
    _starts: tuple[int, ...] | None = field(default=None, repr=False)
    _ends: tuple[int, ...] | None = field(default=None, repr=False)

    @property
    def one_to_one(self) -> bool:
        """Whether offsets in the shadow are offsets in the text."""
        return self._starts is None

    def original(self, start: int, end: int) -> tuple[int, int]:
        """Offsets in the original text of ``text[start:end]``; ``start < end``."""
        if self._starts is None or self._ends is None:
            return start, end
        return self._starts[start], self._ends[end - 1]


def shadow(text: str) -> Shadow:
    """The shadow of ``text``. Linear; text without decomposed or invisible parts in C."""
    if text.isascii() and _PLAIN_ASCII.fullmatch(text):
        return Shadow(text.translate(_ASCII))
    if _IGNORABLE.search(text) is None and unicodedata.is_normalized("NFC", text):
        folded = text.translate(_CASTS)
        if len(folded) == len(text):  # nothing vanishes here, so each character cast one
            return Shadow(_fold_lookalikes(folded, text, range(len(text))))
    pieces: list[str] = []
    starts: list[int] = []
    ends: list[int] = []
    for start, end, cast in _casts(text):
        pieces.append(cast)
        starts.extend([start] * len(cast))
        ends.extend([end] * len(cast))
    return Shadow(_fold_lookalikes("".join(pieces), text, starts), tuple(starts), tuple(ends))


def word_spans(cast: str) -> list[tuple[int, int]]:
    """Where each word of a shadow's text starts and ends.

    Up to four digits behind letters that are no common word are a word of their own, so that
    a name is found in "kvistad2"; "section12" and codes stay whole.
    """
    pattern = ASCII_WORD if cast.isascii() else WORD
    spans = [match.span() for match in pattern.finditer(cast)]
    if _NUMBERED.search(cast) is None:
        return spans
    split: list[tuple[int, int]] = []
    for start, end in spans:
        numbered = _NUMBERED_WORD.fullmatch(cast, start, end)
        if numbered is None or is_common_key(numbered[1]):
            split.append((start, end))
        else:
            split += [(start, numbered.end(1)), (numbered.end(1), end)]
    return split


def may_break_words(text: str) -> bool:
    """Whether a hyphen at the end of a line or Markdown's emphasis may stand inside a word."""
    return _BROKEN.search(text) is not None


def breaks_word(text: str, start: int, end: int) -> bool:
    """Whether ``text[start:end]`` between two words may stand inside of one."""
    inside = start < end and _INSIDE.fullmatch(text, start, end) is not None
    return inside and text[start - 1].isalpha() and text[end].isalpha()


def mended(text: str) -> str:
    """``text`` without what breaks its words; a hyphen before a capital is the word's own."""

    def mend(match: re.Match[str]) -> str:
        if not breaks_word(text, *match.span()):
            return match.group()
        hyphen = match.group()[0] in "-\u2010\u2011" and text[match.end()].isupper()
        return "-" if hyphen else ""

    return _BROKEN.sub(mend, text)


def plain(word: str) -> str:
    """A word of a shadow without its diacritics: josé -> jose, łukasz -> lukasz."""
    return word if word.isascii() else _strip(word)


@lru_cache(maxsize=8192)
def _cast(cluster: str) -> str:
    """One cluster of characters, normalized. Holds no more than one letter at a time."""
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", cluster).casefold())
    return "".join(_cast_char(char) for char in folded)


def _cast_char(char: str) -> str:
    if char in _ALWAYS:
        return _ALWAYS[char]
    if char.isspace():
        return " "
    digit = unicodedata.decimal(char, None)
    return char if digit is None else str(digit)


class _Casts(dict[int, str]):
    """A table for ``str.translate`` that asks ``_cast`` for what it does not hold."""

    def __missing__(self, code: int) -> str:
        return _cast(chr(code))


def _casts(text: str) -> Iterator[tuple[int, int, str]]:
    """``(start, end, shadow)`` of consecutive clusters; invisible characters are left out."""
    start, end, cluster = 0, 0, ""
    for index, char in enumerate(text):
        if _IGNORABLE.match(char):
            continue
        if cluster and not _joins(char):
            yield start, end, _cast(cluster)
            cluster = ""
        if not cluster:
            start = index
        cluster += char
        end = index + 1
    if cluster:
        yield start, end, _cast(cluster)


def _joins(char: str) -> bool:
    """Whether a character composes with the one before it: marks, and Hangul's later letters."""
    return unicodedata.combining(char) != 0 or "\u1160" <= char <= "\u11ff"


def _fold_lookalikes(folded: str, text: str, starts: Sequence[int]) -> str:
    """Greek, Cyrillic, Armenian and Cherokee letters become the Latin ones they look like.

    In a word that also holds Latin letters each is read as it is drawn; in a word of one
    script all are read by their capitals, so that casing makes no difference.
    """

    if _LOOKALIKE_SCRIPTS.search(folded) is None:
        return folded

    def word(match: re.Match[str]) -> str:
        found = match.group()
        if not any(char.isascii() for char in found):
            return "".join(_CAPITALS.get(char, char) for char in found)
        drawn = (
            _CAPITALS.get(char, char)
            if text[starts[at]].isupper() or char not in _SMALL
            else _SMALL[char]
            for at, char in enumerate(found, match.start())
        )
        return "".join(drawn)

    return _LETTERS.sub(word, folded)


@lru_cache(maxsize=8192)
def _strip_char(char: str) -> str:
    parts = unicodedata.normalize("NFD", char.translate(_STROKES))
    letters = (part for part in parts if not unicodedata.combining(part))
    return "".join(_CAPITALS.get(letter, letter) for letter in letters)


def _strip(word: str) -> str:
    return "".join(char if char.isascii() else _strip_char(char) for char in word)


_ASCII = {
    **{ord(char): char.lower() for char in "ABCDEFGHIJKLMNOPQRSTUVWXYZ"},
    **dict.fromkeys(map(ord, "\t\n\v\f\r"), " "),
    ord("`"): "'",
}

_CASTS = _Casts(dict(enumerate(map(chr, range(0x80)))) | _ASCII)
