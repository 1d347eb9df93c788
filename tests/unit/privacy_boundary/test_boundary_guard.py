"""I1: the guard refuses an original in any disguise, and lets honest requests pass."""

from __future__ import annotations

import base64
import html
import json
import unicodedata
from typing import Any
from urllib.parse import quote

import pytest

from rag.errors import BoundaryRefused
from rag.privacy.guard import Guard
from rag.types import EntityType

URL = "https://model.example/v1/chat/completions"
JSON_TYPE = [("content-type", "application/json")]
SYSTEM = "Answer only from the context. Keep placeholders as they are. Never name Sunniva."
NAME = "Sunniva Thorsrud"
ORIGINALS = [
    (EntityType.PERSON, NAME),
    (EntityType.PERSON, "José Quintanar"),
    (EntityType.PERSON, "Theresa May"),
    (EntityType.PERSON, "Kim"),
    (EntityType.PERSON, "Grace"),
    (EntityType.PHONE, "+44 7700 900142"),
    (EntityType.CARD, "5105 1051 0510 5100"),
    (EntityType.DOCUMENT_ID, "0012345678"),
    (EntityType.EMAIL, "s.thor@example.org"),
    (EntityType.BIRTH_DATE, "05.03.1987"),
    (EntityType.CREDENTIAL, "sk-proj-Fj0rdP0stT3stK3y9aBcDeF"),
]


def b64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def body_of(content: Any, **more: Any) -> bytes:
    messages = [{"role": "system", "content": SYSTEM}, {"role": "user", "content": content}]
    return json.dumps({"model": "small-1", "messages": messages, **more}).encode()


def raw(content: str) -> bytes:
    return body_of("@").replace(b'"@"', content.encode())


@pytest.fixture
def guard() -> Guard:
    return Guard(
        originals=ORIGINALS,
        templates=frozenset({SYSTEM}),
        placeholders=frozenset({"[PERSON_1_k7q]", "[PHONE_1_k7q]"}),
    )


DISGUISES: dict[str, bytes] = {
    "as written": body_of(f"Ask {NAME} now."),
    "upper case": body_of("SUNNIVA THORSRUD"),
    "lower case": body_of("who is sunniva thorsrud"),
    "surname alone": body_of("Ask Thorsrud."),
    "given name alone": body_of("Ask Sunniva."),
    "turned round": body_of("Thorsrud, Sunniva"),
    "initial and surname": body_of("S. Thorsrud"),
    "possessive": body_of("Thorsrud's flat"),
    "underscores": body_of("file Thorsrud_Sunniva_salary.pdf"),
    "written together": body_of("user sunnivathorsrud"),
    "letters apart": body_of("It is T h o r s r u d."),
    "letters with dots": body_of("It is T.h.o.r.s.r.u.d."),
    "decomposed": body_of(unicodedata.normalize("NFD", "José Quintanar")),
    "without accent": body_of("Jose has it"),
    "zero-width space": body_of("Thor\u200bsrud"),
    "soft hyphen": body_of("Thor\u00adsrud"),
    "NUL inside": body_of("Thor\x00srud"),
    "full width": body_of("Ｔｈｏｒｓｒｕｄ"),
    "mathematical letters": body_of("𝓣𝓱𝓸𝓻𝓼𝓻𝓾𝓭"),
    "Cyrillic letters": body_of("Thоrsrud"),
    "JSON escapes": raw('"Ask \\u0054horsrud"'),
    "backslash escapes in a string": body_of("Ask \\u0054horsrud or \\x54"),
    "two content parts": body_of(
        [{"type": "text", "text": "Ask Thors"}, {"type": "text", "text": "rud now"}]
    ),
    "one letter a part": body_of([{"type": "text", "text": letter} for letter in "Thorsrud"]),
    "words in two messages": json.dumps(
        {"messages": [{"role": "user", "content": "0770"}, {"role": "user", "content": "0900142"}]}
    ).encode(),
    "a key": body_of("x", response_format={"Thorsrud": 1}),
    "a nested key": body_of("x", tools=[{"properties": {"a": {"Sunniva Thorsrud": {}}}}]),
    "JSON in tool arguments": body_of(
        "x", tool_calls=[{"function": {"name": "f", "arguments": json.dumps({"who": NAME})}}]
    ),
    "JSON in JSON in tool arguments": body_of(
        "x", tool_calls=[{"arguments": json.dumps({"a": json.dumps({"b": "Thor\u00f8 Thorsrud"})})}]
    ),
    "character codes in a string": body_of(json.dumps([ord(c) for c in "Thorsrud"])),
    "Base64": body_of(f"token {b64(NAME)}"),
    "Base64 of part of it": body_of(f"token {b64('the owner Thorsrud pays')}"),
    "Base64 inside a word": body_of(f"key_{b64('owner Thorsrud pays rent')}"),
    "URL-safe Base64": body_of(base64.urlsafe_b64encode("José? José>".encode()).decode()),
    "Base64 of UTF-16": body_of(base64.b64encode("Thorsrud".encode("utf-16-le")).decode()),
    "wrapped Base64": body_of(
        "\n".join(b64("x" * 20 + f" {NAME} " + "y" * 30)[n : n + 32] for n in (0, 32, 64))
    ),
    "Base64 of Base64": body_of(b64(b64(NAME))),
    "Base64 in two parts": body_of([{"text": b64(NAME)[:9]}, {"text": b64(NAME)[9:]}]),
    "hexadecimal": body_of("bytes " + NAME.encode().hex()),
    "percent": body_of("q=" + quote("Thorsrud").replace("o", "%6F")),
    "percent twice": body_of("q=" + quote(quote("José Thørs")) + "%2554horsrud"),
    "HTML entities": body_of("&#84;horsrud and Jos&eacute;"),
    "HTML in percent in Base64": body_of(b64(quote("&#84;horsrud is the one"))),
    "quoted printable": body_of("Jos=C3=A9 Quintanar"),
    "another spelling of the number": body_of("call 07700900142"),
    "number with other separators": body_of("call 0 77 00/90.01-42"),
    "number of a JSON number": body_of("x", seed=447700900142),
    "number with an exponent": raw("4.47700900142e11"),
    "number without its zeros": raw("12345678"),
    "a card in groups": body_of("5105.1051 - 0510/5100"),
    "a date without separators": body_of("born 05031987"),
    "mail in capitals": body_of("S.THOR@EXAMPLE.ORG"),
    "a secret": body_of("key sk-proj-Fj0rdP0stT3stK3y9aBcDeF"),
    "a short name": body_of("and Kim said"),
    "a name that is a word": body_of("and Grace said"),
    "beside a placeholder": body_of("[PERSON_1_k7q] Thorsrud"),
    "beside a template": body_of(f"{SYSTEM} Thorsrud"),
    "an unknown role": json.dumps({"messages": [{"role": "Thorsrud", "content": "x"}]}).encode(),
}


@pytest.mark.parametrize("disguise", list(DISGUISES))
def test_an_original_in_disguise_is_refused(guard: Guard, disguise: str) -> None:
    """However it is written, split or wrapped, an original does not leave."""
    with pytest.raises(BoundaryRefused) as refused:
        guard.check("POST", URL, JSON_TYPE, DISGUISES[disguise])
    assert "horsrud" not in str(refused.value)
    assert refused.value.__context__ is None or refused.value.__suppress_context__


PLACES = [
    (f"https://model.example/v1/{quote(NAME)}", []),
    ("https://model.example/v1/chat?user_name=thorsrud", []),
    ("https://model.example/v1/chat#Thorsrud", []),
    ("https://thorsrud:x@model.example/v1/chat", []),
    (URL, [("x-request-name", "Thorsrud")]),
    (URL, [("x-trace", b64(NAME))]),
    (URL, [("authorization", "Bearer s.thor@example.org")]),
]


@pytest.mark.parametrize(("url", "headers"), PLACES)
def test_address_and_headers_are_read_too(guard: Guard, url: str, headers: list[Any]) -> None:
    """Path, query, fragment, user and header values hold no original."""
    with pytest.raises(BoundaryRefused):
        guard.check("POST", url, JSON_TYPE + headers, body_of("x"))


UNREADABLE: dict[str, tuple[bytes, list[tuple[str, str]]]] = {
    "not JSON": (b"hello", []),
    "not UTF-8": (b'{"a": "\xff"}', []),
    "UTF-16": ('{"a": "b"}'.encode("utf-16"), []),
    "a form": (b'{"a": 1}', [("Content-Type", "multipart/form-data; boundary=x")]),
    "compressed": (b'{"a": "b"}', [("Content-Encoding", "gzip")]),
    "a double key": (b'{"a": "b", "a": "c"}', []),
    "a nested double key": (b'{"a": {"b": 1, "b": 2}}', []),
    "a token array": (b'{"input": [101, 2023], "model": "e"}', []),
    "token arrays": (b'{"input": [[101], [2023]]}', []),
    "character codes": (b'{"a": [84, 104, 111, 114]}', []),
    "half a character": (b'{"a": "\\ud83d"}', []),
    "not a number": (b'{"a": NaN}', []),
    "too deep": (b"[" * 100_000 + b"]" * 100_000, []),
    "two values": (b'{"a": 1} {"b": 2}', []),
    "user": (body_of("x", user="u-1"), []),
    "metadata": (body_of("x", metadata={"a": "b"}), []),
    "store": (body_of("x", store=True), []),
}


@pytest.mark.parametrize("kind", list(UNREADABLE))
def test_what_cannot_be_read_whole_is_refused(guard: Guard, kind: str) -> None:
    """Fail closed: no body passes that the guard does not understand."""
    body, headers = UNREADABLE[kind]
    with pytest.raises(BoundaryRefused):
        guard.check("POST", URL, headers, body)


def test_too_many_layers_are_refused(guard: Guard) -> None:
    """Nested deeper than the bound, even harmless text is not read and so not sent."""
    text = "nothing of interest"
    for _ in range(9):
        text = b64(text)
    with pytest.raises(BoundaryRefused):
        guard.check("POST", URL, JSON_TYPE, body_of(text))


HONEST: dict[str, bytes] = {
    "placeholders": body_of("[PERSON_1_k7q] has [PHONE_1_k7q]. Who is [PERSON_1_k7q]?"),
    "the template alone": body_of(SYSTEM),
    "a weak surname as a month": body_of("It rained in May. MAY CONTAIN NUTS."),
    "a short name in other words": body_of("Kimono, Kimberley and kim chi"),
    "a word in lower case": body_of("by the grace of the board"),
    "longer words": body_of("Thorsrudville, Sunnivale and Josephine"),
    "longer numbers": body_of("order 95105105105105100 and 144770090014277"),
    "numbers of the protocol": body_of("x", max_tokens=300, temperature=0.2, seed=7, top_p=0.9),
    "tools": body_of(
        "x",
        tools=[
            {
                "type": "function",
                "function": {
                    "name": "search",
                    "parameters": {
                        "type": "object",
                        "properties": {"k": {"type": "integer", "enum": [1, 2, 3]}},
                    },
                },
            }
        ],
    ),
    "an embedding": json.dumps(
        {
            "model": "text-embed",
            "input": ["a person has a phone number"],
            "encoding_format": "float",
        }
    ).encode(),
    "URLs and hashes": body_of(
        "See https://example.com/a?b=c%20d&amp;e sha512-0AbLicM2x9 "
        "and 26c446d2-65a9-4eaa-9a70-53da2aded653"
    ),
    "JSON in a string": body_of('{"id": 12, "list": [1, 2, 3, 4, 5, 6]}'),
    "other scripts": body_of("Η Αθήνα και η Москва, 東京"),
    "an initial": body_of("Section T. and item S."),
    "nothing": b"",
}


@pytest.mark.parametrize("kind", list(HONEST))
def test_an_honest_request_passes(guard: Guard, kind: str) -> None:
    """The backstop stays out of the way of what holds no original."""
    headers = [*JSON_TYPE, ("authorization", "Bearer sk-abc"), ("user-agent", "OpenAI/Python 3.3")]
    guard.check("POST", URL, headers, HONEST[kind])


def test_at_least_twenty_disguises() -> None:
    """The table is as long as it is meant to be."""
    assert len(DISGUISES) >= 20


def test_a_template_is_exempt_as_it_is_and_no_further(guard: Guard) -> None:
    """Our constant may hold a name; one letter more or less and it may not."""
    guard.check("POST", URL, JSON_TYPE, body_of(SYSTEM))
    with pytest.raises(BoundaryRefused):
        guard.check("POST", URL, JSON_TYPE, body_of(SYSTEM.replace("Never", "Ever")))


def test_nothing_is_matched_across_a_cut() -> None:
    """What stands on two sides of a template is not one name."""
    guard = Guard(originals=[(EntityType.ADDRESS, "Heather Lane")], templates=frozenset({"{of}"}))
    guard.check("POST", URL, JSON_TYPE, body_of("heather{of}lane"))
    with pytest.raises(BoundaryRefused):
        guard.check("POST", URL, JSON_TYPE, body_of("heather lane"))


def test_what_protecting_let_through_is_not_refused() -> None:
    """A word that evidence released in this scope passes; elsewhere it is refused."""
    originals = [(EntityType.PERSON, "Grace")]
    body = body_of("They said Grace before dinner.")
    Guard(originals=originals, released=frozenset({"grace"})).check("POST", URL, JSON_TYPE, body)
    with pytest.raises(BoundaryRefused):
        Guard(originals=originals).check("POST", URL, JSON_TYPE, body)


def test_nothing_releases_a_strong_form() -> None:
    """What proves its subject by itself is refused, whatever protecting let through."""
    guard = Guard(originals=[(EntityType.PERSON, NAME)], released=frozenset({"thorsrud"}))
    with pytest.raises(BoundaryRefused):
        guard.check("POST", URL, JSON_TYPE, body_of("Ask Thorsrud."))


def test_html_and_percent_reach_a_fixed_point(guard: Guard) -> None:
    """Three layers of escapes are taken off."""
    text = quote(html.escape(html.escape("Jos&eacute;")))
    with pytest.raises(BoundaryRefused):
        guard.check("POST", URL, JSON_TYPE, body_of(text))
