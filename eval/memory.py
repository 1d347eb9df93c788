"""What the service holds resident: a real ``veilrag serve`` process asked over HTTP.

Measured from outside, in ``/proc``: the resident set of the process (``VmRSS``) every so
many requests, its high-water mark (``VmHWM``), and the proportional sets (``Pss``, shared
pages split among those who share them) of the embedded database's processes. Each
question is worded anew, so that caches by text, spaCy's string store and the like would
show. With fewer than two samples from the 200th request on, flatness is not measured,
and its target not met.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from eval.material import Material, open_material
from eval.report import machine
from eval.statistics import median, percentile, slope

READY_SECONDS = 15.0
MOST_MEGABYTES = 1_200.0
FLAT = 0.05
"""From the 200th request on, memory grows by less than this share."""
SETTLED = 200
PATIENCE = 120.0
MOST_BYTES = 50_000_000
SERVE = "import sys; from rag.cli import main; sys.exit(main())"


@dataclass(frozen=True, slots=True)
class Service:
    """A running service and how long it took to be ready."""

    pid: int
    connection: http.client.HTTPConnection
    ready_seconds: float
    data: Path

    def send(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> Any:
        """The decoded answer. Raises ``SystemExit`` for an error's status."""
        payload = None if body is None else json.dumps(body)
        headers = {"Content-Type": "application/json"} if payload else {}
        self.connection.request(method, path, payload, headers)
        answer = self.connection.getresponse()
        text = answer.read()
        if answer.status >= 400:
            raise SystemExit(f"{method} {path} gave {answer.status}")
        return json.loads(text)


@contextmanager
def serve(folder: Path) -> Iterator[Service]:
    """``veilrag serve`` on a free port with a database of its own in ``folder``."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("VEILRAG_", "OPENAI_"))}
    environment.pop("DATABASE_URL", None)
    environment["VEILRAG_DATA_DIR"] = str(folder / "data")
    started = time.perf_counter()
    process = subprocess.Popen(  # noqa: S603 - our own module, our own arguments
        [sys.executable, "-P", "-c", SERVE, "serve", "--host", "127.0.0.1", "--port", "0"],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        cwd=folder,
        env=environment,
        text=True,
    )
    try:
        yield _ready(process, started, folder / "data")
    finally:
        process.terminate()
        try:
            process.wait(40)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        if process.stdout is not None:
            process.stdout.close()


def _ready(process: subprocess.Popen[str], started: float, data: Path) -> Service:
    """Wait for the printed URL, then for ``/readyz``."""
    url = process.stdout.readline().strip() if process.stdout else ""
    if not url:
        raise SystemExit(f"the service ended with status {process.wait()}")
    address = urlsplit(url)
    while time.perf_counter() - started < PATIENCE:
        connection = http.client.HTTPConnection(address.hostname or "", address.port, timeout=120)
        try:
            connection.request("GET", "/readyz")
            answer = connection.getresponse()
            answer.read()
            if answer.status == 200:
                seconds = time.perf_counter() - started
                return Service(process.pid, connection, seconds, data)
        except ConnectionError:
            pass
        connection.close()
        time.sleep(0.1)
    raise SystemExit("the service was not ready in time")


def megabytes(pid: int, name: str, file: str = "status") -> float:
    """A field of ``/proc/PID/FILE``, in megabytes of 10^6 bytes; 0 when the process is gone."""
    try:
        lines = Path("/proc", str(pid), file).read_text("ascii", "replace").splitlines()
    except OSError:
        return 0.0
    for line in lines:
        if line.startswith(f"{name}:"):
            return int(line.split()[1]) * 1_024 / 1e6
    return 0.0


def descendants(pid: int) -> list[int]:
    """Every process below ``pid``, by the parents that ``/proc`` names."""
    parents: dict[int, int] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                stat = (entry / "stat").read_text("ascii", "replace")
            except OSError:
                continue
            parents[int(entry.name)] = int(stat.rpartition(")")[2].split()[1])
    found, front = [], [pid]
    while front:
        front = [child for child, parent in parents.items() if parent in front]
        found += front
    return found


def database_processes(data: Path) -> list[int]:
    """The embedded database's: it outlives its starter, so it is nobody's descendant here."""
    try:
        first = (data / "postgres" / "postmaster.pid").read_text("ascii", "replace").split()[0]
    except (OSError, IndexError):
        return []
    return [int(first), *descendants(int(first))]


def sample(service: Service, requests: int) -> dict[str, float]:
    """Memory now: of the service, and of its database."""
    database = database_processes(service.data)
    return {
        "requests": requests,
        "resident_mb": megabytes(service.pid, "VmRSS"),
        "database_mb": sum(megabytes(pid, "Pss", "smaps_rollup") for pid in database),
    }


def ask_all(
    service: Service, questions: Sequence[str], requests: int, every: int
) -> tuple[list[dict[str, float]], list[float]]:
    """Samples of memory, and the seconds of each request."""
    from rich.progress import track

    samples, seconds = [sample(service, 0)], []
    for number in track(range(1, requests + 1), description="Asking"):
        question = questions[number % len(questions)]
        body = {"question": f"{question} (inquiry {number} of file {7_919 * number})"}
        started = time.perf_counter()
        service.send("POST", "/ask", {**body, "collection": "bench"})
        seconds.append(time.perf_counter() - started)
        if number % every == 0:
            samples.append(sample(service, number))
    return samples, seconds


def ingest(service: Service, material: Material) -> int:
    """Upload every file; the number of documents that entered."""
    entered = 0
    for file in material.files:
        kind = f'form-data; name="file"; filename="{file.source}"'
        boundary = "veilrag-bench-boundary"
        parts = [
            f"--{boundary}\r\nContent-Disposition: {kind}\r\n\r\n".encode() + file.read(MOST_BYTES),
            f"--{boundary}\r\nContent-Disposition: form-data; "
            'name="collection"\r\n\r\nbench'.encode(),
            f"--{boundary}--\r\n".encode(),
        ]
        headers = {"Content-Type": f"multipart/form-data; boundary={boundary}"}
        service.connection.request("POST", "/documents", b"\r\n".join(parts), headers)
        answer = service.connection.getresponse()
        answer.read()
        entered += answer.status == 201
    return entered


def run(options: argparse.Namespace) -> dict[str, Any]:
    """Serve, ingest, ask, sample; the figures as JSON."""
    with (
        tempfile.TemporaryDirectory(prefix="veilrag-bench-") as folder,
        open_material(options.data, options.questions) as material,
        serve(Path(folder)) as service,
    ):
        entered = ingest(service, material)
        samples, seconds = ask_all(service, material.questions, options.requests, options.every)
        peak = megabytes(service.pid, "VmHWM")
    return figures(samples, seconds, peak, service.ready_seconds, entered)


def figures(
    samples: Sequence[Mapping[str, float]],
    seconds: Sequence[float],
    peak: float,
    ready: float,
    documents: int,
) -> dict[str, Any]:
    """Everything that was measured, and which targets are met."""
    settled = [row for row in samples if row["requests"] >= SETTLED]
    first = settled[0]["resident_mb"] if settled else None
    last = samples[-1]["resident_mb"]
    growth = slope([r["requests"] / 100 for r in settled], [r["resident_mb"] for r in settled])
    targets = {
        "ready_15_s": ready <= READY_SECONDS,
        "resident_1200_mb": last <= MOST_MEGABYTES,
        "flat_from_200": len(settled) > 1 and last <= (first or 0.0) * (1 + FLAT),
    }
    return {
        "benchmark": "memory",
        "documents": documents,
        "requests": samples[-1]["requests"],
        "ready_seconds": ready,
        "resident_mb_at_200": first,
        "resident_mb_at_end": last,
        "resident_mb_peak": peak,
        "mb_per_100_requests_from_200": growth,
        "milliseconds": {
            "median": 1_000 * (median(seconds) or 0.0),
            "p95": 1_000 * (percentile(seconds, 95) or 0.0),
        },
        "samples": [dict(row) for row in samples],
        "targets": targets,
        "met": all(targets.values()),
        "machine": machine(),
    }


def show(figures: Mapping[str, Any]) -> None:
    """The figures as lines."""
    print(f"ready after {figures['ready_seconds']:.1f} s")
    for row in figures["samples"]:
        print(
            f"{row['requests']:6.0f} requests: {row['resident_mb']:7.1f} MB resident, "
            f"{row['database_mb']:6.1f} MB the database"
        )
    growth, first = figures["mb_per_100_requests_from_200"], figures["resident_mb_at_200"]
    print(f"end: {figures['resident_mb_at_end']:.1f} MB, peak {figures['resident_mb_peak']:.1f} MB")
    if growth is not None:
        print(f"at 200: {first:.1f} MB, then {growth:+.2f} MB for each 100 requests")
    took = figures["milliseconds"]
    print(f"one request: median {took['median']:.0f} ms, p95 {took['p95']:.0f} ms")
    for name, met in figures["targets"].items():
        print(f"{name}: {'met' if met else 'missed'}")
