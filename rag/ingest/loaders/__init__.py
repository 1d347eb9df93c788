"""Bytes in, ``Document`` out: pure, and nothing that a document points to is opened.

A name is data, never a path. Whatever is wrong with a document is one of the typed
refusals of ``rag.errors``; text is never guessed or made up.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from rag.errors import EmptyDocument, TooLarge
from rag.ingest.cleaning import clean, clean_metadata, clean_name, is_blank
from rag.ingest.encoding import decode
from rag.ingest.formats import Format, find_format
from rag.ingest.limits import Limits
from rag.ingest.loaders.csv_rows import read_csv
from rag.ingest.loaders.html_text import declared_charset, read_html
from rag.ingest.loaders.json_paths import read_json, read_json_lines
from rag.ingest.loaders.markdown_headings import read_markdown
from rag.ingest.loaders.pdf_pages import read_pdf
from rag.ingest.loaders.read import Read
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
    read = _read(find_format(name, data, media_type), data, limits)
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


def _read(format: Format, data: bytes, limits: Limits) -> Read:
    if format is Format.PDF:
        return read_pdf(data, limits)
    declared = declared_charset(data) if format is Format.HTML else None
    text = clean(decode(data, declared))
    if format is Format.MARKDOWN:
        return read_markdown(text)
    if read := _WITH_LIMITS.get(format):
        return read(text, limits)
    return Read(text)


_WITH_LIMITS = {
    Format.HTML: read_html,
    Format.CSV: read_csv,
    Format.JSON: read_json,
    Format.JSON_LINES: read_json_lines,
}
