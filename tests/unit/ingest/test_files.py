"""Files are found below what was given, in order, under names that tell them apart."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from rag.errors import InvalidInput, NotFound, TooLarge
from rag.ingest.files import find_files


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    root = tmp_path / "papers"
    (root / "b").mkdir(parents=True)
    (root / ".git").mkdir()
    for name in ("z.txt", "a.md", "b/c.txt", ".hidden", ".git/config"):
        (root / name).write_text(name)
    (tmp_path / "outside.txt").write_text("outside")
    return root


def sources(*paths: Path) -> list[str]:
    return [file.source for file in find_files(paths)]


def test_files_come_in_order_named_from_their_folder(folder: Path) -> None:
    """Sorted, relative to the folder that was given, hidden files left out."""
    assert sources(folder) == ["a.md", "z.txt", "b/c.txt"]


def test_a_file_is_named_by_itself(folder: Path) -> None:
    """No path of the machine gets into a source."""
    assert sources(folder / "b" / "c.txt") == ["c.txt"]


def test_links_do_not_lead_out_of_the_folder(folder: Path) -> None:
    """A link to elsewhere, to nowhere or to itself is no file of the folder."""
    (folder / "out.txt").symlink_to(folder.parent / "outside.txt")
    (folder / "outdir").symlink_to(folder.parent)
    (folder / "nowhere").symlink_to("missing")
    (folder / "loop").symlink_to("loop")
    (folder / "inside.txt").symlink_to("a.md")
    assert sources(folder) == ["a.md", "inside.txt", "z.txt", "b/c.txt"]


def test_what_is_no_regular_file_is_left_alone(folder: Path) -> None:
    """A named pipe would be read for ever."""
    os.mkfifo(folder / "pipe.txt")
    assert "pipe.txt" not in sources(folder)


def test_two_folders_with_one_name_do_not_replace_each_other(folder: Path, tmp_path: Path) -> None:
    """The later one is named with its folder in front."""
    other = tmp_path / "other"
    other.mkdir()
    (other / "a.md").write_text("other")
    assert sources(folder, other) == ["a.md", "z.txt", "b/c.txt", "other/a.md"]


def test_a_missing_path_is_not_found(folder: Path) -> None:
    """Without its name in the message."""
    with pytest.raises(NotFound) as raised:
        sources(folder / "missing.txt")
    assert "missing" not in raised.value.message


def test_a_file_is_read_up_to_the_limit(folder: Path) -> None:
    """One that grew since it was found is refused, not read whole."""
    [file] = find_files([folder / "a.md"])
    assert file.read(4) == b"a.md"
    with pytest.raises(TooLarge):
        file.read(3)


def test_a_file_that_went_away_is_invalid(folder: Path) -> None:
    """The system's error, which names the path, does not come through."""
    [file] = find_files([folder / "a.md"])
    (folder / "a.md").unlink()
    with pytest.raises(InvalidInput):
        file.read(10)


def test_files_of_one_name_in_two_calls_are_two_documents(tmp_path: Path) -> None:
    """Told from where one stands, a source names one file whatever else is ingested."""
    for folder in ("first", "second"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "notes.md").write_text(folder)
    sources = [
        file.source
        for folder in ("first", "second")
        for file in find_files([tmp_path / folder], tmp_path)
    ]
    assert sources == ["first/notes.md", "second/notes.md"]
    [elsewhere] = find_files([tmp_path / "first"], tmp_path / "second")
    assert elsewhere.source.endswith("/first/notes.md")
    assert not elsewhere.source.startswith("/")
