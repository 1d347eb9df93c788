"""MSG: a mail as Outlook saves it, properties in the streams of a compound file (MS-OXMSG)."""

from __future__ import annotations

import datetime
import re
import struct
from collections.abc import Iterator

from rag.errors import Malformed
from rag.ingest.cleaning import clean, is_blank
from rag.ingest.encoding import decode
from rag.ingest.limits import Limits
from rag.ingest.loaders.compound import CompoundFile
from rag.ingest.loaders.html_text import declared_charset, read_html
from rag.ingest.loaders.parts import Attachment, Mail
from rag.ingest.loaders.read import Read
from rag.ingest.loaders.rtf_text import read_rtf

PROPERTIES = "__properties_version1.0"
_SUBJECT, _HEADERS, _BODY, _HTML, _RTF = "0037", "007D", "1000", "1013", "1009"
_SENDER_NAME, _SENDER_MAIL, _SENDER_SMTP = "0C1A", "0C1F", "5D01"
_TO, _CC, _BCC = "0E04", "0E03", "0E02"
_NAME, _MAIL, _SMTP, _KIND = "3001", "3003", "39FE", 0x0C15
_LONG_NAME, _SHORT_NAME, _DATA, _MIME = "3707", "3704", "3701", "370E"
_SENT, _DELIVERED, _CODEPAGES = 0x0039, 0x0E06, (0x3FFD, 0x3FDE)
_TICKS = datetime.datetime(1601, 1, 1)  # in UTC, as all of them
_ROLES = {1: "To", 2: "Cc", 3: "Bcc"}
_FOLDER = re.compile(r"(.*?)(__(?:attach|recip)_version1\.0_#[0-9A-Fa-f]{8})/")
_COMPRESSED, _PLAIN = 0x75465A4C, 0x414C454D


def parse_msg(file: CompoundFile, limits: Limits, folder: str = "") -> list[Mail]:
    """The mail in ``folder``, and after it those that are attached to it."""
    message = _Item(file, folder)
    attachments, within = [], []
    for place in message.folders("__attach"):
        item = _Item(file, place)
        name = item.text(_LONG_NAME) or item.text(_SHORT_NAME) or item.text(_NAME)
        if f"{place}{_substream(_DATA)}000D/{PROPERTIES}" in file:
            within.append(f"{place}{_substream(_DATA)}000D/")
        else:
            data = file.read(f"{place}{_substream(_DATA)}0102")
            attachments.append(Attachment(name, data, item.text(_MIME) or None))
    mails = [Mail(_head(message), _body(message, limits), attachments)]
    if not folder:
        for place in within:
            mails += parse_msg(file, limits, place)
    return mails


def _substream(property: str) -> str:
    return f"__substg1.0_{property}"


class _Item:
    """A message, recipient or attachment: a folder of streams."""

    def __init__(self, file: CompoundFile, folder: str) -> None:
        self._file, self._folder = file, folder
        self._fixed = dict(_fixed(file.read(f"{folder}{PROPERTIES}"), folder))

    def text(self, property: str) -> str:
        wide = self._file.read(f"{self._folder}{_substream(property)}001F")
        if wide:
            return clean(wide.decode("utf-16-le", "replace")).rstrip("\N{REPLACEMENT CHARACTER}")
        narrow = self._file.read(f"{self._folder}{_substream(property)}001E").rstrip(b"\0")
        return clean(decode(narrow, self._codepage())) if narrow.strip() else ""

    def bytes(self, property: str) -> bytes:
        return self._file.read(f"{self._folder}{_substream(property)}0102")

    def number(self, property: int) -> int:
        return self._fixed.get(property, 0) & 0xFFFFFFFF

    def moment(self, property: int) -> str:
        ticks = self._fixed.get(property, 0)
        try:
            moment = _TICKS + datetime.timedelta(microseconds=ticks // 10)
        except OverflowError:
            return ""
        return moment.strftime("%Y-%m-%d %H:%M UTC") if ticks else ""

    def folders(self, kind: str) -> list[str]:
        """Folders right below whose names begin with ``kind``, in order."""
        found = set()
        for path in self._file.streams:
            if path.startswith(self._folder):
                match = _FOLDER.match(path[len(self._folder) :])
                if match and not match[1] and match[2].startswith(kind):
                    found.add(f"{self._folder}{match[2]}/")
        return sorted(found)

    def _codepage(self) -> str | None:
        number = next(filter(None, map(self.number, _CODEPAGES)), 0)
        return "utf-8" if number == 65001 else f"cp{number}" if number else None

    def recipients(self) -> Iterator[tuple[str, str]]:
        for place in self.folders("__recip"):
            item = _Item(self._file, place)
            address = item.text(_SMTP) or item.text(_MAIL)
            yield _ROLES.get(item.number(_KIND), "To"), _person(item.text(_NAME), address)


def _fixed(data: bytes, folder: str) -> Iterator[tuple[int, int]]:
    """Numbers and dates of the properties' stream: entries of 16 bytes behind a head."""
    heads = 8 if "_#" in folder and not folder.endswith("000D/") else 24 if folder else 32
    for at in range(heads, len(data) - 15, 16):
        _, number, _, value = struct.unpack_from("<HHIQ", data, at)
        yield number, value


def _head(message: _Item) -> list[tuple[str, str]]:
    address = message.text(_SENDER_SMTP) or message.text(_SENDER_MAIL)
    head = [("From", _person(message.text(_SENDER_NAME), address))]
    listed = list(message.recipients())
    for role, shown in (("To", _TO), ("Cc", _CC), ("Bcc", _BCC)):
        people = [person for kind, person in listed if kind == role]
        head.append((role, ", ".join(people) or message.text(shown)))
    head.append(("Date", message.moment(_SENT) or message.moment(_DELIVERED)))
    head.append(("Subject", message.text(_SUBJECT)))
    return head


def _person(name: str, address: str) -> str:
    name, address = name.strip(), address.strip()
    if address and address.casefold() not in name.casefold() and not address.startswith("/"):
        return f"{name} <{address}>" if name else address
    return name


def _body(message: _Item, limits: Limits) -> Read:
    plain = message.text(_BODY)
    if not is_blank(plain):
        return Read(plain)
    page = message.bytes(_HTML) or message.text(_HTML).encode()
    if page.strip():
        return read_html(clean(decode(page, declared_charset(page))), limits)
    rich = message.bytes(_RTF)
    return read_rtf(_unpacked(rich, limits), limits) if rich else Read("")


def _unpacked(data: bytes, limits: Limits) -> bytes:
    """RTF out of its own compression (MS-OXRTFCP)."""
    if len(data) < 16:
        raise Malformed("The mail's text is damaged.")
    _, size, kind, _ = struct.unpack_from("<IIII", data)
    limits.admit_bytes(size)
    if kind == _PLAIN:
        return data[16 : 16 + size]
    if kind != _COMPRESSED:
        raise Malformed("The mail's text is damaged.")
    window = bytearray(_PRIMED.ljust(4096, b"\0"))
    write, written, at = len(_PRIMED), bytearray(), 16
    while at < len(data) and len(written) < size:
        control = data[at]
        at += 1
        for bit in range(8):
            if control >> bit & 1:
                if at + 1 >= len(data):
                    return bytes(written)
                token = data[at] << 8 | data[at + 1]
                at += 2
                start, length = token >> 4, (token & 15) + 2
                if start == write:
                    return bytes(written)
                for n in range(length):
                    byte = window[(start + n) % 4096]
                    written.append(byte)
                    window[write] = byte
                    write = (write + 1) % 4096
            else:
                if at >= len(data):
                    return bytes(written)
                window[write] = data[at]
                written.append(data[at])
                write = (write + 1) % 4096
                at += 1
    return bytes(written)


_PRIMED = (
    b"{\\rtf1\\ansi\\mac\\deff0\\deftab720{\\fonttbl;}{\\f0\\fnil \\froman \\fswiss \\fmodern "
    b"\\fscript \\fdecor MS Sans SerifSymbolArialTimes New RomanCourier{\\colortbl\\red0\\green0"
    b"\\blue0\r\n\\par \\pard\\plain\\f0\\fs20\\b\\i\\u\\tab\\tx"
)
