"""Which format a document has: by its content where that is certain, else by its name.

Never a guess: what is neither known by its content nor by its ending is refused.
"""

from __future__ import annotations

import re
from enum import StrEnum

from rag.errors import Encrypted, Malformed, UnsupportedFormat


class Format(StrEnum):
    """The formats that can be read."""

    TEXT = "text"
    MARKDOWN = "markdown"
    HTML = "html"
    CSV = "csv"
    JSON = "json"
    JSON_LINES = "json_lines"
    PDF = "pdf"


ENDINGS = {
    "txt": Format.TEXT,
    "text": Format.TEXT,
    "log": Format.TEXT,
    "md": Format.MARKDOWN,
    "markdown": Format.MARKDOWN,
    "html": Format.HTML,
    "htm": Format.HTML,
    "xhtml": Format.HTML,
    "csv": Format.CSV,
    "tsv": Format.CSV,
    "json": Format.JSON,
    "jsonl": Format.JSON_LINES,
    "ndjson": Format.JSON_LINES,
    "pdf": Format.PDF,
}
MEDIA_TYPES = {
    "text/plain": Format.TEXT,
    "text/markdown": Format.MARKDOWN,
    "text/x-markdown": Format.MARKDOWN,
    "text/html": Format.HTML,
    "application/xhtml+xml": Format.HTML,
    "text/csv": Format.CSV,
    "text/tab-separated-values": Format.CSV,
    "application/json": Format.JSON,
    "application/jsonl": Format.JSON_LINES,
    "application/x-ndjson": Format.JSON_LINES,
    "application/pdf": Format.PDF,
}
_BINARY = re.compile(
    rb"PK\x03\x04|PK\x05\x06|\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1|\xff\xd8\xff|\x89PNG\r\n|GIF8[79]a"
    rb"|II\*\x00|MM\x00\*|RIFF.{4}(?:WAVE|WEBP|AVI )|\x1f\x8b|BZh[1-9]1AY|\xfd7zXZ|7z\xbc\xaf"
    rb"|Rar!\x1a|\x7fELF|MZ.\x00|\{\\rtf|SQLite format 3\x00|\x28\xb5\x2f\xfd",
    re.S,
)
_COMPOUND_FILE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_ZIPPED_OFFICE = (".docx", ".xlsx", ".pptx")
_PDF_HEADER = b"%PDF-"
_HTML_START = re.compile(
    rb"(?:<\?xml[^>]{0,200}>|<!--.{0,2000}?-->|\s)*+<(?:!doctype\s+html|html)\b", re.I | re.S
)
_ENDING = re.compile(r"\.([A-Za-z0-9]{1,10})$")


def find_format(name: str, data: bytes, media_type: str | None = None) -> Format:
    """The format of ``data``. Raises ``UnsupportedFormat``, ``Encrypted``, or
    ``Malformed`` for a false PDF.
    """
    named = _named_format(name, media_type)
    head = data[:4096].lstrip(b"\xef\xbb\xbf \t\r\n")
    if head.startswith(_PDF_HEADER) or (named is Format.PDF and _PDF_HEADER in data[:1024]):
        return Format.PDF
    if named is Format.PDF:
        raise Malformed("The document is no PDF, though its name says so.")
    if data.startswith(_COMPOUND_FILE) and name.lower().endswith(_ZIPPED_OFFICE):
        raise Encrypted  # an encrypted package is kept in a compound file, a plain one in a zip
    if _BINARY.match(data):
        raise UnsupportedFormat
    if _HTML_START.match(head):
        return Format.HTML
    if named is None:
        raise UnsupportedFormat
    return named


def _named_format(name: str, media_type: str | None) -> Format | None:
    ending = _ENDING.search(name)
    if ending and (known := ENDINGS.get(ending[1].lower())):
        return known
    plain = (media_type or "").partition(";")[0].strip().lower()
    if plain in MEDIA_TYPES and not (ending and plain == "text/plain"):
        return MEDIA_TYPES[plain]
    return None if ending or media_type else Format.TEXT
