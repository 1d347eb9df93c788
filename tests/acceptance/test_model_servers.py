"""Chat servers of every temper: strict ones, thinking ones, failing ones, talkative ones."""

from __future__ import annotations

import json
from typing import Any

import pytest

from rag.testing.noleak import assert_no_leak
from rag.testing.stub import drop, frame, say, swap

DOCUMENTED = {
    "model",
    "messages",
    "stream",
    "max_tokens",
    "max_completion_tokens",
    "temperature",
    "top_p",
    "stop",
    "seed",
    "n",
}
FACT = "The harbour key of boathouse 4 is held by Margaret Holloway until May."
QUESTION = "Who holds the harbour key of boathouse 4?"


@pytest.fixture
def place(service: Any, collection: str) -> str:
    """A collection that holds the fact."""
    service.add(FACT, collection=collection)
    return collection


def test_a_strict_server_gets_documented_fields_only(service: Any, stub: Any, place: str) -> None:
    """A server that refuses unknown fields is served: nothing optional is sent."""
    stub.script.strict = True
    answer = service.ask(QUESTION, collection=place)
    assert "Margaret Holloway" in answer["answer"]
    assert len(stub.chats) == 2
    for record in stub.chats:
        assert set(record.json) <= DOCUMENTED
        names = {name.lower() for name, _ in record.headers}
        assert not {name for name in names if name.startswith("x-") or "organization" in name}
    assert_no_leak(stub, ["Holloway", "Margaret"])


REWRITES = {
    "prose": "Certainly! I would look for who has the harbour key. Good luck with it.",
    "fenced JSON": '```json\n["harbour key holder", "boathouse 4 key"]\n```',
    "extra keys": '{"thoughts": "fine", "queries": ["harbour key holder"], "n": 1}',
    "half JSON": '{"queries": ["harbour key hol',
    "nothing but a fence": "```",
    "numbers": "1. harbour key\n2. boathouse 4",
    "an essay": "word " * 3_000,
    "markup": "<query>harbour key</query>",
}


@pytest.mark.parametrize("text", REWRITES.values(), ids=REWRITES)
def test_whatever_shape_rewrites_have_the_question_is_answered(
    service: Any, stub: Any, place: str, text: str
) -> None:
    """A model that does not keep to the asked form costs at most the rewrites."""
    stub.script.rewrite = say(text)
    stub.script.answer = frame("is held by ", " until", "It is {}.")
    answer = service.ask(QUESTION, collection=place)
    assert answer["answer"] == "It is Margaret Holloway."
    assert len(answer["rewrites"]) <= 3


def test_an_unreadable_rewrite_is_said_so(service: Any, stub: Any, place: str) -> None:
    """The fallback to rules is visible in the warnings."""
    stub.script.rewrite = say("```")
    answer = service.ask(QUESTION, collection=place)
    assert "rewrite_unreadable" in answer["warnings"]
    assert answer["rewrites"]


@pytest.mark.parametrize("rewrite", [swap, drop], ids=["swapped", "dropped"])
def test_forged_placeholders_in_rewrites_find_nobody_else(
    service: Any, stub: Any, collection: str, rewrite: Any
) -> None:
    """A rewrite that names a placeholder of its own making is dropped, not searched (I4)."""
    service.add("Margaret Holloway rents boathouse 4.", "a.md", collection)
    service.add("Thomas Pemberton rents boathouse 9.", "b.md", collection)
    stub.script.rewrite = rewrite
    answer = service.ask("What does Margaret Holloway rent?", collection=collection)
    assert not any("Pemberton" in one for one in answer["rewrites"])
    assert answer["sources"][0]["source"] == "a.md"
    if rewrite is swap:
        assert "rewrites_dropped" in answer["warnings"]


def test_thinking_is_not_shown(service: Any, stub: Any, place: str) -> None:
    """Reasoning before the answer, in a field or in tags, reaches neither answer nor rewrites."""
    stub.script.thought = "The PERSON with the key is secret-thought"
    stub.script.answer = frame("is held by ", " until", "It is {}.")
    answer = service.ask(QUESTION, collection=place)
    assert answer["answer"] == "It is Margaret Holloway."
    assert "think" not in json.dumps(answer)
    assert "secret-thought" not in json.dumps(answer)


@pytest.mark.parametrize(
    ("status", "ours", "code"),
    [
        *((status, 502, "model_failed") for status in (400, 409, 422, 429, 500, 503)),
        *((status, 503, "misconfigured") for status in (401, 403, 404)),
    ],
)
def test_a_failing_server_is_502_and_its_words_are_dropped(
    service: Any, stub: Any, place: str, status: int, ours: int, code: str
) -> None:
    """The body of a server's error, which may quote the prompt, goes nowhere (I6)."""
    stub.script.status = status
    reply = service.client.post("/ask", json={"question": QUESTION, "collection": place})
    assert reply.status_code == ours, reply.text
    assert reply.json()["error"]["code"] == code
    assert "cannot do this" not in reply.text
    assert "Holloway" not in reply.text


@pytest.mark.parametrize(
    "script",
    [
        {"body": b"<html>busy</html>"},
        {"body": b'{"choices": []}'},
        {"body": b"{}"},
        {"content_is_null": True},
        {"reset_after": 0},
        {"answer": say("")},
    ],
    ids=["html", "no choices", "empty object", "null content", "reset", "empty answer"],
)
def test_an_answer_that_is_none_is_502(service: Any, stub: Any, place: str, script: Any) -> None:
    """Whatever a broken server sends is a failed model, never a crash or an empty answer."""
    for name, value in script.items():
        setattr(stub.script, name, value)
    reply = service.client.post("/ask", json={"question": QUESTION, "collection": place})
    assert reply.status_code == 502, reply.text
    assert reply.json()["error"]["code"] == "model_failed"


def test_a_redirect_is_not_followed(service: Any, stub: Any, new_stub: Any, place: str) -> None:
    """A model server cannot send the prompt on to another host."""
    elsewhere = new_stub()
    stub.script.status = 307
    stub.script.headers = {"Location": f"{elsewhere.base_url}/chat/completions"}
    reply = service.client.post("/ask", json={"question": QUESTION, "collection": place})
    assert reply.status_code == 502
    assert elsewhere.records == []


def test_a_slow_server_is_a_timeout(launch: Any, new_stub: Any) -> None:
    """The time limit covers the whole call; the error says that it was time."""
    stub = new_stub(delay=30.0)
    service = launch(stub, model_timeout="0.5").until_ready()
    service.add(FACT)
    reply = service.client.post("/ask", json={"question": QUESTION, "rewrite_n": 0}, timeout=10)
    assert (reply.status_code, reply.json()["error"]["code"]) == (502, "model_timeout")


def test_nothing_is_asked_raw_of_an_untrusted_model(service: Any, stub: Any, place: str) -> None:
    """anonymize=false is refused before anything is sent."""
    body = {"question": QUESTION, "collection": place, "anonymize": False}
    reply = service.client.post("/ask", json=body)
    assert (reply.status_code, reply.json()["error"]["code"]) == (403, "forbidden")
    assert stub.records == []


def test_a_trusted_model_may_be_asked_raw(launch: Any, new_stub: Any) -> None:
    """A host that the settings call trusted gets the words as they are, on demand only."""
    stub = new_stub()
    service = launch(stub, trusted_hosts="127.0.0.1").until_ready()
    service.add(FACT)
    service.ask(QUESTION)
    assert_no_leak(stub, ["Holloway"])
    stub.forget()
    answer = service.ask(QUESTION, anonymize=False)
    assert "Margaret Holloway" in answer["answer"]
    assert "Margaret Holloway" in stub.answers[-1].prompt


def test_without_a_model_the_best_sentences_are_quoted(launch: Any) -> None:
    """No key, no base URL: an extractive answer with its citation, said to be so."""
    service = launch(None).until_ready()
    service.add(FACT)
    answer = service.ask(QUESTION)
    assert "Margaret Holloway" in answer["answer"]
    assert "[1]" in answer["answer"]
    assert "no_model" in answer["warnings"]
    assert answer["privacy"]["outbound_calls"] == 0
    assert answer["rewrites"]
