"""Runs the service: loopback unless keys are configured, its URL printed once it listens.

One process on asyncio's own loop: the boundary's backstop watches sockets through the
interpreter's audit events, which uvloop does not raise.
"""

from __future__ import annotations

import contextlib
import logging
import socket
from uuid import uuid4

import h11
import uvicorn
from fastapi import FastAPI
from uvicorn.protocols.http.h11_impl import H11Protocol

from api.app import create_app
from api.errors import error_response
from api.middleware import HEADERS, is_loopback
from api.process import configure_logging, harden
from rag.errors import Misconfigured
from rag.settings import Settings

GRACE_SECONDS = 30
"""How long running requests may take after a stop signal."""

WILDCARDS = frozenset({"", "0.0.0.0", "::"})  # noqa: S104


def serve(settings: Settings, host: str = "127.0.0.1", port: int = 8000) -> None:
    """Serve until a stop signal. Port 0 takes a free one.

    Raises ``Misconfigured`` for a host beyond loopback without API keys, and for an
    address that cannot be bound.
    """
    if not settings.api_keys and not is_loopback(host):
        raise Misconfigured("Without VEILRAG_API_KEYS the service binds to loopback only.")
    if host not in WILDCARDS:
        settings = settings.model_copy(update={"allowed_hosts": (*settings.allowed_hosts, host)})
    harden()
    configure_logging(settings.log_level)
    with bind(host, port) as listening:
        _Server(configuration(create_app(settings))).run([listening])


def bind(host: str, port: int) -> socket.socket:
    """A bound socket, not listening yet."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    bound = socket.socket(family, socket.SOCK_STREAM)
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        bound.bind((host, port))
    except OSError as error:
        bound.close()
        raise Misconfigured(f"Port {port} cannot be bound (errno {error.errno}).") from None
    return bound


def configuration(app: FastAPI) -> uvicorn.Config:
    """The server's settings: no access log, no banner, nobody's proxy headers, no WebSockets."""
    logging.getLogger("uvicorn.access").disabled = True  # it logs paths and queries
    return uvicorn.Config(
        app,
        loop="asyncio",
        http=ContractProtocol,
        ws="none",
        lifespan="on",
        log_config=None,
        access_log=False,
        proxy_headers=False,
        server_header=False,
        timeout_graceful_shutdown=GRACE_SECONDS,
    )


class ContractProtocol(H11Protocol):
    """What is not HTTP is refused in the error contract too, and with the same headers."""

    def send_400_response(self, msg: str) -> None:
        request_id = str(uuid4())
        refusal = error_response(400, request_id)
        own = {**HEADERS, "X-Request-Id": request_id, "Connection": "close"}
        headers = [*refusal.raw_headers, *((k.encode(), v.encode()) for k, v in own.items())]
        with contextlib.suppress(h11.LocalProtocolError):  # an answer had already begun
            for event in (
                h11.Response(status_code=400, headers=headers, reason=b"Bad Request"),
                h11.Data(data=bytes(refusal.body)),
                h11.EndOfMessage(),
            ):
                self.transport.write(self.conn.send(event) or b"")
        self.transport.close()


class _Server(uvicorn.Server):
    """Says on standard output where it listens, and nothing else there."""

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        for bound in sockets or ():
            host, port = bound.getsockname()[:2]
            shown = f"[{host}]" if ":" in host else host
            print(f"http://{shown}:{port}", flush=True)  # noqa: T201
