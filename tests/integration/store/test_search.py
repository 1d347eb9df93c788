"""Search as the database plans it: exact under policies, indexed words, every dimension."""

from __future__ import annotations

import logging
from collections.abc import Sequence

import numpy as np
import psycopg
import pytest

from rag.errors import InvalidInput
from rag.store import Store
from rag.store.statements import statement
from rag.types import ChunkDraft, Document, EntityType, Space, Span


async def put(
    store: Store,
    space: Space,
    source: str,
    texts: Sequence[str],
    vectors: np.ndarray,
    language: str = "en",
) -> None:
    content = "".join(texts)
    edges = np.cumsum([0, *(len(text) for text in texts)]).tolist()
    drafts = [ChunkDraft(n, edges[n], edges[n + 1]) for n in range(len(texts))]
    document = Document(source, content, language=language)
    await store.documents(store.default_tenant).put(
        "default", space, document, "h", "d", drafts, vectors.astype(np.float32), [], []
    )


@pytest.mark.parametrize("dimension", [1, 256, 2_000, 3_072, 4_001, 16_000])
async def test_every_dimension_is_searched(store: Store, dimension: int) -> None:
    """Also those beyond the limit of an index (4,000), up to the type's own (16,000)."""
    space = Space("m", dimension)
    vectors = np.random.default_rng(1).normal(size=(3, dimension))
    await put(store, space, "a.md", ["one ", "two ", "three"], vectors)
    search = await store.search(store.default_tenant, ["default"], space)
    hits = await search.dense(vectors[1].astype(np.float32), 3, {})
    assert len(hits) == 3
    best = {hit.chunk.text for hit in hits if hit.similarity and hit.similarity > 0.999}
    assert "two " in best


async def test_a_dimension_that_the_type_lacks_is_refused(store: Store) -> None:
    """More than 16,000 is an error of ours before anything is stored."""
    with pytest.raises(InvalidInput):
        await put(store, Space("m", 16_001), "a.md", ["x"], np.ones((1, 16_001)))


async def test_dense_search_is_exact(store: Store, database: str) -> None:
    """It gives what numpy gives, and an approximate index that is there is not chosen."""
    space = Space("m", 16)
    vectors = np.random.default_rng(2).normal(size=(400, 16))
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    await put(store, space, "a.md", [f"{n:>4}" for n in range(400)], vectors)
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute(
            "create index approximate on veilrag.chunks "
            "using hnsw ((embedding::halfvec(16)) halfvec_cosine_ops)"
        )
        connection.execute("analyze")
    query = vectors[7] + 0.1 * vectors[8]
    search = await store.search(store.default_tenant, ["default"], space)
    hits = await search.dense(query.astype(np.float32), 10, {})
    expected = np.argsort(-(vectors @ query))[:10].tolist()
    assert [hit.chunk.n for hit in hits] == expected
    parameters = dense_parameters(store, search, query)
    plan = await explain(
        store, "dense_exact", parameters, "enable_seqscan", "enable_sort", "enable_bitmapscan"
    )
    assert "approximate" not in plan


def dense_parameters(store: Store, search: object, query: np.ndarray) -> dict[str, object]:
    view = search._view  # type: ignore[attr-defined]
    return {
        "embedding": "[" + ",".join(map(str, query)) + "]",
        "collections": list(view.collections),
        "space": view.space_id,
        "filters": "{}",
        "limit": 10,
    }


async def explain(store: Store, name: str, parameters: dict[str, object], *without: str) -> str:
    """The plan that is chosen, ``without`` ways that the planner might rather go."""
    async with store._pool.transaction(store.default_tenant) as connection:
        for way in without:
            await connection.execute("select set_config(%s, 'off', true)", (way,))
        cursor = await connection.execute("explain " + statement(name), parameters)
        return "\n".join(row[0] for row in await cursor.fetchall())


async def test_words_are_looked_up_in_their_index(store: Store, database: str) -> None:
    """Under row-level security the GIN index still serves (its operator is leakproof here)."""
    space = Space("m", 2)
    await put(store, space, "a.md", ["lantern keeper"], np.ones((1, 2)))
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute(
            "insert into veilrag.chunks (tenant, id, collection, document, n, start, stop, "
            "heading, headings, text, language, space, embedding) "
            "select tenant, gen_random_uuid(), collection, document, g, 0, 1, '', '{}', "
            "'filler' || g || ' and words' || g % 7, language, space, embedding "
            "from veilrag.chunks, generate_series(1, 20000) as g"
        )
        connection.execute("vacuum analyze veilrag.chunks")
    search = await store.search(store.default_tenant, ["default"], space)
    parameters = {
        "query": "lantern",
        "languages": ["en"],
        "collections": list(search._view.collections),
        "filters": "{}",
        "limit": 5,
    }
    assert "chunks_words" in await explain(store, "lexical", parameters)
    assert len(await search.lexical("lantern", 99, {})) == 1


async def test_search_works_where_nothing_may_be_leakproof(store: Store, database: str) -> None:
    """Without that mark (no superuser) full-text search is slower and just as right."""
    await put(store, Space("m", 2), "a.md", ["lantern keeper"], np.ones((1, 2)))
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute("alter function pg_catalog.ts_match_vq(tsvector, tsquery) not leakproof")
    search = await store.search(store.default_tenant, ["default"], Space("m", 2))
    assert len(await search.lexical("lantern", 5, {})) == 1


@pytest.mark.parametrize(
    ("language", "text", "query"),
    [
        ("en", "They were running", "run"),
        ("de", "die Häuser der Stadt", "Haus"),
        ("de-AT", "die Häuser der Stadt", "Haus"),
        ("fr", "les maisons vertes", "maison"),
        ("xx", "the plain words", "PLAIN"),
        ("EN", "“quoted” words—dashed", "quoted dashed"),
        ("", "no language said", "language"),
    ],
)
async def test_words_are_stemmed_in_their_language(
    store: Store, language: str, text: str, query: str
) -> None:
    """Each document by its own language; what is not known is compared as it is."""
    await put(store, Space("m", 2), "a.md", [text], np.ones((1, 2)), language)
    await put(store, Space("m", 2), "b.md", ["other things"], np.ones((1, 2)), "ru")
    search = await store.search(store.default_tenant, ["default"], Space("m", 2))
    assert [hit.chunk.source for hit in await search.lexical(query, 5, {})] == ["a.md"]


@pytest.mark.parametrize("text", ["x" * 3_000_000, "ab " * 700_000, "é" * 1_500_000])
async def test_a_huge_chunk_is_stored(store: Store, text: str) -> None:
    """The limits of a tsvector (1 MB) and of a lexeme are no error."""
    await put(store, Space("m", 2), "a.md", [text], np.ones((1, 2)))
    search = await store.search(store.default_tenant, ["default"], Space("m", 2))
    [hit] = await search.dense(np.ones(2, np.float32), 5, {})
    assert len(hit.chunk.text) == len(text)


async def test_many_spans_come_in_one_lookup(
    store: Store, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """``fill`` of ten hits is one transaction with one query (I10)."""
    content = "Orla " * 1_000
    drafts = [ChunkDraft(n, n * 500, (n + 1) * 500) for n in range(10)]
    spans = [Span(n * 5, n * 5 + 4, EntityType.PERSON) for n in range(1_000)]
    await store.documents(store.default_tenant).put(
        "default",
        Space("m", 2),
        Document("a", content),
        "h",
        "d",
        drafts,
        np.ones((10, 2), np.float32),
        spans,
        [],
    )
    search = await store.search(store.default_tenant, ["default"], Space("m", 2))
    hits = await search.dense(np.ones(2, np.float32), 10, {})
    asked: list[object] = []
    execute = psycopg.AsyncConnection.execute

    async def counted(self, query, *args, **kwargs):  # type: ignore[no-untyped-def]
        asked.append(query)
        return await execute(self, query, *args, **kwargs)

    monkeypatch.setattr(psycopg.AsyncConnection, "execute", counted)
    filled = await search.fill(hits)
    assert [len(hit.chunk.spans) for hit in filled] == [100] * 10
    assert asked.count(statement("chunk_spans")) == 1
    assert len(asked) == 2, "the opening and the lookup, in one round trip, on a fresh connection"


async def test_nothing_of_a_search_is_logged(
    store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    """Not even at the level of debugging (I6)."""
    caplog.set_level(logging.DEBUG)
    await put(store, Space("m", 2), "Quillfeather.md", ["Quillfeather"], np.ones((1, 2)))
    search = await store.search(store.default_tenant, ["default"], Space("m", 2))
    assert await search.lexical("Quillfeather", 5, {"team": "x"}) == []
    assert len(await search.lexical("Quillfeather", 5, {})) == 1
    assert "quillfeather" not in caplog.text.lower()
