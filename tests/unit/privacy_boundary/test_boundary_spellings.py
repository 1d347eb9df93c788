"""I1: spellings of a known name that detectors miss: log-ins, broken and emphasised words."""

from __future__ import annotations

import json

import pytest

from rag.errors import BoundaryRefused
from rag.privacy.forms import forms_of, read_keys, read_words
from rag.privacy.protect import Piece
from rag.types import EntityType, Span

SPELLED = [
    ("Sean O'Sullivan-Burke", "OSullivan"),
    ("Sean O'Sullivan-Burke", "osullivan"),
    ("Sean O'Sullivan-Burke", "OSullivan-Burke"),
    ("Sean O'Sullivan-Burke", "osullivanburke"),
    ("Fergal O'Toole", "OToole"),
    ("Fergal O'Toole", "fotoole"),
    ("Fergal O’Toole", "O'TOOLE"),
    ("Nadim Al-Khateeb", "alkhateeb"),
    ("Finlay Quarrington", "FQuarrington"),
    ("Finlay Quarrington", "fquarrington1"),
    ("Finlay Quarrington", "quarringtonf"),
    ("Finlay Quarrington", "f.quarrington"),
    ("Finlay Quarrington", "quarrington.f"),
    ("Finlay Quarrington", "quarrington_f99"),
    ("Finlay Quarrington", "finlayquarrington2024"),
    ("Finlay Quarrington", "QuarringtonFinlay"),
    ("Sean O'Sullivan", "seanosullivan"),
    ("Pia-Lotte Kvistad", "pialotte"),
    ("Oda Kvistad", "kvistad2"),
    ("Oda Kvistad", "kvistad_2"),
    ("Sølve Kvistad", "skvistad7"),
    ("Arne Thorvaldsenquist", "Thorvaldsen-\nquist"),
    ("Oda Kvistad", "Kvis-\ntad"),
    ("Oda Kvistad", "KVIS-\r\n  TAD"),
    ("Oda Kvistad", "Kvis\u2010\ntad"),
    ("Oda Kvistad", "Oda Kvis-\ntad"),
    ("Oda Kvistad", "Kvistad-\nbased"),
    ("Agnes Brackenbury", "**Bracken**bury"),
    ("Agnes Brackenbury", "Brack*en*bury"),
    ("Agnes Brackenbury", "`Bracken`bury"),
    ("Grace Baker", "grace baker"),
    ("Grace Baker", "GRACE BAKER"),
    ("Grace Baker", "grace_baker"),
    ("Grace Ann Baker", "grace baker"),
    ("May Day", "may day"),
    ("Florence London", "florence-london"),
]


def body(*texts: str) -> bytes:
    return json.dumps({"messages": [{"content": text} for text in texts]}).encode()


@pytest.mark.parametrize(("name", "written"), SPELLED)
async def test_a_known_name_does_not_leave_so_spelled(make_scope, mark, name, written) -> None:
    """Protecting hides it, and what is left spells no part of it."""
    scope = make_scope()
    known = mark(f"The tenant is {name}.", PERSON=name)
    text = f"log: user {written} came in"
    [protected, _] = await scope.protect([Piece(text), known])
    left = protected.replace("log: user", "").replace("came in", "").replace("based", "")
    assert "[PERSON_" in left
    assert not [word for word in read_keys(left) if word.isalpha() and len(word) > 4][1:]
    assert scope.restore(protected).text == text


@pytest.mark.parametrize(("name", "written"), SPELLED)
async def test_the_guard_refuses_a_known_name_so_spelled(make_scope, mark, name, written) -> None:
    """What protecting would have missed does not pass."""
    scope = make_scope()
    await scope.protect([mark(f"The tenant is {name}.", PERSON=name)])
    with pytest.raises(BoundaryRefused):
        scope.guard().check("POST", "https://m.example/v1", [], body(f"log: {written} came"))


@pytest.mark.parametrize(("name", "written"), SPELLED)
async def test_the_index_knows_a_name_so_spelled(make_scope, mark, index, name, written) -> None:
    """Before the first call only the alias index knows the name."""
    scope = make_scope(index(mark(f"The tenant is {name}.", PERSON=name)))
    [protected] = await scope.protect([Piece(f"log: user {written} came in")])
    assert "[PERSON_" in protected


WEAK_HANDLES = [("Ann Lee", "alee"), ("Tom Baker", "tbaker"), ("Bo Ridges", "bridges")]


@pytest.mark.parametrize(("name", "key"), WEAK_HANDLES)
def test_a_handle_of_a_short_or_common_surname_is_weak(name: str, key: str) -> None:
    """An initial joined to a word, or what is a word itself, proves nothing."""
    forms = {form.key: form.weak for form in forms_of(EntityType.PERSON, name)}
    assert forms[key]


ORDINARY = [
    ("Tom Baker", "the baker saw tbaker tables"),
    ("Grace Baker", "with grace the baker left"),
    ("May Day", "it may be any day, in May"),
    ("Adam Long", "a long way"),
    ("Bo Ridges", "two bridges"),
]


@pytest.mark.parametrize(("name", "text"), ORDINARY)
async def test_ordinary_words_stay(make_scope, mark, name, text) -> None:
    """More forms of a name hide no sentence that has nothing to do with it."""
    scope = make_scope()
    [protected, _] = await scope.protect([Piece(text), mark(f"Ask {name}.", PERSON=name)])
    assert protected == text


def test_digits_at_the_end_of_a_name_are_a_word_of_their_own() -> None:
    """Log-ins are numbered; codes and common words stay as they are."""
    assert read_keys("kvistad2 may24 section12 ab1234 oda7 k9 kvistad20245") == [
        *("kvistad", "2", "may24", "section12", "ab1234", "oda7", "k9", "kvistad20245")
    ]


def test_a_broken_word_is_read_both_ways() -> None:
    """Whole and as its halves, for it may be a compound; each with its own place."""
    text = "Ask Kvis-\ntad or Kvistad-\nbased men"
    read = read_words(text)
    found = [text[s:e] for s, e in zip(read.starts, read.ends, strict=True)]
    assert read.keys == [
        *("ask", "kvistad", "kvis", "tad", "or", "kvistadbased", "kvistad", "based", "men")
    ]
    assert found[1:4] == ["Kvis-\ntad", "Kvis", "tad"]
    assert read.starts == sorted(read.starts)


@pytest.mark.parametrize("thing", ["PLACE", "ORGANISATION"])
async def test_a_place_is_hidden_in_any_casing_where_places_are_hidden(
    make_scope, mark, thing
) -> None:
    """Under the strict policy a city's name is strong; only a common word needs evidence."""
    scope = make_scope(policy="strict")
    known = mark("The flat is in Ljubljana.", **{thing: "Ljubljana"})
    [protected, _] = await scope.protect([Piece("who lives in ljubljana?"), known])
    assert "ljubljana" not in protected
    forms = {form.key: form.weak for form in forms_of(EntityType.PLACE, "Reading")}
    assert forms == {"reading": True}


async def test_a_full_name_is_strong_though_a_firm_is_called_so(make_scope, index) -> None:
    """A document that names a firm like a person does not open the boundary to the person."""
    text = "Grace Baker signed for Grace Baker."
    piece = Piece(text, (Span(0, 11, EntityType.PERSON), Span(23, 34, EntityType.ORGANISATION)))
    scope = make_scope(index(piece))
    [protected] = await scope.protect([Piece('{"name": "grace baker"}')])
    assert "grace" not in protected
