"""I1 over real texts: 500 random scopes of five documents, in which names repeat.

Each scope is a question that names a person of its documents (in one of four spellings,
and never marked: the alias index alone knows it) and five documents with their gold marks,
joined into a prompt as it would leave. The guard must let it pass, and an independent
checker must find no person in it.

What the checker counts: every text that is marked as a person, and every word of such a
text that is a name for certain, must not stand in what leaves, on word boundaries and with
case folded. A *weak* word, that is one which is also an English word, a country or a big
city, a particle or shorter than four letters ("May", "Washington", "de", "Kim"), is not
counted by itself, unless it is a whole mark: then it may stand, written just so, at most
as often as in the sources outside of the marks.
"""

from __future__ import annotations

import json
import random
import re
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pytest

from rag.errors import BoundaryRefused
from rag.privacy.forms import FormHasher, aliases_of
from rag.privacy.lexicon import is_common_word, is_place, is_title, words
from rag.privacy.policy import load_policy
from rag.privacy.protect import Piece
from rag.privacy.scope import Scope
from rag.types import Alias, EntityType, Span

SCOPES = 500
HASHER = FormHasher(b"redocred")
SYSTEM = "Answer only from the context. Copy tokens such as [PERSON_1_x1x] exactly. Cite by number."
TYPES = {
    "PER": EntityType.PERSON,
    "LOC": EntityType.PLACE,
    "ORG": EntityType.ORGANISATION,
    "TIME": EntityType.DATE,
}
PARTICLES = words("van von der den de del della di da das do dos du la le el al bin ibn née the of")
SPELLINGS = (str, str.lower, str.upper, lambda name: name.split()[-1])


class Aliases:
    """What ingestion would have stored for five documents."""

    def __init__(self, documents: Iterable[list[Alias]]) -> None:
        self.aliases = [alias for aliases in documents for alias in aliases]
        self.first = {alias.first for alias in self.aliases}

    async def known_first(self, first: Sequence[int]) -> set[int]:
        return self.first & set(first)

    async def known_forms(self, form: Sequence[int]) -> list[Alias]:
        wanted = set(form)
        return [alias for alias in self.aliases if alias.form in wanted]


class Numbers:
    def __init__(self) -> None:
        self.last: Counter[str] = Counter()

    async def allocate(self, type: str, count: int) -> list[int]:
        self.last[type] += count
        return list(range(self.last[type] - count + 1, self.last[type] + 1))


class Unused:
    version = "none"

    def detect(self, text: str) -> list[Span]:
        raise AssertionError("stored spans are not detected again")


def _documents(folder: Path) -> list[dict[str, Any]]:
    lines = (folder / "pii" / "redocred_dev.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


def _piece(document: dict[str, Any]) -> Piece:
    spans = sorted(
        Span(mark["start"], mark["end"], TYPES[mark["type"]])
        for mark in document["spans"]
        if mark["type"] in TYPES
    )
    return Piece(document["text"], tuple(spans))


def _people(documents: Sequence[dict[str, Any]]) -> list[str]:
    return sorted({m["text"] for d in documents for m in d["spans"] if m["type"] == "PER"})


async def _leaving(
    documents: Sequence[dict[str, Any]], question: str, known: dict[str, list[Alias]]
) -> tuple[Scope, bytes, list[str]]:
    pieces = [_piece(document) for document in documents]
    for document, piece in zip(documents, pieces, strict=True):
        if document["id"] not in known:
            known[document["id"]] = aliases_of(piece.spans, piece.text, HASHER)
    aliases = Aliases(known[document["id"]] for document in documents)
    scope = Scope(
        policy=load_policy("default"),
        detector=Unused(),
        aliases=aliases,
        allocator=Numbers(),
        hasher=HASHER,
        detect_timeout=5,
    )
    first, *_ = await scope.protect([Piece(question)])
    protected = await scope.protect([Piece(question), *pieces])
    context = "\n".join(f"[{n}] {text}" for n, text in enumerate(protected[1:], 1))
    messages = [
        {"role": "system", "content": SYSTEM},
        {"role": "user", "content": f"Context:\n{context}\n\nQuestion: {protected[0]}"},
    ]
    body = json.dumps({"model": "small-1", "messages": messages}).encode()
    return scope, body, [first, *protected]


# --- the independent checker -------------------------------------------------------------


def _certain(word: str) -> bool:
    weak = len(word) < 4 or word.casefold() in PARTICLES or is_title(word)
    return not (weak or is_common_word(word) or is_place(word))


def _stands(form: str, text: str) -> int:
    pattern = r"\s+".join(map(re.escape, form.split()))
    return len(re.findall(rf"(?<!\w){pattern}(?!\w)", text))


def _leaks(documents: Sequence[dict[str, Any]], texts: Sequence[str], question: str) -> list[str]:
    out = "\n".join(texts)
    folded = out.casefold()
    sources = "\n".join([*map(_outside_marks, documents), question, question])
    found = []
    for name in _people(documents):
        parts = re.findall(r"\w+", name)
        if len(parts) == 1 and not _certain(parts[0]):
            if _stands(name, out) > _stands(name, sources):
                found.append(name)
        elif all(not _certain(part) for part in parts):
            if _stands(name, out):
                found.append(name)
        elif _stands(name.casefold(), folded):
            found.append(name)
        found += [w for w in parts if _certain(w) and _stands(w.casefold(), folded)]
    return found


def _outside_marks(document: dict[str, Any]) -> str:
    text = list(document["text"])
    for mark in document["spans"]:
        if mark["type"] == "PER":
            text[mark["start"] : mark["end"]] = " " * (mark["end"] - mark["start"])
    return "".join(text)


@pytest.mark.bench_data
async def test_no_person_leaves_in_five_hundred_scopes(bench_data: Path) -> None:
    """No original leaves, and at most one honest request in a thousand is refused."""
    documents = _documents(bench_data)
    known: dict[str, list[Alias]] = {}
    draw = random.Random(2026)
    refused, leaks, took = 0, [], []
    for _ in range(SCOPES):
        chosen = draw.sample(documents, 5)
        people = _people(chosen)
        name = draw.choice(people) if people else "nobody"
        question = f"What is known about {draw.choice(SPELLINGS)(name)}?"
        start = time.perf_counter()
        scope, body, texts = await _leaving(chosen, question, known)
        leaks += _leaks(chosen, texts, question)
        try:
            scope.guard(frozenset({SYSTEM})).check(
                "POST", "https://model.example/v1/chat/completions", [], body
            )
        except BoundaryRefused:
            refused += 1
        took.append(time.perf_counter() - start)
    print(
        f"{SCOPES} scopes: {refused} refused, {len(leaks)} leaks, median {sorted(took)[250]:.3f} s"
    )
    assert leaks == []
    assert refused <= SCOPES / 1000


@pytest.mark.bench_data
def test_the_checker_sees_what_leaves_unprotected(bench_data: Path) -> None:
    """The checker finds people in nearly all of the texts as they are: it can fail."""
    documents = [d for d in _documents(bench_data)[:100] if _people([d])]
    seen = [bool(_leaks([d], [d["text"]], "")) for d in documents]
    assert sum(seen) >= 0.95 * len(seen)
