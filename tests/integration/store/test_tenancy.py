"""Row-level security holds for the service's role, and the service serves under no other."""

from __future__ import annotations

from collections.abc import Iterator
from uuid import UUID, uuid4

import numpy as np
import psycopg
import pytest

from rag.errors import Misconfigured, NotFound
from rag.store import Store
from rag.store.pool import Pool
from rag.store.statements import statement
from rag.testing.database import Server, database_settings, postgres_server
from rag.types import Alias, ChunkDraft, Document, EntityType, Space, Span

SPACE = Space("m", 2)
TENANT_TABLES = [
    "tenants", "collections", "documents", "chunks", "spans", "aliases", "subjects",
    "subject_chunks", "threads", "turns", "thread_mapping", "api_keys", "key_collections",
    "contents",
]  # fmt: skip


async def fill(store: Store, tenant: UUID, word: str) -> UUID:
    async with store._pool.transaction(tenant) as connection:
        await connection.execute(
            "insert into veilrag.tenants (id, name) values (%s, %s) on conflict do nothing",
            (tenant, "other"),
        )
    done = await store.documents(tenant).put(
        "default",
        SPACE,
        Document("a.md", word, {"team": word}),
        "h",
        "d",
        [ChunkDraft(0, 0, len(word))],
        np.array([[1, 0]], np.float32),
        [Span(0, 1, EntityType.PERSON)],
        [Alias(1, 1, 1, EntityType.PERSON)],
    )
    assert done.id is not None
    return done.id


@pytest.mark.parametrize("table", TENANT_TABLES)
async def test_every_tenant_table_is_under_forced_security(database: str, table: str) -> None:
    """Security is enabled and forced, with a policy, on each table that holds a tenant."""
    with psycopg.connect(database) as connection:
        row = connection.execute(
            "select relrowsecurity, relforcerowsecurity, "
            "exists (select from pg_policy where polrelid = c.oid) "
            "from pg_class c where c.oid = %s::regclass",
            (f"veilrag.{table}",),
        ).fetchone()
    assert row == (True, True, True)


async def test_no_tenant_table_was_forgotten(database: str) -> None:
    """Tables with a tenant column are those of this list; another one must be added to both."""
    with psycopg.connect(database) as connection:
        rows = connection.execute(
            "select c.table_name from information_schema.columns c "
            "join information_schema.tables t using (table_schema, table_name) "
            "where table_schema = 'veilrag' and column_name = 'tenant' "
            "and table_type = 'BASE TABLE'"
        ).fetchall()
    assert {name for (name,) in rows} | {"tenants"} == set(TENANT_TABLES)


@pytest.mark.parametrize("table", TENANT_TABLES)
async def test_without_a_tenant_nothing_is_seen(store: Store, table: str) -> None:
    """A transaction that names no tenant sees no row (fails closed)."""
    await fill(store, store.default_tenant, "granite")
    async with store._pool.transaction(None) as connection:
        row = await (
            await connection.execute(f"select count(*) from veilrag.{table}".encode())
        ).fetchone()
    assert row == (0,)


async def test_two_tenants_hold_the_same_names_apart(store: Store) -> None:
    """Same collection, same source: each tenant sees its own document and no other (I8)."""
    other = uuid4()
    mine, theirs = (
        await fill(store, store.default_tenant, "granite"),
        await fill(store, other, "basalt"),
    )
    for tenant, own, word, foreign in (
        (store.default_tenant, mine, "granite", "basalt"),
        (other, theirs, "basalt", "granite"),
    ):
        search = await store.search(tenant, ["default"], SPACE)
        found = await search.dense(np.array([1, 0], np.float32), 9, {})
        assert [hit.chunk.text for hit in found] == [word]
        assert [hit.chunk.text for hit in await search.lexical(f"{word} {foreign}", 9, {})] == [
            word
        ]
        documents = store.documents(tenant)
        assert [stored.id for stored in await documents.list_page("default", 9, None)] == [own]
    with pytest.raises(NotFound):
        await store.documents(other).get(mine)
    with pytest.raises(NotFound):
        await store.documents(other).respan(mine, "d", [], [])


async def test_fill_gives_no_spans_of_another_tenants_chunk(store: Store) -> None:
    """A hit that was found by one tenant is nothing to another."""
    await fill(store, store.default_tenant, "granite")
    search = await store.search(store.default_tenant, ["default"], SPACE)
    hits = await search.lexical("granite", 5, {})
    other = uuid4()
    await fill(store, other, "basalt")
    assert await (await store.search(other, ["default"], SPACE)).fill(hits) == []


async def test_a_row_cannot_be_written_for_another_tenant(store: Store) -> None:
    """Neither by insert nor by COPY."""
    await fill(store, store.default_tenant, "granite")
    with pytest.raises(Misconfigured):
        async with store._pool.transaction(uuid4()) as connection:
            await connection.execute(
                "insert into veilrag.collections (tenant, id, name) values (%s, %s, 'x')",
                (store.default_tenant, uuid4()),
            )
    with pytest.raises(Misconfigured):
        await copy_span(store, uuid4())


async def copy_span(store: Store, acting: UUID) -> None:
    """A span of the default tenant, by COPY, while another tenant acts."""
    async with (
        store._pool.transaction(acting) as connection,
        connection.cursor().copy(statement("copy_spans")) as copy,
    ):
        copy.set_types(["uuid", "uuid", "int4", "int4", "text", "float4"])
        await copy.write_row((store.default_tenant, uuid4(), 0, 1, "PERSON", 1.0))


async def test_the_tenant_does_not_outlive_its_transaction(database: str) -> None:
    """On a pool of one connection neither role nor tenant sticks to the connection."""
    async with Pool(database, size=1, timeout=4) as pool:
        async with pool.transaction(UUID(int=1)) as connection:
            row = await (
                await connection.execute("select veilrag.tenant(), current_user")
            ).fetchone()
            assert row == (UUID(int=1), "veilrag_app")
        own = await pool._opened().getconn()
        try:
            row = await (await own.execute("select veilrag.tenant(), current_user")).fetchone()
        finally:
            await pool._opened().putconn(own)
        assert row == (None, "postgres")


async def test_an_api_key_is_seen_by_who_presents_it(store: Store) -> None:
    """A key's row is visible without a tenant to its own hash alone."""
    async with store._pool.transaction(store.default_tenant) as connection:
        for name in ("one", "two"):
            await connection.execute(
                "insert into veilrag.api_keys (tenant, id, name, key_hash) values (%s,%s,%s,%s)",
                (store.default_tenant, uuid4(), name, name.encode()),
            )
    async with store._pool.transaction(None) as connection:
        await connection.execute(
            "select set_config('veilrag.key_hash', encode('one'::bytea, 'hex'), true)"
        )
        rows = await (await connection.execute("select name from veilrag.api_keys")).fetchall()
    assert rows == [("one",)]


async def test_another_secret_is_refused(database: str) -> None:
    """A database filled under one key does not open under another: its hashes would miss (I1)."""
    async with Store.open(database_settings(database)):
        pass
    with pytest.raises(Misconfigured, match="VEILRAG_SECRET_KEY"):
        async with Store.open(database_settings(database, secret_key="another key " * 4)):
            pass


async def test_a_database_url_requires_a_secret(database: str) -> None:
    """No key is invented on one machine of several."""
    with pytest.raises(Misconfigured, match="VEILRAG_SECRET_KEY"):
        async with Store.open(database_settings(database, secret_key=None)):
            pass


@pytest.fixture(scope="module")
def spare() -> Iterator[Server]:
    """A server whose roles may be spoilt."""
    with postgres_server() as running:
        yield running


@pytest.mark.parametrize(
    ("spoil", "mend"),
    [
        ("alter role veilrag_app superuser", "alter role veilrag_app nosuperuser"),
        ("alter role veilrag_app bypassrls", "alter role veilrag_app nobypassrls"),
        ("alter table veilrag.chunks owner to veilrag_app", "select 1"),
        ("grant postgres to veilrag_app", "revoke postgres from veilrag_app"),
        ("alter table veilrag.spans no force row level security", "select 1"),
        ("alter table veilrag.aliases disable row level security", "select 1"),
    ],
)
async def test_a_role_that_policies_do_not_hold_is_refused(
    spare: Server, spoil: str, mend: str
) -> None:
    """Superuser, BYPASSRLS, owner, member of the owner, or a table let go: no start."""
    with spare.database() as url:
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute(spoil.encode())
        try:
            with pytest.raises(Misconfigured):
                async with Store.open(database_settings(url)):
                    pass
        finally:
            with psycopg.connect(url, autocommit=True) as connection:
                connection.execute(mend.encode())


async def test_a_login_that_may_not_take_the_role_is_refused(spare: Server) -> None:
    """A login without the service's role does not serve as itself instead."""
    with spare.database() as url:
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute("create role stranger login")
            name = connection.info.dbname
        with pytest.raises(Misconfigured):
            async with Store.open(
                database_settings(spare.endpoint.url("stranger", name)), migrating=False
            ):
                pass


async def test_the_service_login_serves_without_migrating(spare: Server) -> None:
    """The embedded server's own way: log in as the service's role, tables made by the owner."""
    with spare.database() as url:
        with psycopg.connect(url) as connection:
            name = connection.info.dbname
        own = database_settings(spare.endpoint.url("veilrag_app", name))
        async with Store.open(own, migrating=False) as store:
            await store.ping()


async def test_a_space_cannot_change_under_documents(store: Store) -> None:
    """Even a direct update is refused by the database, so spaces are never mixed."""
    await fill(store, store.default_tenant, "granite")
    with pytest.raises(NotFound):
        await change_space(store)


async def change_space(store: Store) -> None:
    async with store._pool.transaction(store.default_tenant) as connection:
        await connection.execute(statement("add_space"), {"model": "other", "dimension": 3})
        await connection.execute(
            "update veilrag.collections set space = "
            "(select id from veilrag.spaces where model = 'other')"
        )
