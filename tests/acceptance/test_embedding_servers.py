"""Remote embedders of every size and temper: what is sent to them, and what they cannot break."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest

from rag.testing.noleak import assert_no_leak, assert_seen
from rag.testing.stub import bag_of_words

REMOTE = {"embeddings": "openai:stub-embed"}


@pytest.mark.parametrize("dimension", [3_072, 4_096])
def test_large_vectors_are_stored_and_found(launch: Any, new_stub: Any, dimension: int) -> None:
    """More dimensions than an index takes still start, store and find."""
    stub = new_stub(dimension=dimension)
    service = launch(stub, **REMOTE).until_ready()
    wanted = service.add("The slipway gate opens at half past six.", "gate.md")
    for n in range(3):
        service.add(f"Invoice {n} for paint and rope was paid.", f"{n}.md")
    answer = service.ask("When does the slipway gate open?", retriever="dense", top_k=1)
    assert [one["document_id"] for one in answer["sources"]] == [wanted]


def test_a_strict_server_gets_plain_strings(launch: Any, new_stub: Any) -> None:
    """No token arrays, no base64, no field that only one vendor knows; and no name either."""
    stub = new_stub(strict=True, most_inputs=64)
    service = launch(stub, **REMOTE).until_ready()
    text = "\n\n".join(
        f"# Part {n}\n\nMargaret Holloway signed part {n} at margaret.holloway@tidewater.example."
        + " The paint is blue." * 60
        for n in range(80)
    )
    service.add(text)
    answer = service.ask("Who signed part 7?")
    assert "Margaret Holloway" in answer["answer"]
    assert len(stub.embeddings) > 2
    for record in stub.embeddings:
        assert all(isinstance(one, str) for one in record.inputs)
        assert set(record.json) <= {"model", "input", "encoding_format"}
    assert_no_leak(stub, ["Holloway", "Margaret", "tidewater"])
    assert_seen(stub, ["The paint is blue."])


def test_a_changed_model_is_a_conflict_and_never_mixed(
    launch: Any, new_stub: Any, tmp_path: Path
) -> None:
    """A collection remembers its space: both sizes are named, nothing fails deep inside."""
    stub = new_stub(dimension=8)
    first = launch(stub, data_dir=tmp_path / "data", **REMOTE).until_ready()
    first.add("The slipway gate opens at half past six.", "gate.md")
    first.stop()
    stub.script.dimension = 16
    second = launch(stub, data_dir=tmp_path / "data", **REMOTE).until_ready()
    upload = {"text": "The slipway gate is green.", "source": "new.md"}
    for path, body in (("/documents", upload), ("/ask", {"question": "When does it open?"})):
        reply = second.client.post(path, json=body)
        assert reply.status_code == 409, reply.text
        error = reply.json()["error"]
        assert error["code"] == "space_mismatch"
        assert "8 dimensions" in error["message"]
        assert "16 dimensions" in error["message"]
    second.add("The slipway gate is green.", "new.md", collection="fresh")
    assert second.ask("What colour is the gate?", collection="fresh")["sources"]
    assert [d["source"] for d in second.client.get("/documents").json()["documents"]] == ["gate.md"]


def test_useless_vectors_never_come_first(launch: Any, new_stub: Any) -> None:
    """A zero, NaN or missing vector is no neighbour of anything, and never an error 500."""
    dimension = 16

    def vector(text: str) -> list[float] | None:
        if "zero" in text:
            return [0.0] * dimension
        if "nan" in text:
            return [math.nan] * dimension
        if "null" in text:
            return None
        return bag_of_words(text, dimension)

    stub = new_stub(dimension=dimension, vector=vector)
    service = launch(stub, **REMOTE).until_ready()
    useless = set()
    for word in ("zero", "nan", "null"):
        upload = {"text": f"The ledger of {word} is closed.", "source": word}
        reply = service.client.post("/documents", json=upload)
        assert reply.status_code in {201, 422, 502}, reply.text
        if reply.status_code == 201:
            useless.add(reply.json()["documents"][0]["id"])
    for n in range(6):
        service.add(f"Boathouse {n} has a blue door and a brass bell.", f"{n}.md")
    questions = ["Which door is blue?", "Where is a bell?", "boathouse 3", "brass", "Is 5 blue?"]
    for question in questions:
        for retriever in ("dense", "hybrid"):
            reply = service.client.post(
                "/ask", json={"question": question, "retriever": retriever, "top_k": 5}
            )
            assert reply.status_code == 200, reply.text
            answer = json.loads(reply.text, parse_constant=pytest.fail)
            assert not useless & {one["document_id"] for one in answer["sources"]}


def test_an_embedder_that_cannot_be_reached_is_not_ready(launch: Any, new_stub: Any) -> None:
    """A remote model that fails at the start is named by /readyz, and nothing is served raw."""
    stub = new_stub(status=500)
    service = launch(stub, **REMOTE)
    until_named(service, "model")
    assert service.client.get("/healthz").status_code == 200
    assert service.client.post("/ask", json={"question": "q"}).status_code == 503


def until_named(service: Any, word: str) -> None:
    import time

    until = time.monotonic() + 60
    while word not in (reply := service.client.get("/readyz")).text:
        assert reply.status_code == 503
        assert time.monotonic() < until, reply.text
        time.sleep(0.1)
