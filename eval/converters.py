"""``python -m eval converters``: the public documents through the loaders, and through others.

Without options, a table of every file: how it ended, its characters against those that a
reference parser got, seconds. ``--compare`` runs other converters over the office files where
they are installed. ``--spoil N`` runs N spoiled variants and counts how they ended.

Reads the folder that ``VEILRAG_BENCH_DATA`` names.
"""

from __future__ import annotations

import argparse
import csv
import html
import io
import os
import re
import sys
import tempfile
import time
import zipfile
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from eval.mutations import mutations
from eval.report import machine, write_json
from rag.errors import VeilragError
from rag.ingest.convert import close_converters, convert_now
from rag.ingest.limits import Limits

_SLOW = 20.0


@dataclass(frozen=True, slots=True)
class File:
    """A file of the public set; ``characters`` by the reference parser, ``None`` unknown."""

    path: Path
    format: str
    trait: str
    characters: int | None


def main(argv: Sequence[str]) -> int:
    """1 when a file ended in anything but a document or a typed refusal."""
    parser = argparse.ArgumentParser(prog="python -m eval converters", description=__doc__)
    parser.add_argument("--compare", action="store_true", help="other converters, where installed")
    parser.add_argument("--spoil", type=int, metavar="N", help="spoiled variants of the files")
    parser.add_argument("--password", default="Password1234_", help="tried where one is needed")
    parser.add_argument("--json", type=Path, help="write the figures there too")
    options = parser.parse_args(argv)
    named = os.environ.get("VEILRAG_BENCH_DATA")
    if not named:
        print("VEILRAG_BENCH_DATA names no folder.", file=sys.stderr)
        return 2
    files = public_files(Path(named) / "docs")
    try:
        if options.compare:
            figures = compare(files)
        elif options.spoil:
            figures = spoil(files, options.spoil)
        else:
            figures = table(files, options.password)
    finally:
        close_converters()
    write_json({**figures, "machine": machine()}, options.json)
    return 0 if figures["met"] else 1


def public_files(folder: Path) -> list[File]:
    with (folder / "manifest.csv").open(encoding="utf-8") as lines:
        return [
            File(
                folder / "files" / row["file"],
                row["format"],
                row["trait"],
                int(row["characters_by_a_reference_parser"] or 0) or None,
            )
            for row in csv.DictReader(lines)
        ]


# -- every file -----------------------------------------------------------------------


def table(files: Sequence[File], password: str) -> dict[str, Any]:
    """Each file through the child process, as an upload would go."""
    rows = []
    print(f"{'file':<52}{'status':<19}{'characters':>11}{'reference':>11}{'seconds':>9}")
    for file in files:
        row = _converted(file)
        rows.append(row)
        if row["status"] == "encrypted" and (again := _converted(file, password)):
            rows[-1] |= {"with_password": again["status"]}
        shown = row["status"] + (
            f" ({row['with_password']})" if row.get("with_password") == "read" else ""
        )
        print(
            f"{file.path.name:<52.51}{shown:<19}{row['characters'] or '':>11}"
            f"{file.characters or '':>11}{row['seconds']:>9.2f}"
        )
    ended = Counter(row["status"] for row in rows)
    print(", ".join(f"{count} {status}" for status, count in ended.most_common()))
    return {"files": rows, "ended": dict(ended), "met": "fault" not in ended}


def _converted(file: File, password: str | None = None) -> dict[str, Any]:
    started = time.perf_counter()
    characters = None
    try:
        data = file.path.read_bytes()
        characters = len(convert_now(file.path.name, data, password=password).content)
        status = "read"
    except VeilragError as error:
        status = error.code if error.status < 500 else "fault"
    return {
        "file": file.path.name,
        "status": status,
        "characters": characters,
        "reference": file.characters,
        "seconds": round(time.perf_counter() - started, 3),
    }


# -- spoiled files --------------------------------------------------------------------


def spoil(files: Sequence[File], count: int) -> dict[str, Any]:
    """``count`` variants; how they ended, the slowest, and what was left in temporary folders."""
    limits = Limits(seconds=_SLOW, ocr_seconds=5)
    ended: Counter[str] = Counter()
    slowest, faults = 0.0, []
    with tempfile.TemporaryDirectory() as folder:
        os.environ["TMPDIR"] = folder
        for variant in mutations([file.path for file in files], count):
            started = time.perf_counter()
            try:
                convert_now(variant.name, variant.data, limits=limits)
                status = "read"
            except VeilragError as error:
                status = error.code
                if error.status >= 500:
                    faults.append(f"{variant.name} {variant.done}: {status}")
            ended[status] += 1
            slowest = max(slowest, time.perf_counter() - started)
        left = sorted(os.listdir(folder))
    peak = _peak_of_children()
    print(", ".join(f"{n} {status}" for status, n in ended.most_common()))
    print(f"slowest {slowest:.1f} s, children's peak {peak / 1e6:.0f} MB, left behind: {left}")
    print("\n".join(faults))
    return {
        "ended": dict(ended),
        "slowest": slowest,
        "peak_bytes": peak,
        "left": left,
        "faults": faults,
        "met": not faults and not left,
    }


def _peak_of_children() -> int:
    """Of those that have ended, the OCR program among them."""
    import resource

    close_converters()
    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024


# -- other converters -----------------------------------------------------------------


def compare(files: Sequence[File]) -> dict[str, Any]:
    """The office files through each converter; what marks in them (comments, notes) it found."""
    rows = []
    for name, other in OTHERS.items():
        try:
            shown = f"{name} {version(other.package)}" if other.package else name
        except PackageNotFoundError:
            print(f"{name}: not installed")
            continue
        for kind in other.formats:
            row = _compared(shown, other.read, [f for f in files if f.format == kind], kind)
            rows.append(row)
    print(f"{'converter':<28}{'format':<7}{'read':>6}{'characters':>12}{'words':>8}{'ms':>8}")
    for row in sorted(rows, key=lambda row: (row["format"], -row["words"])):
        print(
            f"{row['converter']:<28}{row['format']:<7}{row['read']:>3}/{row['files']:<2}"
            f"{row['characters']:>12}{row['words']:>8.3f}{row['ms']:>8.1f}"
        )
    return {"rows": rows, "met": True}


def _compared(
    name: str, read: Callable[[bytes, str], str], files: Sequence[File], kind: str
) -> dict[str, Any]:
    """``words``: the part of the words in the files' text elements that was found."""
    open_files = [file for file in files if "ENCRYPTED" not in file.trait]
    characters, done, seconds, found, there = 0, 0, 0.0, 0, 0
    for file in open_files:
        data = file.path.read_bytes()
        started = time.perf_counter()
        text = _tried(read, data, kind)
        seconds += time.perf_counter() - started
        known = _all_words(file, data)
        there += len(known)
        if text:
            done += 1
            characters += len(text)
            found += len(_words(text) & known)
    return {
        "converter": name,
        "format": kind,
        "files": len(open_files),
        "read": done,
        "characters": characters,
        "words": round(found / max(1, there), 4),
        "ms": round(1000 * seconds / max(1, len(open_files)), 2),
    }


def _tried(read: Callable[[bytes, str], str], data: bytes, kind: str) -> str:
    try:
        return read(data, kind)
    except Exception:  # whatever another converter raises is counted as not read
        return ""


_TEXT = re.compile(r"<(?:\w+:)?(?:t|text)(?:\s[^>]*)?>([^<]+)<")
_NO_TEXT = re.compile(r"theme|[Mm]aster|[Ll]ayout|styles|docProps|customXml|glossary|changesInfo")


def _all_words(file: File, data: bytes) -> frozenset[str]:
    """The words in the text elements of the file's parts; of a MSG, those that anybody found."""
    if not zipfile.is_zipfile(io.BytesIO(data)):
        readers = [other.read for other in OTHERS.values() if file.format in other.formats]
        return frozenset[str]().union(
            *(_words(_tried(read, data, file.format)) for read in readers)
        )
    words: set[str] = set()
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        for name in archive.namelist():
            if name.endswith(".xml") and not _NO_TEXT.search(name):
                markup = archive.read(name).decode("utf-8", "replace")
                words |= _words(html.unescape(" ".join(_TEXT.findall(markup))))
    return frozenset(words)


def _words(text: str) -> frozenset[str]:
    return frozenset(re.findall(r"[^\W\d_]{3,}", text.casefold()))


def _ours(data: bytes, kind: str) -> str:
    from rag.ingest.loaders import load

    return load(f"a.{kind}", data).content


def _python_docx(data: bytes, _: str) -> str:
    import docx

    document = docx.Document(io.BytesIO(data))
    rows = (cell.text for t in document.tables for row in t.rows for cell in row.cells)
    return "\n".join([*(p.text for p in document.paragraphs), *rows])


def _python_pptx(data: bytes, _: str) -> str:
    import pptx

    found = []
    for slide in pptx.Presentation(io.BytesIO(data)).slides:
        found += [shape.text_frame.text for shape in slide.shapes if shape.has_text_frame]
        for shape in slide.shapes:
            if shape.has_table:
                found += [cell.text for row in shape.table.rows for cell in row.cells]
        if slide.has_notes_slide:
            found.append(slide.notes_slide.notes_text_frame.text)
    return "\n".join(found)


def _openpyxl(data: bytes, _: str) -> str:
    import openpyxl

    book = openpyxl.load_workbook(io.BytesIO(data), read_only=True, data_only=True)
    rows = (row for sheet in book for row in sheet.iter_rows(values_only=True))
    return "\n".join(str(cell) for row in rows for cell in row if cell is not None)


def _calamine(data: bytes, _: str) -> str:
    import python_calamine

    book = python_calamine.CalamineWorkbook.from_filelike(io.BytesIO(data))
    sheets = (book.get_sheet_by_name(name) for name in book.sheet_names)
    return "\n".join(str(c) for sheet in sheets for row in sheet.to_python() for c in row if c)


def _mammoth(data: bytes, _: str) -> str:
    import mammoth

    return str(mammoth.extract_raw_text(io.BytesIO(data)).value)


def _docx2python(data: bytes, _: str) -> str:
    import docx2python

    with docx2python.docx2python(io.BytesIO(data)) as document:
        return str(document.text)


def _markitdown(data: bytes, kind: str) -> str:
    import markitdown

    stream = markitdown.StreamInfo(extension=f".{kind}")
    return str(markitdown.MarkItDown().convert_stream(io.BytesIO(data), stream_info=stream))


def _oxmsg(data: bytes, _: str) -> str:
    import oxmsg

    message = oxmsg.Message.load(io.BytesIO(data))
    people = " ".join(r.email_address for r in message.recipients)
    parts = (a.file_name or "" for a in message.attachments)
    return "\n".join([message.sender or "", people, message.subject, message.body or "", *parts])


@dataclass(frozen=True, slots=True)
class Other:
    """A converter: its package, the formats it is asked for, how it is asked."""

    package: str
    formats: tuple[str, ...]
    read: Callable[[bytes, str], str]


OTHERS: Mapping[str, Other] = {
    "these loaders": Other("", ("docx", "pptx", "xlsx", "msg"), _ours),
    "python-docx": Other("python-docx", ("docx",), _python_docx),
    "mammoth": Other("mammoth", ("docx",), _mammoth),
    "docx2python": Other("docx2python", ("docx",), _docx2python),
    "python-pptx": Other("python-pptx", ("pptx",), _python_pptx),
    "openpyxl": Other("openpyxl", ("xlsx",), _openpyxl),
    "python-calamine alone": Other("python-calamine", ("xlsx",), _calamine),
    "markitdown": Other("markitdown", ("docx", "pptx", "xlsx", "msg"), _markitdown),
    "python-oxmsg": Other("python-oxmsg", ("msg",), _oxmsg),
}
