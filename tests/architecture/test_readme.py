"""The README claims no more than ships: every command, target, route, setting and link."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
import typer

from eval.__main__ import COMMANDS
from rag.settings import Settings

ROOT = Path(__file__).parents[2]
PAGES = [page for name in ("README.md", "ARCHITECTURE.md") if (page := ROOT / name).exists()]
TEXT = {page.name: page.read_text("utf-8") for page in PAGES}
README = TEXT["README.md"]
ALL = "\n".join(TEXT.values())
CODE = "\n".join(re.findall(r"```.*?```|`[^`\n]+`", ALL, re.DOTALL))


def commands() -> dict[str, set[str]]:
    """Each command of ``veilrag`` with its options."""
    from rag.cli import app

    group = typer.main.get_command(app)
    return {
        name: {option for parameter in command.params for option in parameter.opts}
        for name, command in group.commands.items()  # type: ignore[attr-defined]
    }


def environment_names() -> set[str]:
    """Every variable that a setting is read from."""
    found = set()
    for name, field in Settings.model_fields.items():
        aliases = getattr(field.validation_alias, "choices", None)
        found |= set(map(str, aliases)) if aliases else {f"VEILRAG_{name.upper()}"}
    return found


def test_every_command_it_names_exists() -> None:
    """``veilrag X`` in code is a command of the program."""
    named = set(re.findall(r"\bveilrag ([a-z][a-z-]+)\b", CODE))
    assert named
    assert named - set(commands()) == set()


def test_every_command_is_named() -> None:
    """No command of the program is left unsaid."""
    assert set(commands()) - set(re.findall(r"\bveilrag ([a-z][a-z-]+)\b", CODE)) == set()


def test_every_option_it_names_exists() -> None:
    """An option that stands behind a command is that command's."""
    wrong = [
        (command, option)
        for command, rest in re.findall(r"\bveilrag ([a-z-]+)([^\n`|]*)", CODE)
        for option in re.findall(r"--[a-z][a-z-]+", rest)
        if option not in commands().get(command, set())
    ]
    assert wrong == []


def test_every_target_it_names_exists() -> None:
    """``make X`` in code is a target of the Makefile."""
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE))
    named = set(re.findall(r"\bmake ([a-z]+)\b", CODE))
    assert {"demo", "test"} <= named
    assert named - targets == set()


def test_every_evaluation_it_names_exists() -> None:
    """``python -m eval X`` is a command of the evaluation, also in its table."""
    table = README.partition("## Evaluate")[2].partition("\n## ")[0]
    named = set(re.findall(r"^\| `([a-z]+)", table, re.MULTILINE))
    named |= set(re.findall(r"python -m eval ([a-z]+)", CODE))
    assert named
    assert named - set(COMMANDS) == set()


def test_every_setting_it_names_exists() -> None:
    """A variable that is named is one that is read."""
    read_elsewhere = {"VEILRAG_BENCH_DATA"}
    named = set(re.findall(r"\bVEILRAG_[A-Z_]+\b", ALL))
    assert named - environment_names() - read_elsewhere == set()


def test_the_example_settings_are_the_settings() -> None:
    """``.env.example`` lists every setting there is, and none that is not."""
    example = (ROOT / ".env.example").read_text("utf-8")
    listed = set(re.findall(r"^#? ?([A-Z][A-Z_]+)=", example, re.MULTILINE))
    short = {name for name in environment_names() if not name.startswith("VEILRAG_")}
    doubles = {f"VEILRAG_{name}" for name in short}
    assert listed - environment_names() == set()
    assert environment_names() - doubles - listed == set()


def test_every_route_it_names_exists() -> None:
    """A method and path in code is served."""
    from api.app import create_app
    from rag.settings import load_settings

    paths = create_app(load_settings(_env_file=None)).openapi()["paths"]
    served = {
        (method.upper(), re.sub(r"\{\w+\}", "{id}", path))
        for path, methods in paths.items()
        for method in methods
    }
    served |= {("GET", "/openapi.json")}
    named = set()
    for methods, path in re.findall(r"((?:`?(?:GET|POST|DELETE)`?[ /`]*)+) ?(/[\w/{}.]+)", README):
        named |= {(method, path) for method in re.findall("GET|POST|DELETE", methods)}
    assert named
    assert named - served == set()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_its_links_lead_somewhere(page: Path) -> None:
    """A link to a file of the tree finds it."""
    targets = re.findall(r"\]\(([^)#:\s]+)(?:#[\w-]*)?\)", page.read_text("utf-8"))
    assert [target for target in targets if not (page.parent / target).exists()] == []


def test_its_python_examples_compile() -> None:
    """What is shown as Python is Python, and imports what is there."""
    for block in re.findall(r"```python\n(.*?)```", README, re.DOTALL):
        imports = "\n".join(re.findall(r"^(?:from|import) .*$", block, re.MULTILINE))
        compile(block, "README.md", "exec")
        subprocess.run([sys.executable, "-c", imports], check=True, cwd=ROOT)
