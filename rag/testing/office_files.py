"""Small files of the office formats, made from words: DOCX, PPTX, XLSX, ODT, compound files, MSG.

What no library writes by itself (comments, notes, text boxes, hostile parts) is given as XML.
"""

from __future__ import annotations

import io
import struct
import zipfile
from collections.abc import Mapping, Sequence
from itertools import pairwise
from xml.sax.saxutils import escape

_TYPES = "http://schemas.openxmlformats.org/package/2006/content-types"
_RELATIONS = "http://schemas.openxmlformats.org/package/2006/relationships"
_OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
W = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
P = (
    'xmlns:p="http://schemas.openxmlformats.org/presentationml/2006/main" '
    'xmlns:a="http://schemas.openxmlformats.org/drawingml/2006/main" '
    f'xmlns:r="{_OFFICE}"'
)
S = f'xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main" xmlns:r="{_OFFICE}"'
_ODF = "urn:oasis:names:tc:opendocument:xmlns"
ODF = (
    f'xmlns:office="{_ODF}:office:1.0" xmlns:text="{_ODF}:text:1.0" '
    f'xmlns:table="{_ODF}:table:1.0" xmlns:style="{_ODF}:style:1.0" '
    f'xmlns:draw="{_ODF}:drawing:1.0" xmlns:presentation="{_ODF}:presentation:1.0" '
    'xmlns:dc="http://purl.org/dc/elements/1.1/"'
)
_CORE = (
    '<cp:coreProperties xmlns:cp="http://schemas.openxmlformats.org/package/2006/metadata/'
    'core-properties" xmlns:dc="http://purl.org/dc/elements/1.1/">'
    "<dc:title>{title}</dc:title><dc:creator>{author}</dc:creator></cp:coreProperties>"
)


def packed(parts: Mapping[str, str | bytes]) -> bytes:
    """A zip of ``parts``."""
    written = io.BytesIO()
    with zipfile.ZipFile(written, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in parts.items():
            archive.writestr(name, content)
    return written.getvalue()


def relations(*targets: tuple[str, str]) -> str:
    """A part of relations ``(kind, target)``, numbered ``r1``, ``r2`` ..."""
    lines = "".join(
        f'<Relationship Id="r{n}" Type="{_OFFICE}/{kind}" Target="{target}"/>'
        for n, (kind, target) in enumerate(targets, 1)
    )
    return f'<Relationships xmlns="{_RELATIONS}">{lines}</Relationships>'


def _package(main: str, kind: str, parts: Mapping[str, str | bytes]) -> bytes:
    types = (
        f'<Types xmlns="{_TYPES}"><Override PartName="/{main}" ContentType="application/'
        f'vnd.openxmlformats-officedocument.{kind}.main+xml"/></Types>'
    )
    top = {"[Content_Types].xml": types, "_rels/.rels": relations(("officeDocument", main))}
    return packed({**top, **parts})


def paragraph(text: str, style: str = "") -> str:
    """A paragraph of WordprocessingML."""
    look = f'<w:pPr><w:pStyle w:val="{style}"/></w:pPr>' if style else ""
    return f'<w:p>{look}<w:r><w:t xml:space="preserve">{escape(text)}</w:t></w:r></w:p>'


def word_table(rows: Sequence[Sequence[str]]) -> str:
    lines = "".join(
        f"<w:tr>{''.join(f'<w:tc>{paragraph(cell)}</w:tc>' for cell in row)}</w:tr>" for row in rows
    )
    return f"<w:tbl>{lines}</w:tbl>"


def docx(
    body: str,
    parts: Mapping[str, str | bytes] | None = None,
    links: Sequence[tuple[str, str]] = (),
    title: str = "",
    author: str = "",
) -> bytes:
    """A DOCX with this body; ``parts`` stand below ``word/`` and ``links`` lead to them."""
    styles = "".join(
        f'<w:style w:styleId="{name}"><w:name w:val="{shown}"/></w:style>'
        for name, shown in (("H1", "heading 1"), ("H2", "heading 2"), ("T", "Title"))
    )
    return _package(
        "word/document.xml",
        "wordprocessingml.document",
        {
            "word/document.xml": f"<w:document {W}><w:body>{body}</w:body></w:document>",
            "word/styles.xml": f"<w:styles {W}>{styles}</w:styles>",
            "word/_rels/document.xml.rels": relations(("styles", "styles.xml"), *links),
            "docProps/core.xml": _CORE.format(title=escape(title), author=escape(author)),
            **{f"word/{name}": content for name, content in (parts or {}).items()},
        },
    )


def shape(text: str, role: str = "body") -> str:
    """A text placeholder of a slide."""
    lines = "".join(f"<a:p><a:r><a:t>{escape(t)}</a:t></a:r></a:p>" for t in text.split("\n"))
    return (
        f'<p:sp><p:nvSpPr><p:nvPr><p:ph type="{role}"/></p:nvPr></p:nvSpPr>'
        f"<p:txBody>{lines}</p:txBody></p:sp>"
    )


def pptx(slides: Sequence[str], notes: Mapping[int, str] | None = None) -> bytes:
    """A PPTX of slides given by their shapes; ``notes`` by the number of the slide from 1."""
    parts: dict[str, str] = {}
    listed = "".join(f'<p:sldId id="{n + 255}" r:id="r{n}"/>' for n in range(1, len(slides) + 1))
    parts["ppt/presentation.xml"] = (
        f"<p:presentation {P}><p:sldIdLst>{listed}</p:sldIdLst></p:presentation>"
    )
    targets = [("slide", f"slides/slide{n}.xml") for n in range(1, len(slides) + 1)]
    parts["ppt/_rels/presentation.xml.rels"] = relations(*targets)
    for n, shapes in enumerate(slides, 1):
        tree = f"<p:cSld><p:spTree>{shapes}</p:spTree></p:cSld>"
        parts[f"ppt/slides/slide{n}.xml"] = f"<p:sld {P}>{tree}</p:sld>"
        if words := (notes or {}).get(n):
            place = f"../notesSlides/notes{n}.xml"
            parts[f"ppt/slides/_rels/slide{n}.xml.rels"] = relations(("notesSlide", place))
            tree = f"<p:cSld><p:spTree>{shape(words)}</p:spTree></p:cSld>"
            parts[f"ppt/notesSlides/notes{n}.xml"] = f"<p:notes {P}>{tree}</p:notes>"
    return _package("ppt/presentation.xml", "presentationml.presentation", parts)


def _cell(value: object, column: int, row: int) -> str:
    place = f'r="{chr(65 + column)}{row}"'
    if isinstance(value, int | float):
        return f"<c {place}><v>{value}</v></c>"
    return f'<c {place} t="inlineStr"><is><t>{escape(str(value))}</t></is></c>' if value else ""


def xlsx(
    sheets: Mapping[str, Sequence[Sequence[object]]],
    parts: Mapping[str, str | bytes] | None = None,
    links: Sequence[tuple[str, str]] = (),
) -> bytes:
    """An XLSX of rows; ``links`` are those of the first sheet to ``parts`` below ``xl/``."""
    listed, targets, written = "", [], {}
    for n, (name, rows) in enumerate(sheets.items(), 1):
        listed += f'<sheet name="{escape(name)}" sheetId="{n}" r:id="r{n}"/>'
        targets.append(("worksheet", f"worksheets/sheet{n}.xml"))
        lines = "".join(
            f'<row r="{r}">{"".join(_cell(value, c, r) for c, value in enumerate(row))}</row>'
            for r, row in enumerate(rows, 1)
        )
        written[f"xl/worksheets/sheet{n}.xml"] = (
            f"<worksheet {S}><sheetData>{lines}</sheetData></worksheet>"
        )
    return _package(
        "xl/workbook.xml",
        "spreadsheetml.sheet",
        {
            "xl/workbook.xml": f"<workbook {S}><sheets>{listed}</sheets></workbook>",
            "xl/_rels/workbook.xml.rels": relations(*targets),
            "xl/worksheets/_rels/sheet1.xml.rels": relations(*links),
            **written,
            **{f"xl/{name}": content for name, content in (parts or {}).items()},
        },
    )


def odt(body: str, kind: str = "text", styles: str = "", meta: str = "") -> bytes:
    """An OpenDocument with this body: ``kind`` is text, spreadsheet or presentation."""
    inner = f"<office:body><office:{kind}>{body}</office:{kind}></office:body>"
    return packed(
        {
            "mimetype": f"application/vnd.oasis.opendocument.{kind}",
            "content.xml": f"<office:document-content {ODF}>{inner}</office:document-content>",
            "styles.xml": f"<office:document-styles {ODF}>{styles}</office:document-styles>",
            "meta.xml": f"<office:document-meta {ODF}>{meta}</office:document-meta>",
        }
    )


_SECTOR, _MINI, _CUTOFF = 512, 64, 4096
_FREE, _END, _FAT = 0xFFFFFFFF, 0xFFFFFFFE, 0xFFFFFFFD


def compound(streams: Mapping[str, bytes]) -> bytes:
    """A compound file (MS-CFB, version 3) of streams by their paths ``folder/name``."""
    tree = _Tree(streams)
    return tree.written()


class _Tree:
    def __init__(self, streams: Mapping[str, bytes]) -> None:
        self._names, self._kinds, self._data = ["Root Entry"], [5], [b""]
        self._children: dict[int, list[int]] = {0: []}
        for path, data in streams.items():
            *folders, name = path.split("/")
            above = 0
            for folder in folders:
                above = self._folder(above, folder)
            self._add(above, name, 2, data)

    def _folder(self, above: int, name: str) -> int:
        for n in self._children[above]:
            if self._names[n] == name and self._kinds[n] == 1:
                return n
        return self._add(above, name, 1, b"")

    def _add(self, above: int, name: str, kind: int, data: bytes) -> int:
        number = len(self._names)
        self._names.append(name)
        self._kinds.append(kind)
        self._data.append(data)
        self._children[above].append(number)
        self._children[number] = []
        return number

    def written(self) -> bytes:
        sectors: list[bytes] = []
        fat: list[int] = []
        mini = bytearray()
        minifat: list[int] = []
        starts = []
        for data in self._data:
            if 0 < len(data) < _CUTOFF:
                count = -(-len(data) // _MINI)
                starts.append(len(minifat))
                minifat += [*range(len(minifat) + 1, len(minifat) + count), _END]
                mini += data.ljust(count * _MINI, b"\0")
            else:
                starts.append(_chained(data, sectors, fat))
        starts[0] = _chained(bytes(mini), sectors, fat)
        table = b"".join(struct.pack("<I", n) for n in minifat)
        minifat_start = _chained(table, sectors, fat, fill=b"\xff")
        directory = _chained(self._directory(starts, len(mini)), sectors, fat)
        fat_sectors = 1
        while (len(fat) + fat_sectors) * 4 > fat_sectors * _SECTOR:
            fat_sectors += 1
        first = len(sectors)
        fat += [_FAT] * fat_sectors
        packed_fat = b"".join(struct.pack("<I", n) for n in fat).ljust(
            fat_sectors * _SECTOR, b"\xff"
        )
        head = struct.pack(
            "<8s16xHHHHH6xIIIIIIIII",
            b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1",
            *(0x3E, 3, 0xFFFE, 9, 6, 0, fat_sectors, directory, 0, _CUTOFF, minifat_start),
            *(-(-len(table) // _SECTOR), _END, 0),
        )
        places = [*range(first, first + fat_sectors), *[_FREE] * (109 - fat_sectors)]
        head += b"".join(struct.pack("<I", n) for n in places)
        return head + b"".join(sectors) + packed_fat

    def _directory(self, starts: Sequence[int], root_size: int) -> bytes:
        written = b""
        right = {a: b for row in self._children.values() for a, b in pairwise(row)}
        for n, name in enumerate(self._names):
            label = name.encode("utf-16-le") + b"\0\0"
            below = self._children.get(n, [])
            size = root_size if n == 0 else len(self._data[n])
            written += struct.pack(
                "<64sHBBIII16x4x8x8xIQ",
                label,
                *(len(label), self._kinds[n], 1, _FREE, right.get(n, _FREE)),
                below[0] if below else _FREE,
                *(starts[n] if size else _END if n == 0 else 0, size),
            )
        return written


def _chained(data: bytes, sectors: list[bytes], fat: list[int], fill: bytes = b"\0") -> int:
    """Add ``data`` as a chain of sectors; gives the first."""
    if not data:
        return _END
    start = len(sectors)
    count = -(-len(data) // _SECTOR)
    padded = data.ljust(count * _SECTOR, fill)
    sectors += [padded[n * _SECTOR : (n + 1) * _SECTOR] for n in range(count)]
    fat += [*range(start + 1, start + count), _END]
    return start


def msg_streams(
    fields: Mapping[str, str | bytes],
    attachments: Sequence[tuple[str, bytes | Mapping[str, bytes]]] = (),
    embedded: bool = False,
) -> dict[str, bytes]:
    """Streams of an Outlook mail: properties by number, ``{"0037": subject, "1000": text}``.

    An attachment is a name with bytes, or with the streams of another mail.
    """
    streams = {"__properties_version1.0": bytes(24 if embedded else 32)}
    for number, value in fields.items():
        data = value.encode("utf-16-le") if isinstance(value, str) else value
        kind = "001F" if isinstance(value, str) else "0102"
        streams[f"__substg1.0_{number}{kind}"] = data
    for n, (name, content) in enumerate(attachments):
        folder = f"__attach_version1.0_#{n:08X}"
        streams[f"{folder}/__properties_version1.0"] = bytes(8)
        streams[f"{folder}/__substg1.0_3707001F"] = name.encode("utf-16-le")
        if isinstance(content, bytes):
            streams[f"{folder}/__substg1.0_37010102"] = content
        else:
            for path, data in content.items():
                streams[f"{folder}/__substg1.0_3701000D/{path}"] = data
    return streams
