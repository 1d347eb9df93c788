"""An ingestion that is killed leaves whole documents only, and goes on where it stopped."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import psycopg
import pytest

from rag.testing.database import Server, postgres_server

FILES, KILLS = 300, 20
SCRIPT = Path(__file__).parent / "run_ingestion.py"
ROWS = {
    "documents": (
        "select source, content_hash, content, metadata::text, language, detector, chunk_count, "
        "entities::text, file_hash, origin from veilrag.documents order by source"
    ),
    "chunks": (
        "select d.source, c.n, c.start, c.stop, c.heading, c.headings, c.page, c.text, c.about, "
        "c.embedding::text, c.tsv::text from veilrag.chunks c join veilrag.documents d "
        "on d.id = c.document order by d.source, c.n"
    ),
    "spans": (
        "select d.source, s.start, s.stop, s.type, s.score from veilrag.spans s "
        "join veilrag.documents d on d.id = s.document order by d.source, s.start, s.stop"
    ),
    "aliases": (
        "select d.source, a.first, a.form, a.words, a.type, a.weak from veilrag.aliases a "
        "join veilrag.documents d on d.id = a.document order by d.source, a.form, a.type"
    ),
}
HALF_WRITTEN = """
select count(*) from veilrag.documents d
where d.chunk_count <> (select count(*) from veilrag.chunks c where c.document = d.id)
    or d.chunk_count = 0 or d.content_hash = ''
    or (select coalesce(sum(value::int), 0) from jsonb_each_text(d.entities))
        <> (select count(*) from veilrag.spans s where s.document = d.id)
"""


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with postgres_server() as running:
        yield running


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    chance = random.Random(3)
    for n in range(FILES):
        lines = chance.choices(["Ottoline Farouk has the keys.", "Bo Amadi wrote.", "Spring."], k=9)
        (tmp_path / f"n{n:03}.md").write_text(f"# Note {n}\n\n" + "\n".join(lines) + f"\n{n}\n")
    return tmp_path


def start(url: str, folder: Path) -> subprocess.Popen[str]:
    root = str(Path(__file__).parents[3])
    process = subprocess.Popen(
        [sys.executable, str(SCRIPT), url, str(folder)],
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": root},
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline().strip() == "begun"
    return process


def finish(process: subprocess.Popen[str]) -> None:
    told, _ = process.communicate(timeout=120)
    assert (process.returncode, told.split()[-1:]) == (0, ["done"])


def rows(url: str) -> dict[str, list[tuple[object, ...]]]:
    with psycopg.connect(url) as connection:
        return {name: connection.execute(query).fetchall() for name, query in ROWS.items()}


def count(url: str, query: str = "select count(*) from veilrag.documents") -> int:
    with psycopg.connect(url) as connection:
        row = connection.execute(query).fetchone()
    assert row is not None
    return int(row[0])


@pytest.mark.slow
def test_killed_at_twenty_moments_it_ends_with_the_same_rows(server: Server, folder: Path) -> None:
    """Twenty kills at random moments, then a whole run: the rows of an undisturbed one."""
    chance = random.Random(8)
    with server.database() as whole, server.database() as url:
        finish(start(whole, folder))
        reached: list[int] = []
        for n in range(KILLS):
            process = start(url, folder)
            assert process.stdout is not None
            if n % 4:  # in the midst of storing; else at any moment of the beginning
                assert process.stdout.readline().strip() == "stored"
            time.sleep(chance.uniform(0.0, 0.15 if n % 4 else 1.0))
            family = psutil.Process(process.pid).children(recursive=True)
            process.kill()
            process.wait()
            reached.append(count(url))
            assert count(url, HALF_WRITTEN) == 0
            _, alive = psutil.wait_procs(family, timeout=20)
            assert alive == []
            process.stdout.close()
        finish(start(url, folder))
        assert reached == sorted(reached), "what was stored stays"
        assert len({at for at in reached if at < FILES}) > 4, "the kills fell into the work"
        assert rows(url) == rows(whole)


def test_a_second_run_changes_no_row(server: Server, folder: Path) -> None:
    """What is unchanged is told by its bytes: not one row is written again."""
    with server.database() as url:
        finish(start(url, folder))
        stamps = "select count(distinct xmin::text) from veilrag.documents where xmin is not null"
        before = (rows(url), count(url, stamps))
        finish(start(url, folder))
        assert (rows(url), count(url, stamps)) == before
