"""Text in pictures, read by the tesseract program where one is installed.

It is given a picture on stdin and answers on stdout: no file is made. Its languages are those
that are installed.
"""

from __future__ import annotations

import os
import shutil
import struct
import subprocess
from collections.abc import Callable
from contextvars import ContextVar
from functools import cache

from rag.errors import Malformed, NoTextLayer, TooLarge
from rag.ingest.cleaning import clean, is_blank
from rag.ingest.limits import Limits
from rag.ingest.loaders.read import Read
from rag.types import Section

page_done: ContextVar[Callable[[], None] | None] = ContextVar("page_done", default=None)
"""Called after every page, by which who waits knows that there is progress."""

_MOST_PIXELS = 100_000_000
_MOST_LANGUAGES = 4
_PLACES = "/usr/bin:/usr/local/bin:/opt/homebrew/bin"


@cache
def program() -> str | None:
    """The path of the OCR program, ``None`` where there is none."""
    return shutil.which("tesseract", path=f"{os.environ.get('PATH', '')}:{_PLACES}")


def read_picture(data: bytes, limits: Limits) -> Read:
    """The text in a PNG, JPEG or TIFF. Raises ``NoTextLayer``, ``TooLarge``, ``Malformed``."""
    if program() is None:
        raise NoTextLayer("The document is a picture, and no OCR program is installed.")
    width, height = _size(data)
    if width * height > _MOST_PIXELS:
        raise TooLarge(f"The picture has more than {_MOST_PIXELS} pixels.")
    text = recognize(data, limits)
    if is_blank(text):
        raise NoTextLayer("No text was found in the picture.")
    return Read(text, (Section(0, page=1),), {"ocr": True})


def recognize(picture: bytes, limits: Limits, resolution: int = 300) -> str:
    """The text that the program finds in ``picture``. Raises ``Malformed``, ``TooLarge``."""
    command = [
        str(program()), "stdin", "stdout", "-l", _languages(), "--psm", "1",
        "--dpi", str(resolution), "--loglevel", "OFF",
    ]  # fmt: skip
    try:
        done = subprocess.run(  # noqa: S603  a fixed program, no shell
            command,
            input=picture,
            capture_output=True,
            timeout=limits.ocr_seconds,
            check=False,
            env={**os.environ, "OMP_THREAD_LIMIT": "1"},
        )
    except subprocess.TimeoutExpired:
        raise TooLarge("The text of a page takes too long to recognize.") from None
    except OSError:
        raise NoTextLayer("The OCR program cannot be run.") from None
    if done.returncode:
        raise Malformed("The picture cannot be read.")
    if tell := page_done.get():
        tell()
    lines = [line.rstrip() for line in clean(done.stdout.decode("utf-8", "replace")).split("\n")]
    return "\n".join(lines).replace("\f", "\n").strip("\n")


@cache
def _languages() -> str:
    """Up to four of the installed languages, English first."""
    try:
        listed = subprocess.run(  # noqa: S603  a fixed program, no shell
            [str(program()), "--list-langs"], capture_output=True, timeout=10, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return "eng"
    names = [line.strip() for line in listed.stdout.decode("utf-8", "replace").split("\n")[1:]]
    plain = sorted((n for n in names if n.isalpha() and n != "osd"), key=lambda n: (n != "eng", n))
    return "+".join(plain[:_MOST_LANGUAGES]) or "eng"


def _size(data: bytes) -> tuple[int, int]:
    """Width and height as the picture's head says; the program finds out of TIFF itself."""
    if data.startswith(b"\x89PNG"):
        if len(data) < 24:
            raise Malformed("The picture cannot be read.")
        return struct.unpack(">II", data[16:24])
    return _size_of_jpeg(data) if data.startswith(b"\xff\xd8") else (0, 0)


def _size_of_jpeg(data: bytes) -> tuple[int, int]:
    at = 2
    while at + 9 < len(data) and data[at] == 0xFF:
        marker = data[at + 1]
        if 0xC0 <= marker <= 0xCF and marker not in {0xC4, 0xC8, 0xCC}:
            height, width = struct.unpack(">HH", data[at + 5 : at + 9])
            return width, height
        if marker == 0xFF:
            at += 1
            continue
        at += 2 + int.from_bytes(data[at + 2 : at + 4], "big")
    raise Malformed("The picture cannot be read.")
