"""Every error has the contract's shape, and none holds what the user sent (I6)."""

from __future__ import annotations

import json
import logging
import socket
from typing import Any

import pytest

from rag import errors
from rag.errors import ModelFailed, VeilragError

SECRET = "Tomke Harring, tomke.harring@tidewater.example"


def all_errors() -> list[type[VeilragError]]:
    found: list[type[VeilragError]] = []
    todo: list[type[VeilragError]] = [VeilragError]
    while todo:
        kind = todo.pop()
        found.append(kind)
        todo += kind.__subclasses__()
    return [kind for kind in found if kind.__module__ == errors.__name__]


def assert_contract(response: Any, status: int) -> dict[str, str]:
    assert response.status_code == status, response.text
    assert response.headers["content-type"] == "application/json"
    error = response.json()["error"]
    assert set(error) == {"code", "message", "request_id"}
    assert error["request_id"] == response.headers["x-request-id"]
    assert "Harring" not in response.text
    return error


@pytest.mark.parametrize("kind", all_errors(), ids=lambda kind: kind.__name__)
def test_each_of_our_errors_answers_with_its_status_and_code(service: Any, kind: Any) -> None:
    """An error that the engine raises comes out with its own status, code and message."""
    service.engine.fail = kind("A fixed text.")
    error = assert_contract(service.client.post("/ask", json={"question": SECRET}), kind.status)
    assert (error["code"], error["message"]) == (kind.code, "A fixed text.")


REFUSED: list[tuple[str, int, str, dict[str, Any]]] = [
    ("unknown field", 422, "invalid", {"json": {"question": "q", SECRET: 1}}),
    ("wrong type", 422, "invalid", {"json": {"question": {"x": SECRET}}}),
    ("wrong name", 422, "invalid", {"json": {"question": "q", "graph": [SECRET]}}),
    ("number as text", 422, "invalid", {"json": {"question": "q", "top_k": SECRET}}),
    ("top_k too large", 422, "invalid", {"json": {"question": SECRET, "top_k": 51}}),
    ("top_k zero", 422, "invalid", {"json": {"question": SECRET, "top_k": 0}}),
    ("rewrite_n too large", 422, "invalid", {"json": {"question": SECRET, "rewrite_n": 11}}),
    ("rewrite_n as boolean", 422, "invalid", {"json": {"question": SECRET, "rewrite_n": True}}),
    ("blank question", 422, "invalid", {"json": {"question": " \n"}}),
    ("threads", 422, "invalid", {"json": {"question": SECRET, "thread_id": "Harring-1"}}),
    ("key of filters", 422, "invalid", {"json": {"question": "q", "filters": [SECRET]}}),
    ("half a surrogate pair", 422, "invalid", {"content": b'{"question": "Harring \\ud800"}'}),
    ("not finite", 422, "invalid", {"content": b'{"question": "q", "filters": {"x": NaN}}'}),
    (
        "too deep",
        422,
        "invalid",
        {"content": b'{"question":"q","filters":%s}' % (b'{"x":' * 30 + b"1" + b"}" * 30)},
    ),
    ("no JSON", 400, "bad_request", {"content": b'{"question": "Harring'}),
    ("deep beyond parsing", 400, "bad_request", {"content": b'{"question":' + b"[" * 100_000}),
    ("no UTF-8", 400, "bad_request", {"content": b'{"question": "Harring \xff"}'}),
    ("a bare list", 422, "invalid", {"json": [SECRET]}),
    ("too long", 413, "too_large", {"json": {"question": SECRET * 500}}),
]


@pytest.mark.parametrize(
    ("status", "code", "sent"), [r[1:] for r in REFUSED], ids=[r[0] for r in REFUSED]
)
def test_a_refused_body_is_never_echoed(service: Any, status: int, code: str, sent: Any) -> None:
    """Whatever is wrong with a body, the answer names places and kinds, not what was sent."""
    response = service.client.post("/ask", headers={"content-type": "application/json"}, **sent)
    assert assert_contract(response, status)["code"] == code
    assert service.engine.asked == []


def test_a_validation_error_names_the_field_and_the_fault(service: Any) -> None:
    """The asker can mend the request: the field is named, and the kind of its fault."""
    message = service.client.post("/ask", json={"question": "q", "top_k": 99}).json()["error"][
        "message"
    ]
    assert "body.top_k (less_than_equal)" in message


def test_an_unexpected_failure_is_internal_and_logged_by_place(
    service: Any, caplog: pytest.LogCaptureFixture
) -> None:
    """A bug's text, and that of its cause, stands neither in the answer nor in a log record."""
    caplog.set_level(logging.DEBUG)
    service.engine.fail = ValueError(SECRET)
    service.engine.fail.__cause__ = KeyError(SECRET)
    assert (
        assert_contract(service.client.post("/ask", json={"question": SECRET}), 500)["code"]
        == "internal"
    )
    logged = [record.getMessage() for record in caplog.records if record.name == "api.access"]
    assert any("builtins.ValueError at conftest.py:" in line for line in logged)
    assert all(record.exc_info is None for record in caplog.records)
    assert "Harring" not in "".join(logged)


def test_an_upstream_failure_is_logged_by_place_only(
    service: Any, caplog: pytest.LogCaptureFixture
) -> None:
    """A failed model is 502; the log line has code and place."""
    caplog.set_level(logging.DEBUG)
    service.engine.fail = ModelFailed("The model answered 500.")
    assert_contract(service.client.post("/ask", json={"question": SECRET}), 502)
    assert "Harring" not in caplog.text
    assert "model_failed" in caplog.text


@pytest.mark.parametrize(
    ("method", "path", "status", "code"),
    [
        ("GET", "/harring", 404, "not_found"),
        ("GET", "/documents/Harring", 422, "invalid"),
        ("GET", "/documents/00000000-0000-4000-8000-000000000000", 404, "not_found"),
        ("DELETE", "/documents/00000000-0000-4000-8000-000000000000", 404, "not_found"),
        ("GET", "/documents?limit=Harring", 422, "invalid"),
        ("GET", "/documents?collection=", 422, "invalid"),
        ("PUT", "/ask", 405, "method_not_allowed"),
        ("GET", "/ask", 405, "method_not_allowed"),
        ("POST", "/ask/", 404, "not_found"),
        ("GET", "/docs", 404, "not_found"),
        ("GET", "/redoc", 404, "not_found"),
    ],
)
def test_errors_of_routing_have_the_contract(
    service: Any, method: str, path: str, status: int, code: str
) -> None:
    """No route, no such method, no such thing: the same shape, and no redirects."""
    error = assert_contract(service.client.request(method, path), status)
    assert error["code"] == code


def test_a_request_that_is_not_http_is_refused_in_the_contract(service: Any) -> None:
    """What the server itself refuses has the same shape and no echo."""
    with socket.create_connection(("127.0.0.1", service.port), timeout=5) as wire:
        wire.sendall(b"GET /Harring HTTP/1.1\r\nHost: localhost\r\nBad Header Harring\r\n\r\n")
        reply = b"".join(iter(lambda: wire.recv(4096), b""))
    head, _, body = reply.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 400 ")
    assert json.loads(body)["error"]["code"] == "bad_request"
    assert b"no-store" in head
    assert b"Harring" not in reply
