"""I1: what is known to the scope or to the readable collections does not leave."""

from __future__ import annotations

import asyncio
import json
import time

import pytest

from rag.errors import DetectorFailed, Unavailable
from rag.privacy.protect import Piece
from rag.types import EntityType, Span


async def test_a_name_that_no_span_marks_is_protected_by_another_piece(make_scope, mark) -> None:
    """What a chunk gives away is protected in the question too, whatever the casing."""
    scope = make_scope()
    question, chunk = await scope.protect(
        [
            Piece("where does sunniva keep THORSRUD's key?"),
            mark("The caretaker is Sunniva Thorsrud.", PERSON="Sunniva Thorsrud"),
        ]
    )
    name = chunk.split()[3].rstrip(".")
    assert question == f"where does {name} keep {name}'s key?"


@pytest.mark.parametrize(
    "question",
    [
        "who pays thorsrud?",
        "who pays Sunniva Thorsrud?",
        "who pays T\u200bhorsrud?",
        "S. Thorsrud?",
    ],
)
async def test_a_name_known_to_a_collection_does_not_leave(
    make_scope, mark, index, question
) -> None:
    """Before the first call only the alias index knows the name; that is enough."""
    stored = mark("Sunniva Thorsrud lives in flat 4.", PERSON="Sunniva Thorsrud")
    scope = make_scope(index(stored))
    [protected] = await scope.protect([Piece(question)])
    assert "PERSON_1" in protected
    assert scope.restore(protected).text == question


@pytest.mark.parametrize(
    ("stored", "type", "question"),
    [
        ("07700 900142", "PHONE", "whose number is +44 7700 900142?"),
        ("+44 7700 900142", "PHONE", "whose number is 07700900142?"),
        ("5105 1051 0510 5100", "CARD", "is 5105-1051-0510-5100 blocked?"),
        ("DE51 0000 0000 0123 4567 89", "BANK_ACCOUNT", "is de51000000000123456789 hers?"),
        ("egil.t-k_9@mail.example.org", "EMAIL", "who is EGIL.T-K_9@mail.example.org?"),
        ("48 Heather Lane, Leeds", "ADDRESS", "who lives at 48 heather lane?"),
    ],
)
async def test_a_value_known_to_a_collection_does_not_leave(
    make_scope, mark, index, stored, type, question
) -> None:
    """Numbers, mail and addresses are found in the index in any spelling."""
    scope = make_scope(index(mark(f"Note {stored} here", **{type: stored})))
    [protected] = await scope.protect([Piece(question)])
    assert "_1_" in protected
    assert scope.restore(protected).text == question


async def test_the_index_is_asked_in_two_stages_once_a_call(make_scope, mark, index) -> None:
    """One query for first words and one for groups, over all pieces."""
    aliases = index(mark("Sunniva Thorsrud", PERSON="Sunniva Thorsrud"))
    scope = make_scope(aliases)
    await scope.protect([Piece("ask sunniva"), Piece("ask thorsrud"), Piece("ask nobody")])
    assert aliases.queries == ["first", "forms"]


EVIDENCE = [
    ("In May she left.", "May", False, "a month behind a preposition"),
    ("May I go?", "May", False, "a word that begins a sentence"),
    ("It rains on 5 May here.", "May", False, "a month beside a number"),
    ("I may go.", "may", False, "a word in lower case"),
    ("Then May called.", "May", True, "a capital in the sentence"),
    ("Ms May left.", "May", True, "a title"),
    ("MAY CONTAIN NUTS", "MAY", False, "a line of capitals"),
    ("The report is May's.", "May", True, "a possessive in the sentence"),
]


@pytest.mark.parametrize(("text", "word", "hidden", "why"), EVIDENCE, ids=[e[3] for e in EVIDENCE])
async def test_a_word_that_is_also_a_name_needs_evidence(
    make_scope, mark, text, word, hidden, why
) -> None:
    """With Theresa May in the scope, May is her only where the place says so."""
    scope = make_scope()
    known = mark("Theresa May signed.", PERSON="Theresa May")
    [protected, _] = await scope.protect([Piece(text), known])
    assert (word not in protected) is hidden


async def test_a_place_called_like_a_person_stays_a_place(make_scope, mark) -> None:
    """Washington the city stays where a span or a preposition says so; the man does not."""
    text = "Denzel Washington flew to Washington. Then Washington spoke; Washington has trains."
    at = text.rindex("Washington")
    piece = mark(text, PERSON="Denzel Washington")
    piece = Piece(text, (*piece.spans, Span(at, at + 10, EntityType.PLACE)))
    scope = make_scope()
    [protected] = await scope.protect([piece])
    name = protected.split()[0]
    assert protected == f"{name} flew to Washington. Then {name} spoke; Washington has trains."


async def test_a_weak_form_from_another_document_needs_a_title(make_scope, mark, index) -> None:
    """The index alone does not make every May a person."""
    aliases = index(mark("Theresa May signed.", PERSON="Theresa May"))
    scope = make_scope(aliases)
    [month, person] = await scope.protect([Piece("Who left in May?"), Piece("Who saw Mrs May?")])
    assert month == "Who left in May?"
    assert "May" not in person


@pytest.mark.parametrize("name", ["Olsrud", "Brandvold"])
async def test_a_surname_taken_for_a_company_is_still_protected(make_scope, mark, name) -> None:
    """A detector that calls a known surname an organisation does not open the boundary."""
    text = f"Egil {name} signed. {name} paid."
    at = text.rindex(name)
    spans = (
        *mark(text, PERSON=f"Egil {name}").spans,
        Span(at, at + len(name), EntityType.ORGANISATION),
    )
    [protected] = await make_scope().protect([Piece(text, spans)])
    assert name not in protected


async def test_a_possessive_stays_text(make_scope, mark) -> None:
    """The suffix is not part of the name."""
    text = "Sorrelin's flat, Sorrelin’s car, the Sorrelins' garage; Sorrelin agreed."
    scope = make_scope()
    [protected] = await scope.protect([mark(text, PERSON="Sorrelin's")])
    name = protected.split("'")[0]
    assert protected == f"{name}'s flat, {name}’s car, the {name}s' garage; {name} agreed."
    assert scope.restore(protected).text == text


@pytest.mark.parametrize(
    "disguise",
    [
        "token c3Vubml2YS50QGV4YW1wbGUub3Jn end",
        "https://portal.example.org/u?mail=sunniva.t%40example.org&x=1 end",
        "mail sunniva.t&#64;example.org end",
        "mail \\u0073unniva.t@example.org end",
        "bytes 73756e6e6976612e74406578616d706c652e6f7267 end",
    ],
)
async def test_a_known_value_in_a_disguise_is_replaced(make_scope, mark, disguise) -> None:
    """What the guard would refuse in a source is replaced whole and comes back whole."""
    scope = make_scope()
    known = mark("Write to sunniva.t@example.org please.", EMAIL="sunniva.t@example.org")
    [protected, other] = await scope.protect([Piece(disguise), known])
    assert protected != disguise
    assert protected.endswith(" end")
    body = json.dumps({"messages": [protected, other]}).encode()
    scope.guard().check("POST", "https://model.example/v1", [], body)
    assert scope.restore(protected).text == disguise


async def test_neighbours_are_not_merged(make_scope, mark) -> None:
    """Three originals side by side are three placeholders."""
    people = ["Alva Fjordheim", "Bram Holtvik", "Chiara Nunesco"]
    scope = make_scope()
    [protected] = await scope.protect([mark(" ".join(people), PERSON=people)])
    assert len(set(protected.split())) == 3
    assert scope.restore(protected).text == " ".join(people)


async def test_overlapping_spans_leave_nothing_in_sight(make_scope) -> None:
    """Two spans that overlap become one original."""
    text = "card 4151321762436448.example.org declined"
    spans = (
        Span(5, 21, EntityType.CARD),
        Span(5, 33, EntityType.EMAIL),
        Span(17, 33, EntityType.URL),
    )
    scope = make_scope()
    [protected] = await scope.protect([Piece(text, spans)])
    assert protected.startswith("card [")
    assert protected.endswith("] declined")
    assert scope.restore(protected).text == text


async def test_the_policy_decides_what_is_protected(make_scope, mark) -> None:
    """Places stay by default and go under the strict policy."""
    piece = mark("Sunniva Thorsrud moved to Leeds.", PERSON="Sunniva Thorsrud", PLACE="Leeds")
    [default] = await make_scope().protect([piece])
    [strict] = await make_scope(policy="strict").protect([piece])
    assert "Leeds" in default
    assert "Leeds" not in strict


async def test_a_slow_detector_stops_the_request(make_scope) -> None:
    """I2: no answer in time is an error, never the raw text."""

    class Slow:
        version = "slow"

        def detect(self, text: str) -> list[Span]:
            time.sleep(0.3)
            return []

    with pytest.raises(DetectorFailed):
        await make_scope(detector=Slow(), detect_timeout=0.05).detect("Sunniva Thorsrud")


async def test_a_detector_that_points_outside_stops_the_request(make_scope) -> None:
    """I2: spans that do not fit the text are a failure."""

    class Wrong:
        version = "wrong"

        def detect(self, text: str) -> list[Span]:
            return [Span(0, len(text) + 1, EntityType.PERSON)]

    with pytest.raises(DetectorFailed):
        await make_scope(detector=Wrong()).detect("Sunniva")


async def test_an_allocator_that_repeats_a_number_stops_the_request(make_scope, mark) -> None:
    """Two subjects never share a placeholder, even if the numbers come twice."""

    class Stuck:
        async def allocate(self, type: str, count: int) -> list[int]:
            return [1] * count

    scope = make_scope()
    scope._subjects._allocator = Stuck()
    people = ["Sunniva Thorsrud", "Egil Brandvold"]
    with pytest.raises(Unavailable):
        await scope.protect([mark(" and ".join(people), PERSON=people)])


async def test_concurrent_calls_share_one_mapping(make_scope, mark) -> None:
    """Twenty pieces at once give one person one placeholder."""
    scope = make_scope()
    piece = mark("Sunniva Thorsrud pays.", PERSON="Sunniva Thorsrud")
    out = await asyncio.gather(*(scope.protect([piece]) for _ in range(20)))
    assert len({text for [text] in out}) == 1


async def test_scopes_know_nothing_of_each_other(make_scope, mark) -> None:
    """I8: another scope restores nothing, and its placeholders differ by the nonce."""
    piece = mark("Sunniva Thorsrud pays.", PERSON="Sunniva Thorsrud")
    one, other = make_scope(nonce="k7q"), make_scope(nonce="b4x")
    [protected] = await one.protect([piece])
    [others] = await other.protect([piece])
    assert protected != others
    restored = other.restore(protected)
    assert restored.text == protected
    assert restored.unresolved == ("[PERSON_1_k7q]",)
    assert not other.knows(protected)


async def test_views_of_the_mapping_are_masked(make_scope, mark) -> None:
    """I6: what the state may hold shows first letter and length; no repr shows more."""
    scope = make_scope(nonce="k7q")
    await scope.protect([mark("Sunniva Thorsrud pays.", PERSON="Sunniva Thorsrud")])
    assert dict(scope.masked()) == {"[PERSON_1_k7q]": "S••• (16)"}
    shown = repr((scope, scope.masked(), list(scope._subjects), scope.guard(), scope._places))
    assert "unniva" not in shown
    assert "horsrud" not in shown


async def test_a_remote_embedder_gets_type_words(make_scope, mark) -> None:
    """I5: text for a remote embedder says "a person", without a number."""
    scope = make_scope()
    text = "Sunniva Thorsrud, 07700 900142"
    [protected] = await scope.protect([mark(text, PERSON="Sunniva Thorsrud", PHONE="07700 900142")])
    assert scope.type_words(protected) == "a person, a phone number"
