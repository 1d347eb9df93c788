"""PPTX: slide after slide, with tables, groups, diagrams, charts, speaker notes and comments.

A slide is a page, its title a heading.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from rag.errors import Malformed
from rag.ingest.limits import Limits
from rag.ingest.loaders.archive import Archive, Relations, attribute, child, descendants, local
from rag.ingest.loaders.blocks import Blocks, one_line
from rag.ingest.loaders.docx_text import drawing_words
from rag.ingest.loaders.office_facts import office_facts
from rag.ingest.loaders.read import Read

_SLIDE = re.compile(r"ppt/slides/slide(\d+)\.xml")
_TITLES = frozenset({"title", "ctrTitle"})
_NUMBERS = frozenset({"sldNum", "sldImg"})


def read_pptx(archive: Archive, main: str, limits: Limits) -> Read:
    """The presentation whose part is ``main``. Raises ``Malformed``, ``TooLarge``."""
    slides = _slides(archive, main)
    if not slides:
        raise Malformed("The presentation has no slides.")
    authors = _authors(archive, main)
    blocks = Blocks(limits)
    for n, part in enumerate(slides, 1):
        blocks.leave(0)
        blocks.turn_to(n)
        _write_slide(archive, part, authors, blocks)
    return blocks.read(office_facts(archive) | {"pages": len(slides)})


def _slides(archive: Archive, main: str) -> list[str]:
    """The slides' parts in their order; by their numbers where the order is lost."""
    relations = Relations(archive, main)
    ids = [attribute(slide, f"{{{_R}}}id") for slide in descendants(archive.xml(main), "sldId")]
    listed = [part for name in ids if (part := relations.target(name))]
    if listed:
        return list(dict.fromkeys(listed))
    numbered = [
        (int(found[1]), found[0]) for found in map(_SLIDE.fullmatch, archive.names) if found
    ]
    return [part for _, part in sorted(numbered)]


_R = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"


def _authors(archive: Archive, main: str) -> dict[str, str]:
    found = {}
    for part in Relations(archive, main).of_kind("commentAuthors", "authors"):
        for author in descendants(archive.xml(part), "cmAuthor", "author"):
            found[attribute(author, "id")] = one_line(attribute(author, "name"))
    return found


def _write_slide(archive: Archive, part: str, authors: dict[str, str], blocks: Blocks) -> None:
    shapes = list(_shapes(archive.xml(part)))
    relations = Relations(archive, part)
    for shape in filter(_is_title, shapes):
        blocks.heading(" ".join(_paragraphs(shape)), 1)
    for shape in shapes:
        if _role(shape) not in _TITLES | _NUMBERS:
            _write_shape(shape, blocks)
    for drawing in relations.of_kind("diagramData", "chart"):
        for words in drawing_words(archive.xml(drawing)):
            blocks.paragraph(words)
    for notes in relations.of_kind("notesSlide"):
        _write_notes(archive.xml(notes), blocks)
    for comments in relations.of_kind("comments", "comment"):
        _write_comments(archive.xml(comments), authors, blocks)


def _shapes(root: Any) -> Iterator[Any]:
    """Shapes and tables in order, those of groups among them, without their old doubles."""
    for shape in descendants(root, "sp", "graphicFrame", "cxnSp", "pic"):
        if all(local(above) != "Fallback" for above in shape.iterancestors()):
            yield shape


def _role(shape: Any) -> str:
    placeholder = next(descendants(shape, "ph"), None)
    return "" if placeholder is None else attribute(placeholder, "type", "body")


def _is_title(shape: Any) -> bool:
    return _role(shape) in _TITLES


def _write_shape(shape: Any, blocks: Blocks) -> None:
    for table in descendants(shape, "tbl"):
        blocks.table(
            [[" ".join(_paragraphs(cell)) for cell in row if local(cell) == "tc"]
             for row in table if local(row) == "tr"]
        )  # fmt: skip
        return
    gap = 2
    for words in _paragraphs(shape):
        blocks.paragraph(words, gap)
        gap = 1
    about = next(descendants(shape, "cNvPr"), None)
    if about is not None and local(shape) == "pic":
        blocks.paragraph(attribute(about, "descr"))


def _paragraphs(shape: Any) -> list[str]:
    return [text for p in descendants(shape, "p") if (text := _text(p).strip())]


def _text(paragraph: Any) -> str:
    parts = []
    for element in descendants(paragraph, "t", "br", "tab"):
        parts.append((element.text or "") if local(element) == "t" else "\n")
    return "".join(parts)


def _write_notes(root: Any, blocks: Blocks) -> None:
    words = [
        text
        for shape in _shapes(root)
        if _role(shape) not in _NUMBERS
        for text in _paragraphs(shape)
    ]
    if words:
        blocks.paragraph("Notes: " + "\n".join(words))


def _write_comments(root: Any, authors: dict[str, str], blocks: Blocks) -> None:
    for comment in descendants(root, "cm", "reply"):
        plain = child(comment, "text")
        body = child(comment, "txBody")
        if plain is not None:
            words = plain.text or ""
        else:
            words = "" if body is None else " ".join(_paragraphs(body))
        author = authors.get(attribute(comment, "authorId"), "")
        if words.strip():
            blocks.paragraph(f"[Comment{f' by {author}' if author else ''}: {one_line(words)}]")
