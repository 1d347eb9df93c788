"""Who may import whom: the contracts of the layout, checked over the real import graph."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
ORDER = ("rag.cli", "api | eval", "rag.engine", "rag.privacy", "rag.ports")


def run_contracts(*arguments: str) -> subprocess.CompletedProcess[str]:
    program = Path(sys.executable).with_name("lint-imports")
    return subprocess.run(
        [program, "--no-cache", *arguments], cwd=ROOT, capture_output=True, text=True, check=False
    )


def test_the_contracts_hold() -> None:
    """import-linter finds no import against the layers, the pure core or Ragas' place."""
    done = run_contracts()
    assert done.returncode == 0, done.stdout[-2000:]


def test_a_broken_contract_is_found(tmp_path: Path) -> None:
    """The check can fail: a layer turned upside down is reported."""
    upside_down = tmp_path / "broken.ini"
    upside_down.write_text(
        "[importlinter]\nroot_package = rag\n"
        "[importlinter:contract:1]\nname = upside down\ntype = layers\n"
        "layers =\n    rag.errors\n    rag.settings\n"
    )
    assert run_contracts("--config", str(upside_down)).returncode == 1


def test_the_layers_are_those_of_the_layout() -> None:
    """The contract names every layer of the design, in its order."""
    contracts = PROJECT["tool"]["importlinter"]["contracts"]
    layers = next(c["layers"] for c in contracts if c["type"] == "layers")
    assert [layer for layer in layers if layer in ORDER] == list(ORDER)


@pytest.mark.parametrize("part", ["graphs", "ingest", "models", "store"])
def test_the_parts_do_not_know_each_other(part: str) -> None:
    """Graphs, ingestion, models and store stand side by side in one independent layer."""
    contracts = PROJECT["tool"]["importlinter"]["contracts"]
    layers = next(c["layers"] for c in contracts if c["type"] == "layers")
    assert f"rag.{part}" in next(x for x in layers if "rag.store" in x).split(" | ")


def test_every_package_is_under_contract() -> None:
    """No part of ``rag`` stands outside the layers, but for what ships for tests and shows."""
    contracts = PROJECT["tool"]["importlinter"]["contracts"]
    layers = next(c["layers"] for c in contracts if c["type"] == "layers")
    named = {name.strip() for layer in layers for name in layer.replace(":", "|").split("|")}
    packages = {
        f"rag.{path.parent.name}"
        for path in (ROOT / "rag").glob("*/__init__.py")
        if path.parent.name not in {"testing", "samples"}
    }
    assert packages - named == set()
