"""The guarded door against a real server: what passes, what is refused, what arrives (I1)."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from typing import Any

import httpx
import httpx2
import pytest

from rag.errors import BoundaryRefused, Misconfigured
from rag.models.egress import Door, Egress, Endpoint, GuardedAsyncTransport, GuardedTransport
from rag.testing.stub import Script, Stub, say, serve_stub

KEY = "sk-test-7f3a"
CHAT = {"model": "m", "messages": [{"role": "user", "content": "hello"}]}


@pytest.fixture
def stub() -> Iterator[Stub]:
    with serve_stub(Script(rewrite=say("hi"))) as running:
        yield running


def _chat(**changes: Any) -> dict[str, Any]:
    return {"json": {**CHAT, **changes}}


def _raw(body: bytes | str, **headers: str) -> dict[str, Any]:
    return {"content": body, "headers": {"content-type": "application/json", **headers}}


def _pieces() -> Iterator[bytes]:
    yield json.dumps(CHAT).encode()


async def _async_pieces() -> AsyncIterator[bytes]:
    yield json.dumps(CHAT).encode()


REFUSED: dict[str, dict[str, Any]] = {
    "another port of the host": {"url": "http://127.0.0.1:9/v1/chat/completions", **_chat()},
    "another host": {"url": "http://example.org/v1/chat/completions", **_chat()},
    "another scheme": {"scheme": "https", **_chat()},
    "a path outside the base": {"path": "/admin", **_chat()},
    "a path that climbs out": {"path": "/v1/../admin", **_chat()},
    "a path that says something": {"path": "/v1/models/oda", "method": "GET"},
    "a path that climbs out in disguise": {"path": "/v1/%2e%2e/admin", **_chat()},
    "a query": {"path": "/v1/chat/completions?name=oda", **_chat()},
    "a password in the URL": {"userinfo": "oda:kvist@", **_chat()},
    "a WebSocket": {"scheme": "ws", "method": "GET"},
    "an upgrade": {"method": "GET", "headers": {"upgrade": "websocket"}},
    "another method": {"method": "PUT", **_chat()},
    "a gzip body": _raw(json.dumps(CHAT), **{"content-encoding": "gzip"}),
    "a multipart body": {"files": {"file": ("a.txt", b"text")}},
    "a form": {"data": {"prompt": "text"}},
    "no JSON": _raw("prompt=hello"),
    "JSON in UTF-16": _raw(json.dumps(CHAT).encode("utf-16")),
    "a JSON list": _raw("[1, 2]"),
    "a key that comes twice": _raw('{"model": "a", "model": "b"}'),
    "a nested key that comes twice": _raw('{"tools": [{"a": 1, "a": 2}]}'),
    "nesting without end": _raw('{"messages":' + "[" * 100_000),
    "the field user": _chat(user="oda"),
    "the field metadata": _chat(metadata={"collection": "hr"}),
    "the field store": _chat(store=True),
    "the field stream_options": _chat(stream_options={"include_usage": True}),
    "the field logprobs": _chat(logprobs=True),
    "a token array": {"json": {"model": "m", "input": [1, 2, 3]}},
    "token arrays": {"json": {"model": "m", "input": [[1, 2], [3]]}},
    "an image": _chat(messages=[{"role": "user", "content": [{"type": "image_url"}]}]),
    "sound": _chat(messages=[{"role": "user", "content": [{"type": "input_audio"}]}]),
    "a number as content": _chat(messages=[{"role": "user", "content": 7}]),
    "messages that are none": _chat(messages="hello"),
}


def _request(stub: Stub, case: dict[str, Any]) -> tuple[str, str, dict[str, Any]]:
    case = dict(case)
    root = stub.base_url.removesuffix("/v1")
    path = case.pop("path", "/v1/chat/completions")
    url = case.pop("url", root + path)
    url = url.replace("http://", case.pop("scheme", "http") + "://", 1)
    url = url.replace("://", "://" + case.pop("userinfo", ""), 1)
    return case.pop("method", "POST"), url, case


@pytest.mark.parametrize("case", REFUSED.values(), ids=list(REFUSED))
def test_refused_sync(stub: Stub, guard: Any, case: dict[str, Any]) -> None:
    """What cannot be read whole or is not configured does not reach the server, sync."""
    client = Egress(Endpoint.parse(stub.base_url, KEY), 5).client(guard)
    method, url, request = _request(stub, case)
    with pytest.raises(BoundaryRefused):
        client.request(method, url, **request)
    assert stub.sent == []


@pytest.mark.parametrize("case", REFUSED.values(), ids=list(REFUSED))
async def test_refused_async(stub: Stub, guard: Any, case: dict[str, Any]) -> None:
    """What cannot be read whole or is not configured does not reach the server, async."""
    client = Egress(Endpoint.parse(stub.base_url, KEY), 5).async_client(guard)
    method, url, request = _request(stub, case)
    with pytest.raises(BoundaryRefused):
        await client.request(method, url, **request)
    assert stub.sent == []


@pytest.mark.parametrize("case", REFUSED.values(), ids=list(REFUSED))
def test_refused_in_httpx(stub: Stub, guard: Any, case: dict[str, Any]) -> None:
    """The same door stands under a client of the older httpx."""
    door = Door(Endpoint.parse(stub.base_url, KEY), guard, BoundaryRefused)
    transport = GuardedTransport(door, httpx.HTTPTransport(trust_env=False), httpx)
    method, url, request = _request(stub, case)
    with (
        httpx.Client(transport=transport, trust_env=False) as client,  # type: ignore[arg-type]
        pytest.raises(BoundaryRefused),
    ):
        client.request(method, url, **request)
    assert stub.sent == []


LENGTHS = [{}, {"content-length": str(len(json.dumps(CHAT)))}]


@pytest.mark.parametrize("headers", LENGTHS, ids=["chunked", "with a length"])
def test_streamed_bodies_are_refused(stub: Stub, guard: Any, headers: dict[str, str]) -> None:
    """A generator cannot be read before it leaves, so it does not leave."""
    client = Egress(Endpoint.parse(stub.base_url, KEY), 5).client(guard)
    headers = {"content-type": "application/json", **headers}
    with pytest.raises(BoundaryRefused):
        client.post(stub.base_url + "/chat/completions", content=_pieces(), headers=headers)
    assert stub.sent == []


@pytest.mark.parametrize("headers", LENGTHS, ids=["chunked", "with a length"])
async def test_streamed_bodies_are_refused_async(
    stub: Stub, guard: Any, headers: dict[str, str]
) -> None:
    """An asynchronous generator does not leave either."""
    client = Egress(Endpoint.parse(stub.base_url, KEY), 5).async_client(guard)
    headers = {"content-type": "application/json", **headers}
    with pytest.raises(BoundaryRefused):
        await client.post(
            stub.base_url + "/chat/completions", content=_async_pieces(), headers=headers
        )
    assert stub.sent == []


def test_sync_websocket_of_the_client_is_refused(stub: Stub, guard: Any) -> None:
    """httpx2's own WebSockets do not get through the door."""
    client = Egress(Endpoint.parse(stub.base_url, KEY), 5).client(guard)
    url = stub.base_url.replace("http", "ws", 1) + "/realtime"
    with pytest.raises((BoundaryRefused, ImportError)), client.websocket(url):
        pass
    assert stub.sent == []


HEADERS = {
    "user-agent": "Oda/1.0",
    "x-stainless-os": "Linux",
    "x-request-id": "Oda-Kvistad",
    "openai-organization": "Kvistad Ltd",
    "cookie": "name=oda",
    "authorization": "Bearer of-the-caller",
    "accept": "Oda",
    "accept-language": "nb",
}


@pytest.mark.parametrize("library", [httpx, httpx2], ids=["httpx", "httpx2"])
def test_headers_are_rebuilt(stub: Stub, guard: Any, library: Any) -> None:
    """Exactly the allowed headers arrive, with values of ours, whatever the caller set."""
    door = Door(Endpoint.parse(stub.base_url, KEY), guard, BoundaryRefused)
    inner = library.HTTPTransport(trust_env=False)
    transport = GuardedTransport(door, inner, library)
    with inner, library.Client(transport=transport, trust_env=False) as client:
        url = stub.base_url + "/chat/completions"
        assert client.post(url, json=CHAT, headers=HEADERS).status_code == 200
    [record] = stub.records
    host = stub.base_url.removeprefix("http://").removesuffix("/v1")
    assert {name.lower(): value for name, value in record.headers} == {
        "host": host,
        "accept": "application/json",
        "user-agent": "veilrag",
        "content-type": "application/json",
        "content-length": str(len(record.body)),
        "authorization": f"Bearer {KEY}",
    }


async def test_the_guard_sees_what_arrives(stub: Stub, guard: Any) -> None:
    """The bytes that were checked are the bytes that arrive; the key alone is added after."""
    egress = Egress(Endpoint.parse(stub.base_url, KEY), 5)
    await egress.async_client(guard).post(stub.base_url + "/chat/completions", json=CHAT)
    await egress.aclose()
    [(method, url, headers, body)] = guard.seen
    [record] = stub.records
    assert (method, url.partition("/v1")[2], body) == ("POST", record.path[3:], record.body)
    arrived = {name.lower(): value for name, value in record.headers}
    assert arrived.pop("authorization") == f"Bearer {KEY}"
    assert dict(headers) == arrived


async def test_what_the_guard_refuses_never_connects(stub: Stub, guard_against: Any) -> None:
    """A refusal comes before the connection."""
    egress = Egress(Endpoint.parse(stub.base_url, KEY), 5)
    with pytest.raises(BoundaryRefused):
        await egress.async_client(guard_against("hello")).post(
            stub.base_url + "/chat/completions", json=CHAT
        )
    assert stub.wires == []


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_redirects_are_not_followed(guard: Any, status: int) -> None:
    """A redirect to another server ends at the first, even when the caller asks to follow."""
    with serve_stub() as elsewhere, serve_stub(Script(status=status)) as stub:
        stub.script.headers["Location"] = elsewhere.base_url + "/chat/completions"
        egress = Egress(Endpoint.parse(stub.base_url, KEY), 5)
        client = egress.async_client(guard)
        reply = await client.post(stub.base_url + "/chat/completions", json=CHAT)
        assert reply.status_code == status
        with pytest.raises(BoundaryRefused):
            await client.post(stub.base_url + "/chat/completions", json=CHAT, follow_redirects=True)
        await egress.aclose()
        assert elsewhere.sent == []


@pytest.mark.parametrize("name", ["HTTP_PROXY", "http_proxy", "ALL_PROXY", "HTTPS_PROXY"])
async def test_proxies_of_the_environment_are_ignored(
    stub: Stub, guard: Any, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """A proxy variable sends nothing round the configured host."""
    with serve_stub() as proxy:
        for no_proxy in ("NO_PROXY", "no_proxy"):
            monkeypatch.delenv(no_proxy, raising=False)
        monkeypatch.setenv(name, proxy.base_url.removesuffix("/v1"))
        egress = Egress(Endpoint.parse(stub.base_url, KEY), 5)
        url = stub.base_url + "/chat/completions"
        assert (await egress.async_client(guard).post(url, json=CHAT)).status_code == 200
        assert egress.client(guard).post(url, json=CHAT).status_code == 200
        await egress.aclose()
        assert proxy.sent == []
    assert len(stub.chats) == 2


async def test_transport_options_of_the_caller_are_dropped(stub: Stub, guard: Any) -> None:
    """An extension that rewrites the request target after the check does not pass."""
    egress = Egress(Endpoint.parse(stub.base_url, KEY), 5)
    client = egress.async_client(guard)
    await client.post(
        stub.base_url + "/chat/completions",
        json=CHAT,
        extensions={"target": b"/v1/Oda-Kvistad", "sni_hostname": "oda.example.org"},
    )
    await egress.aclose()
    assert [record.path for record in stub.records] == ["/v1/chat/completions"]


async def test_each_client_has_its_own_guard(stub: Stub, guard_against: Any) -> None:
    """Two requests at the same time are each checked by their own guard (I8)."""
    egress = Egress(Endpoint.parse(stub.base_url, KEY), 5)
    open_to, closed_to = guard_against("nothing"), guard_against("hello")

    async def ask(guard: Any) -> int:
        client = egress.async_client(guard)
        return (await client.post(stub.base_url + "/chat/completions", json=CHAT)).status_code

    results = await asyncio.gather(
        *(ask(g) for g in [open_to, closed_to] * 10), return_exceptions=True
    )
    await egress.aclose()
    assert results[::2] == [200] * 10
    assert all(isinstance(r, BoundaryRefused) for r in results[1::2])
    assert len(stub.chats) == len(open_to.seen) == len(closed_to.seen) == 10


async def test_connections_are_shared(stub: Stub, guard: Any) -> None:
    """A client for each request costs no connection for each request."""
    egress = Egress(Endpoint.parse(stub.base_url, KEY), 5)
    for _ in range(5):
        await egress.async_client(guard).post(stub.base_url + "/chat/completions", json=CHAT)
    await egress.aclose()
    assert (len(stub.chats), len(stub.wires)) == (5, 1)


def test_works_in_one_loop_after_another(stub: Stub, guard: Any) -> None:
    """Connections of an ended event loop are not used again."""
    egress = Egress(Endpoint.parse(stub.base_url, KEY), 5)

    async def ask() -> int:
        client = egress.async_client(guard)
        reply = await client.post(stub.base_url + "/chat/completions", json=CHAT)
        await egress.aclose()
        return reply.status_code

    assert [asyncio.run(ask()) for _ in range(2)] == [200, 200]


async def test_httpx_async_passes_too(stub: Stub, guard: Any) -> None:
    """The asynchronous door under the older httpx lets an honest request pass."""
    door = Door(Endpoint.parse(stub.base_url, KEY), guard, BoundaryRefused)
    inner = httpx.AsyncHTTPTransport(trust_env=False)
    transport: Any = GuardedAsyncTransport(door, lambda: inner, httpx)
    async with inner, httpx.AsyncClient(transport=transport, trust_env=False) as client:
        reply = await client.post(stub.base_url + "/chat/completions", json=CHAT)
    assert (reply.status_code, len(stub.chats)) == (200, 1)


@pytest.mark.parametrize(
    "url",
    [
        *("", "model", "ftp://example.org/v1", "http://", "http://oda:kvist@example.org/v1"),
        *("http://example.org/v1?key=a", "http://example.org/v1#a", "http://[::1/v1"),
    ],
)
def test_base_urls_that_are_none(url: str) -> None:
    """A base URL is a plain address; what is wrong with it is said without quoting it."""
    with pytest.raises(Misconfigured) as raised:
        Endpoint.parse(url)
    assert "oda" not in str(raised.value)


def test_the_key_masks_itself() -> None:
    """An endpoint's repr holds no key (I6)."""
    assert KEY not in repr(Endpoint.parse("http://127.0.0.1:1/v1", KEY))


@pytest.mark.parametrize(
    ("hosts", "trusted"),
    [
        (("models.example.org",), True),
        (("MODELS.example.org:8443",), True),
        (("models.example.org:443",), False),
        (("example.org",), False),
        (("evil-models.example.org",), False),
        ((), False),
    ],
)
def test_trust_is_by_whole_host(hosts: tuple[str, ...], trusted: bool) -> None:
    """Only the very host that settings name is trusted, not its relatives."""
    assert Endpoint.parse("https://models.example.org:8443/v1").trusted_by(hosts) is trusted
