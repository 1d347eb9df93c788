"""The recording stub keeps every byte and answers by its script."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Iterator
from typing import Any

import httpx2
import pytest

from rag.testing.noleak import assert_no_leak, assert_seen
from rag.testing.stub import (
    Script,
    Stub,
    bend,
    drop,
    echo,
    frame,
    judge,
    passage_of,
    question_of,
    serve_stub,
    swap,
)

PROMPT = "Context:\n[1] The owner of flat 4 is [PERSON_1_k7q] and pays.\n\nQuestion: Who is it?"


@pytest.fixture
def stub() -> Iterator[Stub]:
    with serve_stub() as running:
        yield running


def _ask(stub: Stub, prompt: str = PROMPT, **more: Any) -> httpx2.Response:
    body = {"model": "m", "messages": [{"role": "user", "content": prompt}], **more}
    with httpx2.Client(trust_env=False, timeout=5) as client:
        return client.post(stub.base_url + "/chat/completions", json=body)


def _text(reply: httpx2.Response) -> str:
    return str(reply.json()["choices"][0]["message"]["content"])


def _deltas(reply: httpx2.Response) -> list[str]:
    events = [e.removeprefix("data: ") for e in reply.text.strip().split("\n\n")]
    assert events.pop() == "[DONE]"
    choices = [json.loads(e)["choices"][0]["delta"] for e in events]
    return [c["content"] for c in choices if c.get("content")]


def test_keeps_every_byte(stub: Stub) -> None:
    """Request line, headers and body are recorded as they came over the wire."""
    raw = b"POST /v1/chat/completions?a=Oda HTTP/1.1\r\nHost: x\r\nX-Odd:  Kvist \r\n"
    body = json.dumps({"messages": []}).encode()
    raw += b"Content-Length: %d\r\n\r\n" % len(body) + body
    port = int(stub.base_url.rpartition(":")[2].removesuffix("/v1"))
    with socket.create_connection(("127.0.0.1", port)) as connection:
        connection.sendall(raw)
        connection.recv(1)
    [record] = stub.records
    assert (record.raw, record.body, bytes(stub.wires[0])) == (raw, body, raw)
    assert abs(record.at - time.time()) < 5


def test_keeps_what_is_no_http(stub: Stub) -> None:
    """Bytes that are no request are kept too, so that they count as having left."""
    port = int(stub.base_url.rpartition(":")[2].removesuffix("/v1"))
    with socket.create_connection(("127.0.0.1", port)) as connection:
        connection.sendall(b"\x16\x03 Ingrun Vestby\r\n\r\n")
        connection.recv(100)
    with pytest.raises(AssertionError, match="left"):
        assert_no_leak(stub, ["Ingrun Vestby"])


def test_echo(stub: Stub) -> None:
    """By default it gives back the passage, and a prompt without one its question."""
    assert _text(_ask(stub)) == "[1] The owner of flat 4 is [PERSON_1_k7q] and pays."
    assert _text(_ask(stub, "Rewrite.\nQuestion: Who is it?")) == "Who is it?"
    assert (len(stub.answers), len(stub.rewrites)) == (1, 1)
    assert_seen(stub, ["[PERSON_1_k7q]"])


def test_frame(stub: Stub) -> None:
    """It uses whatever stands between two plain words, without knowing its shape."""
    stub.script.answer = frame("flat 4 is ", " and pays", "It is {}, {}.")
    assert _text(_ask(stub)) == "It is [PERSON_1_k7q], [PERSON_1_k7q]."


@pytest.mark.parametrize("size", [0, 1, 2, 3, 7])
def test_split(stub: Stub, size: int) -> None:
    """A stream's deltas have so many characters, and join to the whole."""
    stub.script = Script(answer=lambda _: "Ödå 💥 is it.", split=size)
    deltas = _deltas(_ask(stub, stream=True))
    assert "".join(deltas) == "Ödå 💥 is it."
    assert size == 0 or max(map(len, deltas)) == size


def test_reasoning(stub: Stub) -> None:
    """Reasoning comes in its own field and as a block before the answer."""
    stub.script = Script(answer=lambda _: "It is.", thought="Who?")
    message = _ask(stub).json()["choices"][0]["message"]
    assert message["reasoning_content"] == "Who?"
    assert message["content"] == "<think>Who?</think>\nIt is."


def test_error_quotes_the_prompt(stub: Stub) -> None:
    """Its errors say what it was asked, as some servers' do."""
    stub.script.status = 500
    reply = _ask(stub)
    assert reply.status_code == 500
    assert "[PERSON_1_k7q]" in reply.text


def test_reset(stub: Stub) -> None:
    """It can break a connection off, at once or in the middle of a stream."""
    stub.script.reset_after = 0
    with pytest.raises(httpx2.TransportError):
        _ask(stub)
    stub.script = Script(split=1, reset_after=3)
    with pytest.raises(httpx2.TransportError):
        _ask(stub, stream=True)


def test_abort_is_recorded(stub: Stub) -> None:
    """It notices when a client leaves before the answer."""
    stub.script.delay = 30
    with httpx2.Client(trust_env=False, timeout=0.2) as client, pytest.raises(httpx2.ReadTimeout):
        client.post(stub.base_url + "/chat/completions", json={"messages": []})
    deadline = time.monotonic() + 5
    while stub.records[0].aborted_at is None and time.monotonic() < deadline:
        time.sleep(0.02)
    assert stub.records[0].aborted_at is not None


@pytest.mark.parametrize("field", ["user", "metadata", "store", "stream_options", "logprobs"])
def test_strict_refuses_fields(stub: Stub, field: str) -> None:
    """Strict, it answers 422 to a field that not every server knows."""
    stub.script.strict = True
    assert _ask(stub, **{field: None}).status_code == 422
    assert _ask(stub, temperature=0).status_code == 200


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"model": "m", "input": ["a", "b"]}, 200),
        ({"model": "m", "input": "a"}, 200),
        ({"model": "m", "input": [1, 2]}, 400),
        ({"model": "m", "input": [[1], [2]]}, 400),
        ({"model": "m", "input": []}, 400),
        ({"model": "m", "input": "a", "encoding_format": "base64"}, 400),
        ({"model": "m", "input": ["a"] * 4}, 413),
    ],
)
def test_strict_embeddings(stub: Stub, body: dict[str, Any], status: int) -> None:
    """Strict, it takes strings in plain numbers only, and not too many."""
    stub.script = Script(strict=True, most_inputs=3)
    with httpx2.Client(trust_env=False) as client:
        assert client.post(stub.base_url + "/embeddings", json=body).status_code == status


def test_rewrites_can_go_wrong() -> None:
    """As a rewriter it bends, drops or swaps what looks like a placeholder, and keeps words."""
    prompt = "Question: Where does [PERSON_1_k7q] keep the key?"
    assert bend(prompt) == "Where does person_1_k7q keep the key?"
    assert drop(prompt) == "Where does keep the key?"
    assert swap(prompt) == "Where does [PERSON_2_k8q] keep the key?"


def test_judge_speaks_json() -> None:
    """As a judge it answers each kind of prompt with the JSON that is asked for."""
    made = json.loads(judge('Break into statements. {"question": "q", "answer": "One. Two."}'))
    assert made == {"statements": ["One.", "Two."]}
    given = json.dumps({"context": "c", "statements": ["One.", "Two."]})
    made = json.loads(judge(f"Give a verdict for each. {given}"))
    assert [s["verdict"] for s in made["statements"]] == [1, 1]
    made = json.loads(judge('Say whether it is noncommittal. {"response": "One."}'))
    assert made["noncommittal"] == 0


def test_parts_of_a_prompt() -> None:
    """The passage ends at the last question, also when it holds one itself."""
    prompt = "Context:\n[1] A form.\nQuestion: old?\n\nQuestion: new?"
    assert passage_of(prompt) == "[1] A form.\nQuestion: old?"
    assert question_of(prompt) == "new?"
    assert passage_of("Question: new?") == ""
    assert echo(prompt).startswith("[1]")
