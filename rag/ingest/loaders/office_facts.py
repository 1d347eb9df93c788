"""What an Office or OpenDocument file says about itself: title, author, dates, language."""

from __future__ import annotations

from typing import Any

from rag.errors import Malformed
from rag.ingest.loaders.archive import Archive, local
from rag.ingest.loaders.blocks import one_line

_FACTS = {
    "title": "title", "creator": "author", "initial-creator": "author", "subject": "subject",
    "keywords": "keywords", "keyword": "keywords", "description": "description",
    "created": "date", "creation-date": "date", "lastModifiedBy": "last_author",
    "language": "language", "category": "category",
}  # fmt: skip
_MOST = 1_000


def office_facts(archive: Archive) -> dict[str, Any]:
    """Of ``docProps/core.xml``; a damaged one says nothing."""
    return _facts(archive, "docProps/core.xml")


def opendocument_facts(archive: Archive) -> dict[str, Any]:
    """Of ``meta.xml``; a damaged one says nothing."""
    return _facts(archive, "meta.xml")


def _facts(archive: Archive, part: str) -> dict[str, Any]:
    facts: dict[str, Any] = {}
    try:
        root = archive.xml_if_any(part)
    except Malformed:
        return facts
    for element in () if root is None else root.iterdescendants():
        name, text = _FACTS.get(local(element)), one_line(element.text or "")
        if name and text:
            facts.setdefault(name, text[:10] if name == "date" else text[:_MOST])
    return facts
