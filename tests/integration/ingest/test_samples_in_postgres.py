"""The sample papers through the real detector, the real embedder and a real Postgres."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from importlib.resources import as_file

import pytest
import pytest_asyncio

from rag.ingest.pipeline import Ingestor, file_of, find_files
from rag.models.local import SPACE, LocalEmbedder
from rag.privacy.allocation import MemoryAllocator
from rag.privacy.detect import PresidioDetector
from rag.privacy.forms import FormHasher
from rag.privacy.policy import load_policy
from rag.privacy.protect import Piece
from rag.privacy.scope import Scope
from rag.samples import QUESTIONS, papers
from rag.settings import Settings
from rag.store import Store
from rag.testing.database import database_settings, postgres_server
from rag.types import Chunk, Document, Ingested

pytestmark = pytest.mark.asyncio(loop_scope="module")


class Filled:
    """A store with the sample papers in it, and the ingestor that put them there."""

    def __init__(
        self,
        settings: Settings,
        store: Store,
        embedder: LocalEmbedder,
        detector: PresidioDetector,
        ingestor: Ingestor,
    ) -> None:
        self.settings, self.store, self.ingestor = settings, store, ingestor
        self.embedder, self.detector = embedder, detector
        self.outcomes: list[Ingested] = []

    async def ingest_papers(self) -> list[Ingested]:
        with as_file(papers()) as folder:
            files = list(find_files([folder]))
            return await self.ingestor.ingest_many(files, "papers")

    async def chunks(self, query: str, limit: int = 200) -> list[Chunk]:
        """Chunks that hold words of ``query``, with their spans."""
        search = await self.store.search(self.store.default_tenant, ["papers"], SPACE)
        hits = await search.lexical(query, limit, {})
        return [hit.chunk for hit in await search.fill(hits)]


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with postgres_server() as server, server.database() as database:
        yield database


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def filled(url: str) -> AsyncIterator[Filled]:
    settings = database_settings(url, pool_size=4)
    detector = await asyncio.to_thread(PresidioDetector.open)
    embedder = await LocalEmbedder.open()
    async with Store.open(settings) as store:
        ingestor = Ingestor(
            settings=settings,
            detector=detector,
            embedder=embedder,
            store=store.documents(store.default_tenant),
            hasher=FormHasher(store.subkey("aliases")),
            policy=load_policy("default"),
        )
        opened = Filled(settings, store, embedder, detector, ingestor)
        opened.outcomes = await opened.ingest_papers()
        yield opened


async def test_every_paper_enters(filled: Filled) -> None:
    """All formats, none failed, each with chunks and personal data."""
    assert {one.source: one.status for one in filled.outcomes if one.status != "ready"} == {}
    assert {one.source.rpartition(".")[2] for one in filled.outcomes} == {
        "csv", "html", "json", "jsonl", "md", "pdf", "txt",
    }  # fmt: skip
    assert all(one.chunks and one.entities for one in filled.outcomes)


async def test_the_papers_again_are_unchanged(filled: Filled) -> None:
    """A second run finds the same content and detector, and tells the same numbers."""
    again = await filled.ingest_papers()
    assert {one.status for one in again} == {"unchanged"}
    assert [(one.chunks, one.entities) for one in again] == [
        (one.chunks, one.entities) for one in filled.outcomes
    ]


@pytest.mark.parametrize("n", range(18))
async def test_the_answer_of_each_question_is_in_one_chunk(filled: Filled, n: int) -> None:
    """Cutting leaves every expected answer whole, in the paper that it is said to be in."""
    question = QUESTIONS[n]
    chunks = await filled.chunks(question.expected)
    assert any(c.source == question.source and question.expected in c.text for c in chunks)


@pytest.mark.parametrize("n", range(18))
async def test_the_answer_of_each_question_is_found(filled: Filled, n: int) -> None:
    """The question itself brings its paper among the ten best chunks of either search."""
    question = QUESTIONS[n]
    search = await filled.store.search(filled.store.default_tenant, ["papers"], SPACE)
    [vector] = await filled.embedder.embed([question.text])
    hits = await search.dense(vector, 10, {}) + await search.lexical(question.text, 10, {})
    assert any(question.expected in hit.chunk.text for hit in hits)


@pytest.mark.parametrize("n", range(3))
async def test_the_answers_of_the_demonstration_are_protected(filled: Filled, n: int) -> None:
    """What the demonstration shows restored does not leave: by its span, or by a known form."""
    question = QUESTIONS[n]
    chunk = next(
        c
        for c in await filled.chunks(question.expected)
        if c.source == question.source and question.expected in c.text
    )
    scope = Scope(
        policy=load_policy("default"),
        detector=filled.detector,
        aliases=await filled.store.search_all(filled.store.default_tenant),
        allocator=MemoryAllocator(),
        hasher=FormHasher(filled.store.subkey("aliases")),
        detect_timeout=10,
    )
    [protected] = await scope.protect([Piece(chunk.text, chunk.spans)])
    assert question.expected not in protected
    assert question.expected in scope.restore(protected).text


async def test_no_span_is_cut_by_a_chunk(filled: Filled) -> None:
    """What the detector found on the whole is whole in the chunks (I10)."""
    documents = filled.store.documents(filled.store.default_tenant)
    seen = 0
    for outcome in filled.outcomes:
        assert outcome.id is not None
        _, content, spans = await documents.get(outcome.id)
        words = " ".join(set(content.split()))
        for chunk in (c for c in await filled.chunks(words) if c.document_id == outcome.id):
            for span in spans:
                if span.end <= len(content) and span.start < chunk.end and chunk.start < span.end:
                    assert chunk.start <= span.start
                    assert span.end <= chunk.end
                    seen += 1
    assert seen > 150


async def test_a_failed_replacement_leaves_the_old_version(filled: Filled) -> None:
    """A new version that is refused takes nothing of the old one away."""
    await filled.ingestor.ingest(Document("old.txt", "Quince marmalade is kept below."), "papers")
    [failed] = await filled.ingestor.ingest_many(
        [file_of("old.txt", b"word " * (filled.settings.max_body_bytes // 5 + 1))], "papers"
    )
    assert (failed.status, failed.error_code) == ("failed", "too_large")
    assert [c.source for c in await filled.chunks("quince marmalade")] == ["old.txt"]
