"""OpenDocument (ODT, ODS, ODP): text in reading order with tables, notes and comments."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rag.errors import Encrypted, Malformed, TooLarge
from rag.ingest.limits import Limits
from rag.ingest.loaders.archive import Archive, attribute, child, descendants, local, topmost
from rag.ingest.loaders.blocks import Blocks, one_line
from rag.ingest.loaders.office_facts import opendocument_facts
from rag.ingest.loaders.read import Read
from rag.ingest.loaders.sheets import write_rows

_SKIPPED = frozenset({
    "tracked-changes", "sequence-decls", "forms", "variable-decls", "user-field-decls",
    "annotation", "note", "ruby-text", "script", "event-listeners", "bibliography-source",
    "table-of-content-source", "index-title-template", "automatic-styles", "date-time-decl",
})  # fmt: skip
_SIGNS = {"tab": "\t", "line-break": "\n"}
_PAGES = frozenset({"page", "handout-master"})
_MOST_BLANKS = 1_000


def read_opendocument(archive: Archive, limits: Limits) -> Read:
    """The document in the package. Raises ``Encrypted``, ``Malformed``, ``TooLarge``."""
    manifest = archive.xml_if_any("META-INF/manifest.xml")
    if manifest is not None and next(descendants(manifest, "encryption-data"), None) is not None:
        raise Encrypted("The document is encrypted; OpenDocument's own scheme is not supported.")
    body = child(archive.xml("content.xml"), "body")
    if body is None:
        raise Malformed("The document has no body.")
    writer = _Writer(limits)
    headers, footers = _page_lines(archive)
    for words in headers:
        writer.blocks.paragraph(words)
    writer.write(body)
    writer.write_notes()
    for words in footers:
        writer.blocks.paragraph(words)
    return writer.blocks.read(opendocument_facts(archive) | writer.facts)


def _page_lines(archive: Archive) -> tuple[list[str], list[str]]:
    root = archive.xml_if_any("styles.xml")
    found: tuple[list[str], list[str]] = ([], [])
    for element in () if root is None else descendants(root, "master-page"):
        for line in element:
            side = 0 if local(line).startswith("header") else 1
            if local(line).startswith(("header", "footer")):
                words = [one_line(_text(p)) for p in descendants(line, "p", "h")]
                found[side].extend(filter(None, words))
    return list(dict.fromkeys(found[0])), list(dict.fromkeys(found[1]))


class _Writer:
    """Walks the body without recursion."""

    def __init__(self, limits: Limits) -> None:
        self.blocks = Blocks(limits)
        self.facts: dict[str, Any] = {}
        self._limits = limits
        self._notes: list[str] = []
        self._page = 0
        self._sheets: list[str] = []

    def write(self, body: Any) -> None:
        stack: list[tuple[Any, bool]] = [(element, False) for element in reversed(body)]
        while stack:
            element, listed = stack.pop()
            name = local(element)
            if name in {"p", "h"}:
                self._paragraph(element, name == "h", listed)
                for frame in topmost(element, "text-box", "image", without=_SKIPPED):
                    stack.extend((inner, False) for inner in reversed(frame))
            elif name == "table":
                self._table(element)
            elif name == "notes":
                self._speaker(element)
            elif name not in _SKIPPED:
                if name in _PAGES:
                    self._turn(element)
                elif name in {"frame", "custom-shape"}:
                    self._described(element)
                stack.extend((inner, listed or name == "list-item") for inner in reversed(element))

    def _turn(self, page: Any) -> None:
        self._page += 1
        self.blocks.leave(0)
        self.blocks.turn_to(self._page)
        self.facts["pages"] = self._page
        for comment in page:
            if local(comment) == "annotation":
                self.blocks.paragraph(_comment(comment))

    def _described(self, frame: Any) -> None:
        for words in frame:
            if local(words) in {"title", "desc"}:
                self.blocks.paragraph(words.text or "")

    def _paragraph(self, element: Any, heading: bool, listed: bool) -> None:
        text = _text(element)
        if heading and one_line(text):
            level = attribute(element, "outline-level")
            self.blocks.heading(text, int(level) if level.isdecimal() else 1)
        elif listed and text.strip():
            self.blocks.line(f"- {text.strip()}")
        else:
            self.blocks.paragraph(text)
        for comment in descendants(element, "annotation"):
            self.blocks.line(_comment(comment))
        for note in descendants(element, "note-body"):
            self._notes.append(" ".join(one_line(_text(p)) for p in descendants(note, "p")))

    def _speaker(self, notes: Any) -> None:
        words = [one_line(_text(p)) for p in descendants(notes, "p")]
        if any(words):
            self.blocks.paragraph("Notes: " + "\n".join(filter(None, words)))

    def _table(self, table: Any) -> None:
        if local(table.getparent()) == "spreadsheet":
            name = attribute(table, "name")
            self.blocks.heading(name, 1)
            self._sheets.append(one_line(name))
            self.facts["sheets"] = ", ".join(self._sheets)[:1_000]
            write_rows(self._rows(table), self.blocks)
        else:
            self.blocks.table(self._rows(table))

    def _rows(self, table: Any) -> Iterator[list[str]]:
        for row in _within(
            table, "table-row", ("table-header-rows", "table-rows", "table-row-group")
        ):
            cells: list[str] = []
            for cell in _within(row, "table-cell", ("covered-table-cell",)):
                words = _cell(cell)
                repeated = attribute(cell, "number-columns-repeated", "1")
                times = int(repeated) if repeated.isdecimal() and len(repeated) < 8 else 1
                if len(cells) + (times if words else 1) > self._limits.columns:
                    if not words:
                        break
                    raise TooLarge(f"A table has more than {self._limits.columns} columns.")
                cells += [words] * (times if words else min(times, 100))
            while cells and not cells[-1]:
                cells.pop()
            yield cells

    def write_notes(self) -> None:
        self.blocks.leave(0)
        self.blocks.turn_to(None)
        if any(self._notes):
            self.blocks.heading("Footnotes", 1)
            for note in self._notes:
                self.blocks.paragraph(note)
            self.blocks.leave(0)


def _within(container: Any, wanted: str, holders: tuple[str, ...]) -> Iterator[Any]:
    stack = list(reversed(container))
    while stack:
        element = stack.pop()
        name = local(element)
        if name == wanted:
            yield element
        elif name in holders:
            stack.extend(reversed(element))


def _cell(cell: Any) -> str:
    parts = []
    for element in descendants(cell, "p", "h", "annotation"):
        within = any(local(above) == "annotation" for above in element.iterancestors())
        if local(element) == "annotation":
            parts.append(_comment(element))
        elif not within:
            parts.append(one_line(_text(element)))
    return " ".join(filter(None, parts))


def _comment(annotation: Any) -> str:
    author = next((one_line(e.text or "") for e in descendants(annotation, "creator")), "")
    words = " ".join(one_line(_text(p)) for p in descendants(annotation, "p"))
    return f"[Comment{f' by {author}' if author else ''}: {words}]" if words.strip() else ""


def _text(paragraph: Any) -> str:
    """The words of a paragraph; tails of elements are words too."""
    parts = [paragraph.text or ""]
    stack: list[Any] = list(reversed(paragraph))
    while stack:
        element = stack.pop()
        if isinstance(element, str):
            parts.append(element)
            continue
        name = local(element)
        stack.append(element.tail or "")
        if name == "s":
            count = attribute(element, "c", "1")
            parts.append(" " * min(int(count) if count.isdecimal() else 1, _MOST_BLANKS))
        elif name in _SIGNS:
            parts.append(_SIGNS[name])
        elif name not in _SKIPPED and name not in {"frame", "custom-shape"}:
            parts.append(element.text or "")
            stack.extend(reversed(element))
    return "".join(parts)
