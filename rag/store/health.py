"""What can be known of the database before it serves: for ``veilrag doctor``.

Nothing is changed: no table made, no migration applied. What the server would write into
its log of our statements is asked of the server itself, as the service's login (I6).
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass

import psycopg

from rag.errors import DatabaseUnavailable
from rag.settings import Settings
from rag.store.migrate import pending
from rag.store.pool import mapped
from rag.store.statements import statement
from rag.store.store import urls

NO_SAMPLES = "-1"
_NAMES = (
    *("log_statement", "log_min_duration_statement", "log_min_duration_sample"),
    *("log_statement_sample_rate", "log_transaction_sample_rate", "log_parameter_max_length"),
    *("log_min_messages", "auto_explain.log_min_duration", "pgaudit.log"),
)
_LEAST_SECONDS = 2


@dataclass(frozen=True, slots=True)
class Health:
    """A database that answers. ``pgvector`` is ``None`` where it is not installed in it."""

    version: str
    pgvector: str | None
    pending: tuple[str, ...]
    powerful: bool
    """The service's login is a superuser, or row-level security does not hold it."""
    logging: Mapping[str, str]


@asynccontextmanager
async def reached(settings: Settings) -> AsyncIterator[Health]:
    """The database's health; an embedded server runs while the block lasts.

    Raises ``DatabaseUnavailable`` and ``Misconfigured``.
    """
    async with urls(settings) as (owner_url, service_url):
        seconds = max(_LEAST_SECONDS, int(settings.database_timeout))
        try:
            async with asyncio.timeout(seconds * 3):
                health = await asyncio.to_thread(_look, owner_url, service_url, seconds)
        except TimeoutError:
            raise DatabaseUnavailable("The database did not answer in time.") from None
        yield health


def _look(owner_url: str, service_url: str, seconds: int) -> Health:
    with (
        mapped(),
        psycopg.connect(
            service_url, connect_timeout=seconds, prepare_threshold=None, autocommit=True
        ) as connection,
    ):
        facts = connection.execute(statement("server_facts")).fetchone()
        rows = connection.execute(statement("logging_settings"), {"names": list(_NAMES)})
        logging: dict[str, str] = dict(rows.fetchall())
    if facts is None:
        raise DatabaseUnavailable
    return Health(
        version=facts[0].partition(" ")[0],
        pgvector=facts[1],
        pending=tuple(pending(owner_url)),
        powerful=bool(facts[2]),
        logging=logging,
    )


def shown_by_log(logging: Mapping[str, str]) -> list[str]:
    """The settings by which values of ours would stand in the server's log; none is well."""
    shown = []
    if logging.get("log_parameter_max_length") != "0":
        shown += [f"{name} = {logging[name]}" for name in _logging_statements(logging)]
    if logging.get("log_min_messages") not in {"log", "fatal", "panic"}:
        # the texts and details of errors quote values: Key (source)=(...) already exists
        shown.append(f"log_min_messages = {logging.get('log_min_messages')}")
    if logging.get("auto_explain.log_min_duration", NO_SAMPLES) != NO_SAMPLES:
        shown.append("auto_explain.log_min_duration")
    if logging.get("pgaudit.log", "none") not in {"", "none"}:
        shown.append("pgaudit.log")
    return shown


def _logging_statements(logging: Mapping[str, str]) -> list[str]:
    """Settings by which statements are logged with their parameters."""
    names = []
    if logging.get("log_statement", "none") in {"mod", "all"}:
        names.append("log_statement")
    if logging.get("log_min_duration_statement", NO_SAMPLES) != NO_SAMPLES:
        names.append("log_min_duration_statement")
    if (
        logging.get("log_min_duration_sample", NO_SAMPLES) != NO_SAMPLES
        and float(logging.get("log_statement_sample_rate", "1")) > 0
    ):
        names.append("log_min_duration_sample")
    if float(logging.get("log_transaction_sample_rate", "0")) > 0:
        names.append("log_transaction_sample_rate")
    return names
