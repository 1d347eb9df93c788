"""Spoiled files are read or refused by a typed error, within the bounds, leaving nothing behind.

A part of what ``python -m eval converters --spoil 500`` runs through.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from eval.mutations import mutations
from rag.errors import DocumentRefused, TooLarge
from rag.ingest.convert import close_converters, convert_now
from rag.ingest.limits import Limits
from rag.samples import papers
from rag.testing.office_files import (
    compound,
    docx,
    msg_streams,
    odt,
    paragraph,
    pptx,
    shape,
    word_table,
    xlsx,
)

LIMITS = Limits(seconds=10, ocr_seconds=3)
SECONDS = 16
"""Of one document at the most: its time, a page's recognition and the start of a child."""


@pytest.fixture(scope="module", autouse=True)
def temporary(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The folder that converters would put temporary files into; it stays empty."""
    folder = tmp_path_factory.mktemp("temporary")
    close_converters()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TMPDIR", str(folder))
        yield folder
    close_converters()
    assert list(folder.iterdir()) == []


def spoiled(files: list[Path], count: int, seed: int) -> list[str]:
    """What did not end in a document or a typed refusal in time."""
    wrong = []
    for variant in mutations(files, count, seed):
        started = time.monotonic()
        try:
            convert_now(variant.name, variant.data, limits=LIMITS)
        except (DocumentRefused, TooLarge):
            pass
        except Exception as error:
            wrong.append(f"{variant.name} {variant.done}: {type(error).__name__}")
        if time.monotonic() - started > SECONDS:
            wrong.append(f"{variant.name} {variant.done}: {time.monotonic() - started:.1f} s")
    for child in psutil.Process().children():
        if "rag.ingest.converter" in " ".join(child.cmdline()):
            assert child.memory_info().rss < LIMITS.memory
    return wrong


def test_spoiled_files_of_our_own_are_read_or_refused(tmp_path: Path) -> None:
    """Every format, spoiled in every way."""
    made = {
        "a.docx": docx(paragraph("Rent", "H1") + word_table([["a", "b"], ["c", "d"]])),
        "a.pptx": pptx([shape("Rent", "title"), shape("b")], {1: "notes"}),
        "a.xlsx": xlsx({"S": [["Name", "Rent"], ["Ilse", 400]]}),
        "a.odt": odt("<text:h>Rent</text:h><text:p>words</text:p>"),
        "a.rtf": rb"{\rtf1{\fonttbl{\f0\fcharset204 A;}}\f0 \'cf\u8222 ?{\header h}\par b\cell"
        rb"\row}",
        "a.msg": compound(msg_streams({"0037": "Keys", "1000": "x"}, [("n.txt", b"note")])),
        "a.eml": b"From: a@example.org\nSubject: =?utf-8?q?x?=\nContent-Type: multipart/mixed;"
        b" boundary=b\n\n--b\n\nhi\n--b\nContent-Disposition: attachment; filename=n.txt\n\nn\n"
        b"--b--",
        "a.pdf": papers().joinpath("tenancy-agreement.pdf").read_bytes(),
    }
    for name, data in made.items():
        (tmp_path / name).write_bytes(data)
    assert spoiled(sorted(tmp_path.iterdir()), 320, seed=7) == []


@pytest.mark.bench_data
def test_spoiled_public_files_are_read_or_refused(bench_data: Path) -> None:
    """Files as people have them; of the scans, which take seconds each, only one."""
    files = sorted((bench_data / "docs" / "files").iterdir())
    files = [f for f in files if not f.name.startswith("ocrmypdf") or "linn" in f.name]
    assert spoiled(files, 80, seed=3) == []


@pytest.mark.bench_data
def test_public_files_are_converted_or_refused(bench_data: Path, temporary: Path) -> None:
    """All of them, by the reason that their traits give, by children that leave nothing behind."""
    import csv

    with (bench_data / "docs" / "manifest.csv").open(encoding="utf-8") as lines:
        rows = list(csv.DictReader(lines))
    wrong = []
    for row in rows:
        if "SCANNED" in row["trait"]:  # read by a program, or not: a test of its own
            continue
        data = (bench_data / "docs" / "files" / row["file"]).read_bytes()
        try:
            convert_now(row["file"], data)
            code = "read"
        except (DocumentRefused, TooLarge) as error:
            code = error.code
        expected = {"encrypted"} if "ENCRYPTED" in row["trait"] else {"read"}
        expected |= {"no_text_layer"} if row["format"] == "jpg" else set()
        if code not in expected:
            wrong.append((row["file"], code))
    assert wrong == []
    assert list(temporary.iterdir()) == []
