"""The sealed process: no library but the guarded door gets a byte out (I1's backstop)."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from rag.testing.stub import Script, Stub, say, serve_stub

FOLDER = Path(__file__).parent
INSIDE = {"guarded", "guarded_async"}


@contextmanager
def _datagrams(port: int) -> Iterator[list[bytes]]:
    """Listens for UDP on the canary's port number."""
    received: list[bytes] = []
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.bind(("127.0.0.1", port))
        sock.settimeout(0.1)
        stop = threading.Event()

        def listen() -> None:
            while not stop.is_set():
                try:
                    received.append(sock.recv(1000))
                except TimeoutError:
                    continue

        thread = threading.Thread(target=listen)
        thread.start()
        try:
            yield received
        finally:
            stop.set()
            thread.join()


def _run(mode: str) -> tuple[dict[str, str], Stub, Stub, list[bytes]]:
    with serve_stub(Script(rewrite=say("hi"))) as canary, serve_stub() as model:
        port = int(canary.base_url.rpartition(":")[2].removesuffix("/v1"))
        with _datagrams(port) as datagrams:
            done = subprocess.run(
                [sys.executable, FOLDER / "ways_out.py", mode, canary.base_url, model.base_url],
                capture_output=True,
                text=True,
                timeout=120,
                check=False,
            )
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout.splitlines()[-1]), canary, model, datagrams


@pytest.fixture(scope="module")
def sealed() -> tuple[dict[str, str], Stub, Stub, list[bytes]]:
    return _run("sealed")


@pytest.fixture(scope="module")
def unsealed() -> tuple[dict[str, str], Stub, Stub, list[bytes]]:
    return _run("open")


def _names() -> list[str]:
    source = (FOLDER / "ways_out.py").read_text()
    return [
        line.split("def ")[1].partition("(")[0]
        for before, line in zip(source.splitlines(), source.splitlines()[1:], strict=False)
        if before == "@way"
    ]


@pytest.mark.slow
@pytest.mark.parametrize("name", [n for n in _names() if n not in INSIDE])
def test_every_other_way_is_closed(sealed: tuple[dict[str, str], ...], name: str) -> None:
    """This way out is refused by the seal, not by chance."""
    if sealed[0][name] == "ModuleNotFoundError":
        pytest.skip(f"{name.strip('_')} is not installed: it cannot be a way out")
    assert sealed[0][name] == "refused"


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(INSIDE))
def test_the_guarded_door_stays_open(sealed: tuple[dict[str, str], ...], name: str) -> None:
    """The guarded transport reaches the configured endpoint, sync and async."""
    assert sealed[0][name] == "out"


@pytest.mark.slow
def test_nothing_arrived(sealed: tuple[dict[str, str], Stub, Stub, list[bytes]]) -> None:
    """No connection and no datagram reached the canary; the model got the two guarded calls."""
    _, canary, model, datagrams = sealed
    assert (canary.wires, datagrams) == ([], [])
    assert [record.path for record in model.records] == ["/v1/models"] * 2


@pytest.mark.slow
def test_the_canary_sings_without_the_seal(
    unsealed: tuple[dict[str, str], Stub, Stub, list[bytes]],
) -> None:
    """The same ways do reach the canary when the process is open: the test can fail."""
    outcomes, canary, _, datagrams = unsealed
    assert "refused" not in outcomes.values()
    assert len(canary.wires) >= 20
    assert len(datagrams) >= 3


def _child(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False
    )


def test_allowed_loopback_is_open_to_all() -> None:
    """An address that was allowed by name can be reached without the door."""
    with serve_stub() as stub:
        address = stub.base_url.removeprefix("http://").removesuffix("/v1")
        done = _child(
            "import urllib.request; from rag.models.seal import seal_process\n"
            f"seal_process([], loopback=['{address}'])\n"
            f"urllib.request.urlopen('{stub.base_url}/models').read()"
        )
        assert done.returncode == 0, done.stderr
        assert len(stub.records) == 1


@pytest.mark.parametrize("address", ["192.0.2.1:80", "example.org:80", "127.0.0.1", "0.0.0.0:1"])
def test_only_loopback_may_be_allowed(address: str) -> None:
    """No address beyond this machine can be opened to all."""
    done = _child(
        f"from rag.models.seal import seal_process\nseal_process([], loopback=['{address}'])"
    )
    assert "Misconfigured" in done.stderr


def test_a_native_stack_that_is_loaded_stops_the_seal() -> None:
    """A process whose event loop escapes the audit events cannot call itself sealed."""
    done = _child(
        "import sys, types; sys.modules['uvloop'] = types.ModuleType('uvloop')\n"
        "from rag.models.seal import seal_process; seal_process([])"
    )
    assert "Misconfigured" in done.stderr


def test_names_may_be_looked_up_when_configured() -> None:
    """The database's host is looked up in Python by psycopg: its name may be."""
    done = _child(
        "import socket; from rag.models.seal import seal_process\n"
        "seal_process([], names=['localhost.localdomain'])\n"
        "try: socket.getaddrinfo('localhost.localdomain', 1)\n"
        "except socket.gaierror: pass"
    )
    assert done.returncode == 0, done.stderr


def test_a_server_still_answers_when_sealed() -> None:
    """Listening and answering is no way out: uvicorn serves in a sealed process."""
    done = _child(
        "import asyncio, threading, socket\n"
        "from rag.models.seal import seal_process\n"
        "import uvicorn\n"
        "async def app(scope, receive, send):\n"
        "    if scope['type'] != 'http': return\n"
        "    await send({'type': 'http.response.start', 'status': 200, 'headers': []})\n"
        "    await send({'type': 'http.response.body', 'body': b'ok'})\n"
        "with socket.socket() as s:\n"
        "    s.bind(('127.0.0.1', 0)); port = s.getsockname()[1]\n"
        "seal_process([], loopback=[f'127.0.0.1:{port}'])\n"
        "config = uvicorn.Config(app, host='127.0.0.1', port=port, log_level='error')\n"
        "server = uvicorn.Server(config)\n"
        "thread = threading.Thread(target=server.run, daemon=True); thread.start()\n"
        "import time, urllib.request\n"
        "while not server.started: time.sleep(0.05)\n"
        "print(urllib.request.urlopen(f'http://127.0.0.1:{port}/').read())\n"
        "server.should_exit = True; thread.join()"
    )
    assert (done.returncode, done.stdout.strip()) == (0, "b'ok'"), done.stderr
