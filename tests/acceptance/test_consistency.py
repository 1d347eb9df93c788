"""One subject, one placeholder: as the model sees it, and as the asker gets it back (I3, I4)."""

from __future__ import annotations

import re
from typing import Any

import pytest

from rag.testing.noleak import assert_no_leak, assert_seen
from rag.testing.stub import frame, question_of, say

SPELLINGS = {
    "card and phone": (
        "The card {}, again {}, in the log {}; call {} or {}.",
        ["4929 7183 0254 6111", "4929-7183-0254-6111", "4929718302546111"],
        ["+44 7700 900371", "07700 900371"],
    ),
    "account and mail": (
        "Always pay to {}, in short {}, or {}; write to {} or {}.",
        ["DE89 3704 0044 0532 0130 00", "DE89370400440532013000", "DE89 37040044 05320130 00"],
        ["o.brandeis@tidewater.example", "O.Brandeis@Tidewater.example"],
    ),
    "person": (
        "It was signed by {}, countersigned {}, filed for {}; witnesses {} and {}.",
        ["Margaret Holloway", "MARGARET HOLLOWAY", "Margaret  Holloway"],
        ["Thomas Pemberton", "Thomas Pemberton"],
    ),
}


@pytest.mark.parametrize(("text", "first", "second"), SPELLINGS.values(), ids=SPELLINGS)
def test_one_value_in_several_spellings_is_one_subject(
    service: Any, stub: Any, collection: str, between: Any, text: str, first: Any, second: Any
) -> None:
    """Spellings of one value share a placeholder, and each place gets its own spelling back."""
    document = text.format(*first, *second)
    service.add(document, collection=collection)
    answer = service.ask(
        "What does the note say about the log and the call?", collection=collection
    )
    pattern = re.escape(text).replace(r"\{\}", "(.+?)")
    *one, other, again = between(pattern, stub.answers[-1])
    assert len(set(one)) == 1
    assert other == again != one[0]
    assert_no_leak(stub, [*first, *second])
    assert document in answer["answer"]


def test_a_possessive_is_the_same_subject(
    service: Any, stub: Any, collection: str, between: Any
) -> None:
    """Possessives with either apostrophe and the bare name share a placeholder."""
    document = (
        "Margaret Holloway is a member. Holloway's barn, Holloway’s boat and Margaret's orchard "
        "are insured; Holloway agreed."
    )
    service.add(document, collection=collection)
    answer = service.ask("What does Holloway own?", collection=collection)
    pattern = (
        r"(\S+) is a member\. (\S+?)'s barn, (\S+?)’s boat and (\S+?)'s orchard .*; (\S+) agreed"
    )
    assert len(set(between(pattern, stub.answers[-1]))) == 1
    assert question_of(stub.answers[-1].prompt).startswith("What does ")
    assert between(r"; (\S+) agreed", stub.answers[-1])[0] in question_of(stub.answers[-1].prompt)
    assert_no_leak(stub, ["Holloway", "Margaret"])
    assert document in answer["answer"]


def test_a_possessive_keeps_its_suffix(service: Any, stub: Any, collection: str) -> None:
    """Away from its place a subject has its fullest form, and the suffix stays as text (I3)."""
    service.add("Margaret Holloway is a member. Holloway’s boat is insured.", collection=collection)
    stub.script.answer = frame("member. ", " is insured", "Now {} is safe.")
    answer = service.ask("What does Holloway own?", collection=collection)
    assert answer["answer"] == "Now Margaret Holloway’s boat is safe."


def test_relations_between_people_survive(service: Any, stub: Any, collection: str) -> None:
    """Different people have different placeholders, so a model can tell who owes whom."""
    document = (
        "Margaret Holloway owes Thomas Pemberton 20 euros. Thomas Pemberton owes Eleanor Ashcroft "
        "30 euros. Eleanor Ashcroft owes Margaret Holloway 5 euros."
    )
    service.add(document, collection=collection)

    def solve(prompt: str) -> str:
        [asked] = re.findall(r"Who owes (\S+)\?", question_of(prompt))
        [(debtor, _)] = [m for m in re.findall(r"(\S+) owes (\S+) \d", prompt) if m[1] == asked]
        return f"{debtor} does."

    stub.script.answer = solve
    answer = service.ask("Who owes Thomas Pemberton?", collection=collection)
    assert answer["answer"] == "Margaret Holloway does."
    assert_no_leak(stub, ["Holloway", "Pemberton", "Ashcroft"])
    assert_seen(stub, ["euros"])


def test_two_requests_cannot_be_linked(
    service: Any, stub: Any, collection: str, between: Any
) -> None:
    """One person has another placeholder in each request, and the same within one (I8)."""
    for place in ("a", "b"):
        service.add("Margaret Holloway rents boathouse 4.", collection=f"{collection}-{place}")
    seen = []
    for place in ("a", "b", "a"):
        stub.forget()
        service.ask("What does Margaret Holloway rent?", collection=f"{collection}-{place}")
        [rewrite], [answer] = stub.rewrites, stub.answers
        asked = re.findall(r"What does (\S+) rent", rewrite.prompt + answer.prompt)
        rented = between(r"(\S+) rents boathouse", answer)[0]
        assert len({*asked, rented}) == 1
        seen.append(rented)
    assert len(set(seen)) == 3


def test_text_that_looks_like_a_placeholder_survives(
    service: Any, stub: Any, collection: str
) -> None:
    """What a user or a document writes in a placeholder's shape comes back as it was (I4)."""
    document = "The template greets <PERSON_1> and [PERSON_2], kept by Margaret Holloway."
    service.add(document, collection=collection)
    answer = service.ask("Whom does the template <PERSON_1> greet?", collection=collection)
    assert document in answer["answer"]
    assert_no_leak(stub, ["Holloway"])


def test_a_placeholder_of_another_request_is_not_restored(
    service: Any, stub: Any, collection: str, between: Any
) -> None:
    """A model that remembers a placeholder gets nothing for it, and it is reported (I4, I8)."""
    service.add("Margaret Holloway rents boathouse 4.", collection=collection)
    service.ask("Who rents boathouse 4?", collection=collection)
    [old] = between(r"(\S+) rents boathouse", stub.answers[-1])
    stub.script.answer = say(f"It is {old}.")
    answer = service.ask("Who rents boathouse 4?", collection=collection)
    assert answer["answer"] == f"It is {old}."
    assert answer["privacy"]["unresolved"] == [old]
