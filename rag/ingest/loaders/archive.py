"""Zip packages (DOCX, PPTX, XLSX, OpenDocument) and the XML in them, unpacked within bounds.

What a part unpacks to is counted while it is unpacked, whatever the archive claims. XML is
read without document types, entities and network; libxml2's own limits on depth stand.
"""

from __future__ import annotations

import io
import posixpath
import zipfile
import zlib
from collections.abc import Iterator
from typing import Any
from urllib.parse import unquote

from rag.errors import Encrypted, Malformed, TooLarge
from rag.ingest.limits import Limits

_MOST_XML = 100_000_000
_BROKEN = (
    zipfile.BadZipFile, zlib.error, OSError, EOFError, NotImplementedError, ValueError,
    OverflowError,
)  # fmt: skip
_ENCRYPTED = 1


class Archive:
    """The parts of a package, by name; a name is a key and never a path on disk."""

    def __init__(self, data: bytes, limits: Limits) -> None:
        try:
            self._zip = zipfile.ZipFile(io.BytesIO(data))
        except _BROKEN:
            raise Malformed("The document's archive is damaged.") from None
        entries = self._zip.infolist()
        if len(entries) > limits.entries:
            raise TooLarge(f"The document has more than {limits.entries} parts.")
        if any(entry.flag_bits & _ENCRYPTED for entry in entries):
            raise Encrypted
        self._entries = {entry.filename.replace("\\", "/").lstrip("/"): entry for entry in entries}
        self._left = self._most = limits.expanded

    @property
    def names(self) -> list[str]:
        return list(self._entries)

    def __contains__(self, name: str) -> bool:
        return name in self._entries

    def read(self, name: str) -> bytes:
        """The bytes of a part. Raises ``Malformed`` when it is damaged or not there."""
        entry = self._entries.get(name)
        if entry is None:
            raise Malformed("A part of the document is missing.")
        parts = []
        try:
            with self._zip.open(entry) as file:
                while part := file.read(1 << 20):
                    self._left -= len(part)
                    if self._left < 0:
                        raise TooLarge(f"The document unpacks to more than {self._most} bytes.")
                    parts.append(part)
        except RuntimeError:
            raise Encrypted from None
        except _BROKEN:
            raise Malformed("A part of the document is damaged.") from None
        return b"".join(parts)

    def admit(self) -> None:
        """Unpack everything once: what is read by others now is known to be bounded."""
        left = self._left
        for name in self._entries:
            self.read(name)
        self._left = left

    def xml(self, name: str) -> Any:
        """The root element of a part. Raises ``Malformed``, ``TooLarge``."""
        return parse_xml(self.read(name))

    def xml_if_any(self, name: str) -> Any | None:
        return self.xml(name) if name in self._entries else None


def parse_xml(data: bytes) -> Any:
    """The root element. Raises ``Malformed``, also for a document type, and ``TooLarge``."""
    from lxml import etree

    if len(data) > _MOST_XML:
        raise TooLarge("A part of the document is too large.")
    parser = etree.XMLParser(
        resolve_entities=False,
        no_network=True,
        load_dtd=False,
        dtd_validation=False,
        huge_tree=False,
        remove_comments=True,
        remove_pis=True,
    )
    try:
        root = etree.fromstring(data, parser)
    except (etree.XMLSyntaxError, ValueError):
        raise Malformed("The document's XML is damaged.") from None
    if root.getroottree().docinfo.doctype:
        raise Malformed("The document's XML has a document type, which none may have.")
    return root


def local(element: Any) -> str:
    """The name of an element without its namespace: there are two for each in use."""
    return str(element.tag).rpartition("}")[2]


def attribute(element: Any, name: str, default: str = "") -> str:
    """An attribute by its name without namespace."""
    value = element.get(name)
    if value is not None:
        return str(value)
    for key, other in element.attrib.items():
        if key.rpartition("}")[2] == name:
            return str(other)
    return default


def descendants(element: Any, *names: str) -> Iterator[Any]:
    """Elements below with one of these names, in document order."""
    wanted = frozenset(names)
    return (found for found in element.iterdescendants() if local(found) in wanted)


def topmost(element: Any, *names: str, without: frozenset[str] = frozenset()) -> Iterator[Any]:
    """Elements below with one of these names that lie in no other of them."""
    stack = list(reversed(element))
    while stack:
        found = stack.pop()
        name = local(found)
        if name in names:
            yield found
        elif name not in without:
            stack.extend(reversed(found))


def child(element: Any, *path: str) -> Any | None:
    """The first element along ``path``."""
    for name in path:
        element = next((found for found in element if local(found) == name), None)
        if element is None:
            return None
    return element


class Relations:
    """What a part of an Office package points to inside it; what is outside is not followed."""

    def __init__(self, archive: Archive, part: str) -> None:
        folder, name = posixpath.split(part)
        root = archive.xml_if_any(posixpath.join(folder, "_rels", f"{name}.rels"))
        self._targets: dict[str, tuple[str, str]] = {}
        for relation in () if root is None else root:
            if attribute(relation, "TargetMode") == "External":
                continue
            target = unquote(attribute(relation, "Target"))
            place = posixpath.normpath(posixpath.join("/", folder, target)).lstrip("/")
            kind = attribute(relation, "Type").rpartition("/")[2]
            if place in archive:
                self._targets[attribute(relation, "Id")] = (kind, place)

    def target(self, id: str) -> str | None:
        """The part that the relation ``id`` leads to."""
        return self._targets[id][1] if id in self._targets else None

    def of_kind(self, *kinds: str) -> list[str]:
        """The parts that relations of these kinds lead to, each once."""
        return list(dict.fromkeys(part for kind, part in self._targets.values() if kind in kinds))
