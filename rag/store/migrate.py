"""Migrations: SQL files in order, once each, under an advisory lock, in one transaction.

Any number of processes may migrate at once: one does the work, the others wait and find
it done. A file that was applied never changes: its checksum is kept and compared.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterator
from importlib.resources import files
from typing import Any, LiteralString

import psycopg

from rag.errors import DatabaseUnavailable, Misconfigured
from rag.store.pool import ROLE, mapped, translated

LEAST_PGVECTOR = (0, 8)
LEAST_POSTGRES = 16
_LOCK = 0x7665696C  # "veil"
_ATTEMPTS = 8
# Roles belong to the whole server, out of the reach of one database's lock: another database
# that migrates at the same moment shows as one of these, and trying again finds its work done.
_RACES = {"XX000", "23505", "42710", "40001", "40P01"}

_Connection = psycopg.Connection[tuple[Any, ...]]

_RECORD = """
create schema if not exists veilrag;
create table if not exists veilrag.migrations (
    name text primary key,
    checksum text not null,
    applied_at timestamptz not null default now()
)
"""


def migrate(owner_url: str) -> list[str]:
    """Bring the database up to date; the names applied by this call, none when it was.

    Blocking. Raises ``Misconfigured`` when the server cannot serve us or was migrated by
    other files, ``DatabaseUnavailable`` when it cannot be reached.
    """
    for attempt in range(_ATTEMPTS):
        try:
            return _migrate(owner_url)
        except psycopg.Error as error:
            if error.sqlstate not in _RACES or attempt == _ATTEMPTS - 1:
                raise translated(error) from None
        time.sleep(0.05 * (attempt + 1))
    raise DatabaseUnavailable("The database is being migrated elsewhere; try again.")


def _migrate(owner_url: str) -> list[str]:
    with psycopg.connect(owner_url, prepare_threshold=None, connect_timeout=10) as connection:
        # Of the transaction, not the session: it holds behind a transaction-pooling proxy too.
        connection.execute("select pg_advisory_xact_lock(%s)", (_LOCK,))
        _check_server(connection)
        _make_role(connection)
        _make_extension(connection)
        return list(_apply(connection))


def _apply(connection: _Connection) -> Iterator[str]:
    connection.execute(_RECORD)
    known: dict[str, str] = dict(
        connection.execute("select name, checksum from veilrag.migrations").fetchall()
    )
    for name, text in _files():
        checksum = hashlib.sha256(text.encode()).hexdigest()
        if name in known:
            if known[name] != checksum:
                raise Misconfigured(f"Migration {name} was applied in another wording.")
            continue
        connection.execute(text.encode())
        connection.execute(
            "insert into veilrag.migrations (name, checksum) values (%s, %s)", (name, checksum)
        )
        yield name


def _files() -> list[tuple[str, str]]:
    folder = files("rag.store").joinpath("migrations")
    names = sorted(entry.name for entry in folder.iterdir() if entry.name.endswith(".sql"))
    return [(name, folder.joinpath(name).read_text(encoding="utf-8")) for name in names]


def _value(connection: _Connection, query: LiteralString, *values: object) -> Any:
    row = connection.execute(query, values or None).fetchone()
    return None if row is None else row[0]


def _check_server(connection: _Connection) -> None:
    if connection.info.server_version // 10000 < LEAST_POSTGRES:
        raise Misconfigured(f"The database must be PostgreSQL {LEAST_POSTGRES} or newer.")
    if _value(connection, "show server_encoding") != "UTF8":
        raise Misconfigured("The database must be encoded in UTF8.")


def _make_role(connection: _Connection) -> None:
    """The service's role, and our right to take it."""
    exists = "select 1 from pg_roles where rolname = %s"
    if _value(connection, exists, ROLE) is None:
        try:
            with connection.transaction():
                connection.execute(f"create role {ROLE} nologin nosuperuser nobypassrls")
        except psycopg.errors.InsufficientPrivilege:
            raise Misconfigured(
                f"The login may not make the role {ROLE}. Let an administrator run: "
                f"CREATE ROLE {ROLE} NOLOGIN; GRANT {ROLE} TO <the login>;"
            ) from None
    if not _value(connection, "select pg_has_role(current_user, %s, 'SET')", ROLE):
        try:
            with connection.transaction():
                connection.execute(f"grant {ROLE} to current_user")
        except psycopg.errors.InsufficientPrivilege:
            raise Misconfigured(
                f"The login may not take the role {ROLE}. Let an administrator run: "
                f"GRANT {ROLE} TO <the login>;"
            ) from None


def _make_extension(connection: _Connection) -> None:
    installed = "select extversion from pg_extension where extname = 'vector'"
    if _value(connection, installed) is None:
        if (
            _value(connection, "select 1 from pg_available_extensions where name = 'vector'")
            is None
        ):
            raise Misconfigured("The database server lacks pgvector: install version 0.8 or newer.")
        try:
            with connection.transaction():
                connection.execute("create extension if not exists vector")
        except psycopg.errors.InsufficientPrivilege:
            raise Misconfigured(
                "The login may not install pgvector. Let an administrator run, in this database: "
                "CREATE EXTENSION vector;"
            ) from None
    version = str(_value(connection, installed))
    if tuple(int(part) for part in version.split(".")[:2]) < LEAST_PGVECTOR:
        raise Misconfigured(
            f"pgvector {version} is too old: install 0.8 or newer and run, in this database: "
            "ALTER EXTENSION vector UPDATE;"
        )


def pending(owner_url: str) -> list[str]:
    """The migrations that are still to be applied. Blocking."""
    with mapped(), psycopg.connect(owner_url, prepare_threshold=None) as connection:
        known: set[str] = set()
        if _value(connection, "select to_regclass('veilrag.migrations')") is not None:
            rows = connection.execute("select name from veilrag.migrations").fetchall()
            known = {name for (name,) in rows}
        return [name for name, _ in _files() if name not in known]
