"""Documents are read in a child process that can harm nothing but its own reading."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import subprocess
import sys
import time
import zlib
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from rag.errors import Encrypted, Malformed, TooLarge, Unavailable
from rag.ingest import convert as module
from rag.ingest.convert import close_converters, convert, convert_now
from rag.ingest.limits import Limits
from rag.ingest.loaders import load
from rag.testing.office_files import S, docx, paragraph, xlsx

PROSE = docx(paragraph("Lease", "H1") + paragraph("Ilse Brandt rents."), title="Lease")


@pytest.fixture(autouse=True, scope="module")
def _closed() -> Iterator[None]:
    yield
    close_converters()


def children() -> set[int]:
    """Converters of this process; what has ended already, of whatever test, is none."""
    found: set[int] = set()
    for child in psutil.Process().children(recursive=True):
        with contextlib.suppress(psutil.ZombieProcess, psutil.NoSuchProcess):
            if "rag.ingest.converter" in " ".join(child.cmdline()):
                found.add(child.pid)
    return found


async def test_a_child_reads_what_the_loader_reads() -> None:
    """Text, sections, metadata and language come through unchanged."""
    assert await convert("lease.docx", PROSE) == load("lease.docx", PROSE)


async def test_refusals_keep_their_kind_and_their_words() -> None:
    """The same error as in this process."""
    with pytest.raises(Encrypted, match="encrypted"):
        await convert("a.eml", b"From: a\nContent-Type: multipart/encrypted\n\nx")
    with pytest.raises(Malformed):
        await convert("a.docx", b"PK\x03\x04rest")


async def test_a_child_is_used_again() -> None:
    """One after another costs one start."""
    await convert("a.txt", b"one")
    before = children()
    for _ in range(5):
        await convert("a.txt", b"two")
    assert before
    assert children() == before


async def test_many_at_a_time_get_their_own_text() -> None:
    """Fifty documents over a few children."""
    made = [convert(f"{n}.txt", f"words {n}".encode()) for n in range(50)]
    documents = await asyncio.gather(*made)
    assert [d.content for d in documents] == [f"words {n}" for n in range(50)]


async def test_what_takes_too_long_is_killed() -> None:
    """The document is too large, its child is gone, the next one is read."""
    slow = b"From: a\nContent-Type: text/plain" + b";" * 3_000_000 + b"\n\nhi"
    started = time.monotonic()
    with pytest.raises(TooLarge, match="too long"):
        await convert("a.eml", slow, limits=Limits(seconds=1.5))
    assert time.monotonic() - started < 6
    assert (await convert("a.txt", b"next")).content == "next"


async def test_what_takes_too_much_memory_is_too_large() -> None:
    """Two cells at the corners of a sheet are seventeen thousand million between them."""
    corner = '<row r="1048576"><c r="XFD1048576"><v>2</v></c></row>'
    rows = f'<row r="1"><c r="A1"><v>1</v></c></row>{corner}'
    sheet = f"<worksheet {S}><sheetData>{rows}</sheetData></worksheet>"
    data = xlsx({"A": [[1]]}, {"worksheets/sheet1.xml": sheet})
    with pytest.raises(TooLarge):
        await convert("a.xlsx", data)
    assert (await convert("a.txt", b"next")).content == "next"


async def test_a_bomb_is_refused_in_little_memory() -> None:
    """A gigabyte of blanks in a megabyte."""
    bomb = _bomb(1_000_000_000)
    with pytest.raises(TooLarge):
        await convert("a.docx", bomb)


def _bomb(size: int) -> bytes:
    """A DOCX whose body unpacks to ``size`` bytes."""
    import io
    import zipfile

    written = io.BytesIO()
    with zipfile.ZipFile(written, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        with zipfile.ZipFile(io.BytesIO(PROSE)) as old:
            for name in old.namelist():
                if name != "word/document.xml":
                    archive.writestr(name, old.read(name))
        with archive.open("word/document.xml", "w", force_zip64=True) as part:
            for _ in range(size // 10_000_000):
                part.write(bytes(10_000_000))
    return written.getvalue()


@pytest.mark.parametrize("signal", [11, 6, 9])
async def test_a_child_that_dies_takes_one_document_with_it(signal: int) -> None:
    """A crash, an abort, a kill from outside: a typed error, and the next is read."""
    await convert("a.txt", b"warm")
    slow = b"From: a\nContent-Type: text/plain" + b";" * 3_000_000 + b"\n\nhi"
    reading = asyncio.create_task(convert("a.eml", slow))
    await asyncio.sleep(0.5)
    for child in children():
        os.kill(child, signal)
    with pytest.raises(Malformed if signal == 11 else TooLarge):
        await reading
    assert (await convert("a.txt", b"next")).content == "next"


async def test_giving_up_ends_the_child() -> None:
    """Whoever no longer waits leaves nothing running."""
    slow = b"From: a\nContent-Type: text/plain" + b";" * 3_000_000 + b"\n\nhi"
    reading = asyncio.create_task(convert("a.eml", slow))
    await asyncio.sleep(0.5)
    busy = [psutil.Process(pid) for pid in children()]
    reading.cancel()
    with pytest.raises(asyncio.CancelledError):
        await reading
    gone, _ = await asyncio.to_thread(psutil.wait_procs, busy, 5)
    assert any(process in gone for process in busy)


def test_children_end_with_their_parent() -> None:
    """Also when it is killed while one of them is reading."""
    code = (
        "import threading, time, psutil\n"
        "from rag.ingest.convert import convert_now\n"
        "slow = b'From: a\\nContent-Type: text/plain' + b';' * 3_000_000 + b'\\n\\nhi'\n"
        "threading.Thread(target=convert_now, args=('a.eml', slow), daemon=True).start()\n"
        "time.sleep(1)\n"
        "print(*[c.pid for c in psutil.Process().children()], flush=True)\n"
        "time.sleep(60)\n"
    )
    parent = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    try:
        assert parent.stdout is not None
        pids = [int(pid) for pid in parent.stdout.readline().split()]
        assert pids
    finally:
        parent.kill()
        parent.communicate()
    limit = time.monotonic() + 10
    while any(map(psutil.pid_exists, pids)) and time.monotonic() < limit:
        time.sleep(0.1)
    assert not any(map(psutil.pid_exists, pids))


ATTEMPTS = {
    "a socket": "import socket; socket.socket()",
    "a look-up": "import socket; socket.getaddrinfo('example.org', 80)",
    "a file of the user": "open('/etc/hostname').read()",
    "a file that is written": "open('/tmp/veilrag-converter-wrote', 'w')",
    "a temporary file": "import tempfile; tempfile.TemporaryFile()",
    "another program": "import subprocess; subprocess.run(['/bin/true'])",
    "a shell": "import os; os.system('true')",
    "a fork": "import os; os.fork()",
    "a folder": "import os; os.mkdir('/tmp/veilrag-converter-made')",
    "a removal": "import os; os.remove('/tmp/nothing')",
}


@pytest.mark.parametrize("attempt", ATTEMPTS)
def test_a_document_has_no_rights(attempt: str) -> None:
    """What code in a child may not do, were a document to run some."""
    code = (
        "import sys\nfrom rag.ingest import converter as c\n"
        "c._limit(2_000_000_000); c._leave_network(); sys.addaudithook(c._audit)\n"
        f"try:\n    {ATTEMPTS[attempt]}\nexcept OSError as error:\n    print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.startswith(("a document ", "[Errno 2] No usable temporary"))


def test_a_child_knows_no_secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keys in the environment stay with the parent."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-for-nobody")
    monkeypatch.setenv("DATABASE_URL", "postgresql://nobody")
    close_converters()
    convert_now("a.txt", b"words")
    for child in children():
        environment = psutil.Process(child).environ()
        assert not {"OPENAI_API_KEY", "DATABASE_URL"} & set(environment)


def test_names_are_data() -> None:
    """A path in a name is neither opened nor written."""
    for name in ("../../etc/passwd.txt", "/etc/passwd.txt", "a\x00b.txt", "-rf.txt", "$(id).txt"):
        assert convert_now(name, b"words").content == "words"


def test_more_bytes_than_allowed_are_never_sent() -> None:
    """They are refused before a child has to do with them."""
    with pytest.raises(TooLarge):
        convert_now("a.txt", b"x" * 11, limits=Limits(bytes=10))


def test_a_converter_that_cannot_start_is_no_fault_of_the_document(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It is called unavailable, not malformed."""
    close_converters()
    monkeypatch.setattr(module.sys, "executable", "/nonexistent/python")
    with pytest.raises(Unavailable):
        convert_now("a.txt", b"words")


# -- pictures -------------------------------------------------------------------------


def _png(width: int, height: int) -> bytes:
    """A white picture."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        body = kind + data
        return len(data).to_bytes(4, "big") + body + zlib.crc32(body).to_bytes(4, "big")

    head = width.to_bytes(4, "big") + height.to_bytes(4, "big") + b"\x08\0\0\0\0"
    rows = zlib.compress((b"\0" + b"\xff" * width) * height)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", rows) + chunk(b"IEND", b"")


def test_a_picture_without_words_has_no_text_layer() -> None:
    """With an OCR program and without."""
    from rag.errors import NoTextLayer

    with pytest.raises(NoTextLayer):
        convert_now("a.png", _png(200, 100))


def test_a_picture_of_too_many_pixels_is_too_large(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its head says so; the program is not even asked."""
    from rag.ingest.loaders import ocr

    monkeypatch.setattr(ocr, "program", lambda: "/nonexistent/tesseract")
    huge = _png(10, 10)[:16] + b"\x00\xff\xff\xff" * 2 + _png(10, 10)[24:]
    with pytest.raises(TooLarge):
        load("a.png", huge)


@pytest.mark.system("tesseract")
@pytest.mark.bench_data
@pytest.mark.parametrize("name", ["ocrmypdf__linn.pdf", "unstructured__embedded-images-tables.jpg"])
def test_scanned_pages_are_read(bench_data: Path, name: str) -> None:
    """By the OCR program, from a PDF without text and from a picture."""
    document = convert_now(name, (bench_data / "docs" / "files" / name).read_bytes())
    assert len(re.findall(r"[a-z]{4,}", document.content)) > 100
    assert document.sections[0].page == 1
