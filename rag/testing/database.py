"""A fast real Postgres for tests: one server a session, one cloned database a test.

    with postgres_server() as server:           # session: starts, migrates a template
        with server.database() as url:          # test: a clone of it, dropped afterwards
            Settings(database_url=url, secret_key=SECRET)

The URL is the owner's; the store takes the service's role in each transaction.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path

import psycopg
from psycopg import sql

from rag.settings import Settings
from rag.store.embedded import OWNER, Embedded, Endpoint
from rag.store.migrate import migrate

SECRET = "a secret for tests only, 32 bytes or more"  # noqa: S105
_TEMPLATE = "veilrag_template"
_numbers = count(1)


@dataclass(frozen=True, slots=True)
class Server:
    """A running server with a migrated template database."""

    endpoint: Endpoint
    data_dir: Path

    @contextmanager
    def database(self, *, migrated: bool = True) -> Iterator[str]:
        """The owner's URL of a fresh database, dropped at the end whoever is still connected."""
        name = f"test_{next(_numbers)}"
        template = _TEMPLATE if migrated else "template1"
        self._run(
            sql.SQL("create database {} template {}").format(
                sql.Identifier(name), sql.Identifier(template)
            )
        )
        try:
            yield self.endpoint.url(OWNER, name)
        finally:
            self._run(
                sql.SQL("drop database if exists {} with (force)").format(sql.Identifier(name))
            )

    def _run(self, statement: sql.Composed) -> None:
        with psycopg.connect(self.endpoint.url(OWNER, "postgres"), autocommit=True) as connection:
            connection.execute(statement)


@contextmanager
def postgres_server() -> Iterator[Server]:
    """A server of its own in a temporary directory; not durable, so fast."""
    data_dir = Path(tempfile.mkdtemp(prefix="veilrag-test-"))
    server = Embedded(data_dir, durable=False)
    try:
        endpoint = server.join()
        with psycopg.connect(endpoint.owner_url, autocommit=True) as connection:
            connection.execute(f"create database {_TEMPLATE}")
        migrate(endpoint.url(OWNER, _TEMPLATE))
        yield Server(endpoint, data_dir)
    finally:
        server.leave()
        shutil.rmtree(data_dir, ignore_errors=True)


def database_settings(url: str, **overrides: object) -> Settings:
    """Settings for a store on that database, whatever the environment says."""
    values: dict[str, object] = {
        "_env_file": None,
        "database_url": url,
        "secret_key": SECRET,
        **overrides,
    }
    return Settings(**values)  # type: ignore[arg-type]
