"""The service where nothing is reachable but the stub and the database.

The tests run once more inside a network namespace of their own, with loopback only, a
name server that keeps what it is asked, and empty caches.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rag.testing.noleak import assert_no_leak

INSIDE = "VEILRAG_TEST_INSIDE_NAMESPACE"


@pytest.mark.system("ip", "unshare", "mount")  # Debian: iproute2, util-linux, mount
def test_nothing_else_is_needed_or_tried(tmp_path: Path) -> None:
    """Upload and ask work without a network, and no name or address outside is even tried."""
    resolver = tmp_path / "resolv.conf"
    resolver.write_text("nameserver 127.0.0.1\noptions timeout:1 attempts:1\n")
    script = (
        f"ip link set lo up && mount --bind {resolver} $(readlink -f /etc/resolv.conf) && "
        f"exec {sys.executable} -m pytest -p no:cacheprovider --basetemp {tmp_path}/in {__file__}"
    )
    as_whom = [] if os.geteuid() == 0 else ["--map-current-user", "--keep-caps"]
    done = subprocess.run(
        ["unshare", "--net", "--mount", *as_whom, "sh", "-c", script],
        check=False,
        capture_output=True,
        text=True,
        env={**os.environ, INSIDE: "1", "PATH": f"{os.environ['PATH']}:/usr/sbin:/sbin"},
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "passed" in done.stdout
    assert "skipped" not in done.stdout


@pytest.fixture
def name_server() -> Iterator[list[bytes]]:
    """A name server that answers nothing and keeps what it was asked."""
    asked: list[bytes] = []
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sink:
        sink.bind(("127.0.0.1", 53))

        def keep() -> None:
            while data := sink.recv(4096):
                asked.append(data)

        thread = threading.Thread(target=keep)
        thread.start()
        yield asked
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as end:
            end.sendto(b"", ("127.0.0.1", 53))
        thread.join()


def unroutable() -> int:
    """How many packets of this namespace found no route: attempts to reach another host."""
    names, values = [
        line.split()[1:]
        for line in Path("/proc/net/snmp").read_text().splitlines()
        if line.startswith("Ip:")
    ]
    return int(dict(zip(names, values, strict=True))["OutNoRoutes"])


if INSIDE in os.environ:
    del test_nothing_else_is_needed_or_tried

    def test_upload_and_ask_without_a_network(
        launch: Any, new_stub: Any, name_server: list[bytes], tmp_path: Path
    ) -> None:
        """Cold caches, no network: ready, upload and ask; no name looked up, no packet outward."""
        with pytest.raises(OSError):  # the namespace is what it should be
            socket.create_connection(("192.0.2.1", 80), timeout=2)
        before = unroutable()
        stub = new_stub()
        service = launch(stub, environment={"HOME": str(tmp_path / "home")}).until_ready()
        service.add(
            "Margaret Holloway keeps the harbour key. Mail jo.haverly@files.intern, "
            "jo.haverly@mailhost.local, jo.haverly@localhost or jo.haverly@[192.0.2.7]; see "
            "https://files.intern/key."
        )
        answer = service.ask("Who keeps the harbour key, and which mail?")
        assert "Margaret Holloway keeps" in answer["answer"]
        assert "jo.haverly@mailhost.local" in answer["answer"]
        assert_no_leak(stub, ["Holloway", "jo.haverly", "haverly@", "mailhost.local"])
        assert name_server == []
        assert unroutable() == before

    def test_a_lookup_would_be_seen(name_server: list[bytes]) -> None:
        """The check can fail: a lookup reaches the name server."""
        with pytest.raises(OSError):
            socket.getaddrinfo("tidewater.example", 80)
        assert any(b"tidewater" in one for one in name_server)

    def test_an_attempt_would_be_seen() -> None:
        """The check can fail: an attempt to reach another host is counted."""
        before = unroutable()
        with pytest.raises(OSError), socket.socket() as wire:
            wire.connect(("192.0.2.1", 80))
        assert unroutable() > before
