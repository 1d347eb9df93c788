"""The database: reached, new enough, up to date, under a role that row rules hold, silent."""

from __future__ import annotations

from collections.abc import Mapping

from rag.doctor.findings import Finding
from rag.errors import VeilragError
from rag.settings import Settings

PART = "database"
_OWN = "Is the server up, and is DATABASE_URL right (host, port, name, login)?"
_EMBEDDED = "Is the disk full, or the data folder another user's? Its log is postgres.log there."
_SILENT = (
    "Let an administrator run, for the service's login: ALTER ROLE ... SET log_statement = "
    "'none'; SET log_min_duration_statement = -1; SET log_min_messages = 'fatal'; "
    "SET log_parameter_max_length = 0."
)


async def examine_database(settings: Settings) -> list[Finding]:
    if settings.database_url is None and not _is_made(settings):
        return [_not_yet()]
    from rag.store.health import reached

    try:
        async with reached(settings) as health:
            findings = [
                Finding.ok(PART, "server", _served(settings, health.version)),
                _pgvector(health.pgvector),
                _migrations(health.pending),
                _login(health.powerful),
                _log(health.logging),
            ]
            if not health.pending:
                findings.append(await _store(settings))
            return findings
    except VeilragError as error:
        advice = _EMBEDDED if settings.database_url is None else _OWN
        return [Finding.fail(PART, "server", error.message, advice)]


def _is_made(settings: Settings) -> bool:
    return (settings.data_dir.expanduser() / "postgres" / "PG_VERSION").exists()


def _not_yet() -> Finding:
    """An embedded server that was never started is not started by an examination."""
    from rag.store.embedded import binaries

    try:
        binaries()
    except VeilragError as error:
        return Finding.fail(PART, "server", "no embedded database", error.message)
    return Finding.ok(PART, "server", "embedded, not there yet: made at first use")


def _served(settings: Settings, version: str) -> str:
    kind = "embedded" if settings.database_url is None else "own"
    return f"PostgreSQL {version}, {kind}"


def _pgvector(version: str | None) -> Finding:
    from rag.store.migrate import LEAST_PGVECTOR

    least = ".".join(map(str, LEAST_PGVECTOR))
    if version is None:
        found = "not installed in this database"
        advice = f"Migrating installs it where it may; else CREATE EXTENSION vector (>= {least})."
        return Finding.warn(PART, "pgvector", found, advice)
    if tuple(int(part) for part in version.split(".")[:2]) < LEAST_PGVECTOR:
        advice = f"Install {least} or newer, then ALTER EXTENSION vector UPDATE."
        return Finding.fail(PART, "pgvector", version, advice)
    return Finding.ok(PART, "pgvector", version)


def _migrations(pending: tuple[str, ...]) -> Finding:
    if pending:
        advice = "Run `veilrag migrate`; the service also does at its start."
        return Finding.warn(PART, "tables", f"{len(pending)} migrations to be applied", advice)
    return Finding.ok(PART, "tables", "up to date")


def _login(powerful: bool) -> Finding:
    if powerful:
        advice = "Give the service a login of its own: NOSUPERUSER NOBYPASSRLS."
        return Finding.warn(PART, "login", "is a superuser or passes by row-level rules", advice)
    return Finding.ok(PART, "login", "no superuser, held by row-level security")


def _log(logging: Mapping[str, str]) -> Finding:
    from rag.store.health import shown_by_log

    shown = shown_by_log(logging)
    if shown:
        found = f"its log can show your words: {', '.join(shown)}"
        return Finding.warn(PART, "server log", found, _SILENT)
    return Finding.ok(PART, "server log", "shows no statements, values or error texts")


async def _store(settings: Settings) -> Finding:
    """What the service itself insists on when it opens: its role and its secret."""
    from rag.store import Store

    try:
        async with Store.open(settings, migrating=False) as store:
            await store.ping()
    except VeilragError as error:
        return Finding.fail(PART, "role and key", error.message)
    return Finding.ok(PART, "role and key", "the service may open it; the key is the one in use")
