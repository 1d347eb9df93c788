"""I3: who is who among names that share their parts, told by suffix, title and order."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import pytest

from rag.privacy.mapping import Mention, Subjects
from rag.privacy.names import suffix_after, title_before
from rag.privacy.shapes import SHAPES
from rag.types import EntityType


class Counting:
    def __init__(self) -> None:
        self.last = 0

    async def allocate(self, type: str, count: int) -> list[int]:
        self.last += count
        return list(range(self.last - count + 1, self.last + 1))


def mention(written: str) -> Mention:
    """ "Ms |Kvistad| Jr." as a text in which the detector marked what is between the bars."""
    before, bar, rest = written.partition("|")
    if not bar:
        return Mention(EntityType.PERSON, written)
    name, _, after = rest.partition("|")
    text = before + name + after
    start, end = len(before), len(before) + len(name)
    return Mention(
        EntityType.PERSON,
        name,
        title=title_before(text, start),
        suffix=suffix_after(text, end),
    )


async def who(calls: Sequence[Sequence[str]]) -> list[str]:
    """Which placeholder each mention has; the mentions of one call are linked together."""
    subjects = Subjects(SHAPES["bracket"], "k7q", Counting())
    found = []
    for call in calls:
        mentions = [mention(written) for written in call]
        linked = await subjects.link(mentions)
        found += [linked[one].placeholder for one in mentions]
    return found


def partition(found: Sequence[str]) -> list[int]:
    return [found.index(one) for one in found]


ALL_APART = [
    (["John Ostervik Jr.", "John Ostervik Sr.", "John Ostervik"], "junior and senior"),
    (["Ivar Ostervik II", "Ivar Ostervik III", "Ivar Ostervik"], "second and third"),
    (["|Ivar Ostervik| Jr.", "|Ivar Ostervik|, Sr.", "Ivar Ostervik"], "suffix outside"),
    (["|Ivar Ostervik| the Elder", "|Ivar Ostervik| the Younger", "Ostervik"], "elder"),
    (["Anna B. Roesdal", "Anna C. Roesdal", "Anna Roesdal"], "middle initials"),
    (["Anna Berit Roesdal", "Anna Clara Roesdal", "Anna Roesdal"], "middle names"),
    (["Anna Roesdal", "Arne Roesdal", "A. Roesdal"], "an initial that fits two"),
    (["Oda Marie Kvistad", "Oda Lise Kvistad", "Oda"], "a given name that fits two"),
    (["Mr |Ostervik|", "Mrs |Ostervik|", "Ostervik"], "a couple and a bare mention"),
    (["Ms |Oda Kvistad|", "Mr |Kvistad|"], "a man is not the woman"),
    (["Oda Kvistad", "Mr |Kvistad|", "Ms |Kvistad|"], "either may be the one of the full name"),
    (["Oda Kvistad", "Mr |Kvistad|", "Ms |Oda|"], "either may be, by different parts"),
    (["John Ostervik", "Ostervik Jr.", "Ostervik Sr."], "either may be, by suffix"),
    (["Thomas Martin", "Martin Thomas"], "two given names turned round"),
    (["THOMAS MARTIN", "MARTIN THOMAS"], "capitals throughout are no evidence"),
]


@pytest.mark.parametrize(("mentions", "why"), ALL_APART, ids=[a[1] for a in ALL_APART])
async def test_all_of_these_are_apart(mentions, why) -> None:
    """Nobody is merged with whom he may not be, and an ambiguous mention stands alone."""
    for order in itertools.permutations(mentions):
        assert len(set(await who([order]))) == len(mentions)


TOGETHER = [
    (["John Ostervik Jr.", "John Ostervik", "Ostervik"], "one suffix"),
    (["John Ostervik Jr.", "John Ostervik jnr", "John Ostervik, Junior"], "spellings of it"),
    (["Ivar Ostervik PhD", "Ivar Ostervik, MBA", "Ivar Ostervik"], "degrees tell nobody apart"),
    (["Anna B. Roesdal", "Anna Roesdal", "Roesdal"], "one middle initial"),
    (["Ms |Oda Kvistad|", "Ms |Kvistad|", "Kvistad"], "the same title"),
    (["Dr |Oda Kvistad|", "Ms |Kvistad|", "Prof. |Kvistad|"], "titles that agree"),
    (["Thomas Martin", "Martin, Thomas"], "a comma"),
    (["Thomas Martin", "MARTIN Thomas", "MARTIN, Thomas"], "the surname in capitals"),
    (["Sean O'Sullivan-Burke", "OSullivan", "osullivanburke", "O’Sullivan"], "apostrophes"),
    (["Finlay Quarrington", "fquarrington1", "quarringtonf", "finlayquarrington"], "handles"),
    (["Oda Kvistad", "Kvis-\ntad", "Kvis**tad**"], "broken and emphasised"),
]


@pytest.mark.parametrize(("mentions", "why"), TOGETHER, ids=[t[1] for t in TOGETHER])
async def test_all_of_these_are_one(mentions, why) -> None:
    """What can only be one person is one, in any order."""
    for order in itertools.permutations(mentions):
        assert len(set(await who([order]))) == 1


async def test_evidence_elsewhere_decides_between_two() -> None:
    """With the man known to be Per, Ms Kvistad is Oda, and the bare name is neither."""
    mentions = ["Oda Kvistad", "Mr |Per Kvistad|", "Mr |Kvistad|", "Ms |Kvistad|", "Kvistad"]
    for order in itertools.permutations(mentions):
        found = dict(zip(order, await who([order]), strict=True))
        assert found["Ms |Kvistad|"] == found["Oda Kvistad"]
        assert found["Mr |Kvistad|"] == found["Mr |Per Kvistad|"]
        assert len(set(found.values())) == 3


async def test_a_bare_name_asked_for_first_is_given_to_neither_of_two() -> None:
    """Junior and senior come with the chunks; the question's bare name stays its own."""
    both = ["John Ostervik Jr.", "John Ostervik Sr.", "John Ostervik"]
    found = await who([["John Ostervik"], both])
    assert partition(found) == [0, 1, 2, 0]


async def test_a_known_person_is_not_taken_for_the_other_sex() -> None:
    """Titles are remembered from call to call."""
    found = await who([["Ms |Kvistad|"], ["Mr |Kvistad|"], ["Ms |Kvistad|"], ["Kvistad"]])
    assert partition(found) == [0, 1, 0, 3]


async def test_a_second_suffix_that_comes_later_is_another_person() -> None:
    """Junior stays himself when senior turns up, and then the bare name is ambiguous."""
    calls = [["John Ostervik Jr."], ["John Ostervik"], ["John Ostervik Sr."], ["John Ostervik"]]
    assert partition(await who(calls)) == [0, 0, 2, 3]


TITLES = [
    ("Ms |Oda", "ms"),
    ("Ms. Dr. |Oda", "ms dr"),
    ("Dear Mrs\n|Oda", "mrs"),
    ("Señora |Oda", "senora"),
    ("Mr and Mrs |Oda", ""),
    ("Mr. & Mrs. |Oda", ""),
    ("They miss |Oda", ""),
    ("said Miss |Oda", "miss"),
    ("John Ostervik Sr. |Oda", ""),
    ("the tenant |Oda", ""),
    ("|Oda", ""),
]


@pytest.mark.parametrize(("written", "title"), TITLES)
def test_the_title_before_a_name_is_read_from_the_text(written, title) -> None:
    """Titles on the left count, a couple's and other words do not."""
    before, _, after = written.partition("|")
    assert title_before(before + after, len(before)) == title


SUFFIXES = [
    ("Ostervik| Jr.", "jr"),
    ("Ostervik|, Sr. paid", "sr"),
    ("Ostervik| senior", "sr"),
    ("Ostervik| III", "iii"),
    ("Ostervik| the Younger", "younger"),
    ("Ostervik| paid", ""),
    ("Ostervik|. Junior staff left", ""),
    ("Ostervik| Srinagar", ""),
    ("Ostervik| junior clerk", ""),
    ("Ostervik|", ""),
]


@pytest.mark.parametrize(("written", "suffix"), SUFFIXES)
def test_the_suffix_after_a_name_is_read_from_the_text(written, suffix) -> None:
    """What tells father and son apart counts also where a span left it out."""
    before, _, after = written.partition("|")
    assert suffix_after(before + after, len(before)) == suffix


async def test_neither_title_nor_suffix_is_restored_twice(make_scope, mark) -> None:
    """Both stay in the text, so no form holds them."""
    scope = make_scope()
    text = "Ms Oda Kvistad Jr. signed. Mr Kvistad did not sign."
    [protected] = await scope.protect([mark(text, PERSON=["Oda Kvistad"])])
    assert scope.restore(protected).text == text
    assert all("M" not in form for s in scope._subjects for form in s.originals)


async def test_the_cleanest_spelling_stands_where_no_place_decides(make_scope, mark) -> None:
    """A broken, emphasised or log-in spelling is never the one that is shown elsewhere."""
    scope = make_scope(nonce="k7q")
    text = "ask quarrington7, Quar-\nrington, Quar**rington** or Quarrington."
    await scope.protect([mark(text, PERSON="Quarrington")])
    assert scope.entities() == {"PERSON": 1}
    assert scope.restore("So [PERSON_1_k7q] knows.").text == "So Quarrington knows."
