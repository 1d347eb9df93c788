"""Which format a document has: by its content where that is certain, else by its name.

Never a guess: what is neither known by its content nor by its ending is refused.
"""

from __future__ import annotations

import re
from enum import StrEnum
from typing import TYPE_CHECKING

from rag.errors import Malformed, UnsupportedFormat

if TYPE_CHECKING:
    from rag.ingest.loaders.archive import Archive
    from rag.ingest.loaders.compound import CompoundFile


class Format(StrEnum):
    """The formats that can be read."""

    TEXT = "text"
    MARKDOWN = "markdown"
    HTML = "html"
    CSV = "csv"
    JSON = "json"
    JSON_LINES = "json_lines"
    PDF = "pdf"
    DOCX = "docx"
    PPTX = "pptx"
    XLSX = "xlsx"
    XLS = "xls"
    OPENDOCUMENT = "opendocument"
    RTF = "rtf"
    MAIL = "mail"
    MSG = "msg"
    PICTURE = "picture"
    ENCRYPTED_OFFICE = "encrypted office"


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
    **dict.fromkeys(("docx", "docm", "dotx"), Format.DOCX),
    **dict.fromkeys(("pptx", "pptm", "ppsx", "potx"), Format.PPTX),
    **dict.fromkeys(("xlsx", "xlsm", "xltx", "xlsb"), Format.XLSX),
    "xls": Format.XLS,
    **dict.fromkeys(("odt", "ott", "ods", "odp"), Format.OPENDOCUMENT),
    "rtf": Format.RTF,
    "eml": Format.MAIL,
    "msg": Format.MSG,
    **dict.fromkeys(("jpg", "jpeg", "png", "tif", "tiff"), Format.PICTURE),
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
    "application/rtf": Format.RTF,
    "text/rtf": Format.RTF,
    "message/rfc822": Format.MAIL,
    "application/vnd.ms-outlook": Format.MSG,
    "application/vnd.ms-excel": Format.XLS,
    "application/vnd.openxmlformats-officedocument.wordprocessingml.document": Format.DOCX,
    "application/vnd.openxmlformats-officedocument.presentationml.presentation": Format.PPTX,
    "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet": Format.XLSX,
    "application/vnd.oasis.opendocument.text": Format.OPENDOCUMENT,
    "application/vnd.oasis.opendocument.spreadsheet": Format.OPENDOCUMENT,
    "application/vnd.oasis.opendocument.presentation": Format.OPENDOCUMENT,
    "image/png": Format.PICTURE,
    "image/jpeg": Format.PICTURE,
    "image/tiff": Format.PICTURE,
}
_BINARY = re.compile(
    rb"PK\x03\x04|PK\x05\x06|\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1|\xff\xd8\xff|\x89PNG\r\n|GIF8[79]a"
    rb"|II\*\x00|MM\x00\*|RIFF.{4}(?:WAVE|WEBP|AVI )|\x1f\x8b|BZh[1-9]1AY|\xfd7zXZ|7z\xbc\xaf"
    rb"|Rar!\x1a|\x7fELF|MZ.\x00|\{\\rtf|SQLite format 3\x00|\x28\xb5\x2f\xfd",
    re.S,
)
ZIP, COMPOUND = b"PK\x03\x04", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_PICTURES = (b"\x89PNG\r\n", b"\xff\xd8\xff", b"II*\x00", b"MM\x00*")
_RTF_HEADER, _PDF_HEADER = b"{\\rtf", b"%PDF-"
_HTML_START = re.compile(
    rb"(?:<\?xml[^>]{0,200}>|<!--.{0,2000}?-->|\s)*+<(?:!doctype\s+html|html)\b", re.I | re.S
)
_ENDING = re.compile(r"\.([A-Za-z0-9]{1,10})$")
_OPENDOCUMENT = b"application/vnd.oasis.opendocument."
_MAIN_PARTS = (
    ("wordprocessingml", Format.DOCX), ("presentationml", Format.PPTX),
    ("spreadsheetml", Format.XLSX), ("ms-excel.sheet", Format.XLSX),
    ("ms-word.document", Format.DOCX), ("ms-powerpoint", Format.PPTX),
)  # fmt: skip
_BY_CONTENT = frozenset({
    Format.DOCX, Format.PPTX, Format.XLSX, Format.XLS, Format.OPENDOCUMENT, Format.RTF, Format.MSG,
    Format.PICTURE, Format.PDF,
})  # fmt: skip
"""Formats that show in their first bytes: what does not begin so is none, whatever its name."""


def find_format(name: str, data: bytes, media_type: str | None = None) -> Format | None:
    """The format of ``data``; ``None`` for a container whose parts decide.

    Raises ``UnsupportedFormat``, and ``Malformed`` for what its content denies.
    """
    named = _named_format(name, media_type)
    head = data[:4096].lstrip(b"\xef\xbb\xbf \t\r\n")
    if head.startswith(_PDF_HEADER) or (named is Format.PDF and _PDF_HEADER in data[:1024]):
        return Format.PDF
    if data.startswith((ZIP, COMPOUND)):
        return None
    if data.startswith(_PICTURES):
        return Format.PICTURE
    if head.startswith(_RTF_HEADER):
        return Format.RTF
    if named in _BY_CONTENT:
        raise Malformed("The document is not of the format that its name says.")
    if _BINARY.match(data):
        raise UnsupportedFormat
    if _HTML_START.match(head):
        return Format.HTML
    if named is None:
        raise UnsupportedFormat
    return named


def find_package(archive: Archive) -> tuple[Format, str]:
    """What a zip is, and its main part. Raises ``UnsupportedFormat``, ``Malformed``."""
    # the loaders import the formats
    from rag.ingest.loaders.archive import Relations, attribute

    if "mimetype" in archive and archive.read("mimetype").startswith(_OPENDOCUMENT):
        return Format.OPENDOCUMENT, "content.xml"
    if "[Content_Types].xml" not in archive:
        raise UnsupportedFormat
    types = archive.xml("[Content_Types].xml")
    kinds = {attribute(e, "PartName").lstrip("/"): attribute(e, "ContentType") for e in types}
    for part in (*Relations(archive, "").of_kind("officeDocument"), *kinds):
        kind = kinds.get(part, "")
        if part in archive and "main" in kind:
            for word, found in _MAIN_PARTS:
                if word in kind:
                    return found, part
    for part, found in _USUAL_PARTS.items():
        if part in archive:
            return found, part
    raise UnsupportedFormat


_USUAL_PARTS = {
    "word/document.xml": Format.DOCX,
    "ppt/presentation.xml": Format.PPTX,
    "xl/workbook.xml": Format.XLSX,
    "xl/workbook.bin": Format.XLSX,
}


def find_compound(file: CompoundFile) -> Format:
    """What a compound file is. Raises ``UnsupportedFormat``."""
    if "EncryptedPackage" in file:
        return Format.ENCRYPTED_OFFICE
    if "Workbook" in file or "Book" in file:
        return Format.XLS
    if _MSG_PROPERTIES in file:
        return Format.MSG
    raise UnsupportedFormat


_MSG_PROPERTIES = "__properties_version1.0"


def _named_format(name: str, media_type: str | None) -> Format | None:
    ending = _ENDING.search(name)
    if ending and (known := ENDINGS.get(ending[1].lower())):
        return known
    plain = (media_type or "").partition(";")[0].strip().lower()
    if plain in MEDIA_TYPES and not (ending and plain == "text/plain"):
        return MEDIA_TYPES[plain]
    return None if ending or media_type else Format.TEXT
