"""What a placeholder looks like, and how it is found again however a model bent it (I4).

A placeholder says a coarse type, a number and the scope's nonce: ``PERSON_1_k7q``. The
nonce makes it unforgeable and foreign ones recognizable; it holds no vowel, so it spells
no word. Which shape survives a model best is an experiment's question, so shapes are
small and chosen by name.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from rag.types import OUTSIDE_TYPE

_LETTERS = "bcdfghjkmnpqrtvwxz"  # no vowel, no l (a one), no s (a plural)
_DIGITS = "2345679"
_TYPES = "|".join(sorted(set(OUTSIDE_TYPE.values()), key=len, reverse=True))

_GAP = r"(?:\\{0,2}[_\-]|&#95;|&lowbar;|%5F|[\s\u00a0\u200b\u2010\u2011]){0,3}"
_NO_ALNUM_BEFORE = r"(?:(?<![A-Za-z0-9])|(?<=%5B|%3C|%7B|%40|%AB|%A7)|(?<=u003c))"
_NO_ALNUM_AFTER = r"(?=s?(?![A-Za-z0-9]))"
_OTHER_PAIRS = (("[", "]"), ("<", ">"), ("{", "}"), ("\u3010", "\u3011"), ("\uff3b", "\uff3d"))
_ESCAPED = {
    "[": r"(?:\\{0,2}\[|&#91;|&lbrack;|&lsqb;|%5B|\u3010|\uff3b)",
    "]": r"(?:\\{0,2}\]|&#93;|&rbrack;|&rsqb;|%5D|\u3011|\uff3d)",
    "<": r"(?:\\?<|&lt;|&#60;|%3C|\\u003[cC]|\u2039)",
    ">": r"(?:\\?>|&gt;|&#62;|%3E|\\u003[eE]|\u203a)",
    "{": r"(?:\\?\{|&#123;|&lbrace;|%7B)",
    "}": r"(?:\\?\}|&#125;|&rbrace;|%7D)",
    "\u00ab": r"(?:\u00ab|&laquo;|%C2%AB|<<)",
    "\u00bb": r"(?:\u00bb|&raquo;|%C2%BB|>>)",
    "\u00a7": r"(?:\u00a7|&sect;|%C2%A7)",
    "@": r"(?:\\?@|&#64;|%40)",
}

_SLIPPED = re.compile(r"(?:\\?['\u2019]s|\\?['\u2019]|s)(?=[\]>}\u00bb\u00a7\\&%])")
_BEFORE, _AFTER = re.compile(f"(?i){_NO_ALNUM_BEFORE}"), re.compile(f"(?i){_NO_ALNUM_AFTER}")
_REACH = 24
"""How far before a placeholder an escaped bracket may begin."""

_LOOKALIKE = re.compile(
    rf"(?i)(?:[\[<{{\u00ab\u00a7@]|&lt;|\\\[){{1,2}}(?:{_TYPES}){_GAP}[0-9]{{1,9}}"
    rf"(?:{_GAP}[a-z0-9]{{1,8}})?(?:[\]>}}\u00bb\u00a7]|&gt;|\\?\]){{0,2}}"
    rf"|{_NO_ALNUM_BEFORE}(?:{_TYPES})\\?_[0-9]{{1,9}}(?:\\?_[a-z0-9]{{1,8}})?(?![A-Za-z0-9])"
)
_WORDS = tuple(set(OUTSIDE_TYPE.values()))
_NUMBER = re.compile("[0-9]{1,9}")
_GAP_CHARS = "_-\\&#;95%Ff \t\r\n\u00a0\u200b\u2010\u2011"


def lookalikes(text: str) -> list[tuple[int, int]]:
    """Ranges that look like a placeholder of any scope, or of another product."""
    found: dict[tuple[int, int], None] = {}
    for number in _NUMBER.finditer(text):
        start = number.start()
        if text[max(0, start - _REACH) : start].rstrip(_GAP_CHARS).upper().endswith(_WORDS):
            near = max(0, start - 2 * _REACH), number.end() + _REACH
            found |= dict.fromkeys(match.span() for match in _LOOKALIKE.finditer(text, *near))
    return sorted(found)


def new_nonce() -> str:
    """Three fresh characters, letter-digit-letter: nobody can foresee them."""
    letter, digit = secrets.choice(_LETTERS), secrets.choice(_DIGITS)
    return f"{letter}{digit}{secrets.choice(_LETTERS)}"


@dataclass(frozen=True, slots=True)
class Token:
    """A placeholder of this scope as it stands in a text, brackets included."""

    start: int
    end: int
    type: str
    number: int
    suffix: str = ""  # a possessive that slipped inside the brackets


@dataclass(frozen=True, slots=True)
class Shape:
    """How a placeholder is written: brackets around ``{type}``, ``{number}``, ``{nonce}``."""

    name: str
    form: str  # with {type}, {number} and {nonce}, each once
    open: str = ""
    close: str = ""
    lower: bool = False

    @property
    def bare(self) -> bool:
        """Without a closing bracket: it needs a word boundary around it."""
        return not self.close

    def render(self, type: str, nonce: str, number: int) -> str:
        word = type.lower() if self.lower else type
        return self.open + self.form.format(type=word, number=number, nonce=nonce) + self.close

    def core(self, nonce: str) -> re.Pattern[str]:
        """Finds type, number and nonce, whatever became of case, separators and brackets.

        Anywhere, also inside of a word: whether that counts is the finder's question.
        """
        parts = {"type": f"(?P<type>{_TYPES})", "number": "(?P<number>[1-9][0-9]{0,8})"}
        parts["nonce"] = re.escape(nonce)
        pieces = re.split(r"\{(\w+)\}", self.form)
        pattern = "".join(
            parts[piece] if at % 2 else _GAP if 0 < at < len(pieces) - 1 else ""
            for at, piece in enumerate(pieces)
        )
        return re.compile(f"(?i){pattern}")


SHAPES: Mapping[str, Shape] = {
    shape.name: shape
    for shape in (
        Shape("bracket", "{type}_{number}_{nonce}", "[", "]"),
        Shape("angle", "{type}_{number}_{nonce}", "<", ">"),
        Shape("braces", "{type}_{number}_{nonce}", "{{", "}}"),
        Shape("double", "{type}_{number}_{nonce}", "[[", "]]"),
        Shape("guillemets", "{type}_{number}_{nonce}", "\u00ab", "\u00bb"),
        Shape("section", "{type}_{number}_{nonce}", "\u00a7", "\u00a7"),
        Shape("word", "{type}_{number}_{nonce}"),
        Shape("dash", "{type}-{number}-{nonce}"),
        Shape("glued", "{type}{number}{nonce}"),
        Shape("at", "{type}_{number}_{nonce}", "@", lower=True),
        Shape("short", "{type}{number}{nonce}", "[", "]"),
    )
}
"""Every shape by its name."""

DEFAULT_SHAPE = "word"


@dataclass(frozen=True, slots=True)
class Finder:
    """Finds the placeholders of one scope in a text. Looks only at what it consumes."""

    shape: Shape
    nonce: str
    _core: re.Pattern[str] = field(init=False, repr=False)
    _nonce: re.Pattern[str] = field(init=False, repr=False)
    _before: re.Pattern[str] | None = field(init=False, repr=False)
    _after: re.Pattern[str] | None = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_core", self.shape.core(self.nonce))
        object.__setattr__(self, "_nonce", re.compile(re.escape(self.nonce), re.IGNORECASE))
        object.__setattr__(self, "_before", _loose(self.shape.open, r"\Z"))
        object.__setattr__(self, "_after", _loose(self.shape.close, ""))

    def find(
        self, text: str, *, strict: bool = False, inside_words: bool = False
    ) -> Iterator[Token]:
        """Tokens from left to right. ``strict``: brackets beyond the exact pair stay text.

        A scope whose inputs had brackets of their own next to an original is read strictly,
        for there a bracket may be text and not the model's doing.
        """
        if not self._nonce.search(text):
            return
        floor = 0
        for match in self._core.finditer(text):
            if not inside_words and not _stands_alone(text, match.start(), match.end()):
                continue
            start, end, suffix = self._widen(text, match.start(), match.end(), floor, strict)
            yield Token(start, end, match["type"].upper(), int(match["number"]), suffix)
            floor = end

    def _widen(
        self, text: str, start: int, end: int, floor: int, strict: bool
    ) -> tuple[int, int, str]:
        opened = start - len(self.shape.open) >= floor and text.endswith(self.shape.open, 0, start)
        if opened and text.startswith(self.shape.close, end):
            start, end = start - len(self.shape.open), end + len(self.shape.close)
            if strict or not self.shape.close:
                return start, end, ""
            return *self._doubled(text, start, end, floor), ""
        return (start, end, "") if strict else self._bent(text, start, end, floor)

    def _bent(self, text: str, start: int, end: int, floor: int) -> tuple[int, int, str]:
        """Escaped, lost or exchanged brackets, and a possessive inside them."""
        suffix, inner = "", end
        slipped = _SLIPPED.match(text, end)
        if slipped:
            suffix, inner = slipped.group(), slipped.end()
        before = (
            self._before.search(text, max(floor, start - _REACH), start) if self._before else None
        )
        after = self._after.match(text, inner) if self._after else None
        if after:
            end = after.end()
        else:
            suffix = ""
        if before:
            start = before.start()
        if before or after:
            if before and after:
                start, end = self._doubled(text, start, end, floor)
            return start, end, suffix
        for one, other in _OTHER_PAIRS:
            if start > floor and text[start - 1] == one and text.startswith(other, end):
                return start - 1, end + 1, ""
        return start, end, ""

    def _doubled(self, text: str, start: int, end: int, floor: int) -> tuple[int, int]:
        """Further pairs of the shape's own brackets."""
        while self._before and self._after:
            before = self._before.search(text, max(floor, start - _REACH), start)
            after = self._after.match(text, end)
            if not before or not after:
                break
            start, end = before.start(), after.end()
        return start, end


def _stands_alone(text: str, start: int, end: int) -> bool:
    """Whether no letter or digit touches it, but for a plural."""
    return _BEFORE.match(text, start) is not None and _AFTER.match(text, end) is not None


def _loose(bracket: str, anchor: str) -> re.Pattern[str] | None:
    """A bracket in any of its escapes; one of a doubled bracket may be lost."""
    if not bracket:
        return None
    one = _ESCAPED[bracket[0]]
    return re.compile(f"(?i)(?:{one}){{1,{len(bracket)}}}{anchor}")
