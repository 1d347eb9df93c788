"""The SQL of the store: every statement named and described in ``queries.sql``, read once."""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files
from typing import LiteralString

_BLOCK = re.compile(
    r"^-- ([a-z_]+) --$\n((?:^--[^\n]*\n)*)(.*?)(?=^-- [a-z_]+ --$|\Z)", re.M | re.S
)


def statement(name: str) -> LiteralString:
    """The statement of that name. Our own text, so a literal to the type checker."""
    return statements()[name]


@cache
def statements() -> dict[str, LiteralString]:
    text = files("rag.store").joinpath("queries.sql").read_text(encoding="utf-8")
    found: dict[str, LiteralString] = {}
    for name, _, body in _BLOCK.findall(text):
        found[name] = body.strip()
    return found


def descriptions() -> dict[str, str]:
    """What each statement is for."""
    text = files("rag.store").joinpath("queries.sql").read_text(encoding="utf-8")
    return {name: about.replace("--", "").strip() for name, about, _ in _BLOCK.findall(text)}
