"""``python -m eval``: dispatch, and reports that stay strict JSON."""

from __future__ import annotations

import ast
import importlib.util
import json
from pathlib import Path

import pytest

from eval.__main__ import COMMANDS, main
from eval.report import machine, strict_json, write_json
from eval.score import read_case
from rag.errors import InvalidInput


def test_an_unknown_command_is_a_usage_error(capsys: pytest.CaptureFixture[str]) -> None:
    """It exits with 2 and names the commands there are."""
    assert main(["no-such-command"]) == 2
    printed = capsys.readouterr().err
    assert all(name in printed for name in COMMANDS)


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_each_command_has_a_main(name: str) -> None:
    """No command is only promised: its module is there and defines ``main``."""
    spec = importlib.util.find_spec(COMMANDS[name][0])
    assert spec is not None
    assert spec.origin is not None
    tree = ast.parse(Path(spec.origin).read_text("utf-8"))
    assert "main" in {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}


def test_a_report_refuses_nan() -> None:
    """NaN is no JSON: it fails where the report is made, not where it is read."""
    with pytest.raises(ValueError, match="not JSON compliant"):
        strict_json({"median": float("nan")})


def test_a_report_is_one_json_object(tmp_path: Path) -> None:
    """What ``--json`` writes is what was measured."""
    write_json({"n": 3}, tmp_path / "r.json")
    assert json.loads((tmp_path / "r.json").read_text("utf-8")) == {"n": 3}


def test_a_report_names_no_host_or_user() -> None:
    """The machine is described by what a figure depends on, and by nothing else."""
    assert set(machine()) == {"cpus", "python", "system"}


@pytest.mark.parametrize(
    "case",
    [
        {"question": 1, "answer": "a"},
        {"question": "q", "answer": None},
        {"question": "q", "answer": "a", "contexts": "c"},
        {"question": "q", "answer": "a", "contexts": [1]},
        {"question": "q", "answer": "a", "reference": 2},
    ],
)
def test_a_case_of_the_wrong_shape_is_refused(case: dict[str, object]) -> None:
    """A case that is not one names its field and never its value."""
    with pytest.raises(InvalidInput) as refused:
        read_case(case)
    assert any(name in refused.value.message for name in ("question", "answer", "contexts", "refe"))
