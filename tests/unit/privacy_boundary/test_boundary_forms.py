"""Forms of a subject, their keys and hashes."""

import pytest

from rag.privacy.forms import FormHasher, aliases_of, forms_of, phone_key, word_groups
from rag.types import EntityType, Span

NAMES = [
    ("Sunniva Thorsrud", "thorsrud", "the family name alone"),
    ("Sunniva Thorsrud", "sunniva", "the given name alone"),
    ("Sunniva Thorsrud", "thorsrud sunniva", "family name first"),
    ("Sunniva Thorsrud", "s thorsrud", "an initial"),
    ("Sunniva Thorsrud", "sunnivathorsrud", "written together"),
    ("Tobias R. Falkenmeyer", "tobias falkenmeyer", "without the middle initial"),
    ("Ivo Brandvold jr.", "ivo brandvold", "without the suffix"),
    ("Dr. Pia-Lotte van der Meulen", "van der meulen", "with its particles"),
    ("Dr. Pia-Lotte van der Meulen", "meulen", "without its particles"),
    ("Quintanar, José", "jose quintanar", "turned round"),
    ("Niamh O'Dwyer-Kelso", "kelso", "half of a double name"),
    ("Hanna Grünwald", "gruenwald", "an umlaut written out"),
    ("Ernesto Alonso Vargas Contreras", "vargas contreras", "two family names"),
    ("欧阳娜娜", "欧 阳 娜 娜", "a name without spaces"),
]


@pytest.mark.parametrize(("name", "key", "why"), NAMES, ids=[n[2] for n in NAMES])
def test_a_name_has_this_strong_form(name: str, key: str, why: str) -> None:
    """Every usual way to write a name is among its forms, and proves it."""
    assert {form.key: form.weak for form in forms_of(EntityType.PERSON, name)}[key] is False


@pytest.mark.parametrize(
    ("name", "key"),
    [("Theresa May", "may"), ("Denzel Washington", "washington"), ("Kim Lee", "kim")],
)
def test_words_places_and_short_names_are_weak(name: str, key: str) -> None:
    """A form that is a word, a place or under four letters proves nothing alone."""
    forms = {form.key: form.weak for form in forms_of(EntityType.PERSON, name)}
    assert forms[key]
    assert not forms[f"{name.lower().replace(' ', '')}"]


def test_titles_are_no_part_of_the_name() -> None:
    """Ms May is strong by its title, May is not."""
    forms = {form.key: form.weak for form in forms_of(EntityType.PERSON, "Ms May")}
    assert forms == {"ms may": False, "may": True}


@pytest.mark.parametrize(
    "written",
    ["+44 7700 900142", "07700 900142", "0044 7700 900142", "+44 (0)7700-900142", "(07700) 900142"],
)
def test_a_phone_number_has_one_national_key(written: str) -> None:
    """Country code and trunk zero make no other number."""
    assert phone_key(written)[1] == "7700900142"


def test_numbers_are_looked_up_however_they_are_separated() -> None:
    """A card's groups of digits are one group to look up."""
    keys = {group.key for group in word_groups("Card 5105.1051 - 0510/5100, paid")}
    assert "5105105105105100" in keys


def test_a_long_mail_address_is_one_group() -> None:
    """A run without a space is looked up whole even beyond five words."""
    keys = {group.key for group in word_groups("to a.b-c.d_e@mail.example.org now")}
    assert "a b c d e mail example org" in keys


def test_hashes_are_signed_64_bit_and_keyed() -> None:
    """The index holds numbers that another secret does not give."""
    one, other = FormHasher(b"one"), FormHasher(b"other")
    assert one.hash("thorsrud") == FormHasher(b"one").hash("thorsrud") != other.hash("thorsrud")
    assert all(-(2**63) <= one.hash(str(n)) < 2**63 for n in range(200))


def test_a_word_that_the_document_uses_for_a_company_is_weak() -> None:
    """Aliases of one word are weak where the document names a thing so as often."""
    text = "Sunniva Ostrava-Vik works for Thorsrud. Egil Thorsrud does not."
    hasher = FormHasher(b"secret")

    def alias_weak(*spans: Span) -> bool:
        aliases = aliases_of(spans, text, hasher)
        return next(
            a.weak
            for a in aliases
            if a.form == hasher.hash("thorsrud") and a.type is EntityType.PERSON
        )

    start = text.index("Egil")
    person = Span(start, start + len("Egil Thorsrud"), EntityType.PERSON)
    company_at = text.index("Thorsrud")
    company = Span(company_at, company_at + 8, EntityType.ORGANISATION)
    assert not alias_weak(person)
    assert alias_weak(person, company)


def test_nothing_personal_shows_in_a_repr() -> None:
    """Forms, groups and names mask themselves."""
    shown = repr(forms_of(EntityType.PERSON, "Sunniva Thorsrud"))
    shown += repr(list(word_groups("Sunniva Thorsrud")))
    assert "hors" not in shown.lower()
