"""Text as the rest of the program may rely on it: storable, one newline, bounded metadata.

NUL and lone surrogates, which Postgres and UTF-8 cannot hold, become U+FFFD one for
one, so that no offset moves.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Mapping
from typing import Any

from rag.errors import InvalidInput, TooLarge

_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")
_NEWLINES = re.compile(r"\r\n?")
_SPACES = re.compile(r"\s+")

MOST_NAME_CHARS = 500
MOST_FIELDS = 64
MOST_KEY_CHARS = 100
MOST_VALUE_CHARS = 4_000


def storable(text: str) -> str:
    """``text`` without NUL and lone surrogates; same length."""
    return _UNSTORABLE.sub("\N{REPLACEMENT CHARACTER}", text)


def clean(text: str) -> str:
    """``text`` storable, without byte order mark, lines ended by ``\\n`` alone."""
    return storable(_NEWLINES.sub("\n", text.removeprefix("\N{ZERO WIDTH NO-BREAK SPACE}")))


def is_blank(text: str) -> bool:
    """No letter, digit, mark of punctuation or symbol is in ``text``."""
    return not any(
        unicodedata.category(c)[0] in "LNPS" and c != "\N{REPLACEMENT CHARACTER}" for c in text
    )


def clean_name(name: str) -> str:
    """A source name on one line. Raises ``InvalidInput`` when empty, ``TooLarge`` when long."""
    cleaned = _SPACES.sub(" ", storable(name)).strip()
    if not cleaned:
        raise InvalidInput("A document needs a name.")
    if len(cleaned) > MOST_NAME_CHARS:
        raise TooLarge(f"The document's name is longer than {MOST_NAME_CHARS} characters.")
    return cleaned


def clean_metadata(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Flat metadata of strings, numbers and booleans; lists joined, nested keys dotted.

    What is flat is seen by detection as it is written, without escapes of a ``repr``.
    Raises ``TooLarge`` when there is more of it than a document's metadata may be.
    """
    flat: dict[str, Any] = {}
    _flatten("", metadata, flat, 0)
    return flat


def _flatten(prefix: str, fields: Mapping[Any, Any], flat: dict[str, Any], depth: int) -> None:
    for key, value in fields.items():
        name = _SPACES.sub(" ", storable(f"{prefix}{key}")).strip()
        if len(name) > MOST_KEY_CHARS or depth > 8:
            raise TooLarge("The document's metadata is too large.")
        if isinstance(value, Mapping):
            _flatten(f"{name}.", value, flat, depth + 1)
        elif name and (scalar := _scalar(value)) is not None:
            flat[name] = scalar
        if len(flat) > MOST_FIELDS:
            raise TooLarge("The document's metadata is too large.")


def _scalar(value: Any) -> str | int | float | bool | None:
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int | float) and math.isfinite(value) and abs(value) < 2**53:
        return value
    if isinstance(value, list | tuple):
        value = ", ".join(str(item) for item in value[:MOST_VALUE_CHARS] if item is not None)
    text = _SPACES.sub(" ", storable(str(value))).strip()
    if len(text) > MOST_VALUE_CHARS:
        raise TooLarge("The document's metadata is too large.")
    return text or None
