"""Nothing but the guarded door opens a way out of the process (I1's backstop).

``seal_process`` installs an audit hook (PEP 578) that cannot be removed again. From then
on a Python socket connects only from inside ``rag.models.egress``, and there only to a
configured endpoint, or to a loopback address that was allowed by name. That holds for
every HTTP library in the process (requests, urllib3, aiohttp, websockets, urllib,
httpx, LangSmith's client), whatever their authors change. Names other than configured
ones are not even looked up: a lookup would carry them out. Native network stacks that
no audit event sees cannot be imported.

Not covered, and said so: C code that is no Python module's socket (libpq talks to the
database, ``ctypes``), local Unix sockets, and child processes, which seal themselves.
"""

from __future__ import annotations

import ipaddress
import socket
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from rag.errors import BoundaryRefused, Misconfigured

NATIVE = frozenset(
    {
        *("uvloop", "winloop", "pycurl", "grpc", "hf_xet", "zmq", "xllamacpp"),
        *("pyarrow._flight", "pyarrow._s3fs", "pyarrow._gcsfs", "pyarrow._azurefs"),
    }
)
"""Modules that open sockets of their own, unseen by audit events."""

_leaving: ContextVar[tuple[str, int] | None] = ContextVar("leaving", default=None)


@contextmanager
def leaving(host: str, port: int) -> Iterator[None]:
    """The guarded transport is about to connect to this endpoint, in this context."""
    token = _leaving.set((host, port))
    try:
        yield
    finally:
        _leaving.reset(token)


@dataclass(slots=True)
class _Allowed:
    """What the seal lets pass. It can grow with a second call, never shrink or vanish."""

    endpoints: set[tuple[str, int]] = field(default_factory=set)
    loopback: set[tuple[str, int]] = field(default_factory=set)
    names: set[str] = field(default_factory=set)
    installed: bool = False


_allowed = _Allowed()


def seal_process(
    endpoints: Iterable[str], *, loopback: Iterable[str] = (), names: Iterable[str] = ()
) -> None:
    """Close every way out but the guarded one, for the rest of the process's life.

    ``endpoints``: base URLs of the models, reached by the guarded transport only.
    ``loopback``: ``127.0.0.1:PORT`` or ``[::1]:PORT`` that any code here may reach.
    ``names``: further host names that may be looked up (the database's: psycopg does
    that in Python, the connection itself is libpq's).
    Raises ``Misconfigured`` when a native network stack is already loaded.
    """
    loaded = sorted(NATIVE & sys.modules.keys())
    if loaded:
        raise Misconfigured(f"Cannot close the process: {', '.join(loaded)} is loaded.")
    aims = {_aim(url) for url in endpoints}
    local = {_local(address) for address in loopback}
    _allowed.endpoints |= aims
    _allowed.loopback |= local
    _allowed.names |= {_name(name) for name in names} | {host for host, _ in aims}
    if not _allowed.installed:
        _allowed.installed = True
        sys.addaudithook(_audit)


def _aim(url: str) -> tuple[str, int]:
    parts = urlsplit(url)
    if parts.hostname is None:
        raise Misconfigured("A base URL of a model has no host.")
    return _name(parts.hostname), parts.port or (443 if parts.scheme == "https" else 80)


def _local(address: str) -> tuple[str, int]:
    parts = urlsplit(f"//{address}")
    host = _number(parts.hostname or "")
    if host is None or not host.is_loopback or parts.port is None:
        raise Misconfigured("Only a loopback address with its port may be allowed by name.")
    return str(host), parts.port


def _audit(event: str, arguments: tuple[Any, ...]) -> None:
    check = _CHECKS.get(event)
    if check is not None:
        check(*arguments)


def _check_address(sock: socket.socket, address: object) -> None:
    if address is None or sock.family == socket.AF_UNIX:
        return
    if sock.family not in {socket.AF_INET, socket.AF_INET6} or not isinstance(address, tuple):
        raise BoundaryRefused("The process is closed to this kind of socket.")
    host, port = _name(address[0]), address[1]
    number = _number(host)
    if (str(number) if number else host, port) in _allowed.loopback:
        return
    aim = _leaving.get()
    if aim is None or (_name(aim[0]), aim[1]) not in _allowed.endpoints or aim[1] != port:
        raise BoundaryRefused("Only the guarded transport may open a connection.")


def _check_lookup(host: object, *_: object) -> None:
    name = _name(host)
    if name and _number(name) is None and name not in {"localhost", *_allowed.names}:
        raise BoundaryRefused("Only configured names may be looked up.")


def _check_reverse(address: object, *_: object) -> None:
    host = address[0] if isinstance(address, tuple) else address
    number = _number(_name(host))
    if number is None or not number.is_loopback:
        raise BoundaryRefused("No address may be looked up.")


def _check_import(module: str, *_: object) -> None:
    if module in NATIVE or module.partition(".")[0] in NATIVE:
        raise ImportError(f"{module} opens connections that cannot be checked")


_CHECKS: Mapping[str, Callable[..., None]] = {
    "socket.connect": _check_address,
    "socket.sendto": _check_address,
    "socket.sendmsg": _check_address,
    "socket.getaddrinfo": _check_lookup,
    "socket.gethostbyname": _check_lookup,
    "socket.gethostbyaddr": _check_reverse,
    "socket.getnameinfo": _check_reverse,
    "import": _check_import,
}


def _name(host: object) -> str:
    if isinstance(host, bytes | bytearray):
        host = bytes(host).decode("ascii", "replace")
    return str(host or "").lower().rstrip(".")


def _number(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        number = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return None
    mapped = number.ipv4_mapped if isinstance(number, ipaddress.IPv6Address) else None
    return mapped or number
