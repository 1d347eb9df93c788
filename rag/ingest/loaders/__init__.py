"""Bytes in, ``Document`` out: pure, and nothing that a document points to is opened.

A name is data, never a path. Whatever is wrong with a document is one of the typed
refusals of ``rag.errors``; text is never guessed or made up.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from rag.errors import EmptyDocument, Encrypted, TooLarge, UnsupportedFormat
from rag.ingest.cleaning import clean, clean_metadata, clean_name, is_blank
from rag.ingest.encoding import decode
from rag.ingest.formats import COMPOUND, Format, find_compound, find_format, find_package
from rag.ingest.limits import Limits
from rag.ingest.loaders.archive import Archive
from rag.ingest.loaders.compound import CompoundFile, decrypted
from rag.ingest.loaders.csv_rows import read_csv
from rag.ingest.loaders.docx_text import read_docx
from rag.ingest.loaders.html_text import declared_charset, read_html
from rag.ingest.loaders.json_paths import read_json, read_json_lines
from rag.ingest.loaders.mail_parts import parse_mail
from rag.ingest.loaders.markdown_headings import read_markdown
from rag.ingest.loaders.msg_parts import parse_msg
from rag.ingest.loaders.ocr import read_picture
from rag.ingest.loaders.odf_text import read_opendocument
from rag.ingest.loaders.parts import Attachment, ReadAttachment, write_mail, write_msg
from rag.ingest.loaders.pdf_pages import read_pdf
from rag.ingest.loaders.pptx_slides import read_pptx
from rag.ingest.loaders.read import Read
from rag.ingest.loaders.rtf_text import read_rtf
from rag.ingest.loaders.sheets import read_sheets
from rag.types import Document

DEFAULT_LIMITS = Limits()


def load(
    name: str,
    data: bytes,
    media_type: str | None = None,
    limits: Limits = DEFAULT_LIMITS,
    password: str | None = None,
) -> Document:
    """The document in ``data``; ``password`` opens it when it is encrypted.

    Raises the ``DocumentRefused`` kinds and ``TooLarge``.
    """
    name = clean_name(name)
    limits.admit_bytes(len(data))
    if not data.strip():
        raise EmptyDocument
    read = _read(name, data, media_type, limits, password)
    content = clean(read.content)
    if len(content) > limits.characters:
        raise TooLarge(f"The document is longer than {limits.characters} characters.")
    if is_blank(content):
        raise EmptyDocument
    return Document(
        source=name,
        content=content,
        metadata=clean_metadata(read.metadata),
        sections=read.sections,
        language=read.language or "en",
    )


def prepare(document: Document) -> Document:
    """A document that came as text, cleaned; the headings of Markdown are found.

    Raises ``EmptyDocument``, ``InvalidInput``, ``TooLarge``.
    """
    content, source = clean(document.content), clean_name(document.source)
    if is_blank(content):
        raise EmptyDocument
    metadata: Mapping[str, Any] = document.metadata
    sections = document.sections
    if not sections and source.lower().endswith((".md", ".markdown")):
        read = read_markdown(content)
        sections, metadata = read.sections, {**read.metadata, **metadata}
    return replace(
        document,
        source=source,
        content=content,
        metadata=clean_metadata(metadata),
        sections=sections,
    )


def _read(
    name: str,
    data: bytes,
    media_type: str | None,
    limits: Limits,
    password: str | None,
    within: int = 0,
) -> Read:
    """What is in a file, or in an attachment when ``within`` mails."""
    found = find_format(name, data, media_type)
    if found is None:
        return _read_container(data, limits, password, within)
    if found is Format.PDF:
        return read_pdf(data, limits, password)
    if found is Format.MAIL:
        return write_mail(parse_mail(data, limits), limits, _attachments(limits, password, within))
    if reader := _FROM_BYTES.get(found):
        return reader(data, limits)
    return _read_text(found, data, limits)


def _read_container(data: bytes, limits: Limits, password: str | None, within: int) -> Read:
    if data.startswith(COMPOUND):
        return _read_compound(data, limits, password, within)
    return _read_package(data, limits)


def _read_package(data: bytes, limits: Limits) -> Read:
    archive = Archive(data, limits)
    found, main = find_package(archive)
    if found is Format.OPENDOCUMENT:
        return read_opendocument(archive, limits)
    if found is Format.XLSX:
        return read_sheets(data, limits, archive, main)
    reader = read_docx if found is Format.DOCX else read_pptx
    return reader(archive, main, limits)


def _read_compound(data: bytes, limits: Limits, password: str | None, within: int) -> Read:
    file = CompoundFile(data, limits)
    found = find_compound(file)
    if found is Format.ENCRYPTED_OFFICE:
        return _read_package(decrypted(data, password), limits)
    if found is Format.XLS:
        return _read_xls(data, limits, password)
    mails = parse_msg(file, limits)
    return write_msg(mails, limits, _attachments(limits, password, within))


def _read_xls(data: bytes, limits: Limits, password: str | None) -> Read:
    try:
        return read_sheets(data, limits)
    except Encrypted:
        return read_sheets(decrypted(data, password), limits)


def _attachments(limits: Limits, password: str | None, within: int) -> ReadAttachment:
    """Reads what is attached to a mail; a mail in a mail in a mail is only named."""

    def read(attachment: Attachment) -> Read:
        limits.admit_bytes(len(attachment.data))
        if not attachment.data.strip():
            raise EmptyDocument
        if within >= _MOST_WITHIN:
            raise UnsupportedFormat
        found = _read(
            attachment.name, attachment.data, attachment.media_type, limits, password, within + 1
        )
        if is_blank(found.content):
            raise EmptyDocument
        return found

    return read


_MOST_WITHIN = 2


def _read_text(found: Format, data: bytes, limits: Limits) -> Read:
    declared = declared_charset(data) if found is Format.HTML else None
    text = clean(decode(data, declared))
    if found is Format.MARKDOWN:
        return read_markdown(text)
    if read := _WITH_LIMITS.get(found):
        return read(text, limits)
    return Read(text)


_FROM_BYTES = {Format.PICTURE: read_picture, Format.RTF: read_rtf}
_WITH_LIMITS = {
    Format.HTML: read_html,
    Format.CSV: read_csv,
    Format.JSON: read_json,
    Format.JSON_LINES: read_json_lines,
}
