"""Names of people: where they begin and end, in which casing, and how often."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from rag.privacy.detect import PresidioDetector
from rag.types import EntityType

Protected = Callable[[str], list[tuple[str, str]]]

FOUND = [
    ("The caretaker is Kirsti Haugland.\nCARETAKER ON DUTY: KIRSTI HAUGLAND\nchat: kirsti haugland "
     "says hi", ["Kirsti Haugland", "KIRSTI HAUGLAND", "kirsti haugland"]),
    ("My landlord is Tobias R. Lindgren and the dentist is Ivar Brandt jr.; the notary is "
     "Dr. Pia-Lotte van der Aa.",
     ["Tobias R. Lindgren", "Ivar Brandt jr.", "Pia-Lotte van der Aa"]),
    ("Niamh O'Connell met Chiara D'Alonso, Wael Al-Khatib and Pierre L’Orange (curly) in room 4.",
     ["Niamh O'Connell", "Chiara D'Alonso", "Wael Al-Khatib", "Pierre L’Orange"]),
    ("Kirsti Haugland's flat and Kirsti Haugland’s car", ["Kirsti Haugland", "Kirsti Haugland"]),
    ("Ms Haugland called Mr. Brandt and Prof. Adeyemi.", ["Haugland", "Brandt", "Adeyemi"]),
    ('{"customer":{"fullName":"Kirsti Haugland"},"contacts":[{"givenName":"Yusuf",'
     '"familyName":"Demir"}]}', ["Kirsti Haugland", "Yusuf", "Demir"]),
    ("Haugland, Kirsti;kirsti.haugland@example.org", ["Haugland, Kirsti"]),
    ("**Kirsti Haugland** | _Yusuf Demir_", ["Kirsti Haugland", "Yusuf Demir"]),
    ("<td>Kirsti&nbsp;Haugland</td><td>x</td>", ["Kirsti&nbsp;Haugland"]),
    ("[09:14] kirsti: hi, is the key there?", ["kirsti"]),
    ("Kirsti Haugland - kirsti.haugland@example.org\n"
     "Kirsti Haugland-kirsti.haugland@example.org\n"
     "Kirsti Haugland <kirsti.haugland@example.org>",
     ["Kirsti Haugland", "Kirsti Haugland", "Kirsti Haugland"]),
    ("Alice Fjell Bram Holt Chiara Nunes", ["Alice Fjell", "Bram Holt", "Chiara Nunes"]),
    ("Hi, my name is Kasper. What is my name? My cousin Annika-Louise has a car.",
     ["Kasper", "Annika-Louise"]),
    ("Hans-Peter Müller-Brandt pays; Müller-Brandt signs; Hans-Peter leaves.",
     ["Hans-Peter Müller-Brandt", "Müller-Brandt", "Hans-Peter"]),
    ("Alva owes Bram 20; Bram owes Chiara 30; Chiara owes Alva 5.",
     ["Alva", "Bram", "Bram", "Chiara", "Chiara", "Alva"]),
    ("Dear Kirsti,\nplease sign.\nKind regards,\nIvar Brandt", ["Kirsti", "Ivar Brandt"]),
    ("Kirsti Haugland sent Haugland_Kirsti_2021_salary.pdf from /srv/kirsti.haugland/cv.docx",
     ["Kirsti Haugland", "Haugland_Kirsti", "kirsti.haugland"]),
    ("Kirsti Haugland and the Hauglands; HAUGLAND pays, kirsti does not.",
     ["Kirsti Haugland", "Haugland", "HAUGLAND", "kirsti"]),
    ("Patient: Oona Pell\nSeen by Dr. Marek Sowa.", ["Oona Pell", "Marek Sowa"]),
]  # fmt: skip


@pytest.mark.parametrize(("text", "expected"), FOUND)
def test_people_are_found_whole(protected: Protected, text: str, expected: list[str]) -> None:
    """Every mention is one span without title, possessive and markup."""
    assert [found for kind, found in protected(text) if kind == "PERSON"] == expected


def test_a_lower_case_question_shows_its_names(protected: Protected) -> None:
    """A name without capitals is found although nothing else in the text gives it away."""
    assert ("PERSON", "kirsti haugland") in protected("where does kirsti haugland keep the key?")


def test_capitals_inside_a_sentence_hide_no_name(protected: Protected) -> None:
    """A name in capitals is found in an otherwise ordinary line."""
    assert ("PERSON", "KIRSTI HAUGLAND") in protected("The tenant is KIRSTI HAUGLAND of flat 4.")


def test_a_wrapped_line_parts_no_name(protected: Protected) -> None:
    """A name over two lines of prose is one; two lines of a list are two people."""
    prose = "The lease of the flat on the second floor was signed by Kirsti\nHaugland in spring."
    assert protected(prose) == [("PERSON", "Kirsti\nHaugland")]
    rows = "Kirsti Haugland\nIvar Brandt\nYusuf Demir"
    assert [found for _, found in protected(rows)] == rows.split("\n")


def test_a_name_that_is_a_word_stays_a_word_elsewhere(protected: Protected) -> None:
    """A part of a name that is also a word or a place is not hunted in other casings."""
    text = "Mark Pell lives in Jordan. Pell will mark the date with Rose Pell, who grew a rose."
    found = [f for kind, f in protected(text) if kind == "PERSON"]
    assert found == ["Mark Pell", "Pell", "Rose Pell"]


def test_a_place_that_is_a_part_of_a_name_stays_a_place(detector: PresidioDetector) -> None:
    """One George Washington Pell does not make the city a person."""
    text = "George Washington Pell moved from Leeds to Washington last year."
    found = {(s.type, text[s.start : s.end]) for s in detector.detect(text)}
    assert (EntityType.PERSON, "George Washington Pell") in found
    assert (EntityType.PLACE, "Washington") in found


def test_an_organisation_does_not_hide_a_person(detector: PresidioDetector) -> None:
    """Types that a policy may leave alone never cover a direct identifier."""
    text = "Kirsti Haugland owns Kirsti Haugland Heating Ltd in Leeds."
    people = [s for s in detector.detect(text) if s.type is EntityType.PERSON]
    assert [text[s.start : s.end] for s in people] == ["Kirsti Haugland"] * 2


def test_all_types_are_stored_with_scores(detector: PresidioDetector) -> None:
    """Places, organisations and dates are found too, for stricter policies (I10)."""
    text = "On 12 May 2021 Nordhavn Ltd wrote to Kirsti Haugland, who lives in Norway."
    found = {s.type: s.score for s in detector.detect(text)}
    assert {EntityType.PLACE, EntityType.ORGANISATION, EntityType.DATE, EntityType.PERSON} <= set(
        found
    )
    assert all(0 < score <= 1 for score in found.values())


@pytest.mark.parametrize("padding", range(0, 4_000, 397))
def test_a_window_border_cuts_no_name(detector: PresidioDetector, padding: int) -> None:
    """Wherever a name lies relative to the model's windows, it is found whole."""
    filler = "the boiler was cleaned and the filter changed again. " * 200
    text = (
        f"{filler[: 3_000 + padding]}\nThe tenant is Kirsti Haugland, as agreed.\n{filler[:3_000]}"
    )
    start = text.index("Kirsti")
    assert any(
        (s.start, s.end) == (start, start + len("Kirsti Haugland")) for s in detector.detect(text)
    )
