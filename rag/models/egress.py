"""The one door through which text may leave for a model (I1).

Every request is read whole, checked by the scope's ``OutboundGuard`` and rebuilt from
what was checked: nothing of the caller's headers or transport options goes along. What
cannot be read whole does not leave: streamed, encoded and multipart bodies, token
arrays, images, WebSockets. Redirects and the environment's proxies are off.

A guard belongs to one request (I8): ``Egress.client`` and ``Egress.async_client`` bind it
to a cheap client of its own, around connections that all requests share. ``rag.models.seal``
closes every other way out of the process.
"""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any, NoReturn
from weakref import WeakKeyDictionary

import httpx2

from rag.errors import BoundaryRefused, Misconfigured
from rag.models.seal import leaving, seal_process
from rag.ports import OutboundGuard

__all__ = [
    "Door",
    "Egress",
    "Endpoint",
    "GuardedAsyncTransport",
    "GuardedTransport",
    "seal_process",
]

AGENT = "veilrag"

FIELDS = frozenset(
    {
        *("model", "messages", "stream", "n", "temperature", "top_p", "stop", "seed"),
        *("max_tokens", "max_completion_tokens", "presence_penalty", "frequency_penalty"),
        *("tools", "tool_choice", "response_format", "reasoning_effort"),
        *("input", "encoding_format", "dimensions"),  # embeddings
        *("query", "documents", "top_n"),  # reranking
    }
)
"""All that a body may hold. Not among them: ``user``, ``metadata``, ``store``, ids, logprobs."""

PATHS = frozenset({"/chat/completions", "/embeddings", "/models", "/rerank"})
"""All that is asked of a model server: fixed words, so that no path carries text."""

_PORTS = {"http": 80, "https": 443}
_ACCEPTED = frozenset({"application/json", "text/event-stream"})
_MAX_BODY = 32_000_000


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A model server as configured. Requests go below ``path`` of exactly this host and port."""

    scheme: str
    host: str
    port: int
    path: str
    key: str | None = field(default=None, repr=False)

    @classmethod
    def parse(cls, base_url: str, key: str | None = None) -> Endpoint:
        """Raises ``Misconfigured`` unless it is a plain ``http(s)://host[:port][/path]``."""
        try:
            url = httpx2.URL(base_url)
        except (httpx2.InvalidURL, ValueError):
            raise Misconfigured("A base URL of a model cannot be read.") from None
        if url.scheme not in _PORTS or not url.host:
            raise Misconfigured("A base URL of a model must start with http:// or https://.")
        if url.userinfo or url.query or url.fragment:
            raise Misconfigured("A base URL of a model must hold no password, query or fragment.")
        port = url.port or _PORTS[url.scheme]
        return cls(url.scheme, url.host.lower(), port, url.path.rstrip("/"), key or None)

    @property
    def base_url(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.scheme}://{host}:{self.port}{self.path}"

    def trusted_by(self, hosts: Sequence[str]) -> bool:
        """True when settings name its host, or its ``host:port``."""
        named = {host.strip().lower() for host in hosts}
        return bool(named & {self.host, f"{self.host}:{self.port}", f"[{self.host}]:{self.port}"})

    def is_aim_of(self, url: httpx2.URL) -> bool:
        port = url.port or _PORTS.get(url.scheme)
        return (
            (url.scheme, url.host.lower(), port) == (self.scheme, self.host, self.port)
            and url.path in {self.path + path for path in PATHS}
            and not url.userinfo
            and not url.query
        )


class Egress:
    """Connections to one endpoint, and clients for it that are each bound to one guard."""

    def __init__(self, endpoint: Endpoint, timeout: float) -> None:
        """``timeout`` bounds each step of a request (connecting, each read), in seconds."""
        self.endpoint = endpoint
        self._timeout = timeout
        self._lock = threading.Lock()
        self._pool: httpx2.HTTPTransport | None = None
        # an asyncio connection lives and dies with its loop
        self._pools: WeakKeyDictionary[asyncio.AbstractEventLoop, httpx2.AsyncHTTPTransport] = (
            WeakKeyDictionary()
        )

    def client(
        self, guard: OutboundGuard, raising: type[BoundaryRefused] = BoundaryRefused
    ) -> httpx2.Client:
        """A synchronous client whose every request passes ``guard``; need not be closed."""
        transport = GuardedTransport(Door(self.endpoint, guard, raising), self._shared())
        return httpx2.Client(transport=transport, **self._options())

    def async_client(
        self, guard: OutboundGuard, raising: type[BoundaryRefused] = BoundaryRefused
    ) -> httpx2.AsyncClient:
        """An asynchronous client whose every request passes ``guard``; need not be closed.

        ``raising`` is what a refusal is raised as, for libraries that retry strangers.
        """
        door = Door(self.endpoint, guard, raising)
        return httpx2.AsyncClient(
            transport=GuardedAsyncTransport(door, self._shared_async), **self._options()
        )

    async def aclose(self) -> None:
        """Close the connections of this loop, and the synchronous ones."""
        with self._lock:
            pool, self._pool = self._pool, None
            of_loop = self._pools.pop(asyncio.get_running_loop(), None)
        if pool is not None:
            pool.close()
        if of_loop is not None:
            await of_loop.aclose()

    def _options(self) -> dict[str, Any]:
        return {"trust_env": False, "follow_redirects": False, "timeout": self._timeout}

    def _shared(self) -> httpx2.HTTPTransport:
        with self._lock:
            if self._pool is None:
                self._pool = httpx2.HTTPTransport(trust_env=False, retries=0)
            return self._pool

    def _shared_async(self) -> httpx2.AsyncHTTPTransport:
        loop = asyncio.get_running_loop()
        with self._lock:
            if loop not in self._pools:
                self._pools[loop] = httpx2.AsyncHTTPTransport(trust_env=False, retries=0)
            return self._pools[loop]


@dataclass(frozen=True, slots=True)
class Door:
    """What decides over one request: where it may go, and who checks it."""

    endpoint: Endpoint
    guard: OutboundGuard
    raising: type[BoundaryRefused]

    def pass_through(self, request: Any, library: ModuleType) -> Any:
        """The request that may leave, rebuilt from what was checked; raises ``raising``.

        ``request`` is of httpx2 or of httpx, which share this interface; so is the result.
        """
        try:
            body = self._body(request, library)
            headers = self._headers(request, body)
            self.guard.check(request.method, str(request.url), headers, body)
        except BoundaryRefused as refused:
            message = refused.message
        else:
            return self._rebuilt(request, headers, body)
        raise self.raising(message)

    def _body(self, request: Any, library: ModuleType) -> bytes:
        if request.url.scheme in {"ws", "wss"} or "upgrade" in request.headers:
            _refuse("A WebSocket cannot be checked.")
        if not self.endpoint.is_aim_of(request.url):
            _refuse("The host or path is not a configured model endpoint.")
        if request.method not in {"GET", "POST"}:
            _refuse("The method is not one that models are asked by.")
        if "content-encoding" in request.headers or "transfer-encoding" in request.headers:
            _refuse("An encoded body cannot be checked.")
        if type(request.stream) is not library.ByteStream:
            _refuse("A streamed body cannot be checked.")
        body = bytes(request.read()) if request.method == "POST" else b""
        if request.method == "POST":
            _check_body(request.headers.get("content-type", ""), body)
        return body

    def _headers(self, request: Any, body: bytes) -> list[tuple[str, str]]:
        host = self.endpoint.host if ":" not in self.endpoint.host else f"[{self.endpoint.host}]"
        standard = self.endpoint.port == _PORTS[self.endpoint.scheme]
        accept = request.headers.get("accept", "")
        headers = [
            ("host", host if standard else f"{host}:{self.endpoint.port}"),
            ("accept", accept if accept in _ACCEPTED else "application/json"),
            ("user-agent", AGENT),
        ]
        if request.method == "POST":
            headers += [("content-type", "application/json"), ("content-length", str(len(body)))]
        return headers

    def _rebuilt(self, request: Any, headers: list[tuple[str, str]], body: bytes) -> Any:
        if self.endpoint.key:  # ours, not the caller's: it need not be checked
            headers = [*headers, ("authorization", f"Bearer {self.endpoint.key}")]
        timeout = request.extensions.get("timeout", {})
        return type(request)(
            request.method,
            request.url.copy_with(fragment=None),
            headers=headers,
            content=body,
            extensions={"timeout": timeout},
        )

    @property
    def aim(self) -> tuple[str, int]:
        return self.endpoint.host, self.endpoint.port


class GuardedTransport(httpx2.BaseTransport):
    """The synchronous door, for clients of httpx2 and (``library=httpx``) of httpx."""

    def __init__(self, door: Door, inner: Any, library: ModuleType = httpx2) -> None:
        self._door, self._inner, self._library = door, inner, library

    def handle_request(self, request: Any) -> Any:
        outgoing = self._door.pass_through(request, self._library)
        with leaving(*self._door.aim):
            return self._inner.handle_request(outgoing)

    def close(self) -> None:
        """The connections are shared: the ``Egress`` closes them."""


class GuardedAsyncTransport(httpx2.AsyncBaseTransport):
    """The asynchronous door; ``inner`` gives the running loop's transport."""

    def __init__(self, door: Door, inner: Any, library: ModuleType = httpx2) -> None:
        self._door, self._inner, self._library = door, inner, library

    async def handle_async_request(self, request: Any) -> Any:
        outgoing = self._door.pass_through(request, self._library)
        with leaving(*self._door.aim):
            return await self._inner().handle_async_request(outgoing)

    async def aclose(self) -> None:
        """The connections are shared: the ``Egress`` closes them."""


def _refuse(message: str) -> NoReturn:
    raise BoundaryRefused(message)


def _check_body(content_type: str, body: bytes) -> None:
    if content_type.partition(";")[0].strip().lower() != "application/json":
        _refuse("Only a JSON body can be checked.")
    if len(body) > _MAX_BODY:
        _refuse("The body is too large to be checked.")
    try:
        value = json.loads(body.decode("utf-8"), object_pairs_hook=_object)
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        _refuse("Only a JSON object can be checked.")
    if not value.keys() <= FIELDS:
        _refuse("The body holds a field that no model needs.")
    _check_texts(value)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """A JSON object; of a key that comes twice a reader would see one value only."""
    value = dict(pairs)
    if len(value) != len(pairs):
        _refuse("A key comes twice in the body.")
    return value


def _check_texts(body: Mapping[str, Any]) -> None:
    for name in ("input", "documents"):
        texts = body.get(name, "")
        if not (isinstance(texts, str) or _all_texts(texts)):
            _refuse("Only strings can be checked, no token arrays.")
    messages = body.get("messages", [])
    if not isinstance(messages, list) or not all(map(_is_message_of_text, messages)):
        _refuse("Only messages of text can be checked.")


def _all_texts(values: object) -> bool:
    return isinstance(values, list) and all(isinstance(value, str) for value in values)


def _is_message_of_text(message: object) -> bool:
    if not isinstance(message, dict):
        return False
    content = message.get("content")
    if isinstance(content, list):
        return all(isinstance(p, dict) and p.get("type") == "text" for p in content)
    return content is None or isinstance(content, str)
