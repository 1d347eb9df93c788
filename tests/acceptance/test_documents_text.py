"""What text comes as: characters that no database holds, encodings that nobody declared."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest

from rag.testing.noleak import assert_no_leak, assert_seen
from rag.testing.stub import frame

PERSON = "Beatrice Lockhart"
PHONE = "07700 900457"
TAIL = "Page 2 says that the ferry bell is polished on Fridays."

ODD = {
    "NUL": "\x00",
    "start of heading": "\x01",
    "vertical tab": "\x0b",
    "escape": "\x1b",
    "delete": "\x7f",
    "a C1 control": "\x85",
    "half a surrogate pair": "\ud800",
    "the other half": "\udfff",
    "a noncharacter": "\uffff",
    "a mark within": "\ufeff",
    "a line separator": "\u2028",
    "a soft hyphen": "\u00ad",
    "a private character": "\ue000",
}


def encoded(text: str) -> bytes:
    """UTF-8; a half surrogate as no encoder writes it."""
    return text.encode("utf-8", "surrogatepass")


def as_json(body: dict[str, Any]) -> dict[str, Any]:
    """A request whose odd characters travel as JSON escapes."""
    return {
        "content": json.dumps(body).encode(),
        "headers": {"content-type": "application/json"},
    }


def upload(door: str, odd: str, collection: str) -> dict[str, Any]:
    """A request with the odd character at one of the places where text comes in."""
    text = f"The boiler report of deck 3{odd} is signed. {TAIL}"
    plain = f"The boiler report is signed. {TAIL}"
    if door == "text":
        return as_json({"text": text, "source": "boiler.txt", "collection": collection})
    if door == "file":
        file = ("boiler.txt", encoded(text), "text/plain")
        return {"files": {"file": file}, "data": {"collection": collection}}
    if door == "markdown":
        file = ("boiler.md", encoded(f"# Boiler{odd}\n\n{text}"), "text/markdown")
        return {"files": {"file": file}, "data": {"collection": collection}}
    if door == "metadata":
        metadata = {"place": f"deck{odd} 3", f"note{odd}": "y", "all": [f"a{odd}"]}
        body = {"text": plain, "source": "boiler.txt", "collection": collection}
        return as_json({**body, "metadata": metadata})
    if door == "form":
        file = ("boiler.txt", plain.encode(), "text/plain")
        metadata = json.dumps({"place": f"deck{odd} 3"})
        return {"files": {"file": file}, "data": {"collection": collection, "metadata": metadata}}
    return as_json({"text": plain, "source": f"boiler{odd}.txt", "collection": collection})


DOORS = ("text", "file", "markdown", "metadata", "form", "source")


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("odd", ODD.values(), ids=ODD)
def test_an_odd_character_is_taken_or_refused(
    service: Any, stub: Any, collection: str, odd: str, door: str
) -> None:
    """Wherever it stands: stored and found, or a 4xx of ours; never an error 500."""
    reply = service.client.post("/documents", **upload(door, odd, collection))
    assert reply.status_code in {201, 400, 422}, reply.text
    if reply.status_code != 201:
        assert reply.json()["error"]["code"] in {"invalid", "bad_request", "malformed"}
        return
    answer = service.ask("When is the ferry bell polished?", collection=collection)
    assert "Fridays" in answer["answer"]
    assert [one["source"] for one in answer["sources"]] != []
    stub.assert_called()


def test_plain_nul_bytes_are_taken(service: Any, stub: Any, collection: str) -> None:
    """A NUL in a text or in a file does not keep the document out."""
    for door in ("text", "file", "metadata", "form"):
        reply = service.client.post("/documents", **upload(door, "\x00", f"{collection}-{door}"))
        assert reply.status_code == 201, (door, reply.text)


@pytest.mark.parametrize(
    "odd", [c for n, c in ODD.items() if n in {"NUL", "a soft hyphen", "a mark within"}], ids=ascii
)
def test_an_odd_character_hides_nobody(service: Any, stub: Any, collection: str, odd: str) -> None:
    """A name beside or around such a character does not leave, and comes back."""
    text = (
        f"The ferry office{odd}. The key of the wheelhouse is held by {PERSON}{odd} since May. "
        f"Call{odd} {PHONE}{odd} for it."
    )
    stub.script.answer = frame("wheelhouse is held by ", " since May", "It is {}.")
    service.add(text, "keys.txt", collection)
    answer = service.ask("Who holds the key of the wheelhouse?", collection=collection)
    assert PERSON in answer["answer"]
    assert_no_leak(stub, ["Lockhart", "Beatrice", PHONE])
    assert_seen(stub, ["wheelhouse"])


TENANT = "Jürgen Schönfeld-Çelik"
LETTER = f"The tenant of the gatehouse is {TENANT} and pays in Gößweinstein on the third day."
WRITTEN = {
    "utf8.txt": LETTER.encode(),
    "utf8-mark.txt": LETTER.encode("utf-8-sig"),
    "utf16.txt": LETTER.encode("utf-16"),
    "utf16-le.txt": LETTER.encode("utf-16-le"),
    "utf16-be.txt": LETTER.encode("utf-16-be"),
    "utf16-be-mark.txt": b"\xfe\xff" + LETTER.encode("utf-16-be"),
    "utf32.txt": LETTER.encode("utf-32"),
    "cp1252.txt": LETTER.encode("cp1252"),
    "cp1254.txt": LETTER.encode("cp1254"),
    "latin1.txt": LETTER.encode("latin-1"),
    "cp1252.md": LETTER.encode("cp1252"),
    "utf16.csv": f"letter\n{LETTER}\n".encode("utf-16"),
    "cp1252.html": b"<meta charset=windows-1252><p>" + LETTER.encode("cp1252"),
    "utf8-mark.json": json.dumps({"letter": LETTER}, ensure_ascii=False).encode("utf-8-sig"),
}
UNREADABLE = {
    "random.txt": random.Random(7).randbytes(4_000),
    "random.md": random.Random(8).randbytes(900),
    "empty.txt": b"",
    "blank.txt": b" \n\t \r\n",
    "mark-only.txt": b"\xef\xbb\xbf",
    "nul-only.txt": b"\x00" * 64,
}
MOJIBAKE = {TENANT.encode(a).decode(b, "replace") for a, b in (
    ("utf-8", "cp1252"), ("utf-8", "latin-1"), ("cp1252", "utf-8"), ("cp1254", "cp1251"),
)}  # fmt: skip


def test_every_encoding_is_found_out_and_one_bad_file_stops_no_other(
    service: Any, stub: Any, collection: str
) -> None:
    """One batch: text of each encoding enters whole, what is no text is refused by itself."""
    batch = {**WRITTEN, **UNREADABLE}
    mixed = sorted(batch, key=lambda name: name[::-1])
    files = [("file", (name, batch[name], "application/octet-stream")) for name in mixed]
    reply = service.client.post("/documents", files=files, data={"collection": collection})
    assert reply.status_code == 201, reply.text
    outcomes = {one["source"]: one for one in reply.json()["documents"]}
    assert list(outcomes) == mixed
    assert {n: o["error"] for n, o in outcomes.items() if o["status"] == "ready"} == dict.fromkeys(
        [name for name in mixed if name in WRITTEN]
    )
    for name in UNREADABLE:
        assert outcomes[name]["status"] == "failed"
        assert outcomes[name]["error"]["code"] in {"malformed", "empty", "unsupported_format"}
    stub.script.answer = frame("the gatehouse is ", " and pays", "It is {}.")
    answer = service.ask("Who is the tenant of the gatehouse?", collection=collection, top_k=50)
    assert {one["source"] for one in answer["sources"]} == set(WRITTEN)
    assert [one for one in answer["sources"] if LETTER not in one["content"]] == []
    assert answer["answer"] == f"It is {TENANT}."
    assert_no_leak(stub, [TENANT, "Schönfeld", "Çelik", *MOJIBAKE])
    assert_seen(stub, ["The tenant of the gatehouse is"])


def test_a_byte_order_mark_is_no_part_of_the_first_word(
    service: Any, stub: Any, collection: str
) -> None:
    """The first word of a marked file is found and cited without it."""
    service.add("\ufeffLighterage is paid per barrel.", "fees.txt", collection)
    answer = service.ask("How is lighterage paid?", collection=collection, retriever="hybrid")
    assert answer["sources"][0]["content"] == "Lighterage is paid per barrel."


@pytest.mark.parametrize("name", UNREADABLE)
def test_a_single_unreadable_file_is_422(service: Any, collection: str, name: str) -> None:
    """Alone it is its own typed error, and nothing of it is listed."""
    reply = service.client.post(
        "/documents", files={"file": (name, UNREADABLE[name])}, data={"collection": collection}
    )
    assert reply.status_code == 422, reply.text
    assert service.client.get(f"/documents?collection={collection}").status_code == 404
