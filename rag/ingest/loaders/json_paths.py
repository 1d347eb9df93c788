"""JSON and JSON lines: every value becomes one line ``path: value``, so keys give context.

Numbers stay as they are written, repeated keys are all kept, and nothing recurses: how
deep a document nests is its own affair, not the stack's.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from rag.errors import Malformed, TooLarge
from rag.ingest.limits import BoundedText, Limits
from rag.ingest.loaders.read import Read

_MOST_PATH = 2_000
_SHORT_LIST = 400


_TOP_RECORD = re.compile(r"\[\d+\]")
"""A record of the document itself: its number says nothing, its keys stand alone."""


class _Pairs(list[tuple[str, Any]]):
    """An object with all its pairs, also those of one key."""


_DECODER = json.JSONDecoder(
    object_pairs_hook=_Pairs, parse_int=str, parse_float=str, parse_constant=str
)


def read_json(text: str, limits: Limits) -> Read:
    """One value, or a value a line. Raises ``Malformed``, ``TooLarge``."""
    limits.admit_source_text(text)
    try:
        value = _decode(text)
    except Malformed:
        if "\n" not in text.strip():
            raise
        return read_json_lines(text, limits)
    return Read(_render([("", value)], limits))


def read_json_lines(text: str, limits: Limits) -> Read:
    """A value a line. Raises ``Malformed``, ``TooLarge``."""
    limits.admit_source_text(text)
    lines = [line for line in text.split("\n") if line.strip()]
    if len(lines) > limits.rows:
        raise TooLarge(f"The document has more than {limits.rows} records.")
    records = ((f"[{n}]", _decode(line)) for n, line in enumerate(lines))
    return Read(_render(records, limits, arrays=1))


def _decode(text: str) -> Any:
    try:
        return _DECODER.decode(text)
    except RecursionError:
        raise TooLarge("The document nests too deeply.") from None
    except ValueError:
        raise Malformed("The document is no JSON that can be read.") from None


def _render(values: Iterable[tuple[str, Any]], limits: Limits, arrays: int = 0) -> str:
    written = BoundedText(limits.characters)
    walk = [_Level(iter(values), arrays)]
    while walk:
        if len(walk) > limits.depth:
            raise TooLarge("The document nests too deeply.")
        path, value = next(walk[-1].members, (None, None))
        if path is None:
            walk.pop()
            continue
        if len(path) > _MOST_PATH:
            raise TooLarge("A key of the document is too long.")
        if isinstance(value, list) and (line := _short_list(value)) is None:
            within = walk[-1].arrays
            if isinstance(value, _Pairs) and path.endswith("]") and within == 1 and written.length:
                written.add("\n")  # records, the members of an outermost array, stand apart
            within += not isinstance(value, _Pairs)
            walk.append(_Level(_children(path, value), within))
        else:
            shown = line if isinstance(value, list) else _scalar(value)
            if shown:
                written.add(f"{path}: {shown}\n" if path else f"{shown}\n")
    return written.whole()


@dataclass(frozen=True, slots=True)
class _Level:
    """Members of a value that are yet to be written, and how many arrays they lie in."""

    members: Iterator[tuple[str, Any]]
    arrays: int


def _children(path: str, value: list[Any]) -> Iterator[tuple[str, Any]]:
    if isinstance(value, _Pairs):
        prefix = f"{path}." if path and not _TOP_RECORD.fullmatch(path) else ""
        return ((f"{prefix}{key}", child) for key, child in value)
    return ((f"{path}[{n}]", child) for n, child in enumerate(value))


def _short_list(value: list[Any]) -> str | None:
    """Plain values of an array on one line, ``None`` when it is no such array."""
    if isinstance(value, _Pairs) or len(value) > 50:
        return None
    if any(isinstance(item, list) or "\n" in str(item) for item in value):
        return None
    line = ", ".join(filter(None, map(_scalar, value)))
    return line if len(line) <= _SHORT_LIST else None


def _scalar(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return "" if value is None else str(value).strip()
