"""The wheel: all of the packages with their data, and nothing of the workshop."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
PACKAGES = ("rag", "api", "eval")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built offline by the project's own build backend."""
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    [built] = folder.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def names(wheel: Path) -> set[str]:
    with zipfile.ZipFile(wheel) as archive:
        return set(archive.namelist())


@pytest.fixture(scope="module")
def unpacked(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel as an installer lays it down, apart from the tree."""
    folder = tmp_path_factory.mktemp("unpacked")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder)
    return folder


def run_unpacked(folder: Path, *command: str) -> str:
    """Run Python on the unpacked wheel; the tree is nowhere on its path."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("VEILRAG_", "OPENAI_"))}
    return subprocess.run(
        [sys.executable, "-P", *command],
        cwd=folder.parent,
        env={**kept, "PYTHONPATH": str(folder)},
        capture_output=True,
        text=True,
        check=True,
    ).stdout


def ours() -> set[str]:
    """Every file of the packages that is meant to be kept."""
    done = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", *PACKAGES],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    return {name for name in done.stdout.splitlines() if (ROOT / name).is_file()}


def test_every_file_of_the_packages_is_in_the_wheel(names: set[str]) -> None:
    """Modules, SQL, word lists, samples, static files, the typing mark: nothing is left out."""
    assert ours() - names == set()


def test_the_wheel_holds_the_packages_and_nothing_else(names: set[str]) -> None:
    """No tests, notebooks, tools or caches go along."""
    tops = {name.split("/")[0] for name in names}
    info = f"{PROJECT['name']}-{PROJECT['version']}.dist-info"
    assert tops == {*PACKAGES, info}
    assert [name for name in names if "__pycache__" in name or name.endswith(".pyc")] == []


@pytest.mark.parametrize("kind", [".sql", ".typed"])
def test_data_of_this_kind_is_there(names: set[str], kind: str) -> None:
    """The kinds of data that the packages cannot do without are in the wheel."""
    assert any(name.endswith(kind) for name in names)


def test_the_samples_are_in_the_wheel(names: set[str]) -> None:
    """The demonstration's papers travel with the package."""
    assert any(name.startswith("rag/samples/papers/") for name in names)


def test_the_licence_is_in_the_wheel(names: set[str]) -> None:
    """Whoever gets the wheel gets its licence."""
    assert any(name.endswith("licenses/LICENSE") for name in names)


def test_the_wheel_is_small(wheel: Path) -> None:
    """No weights or data sets got in: 20 MB at most."""
    assert wheel.stat().st_size < 20_000_000


def test_the_command_runs_from_the_wheel_alone(unpacked: Path) -> None:
    """Apart from the tree, the command lists what it can do."""
    code = "import sys; from rag.cli import main; sys.argv = ['veilrag', '--help']; main()"
    assert "serve" in run_unpacked(unpacked, "-c", code)


def test_every_module_of_the_wheel_is_the_wheels(unpacked: Path) -> None:
    """What was run is what was built: the tree's modules were not imported instead."""
    code = "import rag, api, eval; print(rag.__file__, api.__file__, eval.__file__)"
    printed = run_unpacked(unpacked, "-c", code).split()
    assert [Path(name).parents[1] for name in printed] == [unpacked] * 3


def test_the_evaluation_runs_from_the_wheel_alone(unpacked: Path) -> None:
    """``python -m eval`` needs nothing of the tree either."""
    assert "bench" in run_unpacked(unpacked, "-m", "eval", "--help")
