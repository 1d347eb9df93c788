"""The leak checker finds every disguise, and does not cry over honest text."""

from __future__ import annotations

import base64
import json
from urllib.parse import quote

import pytest

from rag.testing.noleak import assert_no_leak, assert_seen, spellings

NAME, PHONE = "Ingrun Vestby", "+47 402 55 318"


def _b64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


DISGUISES: dict[str, str] = {
    "as it is": NAME,
    "capitals": NAME.upper(),
    "small letters": NAME.lower(),
    "full width": "".join(chr(ord(c) + 0xFEE0) if c != " " else c for c in NAME),
    "soft hyphens": "In\u00adgrun Ve\u00adstby",
    "zero width": "\u200b".join(NAME),
    "look-alikes": "Іngrun Vеstbу",
    "a line break": "Ingrun\n  Vestby",
    "a no-break space": "Ingrun\u00a0Vestby",
    "separators": "Ingrun_Vestby",
    "run together": "ingrunvestby",
    "dots": "I.n.g.r.u.n V.e.s.t.b.y",
    "URL": quote(NAME),
    "URL with plus": "q=Ingrun+Vestby",
    "URL twice": quote(quote(NAME)),
    "HTML": "Ingrun&nbsp;Vestby",
    "HTML numbers": "&#73;ngrun &#x56;estby",
    "Base64": _b64(NAME),
    "Base64 in a sentence": f"the token {_b64('owner: ' + NAME)} is",
    "Base64 twice": _b64(_b64("owner: " + NAME)),
    "URL-safe Base64": base64.urlsafe_b64encode(f"??>>{NAME}".encode()).decode(),
    "JSON": json.dumps({"a": [NAME]}),
    "a JSON key": json.dumps({NAME: 1}),
    "JSON in JSON": json.dumps({"arguments": json.dumps({"owner": NAME})}),
    "JSON escapes": '{"a": "\\u0049ngrun \\u0056estby"}',
    "split over JSON parts": json.dumps([{"text": "Ingrun "}, {"text": "Vestby"}]),
}


@pytest.mark.parametrize("text", DISGUISES.values(), ids=list(DISGUISES))
def test_disguises_are_found(text: str) -> None:
    """However the name is written, it counts as having left."""
    with pytest.raises(AssertionError, match="left"):
        assert_no_leak([f"POST / HTTP/1.1\r\n\r\n{text}".encode()], [NAME])


@pytest.mark.parametrize(
    "text", [PHONE, "+4740255318", "0047-402.55.318", "(402) 55-318 is +47", '{"n": 4740255318}']
)
def test_numbers_are_found(text: str) -> None:
    """A number is the same with other separators."""
    with pytest.raises(AssertionError, match="left"):
        assert_no_leak([text.encode()], ["402 55 318"])


@pytest.mark.parametrize(
    "text", ["the owner of flat 4", "Ingrid Vesterby", "in grund", "402 55 31"]
)
def test_honest_text_passes(text: str) -> None:
    """Other words, near ones too, are no leak."""
    assert_no_leak([text.encode()], [NAME, "402 55 318"])


@pytest.mark.parametrize("text", ["the ally", "Talya", "usually"])
def test_short_values_are_whole_words(text: str) -> None:
    """A name of few letters is not found inside another word."""
    assert_no_leak([text.encode()], ["Aly"])


def test_silence_proves_nothing() -> None:
    """When nothing was recorded the check fails."""
    with pytest.raises(AssertionError, match="nothing was recorded"):
        assert_no_leak([], [NAME])


def test_no_values_prove_nothing() -> None:
    """A check for no value at all fails."""
    with pytest.raises(AssertionError, match="no values"):
        assert_no_leak([b"text"], ["", " "])


def test_seen() -> None:
    """What was sent is seen, also within JSON escapes; what was not fails."""
    assert_seen([b'{"a": "b\\u00e5t"}'], ["båt"])
    with pytest.raises(AssertionError, match="never sent"):
        assert_seen([b"text"], ["båt"])


def test_spellings_of_a_short_word() -> None:
    """Only values that are long enough are searched for without their separators."""
    assert "separators removed" not in spellings("Aly B")
    assert spellings(NAME)["separators removed"] == "ingrunvestby"
