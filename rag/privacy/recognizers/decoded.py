"""Personal data inside Base64: the encoded run is protected as what it hides."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Sequence

import regex

from rag.privacy.policy import DIRECT
from rag.privacy.recognizers.rules import SECONDS, Recognizer
from rag.types import Span

_RUN = regex.compile(r"(?<![A-Za-z0-9+/_=-])[A-Za-z0-9+/_-]{12,}={0,2}(?![A-Za-z0-9+/_-])")


class DecodedRecognizer:
    """Looks with the given recognizers into whatever decodes to readable text."""

    name = "decoded"

    def __init__(self, recognizers: Sequence[Recognizer]) -> None:
        self._recognizers = tuple(recognizers)

    def find(self, text: str) -> list[Span]:
        spans = []
        for match in _RUN.finditer(text, timeout=SECONDS):
            plain = decode(match[0])
            if plain is None:
                continue
            inside = [s for r in self._recognizers for s in r.find(plain) if s.type in DIRECT]
            if inside:
                worst = max(inside, key=lambda s: (s.score, s.end - s.start))
                spans.append(Span(match.start(), match.end(), worst.type, worst.score))
        return spans


def decode(run: str) -> str | None:
    """The readable text that a Base64 run stands for, if any."""
    body = run.rstrip("=").replace("-", "+").replace("_", "/")
    if len(body) % 4 == 1:
        return None
    try:
        plain = base64.b64decode(body + "=" * (-len(body) % 4), validate=True).decode("utf-8")
    except (binascii.Error, UnicodeDecodeError):
        return None
    readable = plain.replace("\n", "").replace("\r", "").replace("\t", "")
    return plain if readable and readable.isprintable() else None
