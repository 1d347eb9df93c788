"""EML: a mail as it was sent (RFC 5322, MIME), its head decoded, its attachments taken out.

Parsed by the standard library's tolerant parser. Nothing that an HTML body points to is
fetched. A mail whose text is enciphered is refused as ``Encrypted``.
"""

from __future__ import annotations

import email
import email.errors
import re
from collections.abc import Iterator
from email.header import decode_header
from email.message import Message
from email.policy import compat32
from typing import Any

from rag.errors import Encrypted, Malformed, TooLarge, VeilragError
from rag.ingest.cleaning import clean, is_blank
from rag.ingest.encoding import decode
from rag.ingest.limits import Limits
from rag.ingest.loaders.html_text import declared_charset, read_html
from rag.ingest.loaders.parts import Attachment, Mail
from rag.ingest.loaders.read import Read

_HEAD = ("From", "Sender", "Reply-To", "To", "Cc", "Bcc", "Date", "Subject")
_KNOWN = ("from", "to", "subject", "date", "received", "mime-version", "message-id", "sender")
_ENCIPHERED = frozenset({"multipart/encrypted", "application/pgp-encrypted"})
_SEALED = frozenset({"application/pkcs7-mime", "application/x-pkcs7-mime"})
_FIRST_LINE = re.compile(rb"[!-9;-~]+[ \t]*:|From ")
_DEPTH = 50
_MOST_VALUE = 20_000


def parse_mail(data: bytes, limits: Limits) -> Mail:
    """The mail in ``data``. Raises ``Encrypted``, ``Malformed``, ``TooLarge``."""
    message = _parsed(_as_bytes(data))
    if not any(name in message for name in _KNOWN):
        raise Malformed("The document is no mail that can be read.")
    parts = list(_leaves(message, limits))
    if any(part.get_content_type() in _ENCIPHERED for part in (message, *parts)):
        raise Encrypted
    if len(parts) == 1 and parts[0].get_content_type() in _SEALED:
        raise Encrypted
    body = _body(parts, limits)
    told = set(map(id, body.parts))
    attachments = [_attachment(part) for part in parts if id(part) not in told]
    raw = [(key.lower(), value) for key, value in message.raw_items()]
    head = [(name, _words(value)) for name in _HEAD for key, value in raw if key == name.lower()]
    return Mail(head, body.read, [a for a in attachments if a is not None])


def _as_bytes(data: bytes) -> bytes:
    """A mail that was saved in a wide encoding, as bytes again."""
    head = data[:200].lstrip(b"\xef\xbb\xbf\r\n\t ")
    if _FIRST_LINE.match(head):
        return data.removeprefix(b"\xef\xbb\xbf").lstrip()
    return decode(data).encode("utf-8")


def _parsed(data: bytes) -> Message:
    try:
        return email.message_from_bytes(data, policy=compat32)
    except (email.errors.MessageError, ValueError, LookupError, TypeError, IndexError):
        raise Malformed("The document is no mail that can be read.") from None
    except RecursionError:
        raise TooLarge("The mail nests too deeply.") from None


def _leaves(message: Message, limits: Limits) -> Iterator[Message]:
    """Parts that hold no others; an attached mail is one of them."""
    stack: list[tuple[Message, int]] = [(message, 0)]
    count = 0
    while stack:
        part, depth = stack.pop()
        count += 1
        if count > limits.entries or depth > _DEPTH:
            raise TooLarge("The mail has too many parts.")
        within = part.get_payload()
        if part.get_content_maintype() == "multipart" and isinstance(within, list):
            stack.extend((p, depth + 1) for p in reversed(within) if isinstance(p, Message))
        else:
            yield part


class _Body:
    """The text of a mail and the parts it was taken from, or that say the same."""

    def __init__(self, read: Read, parts: list[Message]) -> None:
        self.read, self.parts = read, parts


def _body(parts: list[Message], limits: Limits) -> _Body:
    """The first plain text, or the first page where there is none."""
    inline = [p for p in parts if p.get_content_disposition() != "attachment" and not _name(p)]
    plain = [p for p in inline if p.get_content_type() == "text/plain"]
    pages = [p for p in inline if p.get_content_type() == "text/html"]
    texts = [clean(_text(part)) for part in plain]
    if any(not is_blank(text) for text in texts):
        return _Body(Read("\n\n".join(texts)), [*plain, *pages])
    read = Read("")
    if pages:
        raw = _bytes(pages[0])
        declared = pages[0].get_content_charset() or declared_charset(raw)
        read = read_html(clean(decode(raw, declared)), limits) if raw.strip() else read
    return _Body(read, [*plain, *pages[:1]])


def _text(part: Message) -> str:
    raw = _bytes(part)
    return decode(raw, _charset(part)) if raw.strip() else ""


def _charset(part: Message) -> str | None:
    try:
        return part.get_content_charset()
    except (LookupError, ValueError, TypeError):
        return None


def _bytes(part: Message) -> bytes:
    try:
        payload: Any = part.get_payload(decode=True)
    except (ValueError, LookupError, TypeError):
        raise Malformed("A part of the mail is damaged.") from None
    return payload if isinstance(payload, bytes) else b""


def _name(part: Message) -> str:
    try:
        return _words(part.get_filename() or "")
    except (ValueError, LookupError, TypeError):
        return ""


def _attachment(part: Message) -> Attachment | None:
    """A part that is no text of the mail; a picture within the page is left out."""
    kind, name = part.get_content_type(), _name(part)
    if kind == "message/rfc822":
        within = part.get_payload()
        inner = within[0] if isinstance(within, list) and within else None
        data = inner.as_bytes(policy=compat32) if isinstance(inner, Message) else _bytes(part)
        return Attachment(name or "mail.eml", data, kind)
    if part.get_content_maintype() == "image" and part.get_content_disposition() != "attachment":
        return None
    data = _bytes(part)
    if not name and (not data.strip() or kind == "text/plain" or part.is_multipart()):
        return None
    return Attachment(name, data, kind)


def _words(value: object) -> str:
    """A head's value with its encoded words decoded, whatever they claim."""
    text = str(value)[:_MOST_VALUE]
    try:
        pieces = decode_header(text)
    except (email.errors.HeaderParseError, ValueError):
        return _repaired(text)
    found = []
    for piece, charset in pieces:
        if isinstance(piece, str):
            found.append(_repaired(piece))
            continue
        try:
            found.append(decode(piece, charset) if piece else "")
        except VeilragError:
            found.append(piece.decode("latin-1"))
    return "".join(found)


def _repaired(text: str) -> str:
    """Bytes past ASCII that stand raw in a head come as surrogates."""
    raw = text.encode("utf-8", "surrogateescape")
    try:
        return decode(raw) if raw.strip() else text
    except VeilragError:
        return raw.decode("utf-8", "replace")
