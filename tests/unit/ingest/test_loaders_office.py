"""DOCX, PPTX, XLSX, XLS, OpenDocument and RTF: everything a reader may find in them is text."""

from __future__ import annotations

import base64
import zlib
from pathlib import Path

import pytest

from rag.errors import Encrypted, Malformed, TooLarge, UnsupportedFormat
from rag.ingest.limits import Limits
from rag.ingest.loaders import load
from rag.testing.office_files import (
    P,
    S,
    W,
    docx,
    odt,
    packed,
    paragraph,
    pptx,
    relations,
    shape,
    word_table,
    xlsx,
)
from rag.types import Document


def headings(document: Document) -> list[list[str]]:
    return [[document.content[s:e] for s, e in part.headings] for part in document.sections]


# -- DOCX -----------------------------------------------------------------------------


def test_word_headings_open_sections() -> None:
    """Heading styles, also inherited ones, give the path; a title stands above them."""
    body = paragraph("Lease", "T") + paragraph("Parties", "H1") + paragraph("Ilse Brandt rents.")
    body += paragraph("Keys", "H2") + paragraph("Two of them.")
    document = load("lease.docx", docx(body, title="Lease of flat 3", author="Tove Lind"))
    assert headings(document) == [["Lease"], ["Lease", "Parties"], ["Lease", "Parties", "Keys"]]
    assert document.metadata == {"title": "Lease of flat 3", "author": "Tove Lind"}


def test_word_tables_are_rows_in_their_place() -> None:
    """A table stands between the paragraphs around it, a row a line."""
    body = (
        paragraph("Before") + word_table([["Name", "Rent"], ["Ilse", "400"]]) + paragraph("After")
    )
    assert load("a.docx", docx(body)).content == "Before\n\nName | Rent\nIlse | 400\n\nAfter"


def test_nested_word_tables_are_read() -> None:
    """A table in a cell is a part of that cell."""
    inner = word_table([["inner", "words"]])
    row = f"<w:tr><w:tc>{paragraph('outer')}{inner}</w:tc><w:tc>{paragraph('right')}</w:tc></w:tr>"
    assert load("a.docx", docx(f"<w:tbl>{row}</w:tbl>")).content == "outer inner words | right"


def test_a_word_comment_follows_its_paragraph() -> None:
    """Comments are read with who wrote them, where they belong."""
    marked = paragraph("Rent is 400.").replace("</w:p>", '<w:commentReference w:id="7"/></w:p>')
    comment = f'<w:comment w:id="7" w:author="Tove Lind">{paragraph("Ask Ilse.")}</w:comment>'
    data = docx(
        marked + paragraph("End."),
        {"comments.xml": f"<w:comments {W}>{comment}</w:comments>"},
        [("comments", "comments.xml")],
    )
    assert load("a.docx", data).content == (
        "Rent is 400.\n[Comment by Tove Lind: Ask Ilse.]\n\nEnd."
    )


def test_word_headers_footers_and_notes_are_read() -> None:
    """What stands on every page, and below it, is a part of the document."""
    note = f'<w:footnote w:id="1">{paragraph("See the deed.")}</w:footnote>'
    data = docx(
        paragraph("Body."),
        {
            "h.xml": f"<w:hdr {W}>{paragraph('Head of page')}</w:hdr>",
            "f.xml": f"<w:ftr {W}>{paragraph('Foot of page')}</w:ftr>",
            "n.xml": f"<w:footnotes {W}>{note}</w:footnotes>",
        },
        [("header", "h.xml"), ("footer", "f.xml"), ("footnotes", "n.xml")],
    )
    expected = "Head of page\n\nBody.\n\nFootnotes\n\nSee the deed.\n\nFoot of page"
    assert load("a.docx", data).content == expected


def test_word_text_boxes_are_read_once() -> None:
    """A box is there twice, for new and for old readers, and may lie in another."""
    inner = f"<w:txbxContent>{paragraph('deep')}</w:txbxContent>"
    box = f"<w:txbxContent><w:p><w:r><w:t>box</w:t>{inner}</w:r></w:p></w:txbxContent>"
    both = f"<mc:Choice>{box}</mc:Choice><mc:Fallback>{box}</mc:Fallback>"
    around = f'<mc:AlternateContent xmlns:mc="urn:mc">{both}</mc:AlternateContent>'
    body = f"<w:p><w:r><w:t>anchor</w:t>{around}</w:r></w:p>"
    assert load("a.docx", docx(body)).content == "anchor\n\nbox\n\ndeep"


def test_deleted_word_text_is_not_read_and_inserted_is() -> None:
    """Tracked changes are read as if they were accepted."""
    gone = "<w:del><w:r><w:delText>old</w:delText></w:r></w:del>"
    new = "<w:ins><w:r><w:t>new</w:t></w:r></w:ins>"
    assert load("a.docx", docx(f"<w:p>{gone}{new}</w:p>")).content == "new"


def test_word_lists_stand_under_their_lead() -> None:
    """Items are lines that begin with a dash."""
    item = "<w:p><w:pPr><w:numPr/></w:pPr><w:r><w:t>{}</w:t></w:r></w:p>"
    body = paragraph("Bring:") + item.format("a key") + item.format("a pen")
    assert load("a.docx", docx(body)).content == "Bring:\n\n- a key\n- a pen"


def test_right_to_left_words_keep_their_order() -> None:
    """Text is stored as it is read, not as it is drawn."""
    assert load("a.docx", docx(paragraph("שלום עולם"))).content == "שלום עולם"


def test_an_office_file_is_known_by_its_content() -> None:
    """A wrong ending does not make another document of it."""
    assert load("a.txt", docx(paragraph("Words."))).content == "Words."
    assert load("a.xlsx", docx(paragraph("Words."))).content == "Words."


# -- PPTX -----------------------------------------------------------------------------


def test_slides_are_pages_with_titles() -> None:
    """In the order of the presentation, notes behind the slide they belong to."""
    data = pptx(
        [shape("Rent", "title") + shape("first\nsecond"), shape("Keys", "title")],
        {1: "Say that Ilse pays."},
    )
    document = load("a.pptx", data)
    assert document.content == "Rent\n\nfirst\nsecond\n\nNotes: Say that Ilse pays.\n\nKeys"
    assert [part.page for part in document.sections] == [1, 2]
    assert headings(document) == [["Rent"], ["Keys"]]


def test_groups_and_tables_on_slides_are_read() -> None:
    """However deep they lie."""
    cell = "<a:tc><a:txBody><a:p><a:r><a:t>{}</a:t></a:r></a:p></a:txBody></a:tc>"
    row = f"<a:tr>{cell.format('Name')}{cell.format('Ilse')}</a:tr>"
    table = f"<p:graphicFrame><a:graphic><a:tbl>{row}</a:tbl></a:graphic></p:graphicFrame>"
    group = f"<p:grpSp><p:grpSp>{shape('inside')}</p:grpSp></p:grpSp>"
    assert load("a.pptx", pptx([group + table])).content == "inside\n\nName | Ilse"


def test_a_comment_on_a_slide_names_its_author() -> None:
    """Authors stand in a part of their own."""
    data = pptx([shape("words")])
    authors = f'<p:cmAuthorLst {P}><p:cmAuthor id="3" name="Tove Lind"/></p:cmAuthorLst>'
    comment = f'<p:cmLst {P}><p:cm authorId="3"><p:text>Too long</p:text></p:cm></p:cmLst>'
    parts = {
        **_parts(data),
        "ppt/commentAuthors.xml": authors,
        "ppt/comments/c.xml": comment,
        "ppt/_rels/presentation.xml.rels": relations(
            ("slide", "slides/slide1.xml"), ("commentAuthors", "commentAuthors.xml")
        ),
        "ppt/slides/_rels/slide1.xml.rels": relations(("comments", "../comments/c.xml")),
    }
    assert load("a.pptx", packed(parts)).content == "words\n\n[Comment by Tove Lind: Too long]"


def _parts(data: bytes) -> dict[str, bytes]:
    import io
    import zipfile

    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


# -- sheets ---------------------------------------------------------------------------


def test_every_sheet_is_a_section_of_rows_with_their_columns() -> None:
    """A value is never without the name of its column."""
    document = load("a.xlsx", xlsx({"Rents": [["Name", "Rent"], ["Ilse", 400]], "Keys": [[1, 2]]}))
    assert document.content == "Rents\n\nName | Rent\nName: Ilse; Rent: 400\n\nKeys\n\n1 | 2"
    assert headings(document) == [["Rents"], ["Keys"]]
    assert document.metadata["sheets"] == "Rents, Keys"


def test_titles_above_a_table_are_not_its_header() -> None:
    """The first row that is wider and holds names only is."""
    rows = [["Rents of 2024"], [], ["Name", "Rent"], ["Ilse", 400]]
    expected = "S\n\nRents of 2024\n\nName | Rent\nName: Ilse; Rent: 400"
    assert load("a.xlsx", xlsx({"S": rows})).content == expected


def test_comments_of_cells_are_read() -> None:
    """With the place and who wrote them, old and threaded ones."""
    old = (
        f"<comments {S}><authors><author>Tove Lind</author></authors><commentList>"
        '<comment ref="B2" authorId="0"><text><t>Ask Ilse.</t></text></comment>'
        "</commentList></comments>"
    )
    data = xlsx({"S": [["a", "b"]]}, {"comments1.xml": old}, [("comments", "../comments1.xml")])
    assert "[Comment on B2 by Tove Lind: Ask Ilse.]" in load("a.xlsx", data).content


def test_a_table_has_no_more_rows_or_columns_than_allowed() -> None:
    """Both are counted while they are read."""
    few = Limits(rows=3, columns=3)
    with pytest.raises(TooLarge):
        load("a.xlsx", xlsx({"S": [[1]] * 4}), limits=few)
    with pytest.raises(TooLarge):
        load("a.xlsx", xlsx({"S": [[1, 2, 3, 4]]}), limits=few)


# -- OpenDocument ---------------------------------------------------------------------


def test_opendocument_text_is_read_in_order() -> None:
    """Headings, blanks, spans, lists, tables, comments and notes."""
    body = (
        '<text:h text:outline-level="1">Parties</text:h>'
        "<text:p>Ilse<text:s/>Brandt <text:span>rents</text:span> it"
        "<office:annotation><dc:creator>Tove</dc:creator><text:p>sure?</text:p>"
        "</office:annotation><text:note><text:note-body><text:p>deed 7</text:p>"
        "</text:note-body></text:note>.</text:p>"
        "<text:list><text:list-item><text:p>a key</text:p></text:list-item></text:list>"
        "<table:table><table:table-row><table:table-cell><text:p>a</text:p></table:table-cell>"
        "<table:table-cell><text:p>b</text:p></table:table-cell></table:table-row></table:table>"
    )
    document = load("a.odt", odt(body))
    assert document.content == (
        "Parties\n\nIlse Brandt rents it.\n[Comment by Tove: sure?]\n- a key\n\na | b"
        "\n\nFootnotes\n\ndeed 7"
    )
    assert headings(document) == [["Parties"], ["Footnotes"]]


def test_opendocument_headers_and_sheets_are_read() -> None:
    """A repeated empty cell is no reason to write a million of them."""
    styles = (
        "<style:master-page><style:header><text:p>Head</text:p></style:header></style:master-page>"
    )
    assert load("a.odt", odt("<text:p>Body</text:p>", styles=styles)).content == "Head\n\nBody"
    cell = "<table:table-cell><text:p>{}</text:p></table:table-cell>"
    empty = '<table:table-cell table:number-columns-repeated="16384"/>'
    row = f"<table:table-row>{cell.format('Ilse')}{cell.format('400')}{empty}</table:table-row>"
    table = f'<table:table table:name="Rents">{row}</table:table>'
    assert load("a.ods", odt(table, "spreadsheet")).content == "Rents\n\nIlse | 400"


def test_nested_frames_are_read_once() -> None:
    """A frame in a frame in a frame is no reason to read the inner ones again and again."""
    deep = 30
    opened = "<text:p>x<draw:frame><draw:text-box>" * deep
    closed = "</draw:text-box></draw:frame></text:p>" * deep
    assert load("a.odt", odt(opened + closed)).content.count("x") == deep


def test_an_encrypted_opendocument_is_called_encrypted() -> None:
    """Its manifest says so."""
    manifest = (
        '<m:manifest xmlns:m="urn:m"><m:file-entry><m:encryption-data/></m:file-entry></m:manifest>'
    )
    data = packed({**_parts(odt("")), "META-INF/manifest.xml": manifest})
    with pytest.raises(Encrypted):
        load("a.odt", data)


def test_slides_of_opendocument_are_pages() -> None:
    """With what is said about them."""
    box = "<draw:frame><draw:text-box><text:p>{}</text:p></draw:text-box></draw:frame>"
    page = f"<draw:page>{box}{{}}</draw:page>"
    notes = "<presentation:notes><text:p>Wait.</text:p></presentation:notes>"
    document = load(
        "a.odp", odt(page.format("One", notes) + page.format("Two", ""), "presentation")
    )
    assert document.content == "One\n\nNotes: Wait.\n\nTwo"
    assert [part.page for part in document.sections] == [1, 2]


# -- RTF ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rtf", "text"),
    [
        (rb"{\rtf1\ansi M\'fcller}", "Müller"),
        (rb"{\rtf1\ansi\ansicpg1251 \'cf\'f0\'e8}", "При"),
        (rb"{\rtf1{\fonttbl{\f0\fcharset0 A;}{\f1\fcharset204 B;}}\f1 \'cf\'f0\'e8\f0 \'e9}",
         "Приé"),
        (rb"{\rtf1\uc1 \u8222 ?so\u8220 \'22}", "„so“"),
        (rb"{\rtf1 \u55357 ?\u56832 ?}", "😀"),
        (rb"{\rtf1 a\par b\line c\tab d}", "a\n\nb\nc d"),
        (rb"{\rtf1\trowd a\intbl\cell b\cell\row\trowd c\intbl\cell d\cell\row\pard e\par}",
         "a | b\nc | d\n\ne"),
        (rb"{\rtf1{\pict 0102}{\*\unknown gone}{\object{\objdata 00}}kept}", "kept"),
        (rb"{\rtf1 a{\*\atnid T}{\*\atnauthor Tove}{\*\annotation why}}",
         "a [Comment by Tove: why]"),
        (rb"{\rtf1{\header Head}body{\footnote note}\par}", "body\n\nFootnotes\n\nnote\n\nHead"),
        (rb"{\rtf1{\field{\*\fldinst HYPERLINK \"x\"}{\fldrslt shown}}}", "shown"),
        (b"{\\rtf1 a{\\bin3 {{{}b}", "ab"),
    ],
)  # fmt: skip
def test_rtf_is_read(rtf: bytes, text: str) -> None:
    """Encodings, tables, notes, comments and fields; what is no text is left out."""
    assert load("a.rtf", rtf).content == text


def test_rtf_says_who_wrote_it() -> None:
    """Its info group is metadata and no text."""
    document = load("a.rtf", rb"{\rtf1{\info{\title Lease}{\author Tove Lind}}words}")
    assert (document.content, document.metadata) == (
        "words",
        {"title": "Lease", "author": "Tove Lind"},
    )


# -- refusals -------------------------------------------------------------------------


def test_another_zip_is_unsupported() -> None:
    """An archive is no document, whatever it holds or is called."""
    for name in ("a.zip", "a.docx"):
        with pytest.raises(UnsupportedFormat):
            load(name, packed({"inside.docx": docx(paragraph("words"))}))


@pytest.mark.parametrize("part", ["word/document.xml", "[Content_Types].xml"])
@pytest.mark.parametrize(
    "entity",
    [
        '<!DOCTYPE a [<!ENTITY e SYSTEM "file:///etc/hostname">]>',
        '<!DOCTYPE a SYSTEM "http://127.0.0.1:9/a.dtd">',
        '<!DOCTYPE a [<!ENTITY e "words">]>',
    ],
)
def test_xml_with_a_document_type_is_malformed(part: str, entity: str) -> None:
    """None may have one, and nothing that it names is opened."""
    parts = _parts(docx(paragraph("words")))
    spoiled = {**parts, part: entity.encode() + parts[part]}
    with pytest.raises(Malformed):
        load("a.docx", packed(spoiled))


def test_what_unpacks_to_too_much_is_too_large() -> None:
    """Counted while it is unpacked, not believed."""
    data = docx(paragraph("a" * 200_000))
    with pytest.raises(TooLarge):
        load("a.docx", data, limits=Limits(expanded=100_000))
    with pytest.raises(TooLarge):
        load("a.docx", data, limits=Limits(entries=3))


def test_an_outside_target_is_never_opened() -> None:
    """A relation that leads out of the package is no part of it."""
    outside = relations(("header", "http://127.0.0.1:9/h.xml"), ("footer", "../../../etc/hostname"))
    outside = outside.replace('Id="r1"', 'Id="r1" TargetMode="External"')
    parts = {**_parts(docx(paragraph("words"))), "word/_rels/document.xml.rels": outside}
    assert load("a.docx", packed(parts)).content == "words"


XLS = (
    "c-rk)J!lj`6#iy&m-{hy*^3t;5yBBPnwUmxY?6%!8Z10w8bt)%cw0y=o3Ob?3ysDr1;I+O38b-!+W3PO+NBU8S_p"
    "!0r=^vkV3FMV=H0AZeu^AuNMycazIprJo0)ezZ)SJ)-BPMN_oTCeH5fz_s(uX3bvi*M7F?JhyYEXesH0STjU9zpl"
    "qRw{jF*YG5jlr)zAG^BIP``X_(J78rjVO-oy-;@%Q4tO#xOuE@PIT)bZ}H{%$JyVGe2U_SIk4Kxy?L4zGZO^OIEJ"
    "$sLJBAMmO7%ko`X6HlJ8?80}b;S$zGDsQHF*%)4wCwx^*h)Pi}?ybU|9<JpBW(lmkd_~~bWAHhm}ozeQO)eDgR*J"
    "^!a1N~hi1kAv{$O&FT0*g)362_?G7N?i75As?Ta?IHi4pq{$3piPrb~0JdcJsx!+?RPBo2%Awg7dqDIFDAAQ=H`{"
    "?bOQ;zrQ~<Hey|1%?$6|wH<!H3<^GO$QIN%$rj@e_c0%0zRA7rWx10%O~F&$Gt#bv6SM4di>*C0&Jo53>p-1+kmS"
    "<0)6cs~U#(t}7ltcW(+eN1Idsz#Cr|C=Zx;QcU);YZ@xlsfp>~7M%pL1?hNxkx*nRaFYsCuUET))iSMu%%<u5ky7"
    "wj*4yk^8Xo)ofln+J_HJmuRnRQIfmLqkJDLqkJDLqlWxL8!NSb;h8V_S)GYqQ2{_P^s$AB>yc&F-gB79ZZkIrP{-"
    "lhVo|*!XoHPY_d)8y-?x|jqYI_V;skL!}&{RKT-dGHr>$tdrPR%@vDu*`H#o{4S>+X@c"
)


def test_an_old_workbook_is_read() -> None:
    """XLS, by the same reader as XLSX."""
    document = load("rents.xls", zlib.decompress(base64.b85decode(XLS)))
    assert document.content == "Rents\n\nName | Rent\nName: Ilse Brandt; Rent: 400"


@pytest.mark.bench_data
@pytest.mark.parametrize("name", ["example_password.docx", "ecma376standard_password.docx"])
def test_a_password_opens_an_encrypted_file(bench_data: Path, name: str) -> None:
    """The right one; without it, or with another, the file is refused as encrypted."""
    path = bench_data / "docs" / "files" / f"msoffcrypto__{name}"
    assert load(name, path.read_bytes(), password="Password1234_").content.lower() == "lorem ipsum"
    for wrong in (None, "", "password"):
        with pytest.raises(Encrypted):
            load(name, path.read_bytes(), password=wrong)
