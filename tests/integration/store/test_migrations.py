"""Migrations: once each, by any number of processes, and a clear word when they cannot be."""

from __future__ import annotations

import subprocess
import sys

import psycopg
import pytest

from rag.errors import DatabaseUnavailable, Misconfigured
from rag.store.migrate import migrate, pending
from rag.testing.database import Server

RACER = """
import sys
from rag.store.migrate import migrate
sys.stdin.readline()
print(len(migrate(sys.argv[1])))
"""


def race(urls: list[str]) -> list[int]:
    """Processes that migrate at the same moment; how many migrations each applied."""
    pipe = subprocess.PIPE
    processes = [
        subprocess.Popen([sys.executable, "-c", RACER, url], stdin=pipe, stdout=pipe, text=True)
        for url in urls
    ]
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("\n")
        process.stdin.flush()
    applied = []
    for process in processes:
        out, _ = process.communicate(timeout=120)
        assert process.returncode == 0
        applied.append(int(out))
    return applied


@pytest.mark.parametrize("round_", range(2))
def test_six_processes_migrate_one_empty_database(server: Server, round_: int) -> None:
    """One of them does all the work, the others find it done; none fails."""
    with server.database(migrated=False) as url:
        assert len(pending(url)) >= 2
        applied = race([url] * 6)
        assert sorted(applied)[:5] == [0] * 5
        assert pending(url) == []


def test_several_databases_of_one_server_migrate_at_once() -> None:
    """The role belongs to the server: databases that make it at once do not fail."""
    from rag.testing.database import postgres_server

    with (
        postgres_server() as fresh,
        fresh.database(migrated=False) as one,
        fresh.database(migrated=False) as two,
        fresh.database(migrated=False) as three,
    ):
        with psycopg.connect(fresh.endpoint.url("postgres", "veilrag_template")) as connection:
            connection.execute("drop owned by veilrag_app")
            connection.execute("drop role veilrag_app")
        applied = race([one, two, three, one, two, three])
    assert sorted(applied)[:3] == [0] * 3
    assert all(n >= 2 for n in sorted(applied)[3:])


def test_migrating_again_does_nothing(database: str) -> None:
    """A database that is up to date stays as it is."""
    assert migrate(database) == []


def test_a_changed_migration_is_refused(database: str) -> None:
    """A file that was applied in another wording is named."""
    with psycopg.connect(database) as connection:
        connection.execute(
            "update veilrag.migrations set checksum = 'other' where name like '0001%'"
        )
    with pytest.raises(Misconfigured, match=r"0001_schema\.sql"):
        migrate(database)


def test_a_failed_migration_leaves_nothing(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """All or nothing: after an error in the last file no table of the first is there."""
    from rag.store import migrate as module

    broken = [*module._files(), ("9999_broken.sql", "select 1/0;")]
    with server.database(migrated=False) as url:
        with monkeypatch.context() as patch:
            patch.setattr(module, "_files", lambda: broken)
            with pytest.raises(Exception, match="22012"):
                migrate(url)
        with psycopg.connect(url) as connection:
            found = connection.execute("select to_regclass('veilrag.chunks')").fetchone()
        assert found == (None,)
        assert len(migrate(url)) >= 2


def test_an_old_pgvector_is_named(database: str) -> None:
    """Below 0.8 the message says which version is there and what to do."""
    with psycopg.connect(database) as connection:
        connection.execute("set allow_system_table_mods = on")
        connection.execute("update pg_extension set extversion = '0.7.4' where extname = 'vector'")
    with pytest.raises(Misconfigured, match=r"0\.7\.4.*ALTER EXTENSION vector UPDATE"):
        migrate(database)


def test_a_login_without_rights_is_told_what_to_ask_for(server: Server) -> None:
    """A login that may not make the extension gets the statement for its administrator."""
    with server.database(migrated=False) as url:
        with psycopg.connect(url, autocommit=True) as connection:
            name = connection.info.dbname
            connection.execute("drop role if exists plain_login")
            connection.execute("create role plain_login login")
            connection.execute("grant veilrag_app to plain_login")
            connection.execute(f"grant create on database {name} to plain_login")
        with pytest.raises(Misconfigured, match="CREATE EXTENSION vector"):
            migrate(server.endpoint.url("plain_login", name))


def test_an_owner_that_is_no_superuser_migrates_and_serves(server: Server) -> None:
    """With role and extension made by an administrator, an ordinary owner does the rest."""
    with server.database(migrated=False) as url:
        with psycopg.connect(url, autocommit=True) as connection:
            name = connection.info.dbname
            connection.execute("drop role if exists plain_owner")
            connection.execute("create role plain_owner login")
            connection.execute("grant veilrag_app to plain_owner")
            connection.execute("create extension vector")
            connection.execute(f"alter database {name} owner to plain_owner")
        own = server.endpoint.url("plain_owner", name)
        assert len(migrate(own)) >= 2
        with psycopg.connect(own) as connection:
            connection.execute("select set_config('veilrag.tenant', '', true)")
            seen = connection.execute("select count(*) from veilrag.tenants").fetchone()
        assert seen == (0,), "the policies hold for the owner, too"


def test_a_database_in_another_encoding_is_refused(server: Server) -> None:
    """Only UTF8 holds every text."""
    with psycopg.connect(server.endpoint.owner_url, autocommit=True) as connection:
        connection.execute("drop database if exists latin")
        connection.execute(
            "create database latin encoding 'SQL_ASCII' template template0 "
            "locale_provider libc locale 'C'"
        )
    try:
        with pytest.raises(Misconfigured, match="UTF8"):
            migrate(server.endpoint.url("postgres", "latin"))
    finally:
        with psycopg.connect(server.endpoint.owner_url, autocommit=True) as connection:
            connection.execute("drop database latin with (force)")


def test_no_server_is_unavailable(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Nobody listening: our error, without the URL."""
    with pytest.raises(DatabaseUnavailable) as raised:
        migrate("postgresql://someone:secret-word@127.0.0.1:1/none")
    assert "secret-word" not in raised.value.message
