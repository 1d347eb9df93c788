"""Each format gives its text, headings, pages and metadata, or a typed refusal."""

from __future__ import annotations

import contextlib
import time
import traceback
from pathlib import Path

import pytest

from rag.errors import (
    EmptyDocument,
    Encrypted,
    InvalidInput,
    Malformed,
    NoTextLayer,
    TooLarge,
    UnsupportedFormat,
    VeilragError,
)
from rag.ingest.limits import Limits
from rag.ingest.loaders import load, prepare
from rag.samples import papers
from rag.types import Document

SMALL = Limits(bytes=100_000, characters=5_000, rows=50, columns=10, pages=1, depth=20)


def headings(document: Document) -> list[list[str]]:
    """The heading path of every section, as words."""
    return [[document.content[s:e] for s, e in part.headings] for part in document.sections]


def pdf(name: str = "tenancy-agreement.pdf") -> bytes:
    return papers().joinpath(name).read_bytes()


# -- every format ---------------------------------------------------------------------


@pytest.mark.parametrize(
    "name", ["a.txt", "a.md", "a.html", "a.csv", "a.json", "a.jsonl", "a.pdf", "a"]
)
@pytest.mark.parametrize("data", [b"", b" \r\n\t ", b"\xef\xbb\xbf"])
def test_nothing_is_an_empty_document(name: str, data: bytes) -> None:
    """Files of nothing, or of white space, are refused as empty, or as malformed."""
    with pytest.raises((EmptyDocument, Malformed)):
        load(name, data)


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("a.html", b"<p> &nbsp; <script>let x = 1</script>"),
        ("a.json", b'{"a": null, "b": [], "c": ""}'),
        ("a.csv", b",,,\n,,,\n"),
        ("a.txt", b"\x00\x00\x00"),
        ("a.md", "\u200b\u00ad\n".encode()),
    ],
)
def test_no_visible_character_is_an_empty_document(name: str, data: bytes) -> None:
    """A document with nothing that a reader sees is refused as empty."""
    with pytest.raises(EmptyDocument):
        load(name, data)


def test_the_source_is_the_name_that_was_given() -> None:
    """A name is data: it is neither opened nor shortened."""
    assert load("../../etc/passwd.txt", b"hello").source == "../../etc/passwd.txt"


@pytest.mark.parametrize("name", ["", "  ", "\n"])
def test_a_document_needs_a_name(name: str) -> None:
    """Identity is collection and source, so there has to be one."""
    with pytest.raises(InvalidInput):
        load(name, b"hello")


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("a.txt", b"one\r\ntwo\rthree\nfour"),
        ("a.md", b"\xef\xbb\xbfone\r\ntwo\rthree\nfour"),
    ],
)
def test_newlines_are_one_kind(name: str, data: bytes) -> None:
    """Lines end with a line feed alone, and the byte order mark is no part of the text."""
    assert load(name, data).content == "one\ntwo\nthree\nfour"


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("a.txt", b"valve\x00box"),
        ("a.md", b"valve\x00box"),
        ("a.html", b"<p>valve&#xD800;box"),
        ("a.json", b'"valve\\ud800box"'),
        ("a.json", b'"valve\\u0000box"'),
        ("a.csv", b"valve\x00box\n"),
    ],
)
def test_what_cannot_be_stored_is_replaced_one_for_one(name: str, data: bytes) -> None:
    """NUL and lone surrogates become U+FFFD, so offsets stay as they are."""
    assert load(name, data).content.strip() == "valve\ufffdbox"


def test_metadata_is_flat_and_storable() -> None:
    """Nested metadata is dotted, lists are joined, what cannot be stored is replaced."""
    given = {"a": {"b": "x\x00y", "n": None}, "tags": ["r", "s"], "n": 3, "inf": float("inf")}
    assert prepare(Document("n.txt", "text", given)).metadata == {
        "a.b": "x\ufffdy",
        "tags": "r, s",
        "n": 3,
        "inf": "inf",
    }


def test_metadata_is_bounded() -> None:
    """A document that brings thousands of fields is refused."""
    with pytest.raises(TooLarge):
        prepare(Document("n.txt", "text", {str(n): n for n in range(1_000)}))


# -- which format ---------------------------------------------------------------------


def test_content_decides_before_the_name() -> None:
    """A PDF called .txt is read as the PDF it is; a page called .txt as a page."""
    assert load("a.txt", pdf()).sections[0].page == 1
    assert load("a.txt", b"<!doctype html><title>t</title><p>seen<script>not</script>").content == (
        "seen"
    )


def test_a_false_pdf_is_malformed() -> None:
    """The name promises a PDF and the content is none."""
    with pytest.raises(Malformed):
        load("a.pdf", b"just text")


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("a.gif", b"GIF89a......."),
        ("a.webp", b"RIFF\x00\x00\x00\x00WEBPVP8 "),
        ("a.xyz", b"plain words"),
        ("a.exe", b"MZ\x90\x00rest"),
        ("noname", b"\x1f\x8b\x08rest"),
    ],
)
def test_other_formats_are_refused_not_guessed(name: str, data: bytes) -> None:
    """What cannot be read rightly is not read at all."""
    with pytest.raises(UnsupportedFormat):
        load(name, data)


def test_the_media_type_helps_where_the_name_does_not() -> None:
    """An upload without an ending is read as what its sender says."""
    assert load("upload", b'{"a": 1}', "application/json; charset=utf-8").content == "a: 1\n"
    assert load("notes", b"plain words").content == "plain words"


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("a.docx", b"PK\x03\x04rest"),
        ("a.txt", b"PK\x03\x04rest"),
        ("a.docx", b"plain words"),
        ("a.png", b"plain words"),
        ("a.xlsx", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600)),
        ("a.msg", b"plain words"),
        ("a.rtf", b"plain words"),
        ("a.eml", b"no head at all, only words"),
    ],
)
def test_a_name_without_its_content_is_malformed(name: str, data: bytes) -> None:
    """A name promises a format, or a head begins one, and the rest is not there."""
    with pytest.raises(Malformed):
        load(name, data)


# -- Markdown -------------------------------------------------------------------------

MARKDOWN = """---
title: Notes on pumps
author: "Ottoline Farouk"
---
intro

# One ##

text

Two
words
-----

```
# no heading
```

### Deep

> # quoted
"""


def test_markdown_stays_its_own_text() -> None:
    """What is stored is what was written: offsets are those of the file."""
    assert load("a.md", MARKDOWN.encode()).content == MARKDOWN


def test_markdown_headings_are_paths_of_offsets() -> None:
    """Both kinds of heading are found, those in code and quotations are none."""
    assert headings(load("a.md", MARKDOWN.encode())) == [
        [],
        ["One"],
        ["One", "Two\nwords"],
        ["One", "Two\nwords", "Deep"],
    ]


def test_front_matter_is_metadata() -> None:
    """Its plain fields are known, and it makes no heading."""
    assert load("a.md", MARKDOWN.encode()).metadata == {
        "title": "Notes on pumps",
        "author": "Ottoline Farouk",
    }


def test_markdown_that_came_as_text_has_its_headings() -> None:
    """Text sent under a Markdown name is cut along its headings too."""
    assert headings(prepare(Document("a.md", "# H\n\ntext"))) == [["H"]]


# -- HTML -----------------------------------------------------------------------------

PAGE = """<html lang="fr-CH"><head><title>A  page</title><meta name=author content="R. Osei">
<style>p {}</style></head><body><nav hidden>menu</nav>
<h1>Top <em>words</em></h1><p>One&nbsp;two<br>three <a href="https://example.org/x">link</a>.</p>
<script>var secret = 1</script><!-- remark --><div style="display: none">unseen</div>
<h2>Team</h2><table><tr><th>Name<th>Room<th></tr><tr><td>Ife <b>Lund</b><td>4<td></table>
<ul><li>first<li>second</ul><pre>a
  b</pre><input value="typed"><input type=password value=pass><input type=hidden value=h>
<p>Ols&shy;hau&#8203;sen</p></body></html>"""


def test_html_gives_what_a_reader_sees() -> None:
    """Scripts, styles, remarks and hidden parts are left out; rows and lists are lines."""
    assert load("a.html", PAGE.encode()).content == (
        "Top words\n\nOne two\nthree link.\n\nTeam\n\nName | Room\nIfe Lund | 4\n\n"
        "- first\n- second\n\na\n  b\n\ntyped\n\nOlshausen"
    )


def test_html_headings_title_author_and_language_are_kept() -> None:
    """Headings are offsets; what the page says of itself is metadata."""
    document = load("a.html", PAGE.encode())
    assert headings(document) == [["Top words"], ["Top words", "Team"]]
    assert document.metadata == {"title": "A page", "author": "R. Osei"}
    assert document.language == "fr"


@pytest.mark.parametrize(
    "meta", ['<meta charset="koi8-r">', "<meta http-equiv=x content='text/html; charset=koi8-r'>"]
)
def test_the_charset_of_a_page_is_respected(meta: str) -> None:
    """Bytes that would be possible otherwise are read as the page says."""
    page = f"<html><head>{meta}</head><p>Лев".encode("koi8_r")
    assert load("a.html", page).content == "Лев"


@pytest.mark.parametrize(
    "page",
    [
        "<div>" * 30_000,
        "".join(f"<p><b id={n}>" for n in range(30_000)),
        "<a " + " ".join(f"a{n}=1" for n in range(30_000)) + ">x",
        "<div title='</div>'>" * 30_000,
        '<div title="<script>">' * 30_000,
    ],
)
def test_pages_that_would_take_hours_to_parse_are_refused(page: str) -> None:
    """Nesting and attributes are counted before a tree is built."""
    with pytest.raises(TooLarge):
        load("a.html", page.encode())


def test_a_layout_of_tables_keeps_its_blocks() -> None:
    """A table that holds others, or headings, is no table of data."""
    page = "<table><tr><td><h2>Left</h2><p>one</p><td><table><tr><td>a<td>b</table></table>"
    assert load("a.html", page.encode()).content == "Left\n\none\n\na | b"


@pytest.mark.parametrize(
    "page",
    [
        "<table><tr><td>" * 150 + "<b>x</b>" * 40_000,
        "<!--a-->" * 100_000 + "x",
        "<a b='" * 100_000,
        "<p>x" * 100_000,
    ],
)
def test_odd_pages_are_read_in_time(page: str) -> None:
    """No page makes reading quadratic: a megabyte takes seconds."""
    began = time.monotonic()
    with contextlib.suppress(EmptyDocument):
        load("a.html", page.encode())
    assert time.monotonic() - began < 10


MARK = "Zenobia Qvist"


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("a.json", f'{{"{MARK}": '),
        ("a.json", f'["{MARK}"' + "[" * 100_000),
        ("a.jsonl", f"{MARK}\n{MARK}"),
        ("a.pdf", f"%PDF-1.4 {MARK}"),
        (f"{MARK}.docx", MARK),
        (f"{MARK}.pdf", MARK),
        (MARK * 60, MARK),
        ("a.txt", MARK * 1_000_000),
    ],
)
def test_no_refusal_holds_text_of_the_document(name: str, data: str) -> None:
    """Neither the message nor the error behind it carries a value (I6)."""
    with pytest.raises(VeilragError) as raised:
        load(name, data.encode())
    trace = "".join(traceback.format_exception(raised.value))
    raising = [line for line in trace.splitlines() if "Error" in line or ": " in line]
    assert MARK not in raised.value.message
    assert raised.value.__cause__ is None
    assert not any(MARK in line for line in raising)
    assert "During handling" not in trace


# -- CSV ------------------------------------------------------------------------------


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
def test_every_value_stands_beside_its_header(delimiter: str) -> None:
    """The delimiter is found, and each row is one line of names and values."""
    rows = [["name", "room", "note"], ["Ife Lund", "4", 'says "hi"'], ["Bo Itō", "", "x"]]
    text = "\n".join(
        delimiter.join(f'"{c.replace(chr(34), chr(34) * 2)}"' for c in r) for r in rows
    )
    assert load("a.csv", text.encode()).content == (
        'name: Ife Lund; room: 4; note: says "hi"\nname: Bo Itō; note: x\n'
    )


def test_a_table_without_header_is_not_given_one() -> None:
    """A first row of data is data."""
    text = "Ife Lund,07700 900001,4\nBo Itō,07700 900002,5\n"
    assert load("a.csv", text.encode()).content == (
        "Ife Lund; 07700 900001; 4\nBo Itō; 07700 900002; 5\n"
    )


def test_commas_in_values_do_not_make_the_delimiter() -> None:
    """The delimiter that agrees over the rows wins over the one that is frequent."""
    text = "name;remark\nLund, Ife;a, b, c, d\nItō, Bo;e\n"
    assert load("a.csv", text.encode()).content.startswith("name: Lund, Ife; remark: a, b, c, d\n")


def test_no_value_of_a_ragged_row_is_lost() -> None:
    """Cells past the header stand without a name; lines in a cell become one."""
    text = 'a,b\n1,2,3\n"x\ny",z\n'
    assert load("a.csv", text.encode()).content == "a: 1; b: 2; 3\na: x y; b: z\n"


@pytest.mark.parametrize("text", ["x," * 1_000_000, "a,b\n" * 60, "h," * 9 + "h\n" + "1\n" * 60])
def test_tables_are_bounded(text: str) -> None:
    """Too many columns or rows are refused before they are built."""
    with pytest.raises(TooLarge):
        load("a.csv", text[:90_000].encode(), limits=SMALL)


def test_a_header_cannot_multiply_a_small_file() -> None:
    """Long names of columns, repeated in each row, count against the limit."""
    text = ",".join("h" * 90 + str(n) for n in range(9)) + "\n" + "1,1,1,1,1,1,1,1,1\n" * 40
    with pytest.raises(TooLarge):
        load("a.csv", text.encode(), limits=SMALL)


# -- JSON -----------------------------------------------------------------------------


def test_every_value_stands_beside_its_path() -> None:
    """Nested keys are context; numbers stay as written, nulls say nothing."""
    text = '{"id": 007.50e0, "who": {"name": "Ife Lund", "x": null}, "tags": ["a", "b"]}'
    assert load("a.json", text.replace("007", "7").encode()).content == (
        "id: 7.50e0\nwho.name: Ife Lund\ntags: a, b\n"
    )


def test_records_stand_apart() -> None:
    """The objects of an array are paragraphs, so that they are cut between."""
    text = '[{"a": 1, "c": [{"d": 2}, {"d": 3}]}, {"a": 4}]'
    assert load("a.json", text.encode()).content == "a: 1\nc[0].d: 2\nc[1].d: 3\n\na: 4\n"


def test_repeated_keys_are_all_kept() -> None:
    """No value hides behind another of the same name."""
    assert load("a.json", b'{"a": 1, "a": 2}').content == "a: 1\na: 2\n"


@pytest.mark.parametrize("name", ["a.jsonl", "a.ndjson", "a.json"])
def test_a_value_a_line_is_read(name: str) -> None:
    """JSON lines are read, also under the plain ending."""
    assert load(name, b'{"a": 1}\n\n{"a": 2}\n').content == "a: 1\n\na: 2\n"


@pytest.mark.parametrize("data", [b"{", b"[1,]", b"{'a': 1}", b'{"a": 1} x', b'{"a": 1}\n{"b'])
def test_broken_json_is_malformed(data: bytes) -> None:
    """It is not read as text instead."""
    with pytest.raises(Malformed):
        load("a.json", data)


@pytest.mark.parametrize("data", ["[" * 50_000, '{"a":' * 50_000, "[" * 40 + "1" + "]" * 40])
def test_deep_json_is_refused(data: str) -> None:
    """However deep it nests, the stack does not overflow."""
    with pytest.raises(TooLarge):
        load("a.json", data.encode(), limits=Limits(depth=20))


def test_long_paths_cannot_multiply_a_small_file() -> None:
    """Paths repeated for every value count against the limit."""
    text = '{"' + "k" * 1_500 + '": [' + '{"a": "b"},' * 100 + '{"a": "b"}]}'
    with pytest.raises(TooLarge):
        load("a.json", text.encode(), limits=SMALL)


# -- PDF ------------------------------------------------------------------------------


def test_pages_of_a_pdf_are_numbered() -> None:
    """Each page is a section; its text begins where the section does."""
    document = load("lease.pdf", pdf())
    first, second = document.sections
    assert (first.page, second.page) == (1, 2)
    assert document.content[second.start :].startswith("4. Repairs")


def test_the_info_of_a_pdf_is_metadata() -> None:
    """Title, author and date of the document are known, and so protected."""
    metadata = load("lease.pdf", pdf()).metadata
    assert metadata["author"] == "Imogen Szymanska-Reid"
    assert (metadata["date"], metadata["pages"]) == ("2025-02-20", 2)


def test_lines_that_the_margin_broke_are_joined() -> None:
    """A sentence, and a name in it, is not cut in two by the width of a page."""
    assert "(the Landlady) and Rafael Quintanilha, born" in load("lease.pdf", pdf()).content


@pytest.mark.parametrize("cut", [30, 300, 1_500])
def test_a_broken_pdf_is_malformed_or_has_no_text(cut: int) -> None:
    """Half a file is refused, without a traceback of the library."""
    with pytest.raises((Malformed, NoTextLayer)):
        load("lease.pdf", pdf()[:cut])


def test_a_pdf_has_no_more_pages_than_allowed() -> None:
    """Pages are counted before they are read."""
    with pytest.raises(TooLarge):
        load("lease.pdf", pdf(), limits=SMALL)


def test_a_locked_pdf_is_encrypted(locked_pdf: bytes) -> None:
    """A file that wants a password says so."""
    with pytest.raises(Encrypted):
        load("locked.pdf", locked_pdf)


def test_a_pdf_without_text_says_so(blank_pdf: bytes) -> None:
    """Pictures of pages are not passed over in silence, with or without an OCR program."""
    with pytest.raises(NoTextLayer):
        load("scan.pdf", blank_pdf)


# -- files as users have them ---------------------------------------------------------


def _without_ocr(monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a machine where no program for it is installed."""
    from rag.ingest.loaders import ocr, pdf_pages

    monkeypatch.setattr(ocr, "program", lambda: None)
    monkeypatch.setattr(pdf_pages, "program", lambda: None)


REFUSED = (EmptyDocument, Encrypted, Malformed, NoTextLayer, UnsupportedFormat)


@pytest.mark.bench_data
def test_public_files_are_read_or_refused(
    bench_data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No file of the public set ends in anything but a document or a typed refusal."""
    _without_ocr(monkeypatch)
    wrong = []
    for path in sorted((bench_data / "docs" / "files").iterdir()):
        try:
            assert load(path.name, path.read_bytes()).content.strip()
        except REFUSED:
            continue
        except VeilragError as error:
            wrong.append((path.name, error.code))
    assert wrong == []


@pytest.mark.bench_data
@pytest.mark.parametrize(
    "kind", ["pdf", "docx", "pptx", "xlsx", "eml", "msg", "csv", "md", "txt", "html"]
)
def test_public_files_give_the_text_that_others_get(
    bench_data: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At least 90 % of a reference parser's characters; scans none where no program reads them."""
    import csv

    _without_ocr(monkeypatch)

    with (bench_data / "docs" / "manifest.csv").open(encoding="utf-8") as lines:
        rows = [row for row in csv.DictReader(lines) if row["format"] == kind]
    short = []
    for row in rows:
        data = (bench_data / "docs" / "files" / row["file"]).read_bytes()
        reference = int(row["characters_by_a_reference_parser"] or 0)
        if "ENCRYPTED" in row["trait"]:
            with pytest.raises(Encrypted):
                load(row["file"], data)
            continue
        if kind == "pdf" and reference == 0:
            with pytest.raises(NoTextLayer):
                load(row["file"], data)
            continue
        got = len(load(row["file"], data).content)
        # of other formats the reference counted the markup too
        least = 0.9 * reference if kind in {"pdf", "docx", "pptx", "xlsx", "eml"} else 1
        if got < least:
            short.append((row["file"], got, reference))
    assert short == []
