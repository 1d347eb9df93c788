"""Bytes become the text that was written, whatever encoding it was written in."""

from __future__ import annotations

import random

import pytest

from rag.errors import Malformed
from rag.ingest.encoding import decode

SWISS = "Zürich, Gößnitz: Frau Bürgi-Éclair zahlt 12 € – „morgen“."
TURKISH = "Ayşe Yılmaz İzmir'de oturuyor; kapı numarası değişti, çağrı geldi."
POLISH = "Łukasz Dąbrowski mieszka w Łodzi i pracuje w Poznaniu. Świetnie, że już śpi."
RUSSIAN = "Антон Громов живёт в Казани и работает врачом; позвоните ему завтра утром."
JAPANESE = "山本さんは大阪に住んでいます。電話番号はここに書いてありません。"


@pytest.mark.parametrize(
    "encoding",
    ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32", "cp1252", "cp1254"],
)
def test_western_text_is_read_in_every_encoding(encoding: str) -> None:
    """Umlauts, dashes and currency signs come out as they went in."""
    assert decode(SWISS.encode(encoding)) == SWISS


@pytest.mark.parametrize(
    ("text", "encoding"),
    [
        (TURKISH, "cp1254"),
        (POLISH, "cp1250"),
        (RUSSIAN, "cp1251"),
        (RUSSIAN, "koi8_r"),
        (JAPANESE, "shift_jis"),
        (JAPANESE, "euc_jp"),
        ("Þórður Eiðsson býr í Þorlákshöfn og ræktar æðardún.", "cp1252"),
        ("Señora Peñalver pagó 30 £ a João d’Águeda.", "cp1252"),
    ],
)
def test_legacy_encodings_of_other_languages_are_recognised(text: str, encoding: str) -> None:
    """Each alphabet's own letters tell its encoding."""
    assert decode(text.encode(encoding)) == text


def test_what_is_declared_is_respected() -> None:
    """Bytes that are possible in several encodings are read as the document says."""
    assert decode("naïve Ærø".encode("iso8859-15"), "ISO-8859-15") == "naïve Ærø"
    assert decode(RUSSIAN[:14].encode("koi8_r"), "koi8-r") == RUSSIAN[:14]


def test_utf8_that_is_declared_western_stays_utf8() -> None:
    """UTF-8 does not come about by chance: a stale declaration makes no gibberish."""
    assert decode("Zürich".encode(), "iso-8859-1") == "Zürich"


@pytest.mark.parametrize("declared", ["no-such", "utf-16", "base64", "rot13", "hex", "idna", "zip"])
def test_a_declaration_that_is_no_text_encoding_is_passed_over(declared: str) -> None:
    """Codecs that are no character sets are not run on what a stranger sent."""
    assert decode("Zürich".encode(), declared) == "Zürich"


@pytest.mark.parametrize("seed", range(40))
def test_random_bytes_are_no_text(seed: int) -> None:
    """What no encoding makes text of is refused, never decoded with holes."""
    data = random.Random(seed).randbytes(300)
    with pytest.raises(Malformed):
        decode(data)


@pytest.mark.parametrize(
    "data",
    [b"\xff\xfea", b"\xef\xbb\xbf\xff\xff", "\ud800".encode("utf-16-le", "surrogatepass") * 9],
)
def test_broken_marked_text_is_refused(data: bytes) -> None:
    """A byte order mark is a promise; text that breaks it is malformed."""
    with pytest.raises(Malformed):
        decode(b"\xff\xfe" + data if data[:1] == b"\x00" else data)


def test_one_stray_control_character_is_no_reason_to_refuse() -> None:
    """A NUL in a report is text, a file full of them is not."""
    assert decode(b"Boiler report\x00 page 2") == "Boiler report\x00 page 2"
    with pytest.raises(Malformed):
        decode(b"\x00\x01\x02\x03" * 50)
