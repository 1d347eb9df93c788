"""EML and MSG: head, text and what is attached, as one document."""

from __future__ import annotations

import struct
from email.message import EmailMessage

import pytest

from rag.errors import Encrypted, Malformed, TooLarge
from rag.ingest.limits import Limits
from rag.ingest.loaders import load
from rag.ingest.loaders.msg_parts import _PRIMED
from rag.testing.office_files import compound, docx, msg_streams, paragraph
from rag.types import Document


def mail(text: str = "Please bring the keys.") -> EmailMessage:
    message = EmailMessage()
    message["From"] = "Tove Lind <tove@example.org>"
    message["To"] = "Ilse Brandt <ilse@example.org>"
    message["Bcc"] = "Arne <arne@example.org>"
    message["Subject"] = "Schlüssel für Größe"
    message["Date"] = "Mon, 04 Mar 2024 09:00:00 +0100"
    message.set_content(text)
    return message


def headings(document: Document) -> list[list[str]]:
    return [[document.content[s:e] for s, e in part.headings] for part in document.sections]


def test_a_mail_begins_with_its_head() -> None:
    """Who wrote to whom, when, about what; the same is metadata."""
    document = load("a.eml", mail().as_bytes())
    assert document.content == (
        "From: Tove Lind <tove@example.org>\nTo: Ilse Brandt <ilse@example.org>\n"
        "Bcc: Arne <arne@example.org>\nDate: Mon, 04 Mar 2024 09:00:00 +0100\n"
        "Subject: Schlüssel für Größe\n\nPlease bring the keys."
    )
    assert document.metadata["sender"] == "Tove Lind <tove@example.org>"
    assert document.metadata["title"] == "Schlüssel für Größe"


def test_an_attachment_stands_under_its_name() -> None:
    """It is a part of the same document, with its own headings below that."""
    message = mail()
    message.add_attachment(
        docx(paragraph("Rent", "H1") + paragraph("400.")),
        maintype="application",
        subtype="octet-stream",
        filename="Mietvertrag Größe.docx",
    )
    document = load("a.eml", message.as_bytes())
    assert document.content.endswith("Attachment: Mietvertrag Größe.docx\n\nRent\n\n400.")
    assert headings(document)[-1] == ["Attachment: Mietvertrag Größe.docx", "Rent"]
    assert document.metadata["attachments"] == "Mietvertrag Größe.docx"


def test_an_attachment_that_cannot_be_read_is_named() -> None:
    """The mail is read all the same, and says why the rest is not there."""
    message = mail()
    message.add_attachment(b"MZ\x90\x00", maintype="application", subtype="x", filename="a.exe")
    content = load("a.eml", message.as_bytes()).content
    assert content.endswith(
        "Attachment: a.exe\n\n(This attachment was not read: unsupported_format.)"
    )


def test_a_mail_in_a_mail_is_read_with_its_attachments() -> None:
    """Once; what lies deeper is only named."""
    third, second, first = mail("third"), mail("second"), mail("first")
    third.add_attachment("deepest", filename="deep.txt")
    second.add_attachment(third)
    first.add_attachment(second)
    content = load("a.eml", first.as_bytes()).content
    assert all(word in content for word in ("first", "second", "third", "deep.txt"))
    assert "deepest" not in content


def test_the_plain_text_of_a_mail_is_read_not_the_same_again_as_a_page() -> None:
    """Of alternatives one is read."""
    message = mail("the words")
    message.add_alternative("<p>the <b>words</b></p>", subtype="html")
    assert load("a.eml", message.as_bytes()).content.count("the words") == 1


def test_a_mail_of_only_a_page_is_read() -> None:
    """Its tags and what is hidden are left out, its pictures are not fetched."""
    message = mail()
    message.set_content("<p>the words</p><img src='http://127.0.0.1:9/x.png'>", subtype="html")
    assert load("a.eml", message.as_bytes()).content.endswith("\n\nthe words")


@pytest.mark.parametrize("charset", ["iso-8859-1", "utf-8", "windows-1252"])
def test_words_keep_their_letters_whatever_the_transfer(charset: str) -> None:
    """Quoted-printable, base64 and eight bits."""
    for transfer in ("quoted-printable", "base64", "8bit"):
        message = EmailMessage()
        message["From"] = "Müller <m@example.org>"
        message.set_content("Größe für Ilse", charset=charset, cte=transfer)
        assert "Größe für Ilse" in load("a.eml", message.as_bytes()).content


def test_raw_bytes_in_a_head_are_read() -> None:
    """Some write their names unencoded."""
    raw = "From: Jörg Äpfel <j@example.org>\nSubject: x\n\nwords".encode()
    assert load("a.eml", raw).content.startswith("From: Jörg Äpfel <j@example.org>")
    raw = raw.decode().encode("cp1252")
    assert load("a.eml", raw).content.startswith("From: Jörg Äpfel <j@example.org>")


def test_a_mail_saved_in_a_wide_encoding_is_read() -> None:
    """UTF-16 with a mark."""
    raw = "From: Jörg <j@example.org>\nSubject: x\n\nwörds".encode("utf-16")
    assert load("a.eml", raw).content.endswith("wörds")


@pytest.mark.parametrize(
    "kind",
    [
        'multipart/encrypted; boundary=x; protocol="application/pgp-encrypted"',
        "application/pkcs7-mime; smime-type=enveloped-data; name=smime.p7m",
    ],
)
def test_an_enciphered_mail_is_encrypted(kind: str) -> None:
    """Its head alone is not passed off as the mail."""
    with pytest.raises(Encrypted):
        load("a.eml", f"From: a@example.org\nContent-Type: {kind}\n\n--x\n\nabc\n--x--\n".encode())


def test_a_mail_has_no_more_parts_than_allowed() -> None:
    """Parts are counted before they are read."""
    body = "--x\n\nhi\n" * 50
    raw = f"From: a@example.org\nContent-Type: multipart/mixed; boundary=x\n\n{body}--x--\n"
    with pytest.raises(TooLarge):
        load("a.eml", raw.encode(), limits=Limits(entries=20))


# -- MSG ------------------------------------------------------------------------------

FIELDS = {
    "0037": "Keys",
    "1000": "Please bring them.",
    "0C1A": "Tove Lind",
    "0C1F": "tove@example.org",
    "0E04": "Ilse Brandt",
}


def test_an_outlook_mail_is_read() -> None:
    """Head, text, and attachments under their names."""
    data = compound(
        msg_streams(FIELDS, [("note.txt", b"the note"), ("long.txt", b"word " * 2_000)])
    )
    document = load("a.msg", data)
    assert document.content.startswith(
        "From: Tove Lind <tove@example.org>\nTo: Ilse Brandt\nSubject: Keys\n\nPlease bring them."
        "\n\nAttachment: note.txt\n\nthe note\n\nAttachment: long.txt\n\nword word"
    )
    assert document.metadata["attachments"] == "note.txt, long.txt"


def test_a_mail_in_an_outlook_mail_is_read() -> None:
    """With what is attached to it."""
    inner = msg_streams(
        {"0037": "Inner", "1000": "Inner words"}, [("n.txt", b"deep")], embedded=True
    )
    content = load("a.msg", compound(msg_streams(FIELDS, [("fwd", inner)]))).content
    assert all(word in content for word in ("Attachment: Inner", "Inner words", "deep"))


def test_an_outlook_mail_of_only_rich_text_is_read() -> None:
    """RTF in its own compression (MS-OXRTFCP): literals, and references to what was before."""
    rtf = rb"{\rtf1\ansi Words of Ilse}"
    body = bytearray()
    for at in range(0, len(rtf), 8):
        body += b"\0" + rtf[at : at + 8]
    packed = struct.pack("<IIII", len(body) + 12, len(rtf), 0x75465A4C, 0) + bytes(body)
    fields = {"0037": "Keys", "1009": packed}
    assert load("a.msg", compound(msg_streams(fields))).content.endswith("Words of Ilse")
    # the window begins with words that most texts hold: a reference takes five of them
    head = _PRIMED.index(b"{\\rtf1")
    token = struct.pack(">H", head << 4 | (6 - 2))
    body = b"\x01" + token + b"\\ansi W" + b"\0" + b"ords}"
    packed = struct.pack("<IIII", len(body) + 12, 6 + 12, 0x75465A4C, 0) + body
    assert load("a.msg", compound(msg_streams({"1009": packed}))).content == "Words"


def test_a_damaged_outlook_mail_is_malformed() -> None:
    """Rich text that says it is packed and is not."""
    with pytest.raises(Malformed):
        load(
            "a.msg", compound(msg_streams({"1009": struct.pack("<IIII", 30, 10, 7, 0) + b"x" * 20}))
        )
