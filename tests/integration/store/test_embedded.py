"""The embedded server: shared, found again, stopped, and silent about values."""

from __future__ import annotations

import os
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from rag.errors import VeilragError
from rag.store.embedded import Embedded, embedded

HOLDER = """
import sys, time
from pathlib import Path
from rag.store.embedded import Embedded
server = Embedded(Path(sys.argv[1]), durable=False)
endpoint = server.join()
print(endpoint.owner_url, flush=True)
sys.stdin.readline()
server.leave()
print("left", flush=True)
"""


@pytest.fixture
def data_dir() -> Iterator[Path]:
    parent = Path(tempfile.mkdtemp(prefix="veilrag-test-"))
    directory = parent / "data"
    yield directory
    Embedded(directory)._stop()
    shutil.rmtree(parent, ignore_errors=True)


def hold(data_dir: Path) -> tuple[subprocess.Popen[str], str]:
    """Another process that uses the server until it reads a line."""
    process = subprocess.Popen(
        [sys.executable, "-W", "error", "-c", HOLDER, str(data_dir)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    url = process.stdout.readline().strip()
    assert url.startswith("postgresql://")
    return process, url


def release(process: subprocess.Popen[str]) -> None:
    out, _ = process.communicate("\n", timeout=60)
    assert out.strip() == "left"


def kill(process: subprocess.Popen[str]) -> None:
    """As the kernel does it: no exit handler runs."""
    with process:
        process.kill()


def running(data_dir: Path) -> int | None:
    return Embedded(data_dir)._running_pid()


def answers(url: str) -> bool:
    try:
        with psycopg.connect(url, connect_timeout=2) as connection:
            return connection.execute("select 1").fetchone() == (1,)
    except psycopg.OperationalError:
        return False


def test_the_last_user_stops_the_server(data_dir: Path) -> None:
    """Two processes share one server; it runs until the second has left."""
    first, url = hold(data_dir)
    second, same = hold(data_dir)
    assert url == same
    pid = running(data_dir)
    release(first)
    assert running(data_dir) == pid
    assert answers(url)
    release(second)
    assert running(data_dir) is None
    assert not answers(url)


def test_processes_that_start_at_once_share_one_server(data_dir: Path) -> None:
    """Four processes on an empty directory at the same moment: one server, all connected."""
    command = [sys.executable, "-W", "error", "-c", HOLDER, str(data_dir)]
    pipe = subprocess.PIPE
    processes = [subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) for _ in range(4)]
    urls = {p.stdout.readline().strip() for p in processes if p.stdout is not None}
    assert len(urls) == 1
    for process in processes:
        release(process)
    assert running(data_dir) is None


def test_a_server_whose_owner_was_killed_is_found_again(data_dir: Path) -> None:
    """After ``kill -9`` of its only user the server is joined, not doubled, and stops at last."""
    process, url = hold(data_dir)
    pid = running(data_dir)
    with psycopg.connect(url) as connection:
        connection.execute("create table kept (n int)")
    kill(process)
    assert running(data_dir) == pid
    server = Embedded(data_dir, durable=False)
    endpoint = server.join()
    assert running(data_dir) == pid
    with psycopg.connect(endpoint.owner_url) as connection:
        assert connection.execute("select count(*) from kept").fetchone() == (0,)
    server.leave()
    assert running(data_dir) is None


def test_a_killed_user_does_not_keep_the_server_running(data_dir: Path) -> None:
    """Of two users one is killed; when the other leaves, the server stops."""
    killed, _ = hold(data_dir)
    other, _ = hold(data_dir)
    kill(killed)
    release(other)
    assert running(data_dir) is None


def test_a_server_that_died_is_started_anew(data_dir: Path) -> None:
    """After ``kill -9`` of the server itself its stale pid file, whoever's number it is by
    now, does not stand in the way."""
    process, _ = hold(data_dir)
    pid = running(data_dir)
    assert pid is not None
    kill(process)
    os.kill(pid, signal.SIGKILL)
    deadline = time.monotonic() + 10
    while running(data_dir) is not None and time.monotonic() < deadline:
        time.sleep(0.05)
    pid_file = data_dir / "postgres" / "postmaster.pid"
    pid_file.write_text(f"{os.getpid()}\n{data_dir}/postgres\n1\n5432\n{data_dir}/socket\n\n1 1\n")
    server = Embedded(data_dir, durable=False)
    endpoint = server.join()
    assert answers(endpoint.owner_url)
    server.leave()


def test_a_start_that_was_cut_short_is_no_cluster(data_dir: Path) -> None:
    """What an interrupted initialization left behind is made anew, not taken for whole."""
    left = data_dir / "postgres.new"
    left.mkdir(parents=True)
    (left / "PG_VERSION").write_text("18\n")
    server = Embedded(data_dir, durable=False)
    endpoint = server.join()
    assert answers(endpoint.owner_url)
    server.leave()


@pytest.mark.parametrize("name", ["x" * 120, "with space, comma 'quote' é", "ü" * 60])
def test_any_path_serves(name: str) -> None:
    """A path too long for a socket, or with what libpq splits at, is served all the same."""
    parent = Path(tempfile.mkdtemp(prefix="veilrag-test-"))
    server = Embedded(parent / name / "data", durable=False)
    try:
        endpoint = server.join()
        assert answers(endpoint.service_url)
        assert len(os.fsencode(endpoint.socket_dir / ".s.PGSQL.5432")) <= 107
        assert stat.S_IMODE(endpoint.socket_dir.stat().st_mode) == 0o700
    finally:
        server.leave()
        shutil.rmtree(parent)
    assert not endpoint.socket_dir.exists(), "nothing is left behind"


def test_only_the_owner_reaches_the_data(data_dir: Path) -> None:
    """Directory, cluster and socket folder are 0700, log and key files 0600."""
    server = Embedded(data_dir, durable=False)
    endpoint = server.join()
    for folder in (data_dir, data_dir / "postgres", endpoint.socket_dir):
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert stat.S_IMODE((data_dir / "postgres.log").stat().st_mode) == 0o600
    server.leave()


def test_the_server_listens_on_no_address(data_dir: Path) -> None:
    """No TCP port, only the socket."""
    server = Embedded(data_dir, durable=False)
    with psycopg.connect(server.join().owner_url) as connection:
        assert connection.execute("show listen_addresses").fetchone() == ("",)
    server.leave()


def test_the_log_holds_no_values(data_dir: Path) -> None:
    """Neither statements, parameters nor error details reach any log file (I6)."""
    marker = "Quillfeather-7431"
    server = Embedded(data_dir, durable=False)
    endpoint = server.join()
    with psycopg.connect(endpoint.owner_url, autocommit=True) as connection:
        connection.execute("create table t (name text primary key, n int check (n > 0))")
        connection.execute("insert into t values (%s, 1)", (marker,))
        for query, values in [
            ("insert into t values (%s, 2)", (marker,)),
            ("insert into t values ('x', %s::text::int)", (marker,)),
            (f"insert into t values ('{marker}', -1)", None),
            (f"select '{marker}'::int", None),
            (f"do $$ begin raise warning '{marker}'; raise exception '{marker}'; end $$", None),
            (f"select {marker.split('-')[0]} from t", None),
        ]:
            with pytest.raises(psycopg.Error):
                connection.execute(query, values)
    with pytest.raises(psycopg.OperationalError):
        psycopg.connect(endpoint.url("postgres", "nowhere"))
    logs = [data_dir / "postgres.log", *(data_dir / "postgres").rglob("*log")]
    text = b"".join(path.read_bytes() for path in logs if path.is_file())
    server.leave()
    assert marker.encode() not in text
    assert b"Quillfeather".lower() not in text.lower()
    assert b"nowhere" in text, "the log that was read is the one that is written"


def test_the_service_login_is_no_owner(data_dir: Path) -> None:
    """The embedded server's second login is neither superuser nor may it bypass policies."""
    server = Embedded(data_dir, durable=False)
    with psycopg.connect(server.join().service_url) as connection:
        row = connection.execute(
            "select rolsuper, rolbypassrls, rolcreaterole, rolcreatedb from pg_roles "
            "where rolname = current_user"
        ).fetchone()
    server.leave()
    assert row == (False, False, False, False)


async def test_the_block_starts_and_stops(data_dir: Path) -> None:
    """As an async context manager, and twice within one process."""
    async with embedded(data_dir, durable=False) as one:
        async with embedded(data_dir, durable=False) as two:
            assert one == two
        assert answers(one.owner_url)
    assert running(data_dir) is None


def test_an_unusable_directory_is_a_clear_error() -> None:
    """A file where the directory should be: our error, naming the setting."""
    with tempfile.NamedTemporaryFile() as file, pytest.raises(VeilragError) as raised:
        Embedded(Path(file.name) / "data").join()
    assert "VEILRAG_DATA_DIR" in raised.value.message
