"""The smallest document of each format, made in memory around one line of text."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Mapping
from xml.sax.saxutils import escape

_W = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
_PACKAGE = "http://schemas.openxmlformats.org/package/2006"
_OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006"
_ODF = "urn:oasis:names:tc:opendocument:xmlns"


def samples(line: str) -> Mapping[str, bytes]:
    """File ending -> a document that holds ``line`` (plain ASCII, no brackets)."""
    return {
        "txt": line.encode(),
        "md": f"# Note\n\n{line}\n".encode(),
        "html": f"<!doctype html><title>Note</title><p>{escape(line)}</p>".encode(),
        "csv": f'n,note\n1,"{line}"\n'.encode(),
        "json": json.dumps({"note": line}).encode(),
        "jsonl": (json.dumps({"note": line}) + "\n").encode(),
        "eml": f"From: a@mill.example\r\nSubject: Note\r\n\r\n{line}\r\n".encode(),
        "rtf": f"{{\\rtf1\\ansi {line}}}".encode(),
        "pdf": _pdf(line),
        "docx": _docx(line),
        "odt": _odt(line),
    }


def _pdf(line: str) -> bytes:
    text = f"BT /F1 12 Tf 20 100 Td ({line}) Tj ET".encode()
    objects = (
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 700 200] /Contents 4 0 R"
        b" /Resources << /Font << /F1 5 0 R >> >> >>",
        b"<< /Length %d >>\nstream\n%s\nendstream" % (len(text), text),
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
    )
    out = bytearray(b"%PDF-1.4\n")
    places = []
    for number, body in enumerate(objects, start=1):
        places.append(len(out))
        out += b"%d 0 obj\n%s\nendobj\n" % (number, body)
    start = len(out)
    out += b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1)
    out += b"".join(b"%010d 00000 n \n" % place for place in places)
    out += b"trailer << /Size %d /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF\n" % (
        len(objects) + 1,
        start,
    )
    return bytes(out)


def _docx(line: str) -> bytes:
    main = "application/vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml"
    relations = "application/vnd.openxmlformats-package.relationships+xml"
    return _zip(
        {
            "[Content_Types].xml": f'<Types xmlns="{_PACKAGE}/content-types">'
            f'<Default Extension="rels" ContentType="{relations}"/>'
            f'<Override PartName="/word/document.xml" ContentType="{main}"/></Types>',
            "_rels/.rels": f'<Relationships xmlns="{_PACKAGE}/relationships">'
            f'<Relationship Id="r1" Type="{_OFFICE}/relationships/officeDocument"'
            ' Target="word/document.xml"/></Relationships>',
            "word/document.xml": f'<w:document xmlns:w="{_W}"><w:body><w:p><w:r>'
            f"<w:t>{escape(line)}</w:t></w:r></w:p></w:body></w:document>",
        }
    )


def _odt(line: str) -> bytes:
    kind = "application/vnd.oasis.opendocument.text"
    return _zip(
        {
            "mimetype": kind,
            "META-INF/manifest.xml": f'<m:manifest xmlns:m="{_ODF}:manifest:1.0">'
            f'<m:file-entry m:full-path="/" m:media-type="{kind}"/>'
            '<m:file-entry m:full-path="content.xml" m:media-type="text/xml"/></m:manifest>',
            "content.xml": f'<o:document-content xmlns:o="{_ODF}:office:1.0"'
            f' xmlns:t="{_ODF}:text:1.0"><o:body><o:text><t:p>{escape(line)}</t:p></o:text>'
            "</o:body></o:document-content>",
        }
    )


def _zip(entries: Mapping[str, str]) -> bytes:
    """Stored in this order: the type of an OpenDocument file comes first, uncompressed."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_STORED) as archive:
        for name, text in entries.items():
            xml = "" if name == "mimetype" else '<?xml version="1.0" encoding="UTF-8"?>\n'
            archive.writestr(name, xml + text)
    return out.getvalue()
