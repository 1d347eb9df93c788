"""The readable view of a text: what a person or a browser would read in it.

Percent-escapes, HTML entities and ``\\u`` escapes are decoded, invisible characters
dropped, full-width letters and odd spaces made plain, so that ``mail=jo%40host.org`` and
``jo&#64;host.org`` are found by the same rules as ``jo@host.org``. A map leads every
span of the view back to the original text.
"""

from __future__ import annotations

import html
import re
import unicodedata
from bisect import bisect_right
from dataclasses import dataclass, field

from rag.types import Span

_ENCODED = re.compile(
    r"(?P<percent>(?:%[0-9A-Fa-f]{2})+)"
    r"|(?P<entity>&(?:\#[0-9]{1,7}|\#[xX][0-9A-Fa-f]{1,6}|[A-Za-z]{2,8});)"
    r"|(?P<escape>\\u[0-9A-Fa-f]{4})"
    r"|(?P<hidden>[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f"
    r"\u202a-\u202e\u2060-\u206f\ufe00-\ufe0f\ufeff]+)"
    r"|(?P<space>[\u00a0\u2000-\u200a\u202f\u205f\u3000])"
    r"|(?P<broken>[\ud800-\udfff])"
    r"|(?P<wide>[\uff01-\uff5e\ufe63\ufe6b\u2010\u2011\u2024\u2212])"
)
_PLAIN = {"\u2010": "-", "\u2011": "-", "\u2212": "-", "\ufe63": "-", "\u2024": "."}


@dataclass(frozen=True, slots=True)
class View:
    """``text`` to search in, and the way back; equal to the original when nothing is encoded."""

    text: str = field(repr=False)
    _at: tuple[int, ...] = field(default=(), repr=False)  # view offsets where an edit begins
    _edits: tuple[tuple[int, int, int], ...] = field(default=(), repr=False)

    def original(self, span: Span) -> Span:
        """The span of the original text that shows as ``span``; an edit is taken whole."""
        if not self._at:
            return span
        start, end = self._back(span.start)[0], self._back(span.end - 1)[1]
        return Span(start, end, span.type, span.score)

    def _back(self, at: int) -> tuple[int, int]:
        """The original range of the view's character ``at``."""
        index = bisect_right(self._at, at) - 1
        if index < 0:
            return at, at + 1
        shown_length, original, original_length = self._edits[index]
        past = at - self._at[index]
        if past < shown_length:
            return original, original + original_length
        here = original + original_length + past - shown_length
        return here, here + 1


def view(text: str) -> View:
    """The readable view of ``text``."""
    parts: list[str] = []
    at: list[int] = []
    edits: list[tuple[int, int, int]] = []
    done = shown = 0
    for match in _ENCODED.finditer(text):
        plain = _readable(match)
        if plain is None:
            continue
        parts += (text[done : match.start()], plain)
        shown += match.start() - done
        at.append(shown)
        edits.append((len(plain), match.start(), match.end() - match.start()))
        shown += len(plain)
        done = match.end()
    if not edits:
        return View(text)
    return View("".join((*parts, text[done:])), tuple(at), tuple(edits))


def _readable(match: re.Match[str]) -> str | None:
    """What stands for the encoded stretch; ``None`` leaves it as it is."""
    found = match[0]
    match match.lastgroup:
        case "percent":
            return _percent(found)
        case "entity":
            plain = html.unescape(found)
            return None if plain == found else plain.replace("\u00a0", " ")
        case "escape":
            code = int(found[2:], 16)
            return None if 0xD800 <= code <= 0xDFFF or code < 0x20 else chr(code)
        case "hidden":
            return ""
        case "space" | "broken":  # broken: half a surrogate pair, which no model can encode
            return " " if match.lastgroup == "space" else "\ufffd"
        case _:
            return _PLAIN.get(found) or unicodedata.normalize("NFKC", found)


def _percent(found: str) -> str | None:
    try:
        plain = bytes.fromhex(found.replace("%", "")).decode("utf-8")
    except UnicodeDecodeError:
        return None
    return plain if plain.isprintable() else None
