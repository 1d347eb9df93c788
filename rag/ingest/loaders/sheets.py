"""XLSX, XLSB and XLS: every sheet is a section, every row a line, with comments and drawings.

Cells are read by calamine, a row becomes ``header: value; ...`` under a row of column names
and ``a | b`` elsewhere. Formulas are not computed: what they last gave is in the file.
"""

from __future__ import annotations

import datetime
import io
import posixpath
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from rag.errors import Encrypted, Malformed
from rag.ingest.limits import Limits
from rag.ingest.loaders.archive import Archive, Relations, attribute, child, descendants
from rag.ingest.loaders.blocks import Blocks, one_line
from rag.ingest.loaders.csv_rows import is_header, row_line
from rag.ingest.loaders.office_facts import office_facts
from rag.ingest.loaders.read import Read

_THREADED = "[Threaded comment]"
_R = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"


def read_sheets(
    data: bytes, limits: Limits, archive: Archive | None = None, main: str = ""
) -> Read:
    """All sheets, hidden ones too. Raises ``Encrypted``, ``Malformed``, ``TooLarge``.

    ``archive`` is the package whose workbook is ``main``; an XLS has none.
    """
    if archive is not None:
        archive.admit()
    book = _opened(data)
    parts = _sheet_parts(archive, main) if archive is not None else {}
    blocks, names = Blocks(limits), []
    for name in book.sheet_names:
        blocks.heading(name, 1)
        names.append(name)
        write_rows(_rows(book, name), blocks)
        if archive is not None and name in parts:
            _write_beside(archive, parts[name], blocks)
    facts = office_facts(archive) if archive is not None else {}
    return blocks.read(facts | {"sheets": ", ".join(map(one_line, names))[:1_000]})


def _opened(data: bytes) -> Any:
    import python_calamine as calamine

    try:
        return calamine.CalamineWorkbook.from_filelike(io.BytesIO(data))
    except calamine.PasswordError:
        raise Encrypted from None
    except (calamine.CalamineError, OSError, ValueError):
        raise Malformed("The workbook is damaged.") from None
    except BaseException as error:
        raise _panic(error) from None


def _rows(book: Any, name: str) -> Iterator[list[str]]:
    import python_calamine as calamine

    try:
        sheet = book.get_sheet_by_name(name)
        for row in sheet.iter_rows():
            yield [_shown(cell) for cell in row]
    except calamine.WorksheetNotFound:  # a sheet that is a chart
        return
    except (calamine.CalamineError, OSError, ValueError):
        raise Malformed("A sheet of the workbook is damaged.") from None
    except BaseException as error:
        raise _panic(error) from None


def _panic(error: BaseException) -> BaseException:
    """A fault of the native reader, which is no ``Exception``, is the file's."""
    return Malformed("The workbook is damaged.") if type(error).__name__ == _PANIC else error


_PANIC = "PanicException"


def _shown(cell: object) -> str:
    """A cell's value as people write it."""
    if isinstance(cell, bool):
        return "true" if cell else "false"
    if isinstance(cell, float):
        return str(int(cell)) if cell.is_integer() and abs(cell) < 1e15 else repr(cell)
    if isinstance(cell, datetime.datetime):
        midnight = cell.time() == datetime.time()
        return cell.date().isoformat() if midnight else cell.isoformat(" ")
    return one_line(str(cell))


def write_rows(rows: Iterable[Sequence[str]], blocks: Blocks) -> None:
    """Rows as lines. The first row of names heads its table; one without text ends it."""
    header: list[str] | None = None
    widest, begun, gap = 0, False, 2
    for count, row in enumerate(rows, 1):
        blocks.admit_row(count, row)
        cells = list(row)
        filled = list(filter(None, cells))
        if not filled:
            if begun or header is None:
                header, widest, begun = None, 0, False
            gap = 2
            continue
        if not begun and len(filled) > widest and is_header(filled):
            header = cells  # narrower rows above it were titles
            blocks.paragraph(" | ".join(filled), gap)
        else:
            begun = begun or header is not None
            blocks.paragraph(row_line(header, cells) if header else " | ".join(filled), gap)
        widest, gap = max(widest, len(filled)), 1


def _sheet_parts(archive: Archive, main: str) -> dict[str, str]:
    if not main.endswith(".xml"):
        return {}
    relations = Relations(archive, main)
    found = {}
    for sheet in descendants(archive.xml(main), "sheet"):
        part = relations.target(attribute(sheet, f"{{{_R}}}id") or attribute(sheet, "id"))
        if part is not None:
            found[attribute(sheet, "name")] = part
    return found


def _write_beside(archive: Archive, part: str, blocks: Blocks) -> None:
    """What a sheet holds beside its cells: headers and footers, comments, drawings."""
    for words in _page_lines(archive.read(part)):
        blocks.paragraph(words)
    relations = Relations(archive, part)
    for words in _comments(archive, relations):
        blocks.paragraph(words)
    for drawing in relations.of_kind("drawing"):
        charts = Relations(archive, drawing).of_kind("chart", "diagramData")
        from rag.ingest.loaders.docx_text import drawing_words

        for found in (drawing, *charts):
            for words in drawing_words(archive.xml(found)):
                blocks.paragraph(words)


def _page_lines(sheet: bytes) -> list[str]:
    """Printed headers and footers, without their codes; the sheet itself is not parsed again."""
    at = sheet.rfind(b"<headerFooter")
    if at < 0:
        return []
    end = sheet.find(b"</headerFooter>", at)
    return _page_words(sheet[at:end].decode("utf-8", "replace")) if end > 0 else []


def _page_words(markup: str) -> list[str]:
    import html
    import re

    found = []
    for text in re.findall(r"<(?:odd|even|first)(?:Header|Footer)[^>]*>([^<]*)<", markup):
        plain = re.sub(r'&(?:"[^"]*"|K[0-9A-F]{6}|\d+|.)', " ", html.unescape(text))
        found.append(one_line(plain))
    return list(dict.fromkeys(filter(None, found)))


def _comments(archive: Archive, relations: Relations) -> Iterator[str]:
    for part in relations.of_kind("comments"):
        root = archive.xml(part)
        authors = [one_line(a.text or "") for a in descendants(root, "author")]
        for comment in descendants(root, "comment"):
            words = one_line("".join(t.text or "" for t in descendants(comment, "t")))
            if words and not words.startswith(_THREADED):
                number = attribute(comment, "authorId")
                known = number.isdecimal() and int(number) < len(authors)
                author = authors[int(number)] if known else ""
                yield _comment(attribute(comment, "ref"), author, words)
    people = _people(archive)
    for part in relations.of_kind("threadedComment"):
        for comment in descendants(archive.xml(part), "threadedComment"):
            text = child(comment, "text")
            words = one_line("" if text is None else text.text or "")
            if words:
                author = people.get(attribute(comment, "personId"), "")
                yield _comment(attribute(comment, "ref"), author, words)


def _comment(place: str, author: str, words: str) -> str:
    return f"[Comment on {one_line(place)}{f' by {author}' if author else ''}: {words}]"


def _people(archive: Archive) -> dict[str, str]:
    found = {}
    for part in archive.names:
        if posixpath.dirname(part) == "xl/persons" and part.endswith(".xml"):
            for person in descendants(archive.xml(part), "person"):
                found[attribute(person, "id")] = one_line(attribute(person, "displayName"))
    return found
