"""Who may ask: this host's pages and callers, or those with a key (I12)."""

from __future__ import annotations

import socket
from typing import Any

import pytest

from api.middleware import is_key, is_loopback, is_ours

DOORS = [
    ("GET", "/healthz"),
    ("GET", "/readyz"),
    ("GET", "/openapi.json"),
    ("POST", "/ask"),
    ("POST", "/documents"),
    ("GET", "/documents"),
    ("DELETE", "/documents/6f1c3a52-4df0-4c05-9a3e-6a1f0b7c2d10"),
    ("POST", "/privacy/preview"),
    ("OPTIONS", "/ask"),
    ("GET", "/nothing"),
]


@pytest.mark.parametrize(("method", "path"), DOORS)
@pytest.mark.parametrize(
    "headers",
    [
        {"host": "evil.example"},
        {"host": "localhost.evil.example"},
        {"origin": "https://evil.example"},
        {"origin": "null"},
        {"origin": "http://127.0.0.1.evil.example"},
        {"origin": "http://localhost@evil.example"},
        {"origin": "chrome-extension://localhost"},
    ],
    ids=lambda headers: next(iter(headers.values())),
)
def test_a_foreign_host_or_origin_is_403_on_every_door(
    service: Any, method: str, path: str, headers: dict[str, str]
) -> None:
    """Any web page can post to loopback, and rebind a name to it: neither gets in."""
    response = service.client.request(method, path, headers=headers)
    assert response.status_code == 403
    assert response.json()["error"]["code"] == "forbidden"
    assert "access-control-allow-origin" not in response.headers
    assert service.engine.asked == service.engine.ingested == []


@pytest.mark.parametrize(
    ("origin", "status"),
    [
        ("http://localhost:7", 200),
        ("http://localhost:3000", 403),
        ("http://localhost", 403),
        ("http://127.0.0.1:7", 403),
    ],
)
def test_only_pages_of_this_very_service_may_ask(service: Any, origin: str, status: int) -> None:
    """What another program on this machine serves is a stranger, too."""
    headers = {"origin": origin, "host": "localhost:7"}
    response = service.client.post("/ask", json={"question": "q"}, headers=headers)
    assert response.status_code == status


def test_a_configured_host_may_ask(start: Any) -> None:
    """A name in the settings is allowed as Host and as Origin; its neighbour is not."""
    service = start(allowed_hosts=("veil.tidewater.example", "desk.example:8443"))
    get = service.client.get
    assert get("/healthz", headers={"host": "VEIL.tidewater.example:80"}).status_code == 200
    assert get("/healthz", headers={"origin": "https://desk.example:8443"}).status_code == 200
    assert get("/healthz", headers={"origin": "https://desk.example"}).status_code == 403
    assert get("/healthz", headers={"host": "tidewater.example"}).status_code == 403


@pytest.mark.parametrize(
    "head",
    [
        b"GET /healthz HTTP/1.0\r\n",
        b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nOrigin: http://localhost\r\nOrigin: x\r\n",
        b"GET /healthz HTTP/1.1\r\nHost:\r\n",
        b"GET /healthz HTTP/1.1\r\nHost: localhost/evil.example\r\n",
    ],
)
def test_an_absent_or_doubled_name_is_foreign(service: Any, head: bytes) -> None:
    """What does not say plainly where it comes from is refused."""
    with socket.create_connection(("127.0.0.1", service.port), timeout=5) as wire:
        wire.sendall(head + b"Connection: close\r\n\r\n")
        status = wire.recv(64).split()[1]
    assert status in {b"403", b"400"}


@pytest.mark.parametrize(
    ("address", "ours"),
    [
        ("//localhost", True),
        ("//LOCALHOST:8000", True),
        ("//127.9.9.9:1", True),
        ("//[::1]:1", True),
        ("//[::ffff:127.0.0.1]", True),
        ("//0.0.0.0", False),
        ("//10.0.0.1", False),
        ("//localhost:port", False),
        ("//localhost/x", False),
        ("//localhost?x", False),
        ("//a@localhost", False),
        ("//127.0.0.1.nip.example", False),
        ("//localhost%00.example", False),
        ("file://localhost", False),
        ("", False),
    ],
)
def test_which_addresses_are_this_host(address: str, ours: bool) -> None:
    """Only a bare loopback name or address is this host."""
    assert is_ours(address, ()) is ours


def test_which_hosts_are_loopback() -> None:
    """Names other than localhost are never taken for loopback, whatever they resolve to."""
    assert is_loopback("::1")
    assert not any(map(is_loopback, ["0.0.0.0", "::", "localhost.example", "", "192.0.2.1"]))


KEYS = ("first-key", "second-key")


@pytest.mark.parametrize("header", ["Bearer first-key", "bearer second-key"])
def test_a_configured_key_opens(start: Any, header: str) -> None:
    """Any of the keys opens every route."""
    service = start(api_keys=KEYS)
    response = service.client.get("/documents", headers={"authorization": header})
    assert response.status_code == 200


@pytest.mark.parametrize(
    "header",
    [
        None,
        "",
        "Bearer",
        "Bearer first",
        "Basic first-key",
        "first-key",
        "Bearer first-key,second-key",
    ],
)
@pytest.mark.parametrize("path", ["/documents", "/openapi.json", "/nothing"])
def test_without_a_key_everything_but_health_is_401(start: Any, path: str, header: Any) -> None:
    """No route tells anything, not even that it exists, without a key."""
    service = start(api_keys=KEYS)
    headers = {} if header is None else {"authorization": header}
    response = service.client.get(path, headers=headers)
    assert response.status_code == 401
    assert response.headers["www-authenticate"] == "Bearer"
    assert response.json()["error"]["code"] == "unauthorized"
    assert service.client.get("/healthz", headers=headers).status_code == 200
    assert service.client.get("/readyz", headers=headers).status_code == 200


def test_a_key_with_other_letters_does_not_open() -> None:
    """Keys are compared whole and exactly."""
    assert is_key("Bearer schlüssel", ["schlüssel"])
    assert not is_key("Bearer FIRST-KEY", KEYS)
    assert not is_key("Bearer first-key ö", KEYS)
