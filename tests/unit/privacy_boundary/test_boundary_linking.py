"""I3: one subject, one placeholder; two subjects never share one."""

from __future__ import annotations

import itertools

import pytest

SAME = [
    ("Sunniva Thorsrud", "SUNNIVA THORSRUD", "casing"),
    ("Sunniva Thorsrud", "Ms Thorsrud", "title"),
    ("Sunniva Thorsrud", "S. Thorsrud", "initial"),
    ("Sunniva Thorsrud", "Sunniva", "given name"),
    ("Sunniva Thorsrud", "Thorsrud, Sunniva", "turned round"),
    ("Tobias R. Falkenmeyer", "Tobias Falkenmeyer", "without middle initial"),
    ("Ivo Brandvold jr.", "Ivo Brandvold", "without suffix"),
    ("José Quintanar", "Jose Quintanar", "accents"),
    ("Hans-Peter Möller-Brandvold", "Möller-Brandvold", "double name alone"),
    ("Egil Sorrel", "the Sorrels", "plural"),
]
DIFFERENT = [
    ("Sunniva Thorsrud", "Egil Thorsrud", "one surname"),
    ("Mr Thorsrud", "Ms Thorsrud", "titles of man and woman"),
    ("Ivo Brandvold jr.", "Ivo Brandvold sr.", "father and son"),
    ("Sunniva Thorsrud", "S. Brandvold", "one initial"),
    ("Tobias R. Falkenmeyer", "Tobias S. Falkenmeyer", "middle initials"),
]


@pytest.mark.parametrize(("one", "other", "why"), SAME, ids=[s[2] for s in SAME])
async def test_two_forms_are_one_person(make_scope, mark, one, other, why) -> None:
    """What can only be the same person has the same placeholder, in either order."""
    other_name = other.removeprefix("the ")
    for order in (1, -1):
        pieces = [mark(f"Ask {one} now.", PERSON=one), mark(f"Ask {other} now.", PERSON=other_name)]
        scope = make_scope()
        await scope.protect(pieces[::order])
        assert scope.entities() == {"PERSON": 1}


@pytest.mark.parametrize(("one", "other", "why"), DIFFERENT, ids=[d[2] for d in DIFFERENT])
async def test_two_people_are_two(make_scope, mark, one, other, why) -> None:
    """What speaks of two people has two placeholders."""
    scope = make_scope()
    await scope.protect([mark(f"Ask {one} and {other} now.", PERSON=[one, other])])
    assert scope.entities() == {"PERSON": 2}


async def test_an_ambiguous_mention_is_a_person_of_its_own(make_scope, mark) -> None:
    """A surname that two people bear, alone, is neither of them."""
    text = "Sunniva Thorsrud met Egil Thorsrud. Thorsrud paid."
    scope = make_scope()
    [protected] = await scope.protect([mark(text, PERSON=["Sunniva Thorsrud", "Egil Thorsrud"])])
    assert scope.entities() == {"PERSON": 3}
    assert scope.restore(protected).text == text


async def test_a_fuller_name_that_comes_later_is_the_same_person(make_scope, mark) -> None:
    """The question says Thorsrud, the chunk says who that is: one placeholder."""
    scope = make_scope()
    [question] = await scope.protect([mark("What does Thorsrud pay?", PERSON="Thorsrud")])
    [chunk] = await scope.protect([mark("Sunniva Thorsrud pays 20.", PERSON="Sunniva Thorsrud")])
    assert scope.entities() == {"PERSON": 1}
    assert question.split()[2] == chunk.split()[0]


async def test_a_short_name_that_could_be_two_later_ones_stays_alone(make_scope, mark) -> None:
    """A known surname is given to neither of two people who bear it."""
    scope = make_scope()
    await scope.protect([mark("What does Thorsrud pay?", PERSON="Thorsrud")])
    text = "Sunniva Thorsrud pays 20. Egil Thorsrud pays 30."
    await scope.protect([mark(text, PERSON=["Sunniva Thorsrud", "Egil Thorsrud"])])
    assert scope.entities() == {"PERSON": 3}


async def test_the_order_of_the_pieces_does_not_matter(make_scope, mark) -> None:
    """Every order of the pieces links the same mentions."""
    pieces = [
        mark("Thorsrud called.", PERSON="Thorsrud"),
        mark("Ms Sunniva Thorsrud called.", PERSON="Ms Sunniva Thorsrud"),
        mark("S. M. Thorsrud called.", PERSON="S. M. Thorsrud"),
        mark("Sunniva called Egil Brandvold.", PERSON=["Sunniva", "Egil Brandvold"]),
        mark("Egil called.", PERSON="Egil"),
    ]
    partitions = set()
    for order in itertools.permutations(range(len(pieces))):
        scope = make_scope()
        out = dict(zip(order, await scope.protect([pieces[n] for n in order]), strict=True))
        names = [word for n in range(5) for word in out[n].split() if word.startswith("[")]
        partitions.add(tuple(names.index(name) for name in names))
    assert len(partitions) == 1


@pytest.mark.parametrize(
    ("type", "one", "other"),
    [
        ("PHONE", "+44 7700 900142", "07700 900142"),
        ("PHONE", "07700 900142", "+44 (0)7700-900142"),
        ("CARD", "5105 1051 0510 5100", "5105-1051-0510-5100"),
        ("BANK_ACCOUNT", "DE51 0000 0000 0123 4567 89", "de51000000000123456789"),
        ("EMAIL", "Sunniva@Example.org", "sunniva@example.ORG"),
        ("ADDRESS", "48 Heather Lane, Leeds", "48  HEATHER LANE\nLeeds"),
        ("NETWORK", "2345:0425:2ca1::567", "2345:425:2ca1:0:0:0:0:567"),
    ],
)
async def test_spellings_of_a_value_are_one_subject(make_scope, mark, type, one, other) -> None:
    """Separators, prefixes and casing make no second value."""
    scope = make_scope()
    for text in (one, other):
        await scope.protect([mark(f"Use {text} now.", **{type: text})])
    assert scope.entities() == {type: 1}


async def test_one_national_number_in_two_countries_is_two(make_scope, mark) -> None:
    """A number with two country codes is two subjects, and without one a third."""
    one, other, bare = "+44 7700 900142", "+47 7700 900142", "07700 900142"
    scope = make_scope()
    await scope.protect([mark(f"{one} / {other} / {bare}", PHONE=[one, other, bare])])
    assert scope.entities() == {"PHONE": 3}


async def test_two_mail_addresses_with_the_same_words_are_two(make_scope, mark) -> None:
    """Punctuation counts in an address."""
    one, other = "s.thor@example.org", "s-thor@example.org"
    scope = make_scope()
    await scope.protect([mark(f"{one} {other}", EMAIL=[one, other])])
    assert scope.entities() == {"EMAIL": 2}


async def test_numbers_do_not_follow_the_order_of_the_names(make_scope, mark) -> None:
    """Numbers are dealt out at random: eight people are not numbered as they come."""
    people = [f"Person{letter} Thorsrud{letter}" for letter in "abcdefgh"]
    orders = set()
    for _ in range(8):
        scope = make_scope()
        [protected] = await scope.protect([mark(", ".join(people), PERSON=people)])
        orders.add(tuple(part.split("_")[1] for part in protected.split(", ")))
    assert len(orders) > 1
