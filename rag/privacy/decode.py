"""Reading a request whole: its strings, and what is written inside them (I1).

JSON within strings, percent and HTML escapes, backslash escapes, Base64 and hexadecimal
are decoded to a fixed point; what is nested deeper than a bound, or cannot be read, is
refused by the caller.
"""

from __future__ import annotations

import binascii
import html
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any
from urllib.parse import unquote, unquote_plus

MOST_LAYERS = 5
MOST_TEXT = 64_000_000
_MOST_ITEMS = 1_000_000

_TOKEN = re.compile(r"[A-Za-z0-9+/\-_]{7,}={0,2}")
_WRAPPED = re.compile(
    r"(?<![A-Za-z0-9+/\-_])(?:[A-Za-z0-9+/\-_]{16,}+\s{1,2})+[A-Za-z0-9+/\-_]++={0,2}"
)
_HEX = re.compile(r"(?<![0-9A-Fa-f])(?:[0-9A-Fa-f]{2}[ :]?){5,}(?![0-9A-Fa-f])")
_PERCENT = re.compile(r"%[0-9A-Fa-f]{2}")
_QUOTED_PRINTABLE = re.compile(r"=([0-9A-F]{2})|=\r?\n")
_BACKSLASH = re.compile(r"\\(?:u\{([0-9A-Fa-f]{1,6})\}|u([0-9A-Fa-f]{4})|x([0-9A-Fa-f]{2}))")
_ENTITY = re.compile(r"&(?:#\d{1,7}|#[xX][0-9A-Fa-f]{1,6}|[A-Za-z][A-Za-z0-9]{1,31});?")
_HIGH = frozenset("ghijklmnopqrstuv")
"""Base64 that begins so begins with a byte that begins no character of any name."""
_SURROGATE = re.compile("[\ud800-\udfff]")
_URLSAFE = str.maketrans("-_", "+/", "=")


class Unreadable(Exception):
    """What cannot be read whole; the message names the kind of thing, never the text."""


class Number(str):
    """A JSON number as it is written."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Segment:
    """One string of a request, in the order of reading; ``path`` are the keys above it."""

    text: str = field(repr=False)
    path: tuple[str, ...] = ()
    key: bool = False
    number: bool = False


def read_json(body: bytes) -> list[Segment]:
    """Every key, string and number of a JSON body.

    Raises ``Unreadable`` for what is not JSON in UTF-8, for a key that stands twice and for
    arrays of numbers, which may be tokens or letters.
    """
    try:
        text = body.decode("utf-8")
    except UnicodeDecodeError:
        raise Unreadable("text that is not UTF-8") from None
    try:
        segments = list(_walk(parse_json(text), ()))
    except (ValueError, RecursionError):
        raise Unreadable("a body that is not JSON") from None
    if any(_SURROGATE.search(segment.text) for segment in segments):
        raise Unreadable("text that is not Unicode")
    return segments


def parse_json(text: str) -> Any:
    """JSON with numbers as written. Raises ``ValueError``, ``Unreadable`` for a double key."""
    return json.loads(
        text,
        parse_int=Number,
        parse_float=Number,
        parse_constant=_no_constant,
        object_pairs_hook=_pairs,
    )


def _no_constant(name: str) -> None:
    raise ValueError(name)


def _pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    read = dict(pairs)
    if len(read) != len(pairs):
        raise Unreadable("a key that stands twice")
    return read


def _walk(value: Any, path: tuple[str, ...]) -> Iterator[Segment]:
    if isinstance(value, Number):
        yield Segment(str(value), path, number=True)
    elif isinstance(value, str):
        yield Segment(value, path)
    elif isinstance(value, dict):
        for key, inner in value.items():
            yield Segment(key, path, key=True)
            yield from _walk(inner, (*path, key))
    elif isinstance(value, list):
        _refuse_tokens(value, path)
        for inner in value:
            yield from _walk(inner, path)


def _refuse_tokens(value: list[Any], path: tuple[str, ...]) -> None:
    numbers = sum(isinstance(item, Number) for item in value)
    if numbers and (numbers > 3 or path[-1:] in (("input",), ("prompt",))):
        raise Unreadable("an array of numbers")


def plain_number(written: str) -> str:
    """A number without its exponent: 7.7e9 -> 7700000000."""
    if "e" not in written.lower():
        return written
    number = Decimal(written)
    if abs(number.adjusted()) > 40:
        return written
    return format(number, "f")


def layers(texts: list[str]) -> list[str]:
    """``texts`` and everything that is written inside them, to a fixed point.

    Raises ``Unreadable`` when more than ``MOST_LAYERS`` lie inside one another.
    """
    seen = dict.fromkeys(texts)
    layer = list(seen)
    size = sum(map(len, layer))
    for depth in range(MOST_LAYERS + 1):
        inner = dict.fromkeys(found for text in layer for found in _inside(text))
        layer = [text for text in inner if text not in seen]
        if not layer:
            return list(seen)
        size += sum(map(len, layer))
        if depth == MOST_LAYERS or size > MOST_TEXT:
            break
        seen |= dict.fromkeys(layer)
    raise Unreadable("text that is encoded too often")


def _inside(text: str) -> Iterator[str]:
    """What one text holds in another writing."""
    if "%" in text and _PERCENT.search(text):
        yield unquote(text)
        if "+" in text:
            yield unquote_plus(text)
    if "&" in text and _ENTITY.search(text):
        yield html.unescape(text)
    if "\\" in text:
        yield _BACKSLASH.sub(_unescaped, text)
    if "=" in text and _QUOTED_PRINTABLE.search(text):
        yield _unquoted(text)
    if text.lstrip()[:1] in ("{", "[", '"'):
        yield from _json_inside(text)
    for token in set(_TOKEN.findall(text)):
        if token[0] not in _HIGH or not token.islower():
            yield from _base64(token)
    for wrapped in _WRAPPED.findall(text):
        yield from _base64("".join(wrapped.split()))
    for digits in _HEX.findall(text):
        yield from _readable_utf8(bytes.fromhex(digits.replace(":", " ")))


def _json_inside(text: str) -> Iterator[str]:
    try:
        value = parse_json(text)
    except (ValueError, RecursionError):
        return
    read = [segment.text for segment in _walk_freely(value)]
    if read != [text]:
        yield "\n".join(read)


def _walk_freely(value: Any) -> Iterator[Segment]:
    """As ``_walk``, but a list of numbers inside a string is read as letters too."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield Segment(key)
            yield from _walk_freely(inner)
    elif isinstance(value, list):
        codes = [int(n) for n in value if isinstance(n, Number) and n.isdigit()]
        if len(codes) > 3:
            yield Segment("".join(chr(code) for code in codes if 0 < code < 0xD800))
        for inner in value:
            yield from _walk_freely(inner)
    else:
        yield from _walk(value, ())


def _unescaped(match: re.Match[str]) -> str:
    code = int(next(group for group in match.groups() if group), 16)
    return chr(code) if code < 0x110000 and not 0xD800 <= code < 0xE000 else ""


def _unquoted(text: str) -> str:
    raw = _QUOTED_PRINTABLE.sub(lambda m: chr(int(m[1], 16)) if m[1] else "", text)
    try:
        return raw.encode("latin-1").decode("utf-8")
    except (UnicodeEncodeError, UnicodeDecodeError):
        return raw


def _base64(token: str) -> Iterator[str]:
    """A token as Base64; one of mixed letters also from its later letters on."""
    text = token.translate(_URLSAFE) if not token.isalnum() else token
    mixed = len(text) >= 12 and not (text.islower() or text.istitle() or text.isdigit())
    for offset in range(4 if mixed else 1):
        try:
            raw = binascii.a2b_base64(text[offset:] + "==")
        except binascii.Error:  # one letter too many
            raw = binascii.a2b_base64(text[offset:-1] + "==")
        if raw.isascii():
            yield from _readable(raw)
        elif len(raw) > 3:
            yield from _readable_utf8(raw)


_PRINTABLE = bytes(range(0x20, 0x7F)) + b"\t\n\r\0"


def _readable(raw: bytes) -> Iterator[str]:
    """ASCII as text, unless more than a few control characters say that it is none."""
    if len(raw) > 2 and len(raw.translate(None, _PRINTABLE)) * 5 <= len(raw):
        yield raw.replace(b"\0", b"").decode("ascii")


def _readable_utf8(raw: bytes) -> Iterator[str]:
    try:
        yield raw.decode("utf-8")
    except UnicodeDecodeError:
        strange = len(raw.translate(None, _PRINTABLE))
        if strange * 5 <= len(raw):
            yield raw.decode("utf-8", "ignore")
