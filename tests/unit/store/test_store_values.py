"""The store's pure parts: cleaning, vectors, ids, folding, secrets, statements, errors."""

from __future__ import annotations

import os
import re
import stat
import struct
import subprocess
import sys
import time
from importlib.resources import files
from pathlib import Path

import numpy as np
import psycopg
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag.errors import DatabaseUnavailable, Misconfigured, VeilragError
from rag.settings import Settings
from rag.store.cleaning import clean, clean_metadata
from rag.store.documents import folded, heading_of
from rag.store.pool import translated
from rag.store.secrets import derive, load_secret
from rag.store.statements import descriptions, statement, statements
from rag.store.time_ordered import new_id
from rag.store.vectors import has_direction, to_binary, to_text
from rag.types import Alias, EntityType

KEY = "k" * 43


@given(st.text(st.characters(exclude_categories=())))
def test_cleaning_keeps_every_offset(text: str) -> None:
    """Same length, storable as UTF-8, no NUL, and nothing else is changed."""
    kept = clean(text)
    assert len(kept) == len(text)
    assert "\x00" not in kept.encode().decode()
    pairs = zip(text, kept, strict=True)
    assert all(a == b or a == "\x00" or "\ud800" <= a <= "\udfff" for a, b in pairs)


def test_metadata_is_cleaned_however_deep() -> None:
    """Keys and values, in lists and mappings."""
    assert clean_metadata({"a\x00": [{"b": "\x00"}, 1]}) == {"a\ufffd": [{"b": "\ufffd"}, 1]}


def test_a_vector_becomes_halfvec_bytes() -> None:
    """Dimension, a reserved zero, then big-endian half floats of the unit vector."""
    raw = to_binary(np.array([3, 4], np.float32))
    assert raw is not None
    assert struct.unpack(">hhee", raw) == (
        2,
        0,
        pytest.approx(0.6, abs=1e-3),
        pytest.approx(0.8, abs=1e-3),
    )


@pytest.mark.parametrize("value", [0.0, np.nan, np.inf, -np.inf])
def test_what_has_no_direction_becomes_null(value: float) -> None:
    """Zero, NaN and infinite vectors are stored as NULL."""
    vector = np.full(3, value, np.float32)
    assert not has_direction(vector)
    assert to_binary(vector) is None


@pytest.mark.parametrize("value", [1e-30, 1e30])
def test_lengths_do_not_matter(value: float) -> None:
    """Tiny and huge vectors neither vanish nor overflow half precision."""
    assert to_text(np.full(4, value, np.float32)) == "[0.5,0.5,0.5,0.5]"


def test_ids_grow_with_time() -> None:
    """A later id is greater, and each is a version 7 UUID."""
    first = new_id()
    time.sleep(0.003)
    second = new_id()
    assert first < second
    assert (first.version, second.version) == (7, 7)


def test_folding_keeps_one_row_a_form_and_type() -> None:
    """Duplicates become one, strong if any is; types stay apart."""
    weak, strong = (Alias(1, 1, 1, EntityType.PERSON, weak=w) for w in (True, False))
    place = Alias(1, 1, 1, EntityType.PLACE, weak=True)
    assert folded([weak, strong, weak, place]) == [strong, place]


def test_a_heading_path_reads_outermost_first() -> None:
    """Joined by the separator that the spans' offsets count with."""
    assert heading_of("ab cd", ((0, 2), (3, 5))) == "ab > cd"


def test_every_statement_is_described() -> None:
    """Each has a name, a description and a body; none is defined twice."""
    text = files("rag.store").joinpath("queries.sql").read_text()
    names = re.findall(r"^-- ([a-z_]+) --$", text, re.M)
    assert len(names) == len(set(names)) == len(statements())
    assert all(descriptions()[name] and statements()[name] for name in names)


def test_every_statement_is_used() -> None:
    """No statement is kept that nothing calls."""
    source = "".join(path.read_text() for path in Path(str(files("rag.store"))).glob("*.py"))
    unused = [name for name in statements() if f'"{name}"' not in source]
    assert unused == []


def test_no_sql_is_built_from_text() -> None:
    """Values go in as parameters: no statement has a place for formatting."""
    for name in statements():
        assert not re.search(r"%s|\{(?!\}')", statement(name))


# -- secrets -------------------------------------------------------------------------------


def settings(tmp_path: Path, **values: object) -> Settings:
    given = {"_env_file": None, "data_dir": tmp_path / "data", "database_url": None, **values}
    return Settings(**given)  # type: ignore[arg-type]


def test_the_key_file_is_made_once_and_private(tmp_path: Path) -> None:
    """Mode 0600 in a 0700 folder, 32 bytes, the same at the next start."""
    first = load_secret(settings(tmp_path))
    path = tmp_path / "data" / "secret_key"
    assert len(first) == 32
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert load_secret(settings(tmp_path)) == first
    assert os.listdir(path.parent) == ["secret_key"]


def test_processes_that_make_the_key_at_once_agree(tmp_path: Path) -> None:
    """Four processes, one key."""
    program = (
        "import sys; from pathlib import Path; from rag.settings import Settings; "
        "from rag.store.secrets import load_secret; sys.stdin.readline(); "
        "print(load_secret(Settings(_env_file=None, data_dir=Path(sys.argv[1]), "
        "database_url=None, secret_key=None)).hex())"
    )
    command = [sys.executable, "-c", program, str(tmp_path / "data")]
    pipe = subprocess.PIPE
    racers = [subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) for _ in range(4)]
    assert len({racer.communicate("\n")[0] for racer in racers}) == 1


def test_a_key_that_others_may_read_is_refused(tmp_path: Path) -> None:
    """The mode is checked at every start."""
    load_secret(settings(tmp_path))
    (tmp_path / "data" / "secret_key").chmod(0o644)
    with pytest.raises(Misconfigured, match="0600"):
        load_secret(settings(tmp_path))


@pytest.mark.parametrize("value", ["x", "tiny-word", "c2hvcnQ="])
def test_a_short_key_is_refused(tmp_path: Path, value: str) -> None:
    """Fewer than 32 bytes is no key, and the message does not repeat it; empty is unset."""
    with pytest.raises(Misconfigured) as raised:
        load_secret(settings(tmp_path, secret_key=value))
    assert value == "x" or value not in raised.value.message


def test_purposes_give_different_keys() -> None:
    """A subkey tells neither the secret nor another purpose's."""
    keys = {derive(KEY.encode(), purpose) for purpose in ("aliases", "sealing", "fingerprint")}
    assert len(keys) == 3
    assert all(len(key) == 32 for key in keys)
    assert derive(KEY.encode(), "aliases") != derive(KEY.encode() + b"x", "aliases")


# -- errors --------------------------------------------------------------------------------


def all_errors() -> list[type[psycopg.Error]]:
    named = (getattr(psycopg.errors, name) for name in dir(psycopg.errors))
    return [e for e in named if isinstance(e, type) and issubclass(e, psycopg.Error)]


@pytest.mark.parametrize("kind", all_errors(), ids=lambda kind: kind.__name__)
def test_every_error_of_the_driver_becomes_ours(kind: type[psycopg.Error]) -> None:
    """Whatever psycopg raises is mapped, and no word of its text is kept."""
    error = translated(kind("Key (alias)=(Quillfeather)"))
    assert isinstance(error, VeilragError)
    assert "Quillfeather" not in repr(error)


def test_pool_timeouts_are_an_outage() -> None:
    """The pool's own errors, too."""
    from psycopg_pool import PoolTimeout

    assert isinstance(translated(PoolTimeout("x")), DatabaseUnavailable)
