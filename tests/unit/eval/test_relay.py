"""The scorer child's pipe: numbered answers, and no other way out."""

from __future__ import annotations

import asyncio
import io
import json
import subprocess
import sys

import pytest

from eval.relay import AskFailed, Relay

TRIES = {
    "socket": "import socket; socket.create_connection(('127.0.0.1', 9))",
    "look-up": "import socket; socket.getaddrinfo('example.org', 443)",
    "datagram": "import socket; socket.socket(2, 2).sendto(b'x', ('127.0.0.1', 9))",
    "unix": "import socket; socket.socket(socket.AF_UNIX).connect('/nowhere')",
    "urllib": "import urllib.request; urllib.request.urlopen('http://127.0.0.1:9')",
    "requests": "import requests; requests.get('http://127.0.0.1:9')",
    "httpx": "import httpx; httpx.get('http://127.0.0.1:9', trust_env=False)",
    "httpx2": "import httpx2; httpx2.get('http://127.0.0.1:9', trust_env=False)",
    "asyncio": "import asyncio; asyncio.run(asyncio.open_connection('127.0.0.1', 9))",
}


@pytest.mark.parametrize("way", sorted(TRIES))
def test_the_child_cannot_connect(way: str) -> None:
    """Whatever library tries, the process refuses before anything is sent."""
    code = f"from eval.relay import forbid_network\nforbid_network()\n{TRIES[way]}"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "the scorer has no network" in done.stderr


def reader(*values: object) -> asyncio.StreamReader:
    stream = asyncio.StreamReader()
    for value in values:
        stream.feed_data(json.dumps(value).encode() + b"\n")
    stream.feed_eof()
    return stream


async def test_answers_reach_who_asked_in_any_order() -> None:
    """The second ask may be answered first."""
    stream = asyncio.StreamReader()
    relay = Relay(stream, io.BytesIO())
    asks = [asyncio.create_task(relay.complete(prompt)) for prompt in ("one", "two")]
    await asyncio.sleep(0)
    stream.feed_data(b'{"id": 2, "text": "2"}\n{"id": 1, "text": "1"}\n')
    stream.feed_eof()
    await relay.pump()
    assert await asyncio.gather(*asks) == ["1", "2"]


async def test_an_error_of_the_parent_is_its_code() -> None:
    """A refusal comes back as a code that a reason can be made of."""
    relay = Relay(reader({"id": 1, "error": "boundary_refused"}), io.BytesIO())
    ask = asyncio.create_task(relay.complete("x"))
    await asyncio.sleep(0)
    await relay.pump()
    with pytest.raises(AskFailed, match="boundary_refused"):
        await ask


async def test_a_parent_that_is_gone_ends_every_ask() -> None:
    """A child never waits for a parent that died."""
    relay = Relay(reader(), io.BytesIO())
    ask = asyncio.create_task(relay.embed(["x"]))
    await asyncio.sleep(0)
    await relay.pump()
    with pytest.raises(AskFailed, match="closed"):
        await ask


async def test_an_ask_after_the_end_does_not_hang() -> None:
    """Also what is asked once the parent is gone ends at once."""
    relay = Relay(reader(), io.BytesIO())
    await relay.pump()
    with pytest.raises(AskFailed, match="closed"):
        await asyncio.wait_for(relay.complete("x"), 1)


def test_the_child_loads_no_native_network_stack() -> None:
    """What opens sockets unseen by the interpreter cannot be imported either."""
    code = "from eval.relay import forbid_network\nforbid_network()\nimport grpc, zmq, hf_xet"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "opens connections that cannot be checked" in done.stderr
