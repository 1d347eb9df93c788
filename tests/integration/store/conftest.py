"""A real Postgres for the store's tests: one server a session, a cloned database a test."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import pytest

from rag.store import Store
from rag.testing.database import Server, database_settings, postgres_server


@pytest.fixture(scope="session")
def server() -> Iterator[Server]:
    with postgres_server() as running:
        yield running


@pytest.fixture
def database(server: Server) -> Iterator[str]:
    """The owner's URL of a migrated database."""
    with server.database() as url:
        yield url


@pytest.fixture
async def store(database: str) -> AsyncIterator[Store]:
    async with Store.open(database_settings(database, pool_size=4)) as opened:
        yield opened
