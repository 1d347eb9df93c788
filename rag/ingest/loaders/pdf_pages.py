"""PDF, by PDFium: pages with their numbers, form fields, the document's info.

A page without a text layer goes through the OCR program where one is installed.

PDFium is not thread-safe: every call into it is made under one lock, given up between
pages so that a long document does not keep the others waiting.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from rag.errors import Encrypted, Malformed, NoTextLayer, TooLarge
from rag.ingest.cleaning import clean, is_blank
from rag.ingest.limits import BoundedText, Limits
from rag.ingest.loaders.ocr import program, recognize
from rag.ingest.loaders.pictures import page_picture
from rag.ingest.loaders.read import Read
from rag.types import Section

_PDFIUM = threading.Lock()
_PASSWORD, _SECURITY = 4, 5
_HYPHEN = re.compile("[\x02\ufffe](?:\r?\n)?(?=(\\w)?)")
_DATE = re.compile(r"D:(\d{4})(\d\d)?(\d\d)?")
_TURNED = re.compile("[\u0622\u0623\u0625\u0627]\u0644")
_NARROW = 40
_COMPLETE = ".!?:;|"
_INFO = {"Title": "title", "Author": "author", "Subject": "subject", "Keywords": "keywords"}


def read_pdf(data: bytes, limits: Limits, password: str | None = None) -> Read:
    """Every page's text. Raises ``Encrypted``, ``Malformed``, ``NoTextLayer``, ``TooLarge``."""
    written = BoundedText(limits.characters)
    sections, silent, recognized = [], 0, 0
    with _opened(data, password) as pdf:
        with _PDFIUM:
            pages, metadata = len(pdf), _metadata(pdf)
        if pages > limits.pages:
            raise TooLarge(f"The document has more than {limits.pages} pages.")
        for n in range(pages):
            text = _page_text(pdf, n, limits.characters)
            if is_blank(text):
                if recognized >= limits.ocr_pages:
                    raise TooLarge(f"The document has more than {limits.ocr_pages} scanned pages.")
                text = _recognized(pdf, n, limits)
                recognized += not is_blank(text)
            if is_blank(text):
                silent += 1
                continue
            if written.length:
                written.add("\n\n")
            sections.append(Section(written.length, page=n + 1))
            written.add(text)
    if not sections:
        raise NoTextLayer(_NOTHING_FOUND if program() else _NO_PROGRAM)
    metadata |= {"pages": pages} | ({"pages_without_text": silent} if silent else {})
    metadata |= {"pages_by_ocr": recognized} if recognized else {}
    return Read(written.whole(), tuple(sections), metadata)


def _recognized(pdf: Any, n: int, limits: Limits) -> str:
    """What the OCR program reads on a page that has no text of its own."""
    if program() is None:
        return ""
    with _PDFIUM:
        page = pdf[n]
        try:
            picture, resolution = page_picture(page)
        finally:
            page.close()
    return recognize(picture, limits, resolution) if picture else ""


@contextmanager
def _opened(data: bytes, password: str | None) -> Iterator[Any]:
    import pypdfium2

    with _PDFIUM:
        try:
            pdf = pypdfium2.PdfDocument(data, password=password or None)
            if pdf.get_formtype():
                pdf.init_forms()
        except pypdfium2.PdfiumError as error:
            raise _refusal(error.err_code, password) from None
    try:
        yield pdf
    except pypdfium2.PdfiumError as error:
        raise _refusal(error.err_code, password) from None
    finally:
        with _PDFIUM:
            pdf.close()


def _refusal(code: int | None, password: str | None) -> Exception:
    if code not in {_PASSWORD, _SECURITY}:
        return Malformed()
    return Encrypted(_WRONG if password else _LOCKED)


_LOCKED = "The document is encrypted and needs a password."
_WRONG = "The password does not open the document."
_NO_PROGRAM = "The document has no text layer, and no OCR program is installed."
_NOTHING_FOUND = "The document has no text layer, and no text was found in its pictures."


def _page_text(pdf: Any, n: int, most: int) -> str:
    with _PDFIUM:
        page = pdf[n]
        try:
            if pdf.formenv:  # what was typed into fields becomes part of the page
                page.flatten()
                page.close()
                page = pdf[n]
            layer = page.get_textpage()
            try:
                if layer.count_chars() > most:
                    raise TooLarge(f"The document is longer than {most} characters.")
                text = _with_ligatures(layer, layer.get_text_range())
            finally:
                layer.close()
        finally:
            page.close()
    lines = [line.rstrip(" \t") for line in clean(_HYPHEN.sub(_joined, text)).split("\n")]
    return _reflowed(lines).strip("\n")


def _with_ligatures(layer: Any, text: str) -> str:
    """Lam-alef in reading order: PDFium turns the letters of that one Arabic glyph around.

    Two letters are one glyph when they stand in the very same place.
    """
    found = [match.start() for match in _TURNED.finditer(text)]
    if not found or layer.count_chars() != len(text):
        return text
    letters = list(text)
    for at in found:
        if layer.get_charbox(at) == layer.get_charbox(at + 1):
            letters[at], letters[at + 1] = letters[at + 1], letters[at]
    return "".join(letters)


def _reflowed(lines: list[str]) -> str:
    """Lines that only the margin broke become one: a name is not cut in two by it."""
    lengths = sorted(map(len, filter(None, lines)))
    full = max(_NARROW, 0.8 * lengths[int(0.9 * (len(lengths) - 1))]) if lengths else 0
    parts = []
    for line, after in zip(lines, [*lines[1:], ""], strict=True):
        wide = len(line) >= max(full, 1) and line[-1] not in _COMPLETE
        runs_on = wide and after[:1].isalnum()
        parts.append(line + (" " if runs_on else "\n"))
    return "".join(parts)


def _joined(hyphen: re.Match[str]) -> str:
    """A word cut at the end of a line is whole again; a double name keeps its hyphen."""
    return "-" if (hyphen[1] or "").isupper() else ""


def _metadata(pdf: Any) -> dict[str, Any]:
    info = pdf.get_metadata_dict(skip_empty=True)
    found = {ours: clean(info[theirs])[:1_000] for theirs, ours in _INFO.items() if theirs in info}
    if date := _DATE.match(info.get("CreationDate", "")):
        found["date"] = "-".join(filter(None, date.groups()))
    return found
