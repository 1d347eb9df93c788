"""HTML: what a reader sees, with headings kept and the rows of tables as ``a | b``.

Scripts, styles, comments and what is hidden are left out; nothing a page points to is
fetched. Walks without recursion, over a tree whose depth was checked before it was built.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from rag.errors import Malformed
from rag.ingest.headings import Heading, sections_of
from rag.ingest.limits import BoundedText, Limits
from rag.ingest.loaders.html_shape import admit_shape
from rag.ingest.loaders.read import Read

_CHARSET = re.compile(rb"""<meta[^>]{0,200}?charset\s*=\s*["']?\s*([A-Za-z0-9_:.-]{2,40})""", re.I)
_XML_ENCODING = re.compile(
    rb"""<\?xml[^>]{0,100}?encoding\s*=\s*["']([A-Za-z0-9_.-]{2,40})""", re.I
)

_UNSEEN = frozenset({
    "script", "style", "template", "noscript", "head", "iframe", "object", "embed", "canvas",
    "audio", "video", "map", "datalist", "math-annotation", "title",
})  # fmt: skip
_PARAGRAPHS = frozenset({
    "p", "h1", "h2", "h3", "h4", "h5", "h6", "blockquote", "ul", "ol", "dl", "table", "pre",
    "hr", "section", "article", "header", "footer", "main", "aside", "nav", "form", "fieldset",
    "figure", "address", "details",
})  # fmt: skip
_LINES = frozenset({
    "div", "li", "dt", "dd", "tr", "caption", "figcaption", "legend", "summary", "option",
    "body", "center",
})  # fmt: skip
_HEADINGS = {f"h{n}": n for n in range(1, 7)}
_LAYOUT = ", ".join(("table", *_HEADINGS))
_HIDDEN = re.compile(r"display\s*:\s*none|visibility\s*:\s*(?:hidden|collapse)", re.I)
_SPACES = re.compile(r"[ \t\n\f\r\xa0]+")
_HINTS = re.compile("[\xad\u200b\u2060\ufeff]")
"""Where a word may be broken: typography, in the midst of names."""

_FACTS = {
    "author": "author", "date": "date", "dc.date": "date", "dc.creator": "author",
    "article:published_time": "date", "description": "description", "keywords": "keywords",
}  # fmt: skip
_LANGUAGE = re.compile(r"([A-Za-z]{2,3})(?:[-_]|$)")


def declared_charset(data: bytes) -> str | None:
    """The encoding that a page names in its first kilobytes."""
    head = data[:4096]
    found = _CHARSET.search(head) or _XML_ENCODING.search(head)
    return found[1].decode("ascii") if found else None


def read_html(text: str, limits: Limits) -> Read:
    """The visible text. Raises ``TooLarge``, ``Malformed``."""
    limits.admit_source_text(text)
    admit_shape(text, limits.tags)
    # not needed for other formats
    from selectolax.lexbor import LexborHTMLParser, SelectolaxError

    try:
        tree = LexborHTMLParser(text)
        body = tree.body or tree.root
    except SelectolaxError:
        raise Malformed from None
    page = _Page(limits.characters)
    if body is not None:
        _walk(body, page)
    return Read(page.whole(), sections_of(page.headings), _metadata(tree), _language(tree))


class _Page:
    """Text as it is laid out: white space collapsed, blocks on lines of their own."""

    def __init__(self, characters: int) -> None:
        self._text = BoundedText(characters)
        self._gap = 0
        self._space = False
        self._opened: tuple[int, int] | None = None
        self.headings: list[Heading] = []

    def line(self, gap: int = 1) -> None:
        """What follows begins ``gap`` lines further down."""
        self._gap, self._space = max(self._gap, gap), False

    def words(self, text: str, verbatim: bool = False) -> None:
        """Add running text."""
        text = _HINTS.sub("", text)
        if verbatim:
            self._put(text.replace("\xa0", " "))
            return
        collapsed = _SPACES.sub(" ", text)
        self._space |= collapsed.startswith(" ")
        if collapsed.strip(" "):
            self._put(collapsed.strip(" "))
            self._space = collapsed.endswith(" ")

    def _put(self, text: str) -> None:
        if not text:
            return
        if self._text.length:
            self._text.add("\n" * self._gap or " " * self._space)
        self._gap, self._space = 0, False
        if self._opened and self._opened[1] < 0:
            self._opened = self._opened[0], self._text.length
        self._text.add(text)

    def open_heading(self, level: int) -> None:
        self._opened = level, -1

    def close_heading(self) -> None:
        if self._opened and self._opened[1] >= 0:
            level, start = self._opened
            self.headings.append(Heading(level, start, self._text.length, start))
        self._opened = None

    def whole(self) -> str:
        return self._text.whole()


def _walk(body: Any, page: _Page) -> None:
    """Depth first; a tag's name left on the stack says that its element ends there."""
    stack: list[Any] = [body]
    verbatim = 0
    while stack:
        node = stack.pop()
        if isinstance(node, str):
            verbatim -= node == "pre"
            _leave(node, page)
        elif node.is_text_node:
            page.words(node.text_content or "", verbatim > 0)
        elif node.is_element_node and not _is_hidden(node):
            if node.tag == "table" and _is_grid(node):
                _write_grid(node, page)
                continue
            verbatim += node.tag == "pre"
            _enter(node, page)
            stack.append(node.tag)
            stack.extend(reversed(list(node.iter(include_text=True))))


def _enter(node: Any, page: _Page) -> None:
    tag = node.tag
    if tag in _PARAGRAPHS:
        page.line(2)
    elif tag in _LINES or tag == "br":
        page.line()
    if tag in _HEADINGS:
        page.open_heading(_HEADINGS[tag])
    elif tag == "li":
        page.words("- ")
    elif tag in {"td", "th"}:
        page.words(" ")
    elif shown := _shown_attribute(node):
        page.words(f" {shown} ")


def _leave(tag: str, page: _Page) -> None:
    if tag in _HEADINGS:
        page.close_heading()
    if tag in _PARAGRAPHS:
        page.line(2)
    elif tag in _LINES:
        page.line()


def _shown_attribute(node: Any) -> str:
    """What a picture stands for, and what was typed into a form's field."""
    if node.tag == "img":
        return node.attributes.get("alt") or ""
    if node.tag == "input" and (node.attributes.get("type") or "text").lower() in _FIELDS:
        return node.attributes.get("value") or ""
    return ""


_FIELDS = frozenset({
    "text", "email", "tel", "url", "search", "number", "date",
})  # fmt: skip


def _is_hidden(node: Any) -> bool:
    if node.tag in _UNSEEN:
        return True
    attributes = node.attributes
    return "hidden" in attributes or bool(_HIDDEN.search(attributes.get("style") or ""))


def _is_grid(table: Any) -> bool:
    """A table of data: rows of cells. One that holds others, or headings, is layout."""
    # the table itself is among what it matches
    return len(table.css(_LAYOUT)) == 1 and table.css_first("tr") is not None


def _visible(top: Any) -> Iterator[Any]:
    """All nodes under ``top`` that a reader sees, in order."""
    stack = list(reversed(list(top.iter(include_text=True))))
    while stack:
        node = stack.pop()
        if node.is_text_node:
            yield node
        elif node.is_element_node and not _is_hidden(node):
            yield node
            stack.extend(reversed(list(node.iter(include_text=True))))


def _write_grid(table: Any, page: _Page) -> None:
    """Rows as lines; columns that are blank in every row only made space."""
    page.line(2)
    rows: list[list[str]] = []
    for node in _visible(table):
        if node.tag == "caption":
            page.words(_plain(node))
            page.line()
        elif node.tag == "tr":
            rows.append([_plain(cell) for cell in node.iter() if _is_cell(cell)])
    used = {n for row in rows for n, cell in enumerate(row) if cell}
    for row in rows:
        cells = [cell for n, cell in enumerate(row) if n in used]
        if any(cells):
            page.words(" | ".join(cells).rstrip(" |"))
            page.line()
    page.line(2)


def _is_cell(node: Any) -> bool:
    return node.tag in {"td", "th"} and not _is_hidden(node)


def _plain(top: Any) -> str:
    parts = []
    for node in _visible(top):
        if node.is_text_node:
            parts.append(node.text_content or "")
        elif node.tag == "br" or node.tag in _PARAGRAPHS or node.tag in _LINES:
            parts.append(" ")
        else:
            parts.append(_shown_attribute(node))
    return _SPACES.sub(" ", _HINTS.sub("", "".join(parts))).strip(" ")


def _metadata(tree: Any) -> dict[str, str]:
    facts: dict[str, str] = {}
    title = tree.css_first("title")
    if title is not None and (words := _plain_title(title)):
        facts["title"] = words
    for node in tree.css("meta"):
        attributes = node.attributes
        name = (attributes.get("name") or attributes.get("property") or "").lower()
        value = _SPACES.sub(" ", attributes.get("content") or "").strip()
        if value and name in _FACTS:
            facts.setdefault(_FACTS[name], value[:1_000])
    return facts


def _plain_title(title: Any) -> str:
    return _SPACES.sub(" ", title.text(deep=True) or "").strip()[:1_000]


def _language(tree: Any) -> str | None:
    root = tree.root
    found = _LANGUAGE.match(((root.attributes.get("lang") if root else None) or "").strip())
    return found[1].lower() if found else None
