"""The routes' contract: names, defaults, and what reaches the engine."""

from __future__ import annotations

import socket
import threading
import time
from pathlib import Path
from typing import Any

import httpx2
import pytest

from rag.errors import Encrypted, NoTextLayer, Unavailable


def test_an_ask_has_the_contracts_defaults(service: Any) -> None:
    """Only the question is needed; everything else has the contract's default."""
    service.client.post("/ask", json={"question": "Who keeps the keys?"})
    assert service.engine.asked == [
        (
            ("Who keeps the keys?", 3, 5, True, False),
            {
                "graph": "linear",
                "retriever": "hybrid",
                "collection": "default",
                "filters": {},
                "policy": None,
            },
        )
    ]


def test_an_ask_hands_everything_on(service: Any) -> None:
    """Each field reaches the engine as it was given."""
    body = {
        "question": "q",
        "rewrite_n": 0,
        "top_k": 50,
        "anonymize": False,
        "with_evaluation": True,
        "graph": "g",
        "retriever": "r",
        "collection": "c",
        "thread_id": None,
        "filters": {"year": 2020},
        "policy": "strict",
    }
    assert service.client.post("/ask", json=body).status_code == 200
    assert service.engine.asked == [
        (
            ("q", 0, 50, False, True),
            {
                "graph": "g",
                "retriever": "r",
                "collection": "c",
                "filters": {"year": 2020},
                "policy": "strict",
            },
        )
    ]


def test_an_answer_has_exactly_the_contracts_fields(service: Any) -> None:
    """Clients rely on these names; what went out is not among them."""
    answer = service.client.post("/ask", json={"question": "q"}).json()
    assert list(answer) == [
        "answer",
        "rewrites",
        "sources",
        "eval_score",
        "request_id",
        "thread_id",
        "trace",
        "confidence",
        "top_similarity",
        "warnings",
        "privacy",
    ]
    assert list(answer["sources"][0]) == [
        "source",
        "chunk_index",
        "content",
        "document_id",
        "score",
        "start",
        "end",
        "page",
    ]
    assert list(answer["privacy"]) == [
        "policy",
        "entities",
        "outbound_calls",
        "unresolved",
        "unsourced",
    ]


def test_an_ask_whose_asker_left_is_cancelled(service: Any) -> None:
    """Nothing keeps running for nobody: the connection's end cancels the graph."""
    service.engine.delay = 30
    body = b'{"question": "q"}'
    with socket.create_connection(("127.0.0.1", service.port), timeout=5) as wire:
        wire.sendall(
            b"POST /ask HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
            b"Content-Length: %d\r\n\r\n" % len(body) + body
        )
        wait_for(lambda: service.engine.asked)
    wait_for(lambda: service.engine.cancelled)
    assert service.client.get("/healthz").status_code == 200


def test_an_upload_whose_client_left_is_finished(service: Any) -> None:
    """An upload is stored whole even when nobody waits for the answer."""
    service.engine.delay = 0.5
    body = b'{"text": "t", "source": "s"}'
    with socket.create_connection(("127.0.0.1", service.port), timeout=5) as wire:
        wire.sendall(
            b"POST /documents HTTP/1.1\r\nHost: localhost\r\n"
            b"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body) + body
        )
        time.sleep(0.2)
    wait_for(lambda: service.engine.ingested)
    assert service.engine.cancelled == 0


def test_half_an_upload_stores_nothing(service: Any) -> None:
    """A client that leaves before its body is whole has uploaded nothing."""
    with socket.create_connection(("127.0.0.1", service.port), timeout=5) as wire:
        wire.sendall(
            b"POST /documents HTTP/1.1\r\nHost: localhost\r\n"
            b'Content-Type: application/json\r\nContent-Length: 50\r\n\r\n{"text"'
        )
        time.sleep(0.1)
    time.sleep(0.2)
    assert service.engine.ingested == []
    assert service.client.get("/readyz").status_code == 200


def test_one_file_is_ingested_with_its_name_type_and_bytes(service: Any) -> None:
    """A file's name is kept as it is: it is a name, not a path."""
    files = {"file": ("notes/Ärger.md", b"# x\x00", "text/markdown")}
    response = service.client.post("/documents", files=files, data={"collection": "desk"})
    assert response.status_code == 201
    [document] = response.json()["documents"]
    assert list(document) == ["id", "source", "chunks", "entities", "status", "error"]
    assert service.engine.ingested == [("notes/Ärger.md", b"# x\x00", "text/markdown", "desk")]


def test_a_text_is_ingested_with_its_metadata(service: Any) -> None:
    """The JSON door takes text, source, metadata and collection."""
    body = {"text": "t", "source": "s", "metadata": {"year": 2020, "tags": ["a"]}}
    assert service.client.post("/documents", json=body).status_code == 201
    assert service.engine.ingested == [("t", "s", {"year": 2020, "tags": ["a"]}, "default")]


def test_one_file_that_fails_answers_with_its_error(service: Any) -> None:
    """A single refused file is its own 4xx."""
    service.engine.refuse = {"a.pdf": Encrypted("The document is encrypted.")}
    response = service.client.post("/documents", files={"file": ("a.pdf", b"x")})
    assert response.status_code == 422
    assert response.json()["error"]["code"] == "encrypted"


def test_of_several_files_the_good_ones_enter(service: Any) -> None:
    """201 when any entered; each outcome in its place."""
    service.engine.refuse = {"b.pdf": NoTextLayer("The document has no text layer.")}
    files = [("file", (name, b"x")) for name in ("a.md", "b.pdf", "c.md")]
    response = service.client.post("/documents", files=files)
    assert response.status_code == 201
    shown = [(d["source"], d["status"], d["error"]) for d in response.json()["documents"]]
    assert shown == [
        ("a.md", "ready", None),
        (
            "b.pdf",
            "failed",
            {"code": "no_text_layer", "message": "The document has no text layer."},
        ),
        ("c.md", "ready", None),
    ]


def test_the_fields_of_a_form_hold_for_all_of_its_files(service: Any) -> None:
    """One password and one object of metadata go with each file."""
    files = [("file", (name, b"x")) for name in ("a.pdf", "b.pdf")]
    fields = {"password": "löwe 7", "metadata": '{"department": "legal", "year": 2020}'}
    assert service.client.post("/documents", files=files, data=fields).status_code == 201
    assert service.engine.given == [({"department": "legal", "year": 2020}, "löwe 7")] * 2


def test_empty_fields_of_a_form_are_none(service: Any) -> None:
    """What a browser sends for a field that was left empty is neither password nor metadata."""
    files, fields = {"file": ("a.md", b"x")}, {"password": "", "metadata": ""}
    assert service.client.post("/documents", files=files, data=fields).status_code == 201
    assert service.engine.given == [({}, None)]


def test_several_files_that_all_fail_are_an_error(service: Any) -> None:
    """When none entered the first one's error decides, and all outcomes stand beside it."""
    service.engine.refuse = {"a.pdf": Unavailable("Later."), "b.pdf": NoTextLayer()}
    files = [("file", (name, b"x")) for name in ("a.pdf", "b.pdf")]
    response = service.client.post("/documents", files=files)
    assert response.status_code == 503
    assert response.json()["error"]["code"] == "unavailable"
    assert [d["status"] for d in response.json()["documents"]] == ["failed", "failed"]


@pytest.mark.parametrize(
    "sent",
    [
        {"data": {"collection": "x"}, "files": {"other": ("a.md", b"x")}},
        {"data": {"owner": "x"}, "files": {"file": ("a.md", b"x")}},
        {"data": {"collection": ["a", "b"]}, "files": {"file": ("a.md", b"x")}},
        {"data": {"collection": "a\nb"}, "files": {"file": ("a.md", b"x")}},
        {"data": {"metadata": "[1]"}, "files": {"file": ("a.md", b"x")}},
        {"data": {"metadata": "{not JSON"}, "files": {"file": ("a.md", b"x")}},
        {"data": {"metadata": '{"a": NaN}'}, "files": {"file": ("a.md", b"x")}},
        {"data": {"metadata": '{"a": "\\ud800"}'}, "files": {"file": ("a.md", b"x")}},
        {"data": {"metadata": "[" * 90_000}, "files": {"file": ("a.md", b"x")}},
        {"data": {"password": "x" * 1_001}, "files": {"file": ("a.md", b"x")}},
        {"data": {"password": ["x", "y"]}, "files": {"file": ("a.md", b"x")}},
        {"files": {"file": ("x" * 501, b"x")}},
        {"data": {"file": "text, no file"}},
        {"json": {"text": "t"}},
        {"json": {"text": "t", "source": "s", "owner": "o"}},
        {"json": {"text": "t", "source": "a\x00b"}},
        {"content": b"plain", "headers": {"content-type": "text/plain"}},
        {"content": b""},
    ],
)
def test_a_malformed_upload_is_422(service: Any, sent: dict[str, Any]) -> None:
    """Unknown fields, no file, no name: nothing is stored."""
    response = service.client.post("/documents", **sent)
    assert response.status_code == 422
    assert service.engine.ingested == []


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        ("application/json", b"{"),
        ("application/json", b"[" * 100_000),
        ("multipart/form-data", b"x"),
        ("multipart/form-data; boundary=b", b"--b\r\nno header\r\n"),
        (
            "multipart/form-data; boundary=b",
            b"--b\r\nContent-Disposition: form-data\r\n\r\nx\r\n--b--",
        ),
    ],
)
def test_an_unreadable_upload_is_400(service: Any, kind: str, body: bytes) -> None:
    """What cannot be parsed is a bad request, not a failure of the service."""
    response = service.client.post("/documents", content=body, headers={"content-type": kind})
    assert response.status_code == 400
    assert response.json()["error"]["code"] == "bad_request"


def test_an_upload_is_never_spooled_to_disk(service: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file of several megabytes is parsed in memory: no temporary file is made (I6)."""
    import tempfile

    def refuse(*_args: Any, **_options: Any) -> None:
        raise OSError("a temporary file was made")

    monkeypatch.setattr(tempfile, "TemporaryFile", refuse)
    files = {"file": ("a.txt", b"x" * 5_000_000, "text/plain")}
    assert service.client.post("/documents", files=files).status_code == 201


def test_documents_are_listed_page_by_page(service: Any) -> None:
    """A full page names where the next one begins; a short one does not."""
    full = service.client.get("/documents", params={"limit": 2}).json()
    short = service.client.get("/documents", params={"limit": 3}).json()
    assert full["next"] == full["documents"][-1]["id"]
    assert short["next"] is None
    assert list(full["documents"][0]) == [
        "id",
        "source",
        "collection",
        "chunks",
        "entities",
        "metadata",
        "language",
        "created_at",
    ]


def test_a_document_is_read_and_deleted(service: Any) -> None:
    """One document by its id; deleting answers without a body."""
    path = "/documents/6f1c3a52-4df0-4c05-9a3e-6a1f0b7c2d10"
    assert service.client.get(path).json()["source"] == "0.md"
    deleted = service.client.delete(path)
    assert (deleted.status_code, deleted.content) == (204, b"")


def test_a_preview_shows_what_would_leave(service: Any) -> None:
    """The protected text, and where each placeholder's original stands."""
    response = service.client.post("/privacy/preview", json={"text": "Tomke Harring calls"})
    assert response.json() == {
        "text": "[PERSON_1] calls",
        "entities": [{"type": "PERSON", "start": 0, "end": 13, "placeholder": "[PERSON_1]"}],
    }


def test_the_schema_documents_our_errors_only(service: Any) -> None:
    """The OpenAPI schema has the error contract and not the framework's own."""
    schema = service.client.get("/openapi.json").json()
    assert "ErrorOut" in schema["components"]["schemas"]
    assert "HTTPValidationError" not in str(schema)
    assert set(schema["paths"]) == {
        "/ask",
        "/documents",
        "/documents/{document_id}",
        "/privacy/preview",
        "/healthz",
        "/readyz",
    }


def test_uploads_wait_their_turn_and_all_enter(service: Any) -> None:
    """More uploads at once than slots: none is refused."""
    service.engine.delay = 0.05
    results: list[int] = []

    def one(n: int) -> None:
        body = {"text": "t", "source": f"{n}"}
        results.append(
            httpx2.post(f"{service.url}/documents", json=body, trust_env=False).status_code
        )

    threads = [threading.Thread(target=one, args=(n,)) for n in range(10)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [201] * 10


def test_nothing_is_written_beside_the_data(start: Any, tmp_path: Path) -> None:
    """The service itself writes no file."""
    service = start()
    service.client.post("/ask", json={"question": "q"})
    assert list(tmp_path.iterdir()) == []


def wait_for(condition: Any, seconds: float = 5) -> None:
    until = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < until, "it did not happen in time"
        time.sleep(0.01)
