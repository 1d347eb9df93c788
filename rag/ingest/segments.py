"""Long texts in parts that fit the detector, cut at paragraphs, each with a margin to see by.

A text file of any size is read in blocks: memory is that of one part.
"""

from __future__ import annotations

import codecs
import hashlib
import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import BinaryIO

from rag.errors import EmptyDocument, Malformed
from rag.ingest.cleaning import is_blank, storable
from rag.ingest.encoding import decode

PART_CHARS, MARGIN_CHARS = 500_000, 2_000
_BLOCK_BYTES = 1 << 20
_SAMPLE_BYTES = 190_000
_BEYOND_ASCII = re.compile(rb"[\x80-\xff]")
_BREAKS = ("\n\n", "\n", ". ", " ")
_CONTROLS = re.compile(r"[\x00-\x08\x0e-\x1a\x1c-\x1f\x7f]")
_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_CODECS = (
    "utf-16-le", "utf-16-be", "cp1252", "cp1254", "cp1250", "cp1251", "koi8_r", "cp1253", "cp1255",
    "cp1256", "cp1257", "cp1258", "cp874", "shift_jis", "euc_jp", "gb18030", "big5", "euc_kr",
    "mac_roman", "cp437",
)  # fmt: skip

Opened = Callable[[], BinaryIO]


@dataclass(frozen=True, slots=True)
class Segment:
    """``text`` begins at ``start`` of the document; ``core`` is what is this part's own."""

    start: int
    text: str = field(repr=False)
    core: tuple[int, int]

    @property
    def end(self) -> int:
        """Where the core ends, in the document."""
        return self.start + self.core[1]


def segments(
    blocks: Iterable[str], size: int = PART_CHARS, margin: int = MARGIN_CHARS
) -> Iterator[Segment]:
    """Parts of at most about ``size`` characters, with margins, of a text that comes in blocks."""
    text, begin, start = "", 0, 0  # text[begin:] is not yet in a core
    for block in blocks:
        text += block
        while len(text) - begin >= size + margin:
            end = _border(text, begin, size)
            yield Segment(start, text[: end + margin], (begin, end))
            kept = max(0, end - margin)
            text, begin, start = text[kept:], end - kept, start + kept
    if begin < len(text):
        yield Segment(start, text, (begin, len(text)))


def _border(text: str, begin: int, size: int) -> int:
    """The strongest break in the last quarter of the part, never inside a character."""
    low, high = begin + size - size // 4, begin + size
    for mark in _BREAKS:
        if (at := text.rfind(mark, low, high)) >= 0:
            return at + len(mark)
    while high < len(text) and high < begin + size + 40 and _continues(text[high]):
        high += 1
    return high


def _continues(character: str) -> bool:
    return unicodedata.category(character) in {"Mn", "Me", "Mc", "Cf"}


@dataclass(frozen=True, slots=True)
class Scanned:
    """A text file seen once: its digest, and some of what is not UTF-8 in it, if anything."""

    digest: str
    foreign: bytes | None = field(default=None, repr=False)


def scan(opened: Opened) -> Scanned:
    """Read a file once, in blocks."""
    digest, decoder = hashlib.sha256(), codecs.getincrementaldecoder("utf-8")()
    foreign: bytes | None = None
    with opened() as file:
        while block := file.read(_BLOCK_BYTES):
            digest.update(block)
            if foreign is None and not _decodes(decoder, block):
                foreign = _sample(block)
    if foreign is None and not _decodes(decoder, b"", final=True):
        foreign = b"\xff"
    return Scanned(digest.hexdigest(), foreign)


def _decodes(decoder: codecs.IncrementalDecoder, data: bytes, *, final: bool = False) -> bool:
    try:
        decoder.decode(data, final)
    except UnicodeDecodeError:
        return False
    return True


def _sample(block: bytes) -> bytes:
    """Whole lines from the first one with a character beyond ASCII on."""
    found = _BEYOND_ASCII.search(block)
    first = found.start() if found else 0
    start = block.rfind(b"\n", 0, first) + 1
    sample = block[start : start + _SAMPLE_BYTES]
    return sample[: sample.rfind(b"\n") + 1] or sample


def read_blocks(opened: Opened, scanned: Scanned) -> Iterator[str]:
    """The clean text of a file in blocks. Raises ``Malformed`` and ``EmptyDocument``."""
    blank = True
    with opened() as file:
        head = file.read(_BLOCK_BYTES)
        mark, codec = _codec(head, scanned)
        decoder = codecs.getincrementaldecoder(codec)()
        held, data = "", head[len(mark) :]
        while data:
            text = held + _decoded(decoder, data)
            held = "\r" if text.endswith("\r") else ""
            clean = storable(text.removesuffix("\r").replace("\r\n", "\n").replace("\r", "\n"))
            if len(_CONTROLS.findall(clean)) > max(8, len(clean) // 20):
                raise Malformed("The document is no text in any known encoding.")
            blank = blank and is_blank(clean)
            yield clean
            data = file.read(_BLOCK_BYTES)
        yield held.replace("\r", "\n") + storable(_decoded(decoder, b"", final=True))
    if blank:
        raise EmptyDocument


def _decoded(decoder: codecs.IncrementalDecoder, data: bytes, *, final: bool = False) -> str:
    try:
        return decoder.decode(data, final)
    except UnicodeDecodeError:
        raise Malformed("The document is no text in any known encoding.") from None


def _codec(head: bytes, scanned: Scanned) -> tuple[bytes, str]:
    """The mark to skip and the codec: told by a mark, by all of the file, or by its beginning."""
    for mark, codec in _MARKS:
        if head.startswith(mark):
            return mark, codec
    wide = b"\x00" in head[:4096]
    if scanned.foreign is None and not wide:
        return b"", "utf-8"
    sample = head[: _SAMPLE_BYTES // 2 * 2] if wide else scanned.foreign or head
    text = decode(sample)
    for codec in _CODECS:
        try:
            if sample.decode(codec) == text:
                return b"", codec
        except UnicodeDecodeError:
            continue
    raise Malformed("The document is no text in any known encoding.")
