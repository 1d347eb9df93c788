"""Shadows: what two spellings of one name have in common, and the way back."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag.privacy.forms import read_words
from rag.privacy.shadow import plain, shadow

SPELLINGS = [
    ("José Quintanar", unicodedata.normalize("NFD", "José Quintanar"), "decomposed"),
    ("Thorsrud", "THORSRUD", "upper case"),
    ("Thorsrud", "Ｔｈｏｒｓｒｕｄ", "full width"),
    ("Thorsrud", "𝐓𝐡𝐨𝐫𝐬𝐫𝐮𝐝", "mathematical"),
    ("Thorsrud", "Thor\u200bsrud", "zero-width space"),
    ("Thorsrud", "Thor\u00adsrud", "soft hyphen"),
    ("Thorsrud", "Thor\x00srud", "control character"),
    ("Thorsrud", "Thоrsrud", "a Cyrillic o"),
    ("Thorsrud", "Τhorsrud", "a Greek capital tau"),
    ("Cooper", "Соорer", "four Cyrillic letters"),
    ("Ελένη", "ΕΛΈΝΗ", "Greek capitals"),
    ("Марина", "МАРИНА", "Cyrillic capitals"),
    ("O'Farrell", "O’Farrell", "typographic apostrophe"),
    ("Al-Khateeb", "Al‑Khateeb", "non-breaking hyphen"),
    ("0123", "٠١٢٣", "Arabic-Indic digits"),
    ("Straße", "STRASSE", "sharp s"),
]


@pytest.mark.parametrize(("one", "other", "why"), SPELLINGS, ids=[s[2] for s in SPELLINGS])
def test_two_spellings_cast_one_shadow(one: str, other: str, why: str) -> None:
    """Each disguise of a name has the name's own shadow."""
    assert shadow(one).text == shadow(other).text


def test_plain_strips_what_a_keyboard_lacks() -> None:
    """José is found as Jose, Łukasz as Lukasz, Søren as Soren."""
    written = [plain(shadow(name).text) for name in ("José", "Łukasz", "Søren", "Zoë")]
    assert written == ["jose", "lukasz", "soren", "zoe"]


@given(st.text(alphabet=st.sampled_from("aZé̈ﬁ\u200b\u00adßЖ한ᄒ ᅡ\n'9٣ﷺ"), max_size=30))
def test_offsets_lead_back_in_order(text: str) -> None:
    """The map back is monotonic and stays inside of the text, whatever expands or vanishes."""
    cast = shadow(text)
    ranges = [cast.original(at, at + 1) for at in range(len(cast.text))]
    assert all(0 <= start < end <= len(text) for start, end in ranges)
    assert ranges == sorted(ranges)


def test_a_word_is_found_where_it_stands() -> None:
    """Offsets of words are offsets into the text as it was written."""
    text = "fin\u200bish — Thor\u00adsrud, ﬁnal"
    read = read_words(text)
    assert [text[s:e] for s, e in zip(read.starts, read.ends, strict=True)] == [
        "fin\u200bish",
        "Thor\u00adsrud",
        "ﬁnal",
    ]
