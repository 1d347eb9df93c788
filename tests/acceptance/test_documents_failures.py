"""An embedder that fails in the middle of a document, and what is found before and after."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable
from typing import Any

import pytest

from rag.testing.stub import bag_of_words

REMOTE = {"embeddings": "openai:stub-embed", "embedding_batch_texts": "4"}
FILLER = "The rope was coiled, the deck was swept and the log was closed for the day. "
WORDS = (
    *("anchor", "binnacle", "capstan", "davit", "ensign", "fender", "galley", "hawser"),
    *("inlet", "jetty", "keel", "lantern", "mooring", "nozzle", "oarlock", "pontoon"),
)


def passages(count: int, colour: str) -> str:
    """So many sections that no splitter joins two: each names its own part and the colour."""
    return "\n\n".join(
        f"# Part {n}\n\nThe {WORDS[n % len(WORDS)]} of berth {n} is {colour}. {FILLER * 12}"
        for n in range(count)
    )


class Berths:
    """A collection of a service whose embedder is a stub."""

    def __init__(self, service: Any, collection: str) -> None:
        self.service, self.collection = service, collection

    def send(self, text: str, source: str = "berths.md") -> Any:
        files = {"file": (source, text.encode(), "text/markdown")}
        return self.service.client.post(
            "/documents", files=files, data={"collection": self.collection}
        )

    def listed(self) -> list[dict[str, Any]]:
        """Its documents; none where the collection was never made."""
        reply = self.service.client.get("/documents", params={"collection": self.collection})
        assert reply.status_code in {200, 404}
        return list(reply.json().get("documents", []))

    def rows(self) -> dict[str, int]:
        """How many rows of its documents each table holds."""
        counted = {}
        with self.service.database() as database:
            own = "select id from veilrag.collections where name = %s"
            documents = f"select id from veilrag.documents where collection in ({own})"
            for table, key, of in (
                ("documents", "collection", own),
                ("chunks", "collection", own),
                ("aliases", "collection", own),
                ("spans", "document", documents),
            ):
                count = f"select count(*) from veilrag.{table} where {key} in ({of})"
                counted[table] = database.execute(count, (self.collection,)).fetchone()[0]
        return counted

    def ask(self, question: str, **fields: Any) -> dict[str, Any]:
        answer = self.service.ask(question, collection=self.collection, **fields)
        return dict(answer)

    def colours(self, berth: int) -> set[str]:
        """The colours that the passages found for a berth name."""
        answer = self.ask(f"What of the {WORDS[berth % len(WORDS)]} of berth {berth}?", top_k=50)
        contents = [one["content"] for one in answer["sources"]]
        return {c for c in ("ochre", "crimson", "indigo") if any(c in text for text in contents)}


@pytest.fixture
def stub(remote: Any) -> Any:
    return remote[1]


@pytest.fixture
def berths(remote: Any, collection: str) -> Berths:
    return Berths(remote[0], collection)


def from_the_second(colour: str, status: int) -> Callable[[Any], int | None]:
    """Let the first batch with that colour pass, and refuse every later one."""
    seen = itertools.count()
    lock = threading.Lock()

    def refuse(record: Any) -> int | None:
        if not (record.is_embedding and any(colour in text for text in record.inputs)):
            return None
        with lock:
            return status if next(seen) else None

    return refuse


@pytest.mark.parametrize("status", [500, 429, 400, 413])
def test_a_new_version_that_fails_half_way_leaves_the_old_one(
    berths: Berths, stub: Any, status: int
) -> None:
    """The old version is found whole during the failure; the retry leaves only the new one."""
    assert berths.send(passages(12, "ochre")).status_code == 201
    [before], held = berths.listed(), berths.rows()
    stub.script.refuse = from_the_second("crimson", status)
    reply = berths.send(passages(12, "crimson"))
    assert 400 <= reply.status_code < 600, reply.text
    assert reply.status_code != 500, reply.text
    assert reply.json()["error"]["code"] == "model_failed"
    assert [before] == berths.listed()
    assert held == berths.rows()
    assert berths.colours(10) == {"ochre"}
    stub.script.refuse = None
    [after] = berths.send(passages(12, "crimson")).json()["documents"]
    assert (after["status"], after["id"]) == ("replaced", before["id"])
    assert [berths.colours(berth) for berth in (0, 5, 10)] == [{"crimson"}] * 3
    assert berths.rows()["chunks"] == held["chunks"]


def test_a_detector_that_fails_leaves_the_old_version(launch: Any, new_stub: Any) -> None:
    """Detection that breaks over the new version stores nothing, sends nothing, hurts nothing."""
    before = (
        "import rag.privacy.detect as detect\n"
        "honest = detect.PresidioDetector.detect\n"
        "from rag.errors import DetectorFailed\n"
        "def fail(self, text):\n"
        "    if 'crimson' in text: raise DetectorFailed()\n"
        "    return honest(self, text)\n"
        "detect.PresidioDetector.detect = fail"
    )
    stub = new_stub()
    berths = Berths(launch(stub, before=before, **REMOTE).until_ready(), "default")
    assert berths.send(passages(12, "ochre")).status_code == 201
    held = berths.rows()
    stub.forget()
    reply = berths.send(passages(12, "crimson"))
    assert (reply.status_code, reply.json()["error"]["code"]) == (503, "detector_failed")
    assert stub.records == []
    assert berths.rows() == held
    assert berths.colours(10) == {"ochre"}


def test_of_two_files_the_one_that_fails_is_named(berths: Berths, stub: Any) -> None:
    """In a batch the failing document keeps its old version, the other enters."""
    assert berths.send(passages(12, "ochre")).status_code == 201
    stub.script.refuse = from_the_second("crimson", 500)
    files = [
        ("file", ("berths.md", passages(12, "crimson").encode(), "text/markdown")),
        ("file", ("other.md", passages(3, "indigo").encode(), "text/markdown")),
    ]
    reply = berths.service.client.post(
        "/documents", files=files, data={"collection": berths.collection}
    )
    assert reply.status_code == 201
    first, second = reply.json()["documents"]
    assert (first["status"], first["error"]["code"]) == ("failed", "model_failed")
    assert (second["status"], second["error"]) == ("ready", None)
    assert berths.colours(1) == {"ochre", "indigo"}


@pytest.mark.parametrize("status", [413, 400, 422, 500])
def test_one_refused_passage_leaves_nothing_half(berths: Berths, stub: Any, status: int) -> None:
    """All or nothing: no row of the document is left, and a second upload enters whole."""
    text = passages(40, "ochre").replace("berth 23 is ochre", "berth 23 is coated in zinc")
    stub.script.refuse = lambda record: (
        status if record.is_embedding and any("zinc" in x for x in record.inputs) else None
    )
    berths.send("A spare oar hangs in the loft.", "loft.md")
    held = berths.rows()
    reply = berths.send(text)
    assert reply.status_code == 502, reply.text
    assert reply.json()["error"]["code"] == "model_failed"
    assert berths.rows() == held
    assert [one["source"] for one in berths.listed()] == ["loft.md"]
    assert berths.colours(2) == set()
    stub.script.refuse = None
    [document] = berths.send(text).json()["documents"]
    assert document["status"] == "ready"
    assert document["chunks"] + held["chunks"] == berths.rows()["chunks"] > 40
    answer = berths.ask("Which berth is coated in zinc?", top_k=3)
    assert any("zinc" in one["content"] for one in answer["sources"])


def test_no_request_is_larger_than_the_provider_takes(launch: Any, new_stub: Any) -> None:
    """Limits that are set are kept in every request, and every passage gets its vector."""
    stub = new_stub(strict=True, most_inputs=10)
    limits = {"embedding_batch_texts": "10", "embedding_batch_chars": "24000"}
    service = launch(stub, embeddings="openai:stub-embed", **limits).until_ready()
    berths = Berths(service, "default")
    stub.forget()
    [document] = berths.send(passages(95, "ochre")).json()["documents"]
    assert document["status"] == "ready"
    assert document["chunks"] >= 95
    sent = [record.inputs for record in stub.embeddings]
    assert max(map(len, sent)) <= 10
    assert max(sum(map(len, inputs)) for inputs in sent) <= 24_000
    assert sum(map(len, sent)) == document["chunks"]  # none was refused and sent again
    with service.database() as database:
        row = database.execute("select count(*), count(embedding) from veilrag.chunks").fetchone()
    assert row == (document["chunks"], document["chunks"])


def test_a_provider_that_takes_less_than_was_set_is_served_all_the_same(
    launch: Any, new_stub: Any
) -> None:
    """Without a setting the size that the server takes is found out."""
    stub = new_stub(strict=True, most_inputs=7)
    service = launch(stub, embeddings="openai:stub-embed").until_ready()
    berths = Berths(service, "default")
    [document] = berths.send(passages(40, "ochre")).json()["documents"]
    assert document["status"] == "ready"
    stub.forget()
    berths.send(passages(40, "indigo"), "again.md")
    assert max(len(record.inputs) for record in stub.embeddings) <= 7


def test_vectors_in_another_order_are_paired_by_their_index(berths: Berths, stub: Any) -> None:
    """A reply that is turned round gives every passage its own vector."""
    stub.script.reverse = True
    assert berths.send(passages(16, "ochre")).status_code == 201
    for n, word in enumerate(WORDS[:5]):
        text = f"Part {n} The {word} of berth {n} is ochre. {FILLER * 12}"
        answer = berths.ask(text[:400], retriever="dense", top_k=1, rewrite_n=0)
        [cited] = answer["sources"]
        assert f"The {word} of berth {n} is ochre" in cited["content"]


def half(text: str) -> list[float] | None:
    """Vectors of a smaller model for one word of the text."""
    return bag_of_words(text, 32 if "davit" in text else 64)


BROKEN: dict[str, dict[str, Any]] = {
    "half of the vectors": {"lose": 2},
    "no vector": {"lose": 4},
    "vectors of two sizes": {"vector": half},
    "no JSON": {"body": b"<html>busy</html>"},
    "another shape": {"body": b'{"data": "none"}'},
    "a list": {"body": b"[]"},
    "nothing": {"body": b""},
    "vectors without an index": {"body": b'{"data": [{"embedding": [0.1, 0.2]}]}'},
    "an index that comes twice": {
        "body": b'{"object": "list", "model": "m", "data": ['
        + b", ".join(b'{"object": "embedding", "index": 0, "embedding": [%s]}' % b", ".join(
            [b"0.1"] * 64) for _ in range(4)) + b"]}"
    },
}  # fmt: skip


@pytest.mark.parametrize("script", BROKEN.values(), ids=BROKEN)
def test_vectors_that_do_not_match_are_refused(
    berths: Berths, stub: Any, script: dict[str, Any]
) -> None:
    """Fewer, none, of two sizes, unreadable: the document fails with its reason, no row is left."""
    for name, value in script.items():
        setattr(stub.script, name, value)
    reply = berths.send(passages(8, "ochre"))
    assert reply.status_code == 502, reply.text
    assert reply.json()["error"]["code"] == "model_failed"
    assert set(berths.rows().values()) == {0}
    assert berths.listed() == []
