"""From the first version to the last: new, unchanged, changed, gone; found by what it is about."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from functools import partial
from pathlib import Path

import psycopg
import pytest

from rag.ingest import pipeline
from rag.ingest.pipeline import Ingestor, find_files
from rag.ingest.sync import found_in, synchronize
from rag.ingest.workers import Recipe
from rag.privacy.forms import FormHasher
from rag.privacy.policy import load_policy
from rag.store import Store
from rag.testing.database import Server, database_settings, postgres_server
from rag.testing.fakes import BagEmbedder, NameDetector, TroubledDetector
from rag.types import Document, Ingested

NAMES = ["Ottoline Farouk", "Bo Amadi"]
EMBEDDER = BagEmbedder()
TABLES = ("documents", "chunks", "spans", "aliases", "contents")


class Counting(NameDetector):
    """Counts how often it is asked."""

    asked = 0

    def detect(self, text: str) -> list:  # type: ignore[type-arg]
        self.asked += 1
        return super().detect(text)


class Kit:
    """A store of its own, an ingestor, a folder."""

    def __init__(self, store: Store, url: str, folder: Path) -> None:
        self.store, self.url, self.folder = store, url, folder
        self.detector = Counting(NAMES)
        self.documents = store.documents(store.default_tenant)

    def ingestor(self, recipe: Recipe | None = None, **settings: object) -> Ingestor:
        return Ingestor(
            settings=database_settings(self.url, chunk_chars=150, **settings),
            detector=self.detector,
            embedder=EMBEDDER,
            store=self.documents,
            hasher=FormHasher(self.store.subkey("aliases")),
            policy=load_policy("default"),
            recipe=recipe,
        )

    def write(self, **texts: str) -> None:
        for name, text in texts.items():
            (self.folder / f"{name}.txt").write_text(text)

    async def sync(self, folder: Path | None = None) -> dict[str, str]:
        files, there = found_in([folder or self.folder])
        done = await synchronize(self.ingestor(), self.documents, files, there)
        return {one.source: one.status for one in done}

    def rows(self) -> dict[str, int]:
        with psycopg.connect(self.url) as connection:
            counts = {}
            for table in TABLES:
                row = connection.execute(
                    f"select count(*) from veilrag.{table}".encode()
                ).fetchone()
                counts[table] = row[0] if row else -1
            return counts

    async def found(self, query: str, **filters: object) -> list[tuple[str, int]]:
        search = await self.store.search(self.store.default_tenant, ["default"], EMBEDDER.space)
        return [(h.chunk.source, h.chunk.n) for h in await search.lexical(query, 9, filters)]


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with postgres_server() as running:
        yield running


@pytest.fixture
async def kit(server: Server, tmp_path: Path) -> AsyncIterator[Kit]:
    with server.database() as url:
        async with Store.open(database_settings(url)) as store:
            yield Kit(store, url, tmp_path)


async def test_a_folder_is_kept_in_step(kit: Kit) -> None:
    """New files come in, changed ones replace, what is gone is deleted, the rest is left."""
    kit.write(a="Ottoline Farouk has the keys.", b="Bo Amadi wrote.", c="Spring.")
    assert await kit.sync() == {"a.txt": "ready", "b.txt": "ready", "c.txt": "ready"}
    kit.write(b="Bo Amadi wrote again.", d="Autumn.")
    (kit.folder / "c.txt").unlink()
    assert await kit.sync() == {
        "a.txt": "unchanged",
        "b.txt": "replaced",
        "c.txt": "deleted",
        "d.txt": "ready",
    }
    assert kit.rows()["documents"] == 3


async def test_only_what_came_from_the_folder_is_deleted(kit: Kit) -> None:
    """Uploads and the documents of other folders stay."""
    other = kit.folder / "other"
    other.mkdir()
    (other / "o.txt").write_text("From elsewhere.")
    await kit.ingestor().ingest(Document("upload.txt", "By itself."))
    await kit.sync(other)
    (other / "o.txt").rename(kit.folder / "mine.txt")
    other.rmdir()
    assert await kit.sync() == {"mine.txt": "ready"}
    assert kit.rows()["documents"] == 3


async def test_an_unchanged_file_is_not_searched_again(kit: Kit) -> None:
    """Its bytes tell it: it is neither converted nor given to the detector."""
    kit.write(a="Ottoline Farouk has the keys.")
    await kit.sync()
    asked = kit.detector.asked
    assert await kit.sync() == {"a.txt": "unchanged"}
    assert kit.detector.asked == asked


async def test_another_detector_searches_unchanged_files_again(kit: Kit) -> None:
    """Bytes alone do not tell what is in them (I10)."""
    kit.write(a="Ottoline Farouk has the keys.")
    await kit.sync()
    kit.detector = Counting(NAMES, "fake-2")
    assert await kit.sync() == {"a.txt": "replaced"}


async def test_a_file_that_turns_bad_keeps_its_old_version(kit: Kit) -> None:
    """It is still there: nothing is deleted, and the others come in."""
    kit.write(a="Ottoline Farouk has the keys.", b="Bo Amadi wrote.")
    await kit.sync()
    (kit.folder / "a.txt").write_bytes(bytes(range(256)) * 9)
    kit.write(b="Bo Amadi wrote again.")
    assert await kit.sync() == {"a.txt": "failed", "b.txt": "replaced"}
    assert await kit.found("keys") == [("a.txt", 0)]


async def test_deleting_removes_every_row(kit: Kit) -> None:
    """Of a document read whole and of one read in parts."""
    kit.write(a="Ottoline Farouk has the keys.", b="Bo Amadi wrote. " * 300)
    done = await kit.ingestor(max_detect_chars=2_000).ingest_many(list(find_files([kit.folder])))
    assert min(kit.rows().values()) > 0
    for one in done:
        assert one.id is not None
        await kit.documents.delete(one.id)
    assert kit.rows() == dict.fromkeys(TABLES, 0)


async def long_text(kit: Kit, monkeypatch: pytest.MonkeyPatch, text: str) -> Ingested:
    monkeypatch.setattr(pipeline, "LONG_BYTES", 1_000)
    kit.write(long=text)
    ingestor = kit.ingestor(max_detect_chars=2_000)
    [done] = await ingestor.ingest_many(list(find_files([kit.folder])))
    return done


async def test_a_long_text_file_is_one_document(kit: Kit, monkeypatch: pytest.MonkeyPatch) -> None:
    """Read in parts it has one id, its whole content, spans of the whole; then unchanged."""
    text = "".join(f"Line {n} by Ottoline Farouk and Bo Amadi.\n\n" for n in range(200))
    done = await long_text(kit, monkeypatch, text)
    assert (done.status, done.entities) == ("ready", {"PERSON": 400})
    assert done.id is not None
    _, content, spans = await kit.documents.get(done.id)
    assert content == text
    assert {content[span.start : span.end] for span in spans} == set(NAMES)
    assert (await long_text(kit, monkeypatch, text)).status == "unchanged"
    changed = await long_text(kit, monkeypatch, text + "Marmalade.")
    assert (changed.status, changed.id) == ("replaced", done.id)
    assert await kit.found("marmalade") == [("long.txt", changed.chunks - 1)]


async def test_a_long_file_that_fails_halfway_changes_nothing(
    kit: Kit, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its parts are one transaction: the old version stays."""
    text = "".join(f"Line {n} by Ottoline Farouk.\n\n" for n in range(200))
    await long_text(kit, monkeypatch, text)
    before = kit.rows()

    class Failing(Counting):
        def detect(self, text: str) -> list:  # type: ignore[type-arg]
            if "Line 150" in text:
                raise pipeline.TooLarge
            return super().detect(text)

    kit.detector = Failing(NAMES, "fake-2")
    assert (await long_text(kit, monkeypatch, text)).error_code == "too_large"
    assert kit.rows() == before


async def test_one_text_that_ends_its_process_does_not_keep_the_others_out(kit: Kit) -> None:
    """A dead worker is replaced; its file is reported, the rest is stored."""
    kit.write(**{f"n{n:03}": f"Bo Amadi wrote {n}." for n in range(120)})
    kit.write(n050="END-THE-PROCESS")
    recipe = Recipe(partial(TroubledDetector, NAMES), None, kit.store.subkey("aliases"))
    done = await kit.ingestor(recipe, ingest_workers=2).ingest_many(list(find_files([kit.folder])))
    assert [(o.source, o.error_code) for o in done if o.status == "failed"] == [
        ("n050.txt", "detector_failed")
    ]
    assert kit.rows()["documents"] == 119
    assert kit.detector.asked == 0


async def test_a_document_is_found_by_what_it_is_about(kit: Kit) -> None:
    """Words of source and metadata lead to its first chunk, and to no other."""
    text = "Nothing of that in here. " * 30
    await kit.ingestor().ingest(
        Document("boiler_repair-2024.txt", text, {"author": "Bo Amadi", "pages": 3})
    )
    for query in ("boiler", "repair", "2024", "Amadi"):
        assert await kit.found(query) == [("boiler_repair-2024.txt", 0)]


async def test_metadata_filters(kit: Kit) -> None:
    """Given metadata narrows a search."""
    await kit.ingestor().ingest_bytes("a.txt", b"The keys.", metadata={"team": "north"})
    await kit.ingestor().ingest_bytes("b.txt", b"The keys.", metadata={"team": "south"})
    assert await kit.found("keys", team="south") == [("b.txt", 0)]


async def test_other_metadata_replaces(kit: Kit) -> None:
    """The same bytes with other metadata are another version."""
    await kit.ingestor().ingest_bytes("a.txt", b"The keys.", metadata={"team": "north"})
    done = await kit.ingestor().ingest_bytes("a.txt", b"The keys.", metadata={"team": "south"})
    assert done.status == "replaced"


async def test_a_name_that_comes_twice_is_replaced_by_the_later(kit: Kit) -> None:
    """Two files of one name in a batch: the order is kept."""
    from rag.ingest.pipeline import file_of

    files = [file_of("a.txt", b"first"), file_of("b.txt", b"x"), file_of("a.txt", b"second")]
    done = await kit.ingestor().ingest_many(files)
    assert [one.status for one in done] == ["ready", "ready", "replaced"]
    assert await kit.found("second") == [("a.txt", 0)]
