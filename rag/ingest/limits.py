"""How much one document may be: everything that came in may be hostile, memory is not.

Each limit is checked while reading, before what it bounds is built.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from rag.errors import TooLarge


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds of one document. ``markup`` is how much longer than its text a file may be."""

    bytes: int = 50_000_000
    characters: int = 2_000_000
    markup: int = 4
    pages: int = 5_000
    rows: int = 200_000
    columns: int = 1_000
    depth: int = 100
    tags: int = 512
    """How deep HTML elements may nest: browsers stop at 512, parsers are quadratic in it."""
    entries: int = 10_000
    """Files in an archive such as DOCX, parts of a mail, streams of a compound file."""
    expanded: int = 250_000_000
    """Bytes that all parts of an archive may unpack to."""
    seconds: float = 90.0
    """That the conversion may take, in wall and in processor time, scanned pages apart."""
    memory: int = 2_000_000_000
    """Bytes of address space of the process that converts."""
    ocr_seconds: float = 60.0
    """That the text of one scanned page may take; each page begins ``seconds`` anew."""
    ocr_pages: int = 500

    def admit_bytes(self, size: int) -> None:
        """Raise ``TooLarge`` for a file of more than ``bytes``."""
        if size > self.bytes:
            raise TooLarge(f"The document is larger than {self.bytes} bytes.")

    def admit_source_text(self, text: str) -> None:
        """Raise ``TooLarge`` for text with markup that cannot be parsed in bounded memory."""
        if len(text) > self.characters * self.markup:
            raise TooLarge(f"The document is longer than {self.characters} characters.")


class BoundedText:
    """Pieces of text that are refused, not truncated, once there are too many characters."""

    def __init__(self, characters: int) -> None:
        self._parts: list[str] = []
        self._most = characters
        self.length = 0

    def add(self, part: str) -> None:
        self.length += len(part)
        if self.length > self._most:
            raise TooLarge(f"The document is longer than {self._most} characters.")
        self._parts.append(part)

    def add_all(self, parts: Iterable[str]) -> None:
        for part in parts:
            self.add(part)

    def whole(self) -> str:
        return "".join(self._parts)
