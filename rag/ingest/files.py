"""Files of the user's choice, found and read; what they are named is decided here.

The only place of ingestion that opens paths: only those the user gave, and what lies in
the folders among them. Links that lead out of a folder are not followed.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

from rag.errors import InvalidInput, NotFound, TooLarge


@dataclass(frozen=True, slots=True)
class File:
    """A file to ingest: ``read(most)`` gives its bytes, refusing more than ``most``.

    ``opened`` opens it to be read in blocks, where it need not be held whole; ``origin`` is a
    digest of the folder that it was found in.
    """

    source: str
    size: int
    read: Callable[[int], bytes] = field(repr=False)
    media_type: str | None = None
    opened: Callable[[], BinaryIO] | None = field(default=None, repr=False)
    origin: str | None = None


def file_of(name: str, data: bytes, media_type: str | None = None) -> File:
    """A file that is in memory already, such as an upload."""
    return File(name, len(data), lambda most: data, media_type)


def find_files(paths: Iterable[Path | str], base: Path | None = None) -> Iterator[File]:
    """The files at ``paths`` and under the folders among them, sorted, hidden ones left out.

    With a ``base`` a source is the path relative to it, or the whole path for what lies
    elsewhere, so that files of one name in two folders are two documents in whatever call
    they come. Without one it is the path relative to the folder that was given; where two
    of them hold the same one, the later gets its folder's name in front. Raises ``NotFound``.
    """
    taken: set[str] = set()
    for given in map(Path, paths):
        if not given.exists():
            raise NotFound("A file or folder that was named does not exist.")
        root = given.resolve()
        folder = root if root.is_dir() else root.parent
        for path in _walk(root) if root.is_dir() else [root]:
            if base is not None:
                source = _source(path, base.resolve())
            else:
                source = _free_name(path.relative_to(folder).as_posix(), folder, taken)
            taken.add(source)
            reader = _Reader(path)
            origin = origin_of(root) if root.is_dir() else None
            yield File(source, path.stat().st_size, reader, opened=reader.opened, origin=origin)


def origin_of(folder: Path) -> str:
    """What a folder is known by in the store: no name of it."""
    return hashlib.sha256(os.fsencode(folder.resolve())).hexdigest()


def _walk(root: Path) -> Iterator[Path]:
    """Regular files under ``root``, by name; a linked folder is entered only once, by itself."""
    for folder, folders, names in os.walk(root, followlinks=False, onerror=_unreadable):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(names):
            path = Path(folder, name)
            if not name.startswith(".") and _is_inside(path, root):
                yield path


def _is_inside(path: Path, root: Path) -> bool:
    try:
        return path.resolve(strict=True).is_relative_to(root) and path.is_file()
    except (OSError, RuntimeError):  # a link to nowhere, or to itself
        return False


def _unreadable(error: OSError) -> None:
    raise InvalidInput("A folder cannot be read.") from None


def _source(path: Path, base: Path) -> str:
    inside = path.is_relative_to(base)
    return (path.relative_to(base) if inside else path.relative_to(path.anchor)).as_posix()


def _free_name(source: str, folder: Path, taken: set[str]) -> str:
    for above in reversed(folder.parts[1:]):
        if source not in taken:
            break
        source = f"{above}/{source}"
    return source


@dataclass(frozen=True, slots=True)
class _Reader:
    path: Path

    def opened(self) -> BinaryIO:
        try:
            file = self.path.open("rb")
        except OSError:
            raise InvalidInput("The file cannot be read.") from None
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            file.close()
            raise InvalidInput("The file cannot be read.")
        return file

    def __call__(self, most: int) -> bytes:
        try:
            with self.opened() as file:
                data = file.read(most + 1)
        except OSError:
            raise InvalidInput("The file cannot be read.") from None
        if len(data) > most:
            raise TooLarge(f"The document is larger than {most} bytes.")
        return data
