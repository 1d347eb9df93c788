"""What was deleted leaves the files: searched for, byte by byte."""

from __future__ import annotations

import asyncio
import random
import shutil
import string
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path

import numpy as np
import psycopg
import pytest

from rag.errors import Conflict
from rag.store import Store, purge
from rag.store.embedded import embedded
from rag.testing.database import database_settings
from rag.types import Alias, ChunkDraft, Document, EntityType, Space, Span

SPACE = Space("m", 2)
SHORT = "Quillfeather-7431"
KEPT = "Thistlewood-1122"


def noise(seed: int, length: int) -> str:
    """Text that does not compress, so that its bytes lie in the files as they are."""
    letters = string.ascii_letters + string.digits
    return "".join(random.Random(seed).choices(letters, k=length))


LONG = noise(1, 20_000)
MARKERS = [SHORT, "quillfeath", LONG[:40], LONG[9_000:9_040], LONG[-40:], "team-" + SHORT]


def held(folder: Path, marker: str) -> list[str]:
    """The files under ``folder`` that hold the marker."""
    needle = marker.encode()
    return [
        str(path.relative_to(folder))
        for path in sorted(folder.rglob("*"))
        if path.is_file() and needle in path.read_bytes()
    ]


@pytest.fixture
async def place() -> AsyncIterator[tuple[Path, Store]]:
    folder = Path(tempfile.mkdtemp(prefix="veilrag-test-"))
    async with (
        embedded(folder, durable=False) as endpoint,
        Store.open(database_settings(endpoint.owner_url)) as store,
    ):
        yield folder, store
    shutil.rmtree(folder, ignore_errors=True)


async def put(store: Store, source: str, words: str) -> None:
    content = f"{words} lives here.\n{LONG if words == SHORT else noise(2, 500)}"
    cut = len(content) // 2
    await store.documents(store.default_tenant).put(
        "default",
        SPACE,
        Document(source, content, {"team": "team-" + words}),
        "h",
        "d",
        [ChunkDraft(0, 0, cut, ((0, len(words)),)), ChunkDraft(1, cut, len(content))],
        np.ones((2, 2), np.float32),
        [Span(0, len(words), EntityType.PERSON)],
        [Alias(1, 1, 1, EntityType.PERSON)],
    )


async def test_purged_text_is_in_no_file(place: tuple[Path, Store]) -> None:
    """After deleting and purging, neither tables, indexes, statistics nor log hold a marker."""
    folder, store = place
    with psycopg.connect(store.owner_url, autocommit=True) as connection:
        connection.execute("select pg_switch_wal()")
    await put(store, f"{SHORT}.md", SHORT)
    await put(store, f"{SHORT}.md", SHORT)
    for n in range(3):
        await put(store, f"{KEPT}-{n}.md", KEPT)
    with psycopg.connect(store.owner_url, autocommit=True) as connection:
        connection.execute("analyze")
        connection.execute("checkpoint")
    there = {marker: held(folder, marker) for marker in MARKERS}
    assert all(there.values()), "the search finds what is there"
    documents = store.documents(store.default_tenant)
    found = await documents.find("default", f"{SHORT}.md")
    assert found is not None
    await documents.delete(found[0])
    done = await asyncio.to_thread(purge.purge, store.owner_url)
    assert done.log
    assert {marker: held(folder, marker) for marker in MARKERS} == {m: [] for m in MARKERS}
    assert held(folder, KEPT)
    search = await store.search(store.default_tenant, ["default"], SPACE)
    assert len(await search.lexical(KEPT, 9, {})) >= 3


async def test_an_old_version_is_purged_too(place: tuple[Path, Store]) -> None:
    """Replacing a document leaves its old text to the purge as well."""
    folder, store = place
    await put(store, "a.md", SHORT)
    await put(store, "a.md", KEPT)
    await asyncio.to_thread(purge.purge, store.owner_url)
    assert [held(folder, marker) for marker in MARKERS] == [[] for _ in MARKERS]


async def test_an_open_reader_makes_the_purge_say_so(
    place: tuple[Path, Store], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows that an open transaction may still see are not claimed to be gone."""
    _, store = place
    monkeypatch.setattr(purge, "_WAIT_SECONDS", 0.5)
    with psycopg.connect(store.owner_url) as reader:
        reader.execute("set transaction isolation level repeatable read")
        reader.execute("select count(*) from veilrag.documents")
        with pytest.raises(Conflict):
            await asyncio.to_thread(purge.purge, store.owner_url)
    await asyncio.to_thread(purge.purge, store.owner_url)


async def test_forms_are_kept_as_hashes_only(place: tuple[Path, Store]) -> None:
    """The table of forms has no column that could hold text of a form."""
    _, store = place
    with psycopg.connect(store.owner_url) as connection:
        rows = connection.execute(
            "select column_name from information_schema.columns where table_schema = 'veilrag' "
            "and table_name = 'aliases' and data_type in ('text', 'json', 'jsonb', 'bytea')"
        ).fetchall()
    assert rows == [("type",)]
