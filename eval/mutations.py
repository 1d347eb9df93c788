"""Files spoiled in the ways that files get spoiled, and in those that somebody spoils them on
purpose: the same seed gives the same variants."""

from __future__ import annotations

import io
import random
import zipfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

ENDINGS = (
    "txt", "md", "html", "csv", "json", "jsonl", "pdf", "docx", "pptx", "xlsx", "xls", "odt", "ods",
    "rtf", "eml", "msg", "jpg", "png", "zip", "bin", "",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Variant:
    """A spoiled file: what it is called, its bytes and what was done to it."""

    name: str
    data: bytes = field(repr=False)
    done: str


def mutations(files: Sequence[Path], count: int, seed: int = 20_261_130) -> Iterator[Variant]:
    """``count`` variants of ``files``, each kind of spoiling in turn."""
    chance = random.Random(seed)  # noqa: S311 - the variants are to be the same each time
    kinds = (_truncated, _flipped, _zipped, _renamed, _wiped, _inner_flipped, _doubled, _swapped)
    for n in range(count):
        path = chance.choice(files)
        spoil = kinds[n % len(kinds)]
        name, data = spoil(path.name, path.read_bytes(), chance)
        yield Variant(name, data, spoil.__name__.strip("_"))


def _truncated(name: str, data: bytes, chance: random.Random) -> tuple[str, bytes]:
    return name, data[: chance.randrange(1, max(2, len(data)))]


def _flipped(name: str, data: bytes, chance: random.Random) -> tuple[str, bytes]:
    return name, _with_flips(data, chance)


def _zipped(name: str, data: bytes, chance: random.Random) -> tuple[str, bytes]:
    """The file in a zip, or in a zip in a zip, under a zip's name or the file's own."""
    for _ in range(chance.randint(1, 3)):
        written = io.BytesIO()
        with zipfile.ZipFile(written, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr(name, data)
        data = written.getvalue()
    return chance.choice((name, f"{name}.zip")), data


def _renamed(name: str, data: bytes, chance: random.Random) -> tuple[str, bytes]:
    ending = chance.choice(ENDINGS)
    return f"{name.rpartition('.')[0]}{'.' if ending else ''}{ending}", data


def _wiped(name: str, data: bytes, chance: random.Random) -> tuple[str, bytes]:
    """A stretch of the file is zeros, as after a write that did not finish."""
    start = chance.randrange(len(data))
    length = chance.randrange(1, max(2, len(data) // 4))
    end = min(len(data), start + length)
    return name, data[:start] + bytes(end - start) + data[end:]


def _inner_flipped(name: str, data: bytes, chance: random.Random) -> tuple[str, bytes]:
    """Bytes of one part of a package are changed and the package is whole; else of the file."""
    if not zipfile.is_zipfile(io.BytesIO(data)):
        return name, _with_flips(data, chance)
    written = io.BytesIO()
    with (
        zipfile.ZipFile(io.BytesIO(data)) as old,
        zipfile.ZipFile(written, "w", zipfile.ZIP_DEFLATED) as new,
    ):
        parts = old.namelist()
        spoiled = chance.choice(parts)
        for part in parts:
            content = old.read(part)
            new.writestr(part, _with_flips(content, chance) if part == spoiled else content)
    return name, written.getvalue()


def _doubled(name: str, data: bytes, chance: random.Random) -> tuple[str, bytes]:
    """A part of the file stands in it many times."""
    start = chance.randrange(len(data))
    piece = data[start : start + chance.randrange(1, 5_000)]
    return name, data[:start] + piece * chance.randrange(2, 200) + data[start:]


def _swapped(name: str, data: bytes, chance: random.Random) -> tuple[str, bytes]:
    """The head of one half stands before the other."""
    cut = chance.randrange(len(data))
    return name, data[:16] + data[cut:] + data[16:cut]


def _with_flips(data: bytes, chance: random.Random) -> bytes:
    changed = bytearray(data)
    for _ in range(chance.randint(1, 60)):
        if changed:
            changed[chance.randrange(len(changed))] = chance.randrange(256)
    return bytes(changed)
