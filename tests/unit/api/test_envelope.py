"""What every answer carries, and what the access log does not."""

from __future__ import annotations

import logging
import re
import socket
import time
from typing import Any
from uuid import UUID

import pytest

EVERYWHERE = ["/healthz", "/readyz", "/openapi.json", "/documents", "/nothing", "/documents/x"]


@pytest.mark.parametrize("path", EVERYWHERE)
def test_every_answer_forbids_storing_sniffing_and_referring(service: Any, path: str) -> None:
    """Restored values stay with the asker: no cache, no referrer, no sniffing, no framing (I12)."""
    headers = service.client.get(path).headers
    assert headers["cache-control"] == "no-store"
    assert headers["referrer-policy"] == "no-referrer"
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["content-security-policy"].startswith("default-src 'none'")
    assert "server" not in headers


def test_a_request_id_is_minted(service: Any) -> None:
    """Without one given, each answer has an id of its own."""
    ids = {service.client.get("/healthz").headers["x-request-id"] for _ in range(3)}
    assert len({UUID(one) for one in ids}) == 3


def test_a_given_request_id_is_echoed_in_header_and_body(service: Any) -> None:
    """A well-formed X-Request-Id is kept, in the header and in the answer."""
    given = "a" * 62 + "-9"
    response = service.client.post("/ask", json={"question": "q"}, headers={"x-request-id": given})
    assert response.headers["x-request-id"] == response.json()["request_id"] == given


@pytest.mark.parametrize("given", ["", "a b", "x" * 65, "ä", "a_b", "<script>", "a\tb"])
def test_a_malformed_request_id_is_replaced(service: Any, given: str) -> None:
    """Anything else than letters, digits and hyphens is not echoed."""
    response = service.client.get("/nothing", headers={"x-request-id": given.encode()})
    assert UUID(response.headers["x-request-id"])
    assert response.json()["error"]["request_id"] == response.headers["x-request-id"]


def test_the_access_log_has_route_and_status_but_no_path(
    service: Any, caplog: pytest.LogCaptureFixture
) -> None:
    """Neither path nor query nor body of a request is logged, only the route's template."""
    caplog.set_level(logging.DEBUG)
    service.client.get("/documents/Harring?who=Harring", headers={"x-request-id": "one-1"})
    service.client.get("/Harring", headers={"x-request-id": "one-2"})
    service.client.post("/ask?Harring", json={"question": "Harring"})
    until = time.monotonic() + 5
    while caplog.text.count("api.access") < 3 and time.monotonic() < until:
        time.sleep(0.01)
    ours = [r for r in caplog.records if not r.name.startswith(("http", "hpack"))]  # the client's
    logged = "\n".join(record.getMessage() for record in ours)
    assert "Harring" not in logged
    assert re.search(r"one-1 GET /documents/\{document_id\} 422 \d+ ms", logged)
    assert re.search(r"one-2 GET - 404 \d+ ms", logged)


def test_a_body_announced_too_large_is_413_before_it_is_read(start: Any) -> None:
    """The announced length is enough: nothing of the body is waited for."""
    service = start(max_body_bytes=1000)
    with socket.create_connection(("127.0.0.1", service.port), timeout=5) as wire:
        wire.sendall(
            b"POST /ask HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
            b"Content-Length: 1001\r\n\r\n"
        )
        assert wire.recv(4096).startswith(b"HTTP/1.1 413 ")


@pytest.mark.parametrize("path", ["/ask", "/documents", "/privacy/preview"])
def test_a_body_that_grows_too_large_is_413(start: Any, path: str) -> None:
    """A body of no announced length is counted while it streams, on every route that reads one."""
    service = start(max_body_bytes=1000)
    kind = "application/json"
    response = service.client.post(
        path, content=iter([b"x" * 600] * 3), headers={"content-type": kind}
    )
    assert response.status_code == 413
    assert response.json()["error"]["code"] == "too_large"


def test_a_form_that_grows_too_large_is_413(start: Any) -> None:
    """The limit holds inside the form parser too."""
    service = start(max_body_bytes=1000)
    part = b'--b\r\nContent-Disposition: form-data; name="file"; filename="a.txt"\r\n\r\n'
    response = service.client.post(
        "/documents",
        content=iter([part, b"x" * 600, b"x" * 600]),
        headers={"content-type": "multipart/form-data; boundary=b"},
    )
    assert response.status_code == 413


def test_a_body_of_exactly_the_limit_is_taken(start: Any) -> None:
    """The limit itself is allowed."""
    service = start(max_body_bytes=100)
    body = b'{"question": "q"}'.ljust(100)
    response = service.client.post(
        "/ask", content=body, headers={"content-type": "application/json"}
    )
    assert response.status_code == 200
