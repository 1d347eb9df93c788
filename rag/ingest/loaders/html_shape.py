"""How deep a page nests and how many attributes its tags bear, before it is parsed.

Building a tree takes time quadratic in both, hours for a megabyte made on purpose. One
linear pass over the tags, which need not be exact, refuses such pages first.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

from rag.errors import TooLarge

_MOST_ATTRIBUTES = 500
_START = re.compile(r"<(?:(!--)|([!?]|/(?![A-Za-z]))|(/?)([A-Za-z][^\s/>]*+))")
_ATTRIBUTE = (
    r"""[^\s/>][^\s/>=]*+(?:\s*+=\s*+(?:"[^"]*+"|'[^']*+'|(?!["'])[^\s>]*+))?+"""  # as browsers do
)
_ATTRIBUTES = re.compile(rf"(?:[\s/]++|{_ATTRIBUTE})*+")
_ONE_ATTRIBUTE = re.compile(_ATTRIBUTE)
_RAW = {
    name: re.compile(rf"</{name}(?=[\s/>])", re.I)
    for name in ("script", "style", "textarea", "title", "xmp", "iframe", "noembed", "noframes")
}
_FLAT = frozenset({
    "area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "param", "source",
    "track", "wbr", "p", "li", "option", "optgroup", "tr", "td", "th", "dt", "dd", "thead",
    "tbody", "tfoot", "colgroup", "rt", "rp",
})  # fmt: skip
"""Void elements, and those that the next of their kind closes."""


def admit_shape(text: str, depth: int) -> None:
    """Raise ``TooLarge`` for elements nested deeper than ``depth``, or overloaded ones."""
    unclosed: Counter[str] = Counter()
    deep = 0
    for closing, name, attributes in _tags(text):
        if len(attributes) > 2 * _MOST_ATTRIBUTES and _many(attributes):
            raise TooLarge("An element of the document has too many attributes.")
        if name in _FLAT:
            continue
        if not closing:
            unclosed[name] += 1
            deep += 1
        elif unclosed[name]:
            unclosed[name] -= 1
            deep -= 1
        if deep > depth:
            raise TooLarge("The document nests too deeply.")


def _many(attributes: str) -> bool:
    return sum(1 for _ in _ONE_ATTRIBUTE.finditer(attributes)) > _MOST_ATTRIBUTES


def _tags(text: str) -> Iterator[tuple[bool, str, str]]:
    """``(closing, name, attributes)`` of every tag; each character is passed once."""
    at = 0
    while start := _START.search(text, at):
        comment, bogus, slash, name = start.groups()
        if comment or bogus:
            at = text.find("-->" if comment else ">", start.end() - 2 * bool(comment)) + 1
            if not at:
                return
            continue
        attributes = _ATTRIBUTES.match(text, start.end())
        at = attributes.end() if attributes else start.end()
        if at >= len(text):  # the tag never ends: it and the rest are no part of the page
            return
        tag = name.lower()
        yield bool(slash), tag, text[start.end() : at]
        if tag in _RAW and not slash:
            end = _RAW[tag].search(text, at)
            if end is None:
                return
            at = end.start()
