"""A document enters whole, detected once, or not at all."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import replace
from uuid import UUID

import numpy as np
import pytest

from rag.errors import (
    DetectorFailed,
    EmptyDocument,
    ModelFailed,
    TooLarge,
    VeilragError,
)
from rag.ingest.pipeline import Ingestor, Progress, content_hash, file_of
from rag.ports import Detector, OutboundGuard, Vectors
from rag.privacy.forms import FormHasher, words_key
from rag.privacy.policy import load_policy
from rag.settings import Settings
from rag.testing.fakes import BagEmbedder, MemoryDocuments, MemoryStore, NameDetector
from rag.types import Document, EntityType, Ingested, Section, Span

TENANT = UUID(int=7)
NAMES = {
    "Ottoline Farouk": EntityType.PERSON,
    "07700 900142": EntityType.PHONE,
    "Bo Lindqvist-Amadi": EntityType.PERSON,
    "Halifax": EntityType.PLACE,
}
LETTER = (
    "# Ottoline Farouk\n\nShe lives in Halifax and is called on 07700 900142 in the morning.\n\n"
    "## Boiler\n\n" + "The boiler was replaced in the spring. " * 8
)
HASHER = FormHasher(b"k" * 32)


class Broken:
    """A detector or an embedder that fails."""

    version = "broken"
    remote, trusted = False, True
    space = BagEmbedder().space

    def __init__(self, error: Exception | float) -> None:
        self.error = error

    def _fail(self) -> None:
        if isinstance(self.error, float):
            time.sleep(self.error)
        else:
            raise self.error

    def detect(self, text: str) -> list[Span]:
        self._fail()
        return []

    async def embed(self, texts: Sequence[str], guard: OutboundGuard | None = None) -> Vectors:
        self._fail()
        return np.zeros((0, 0), dtype=np.float32)


class Remote(BagEmbedder):
    """An embedder outside of the boundary that keeps what it was sent, checked by the guard."""

    remote, trusted = True, False

    def __init__(self) -> None:
        super().__init__()
        self.sent: list[str] = []

    async def embed(self, texts: Sequence[str], guard: OutboundGuard | None = None) -> Vectors:
        assert guard is not None
        body = json.dumps({"input": list(texts)}).encode()
        guard.check("POST", "http://fake.invalid/v1/embeddings", [], body)
        self.sent += texts
        return await super().embed(texts)


class Kit:
    """An ingestor over a store in memory, whose parts can be exchanged."""

    def __init__(self, **settings: object) -> None:
        self.store = MemoryStore()
        self.documents: MemoryDocuments = self.store.documents(TENANT)
        self.settings = Settings(_env_file=None, chunk_chars=200, **settings)  # type: ignore[arg-type]
        self.detector: Detector = NameDetector(NAMES)

    def ingestor(
        self, *, detector: Detector | None = None, embedder: object = None, known: bool = False
    ) -> Ingestor:
        async def aliases() -> object:
            return await self.store.search_all(TENANT)

        return Ingestor(
            settings=self.settings,
            detector=detector or self.detector,
            embedder=embedder or BagEmbedder(),  # type: ignore[arg-type]
            store=self.documents,
            hasher=HASHER,
            policy=load_policy("default"),
            known=aliases if known else None,  # type: ignore[arg-type]
        )

    async def stored(self, source: str) -> tuple[UUID, str, str] | None:
        return await self.documents.find("default", source)


@pytest.fixture
def kit() -> Kit:
    return Kit()


async def test_a_document_is_ready_with_its_spans(kit: Kit) -> None:
    """Personal data of all types is stored as offsets of the document."""
    done = await kit.ingestor().ingest_bytes("letter.md", LETTER.encode())
    assert (done.status, done.entities) == ("ready", {"PERSON": 1, "PLACE": 1, "PHONE": 1})
    assert done.id is not None
    _, content, spans = await kit.documents.get(done.id)
    assert {content[s.start : s.end] for s in spans} == {
        "Ottoline Farouk",
        "Halifax",
        "07700 900142",
    }


async def test_source_and_metadata_are_detected_too(kit: Kit) -> None:
    """A name that only the file's name or its author field gives away is known (I10)."""
    document = Document("Ottoline Farouk.txt", "plain", {"author": "Bo Lindqvist-Amadi"})
    done = await kit.ingestor().ingest(document)
    assert done.entities == {"PERSON": 2}
    known = await kit.store.search_all(TENANT)
    forms = [HASHER.hash(words_key(name)) for name in ("Ottoline Farouk", "Bo Lindqvist-Amadi")]
    assert {alias.form for alias in await known.known_forms(forms)} == set(forms)


async def test_detection_sees_the_whole_document_once(kit: Kit) -> None:
    """It runs before cutting, on everything that may leave, and not again for the chunks."""
    seen = []

    class Watching(NameDetector):
        def detect(self, text: str) -> list[Span]:
            seen.append(text)
            return super().detect(text)

    document = Document("letter.txt", LETTER, {"author": "x"})
    await kit.ingestor(detector=Watching(NAMES)).ingest(document)
    assert seen == [document.surface()]


async def test_no_value_is_cut_at_any_offset(kit: Kit) -> None:
    """Wherever the border of a chunk would fall, every value is whole in some chunk."""
    for padding in range(60, 120, 7):
        text = "filler " * 12 + "x" * padding + " 07700 900142 and Ottoline Farouk " + "more " * 60
        await kit.ingestor().ingest(Document(f"{padding}.txt", text))
    found = await kit.store.search(TENANT, ["default"], BagEmbedder().space)
    hits = await found.fill(await found.lexical("07700 Ottoline Farouk 900142", 500, {}))
    pieces = [hit.chunk.text for hit in hits]
    assert sum("07700 900142" in text for text in pieces) == 9
    assert not any(("07700" in t) != ("900142" in t) for t in pieces)
    assert not any(("Ottoline" in t) != ("Farouk" in t) for t in pieces)


async def test_the_same_again_is_unchanged(kit: Kit) -> None:
    """Same content, same detector: nothing is done, and the stored numbers are told."""
    first = await kit.ingestor().ingest_bytes("letter.md", LETTER.encode())
    again = await kit.ingestor(embedder=Broken(ModelFailed())).ingest_bytes(
        "letter.md", LETTER.encode()
    )
    assert again == replace(first, status="unchanged")


@pytest.mark.parametrize(
    "other",
    [
        Document("letter.md", LETTER + "More."),
        Document("letter.md", LETTER, {"author": "new"}),
    ],
)
async def test_other_content_or_metadata_replaces(kit: Kit, other: Document) -> None:
    """The version is everything that may leave, not the text alone."""
    first = await kit.ingestor().ingest(Document("letter.md", LETTER))
    second = await kit.ingestor().ingest(other)
    assert (second.status, second.id) == ("replaced", first.id)


async def test_another_detector_replaces(kit: Kit) -> None:
    """What an older detector found is not relied on (I10)."""
    await kit.ingestor().ingest(Document("letter.md", LETTER))
    newer = NameDetector(NAMES, version="fake-2")
    assert (await kit.ingestor(detector=newer).ingest(Document("letter.md", LETTER))).status == (
        "replaced"
    )


@pytest.mark.parametrize("error", [DetectorFailed(), TooLarge()])
async def test_nothing_is_stored_when_detection_fails(kit: Kit, error: Exception) -> None:
    """Raw text without spans is never the fallback (I2)."""
    with pytest.raises(type(error)):
        await kit.ingestor(detector=Broken(error)).ingest(Document("letter.md", LETTER))
    assert await kit.stored("letter.md") is None


async def test_a_detector_that_hangs_is_a_failure() -> None:
    """Time is granted in proportion to the size, and then it is over (I2)."""
    kit = Kit(detect_timeout=0.05)
    with pytest.raises(DetectorFailed):
        await kit.ingestor(detector=Broken(0.5)).ingest(Document("letter.md", LETTER))
    assert await kit.stored("letter.md") is None


async def test_more_time_is_granted_to_a_longer_document() -> None:
    """A time limit made for a question does not fail a report."""
    kit = Kit(detect_timeout=0.05)
    long = Document("long.txt", "word " * 80_000)
    assert (await kit.ingestor(detector=Broken(0.5)).ingest(long)).status == "ready"


@pytest.mark.parametrize(
    "place", [Span(0, 10_000, EntityType.PERSON), Span(5, 5, EntityType.PERSON)]
)
async def test_spans_outside_of_the_text_are_a_failure(kit: Kit, place: Span) -> None:
    """A detector that names places which are not there cannot be relied on (I2)."""

    class Astray(NameDetector):
        def detect(self, text: str) -> list[Span]:
            return [place]

    with pytest.raises(DetectorFailed):
        await kit.ingestor(detector=Astray([])).ingest(Document("letter.md", LETTER))


async def test_the_old_version_stays_when_the_new_one_cannot_be_embedded(kit: Kit) -> None:
    """All or nothing: a failure half way takes nothing away."""
    await kit.ingestor().ingest(Document("letter.md", LETTER))
    before = await kit.stored("letter.md")
    with pytest.raises(ModelFailed):
        await kit.ingestor(embedder=Broken(ModelFailed())).ingest(
            Document("letter.md", LETTER + "More.")
        )
    assert await kit.stored("letter.md") == before


@pytest.mark.parametrize("rows", ["few", "nan"])
async def test_vectors_that_do_not_fit_are_a_failure(kit: Kit, rows: str) -> None:
    """Fewer vectors than chunks, or none that is a number, are never paired wrongly."""

    class Odd(BagEmbedder):
        async def embed(self, texts: Sequence[str], guard: OutboundGuard | None = None) -> Vectors:
            vectors = await super().embed(texts)
            return vectors[:-1] if rows == "few" else vectors * np.float32("nan")

    with pytest.raises(ModelFailed):
        await kit.ingestor(embedder=Odd()).ingest(Document("letter.md", LETTER))
    assert await kit.stored("letter.md") is None


async def test_headings_are_embedded_with_their_chunks(kit: Kit) -> None:
    """A chunk is found by the headings above it, which its own text may not repeat."""
    seen: list[str] = []

    class Watching(BagEmbedder):
        async def embed(self, texts: Sequence[str], guard: OutboundGuard | None = None) -> Vectors:
            seen.extend(texts)
            return await super().embed(texts)

    await kit.ingestor(embedder=Watching()).ingest(Document("letter.md", LETTER))
    assert seen[0].startswith("# Ottoline Farouk\n\nShe lives")
    assert all(text.startswith("Ottoline Farouk\n## Boiler") for text in seen[1:2])
    assert all(text.startswith("Ottoline Farouk > Boiler\nThe boiler") for text in seen[2:])
    assert len(seen) > 2


async def test_a_remote_embedder_gets_type_words(kit: Kit) -> None:
    """No original and no placeholder leaves at ingestion, the words between do (I1, I5)."""
    remote = Remote()
    await kit.ingestor(embedder=remote).ingest(Document("letter.md", LETTER))
    sent = "\n".join(remote.sent)
    assert remote.sent
    for original in ("Ottoline", "Farouk", "07700", "900142"):
        assert original.casefold() not in sent.casefold()
    assert "The boiler was replaced in the spring." in sent
    assert "a person" in sent
    assert "Halifax" in sent  # the default policy lets places pass


async def test_whom_only_the_metadata_names_does_not_leave(kit: Kit) -> None:
    """A form that the file's name gives away is protected where detection missed it (I1)."""

    class OnlyFields(NameDetector):
        def detect(self, text: str) -> list[Span]:
            return super().detect(text)[-1:]

    remote = Remote()
    text = "The report was written by Bo Lindqvist-Amadi in a hurry."
    await kit.ingestor(detector=OnlyFields(NAMES), embedder=remote).ingest(
        Document("r.txt", text, {"author": "Bo Lindqvist-Amadi"})
    )
    assert remote.sent
    assert "Lindqvist" not in "".join(remote.sent)


async def test_whom_another_document_names_does_not_leave(kit: Kit) -> None:
    """A name that this document's scan missed but another gave away is protected (I1)."""
    await kit.ingestor().ingest(Document("letter.md", LETTER))
    remote = Remote()
    blind = NameDetector([])
    text = "A note that says Ottoline Farouk was in."
    await kit.ingestor(detector=blind, embedder=remote, known=True).ingest(Document("n.txt", text))
    assert remote.sent
    assert "Farouk" not in "".join(remote.sent)


async def test_parts_of_a_long_document_protect_each_other() -> None:
    """Who is named in one part, or in the metadata, does not leave with a later part."""

    class First(NameDetector):
        def detect(self, text: str) -> list[Span]:
            return super().detect(text) if "FIRST" in text else []

    kit = Kit(max_detect_chars=2_000)
    remote = Remote()
    text = "FIRST Ottoline Farouk.\n\n" + "Plain words.\n\n" * 300 + "Seen: Ottoline Farouk, "
    document = Document("long.txt", text + "Bo Lindqvist-Amadi.", {"author": "Bo Lindqvist-Amadi"})
    await kit.ingestor(detector=First(NAMES), embedder=remote).ingest(document)
    sent = "".join(remote.sent)
    assert "Seen" in sent
    assert "Farouk" not in sent
    assert "Lindqvist" not in sent


async def test_a_trusted_embedder_gets_the_words_themselves(kit: Kit) -> None:
    """An endpoint that the operator trusts is inside the boundary."""
    remote = Remote()
    remote.trusted = True
    await kit.ingestor(embedder=remote).ingest(Document("letter.md", LETTER))
    assert "Ottoline Farouk" in "".join(remote.sent)


async def test_one_bad_file_does_not_keep_the_others_out(kit: Kit) -> None:
    """Each failure has its code and no text; progress counts every file."""
    files = [
        file_of("a.txt", b"one"),
        file_of("b.pdf", b"no pdf"),
        file_of("c.txt", b" "),
        file_of("d.docx", b"PK\x03\x04"),
        file_of("e.txt", "zwei für Ünal".encode("cp1252")),
        file_of("", b"text"),
    ]
    told: list[Progress] = []
    done = await kit.ingestor().ingest_many(files, "default", told.append)
    assert [(one.source, one.status, one.error_code) for one in done] == [
        ("a.txt", "ready", None),
        ("b.pdf", "failed", "malformed"),
        ("c.txt", "failed", "empty"),
        ("d.docx", "failed", "malformed"),
        ("e.txt", "ready", None),
        ("", "failed", "invalid"),
    ]
    assert [progress.files for progress in told] == [1, 2, 3, 4, 5, 6]
    last = told[-1]
    assert (last.chunks, last.failed, last.bytes) == (2, 4, last.all_bytes)


async def test_given_metadata_wins_over_what_the_file_says(kit: Kit) -> None:
    """The uploader's word counts."""
    data = b"---\ntitle: Old\nauthor: x\n---\n\ntext"
    done = await kit.ingestor().ingest_bytes("a.md", data, metadata={"title": "New"})
    assert isinstance(done, Ingested)
    assert done.id is not None
    stored, _, _ = await kit.documents.get(done.id)
    assert stored.metadata == {"title": "New", "author": "x"}


@pytest.mark.parametrize(
    ("document", "refusal"),
    [
        (Document("a.txt", " \n"), EmptyDocument),
        (Document(" ", "text"), VeilragError),
        (Document("a.txt", "x" * 3_000), TooLarge),
    ],
)
async def test_text_that_came_as_text_is_checked(
    document: Document, refusal: type[Exception]
) -> None:
    """What does not come through a loader is held to the same limits."""
    with pytest.raises(refusal):
        await Kit(max_document_chars=2_000).ingestor().ingest(document)


async def test_what_cannot_be_stored_is_replaced_before_detection(kit: Kit) -> None:
    """What is detected, stored and hashed is one text."""
    document = Document("a\x00.txt", "Ottoline Farouk\x00\ud800 07700 900142")
    done = await kit.ingestor().ingest(document)
    assert (done.source, done.entities) == ("a\ufffd.txt", {"PERSON": 1, "PHONE": 1})


async def test_sections_out_of_the_content_do_no_harm(kit: Kit) -> None:
    """Places that a caller made up cut nothing and break nothing."""
    document = Document("a.txt", "some text", sections=(Section(2), Section(999)))
    assert (await kit.ingestor().ingest(document)).chunks == 2


def test_the_version_is_a_digest_of_all_that_may_leave() -> None:
    """Source and metadata count as the content does, text never shows."""
    one = content_hash(Document("a", "text", {"k": "v"}))
    assert (
        len(
            {
                one,
                content_hash(Document("b", "text", {"k": "v"})),
                content_hash(Document("a", "text")),
            }
        )
        == 3
    )
    assert len(one) == 64
