"""Pure ASGI layers around the app, outermost first: Envelope, Doorkeeper, KeyCheck, BodyLimit.

- ``Envelope``: a request id, the headers of every answer, our own access log (route
  templates, never a path or a query), and the last handler: nothing that is raised
  inside reaches the server's logger, whose traceback would quote values (I6).
- ``Doorkeeper``: a foreign ``Host`` or ``Origin`` is 403 on every route (I12).
- ``KeyCheck``: with keys configured, a bearer key; without, callers from this host only.
- ``BodyLimit``: 413 by the announced length and again while the body streams in.
"""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
import logging
import re
import time
from collections.abc import Iterable, Sequence
from urllib.parse import urlsplit
from uuid import uuid4

from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from api.errors import CLIENT_GONE, error_response, place_of
from rag.errors import Misconfigured
from rag.settings import Settings

log = logging.getLogger("api.access")

OPEN_PATHS = frozenset({"/healthz", "/readyz"})
"""What a process supervisor may ask without a key; neither says anything of a document."""

HEADERS = {
    "Cache-Control": "no-store",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
    "Cross-Origin-Resource-Policy": "same-origin",
}

_REQUEST_ID = re.compile(r"[A-Za-z0-9-]{1,64}")


def settings_in(scope: Scope) -> Settings:
    """The settings of the lifespan's state."""
    state = scope.get("state") or {}
    if "settings" not in state:
        raise Misconfigured("The service's lifespan has not run.")
    settings: Settings = state["settings"]
    return settings


class Envelope:
    """Outermost: whatever happens inside, one answer with its id and headers, and one log line."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008})
            return
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        exchange = _Exchange(scope, send)
        try:
            await self.app(scope, receive, exchange.send)
        except ClientDisconnect:
            await exchange.fail(receive, CLIENT_GONE)
        except Exception as error:  # the outermost handler: by type and place only
            log.error(  # noqa: TRY400 - a traceback would quote values
                "%s internal: %s", exchange.request_id, place_of(error)
            )
            await exchange.fail(receive, 500)
        finally:
            exchange.log()


class _Exchange:
    """One request's id, status and clock."""

    def __init__(self, scope: Scope, send: Send) -> None:
        given = Headers(scope=scope).getlist("x-request-id")
        known = len(given) == 1 and _REQUEST_ID.fullmatch(given[0])
        self.request_id = given[0] if known else str(uuid4())
        self.status = 0
        self._scope = scope
        self._send = send
        self._began = time.perf_counter()
        scope["request_id"] = self.request_id

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            headers = MutableHeaders(scope=message)
            headers["X-Request-Id"] = self.request_id
            for name, value in HEADERS.items():
                headers.setdefault(name, value)
        await self._send(message)

    async def fail(self, receive: Receive, status: int) -> None:
        """Answer, unless an answer has begun: then the server closes the connection."""
        if self.status:
            return
        response = (
            Response(status_code=status)
            if status == CLIENT_GONE
            else error_response(status, self.request_id)
        )
        await response(self._scope, receive, self.send)

    def log(self) -> None:
        route = getattr(self._scope.get("route"), "path", "-")
        took = (time.perf_counter() - self._began) * 1000
        method = self._scope["method"] if self._scope["method"].isalpha() else "-"
        log.info("%s %s %s %d %.0f ms", self.request_id, method[:8], route, self.status, took)


class Doorkeeper:
    """403 unless ``Host`` and, where there is one, ``Origin`` name this or a configured host."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and not self._welcome(scope):
            message = "Foreign Host or Origin: name it in VEILRAG_ALLOWED_HOSTS if it is yours."
            await error_response(403, scope["request_id"], message=message)(scope, receive, send)
            return
        await self.app(scope, receive, send)

    @staticmethod
    def _welcome(scope: Scope) -> bool:
        headers = Headers(scope=scope)
        hosts, origins = headers.getlist("host"), headers.getlist("origin")
        allowed = settings_in(scope).allowed_hosts
        return (
            len(hosts) == 1
            and len(origins) <= 1
            and is_ours(f"//{hosts[0]}", allowed)
            and all(is_same(origin, hosts[0]) or is_named(origin, allowed) for origin in origins)
        )


def is_same(origin: str, host: str) -> bool:
    """Whether an ``Origin`` is a page of this very service: on another port it is not."""
    scheme, _, place = origin.partition("://")
    return scheme in ("http", "https") and place.lower() == host.lower()


def is_ours(address: str, allowed: Iterable[str]) -> bool:
    """Whether ``//host:port`` names loopback, with any port, or a configured host."""
    parts = _plain(address)
    return parts is not None and (is_loopback(parts[0]) or is_named(address, allowed))


def is_named(address: str, allowed: Iterable[str]) -> bool:
    """Whether ``//host:port`` or ``scheme://host:port``, and nothing else, names a configured host.

    A configured ``name`` is allowed with any port, ``name:port`` with that one only.
    """
    parts = _plain(address)
    if parts is None:
        return False
    host, port = parts
    names = {name.strip().lower().strip("[]") for name in allowed}
    return host in names or f"{host}:{port}" in names


def _plain(address: str) -> tuple[str, int | None] | None:
    """Host and port of an address that holds nothing else."""
    try:
        parts = urlsplit(address)
        host, port = parts.hostname, parts.port
    except ValueError:
        return None
    plain = not (parts.path or parts.query or parts.fragment or "@" in parts.netloc)
    if not host or not plain or parts.scheme not in ("", "http", "https"):
        return None
    return (host, port) if re.fullmatch(r"[a-z0-9._-]+|[0-9a-f:.]+", host) else None


def is_loopback(host: str) -> bool:
    """Whether a host name or address can only mean this machine."""
    if host.lower() == "localhost":
        return True
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return False
    mapped = getattr(address, "ipv4_mapped", None)
    return bool((mapped or address).is_loopback)


class KeyCheck:
    """401 without a configured key; with none configured, 403 to callers from elsewhere."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        status = self._refusal(scope) if scope["type"] == "http" else None
        if status is None:
            await self.app(scope, receive, send)
            return
        message = (
            "Without API keys only callers on this host are served." if status == 403 else None
        )
        await error_response(status, scope["request_id"], message=message)(scope, receive, send)

    @staticmethod
    def _refusal(scope: Scope) -> int | None:
        keys = settings_in(scope).api_keys
        if not keys:
            client = scope.get("client")
            return None if client is None or is_loopback(client[0]) else 403
        if scope["path"] in OPEN_PATHS:
            return None
        given = Headers(scope=scope).getlist("authorization")
        return None if len(given) == 1 and is_key(given[0], keys) else 401


def is_key(authorization: str, keys: Sequence[str]) -> bool:
    """Whether the header is ``Bearer KEY`` with one of the keys, in time that tells nothing."""
    scheme, _, given = authorization.partition(" ")
    digest = hashlib.sha256(given.strip().encode("utf-8", "replace")).digest()
    found = False
    for key in keys:
        found |= hmac.compare_digest(digest, hashlib.sha256(key.encode()).digest())
    return found and scheme.lower() == "bearer"


class BodyLimit:
    """413 as soon as the body is known to be longer than ``max_body_bytes``."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        limit = settings_in(scope).max_body_bytes
        announced = Headers(scope=scope).get("content-length", "0")
        if not announced.isascii() or not announced.isdigit() or int(announced) > limit:
            await error_response(413, scope["request_id"])(scope, receive, send)
            return
        seen = 0

        async def counted() -> Message:
            nonlocal seen
            message = await receive()
            seen += len(message.get("body", b""))
            if seen > limit:
                raise HTTPException(413)
            return message

        await self.app(scope, counted, send)
