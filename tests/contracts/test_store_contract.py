"""What the store's ports promise, run on the fake and on Postgres alike."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import AsyncExitStack
from uuid import UUID, uuid4

import numpy as np
import pytest

from rag.errors import InvalidInput, NotFound, SpaceMismatch
from rag.ports import Part
from rag.store.store import Store
from rag.testing.database import Server, database_settings, postgres_server
from rag.testing.fakes import BagEmbedder, MemoryStore, NameDetector
from rag.types import Alias, ChunkDraft, Document, EntityType, Ingested, Space, Span

EMBEDDER = BagEmbedder()
PERSON = EntityType.PERSON
AnyStore = Store | MemoryStore


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with postgres_server() as running:
        yield running


@pytest.fixture(params=["memory", "postgres"])
async def store(request: pytest.FixtureRequest) -> AsyncIterator[AnyStore]:
    async with AsyncExitStack() as stack:
        if request.param == "memory":
            yield await stack.enter_async_context(MemoryStore.open())
        else:
            server = request.getfixturevalue("server")
            url = stack.enter_context(server.database())
            yield await stack.enter_async_context(Store.open(database_settings(url)))


async def put(
    store: AnyStore,
    source: str,
    content: str,
    *,
    collection: str = "default",
    tenant: UUID | None = None,
    metadata: dict[str, object] | None = None,
    chunks: Sequence[ChunkDraft] | None = None,
    spans: Sequence[Span] = (),
    aliases: Sequence[Alias] = (),
    detector: str = "d1",
) -> Ingested:
    drafts = [ChunkDraft(0, 0, len(content))] if chunks is None else list(chunks)
    embeddings = await EMBEDDER.embed([content[d.start : d.end] for d in drafts])
    documents = store.documents(tenant or store.default_tenant)
    document = Document(source, content, metadata or {})
    return await documents.put(
        collection, EMBEDDER.space, document, "hash", detector, drafts, embeddings, spans, aliases
    )


async def reading(store: AnyStore, *collections: str):  # type: ignore[no-untyped-def]
    names = collections or ("default",)
    return await store.search(store.default_tenant, names, EMBEDDER.space)


async def near(text: str) -> np.ndarray:
    return (await EMBEDDER.embed([text]))[0]


async def test_the_default_collection_is_there_and_empty(store: AnyStore) -> None:
    """A fresh store answers a search in ``default`` with nothing."""
    search = await reading(store)
    assert await search.dense(await near("anything"), 5, {}) == []
    assert await search.lexical("anything", 5, {}) == []
    assert await store.documents(store.default_tenant).list_page("default", 5, None) == []


async def test_a_new_document_is_ready(store: AnyStore) -> None:
    """The first version of a source is ``ready`` with its chunks and entities counted."""
    done = await put(store, "a.md", "Orla Venn paid.", spans=[Span(0, 9, PERSON)])
    assert (done.status, done.chunks, done.entities) == ("ready", 1, {"PERSON": 1})


async def test_a_second_version_replaces_the_first_whole(store: AnyStore) -> None:
    """Same source, same id; nothing of the old version is found any more."""
    first = await put(store, "a.md", "about zebras", aliases=[Alias(1, 1, 1, PERSON)])
    second = await put(store, "a.md", "about giraffes", aliases=[Alias(2, 2, 1, PERSON)])
    search = await reading(store)
    assert (second.status, second.id) == ("replaced", first.id)
    assert await search.lexical("zebras", 5, {}) == []
    assert await search.known_first([1, 2]) == {2}


async def test_concurrent_versions_leave_one_whole_document(store: AnyStore) -> None:
    """Ten writers of one source at once: one document stays, its chunk of one of them."""
    await asyncio.gather(*(put(store, "same.md", f"version number{n}") for n in range(10)))
    search = await reading(store)
    hits = await search.lexical("version", 50, {})
    assert len(hits) == 1
    assert len(await store.documents(store.default_tenant).list_page("default", 50, None)) == 1


async def test_find_tells_version_and_detector(store: AnyStore) -> None:
    """``find`` gives id, content hash and detector of the stored version, or ``None``."""
    done = await put(store, "a.md", "text", detector="d7")
    documents = store.documents(store.default_tenant)
    assert await documents.find("default", "a.md") == (done.id, "hash", "d7")
    assert await documents.find("default", "b.md") is None
    assert await documents.find("nowhere", "a.md") is None


async def test_get_gives_content_and_spans_back(store: AnyStore) -> None:
    """What was stored comes back, spans of all types in order with their scores."""
    spans = [Span(9, 13, EntityType.PLACE, 0.5), Span(0, 4, PERSON, 0.75)]
    done = await put(store, "a.md", "Orla met Oslo", metadata={"year": 2021}, spans=spans)
    assert done.id is not None
    stored, content, found = await store.documents(store.default_tenant).get(done.id)
    assert (stored.source, stored.collection, stored.metadata) == (
        "a.md",
        "default",
        {"year": 2021},
    )
    assert content == "Orla met Oslo"
    assert found == sorted(spans)


async def test_metadata_gives_the_same_surface_back(store: AnyStore) -> None:
    """Spans count characters of the surface, so its order and wording are kept."""
    metadata: dict[str, object] = {"b": {"z": 1, "a": [1.0, True, None]}, "a": "é"}
    done = await put(store, "a.md", "text", metadata=metadata)
    assert done.id is not None
    stored, content, _ = await store.documents(store.default_tenant).get(done.id)
    before = Document("a.md", "text", metadata).surface()
    assert Document(stored.source, content, stored.metadata).surface() == before


@pytest.mark.parametrize("value", [{1, 2}, float("nan"), object(), (1, 2), ["\x00"]])
async def test_metadata_that_would_change_is_refused(store: AnyStore, value: object) -> None:
    """Metadata that JSON cannot give back as it was is refused, not stored with wrong offsets."""
    with pytest.raises(InvalidInput):
        await put(store, "a.md", "text", metadata={"k": value})


async def test_deleted_is_gone_at_once(store: AnyStore) -> None:
    """A deleted document is found by no search, no form, no listing, and not deleted twice."""
    alias = Alias(1, 2, 1, PERSON)
    done = await put(store, "a.md", "Orla Venn", spans=[Span(0, 9, PERSON)], aliases=[alias])
    assert done.id is not None
    documents, search = store.documents(store.default_tenant), await reading(store)
    hits = await search.dense(await near("Orla Venn"), 5, {})
    await documents.delete(done.id)
    assert await search.dense(await near("Orla Venn"), 5, {}) == []
    assert await search.lexical("Orla", 5, {}) == []
    assert await search.known_first([1]) == set()
    assert await search.fill(hits) == []
    assert await documents.list_page("default", 5, None) == []
    with pytest.raises(NotFound):
        await documents.get(done.id)
    with pytest.raises(NotFound):
        await documents.delete(done.id)


async def test_pages_follow_one_another(store: AnyStore) -> None:
    """Pages of two list five documents once each, in the order they came."""
    for n in range(5):
        await put(store, f"{n}.md", "text")
        await asyncio.sleep(0.002)
    documents = store.documents(store.default_tenant)
    seen: list[str] = []
    after = None
    while page := await documents.list_page("default", 2, after):
        seen += [stored.source for stored in page]
        after = page[-1].id
    assert seen == ["0.md", "1.md", "2.md", "3.md", "4.md"]


async def test_dense_finds_the_nearest_first(store: AnyStore) -> None:
    """Best first; the score is the cosine mapped to 0-1; the limit holds."""
    await put(store, "far.md", "ships and harbours")
    await put(store, "near.md", "red apples grow")
    search = await reading(store)
    hits = await search.dense(await near("red apples grow"), 5, {})
    assert [hit.chunk.source for hit in hits] == ["near.md", "far.md"]
    assert hits[0].similarity == pytest.approx(1.0, abs=1e-3)
    assert hits[0].score == pytest.approx(1.0, abs=1e-3)
    assert all(0.0 <= hit.score <= 1.0 for hit in hits)
    assert len(await search.dense(await near("red apples grow"), 1, {})) == 1


async def test_lexical_joins_by_or(store: AnyStore) -> None:
    """A chunk that holds one of many words is found; the one that holds more comes first."""
    await put(store, "one.md", "lantern of the north")
    await put(store, "two.md", "lantern keeper of the north")
    hits = await (await reading(store)).lexical("lantern keeper submarine", 5, {})
    assert [hit.chunk.source for hit in hits] == ["two.md", "one.md"]
    assert all(0.0 < hit.score <= 1.0 for hit in hits)


@pytest.mark.parametrize(
    "query",
    ["'", "lantern & !", "lantern:*A <-> (", "\\'", "a' | 'b", "", " ", "\x00", "((", "%s %(x)s",
     "\ud800", "lantern | ) drop", "!" * 5000, "' || '", "🦔", "$1 $$ x"],
)  # fmt: skip
async def test_any_text_is_a_query(store: AnyStore, query: str) -> None:
    """No text is read as query syntax, and none fails."""
    await put(store, "a.md", "lantern keeper")
    hits = await (await reading(store)).lexical(query, 5, {})
    assert bool(hits) == ("lantern" in query)


async def test_filters_are_equality_on_metadata(store: AnyStore) -> None:
    """A value must be equal in kind and value; a list means any of them; all keys must hold."""
    await put(store, "a.md", "apples", metadata={"year": 2020, "team": "red", "open": True})
    await put(store, "b.md", "apples", metadata={"year": 2021, "team": "red"})
    await put(store, "c.md", "apples")
    search = await reading(store)
    for filters, expected in [
        ({}, "abc"),
        ({"year": 2020}, "a"),
        ({"year": "2020"}, ""),
        ({"year": [2020, 2021]}, "ab"),
        ({"year": []}, ""),
        ({"team": "red", "year": 2021}, "b"),
        ({"open": True}, "a"),
        ({"open": 1}, ""),
        ({"nothing": None}, ""),
        ({"te'am": "x\x00"}, ""),
    ]:
        dense = await search.dense(await near("apples"), 9, filters)
        lexical = await search.lexical("apples", 9, filters)
        for hits in (dense, lexical):
            found = "".join(sorted(hit.chunk.source[0] for hit in hits))
            assert found == expected, filters


async def test_the_filter_comes_before_the_limit(store: AnyStore) -> None:
    """A filtered search gives its full number of hits though better ones are filtered away."""
    for n in range(8):
        await put(store, f"{n}.md", "red apples", metadata={"keep": n >= 6})
    search = await reading(store)
    assert len(await search.dense(await near("red apples"), 2, {"keep": True})) == 2
    assert len(await search.lexical("apples", 2, {"keep": True})) == 2


async def test_a_text_without_a_vector_is_found_by_its_words(store: AnyStore) -> None:
    """A zero or NaN vector is never near anything, and its text is found all the same."""
    documents = store.documents(store.default_tenant)
    for source, value in (("zero.md", 0.0), ("nan.md", np.nan), ("inf.md", np.inf)):
        vector = np.full((1, EMBEDDER.space.dimension), value, dtype=np.float32)
        drafts = [ChunkDraft(0, 0, 7)]
        document = Document(source, "lantern")
        await documents.put("default", EMBEDDER.space, document, "h", "d", drafts, vector, [], [])
    search = await reading(store)
    assert await search.dense(await near("lantern"), 9, {}) == []
    assert len(await search.lexical("lantern", 9, {})) == 3


@pytest.mark.parametrize("value", [0.0, np.nan, np.inf])
async def test_a_query_without_a_direction_finds_nothing(store: AnyStore, value: float) -> None:
    """A zero, NaN or infinite query vector is near nothing, and is no error."""
    await put(store, "a.md", "lantern")
    vector = np.full(EMBEDDER.space.dimension, value, dtype=np.float32)
    assert await (await reading(store)).dense(vector, 5, {}) == []


async def test_nul_characters_keep_offsets(store: AnyStore) -> None:
    """NUL and lone surrogates become U+FFFD one for one in content, source and metadata."""
    content = "x\x00y Orla\ud800 z"
    done = await put(
        store, "a\x00.md", content, metadata={"k\x00": "v\x00"}, spans=[Span(4, 8, PERSON)]
    )
    assert done.id is not None
    stored, kept, _ = await store.documents(store.default_tenant).get(done.id)
    assert kept == "x\ufffdy Orla\ufffd z"
    assert stored.source == "a\ufffd.md"
    assert stored.metadata == {"k\ufffd": "v\ufffd"}
    again = await put(store, "a\x00.md", content)
    assert again.status == "replaced"
    [hit] = await (await reading(store)).lexical("Orla", 5, {})
    assert hit.chunk.text == kept


async def test_empty_text_is_stored(store: AnyStore) -> None:
    """A document without text or chunks is stored and listed."""
    done = await put(store, "empty.md", "", chunks=[])
    assert (done.status, done.chunks) == ("ready", 0)
    blank = await put(store, "blank.md", "")
    assert blank.chunks == 1


async def test_fill_clips_spans_to_the_chunk(store: AnyStore) -> None:
    """Spans come relative to the chunk; one that crosses its edge comes as its part inside."""
    content = "Orla Venn met Pim Harrow here"
    spans = [Span(0, 9, PERSON, 0.5), Span(14, 24, EntityType.OTHER, 0.75)]
    drafts = [ChunkDraft(0, 0, 18), ChunkDraft(1, 18, len(content))]
    await put(store, "a.md", content, chunks=drafts, spans=spans)
    search = await reading(store)
    hits = await search.fill(await search.dense(await near("Orla Venn met Pim Harrow"), 5, {}))
    by_number = {hit.chunk.n: hit.chunk for hit in hits}
    assert by_number[0].spans == (Span(0, 9, PERSON, 0.5), Span(14, 18, EntityType.OTHER, 0.75))
    assert by_number[1].spans == (Span(0, 6, EntityType.OTHER, 0.75),)


async def test_fill_gives_the_headings_spans(store: AnyStore) -> None:
    """The heading path is text with its own spans, though it stands outside the chunk."""
    content = "Case of Orla Venn\nNotes by Pim\nbody of it"
    spans = [Span(8, 17, PERSON), Span(27, 30, PERSON)]
    drafts = [ChunkDraft(0, 31, len(content), ((0, 17), (18, 30)), page=3)]
    await put(store, "a.md", content, chunks=drafts, spans=spans)
    search = await reading(store)
    [hit] = await search.fill(await search.lexical("body", 5, {}))
    heading = hit.chunk.heading
    assert heading == "Case of Orla Venn > Notes by Pim"
    assert [heading[s.start : s.end] for s in hit.chunk.heading_spans] == ["Orla Venn", "Pim"]
    assert (hit.chunk.spans, hit.chunk.page) == ((), 3)


async def test_fill_keeps_order_and_scores(store: AnyStore) -> None:
    """``fill`` changes nothing but the spans, and takes a hit twice."""
    await put(store, "a.md", "red apples")
    await put(store, "b.md", "red pears")
    search = await reading(store)
    hits = await search.dense(await near("red apples"), 5, {})
    filled = await search.fill([*hits, hits[0]])
    assert [(h.chunk.id, h.score) for h in filled] == [
        (h.chunk.id, h.score) for h in [*hits, hits[0]]
    ]
    assert await search.fill([]) == []


async def test_spans_of_source_and_metadata_stay_out_of_chunks(store: AnyStore) -> None:
    """A span past the content belongs to the surface's fields, not to the last chunk."""
    done = await put(store, "Orla.md", "text", spans=[Span(5, 9, PERSON)])
    search = await reading(store)
    [hit] = await search.fill(await search.lexical("text", 5, {}))
    assert hit.chunk.spans == ()
    assert done.entities == {"PERSON": 1}


async def test_forms_are_found_by_both_hashes(store: AnyStore) -> None:
    """First words and whole forms are looked up, negative hashes and duplicates too."""
    low = -(2**63)
    aliases = [Alias(low, 5, 2, PERSON), Alias(low, 5, 2, PERSON), Alias(7, 7, 1, EntityType.EMAIL)]
    await put(store, "a.md", "text", aliases=aliases)
    search = await reading(store)
    assert await search.known_first([low, 7, 8]) == {low, 7}
    assert await search.known_forms([5, 6]) == [Alias(low, 5, 2, PERSON)]
    assert await search.known_first([]) == set()
    assert await search.known_forms([]) == []


async def test_a_form_is_weak_only_where_all_say_so(store: AnyStore) -> None:
    """One strong finding, in the same document or in another, makes the form strong."""
    weak, strong = Alias(1, 1, 1, PERSON, weak=True), Alias(1, 1, 1, PERSON)
    other = Alias(2, 2, 1, PERSON, weak=True)
    await put(store, "a.md", "text", aliases=[weak, strong, other])
    await put(store, "b.md", "text", aliases=[weak, other])
    search = await reading(store)
    assert await search.known_forms([1]) == [strong]
    assert await search.known_forms([2]) == [other]


async def test_one_form_may_have_several_types(store: AnyStore) -> None:
    """The same words as a person here and a place there come as two."""
    await put(store, "a.md", "x", aliases=[Alias(1, 1, 1, PERSON)])
    await put(store, "b.md", "x", aliases=[Alias(1, 1, 1, EntityType.PLACE, weak=True)])
    found = await (await reading(store)).known_forms([1])
    assert {(alias.type, alias.weak) for alias in found} == {
        (PERSON, False),
        (EntityType.PLACE, True),
    }


async def test_only_the_named_collections_are_read(store: AnyStore) -> None:
    """Search and forms see the collections asked for, one or several, and no other."""
    await put(store, "a.md", "lantern", collection="left", aliases=[Alias(1, 1, 1, PERSON)])
    await put(store, "b.md", "lantern", collection="right", aliases=[Alias(2, 2, 1, PERSON)])
    left, both = await reading(store, "left"), await reading(store, "left", "right")
    assert [hit.chunk.source for hit in await left.lexical("lantern", 5, {})] == ["a.md"]
    assert len(await both.dense(await near("lantern"), 5, {})) == 2
    assert await left.known_first([1, 2]) == {1}
    assert await both.known_first([1, 2]) == {1, 2}


async def test_all_collections_know_their_forms(store: AnyStore) -> None:
    """``search_all`` knows the forms of every collection of the tenant, and no stranger's."""
    await put(store, "a.md", "x", collection="left", aliases=[Alias(1, 1, 1, PERSON)])
    await put(store, "b.md", "x", collection="right", aliases=[Alias(2, 2, 1, PERSON)])
    known = await store.search_all(store.default_tenant)
    assert await known.known_first([1, 2, 3]) == {1, 2}
    assert await (await store.search_all(uuid4())).known_first([1, 2]) == set()


async def test_one_source_in_two_collections_is_two_documents(store: AnyStore) -> None:
    """Identity is collection and source."""
    one = await put(store, "a.md", "x", collection="left")
    two = await put(store, "a.md", "x", collection="right")
    assert one.id != two.id


async def test_an_unknown_collection_is_not_found(store: AnyStore) -> None:
    """Searching or listing a collection that was never made is ``NotFound``."""
    with pytest.raises(NotFound):
        await reading(store, "default", "nowhere")
    with pytest.raises(NotFound):
        await store.documents(store.default_tenant).list_page("nowhere", 5, None)


async def test_another_space_is_a_mismatch_that_names_both(store: AnyStore) -> None:
    """Neither search nor put mixes spaces; the error names both models and dimensions."""
    await put(store, "a.md", "x")
    other = Space("another-model", 32)
    documents = store.documents(store.default_tenant)
    vectors = np.ones((1, 32), dtype=np.float32)
    drafts = [ChunkDraft(0, 0, 1)]
    with pytest.raises(SpaceMismatch) as searched:
        await store.search(store.default_tenant, ["default"], other)
    with pytest.raises(SpaceMismatch):
        await documents.put("default", other, Document("b", "x"), "h", "d", drafts, vectors, [], [])
    with pytest.raises(SpaceMismatch):
        await documents.put(
            "default", EMBEDDER.space, Document("b", "x"), "h", "d", drafts, vectors, [], []
        )
    for word in ("another-model", "32", EMBEDDER.space.model, str(EMBEDDER.space.dimension)):
        assert word in searched.value.message


async def test_an_emptied_collection_takes_another_space(store: AnyStore) -> None:
    """Once its documents are gone a collection may be filled with another model."""
    done = await put(store, "a.md", "x")
    assert done.id is not None
    documents = store.documents(store.default_tenant)
    await documents.delete(done.id)
    other = Space("another-model", 2)
    vectors = np.ones((1, 2), dtype=np.float32)
    await documents.put(
        "default", other, Document("b", "x"), "h", "d", [ChunkDraft(0, 0, 1)], vectors, [], []
    )
    search = await store.search(store.default_tenant, ["default"], other)
    assert len(await search.dense(np.ones(2, dtype=np.float32), 5, {})) == 1


async def test_another_tenant_sees_nothing(store: AnyStore) -> None:
    """A tenant neither finds, reads nor deletes another's document (I8)."""
    done = await put(store, "a.md", "lantern", aliases=[Alias(1, 1, 1, PERSON)])
    assert done.id is not None
    stranger = store.documents(uuid4())
    assert await stranger.find("default", "a.md") is None
    with pytest.raises(NotFound):
        await stranger.get(done.id)
    with pytest.raises(NotFound):
        await stranger.delete(done.id)
    with pytest.raises(NotFound):
        await store.search(uuid4(), ["default"], EMBEDDER.space)


async def test_stale_documents_get_other_spans(store: AnyStore) -> None:
    """What another detector version found is listed and exchanged with its forms (I10)."""
    done = await put(
        store, "a.md", "Orla met Pim", spans=[Span(0, 4, PERSON)], aliases=[Alias(1, 1, 1, PERSON)]
    )
    assert done.id is not None
    documents = store.documents(store.default_tenant)
    assert await documents.stale("d1") == []
    assert await documents.stale("d2") == [done.id]
    await documents.respan(done.id, "d2", [Span(9, 12, PERSON)], [Alias(2, 2, 1, PERSON)])
    search = await reading(store)
    [hit] = await search.fill(await search.lexical("met", 5, {}))
    assert hit.chunk.spans == (Span(9, 12, PERSON),)
    assert hit.chunk.detector == "d2"
    assert await search.known_first([1, 2]) == {2}
    assert await documents.stale("d2") == []
    with pytest.raises(NotFound):
        await documents.respan(uuid4(), "d2", [], [])


async def test_the_fake_detector_finds_given_names() -> None:
    """Whole words only, the longest name first, sorted."""
    detector = NameDetector(["Orla", "Orla Venn", "Pim"])
    assert detector.detect("Pim met Orla Venn and Orlando.") == [
        Span(0, 3, PERSON),
        Span(8, 17, PERSON),
    ]


async def test_the_store_answers_its_ping(store: AnyStore) -> None:
    """An open store is ready."""
    await store.ping()


async def put_parts(
    store: AnyStore, source: str, texts: Sequence[str], **given: object
) -> Ingested:
    """A document in parts, each one chunk; the last part raises what ``given`` says."""
    documents = store.documents(store.default_tenant)

    async def parts() -> AsyncIterator[Part]:
        at = 0
        for n, text in enumerate(texts):
            vectors = await EMBEDDER.embed([text])
            draft = ChunkDraft(n, at, at + len(text))
            spans = (Span(at, at + 2, PERSON),)
            alias = Alias(7, 7, 1, PERSON, weak=n > 0)
            yield Part(at, text, (draft,), ("",), vectors, spans, (alias,))
            at += len(text)
        if error := given.get("error"):
            assert isinstance(error, Exception)
            raise error

    head = Document(source, "", {"team": "north"})
    return await documents.put_parts(
        *("default", EMBEDDER.space, head, lambda: "hash of all", "d1", parts()),
        file_hash="f1",
        origin="o1",
    )


async def test_a_document_in_parts_is_one(store: AnyStore) -> None:
    """One id, the whole content, spans and chunks over all of it, forms known once."""
    done = await put_parts(store, "long.txt", ["lantern keeper. ", "granite house."])
    assert (done.status, done.chunks, done.entities) == ("ready", 2, {"PERSON": 2})
    assert done.id is not None
    stored, content, spans = await store.documents(store.default_tenant).get(done.id)
    assert (content, stored.chunks) == ("lantern keeper. granite house.", 2)
    assert [span.start for span in spans] == [0, 16]
    search = await reading(store)
    [hit] = await search.lexical("granite", 5, {"team": "north"})
    assert (hit.chunk.start, hit.chunk.text) == (16, "granite house.")
    assert [alias.weak for alias in await search.known_forms([7])] == [False]


async def test_a_part_that_fails_leaves_the_old_version(store: AnyStore) -> None:
    """All parts or none."""
    await put_parts(store, "long.txt", ["lantern"])
    with pytest.raises(NotFound):
        await put_parts(store, "long.txt", ["granite"], error=NotFound())
    search = await reading(store)
    assert len(await search.lexical("lantern", 5, {})) == 1
    assert await search.lexical("granite", 5, {}) == []


async def test_what_is_known_of_sources(store: AnyStore) -> None:
    """Hashes, origin and counts of those that are there, by one look-up."""
    documents = store.documents(store.default_tenant)
    done = await put_parts(store, "long.txt", ["lantern"])
    await put(store, "other.txt", "granite")
    known = await documents.known("default", ["long.txt", "other.txt", "missing"])
    assert set(known) == {"long.txt", "other.txt"}
    one = known["long.txt"]
    assert (one.id, one.content_hash, one.detector) == (done.id, "hash of all", "d1")
    assert (one.file_hash, one.origin, one.chunks, one.entities) == ("f1", "o1", 1, {"PERSON": 1})
    assert (known["other.txt"].file_hash, known["other.txt"].origin) == (None, None)
    assert await documents.known("elsewhere", ["long.txt"]) == {}
    assert await store.documents(uuid4()).known("default", ["long.txt"]) == {}


async def test_documents_of_an_origin(store: AnyStore) -> None:
    """Those of that folder; marking moves one to another."""
    documents = store.documents(store.default_tenant)
    done = await put_parts(store, "long.txt", ["lantern"])
    await put(store, "other.txt", "granite")
    assert done.id is not None
    assert await documents.of_origin("default", "o1") == {"long.txt": done.id}
    await documents.mark(done.id, "f2", "o2")
    assert await documents.of_origin("default", "o1") == {}
    known = await documents.known("default", ["long.txt"])
    assert (known["long.txt"].file_hash, known["long.txt"].origin) == ("f2", "o2")


async def test_the_first_chunk_is_found_by_source_and_metadata(store: AnyStore) -> None:
    """And only that one; the words are no part of its text."""
    drafts = [ChunkDraft(0, 0, 7), ChunkDraft(1, 8, 15)]
    await put(store, "quarry_lease.pdf", "lantern granite", metadata={"by": "Dov"}, chunks=drafts)
    search = await reading(store)
    for query in ("quarry", "lease", "dov"):
        assert [hit.chunk.text for hit in await search.lexical(query, 5, {})] == ["lantern"]
