"""Connections: the one place where transactions begin and where psycopg's errors become ours.

Every transaction opens by taking the service's role and naming its tenant, both local to
it, so that behind a transaction-pooling proxy nothing sticks to a connection (I8); nothing
is ever prepared, so that each query is planned for its own values. psycopg's texts carry
values (``Key (alias)=(…)``), so errors are mapped by SQLSTATE alone and raised ``from
None`` (I6).
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from types import TracebackType
from typing import TYPE_CHECKING, Any
from uuid import UUID
from weakref import WeakKeyDictionary

import psycopg

from rag.errors import (
    Conflict,
    DatabaseFailed,
    DatabaseUnavailable,
    Misconfigured,
    NotFound,
    VeilragError,
)
from rag.store.statements import statement

if TYPE_CHECKING:
    from psycopg_pool import AsyncConnectionPool

Connection = psycopg.AsyncConnection[tuple[Any, ...]]

ROLE = "veilrag_app"
STATEMENT_SECONDS = 60
FRESH_SECONDS = 0.5
"""A connection that answered so lately is not asked again before its next transaction."""

_BY_STATE: dict[str, tuple[type[VeilragError], str]] = {
    "23505": (Conflict, "That is stored already."),
    "23503": (NotFound, "What that belongs to is not there (any more)."),
    "57014": (DatabaseUnavailable, "The database took too long."),
    "42501": (Misconfigured, "The database login may not do what the service needs."),
    "42P01": (Misconfigured, "The database lacks our tables: run `veilrag migrate`."),
    "3F000": (Misconfigured, "The database lacks our tables: run `veilrag migrate`."),
    "3D000": (Misconfigured, "There is no database of that name."),
    "22023": (Misconfigured, f"The role {ROLE} is missing: run `veilrag migrate`."),
}
_CUT = frozenset({"57P01", "57P02", "57P03", "08000", "08003", "08006"})
"""The server ended the connection: nothing of the statement was done."""

_BY_CLASS: dict[str, tuple[type[VeilragError], str]] = {
    "08": (DatabaseUnavailable, "The database cannot be reached."),
    "28": (Misconfigured, "The database refused the login."),
    "40": (DatabaseUnavailable, "The database asks to try again."),
    "53": (DatabaseUnavailable, "The database is out of resources."),
    "55": (DatabaseUnavailable, "The database is busy."),
    "57": (DatabaseUnavailable, "The database is shutting down or starting up."),
    "58": (DatabaseUnavailable, "The database has trouble with its system."),
}


def translated(error: psycopg.Error) -> VeilragError:
    """Our error for psycopg's, by its SQLSTATE; no word of its text."""
    state = error.sqlstate
    if state is None:
        if isinstance(error, psycopg.OperationalError):
            return DatabaseUnavailable()
        return DatabaseFailed(f"The database driver failed ({type(error).__name__}).")
    kind, message = _BY_STATE.get(state) or _BY_CLASS.get(state[:2]) or (DatabaseFailed, "")
    return kind(message or f"The database refused a statement (SQLSTATE {state}).")


def _opening(tenant: UUID | None) -> dict[str, str]:
    return {
        "role": ROLE,
        "tenant": "" if tenant is None else str(tenant),
        "timeout": f"{STATEMENT_SECONDS}s",
    }


@contextmanager
def mapped() -> Iterator[None]:
    """Around everything that speaks to the database."""
    try:
        yield
    except psycopg.Error as error:
        raise translated(error) from None


class Pool:
    """At most ``size`` connections; waits for one up to ``timeout`` seconds."""

    def __init__(self, url: str, *, size: int, timeout: float) -> None:
        self._url = url
        self._size = size
        self._timeout = timeout
        self._pool: AsyncConnectionPool[Connection] | None = None
        self._pending: set[asyncio.Task[Connection]] = set()
        self._answered: WeakKeyDictionary[Connection, float] = WeakKeyDictionary()

    async def __aenter__(self) -> Pool:
        from psycopg_pool import AsyncConnectionPool

        with mapped():
            self._pool = AsyncConnectionPool(
                self._url,
                min_size=0,
                max_size=self._size,
                open=False,
                timeout=self._timeout,
                # Give up soon on what fails: psycopg doubles its delays, and who comes
                # after the outage would wait for an attempt planned during it.
                reconnect_timeout=1.0,
                name="veilrag",
                kwargs={
                    "autocommit": True,
                    "prepare_threshold": None,
                    "connect_timeout": max(2, int(self._timeout)),
                    "application_name": "veilrag",
                },
            )
            await self._pool.open()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._pool is not None:
            await self._pool.close(timeout=5.0)
            self._pool = None

    @asynccontextmanager
    async def transaction(self, tenant: UUID | None) -> AsyncIterator[Connection]:
        """One transaction as the service's role, seeing the rows of ``tenant`` only.

        With ``None`` it sees the rows of nobody.
        """
        with mapped():
            connection = await self._acquire()
            try:
                async with connection.transaction():
                    await connection.execute(statement("open_transaction"), _opening(tenant))
                    yield connection
            finally:
                await self._release(connection)

    async def fetch(
        self, tenant: UUID, name: str, parameters: Mapping[str, Any]
    ) -> list[tuple[Any, ...]]:
        """Rows of one reading statement: its whole transaction in one round trip.

        A connection that answered just now is used unasked; should it be cut all the same,
        the statement is sent once more, on one that answers.
        """
        with mapped():
            try:
                return await self._fetch(tenant, name, parameters, asked=False)
            except psycopg.OperationalError as error:
                if error.sqlstate is not None and error.sqlstate not in _CUT:
                    raise
            return await self._fetch(tenant, name, parameters, asked=True)

    async def _fetch(
        self, tenant: UUID, name: str, parameters: Mapping[str, Any], *, asked: bool
    ) -> list[tuple[Any, ...]]:
        connection = await self._acquire(asked=asked)
        try:
            async with connection.pipeline(), connection.transaction():
                await connection.execute(statement("open_transaction"), _opening(tenant))
                cursor = await connection.execute(statement(name), parameters)
            rows = await cursor.fetchall()
            self._answered[connection] = time.monotonic()
            return rows
        finally:
            await self._release(connection)

    async def ping(self) -> None:
        """Raises ``DatabaseUnavailable`` or ``Misconfigured``."""
        async with self.transaction(None) as connection:
            await connection.execute(statement("ping"))

    def _opened(self) -> AsyncConnectionPool[Connection]:
        if self._pool is None:
            raise DatabaseUnavailable("The store is not open.")
        return self._pool

    async def _acquire(self, *, asked: bool = True) -> Connection:
        """A checked connection, in time even when the server is frozen.

        psycopg would wait for a frozen server's answer to a cancellation: so the attempt
        is a task of its own, which we leave behind when time is up or we are cancelled;
        what it still gets goes back to the pool.
        """
        task = asyncio.ensure_future(self._checked(self._opened(), asked))
        try:
            done, _ = await asyncio.wait({task}, timeout=self._timeout)
        except asyncio.CancelledError:
            self._abandon(task)
            raise
        if not done:
            self._abandon(task)
            raise DatabaseUnavailable()
        return task.result()

    async def _checked(
        self, pool: AsyncConnectionPool[Connection], asked: bool = True
    ) -> Connection:
        """A connection that answers, or unless ``asked`` one that did just now.

        The broken ones are dropped one after the other, at once: psycopg's own check waits
        longer after each, so that a cut of all connections would take longer to get over
        than a request may take.
        """
        deadline = time.monotonic() + self._timeout
        tries = 0
        while True:
            connection = await pool.getconn(max(0.0, deadline - time.monotonic()))
            lately = self._answered.get(connection, 0.0)
            if not asked and time.monotonic() - lately < FRESH_SECONDS:
                return connection
            try:
                await connection.execute("")
            except psycopg.OperationalError:
                await pool.putconn(connection)
            except BaseException:
                await pool.putconn(connection)
                raise
            else:
                return connection
            tries += 1
            if tries > self._size:
                await asyncio.sleep(0.1)

    def _abandon(self, task: asyncio.Task[Connection]) -> None:
        cleaning = asyncio.ensure_future(self._give_back(task))
        self._pending.add(cleaning)
        cleaning.add_done_callback(self._pending.discard)
        task.cancel()

    async def _give_back(self, task: asyncio.Task[Connection]) -> Any:
        await asyncio.wait({task})
        if not task.cancelled() and task.exception() is None:
            await self._release(task.result())

    async def _release(self, connection: Connection) -> None:
        """Hand it back, whole even when we are cancelled meanwhile."""
        if self._pool is None:
            await connection.close()
            return
        task = asyncio.ensure_future(self._pool.putconn(connection))
        try:
            await asyncio.shield(task)
        except asyncio.CancelledError:
            await asyncio.wait({task})
            raise
