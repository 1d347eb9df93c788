"""What left, compared with what must not: in every spelling that a reader could undo.

Shares no line with ``rag.privacy``: a checker that is built of the code under test proves
nothing. A record is searched as raw text, case-folded, in NFKC without format characters
and with look-alikes folded, with separators removed, and all of this again in its JSON
strings and after URL-, HTML- and Base64-decoding, nested as deep as it goes.
"""

from __future__ import annotations

import base64
import binascii
import html
import json
import re
import unicodedata
from collections.abc import Iterable, Iterator
from typing import Any, Protocol
from urllib.parse import unquote, unquote_plus

_DEPTH = 4
_BASE64 = re.compile(r"[A-Za-z0-9+/_-]{6,}={0,2}")
_ESCAPE = re.compile(r"\\u([0-9a-fA-F]{4})")
_LOOKALIKES = str.maketrans(
    # Cyrillic, Greek, then Latin letters that no normalization folds
    "авеёзіјкмнорсԁтухһԛѕѵԝ" + "αβεηικμνορτυχωγ" + "ıłøđħŧ",
    "abee3ijkmhopcdtyxhqsvw" + "abenikmvoptuxwy" + "ilodht",
)
_WHOLE_WORD_BELOW = 5
_SQUEEZE_FROM = 8


class Wire(Protocol):
    """Whatever kept what was sent: the stub, or one of its records."""

    @property
    def sent(self) -> list[bytes]: ...


def assert_no_leak(recorded: Wire | Iterable[Wire | bytes], values: Iterable[str]) -> None:
    """Nothing recorded holds a value in any spelling; and something was recorded at all."""
    pieces = _pieces(recorded)
    assert any(pieces), "nothing was recorded: a service that sends nothing proves nothing"
    wanted = {value: spellings(value) for value in values if value.strip()}
    assert wanted, "no values to look for"
    for text in set().union(*(views(piece) for piece in pieces)):
        shapes = _shapes_of(text)
        for value, spelled in wanted.items():
            for how, spelling in spelled.items():
                assert not _holds(shapes[how], spelling), (
                    f"{value!r} left, {how}: {_around(value, text)!r}"
                )


def assert_seen(recorded: Wire | Iterable[Wire | bytes], values: Iterable[str]) -> None:
    """What was recorded does hold each value as it is (against over-redaction)."""
    texts = set().union(*(views(piece) for piece in _pieces(recorded)))
    for value in values:
        assert any(value in text for text in texts), f"{value!r} was never sent"


def spellings(value: str) -> dict[str, str]:
    """Name of a spelling -> the value in it, as it is looked for."""
    folded = fold(value)
    found = {"raw": value, "case-folded": value.casefold(), "folded": folded}
    squeezed = squeeze(folded)
    if len(squeezed) >= _SQUEEZE_FROM or sum(c.isdigit() for c in squeezed) >= _WHOLE_WORD_BELOW:
        found["separators removed"] = squeezed
    return found


def views(data: bytes) -> set[str]:
    """The text and everything that lies encoded in it."""
    seen: set[str] = set()
    front = {data.decode("utf-8", "replace")}
    for _ in range(_DEPTH):
        seen |= front
        front = {inner for text in front for inner in _decoded(text)} - seen
    return seen | front


def fold(text: str) -> str:
    """NFKC, no format characters, case-folded, look-alikes and diacritics folded."""
    plain = unicodedata.normalize("NFKC", text)
    plain = "".join(c for c in plain if unicodedata.category(c) != "Cf")
    plain = unicodedata.normalize("NFKD", plain.casefold())
    plain = "".join(c for c in plain if not unicodedata.combining(c))
    return " ".join(plain.translate(_LOOKALIKES).split())


def squeeze(text: str) -> str:
    """Letters and digits only."""
    return "".join(c for c in text if c.isalnum())


def _shapes_of(text: str) -> dict[str, str]:
    folded = fold(text)
    return {
        "raw": text,
        "case-folded": text.casefold(),
        "folded": folded,
        "separators removed": squeeze(folded),
    }


def _holds(text: str, spelling: str) -> bool:
    if len(spelling) >= _WHOLE_WORD_BELOW:
        return spelling in text
    return bool(re.search(rf"(?<!\w){re.escape(spelling)}(?!\w)", text))


def _around(value: str, text: str) -> str:
    at = max(text.casefold().find(value.casefold()), 0)
    return text[max(0, at - 40) : at + len(value) + 40]


def _pieces(recorded: Wire | Iterable[Wire | bytes]) -> list[bytes]:
    if hasattr(recorded, "sent"):
        return list(recorded.sent)
    return [p for r in recorded for p in ([r] if isinstance(r, bytes) else r.sent)]


def _decoded(text: str) -> Iterator[str]:
    yield unquote(text)
    yield unquote_plus(text)
    yield html.unescape(text)
    yield _ESCAPE.sub(lambda m: chr(int(m[1], 16)), text)
    yield from _from_json(text)
    for match in _BASE64.finditer(text):
        yield from _from_base64(match[0])


def _from_json(text: str) -> Iterator[str]:
    for start in {0, max(text.find("{"), 0), max(text.find("["), 0)}:
        try:
            value, _ = json.JSONDecoder().raw_decode(text, start)
        except (ValueError, RecursionError):
            continue
        strings = list(_strings(value))
        if strings and strings != [text]:
            yield from strings
            yield "\n".join(strings)
            # a value that was cut into parts, beside keys of its own
            yield "".join(_strings(value, keys=False))


def _strings(value: Any, keys: bool = True) -> Iterator[str]:
    if isinstance(value, dict):
        for key, inner in value.items():
            if keys:
                yield str(key)
            yield from _strings(inner, keys)
    elif isinstance(value, list):
        for inner in value:
            yield from _strings(inner, keys)
    elif value is not None:
        yield str(value)


def _from_base64(token: str) -> Iterator[str]:
    plain = token.rstrip("=").replace("-", "+").replace("_", "/")
    try:
        data = base64.b64decode(plain + "=" * (-len(plain) % 4), validate=True)
        text = data.decode("utf-8")
    except (binascii.Error, UnicodeDecodeError):
        return
    if text.isprintable() or text.strip().isprintable():
        yield text
