"""Citations: ``[n]`` in an answer names the n-th source, and no excerpt cuts into a span."""

from __future__ import annotations

import re
from collections.abc import Sequence

from rag.types import Span

EXCERPT_CHARS = 300
_CITATION = re.compile(r"\s?\[(\d{1,3}(?:\s*,\s*\d{1,3})*)\]")


def excerpt(text: str, spans: Sequence[Span], limit: int = EXCERPT_CHARS) -> str:
    """``text`` cut at ``limit`` characters plus ``...``, moved off any span that it would split."""
    if len(text) <= limit:
        return text
    at = limit
    for span in spans:
        if span.start < at < span.end:
            at = span.start if span.start > 0 else span.end
    return text if at >= len(text) else text[:at] + "..."


def resolve(answer: str, passages: Sequence[str]) -> tuple[str, int]:
    """The answer without citations that name no passage, and how many those were.

    What stands so in a passage itself is a quotation and stays.
    """
    count = len(passages)
    dropped = 0

    def keep(match: re.Match[str]) -> str:
        nonlocal dropped
        numbers = [int(n) for n in match[1].split(",")]
        valid = [n for n in numbers if 1 <= n <= count]
        if len(valid) == len(numbers) or any(match[0].strip() in text for text in passages):
            return match[0]
        dropped += len(numbers) - len(valid)
        lead = " " if match[0][0].isspace() else ""
        return f"{lead}[{', '.join(map(str, valid))}]" if valid else ""

    return _CITATION.sub(keep, answer), dropped
