"""The tree of errors: drawn, complete, and mapped to HTTP."""

from __future__ import annotations

import inspect
import re

import pytest

from rag import errors
from rag.errors import VeilragError

CLASSES = [
    value
    for _, value in inspect.getmembers(errors, inspect.isclass)
    if issubclass(value, VeilragError)
]
LINE = re.compile(r"^(?P<tree>[ │├└─]*)(?P<name>[A-Z]\w+) +(?P<status>\d{3}) (?P<code>\w+)")


def drawn() -> dict[str, tuple[int, str, str]]:
    """Name -> (status, code, name of the parent) as the module's docstring draws it."""
    found: dict[str, tuple[int, str, str]] = {}
    above: list[tuple[int, str]] = []
    for line in (errors.__doc__ or "").splitlines():
        match = LINE.match(line)
        if match is None:
            continue
        depth = len(match["tree"])
        while above and above[-1][0] >= depth:
            above.pop()
        found[match["name"]] = (int(match["status"]), match["code"], above[-1][1] if above else "")
        above.append((depth, match["name"]))
    return found


DRAWN = drawn()


def test_every_error_is_drawn() -> None:
    """The docstring's tree holds every class, and no class that is not there."""
    assert set(DRAWN) == {kind.__name__ for kind in CLASSES}


@pytest.mark.parametrize("kind", CLASSES, ids=lambda kind: kind.__name__)
def test_an_error_is_as_drawn(kind: type[VeilragError]) -> None:
    """Status, code and parent in the tree are those of the class."""
    parent = kind.__mro__[1].__name__ if kind is not VeilragError else ""
    assert DRAWN[kind.__name__] == (kind.status, kind.code, parent)


@pytest.mark.parametrize("kind", CLASSES, ids=lambda kind: kind.__name__)
def test_an_error_speaks_without_being_told_what(kind: type[VeilragError]) -> None:
    """Raised bare, it has a message of its own: one sentence."""
    assert re.fullmatch(r"[A-Z].*\.|Base of all.*", kind().message)


def test_a_code_belongs_to_one_kind() -> None:
    """A client can tell the kinds apart by their code."""
    codes = [kind.code for kind in CLASSES]
    assert len(codes) == len(set(codes))


def test_a_status_is_one_of_the_contract() -> None:
    """No error has a status that the HTTP contract does not name."""
    contract = {401, 403, 404, 409, 413, 422, 429, 500, 502, 503}
    assert {kind.status for kind in CLASSES} <= contract
