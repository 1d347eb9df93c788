"""The containers' files: accepted, pinned, without secrets, and the README's own steps."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from rag.settings import Settings

ROOT = Path(__file__).parents[2]
COMPOSE: dict[str, Any] = yaml.safe_load((ROOT / "docker-compose.yml").read_text("utf-8"))
SERVICES: dict[str, Any] = COMPOSE["services"]
DOCKERFILE = (ROOT / "Dockerfile").read_text("utf-8")
README = (ROOT / "README.md").read_text("utf-8")


def steps() -> list[tuple[str, str]]:
    """The Dockerfile's instructions with their arguments, continued lines joined."""
    joined = re.sub(r"\\\n", " ", DOCKERFILE)
    found = re.findall(r"^([A-Z]+) +(.*)$", joined, re.MULTILINE)
    return [(name, " ".join(rest.split())) for name, rest in found]


def exec_form(instruction: str) -> list[str]:
    """The JSON array of ``CMD`` or ``HEALTHCHECK ... CMD``."""
    [line] = [rest for name, rest in steps() if name == instruction]
    return list(json.loads(line[line.index("[") :]))


@pytest.mark.system("docker-compose")
def test_compose_accepts_the_file(tmp_path: Path) -> None:
    """Docker Compose itself finds nothing to object to, and says the same services."""
    done = subprocess.run(
        ["docker-compose", "--project-directory", str(ROOT), "-f", ROOT / "docker-compose.yml",
         "config"],
        cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    said = yaml.safe_load(done.stdout)
    assert set(said["services"]) == {"db", "api"}
    assert said["services"]["api"]["depends_on"]["db"] == {"condition": "service_healthy"}


def test_every_service_says_whether_it_is_well() -> None:
    """Each has a health check with a bounded time."""
    assert [name for name, one in SERVICES.items() if not one["healthcheck"]["timeout"]] == []


def test_images_are_pinned() -> None:
    """No image may change under its tag's name: a version stands in each."""
    images = [one["image"] for one in SERVICES.values()]
    images += [rest for name, rest in steps() if name == "FROM"]
    assert [image for image in images if not re.search(r":[^:]*\d+\.\d+", image)] == []


def test_secrets_are_files_alone() -> None:
    """No password or key stands in the environment, and git and the builder leave them out."""
    given = [
        f"{name}={value}" for one in SERVICES.values() for name, value in one["environment"].items()
    ]
    secret = re.compile(r"(PASSWORD|SECRET_KEY|API_KEYS?)=|://[^/@]*:[^/@]*@")
    assert [one for one in given if secret.search(one)] == []
    assert all(one["file"].startswith("./secrets/") for one in COMPOSE["secrets"].values())
    assert "secrets/" in (ROOT / ".gitignore").read_text("utf-8").splitlines()
    assert not re.search(r"^!secrets", (ROOT / ".dockerignore").read_text("utf-8"), re.MULTILINE)


def test_every_secret_is_a_setting_and_is_told_how_to_make() -> None:
    """A file of the API is named like a setting that is read; the README makes each of them."""
    names = {f"veilrag_{name}" for name in Settings.model_fields} | {"openai_api_key"}
    assert set(SERVICES["api"]["secrets"]) - names == set()
    files = {one["file"].removeprefix("./") for one in COMPOSE["secrets"].values()}
    assert {name for name in files if name not in README} == set()


def test_settings_of_the_service_exist() -> None:
    """A variable that is passed on is one that is read."""
    aliases = {"DATABASE_URL", "OPENAI_API_KEY", "OPENAI_BASE_URL"}
    read = {f"VEILRAG_{name.upper()}" for name in Settings.model_fields} | aliases
    assert set(SERVICES["api"]["environment"]) - read == set()


def test_only_loopback_is_published() -> None:
    """The API is reached from this host alone, the database from the API alone."""
    assert [port.split(":")[0] for port in SERVICES["api"]["ports"]] == ["127.0.0.1"]
    assert "ports" not in SERVICES["db"]
    assert SERVICES["db"]["networks"] == ["inside"]
    assert COMPOSE["networks"]["inside"]["internal"] is True


def test_data_outlives_the_containers() -> None:
    """Database and data folder lie in named volumes, where the images keep them."""
    places = {v.split(":")[1]: v.split(":")[0] for s in SERVICES.values() for v in s["volumes"]}
    assert places["/var/lib/postgresql"] in COMPOSE["volumes"]
    assert places["/var/lib/veilrag"] in COMPOSE["volumes"]


def test_the_database_is_told_to_be_silent() -> None:
    """By the doctor's own measure its log shows no word of anybody."""
    from rag.store.health import shown_by_log

    command = SERVICES["db"]["command"]
    assert shown_by_log(dict(one.split("=", 1) for one in command if "=" in one)) == []


def test_the_image_runs_as_an_ordinary_user() -> None:
    """What is installed and what is run are not root's."""
    names = [name for name, _ in steps()]
    users = [rest for name, rest in steps() if name == "USER"]
    assert users == ["veilrag"]
    installs = [i for i, (name, rest) in enumerate(steps()) if name == "RUN" and ".venv" in rest]
    assert installs
    assert names.index("USER") < min(installs)


def test_the_steps_are_those_of_the_readme() -> None:
    """The image is installed as the README says, but for options that only spare room."""
    installed = [
        [word for word in shlex.split(rest) if word not in {"--no-cache-dir",
                                                            "--disable-pip-version-check"}]
        for name, rest in steps()
        if name == "RUN" and ".venv" in rest
    ]  # fmt: skip
    shown = README.partition("Without Docker these are the image's steps")[2]
    block = re.search(r"```\n(.*?)```", shown, re.DOTALL)
    assert block
    lines = [shlex.split(line) for line in block[1].splitlines()]
    lines[0][0] = "python"  # the image has one Python
    assert lines[:2] == installed
    assert lines[2] == [".venv/bin/veilrag", "serve"]
    assert exec_form("CMD")[:2] == ["veilrag", "serve"]


def test_what_is_copied_reaches_the_builder() -> None:
    """Every path of a COPY exists and is let in by ``.dockerignore``, which lets in no more."""
    copied = {path for name, rest in steps() if name == "COPY" for path in rest.split()[1:-1]}
    allowed = {
        line[1:]
        for line in (ROOT / ".dockerignore").read_text("utf-8").splitlines()
        if line.startswith("!")
    }
    assert copied == allowed
    assert [path for path in copied if not (ROOT / path).exists()] == []


def test_both_health_checks_are_one() -> None:
    """Compose asks what the image asks."""
    assert SERVICES["api"]["healthcheck"]["test"] == ["CMD", *exec_form("HEALTHCHECK")]
