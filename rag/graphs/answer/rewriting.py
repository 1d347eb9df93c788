"""Rewrites read from whatever shape a model gave them in."""

from __future__ import annotations

import json
import re

_FENCE = re.compile(r"^\s*```[\w-]*\s*|\s*```\s*$")
_LEAD = re.compile(r"^\s*(?:[-*•–]\s+|\(?\d{1,2}[.):]\s*|(?:query|q)\s*\d*\s*:\s*)", re.IGNORECASE)
MOST_CHARS = 400


def parse_rewrites(text: str, count: int) -> list[str]:
    """At most ``count`` distinct queries from lines, a list, or JSON (fenced, or in an object).

    An empty list means that nothing in ``text`` reads as a query.
    """
    bare = _FENCE.sub("", text).strip()
    lines = _from_json(bare)
    if lines is None:
        lines = [_LEAD.sub("", line).strip().strip('"“”').strip() for line in bare.splitlines()]
    kept: list[str] = []
    for line in lines:
        if line and len(line) <= MOST_CHARS and not line.endswith(":") and line not in kept:
            kept.append(line)
    return kept[:count]


def _from_json(text: str) -> list[str] | None:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if isinstance(value, dict):
        lists = [v for v in value.values() if isinstance(v, list)]
        value = lists[0] if lists else list(value.values())
    if not isinstance(value, list):
        return None
    return [item.strip() for item in value if isinstance(item, str)]
