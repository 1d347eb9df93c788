"""What a review got through the boundary, each widened to its kind."""

from __future__ import annotations

import base64

import pytest

from rag.privacy.allocation import MemoryAllocator
from rag.privacy.forms import FormHasher, aliases_of
from rag.privacy.policy import load_policy
from rag.privacy.protect import Piece
from rag.privacy.scope import Scope
from rag.testing.fakes import NameDetector
from rag.types import Alias, EntityType, Span

HASHER = FormHasher(b"k" * 32)
DOCUMENT = "The shed was let to Ms Runa Tveitan. Grace Tanner pays for the pier."


class Index:
    """The forms of one document, as the store knows them."""

    def __init__(self, aliases: list[Alias]) -> None:
        self._aliases = aliases

    async def known_first(self, first: list[int]) -> set[int]:
        return {alias.first for alias in self._aliases} & set(first)

    async def known_forms(self, form: list[int]) -> list[Alias]:
        return [alias for alias in self._aliases if alias.form in set(form)]


def spans_of(text: str, *names: str) -> tuple[Span, ...]:
    places = [(text.index(name), name) for name in names]
    return tuple(Span(at, at + len(name), EntityType.PERSON) for at, name in sorted(places))


def scope() -> Scope:
    """A scope whose collection holds the document; it has seen nothing yet itself."""
    known = aliases_of(spans_of(DOCUMENT, "Runa Tveitan", "Grace Tanner"), DOCUMENT, HASHER)
    return Scope(
        policy=load_policy("default"),
        detector=NameDetector([]),
        aliases=Index(known),
        allocator=MemoryAllocator(),
        hasher=HASHER,
        detect_timeout=5.0,
    )


@pytest.mark.parametrize(
    "question",
    [
        "What does GRACE TANNER pay?",
        "what does grace tanner pay?",
        "The bill of Tanner is due.",
        "who are the tveitans?",
        "The Tveitans' shed?",
        "shed of Runa%2BTveitan",
        "shed of " + base64.b64encode(b"Runa Tveitan").decode(),
        "shed of &#82;una &#84;veitan",
        "Is it spelled T-v-e-i-t-a-n?",
        "Is it spelled T.V.E.I.T.A.N.?",
    ],
)
async def test_a_question_does_not_give_away_whom_a_document_names(question: str) -> None:
    """Before anything was retrieved: capitals, plurals, encodings, letter by letter."""
    one = scope()
    [protected] = await one.protect([Piece(question)])
    assert "PERSON_" in protected or "ID_" in protected
    assert not {"tveitan", "tanner"} & set(protected.casefold().replace("'", " ").split())
    assert one.restore(protected).text == question


@pytest.mark.parametrize("question", ["He is a tanner by trade.", "Thank God for his grace."])
async def test_a_word_that_somebody_is_called_stays_a_word(question: str) -> None:
    """Small letters, nothing that speaks for a name."""
    [protected] = await scope().protect([Piece(question)])
    assert protected == question


@pytest.mark.parametrize(
    "line",
    [
        "label: =52una Tvei=\ntan",
        "dump: " + " ".join(f"{byte:02x}" for byte in b"Runa Tveitan"),
        "the sign says T. V. E. I. T. A. N.",
        "codes [84,118,101,105,116,97,110]",
    ],
)
async def test_whatever_the_guard_would_see_is_hidden_before(line: str) -> None:
    """A document that spells a name in some odd way costs that line, not every question."""
    text = f"{DOCUMENT}\n{line}\nThe key hangs by the door."
    one = scope()
    piece = Piece(text, spans_of(text, "Runa Tveitan", "Grace Tanner"))
    [protected] = await one.protect([piece])
    assert not one.guard().sees(protected)
    assert "The key hangs by the door." in protected
    assert one.restore(protected).text == text


async def test_constants_of_a_request_are_no_originals() -> None:
    """Somebody's password may be "v1" or "completions": the path is not refused for it."""
    text = "login: completions, password: application/json"
    spans = tuple(
        Span(text.index(w), text.index(w) + len(w), EntityType.CREDENTIAL)
        for w in ("completions", "application/json")
    )
    one = scope()
    [protected] = await one.protect([Piece(text, spans)])
    body = b'{"model": "m", "messages": [{"role": "user", "content": "hello"}]}'
    one.guard().check(
        "POST",
        "https://models.example/v1/chat/completions",
        [("content-type", "application/json"), ("accept", "application/json")],
        body,
    )
    assert "completions" not in protected


async def test_titles_outside_of_the_spans_tell_two_people_apart() -> None:
    """The detector leaves titles outside: "Mr" and "Mrs" of one surname are two all the same."""
    text = "Mrs Solum signed. Mr Solum did not sign. Mrs Solum paid."
    first = text.index("Solum")
    spans = tuple(
        Span(at, at + 5, EntityType.PERSON)
        for at in (first, text.index("Solum", 20), text.rindex("Solum"))
    )
    one = scope()
    [protected] = await one.protect([Piece(text, spans)])
    words = protected.replace(".", "").split()
    wife, husband, again = words[1], words[4], words[9]
    assert wife == again != husband
    assert one.restore(protected).text == text
