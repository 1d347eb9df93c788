"""Purge: what was deleted leaves the files, not only the tables.

Deleting makes rows unreachable at once; their bytes stay in the tables' files and in the
write-ahead log until they are overwritten. Here the tables are written anew without them
and the log is moved past them. Blocks that the file system freed are its own affair:
encrypt the disk where that matters; backups and replicas keep what they kept.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import psycopg
from psycopg import sql

from rag.errors import Conflict
from rag.store.pool import mapped

_WAIT_SECONDS = 30.0
_LOCK_TIMEOUT = "30s"

_TABLES = """
select c.relname from pg_class c join pg_namespace n on n.oid = c.relnamespace
where n.nspname = 'veilrag' and c.relkind = 'r' order by c.relname
"""
_OLDER_SNAPSHOTS = """
select count(*) from pg_stat_activity
where pid <> pg_backend_pid() and datname = current_database()
    and (age(backend_xmin) >= age(%(horizon)s::text::xid)
        or age(backend_xid) >= age(%(horizon)s::text::xid))
"""

_Connection = psycopg.Connection[tuple[Any, ...]]


@dataclass(frozen=True, slots=True)
class Purged:
    """What was written anew; ``log`` tells whether the write-ahead log was moved on, too."""

    tables: int
    log: bool


def purge(owner_url: str) -> Purged:
    """Take deleted rows out of the data files. Blocking; requests wait for it meanwhile.

    Raises ``Conflict`` when a transaction stays open that could still see them, and
    ``DatabaseUnavailable`` when one that began later holds a table too long. ``log`` is
    false where the login may not move the log on (a managed server): it goes by itself
    as the server writes on.
    """
    with (
        mapped(),
        psycopg.connect(
            owner_url, autocommit=True, prepare_threshold=None, connect_timeout=10
        ) as connection,
    ):
        connection.execute("select set_config('lock_timeout', %s, false)", (_LOCK_TIMEOUT,))
        _wait_for_readers(connection)
        tables = [name for (name,) in connection.execute(_TABLES).fetchall()]
        for name in tables:
            table = sql.Identifier("veilrag", name)
            connection.execute(sql.SQL("vacuum (full, analyze) {}").format(table))
        # what the planner noted of the old rows stays in its own table until that is written anew;
        # where the login may not do so a warning says it, no error
        connection.execute("vacuum (full) pg_catalog.pg_statistic")
        return Purged(len(tables), _move_log(connection))


def _wait_for_readers(connection: _Connection) -> None:
    """A rewrite keeps every row that some open transaction may still look at."""
    row = connection.execute("select pg_current_xact_id()::xid::text").fetchone()
    assert row is not None
    deadline = time.monotonic() + _WAIT_SECONDS
    while True:
        open_ones = connection.execute(_OLDER_SNAPSHOTS, {"horizon": row[0]}).fetchone()
        if open_ones is None or open_ones[0] == 0:
            return
        if time.monotonic() > deadline:
            raise Conflict("A transaction stays open that may still see deleted rows; try again.")
        time.sleep(0.1)


def _move_log(connection: _Connection) -> bool:
    """Checkpoint, begin a new segment, checkpoint: the segments before it are removed."""
    try:
        for _ in range(2):
            connection.execute("checkpoint")
            connection.execute("select pg_switch_wal()")
        connection.execute("checkpoint")
    except psycopg.errors.InsufficientPrivilege:
        return False
    return True
