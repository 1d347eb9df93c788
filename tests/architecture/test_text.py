"""The text of the tree: documented, and speaking of the project alone."""

from __future__ import annotations

import ast
import re
import subprocess
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
MODULES = sorted(
    path
    for package in ("rag", "api", "eval", "tests")
    for path in (ROOT / package).rglob("*.py")
    if path.read_bytes().strip()
)
HOME = "/" + "(?:home|Users|root|work|workspace|mnt)" + "/"
FORBIDDEN = {
    "this machine's path": re.compile(re.escape(f"{ROOT}/")),
    "a registry host": re.compile(
        "|".join(["pypi" + r"\.org", "files\\.python" + "hosted", "(?<!no-emit-)index" + "-url"])
    ),
    "a link to somebody's report": re.compile(r"github\.com/[\w.-]+/[\w.-]+/(?:issues|pull)/\d"),
    "an unfinished mark": re.compile(r"#[^\"'\n]*\b(?:TO" + r"DO|FIX" + r"ME)\b"),
    "a conflict marker": re.compile(r"^(?:<{7}|>{7}) ", re.MULTILINE),
}


def tracked() -> list[Path]:
    """The files of the tree: git's where it is there, else all but what is built."""
    done = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    names = done.stdout.splitlines()
    return [ROOT / name for name in names if (ROOT / name).is_file()]


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_a_module_says_what_it_is_for(path: Path) -> None:
    """Every module that is not empty opens with a docstring."""
    assert ast.get_docstring(ast.parse(path.read_text("utf-8")))


@pytest.mark.parametrize(
    "path",
    [path for path in MODULES if path.name.startswith("test_")],
    ids=lambda path: path.relative_to(ROOT).as_posix(),
)
def test_a_test_states_its_fact(path: Path) -> None:
    """Every test's docstring says the one fact that it holds."""
    silent = [
        node.name
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and node.name.startswith("test_")
        and not ast.get_docstring(node)
    ]
    assert silent == []


@pytest.mark.parametrize("what", sorted(FORBIDDEN))
def test_no_file_holds(what: str) -> None:
    """The tree speaks of the project alone, wherever it was written."""
    holding = []
    for path in tracked():
        try:
            text = path.read_text("utf-8")
        except UnicodeDecodeError:
            continue
        if FORBIDDEN[what].search(text):
            holding.append(path.relative_to(ROOT).as_posix())
    assert holding == []


def test_no_file_beside_the_tests_holds_a_machine_path() -> None:
    """Nobody's home or workplace stands in what ships (tests may hold invented ones as data)."""
    shipped = [p for p in tracked() if p.suffix != ".lock" and "tests" not in p.parts]
    texts = {p: p.read_bytes().decode("utf-8", "replace") for p in shipped}
    path = re.compile(rf"(?<![\w.:/-]){HOME}\w")
    assert [p.relative_to(ROOT).as_posix() for p, text in texts.items() if path.search(text)] == []


def test_the_lock_pins_every_requirement() -> None:
    """The lock holds one exact version a line, and every direct dependency of every extra."""
    lines = [
        line
        for line in (ROOT / "requirements.lock").read_text("utf-8").splitlines()
        if line and not line.startswith("#")
    ]
    assert [line for line in lines if not re.match(r"^[a-z0-9.-]+==\S+( ; .+)?$", line)] == []
    pinned = {line.split("==")[0] for line in lines}
    project = PROJECT["project"]
    extras = project["optional-dependencies"].values()
    wanted = [*project["dependencies"], *(spec for extra in extras for spec in extra)]
    names = {re.split(r"[\[<>=!~ ;]", spec)[0].lower().replace("_", "-") for spec in wanted}
    assert names - pinned == set()


def test_the_default_install_is_without_torch() -> None:
    """Nothing that asks for gigabytes is a plain dependency."""
    names = {re.split(r"[\[<>=!~ ;]", spec)[0] for spec in PROJECT["project"]["dependencies"]}
    assert names.isdisjoint({"torch", "transformers", "sentence-transformers", "ragas"})
