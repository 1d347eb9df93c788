"""DOCX: the body in reading order, with tables, lists, text boxes, headers, footers and notes.

A comment follows the paragraph it belongs to. Text that was deleted under tracked changes is
no part of the document. Macros are parts that are never opened.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from rag.errors import Malformed
from rag.ingest.limits import Limits
from rag.ingest.loaders.archive import (
    Archive,
    Relations,
    attribute,
    child,
    descendants,
    local,
    topmost,
)
from rag.ingest.loaders.blocks import Blocks, one_line
from rag.ingest.loaders.office_facts import office_facts
from rag.ingest.loaders.read import Read

_HEADING = re.compile(r"heading (\d)")
_SKIPPED = frozenset({
    "pPr", "rPr", "del", "moveFrom", "delText", "instrText", "Fallback", "tblPr", "trPr", "tcPr",
    "sectPr", "sdtPr", "sdtEndPr", "tblGrid", "txbxContent", "delInstrText",
})  # fmt: skip
_SIGNS = {"tab": "\t", "br": "\n", "cr": "\n", "noBreakHyphen": "-", "ptab": "\t"}
_BLOCK_HOLDERS = frozenset({
    "sdt", "sdtContent", "customXml", "ins", "moveTo", "smartTag", "AlternateContent", "Choice",
    "altChunk",
})  # fmt: skip
_DEPTH_OF_STYLES = 20


@dataclass(slots=True)
class _Context:
    """What a paragraph needs to know of other parts."""

    levels: dict[str, int] = field(default_factory=dict)
    comments: dict[str, str] = field(default_factory=dict)


def read_docx(archive: Archive, main: str, limits: Limits) -> Read:
    """The document whose body is the part ``main``. Raises ``Malformed``, ``TooLarge``."""
    relations = Relations(archive, main)
    body = child(archive.xml(main), "body")
    if body is None:
        raise Malformed("The document has no body.")
    context = _Context(_heading_levels(archive, relations), _comments(archive, relations))
    blocks = Blocks(limits)
    for part in relations.of_kind("header"):
        _write_apart(archive.xml(part), blocks)
    _write(body, blocks, context)
    for title, kind in (("Footnotes", "footnotes"), ("Endnotes", "endnotes")):
        for part in relations.of_kind(kind):
            _write_notes(archive.xml(part), title, blocks)
    for part in relations.of_kind("diagramData", "chart"):
        _write_drawing(archive.xml(part), blocks)
    blocks.leave(0)
    for part in relations.of_kind("footer"):
        _write_apart(archive.xml(part), blocks)
    return blocks.read(office_facts(archive))


def _heading_levels(archive: Archive, relations: Relations) -> dict[str, int]:
    """Style id -> level of the headings, 0 for a title; a style may inherit it."""
    own: dict[str, int] = {}
    above: dict[str, str] = {}
    for part in relations.of_kind("styles"):
        for style in descendants(archive.xml(part), "style"):
            own_id = attribute(style, "styleId")
            names = {local(c): attribute(c, "val") for c in style if local(c) != "pPr"}
            above[own_id] = names.get("basedOn", "")
            name = names.get("name", "").lower()
            outline = next(descendants(style, "outlineLvl"), None)
            if found := _HEADING.fullmatch(name):
                own[own_id] = int(found[1])
            elif name == "title":
                own[own_id] = 0
            elif outline is not None and attribute(outline, "val") in set("012345678"):
                own[own_id] = int(attribute(outline, "val")) + 1
    levels = {style: _inherited(style, own, above) for style in above}
    return {style: level for style, level in levels.items() if level is not None}


def _inherited(style: str, own: dict[str, int], above: dict[str, str]) -> int | None:
    for _ in range(_DEPTH_OF_STYLES):
        if style in own:
            return own[style]
        style = above.get(style, "")
    return None


def _comments(archive: Archive, relations: Relations) -> dict[str, str]:
    found = {}
    for part in relations.of_kind("comments"):
        for comment in descendants(archive.xml(part), "comment"):
            words = one_line(" ".join(_text(p) for p in descendants(comment, "p")))
            author = one_line(attribute(comment, "author"))
            by = f" by {author}" if author else ""
            if words:
                found[attribute(comment, "id")] = f"[Comment{by}: {words}]"
    return found


def _write(container: Any, blocks: Blocks, context: _Context) -> None:
    listed = False
    for element in _block_elements(container):
        if local(element) == "tbl":
            _write_table(element, blocks, context)
            listed = False
            continue
        listed = _write_paragraph(element, blocks, context, listed)
        for box in _boxes(element):
            _write(box, blocks, context)


def _block_elements(container: Any) -> Iterator[Any]:
    """Paragraphs and tables, also those in content controls."""
    stack = list(reversed(container))
    while stack:
        element = stack.pop()
        name = local(element)
        if name in {"p", "tbl"}:
            yield element
        elif name in _BLOCK_HOLDERS:
            stack.extend(reversed(element))


def _write_paragraph(element: Any, blocks: Blocks, context: _Context, listed: bool) -> bool:
    """True when the paragraph is an item of a list."""
    text = _text(element)
    properties = child(element, "pPr")
    level = _level(properties, context)
    item = properties is not None and child(properties, "numPr") is not None
    if level is not None and one_line(text):
        blocks.heading(text, level)
    elif item and text.strip():
        blocks.paragraph(f"- {text.strip()}", gap=1 if listed else 2)
    else:
        blocks.paragraph(text)
    for comment in _comments_of(element, context):
        blocks.line(comment)
    return item


def _level(properties: Any | None, context: _Context) -> int | None:
    if properties is None:
        return None
    outline, style = child(properties, "outlineLvl"), child(properties, "pStyle")
    if outline is not None and attribute(outline, "val") in set("012345678"):
        return int(attribute(outline, "val")) + 1
    return None if style is None else context.levels.get(attribute(style, "val"))


def _comments_of(element: Any, context: _Context) -> Iterator[str]:
    if context.comments:
        for mark in descendants(element, "commentReference"):
            if comment := context.comments.get(attribute(mark, "id")):
                yield comment


def _text(paragraph: Any) -> str:
    """The running text of a paragraph, without what its text boxes hold."""
    parts = []
    stack = list(reversed(paragraph))
    while stack:
        element = stack.pop()
        name = local(element)
        if name == "t":
            parts.append(element.text or "")
        elif name in _SIGNS:
            parts.append(_SIGNS[name])
        elif name == "docPr":
            parts.append(f" {attribute(element, 'descr')} ")
        elif name not in _SKIPPED:
            stack.extend(reversed(element))
    return "".join(parts)


def _boxes(paragraph: Any) -> Iterator[Any]:
    """Text boxes anchored in a paragraph; each is there twice, for old and new readers."""
    return topmost(paragraph, "txbxContent", without=_OLD)


_OLD = frozenset({"Fallback"})


def _write_table(table: Any, blocks: Blocks, context: _Context) -> None:
    rows = [list(_cells(row)) for row in _rows(table)]
    if any(len(row) > 1 for row in rows):
        blocks.table([_cell(cell, context) for cell in row] for row in rows)
        return
    for row in rows:  # a frame around text
        for cell in row:
            _write(cell, blocks, context)


def _rows(table: Any) -> Iterator[Any]:
    return topmost(table, "tr", without=_SKIPPED)


def _cells(row: Any) -> Iterator[Any]:
    return topmost(row, "tc", without=_SKIPPED)


def _cell(cell: Any, context: _Context) -> str:
    """Everything in a cell on one line, nested tables and text boxes too."""
    parts = []
    stack = list(reversed(cell))
    while stack:
        element = stack.pop()
        name = local(element)
        if name == "p":
            parts += [_text(element), *_comments_of(element, context)]
            stack.extend(reversed(list(_boxes(element))))
        elif name not in _SKIPPED or name == "txbxContent":
            stack.extend(reversed(element))
    return " ".join(filter(None, map(one_line, parts)))


def _write_apart(root: Any, blocks: Blocks) -> None:
    """A header or footer; it has no comments and opens no section."""
    for element in _block_elements(root):
        if local(element) == "tbl":
            blocks.table(
                [_cell(cell, _Context()) for cell in _cells(row)] for row in _rows(element)
            )
            continue
        blocks.paragraph(_text(element))
        for box in _boxes(element):
            for paragraph in descendants(box, "p"):
                blocks.paragraph(_text(paragraph))


def _write_notes(root: Any, title: str, blocks: Blocks) -> None:
    notes = [
        " ".join(_text(paragraph) for paragraph in descendants(note, "p"))
        for note in root
        if attribute(note, "type") not in {"separator", "continuationSeparator"}
    ]
    if any(map(one_line, notes)):
        blocks.leave(0)
        blocks.heading(title, 1)
        for note in notes:
            blocks.paragraph(one_line(note))


def _write_drawing(root: Any, blocks: Blocks) -> None:
    """The words of a diagram or a chart."""
    for words in drawing_words(root):
        blocks.paragraph(words)


def drawing_words(root: Any) -> list[str]:
    """Paragraphs and names of categories and series that a diagram or chart shows."""
    found = []
    for element in descendants(root, "p", "strCache"):
        if local(element) == "p":
            found.append("".join(t.text or "" for t in descendants(element, "t")))
        else:
            found.append("; ".join(v.text or "" for v in descendants(element, "v")))
    return list(dict.fromkeys(filter(None, map(one_line, found))))
