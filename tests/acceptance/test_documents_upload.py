"""Uploads with metadata and a password: kept, found, protected; and one bad file of several."""

from __future__ import annotations

import hashlib
import io
import json
import zipfile
from typing import Any

import pytest

from rag.testing.noleak import assert_no_leak, assert_seen
from rag.testing.stub import frame

AUTHOR = "Philippa Thorncastle"
MAIL = "philippa@thorncastle.example"
PASSWORD = "heron löwe 7"
LINE = "The lantern room is swept by Rosalind Amberley on Tuesdays."


def send(service: Any, collection: str, *files: tuple[str, bytes], **fields: str) -> Any:
    parts = [("file", (name, data, "application/octet-stream")) for name, data in files]
    return service.client.post("/documents", files=parts, data={"collection": collection, **fields})


def outcomes(reply: Any) -> dict[str, tuple[str, str | None]]:
    """Name -> (status, code of the error)."""
    return {
        one["source"]: (one["status"], one["error"] and one["error"]["code"])
        for one in reply.json()["documents"]
    }


def listed(service: Any, collection: str) -> dict[str, dict[str, Any]]:
    found = service.client.get("/documents", params={"collection": collection}).json()
    return {one["source"]: one for one in found.get("documents", [])}


# metadata ---------------------------------------------------------------------------------


def test_metadata_is_kept_with_every_file(service: Any, stub: Any, collection: str) -> None:
    """One object goes with each file of the form, and is listed as it was given."""
    given = {"department": "harbour", "year": 2031, "signed": True, "author": AUTHOR}
    reply = send(
        service, collection, ("a.md", b"The east gate is green."), ("b.txt", b"The west gate."),
        metadata=json.dumps(given),
    )  # fmt: skip
    assert reply.status_code == 201, reply.text
    for one in listed(service, collection).values():
        assert {name: one["metadata"].get(name) for name in given} == given


def test_metadata_is_found_by_filters(service: Any, stub: Any, collection: str) -> None:
    """A filter on a field of an upload finds its documents and no others."""
    for year in (2030, 2031):
        text = f"The gate of {year} opens at dawn.".encode()
        send(service, collection, (f"{year}.md", text), metadata=json.dumps({"year": year}))
    found = service.ask("When does the gate open?", collection=collection, filters={"year": 2031})
    assert {one["source"] for one in found["sources"]} == {"2031.md"}
    none = service.ask("When does the gate open?", collection=collection, filters={"year": 1999})
    assert none["sources"] == []


def test_whom_metadata_names_does_not_leave(service: Any, stub: Any, collection: str) -> None:
    """Metadata is scanned as text is: its people are hidden in the question and in passages."""
    metadata = json.dumps({"author": AUTHOR, "contact": MAIL})
    text = b"The author of the tide table is Thorncastle and the ink is blue."
    send(service, collection, ("table.txt", text), metadata=metadata)
    stub.script.answer = frame("tide table is ", " and the ink", "It is {}.")
    question = f"What did {AUTHOR} ({MAIL}) write in the tide table?"
    answer = service.ask(question, collection=collection)
    assert answer["answer"] == f"It is {AUTHOR}."  # the fullest form that is known
    assert_no_leak(stub, ["Thorncastle", "Philippa", MAIL])
    assert_seen(stub, ["the ink is blue"])
    [document] = listed(service, collection).values()
    assert document["entities"].get("EMAIL") == 1


def test_changed_metadata_is_a_new_version(service: Any, stub: Any, collection: str) -> None:
    """The same bytes with other metadata replace the old; with the same they change nothing."""
    file = ("gate.md", b"The gate opens at dawn.")
    states = [
        outcomes(send(service, collection, file, metadata=json.dumps({"shelf": shelf})))
        for shelf in ("north", "north", "south")
    ]
    assert [one["gate.md"][0] for one in states] == ["ready", "unchanged", "replaced"]
    found = {
        shelf: service.ask("When?", collection=collection, filters={"shelf": shelf})["sources"]
        for shelf in ("north", "south")
    }
    assert (len(found["north"]), len(found["south"])) == (0, 1)


@pytest.mark.parametrize(
    "metadata",
    ["[]", "1", "{", '"text"', '{"a": NaN}', '{"a": "\\ud800"}', "[" * 5_000, "null"],
    ids=lambda text: text[:12],
)
def test_metadata_that_is_no_object_is_422(service: Any, collection: str, metadata: str) -> None:
    """The field is named, and none of the files enters."""
    reply = send(service, collection, ("a.md", b"The gate."), metadata=metadata)
    assert reply.status_code == 422, reply.text
    assert "metadata" in reply.json()["error"]["message"]
    assert listed(service, collection) == {}


def test_too_much_metadata_is_refused(service: Any, collection: str) -> None:
    """More than a document's metadata may be is a typed error of ours."""
    metadata = json.dumps({f"field {n}": "x" for n in range(500)})
    reply = send(service, collection, ("a.md", b"The gate."), metadata=metadata)
    assert (reply.status_code, reply.json()["error"]["code"]) == (413, "too_large")
    assert listed(service, collection) == {}


# passwords --------------------------------------------------------------------------------


def test_a_password_opens_an_encrypted_file(service: Any, stub: Any, collection: str) -> None:
    """With its password it is read, asked, and protected like any other."""
    reply = send(
        service, collection, ("locked.pdf", encrypted_pdf(LINE, "quay 12")), password="quay 12"
    )
    assert reply.status_code == 201, reply.text
    stub.script.answer = frame("is swept by ", " on Tuesdays", "It is {}.")
    answer = service.ask("Who sweeps the lantern room?", collection=collection)
    assert answer["answer"] == "It is Rosalind Amberley."
    assert_no_leak(stub, ["Rosalind", "Amberley", "quay 12"])


@pytest.mark.parametrize("fields", [{}, {"password": "wrong"}, {"password": ""}], ids=str)
def test_without_the_right_password_it_is_refused(
    service: Any, collection: str, fields: dict[str, str]
) -> None:
    """No password, a wrong one, an empty field: 422 ``encrypted``, and nothing is stored."""
    reply = send(service, collection, ("locked.pdf", encrypted_pdf(LINE, "quay 12")), **fields)
    assert (reply.status_code, reply.json()["error"]["code"]) == (422, "encrypted"), reply.text
    assert listed(service, collection) == {}


def test_a_password_is_kept_nowhere(service: Any, stub: Any, collection: str) -> None:
    """Neither in the database nor in what is printed, also when it was wrong."""
    locked = encrypted_pdf(LINE, "quay 12")
    send(service, collection, ("locked.pdf", locked), ("a.md", b"The gate."), password=PASSWORD)
    send(service, collection, ("locked.pdf", locked), password="quay 12")
    held = []
    with service.database() as database:
        tables = database.execute(
            "select tablename from pg_tables where schemaname = 'veilrag'"
        ).fetchall()
        for (table,) in tables:
            rows = database.execute(f'select t::text from veilrag."{table}" t').fetchall()
            text = "\n".join(row[0] for row in rows)
            held += [table for word in (PASSWORD, "quay 12") if word in text]
    assert held == []
    printed = service.output()
    assert "quay 12" not in printed
    assert "heron" not in printed


def test_a_password_harms_no_file_that_needs_none(service: Any, stub: Any, collection: str) -> None:
    """Plain files enter with it as without."""
    reply = send(
        service, collection, ("a.md", b"# Gate\n\nIt opens."), ("b.pdf", pdf(LINE)),
        ("c.csv", b"gate,hour\neast,6\n"), password="quay 12",
    )  # fmt: skip
    assert set(outcomes(reply).values()) == {("ready", None)}


# a batch ----------------------------------------------------------------------------------


def test_of_a_batch_the_good_files_enter(service: Any, stub: Any, collection: str) -> None:
    """Each bad file is refused by its own code, in its place; the others are found."""
    batch = {
        "one.md": (b"# Gate\n\nThe east gate opens at dawn.", None),
        "locked.pdf": (encrypted_pdf(LINE, "quay 12"), None),
        "other-lock.pdf": (encrypted_pdf(LINE, "another"), "encrypted"),
        "cut.pdf": (pdf(LINE)[:200], "malformed"),
        "drawing.pdf": (pdf(""), "no_text_layer"),
        "cut.docx": (b"PK\x03\x04" + bytes(200), "malformed"),
        "song.mp3": (b"ID3\x04" + bytes(300), "unsupported_format"),
        "program.exe": (b"MZ\x90\x00" + bytes(300), "unsupported_format"),
        "empty.txt": (b"", "empty"),
        "broken.json": (b'{"a": ', "malformed"),
        "bomb.docx": (bomb(), "too_large malformed"),
        "two.md": (b"# Gate\n\nThe west gate opens at dusk.", None),
    }
    reply = send(
        service, collection, *((n, data) for n, (data, _) in batch.items()), password="quay 12"
    )
    assert reply.status_code == 201, reply.text
    found = outcomes(reply)
    assert list(found) == list(batch)
    wrong = {
        name: found[name]
        for name, (_, codes) in batch.items()
        if (found[name][0] == "ready") != (codes is None)
        or (codes and found[name][1] not in codes.split())
    }
    assert wrong == {}
    good = {name for name, (_, code) in batch.items() if code is None}
    assert set(listed(service, collection)) == good
    for question, source in (("When does the west gate open?", "two.md"), ("dawn", "one.md")):
        answer = service.ask(question, collection=collection, top_k=1)
        assert answer["sources"][0]["source"] == source


def test_a_batch_of_bad_files_leaves_nothing(service: Any, collection: str) -> None:
    """None entered: the first one's status, all outcomes beside it, and no collection made."""
    reply = send(service, collection, ("empty.txt", b""), ("cut.pdf", pdf(LINE)[:200]))
    assert reply.status_code == 422
    assert reply.json()["error"]["code"] == "empty"
    assert outcomes(reply) == {
        "empty.txt": ("failed", "empty"), "cut.pdf": ("failed", "malformed"),
    }  # fmt: skip
    assert listed(service, collection) == {}


@pytest.mark.parametrize(
    "name",
    ["../../etc/passwd.txt", "/etc/hosts.txt", "C:\\notes\\a.txt", "a/../b.txt", "~root.txt",
     "con.txt", "$(id).txt", "'; drop table.txt", "%2e%2e%2fx.txt", "-rf.txt", ".hidden.txt"],
)  # fmt: skip
def test_a_file_name_is_data(service: Any, stub: Any, collection: str, name: str) -> None:
    """What looks like a path or a command is the document's name and nothing else."""
    reply = send(service, collection, (name, b"The bell rings at noon."))
    assert reply.status_code == 201, reply.text
    assert len(listed(service, collection)) == 1
    answer = service.ask("When does the bell ring?", collection=collection)
    assert answer["sources"][0]["content"] == "The bell rings at noon."


# files made here --------------------------------------------------------------------------


def pdf(line: str, trailer: bytes = b"", seal: Any = None, more: tuple[bytes, ...] = ()) -> bytes:
    """A PDF of one page with ``line`` on it, or with a drawing alone; ``seal`` enciphers."""
    drawn = f"BT /F1 12 Tf 20 100 Td ({line}) Tj ET" if line else "10 10 200 90 re S"
    stream = drawn.encode("latin-1")
    stream = seal(4, stream) if seal else stream
    objects = (
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 700 200] /Contents 4 0 R"
        b" /Resources << /Font << /F1 5 0 R >> >> >>",
        b"<< /Length %d >>\nstream\n%s\nendstream" % (len(stream), stream),
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
        *more,
    )
    out = bytearray(b"%PDF-1.4\n")
    places = []
    for number, body in enumerate(objects, start=1):
        places.append(len(out))
        out += b"%d 0 obj\n%s\nendobj\n" % (number, body)
    start, size = len(out), len(objects) + 1
    out += b"xref\n0 %d\n0000000000 65535 f \n" % size
    out += b"".join(b"%010d 00000 n \n" % place for place in places)
    out += b"trailer << /Size %d /Root 1 0 R %s >>\nstartxref\n%d\n%%%%EOF\n" % (
        size, trailer, start,
    )  # fmt: skip
    return bytes(out)


PADDING = bytes.fromhex("28bf4e5e4e758a4164004e56fffa01082e2e00b6d0683e802f0ca9fe6453697a")
IDENTITY, PERMISSIONS = b"an invented file", -4 & 0xFFFFFFFF


def encrypted_pdf(line: str, password: str) -> bytes:
    """The same, under PDF's first standard security handler (40-bit RC4): PDF 1.4, 3.5."""
    user = (password.encode("latin-1") + PADDING)[:32]
    owner = rc4(hashlib.md5(user).digest()[:5], user)
    numbers = PERMISSIONS.to_bytes(4, "little")
    key = hashlib.md5(user + owner + numbers + IDENTITY).digest()[:5]

    def seal(number: int, data: bytes) -> bytes:
        salted = key + number.to_bytes(3, "little") + b"\0\0"
        return rc4(hashlib.md5(salted).digest()[:10], data)

    handler = b"<< /Filter /Standard /V 1 /R 2 /O <%s> /U <%s> /P -4 >>" % (
        owner.hex().encode(), rc4(key, PADDING).hex().encode(),
    )  # fmt: skip
    identity = IDENTITY.hex().encode()
    trailer = b"/Encrypt 6 0 R /ID [<%s> <%s>]" % (identity, identity)
    return pdf(line, trailer, seal, (handler,))


def rc4(key: bytes, data: bytes) -> bytes:
    """The cipher, as its name says."""
    box = list(range(256))
    j = 0
    for i in range(256):
        j = (j + box[i] + key[i % len(key)]) % 256
        box[i], box[j] = box[j], box[i]
    out, i, j = bytearray(), 0, 0
    for byte in data:
        i = (i + 1) % 256
        j = (j + box[i]) % 256
        box[i], box[j] = box[j], box[i]
        out.append(byte ^ box[(box[i] + box[j]) % 256])
    return bytes(out)


def bomb() -> bytes:
    """An office file whose one part is a thousand times its size."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("[Content_Types].xml", "<Types/>")
        archive.writestr("word/document.xml", b"<w>" + b"a" * 400_000_000 + b"</w>")
    return out.getvalue()
