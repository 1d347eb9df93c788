"""What a mail is made of, whatever format it came in, and how it is written down.

A mail's head stands first, as ``From: ...`` lines; then its text; then every attachment
under a heading with its name. An attachment that cannot be read is named with the reason.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from rag.errors import DocumentRefused, TooLarge
from rag.ingest.limits import Limits
from rag.ingest.loaders.blocks import Blocks, one_line
from rag.ingest.loaders.read import Read

_MOST_VALUE = 1_000
_FACTS = {"From": "sender", "To": "recipients", "Subject": "title", "Date": "date"}


@dataclass(frozen=True, slots=True)
class Attachment:
    """A file in a mail."""

    name: str = field(repr=False)
    data: bytes = field(repr=False)
    media_type: str | None = None


@dataclass(frozen=True, slots=True)
class Mail:
    """Head lines in their order, the text, and what is attached."""

    head: Sequence[tuple[str, str]] = field(repr=False)
    body: Read = field(repr=False)
    attachments: Sequence[Attachment] = ()


ReadAttachment = Callable[[Attachment], Read]
"""Raises ``DocumentRefused`` kinds and ``TooLarge``."""


def write_mail(mail: Mail, limits: Limits, read_attachment: ReadAttachment) -> Read:
    """The whole mail as one document. Raises ``TooLarge``."""
    blocks = Blocks(limits)
    facts = _write(mail, blocks, limits, read_attachment)
    return blocks.read(facts)


def write_msg(mails: Sequence[Mail], limits: Limits, read_attachment: ReadAttachment) -> Read:
    """A mail and behind it those that came attached to it. Raises ``TooLarge``."""
    blocks = Blocks(limits)
    facts = _write(mails[0], blocks, limits, read_attachment)
    for mail in mails[1:]:
        subject = dict(mail.head).get("Subject", "")
        blocks.leave(0)
        blocks.heading(f"Attachment: {one_line(subject) or 'mail'}", 1)
        _write(mail, blocks, limits, read_attachment)
    return blocks.read(facts)


def _write(
    mail: Mail, blocks: Blocks, limits: Limits, read_attachment: ReadAttachment
) -> dict[str, str]:
    """Write ``mail`` down; gives what it says about itself."""
    facts: dict[str, str] = {}
    for name, value in mail.head:
        words = one_line(value)
        if words:
            blocks.line(f"{name}: {words}")
            if name in _FACTS:
                facts.setdefault(_FACTS[name], words[:_MOST_VALUE])
    blocks.include(mail.body)
    if len(mail.attachments) > limits.entries:
        raise TooLarge(f"The mail has more than {limits.entries} attachments.")
    for number, attachment in enumerate(mail.attachments, 1):
        blocks.leave(0)
        blocks.heading(f"Attachment: {one_line(attachment.name) or number}", 1)
        try:
            blocks.include(read_attachment(attachment))
        except DocumentRefused as error:
            blocks.paragraph(f"(This attachment was not read: {error.code}.)")
    if names := [one_line(a.name) for a in mail.attachments if a.name.strip()]:
        facts["attachments"] = ", ".join(names)[:_MOST_VALUE]
    return facts
