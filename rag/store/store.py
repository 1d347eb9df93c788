"""The whole store as one resource: opened by the engine, handing out tenant-bound parts.

Opening starts the embedded server where no ``DATABASE_URL`` is set, brings the tables up to
date, and refuses to serve under a role that row-level security does not hold (I8) or under
another secret than the hashes were made with (I1).
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from hmac import compare_digest
from uuid import UUID

from rag.errors import Misconfigured
from rag.settings import Settings
from rag.store.aliases import PostgresAliases
from rag.store.chunks import PostgresChunks, View
from rag.store.cleaning import clean
from rag.store.documents import PostgresDocuments
from rag.store.embedded import embedded
from rag.store.migrate import migrate
from rag.store.pool import Pool
from rag.store.purge import Purged, purge
from rag.store.secrets import FINGERPRINT, derive, load_secret
from rag.store.spaces import find_collections, space_id
from rag.store.statements import statement
from rag.types import Space

DEFAULT_TENANT = UUID(int=1)


class Search(PostgresChunks, PostgresAliases):
    """What one caller may read: ``ChunkSearch`` and ``AliasIndex`` over the same collections."""

    def __init__(self, view: View) -> None:
        PostgresChunks.__init__(self, view)
        PostgresAliases.__init__(self, view.pool, view.tenant, view.collections)


class Store:
    """An open store. Made by ``Store.open``."""

    def __init__(self, pool: Pool, secret: bytes, owner_url: str) -> None:
        self._pool = pool
        self._secret = secret
        self.owner_url = owner_url
        """For ``migrate`` and ``purge``; holds a password where ``DATABASE_URL`` does."""

    @staticmethod
    @asynccontextmanager
    async def open(settings: Settings, *, migrating: bool = True) -> AsyncIterator[Store]:
        """Raises ``Misconfigured`` or ``DatabaseUnavailable``.

        ``migrating=False`` leaves the tables alone, for a login that may not change them.
        """
        async with AsyncExitStack() as stack:
            secret = load_secret(settings)
            owner_url, service_url = await stack.enter_async_context(urls(settings))
            if migrating:
                await asyncio.to_thread(migrate, owner_url)
            pool = await stack.enter_async_context(
                Pool(service_url, size=settings.pool_size, timeout=settings.database_timeout)
            )
            await _check_role(pool)
            await _check_secret(pool, secret)
            yield Store(pool, secret, owner_url)

    @property
    def default_tenant(self) -> UUID:
        """The tenant of a service without keys."""
        return DEFAULT_TENANT

    def documents(self, tenant: UUID) -> PostgresDocuments:
        return PostgresDocuments(self._pool, tenant)

    async def search(self, tenant: UUID, collections: Sequence[str], space: Space) -> Search:
        """The reading side of those collections.

        Raises ``NotFound`` for an unknown collection, ``SpaceMismatch`` when one holds
        documents of another space. A collection without documents is found and empty.
        """
        async with self._pool.transaction(tenant) as connection:
            found = await find_collections(connection, [clean(name) for name in collections])
            for collection in found:
                collection.require(space)
            number = await space_id(connection, space)
        languages = sorted({language for home in found for language in home.languages})
        return Search(
            View(
                pool=self._pool,
                tenant=tenant,
                collections=tuple(home.id for home in found),
                languages=tuple(languages),
                space=space,
                space_id=number,
            )
        )

    async def search_all(self, tenant: UUID) -> PostgresAliases:
        """The forms that any collection of the tenant knows, whatever its space."""
        async with self._pool.transaction(tenant) as connection:
            rows = await (await connection.execute(statement("all_collections"))).fetchall()
        own = tuple(row[0] for row in rows)
        return PostgresAliases(self._pool, tenant, own)

    def subkey(self, purpose: str) -> bytes:
        """A 32-byte key of the store's secret for one purpose: ``aliases``, ``sealing``."""
        return derive(self._secret, purpose)

    async def ping(self) -> None:
        """Raises ``DatabaseUnavailable`` or ``Misconfigured``."""
        await self._pool.ping()


async def migrate_database(settings: Settings) -> list[str]:
    """Bring the schema up to date; the migrations applied. Starts the embedded server if unset."""
    async with urls(settings) as (owner_url, _):
        return await asyncio.to_thread(migrate, owner_url)


async def purge_database(settings: Settings) -> Purged:
    """Take deleted documents out of the data files."""
    async with urls(settings) as (owner_url, _):
        return await asyncio.to_thread(purge, owner_url)


@asynccontextmanager
async def urls(settings: Settings) -> AsyncIterator[tuple[str, str]]:
    """The owner's URL and the service's; the embedded server runs while the block lasts."""
    if settings.database_url is not None:
        url = database_url(settings)
        yield url, url
        return
    async with embedded(settings.data_dir) as endpoint:
        yield endpoint.owner_url, endpoint.service_url


def database_url(settings: Settings) -> str:
    """``DATABASE_URL``, with the password that stands apart from it where one does.

    Raises ``Misconfigured`` when there is none, or it cannot be read.
    """
    from psycopg import ProgrammingError
    from psycopg.conninfo import make_conninfo

    if settings.database_url is None:
        raise Misconfigured("DATABASE_URL is not set.")
    apart = settings.database_password
    try:
        return make_conninfo(
            settings.database_url.get_secret_value(),
            **({"password": apart.get_secret_value()} if apart else {}),
        )
    except ProgrammingError:
        raise Misconfigured("DATABASE_URL cannot be read.") from None


async def _check_role(pool: Pool) -> None:
    """The role in force must be one that row-level security holds."""
    async with pool.transaction(None) as connection:
        row = await (await connection.execute(statement("role_powers"))).fetchone()
        bare = await (await connection.execute(statement("open_tables"))).fetchall()
    if row is None or any(row):
        raise Misconfigured(
            "The database role of the service is a superuser, bypasses row-level security or owns "
            "the tables; it must do none of these."
        )
    if bare:
        names = ", ".join(name for (name,) in bare)
        raise Misconfigured(f"These tables are not under forced row-level security: {names}.")


async def _check_secret(pool: Pool, secret: bytes) -> None:
    own = derive(secret, FINGERPRINT)
    async with pool.transaction(None) as connection:
        await connection.execute(statement("keep_fingerprint"), {"fingerprint": own})
        row = await (await connection.execute(statement("fingerprint"))).fetchone()
    if row is None or not compare_digest(bytes(row[0]), own):
        raise Misconfigured(
            "VEILRAG_SECRET_KEY is not the key that this database was filled under."
        )
