"""Connections: cut, lost, frozen, cancelled and behind a proxy."""

from __future__ import annotations

import asyncio
import logging
import os
import random
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import numpy as np
import psutil
import psycopg
import pytest

from rag.errors import DatabaseUnavailable, VeilragError
from rag.store import Store
from rag.store.embedded import Embedded
from rag.store.pool import Pool, mapped
from rag.testing.database import Server, database_settings
from rag.types import Alias, ChunkDraft, Document, EntityType, Ingested, Space, Span

SPACE = Space("m", 2)


async def put(store: Store, n: int) -> Ingested:
    return await store.documents(store.default_tenant).put(
        "default",
        SPACE,
        Document(f"{n % 5}.md", f"lantern {n}"),
        "h",
        "d",
        [ChunkDraft(0, 0, 9)],
        np.array([[1, n]], np.float32),
        [Span(0, 7, EntityType.PERSON)],
        [Alias(n, n, 1, EntityType.PERSON)],
    )


async def look(store: Store) -> int:
    search = await store.search(store.default_tenant, ["default"], SPACE)
    hits = await search.fill(await search.dense(np.array([1, 1], np.float32), 5, {}))
    return len(hits)


async def test_the_first_request_after_a_cut_succeeds(store: Store, database: str) -> None:
    """All connections terminated from the server's side: nobody notices."""
    await asyncio.gather(*(put(store, n) for n in range(4)))
    with psycopg.connect(database, autocommit=True) as connection:
        cut = connection.execute(
            "select count(pg_terminate_backend(pid)) from pg_stat_activity "
            "where application_name = 'veilrag' and datname = current_database()"
        ).fetchone()
    assert cut is not None
    assert cut[0] >= 1
    await store.ping()
    assert await look(store) == 4


async def test_a_cut_right_after_an_answer_is_survived(store: Store, database: str) -> None:
    """A connection that just answered is used unasked; cut meanwhile, the read is sent again."""
    await put(store, 0)
    search = await store.search(store.default_tenant, ["default"], SPACE)
    direction = np.array([1, 1], np.float32)
    await asyncio.gather(*(search.dense(direction, 5, {}) for _ in range(4)))
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute(
            "select pg_terminate_backend(pid) from pg_stat_activity "
            "where application_name = 'veilrag' and datname = current_database()"
        )
    found = await asyncio.gather(*(search.dense(direction, 5, {}) for _ in range(4)))
    assert [len(hits) for hits in found] == [1] * 4


async def test_cancelled_tasks_lose_no_connection(store: Store, database: str) -> None:
    """A hundred tasks cancelled anywhere on a pool of four; then twenty pass, none is left open."""
    await put(store, 0)
    chance = random.Random(7)

    async def work(n: int) -> None:
        await (put(store, n) if n % 2 else look(store))

    tasks = [asyncio.create_task(work(n)) for n in range(100)]
    for task in tasks:
        await asyncio.sleep(chance.random() * 0.01)
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    assert all(task.cancelled() or task.exception() is None for task in tasks)
    assert await asyncio.gather(*(look(store) for _ in range(20)))
    with psycopg.connect(database) as connection:
        rows = connection.execute(
            "select count(*) filter (where state like 'idle in transaction%'), count(*) "
            "from pg_stat_activity where application_name = 'veilrag' "
            "and datname = current_database()"
        ).fetchone()
    assert rows is not None
    assert rows[0] == 0
    assert rows[1] <= 4


@pytest.fixture
def own_server() -> Iterator[Embedded]:
    """A server of this test's own, to be stopped and frozen."""
    parent = Path(tempfile.mkdtemp(prefix="veilrag-test-"))
    server = Embedded(parent, durable=False)
    server.join()
    yield server
    server.leave()
    shutil.rmtree(parent, ignore_errors=True)


@pytest.fixture
async def own_store(own_server: Embedded) -> AsyncIterator[Store]:
    url = own_server.join().owner_url
    async with Store.open(database_settings(url, pool_size=2)) as store:
        yield store


async def expect_outage(store: Store) -> None:
    began = time.monotonic()
    with pytest.raises(DatabaseUnavailable):
        await store.ping()
    assert time.monotonic() - began < 5.0


async def test_an_outage_is_told_in_time_and_ends_by_itself(
    own_server: Embedded, own_store: Store
) -> None:
    """Server stopped: 503 within five seconds, again and again; started: served at once."""
    own_server._stop()
    for _ in range(3):
        await expect_outage(own_store)
    own_server._start()
    began = time.monotonic()
    await own_store.ping()
    assert time.monotonic() - began < 4.0


async def test_a_frozen_server_is_an_outage(own_server: Embedded, own_store: Store) -> None:
    """A server that takes connections and answers nothing does not hang the service."""
    await own_store.ping()
    pid = own_server._running_pid()
    assert pid is not None
    children = [child.pid for child in psutil.Process(pid).children()]
    for process in (pid, *children):
        os.kill(process, signal.SIGSTOP)
    try:
        await asyncio.gather(*(expect_outage(own_store) for _ in range(3)))
    finally:
        for process in (*children, pid):
            os.kill(process, signal.SIGCONT)
    await asyncio.sleep(0.5)
    await own_store.ping()


async def test_a_full_pool_is_told_in_time(database: str) -> None:
    """All connections in use: ``DatabaseUnavailable`` when the wait is over."""
    async with Pool(database, size=1, timeout=0.5) as pool, pool.transaction(None):
        with pytest.raises(DatabaseUnavailable):
            await pool.ping()


async def test_a_closed_store_is_unavailable(database: str) -> None:
    """After closing, an error of ours."""
    async with Store.open(database_settings(database)) as store:
        pass
    with pytest.raises(DatabaseUnavailable):
        await store.ping()


@pytest.mark.parametrize(
    "query",
    [
        "insert into t values ('Quillfeather-7431')",
        "select 'Quillfeather-7431'::int",
        "select quillfeather_7431",
        "selec Quillfeather-7431",
        "do $$ begin raise exception 'Quillfeather-7431'; end $$",
    ],
)
def test_no_word_of_the_databases_errors_passes(
    database: str, query: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Every error is ours, without a cause, without the server's text, and nothing is logged."""
    caplog.set_level(logging.DEBUG)
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute("create table if not exists t (name text primary key)")
        connection.execute("insert into t values ('Quillfeather-7431') on conflict do nothing")
        with pytest.raises(VeilragError) as raised, mapped():
            connection.execute(query.encode())
    error = raised.value
    assert error.__cause__ is None
    assert error.__suppress_context__
    for text in (str(error), repr(error), caplog.text):
        assert "quillfeather" not in text.lower()


PROXY = """
[databases]
{name} = host={host} port=5432 user=postgres pool_size=2
[pgbouncer]
listen_addr =
unix_socket_dir = {folder}
unix_socket_mode = 0777
listen_port = 6432
auth_type = any
pool_mode = transaction
default_pool_size = 2
max_client_conn = 100
logfile = {folder}/log
pidfile = {folder}/pid
ignore_startup_parameters = extra_float_digits
"""


@pytest.fixture
def proxied(server: Server, database: str) -> Iterator[str]:
    """The same database behind a transaction-pooling proxy with two server connections."""
    with psycopg.connect(database) as connection:
        name = connection.info.dbname
    folder = Path(tempfile.mkdtemp(prefix="veilrag-proxy-"))
    folder.chmod(0o777)
    host = server.endpoint.socket_dir
    (folder / "ini").write_text(PROXY.format(name=name, host=host, folder=folder))
    program = shutil.which("pgbouncer") or "/usr/sbin/pgbouncer"
    account = server.endpoint.socket_dir.stat()
    process = subprocess.Popen(
        [program, "-q", str(folder / "ini")],
        user=account.st_uid if os.getuid() == 0 else None,
        group=account.st_gid if os.getuid() == 0 else None,
        extra_groups=() if os.getuid() == 0 else None,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    socket = folder / ".s.PGSQL.6432"
    deadline = time.monotonic() + 10
    while not socket.exists() and time.monotonic() < deadline:
        assert process.poll() is None, "the proxy did not start"
        time.sleep(0.05)
    yield f"postgresql://postgres@/{name}?host={folder}&port=6432"
    process.terminate()
    process.wait(timeout=10)
    shutil.rmtree(folder, ignore_errors=True)


@pytest.mark.system("pgbouncer")
async def test_a_hundred_requests_pass_a_transaction_pooling_proxy(proxied: str) -> None:
    """Reads and writes mixed over two server connections, and tenants stay apart."""
    async with Store.open(database_settings(proxied, pool_size=8)) as store:
        await put(store, 0)

        async def work(n: int) -> None:
            if n % 3 == 0:
                await put(store, n)
            else:
                assert await look(store) >= 1
            async with store._pool.transaction(None) as connection:
                row = await (
                    await connection.execute("select count(*) from veilrag.documents")
                ).fetchone()
                assert row == (0,)

        await asyncio.gather(*(work(n) for n in range(100)))
        assert await look(store) == 5
