"""RTF: text with its tables, headers, footers, notes and comments; pictures and objects left out.

One pass over the tokens, no recursion: groups are a stack that is as deep as the limits allow.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Callable
from dataclasses import dataclass, replace

from rag.errors import Malformed, TooLarge
from rag.ingest.cleaning import clean, is_blank
from rag.ingest.limits import Limits
from rag.ingest.loaders.blocks import Blocks, one_line, tidy
from rag.ingest.loaders.read import Read

_TOKEN = re.compile(
    rb"\\([a-zA-Z]{1,32})(-?\d{1,10})? ?|\\'([0-9A-Fa-f]{2})|\\([^a-zA-Z])|([{}])|[\r\n]+"
    rb"|([^\\{}\r\n]+)",
    re.S,
)
_SILENT = frozenset({
    "fonttbl", "colortbl", "stylesheet", "pict", "object", "objdata", "themedata", "filetbl",
    "colorschememapping", "datastore", "latentstyles", "listtable", "listoverridetable", "rsidtbl",
    "generator", "xmlnstbl", "fldinst", "bkmkstart", "bkmkend", "revtbl", "mmathPr",
    "wgrffmtfilter", "pgptbl", "nonshppict", "blipuid", "atnref", "atrfstart", "atrfend",
    "atnid", "atndate", "atntime", "annotationtime", "pntxta", "pntxtb", "listtext", "sp",
    "private", "xe", "tc",
    "passwordhash", "userprops", "template", "operator", "company", "doccomm", "hlinkbase",
})  # fmt: skip
_SHOWN = frozenset({"shptxt", "shpinst", "annotation", "atnauthor", "footnote", "fldrslt"})
_APART = {"header": "head", "headerl": "head", "headerr": "head", "headerf": "head",
          "footer": "foot", "footerl": "foot", "footerr": "foot", "footerf": "foot",
          "footnote": "note", "annotation": "comment", "atnauthor": "by"}  # fmt: skip
_FACTS = {"title": "title", "author": "author", "subject": "subject", "keywords": "keywords"}
_SIGNS = {
    "tab": "\t", "line": "\n", "emdash": "—", "endash": "–", "bullet": "•", "lquote": "‘",
    "rquote": "’", "ldblquote": "“", "rdblquote": "”", "emspace": " ", "enspace": " ",
    "qmspace": " ", "softline": "\n", "page": "\n\n", "sect": "\n\n",
}  # fmt: skip
_CHARSETS = {
    0: "cp1252", 77: "mac_roman", 128: "cp932", 129: "cp949", 134: "gb18030", 136: "cp950",
    161: "cp1253", 162: "cp1254", 163: "cp1258", 177: "cp1255", 178: "cp1256", 186: "cp1257",
    204: "cp1251", 222: "cp874", 238: "cp1250",
}  # fmt: skip
_MOST_FONTS = 10_000


@dataclass(frozen=True, slots=True)
class _State:
    """What a group inherits and its end takes back."""

    kind: str = "body"
    silent: bool = False
    hidden: bool = False
    fallback: int = 1
    codec: str = ""
    in_table: bool = False
    level: int | None = None


def read_rtf(data: bytes, limits: Limits) -> Read:
    """The text of ``data``. Raises ``Malformed``, ``TooLarge``."""
    if not data.lstrip().startswith(b"{\\rtf"):
        raise Malformed("The document is no RTF.")
    return _Reader(limits).read(data)


class _Reader:
    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._blocks = Blocks(limits)
        self._state = _State()
        self._stack: list[_State] = []
        self._codec = "cp1252"
        self._fonts: dict[int, str] = {}
        self._font = 0
        self._raw = bytearray()
        self._pieces: dict[str, list[str]] = {}
        self._length = 0
        self._cells: list[str] = []
        self._row_gap = 2
        self._facts: dict[str, str] = {}
        self._apart: dict[str, dict[str, None]] = {"head": {}, "foot": {}, "note": {}}
        self._by = ""
        self._skip = 0
        self._starred = False

    def read(self, data: bytes) -> Read:
        at = 0
        end = len(data)
        while at < end:
            token = _TOKEN.match(data, at)
            if token is None:
                at += 1
                continue
            at = token.end()
            word, number, byte, sign, brace, text = token.groups()
            if word == b"bin":
                at += max(0, min(int(number or 0), end - at))
            elif brace:
                self._flush()
                self._open() if brace == b"{" else self._close()
            elif byte or text:
                self._bytes(bytes([int(byte, 16)]) if byte else text)
            elif word or sign:
                self._flush()
                if word:
                    self._word(word.decode("ascii"), None if number is None else int(number))
                else:
                    self._sign(sign)
        self._flush()
        self._paragraph()
        return self._whole()

    # groups

    def _open(self) -> None:
        self._skip, self._starred = 0, False
        if len(self._stack) >= 10 * self._limits.depth:
            raise TooLarge("The document nests too deeply.")
        self._stack.append(self._state)

    def _close(self) -> None:
        self._skip, self._starred = 0, False
        if not self._stack:
            return
        inner, self._state = self._state, self._stack.pop()
        if inner.kind != self._state.kind:
            self._leave(inner.kind)

    def _leave(self, kind: str) -> None:
        text = tidy("".join(self._pieces.pop(kind, ())))
        if not text:
            return
        if kind in self._apart:
            self._apart[kind][text] = None
        elif kind.startswith("fact:"):
            self._facts.setdefault(kind[5:], one_line(text)[:1_000])
        elif kind == "by":
            self._by = one_line(text)
        elif kind == "comment":
            by, self._by = self._by, ""
            self._text(f" [Comment{f' by {by}' if by else ''}: {one_line(text)}] ")

    # text

    def _bytes(self, data: bytes) -> None:
        if self._skip:
            taken = min(self._skip, len(data))
            self._skip -= taken
            data = data[taken:]
        if not self._state.silent and not self._state.hidden:
            self._raw += data

    def _flush(self) -> None:
        if self._raw:
            raw, self._raw = bytes(self._raw), bytearray()
            self._text(raw.decode(self._state.codec or self._codec, "replace"))

    def _text(self, text: str) -> None:
        if self._state.silent or self._state.hidden:
            return
        self._length += len(text)
        if self._length > 2 * self._limits.characters:
            raise TooLarge(f"The document is longer than {self._limits.characters} characters.")
        self._pieces.setdefault(self._state.kind, []).append(text)

    def _take(self) -> str:
        return "".join(self._pieces.pop("body", ()))

    def _paragraph(self) -> None:
        if self._state.kind != "body":
            self._text("\n")
            return
        if self._state.in_table:
            self._text(" ")
            return
        self._row()
        text = self._take()
        if self._state.level is not None and not is_blank(text):
            self._blocks.heading(text, self._state.level + 1)
        else:
            self._blocks.paragraph(_joined(text))

    def _cell(self) -> None:
        if self._state.kind == "body":
            self._cells.append(one_line(_joined(self._take())))
            if len(self._cells) > self._limits.columns:
                raise TooLarge(f"A table has more than {self._limits.columns} columns.")
        else:
            self._text(" | ")

    def _row(self) -> None:
        if any(self._cells):
            self._blocks.paragraph(" | ".join(self._cells).rstrip(" |"), self._row_gap)
            self._row_gap = 1
        elif self._row_gap == 1 and not self._state.in_table:
            self._row_gap = 2
        self._cells = []

    # control words

    def _sign(self, sign: bytes) -> None:
        if sign == b"*":
            self._starred = True
        elif sign in b"\\{}":
            self._bytes(sign)
        elif sign == b"~":
            self._text(" ")
        elif sign == b"_":
            self._text("-")
        elif sign in b"\r\n":
            self._paragraph()

    def _word(self, word: str, number: int | None) -> None:
        if self._skip and word != "u":
            self._skip = 0
        starred, self._starred = self._starred, False
        if word in _SILENT or (starred and word not in _SHOWN):
            if word != "fonttbl":
                self._state = replace(self._state, silent=True)
            else:
                self._state = replace(self._state, silent=True, kind="fonts")
        elif word in _APART and not self._state.silent:
            self._state = replace(self._state, kind=_APART[word], in_table=False, level=None)
        elif word in _FACTS and self._state.kind == "info":
            self._state = replace(self._state, kind=f"fact:{_FACTS[word]}")
        elif word == "info":
            self._state = replace(self._state, kind="info")
        elif word in _SIGNS:
            self._text(_SIGNS[word])
        elif word in _ACTIONS:
            _ACTIONS[word](self, number)

    def _unicode(self, number: int | None) -> None:
        self._skip = 0
        code = (number or 0) & 0xFFFF
        self._text(chr(code))
        self._skip = self._state.fallback

    def _charset(self, number: int | None) -> None:
        if self._state.kind == "fonts" and number in _CHARSETS:
            if len(self._fonts) > _MOST_FONTS:
                raise TooLarge("The document has too many fonts.")
            self._fonts[self._font] = _CHARSETS[number]

    def _use_font(self, number: int | None) -> None:
        self._font = number or 0
        if self._state.kind != "fonts":
            self._state = replace(self._state, codec=self._fonts.get(self._font, ""))

    def _use_codepage(self, number: int | None) -> None:
        name = "utf-8" if number == 65001 else f"cp{number}"
        try:
            self._codec = codecs.lookup(name).name
        except LookupError:
            return

    def _set(self, **changes: object) -> None:
        self._state = replace(self._state, **changes)  # type: ignore[arg-type]

    def _whole(self) -> Read:
        if self._apart["note"]:
            self._blocks.leave(0)
            self._blocks.heading("Footnotes", 1)
            for note in self._apart["note"]:
                self._blocks.paragraph(one_line(note))
        self._blocks.leave(0)
        for words in (*self._apart["head"], *self._apart["foot"]):
            self._blocks.paragraph(words)
        return self._blocks.read(self._facts)


_ACTIONS: dict[str, Callable[[_Reader, int | None], None]] = {
    "par": lambda r, _: r._paragraph(),
    "cell": lambda r, _: r._cell(),
    "nestcell": lambda r, _: r._text(" "),
    "row": lambda r, _: r._row(),
    "intbl": lambda r, _: r._set(in_table=True),
    "pard": lambda r, _: r._set(in_table=False, level=None),
    "outlinelevel": lambda r, n: r._set(level=n if n is not None and 0 <= n < 9 else None),
    "v": lambda r, n: r._set(hidden=n != 0),
    "deleted": lambda r, n: r._set(hidden=n != 0),
    "plain": lambda r, _: r._set(hidden=False),
    "uc": lambda r, n: r._set(fallback=max(0, min(n or 0, 16))),
    "u": lambda r, n: r._unicode(n),
    "f": lambda r, n: r._use_font(n),
    "fcharset": lambda r, n: r._charset(n),
    "ansicpg": lambda r, n: r._use_codepage(n),
    "mac": lambda r, _: setattr(r, "_codec", "mac_roman"),
    "pc": lambda r, _: setattr(r, "_codec", "cp437"),
    "pca": lambda r, _: setattr(r, "_codec", "cp850"),
}


def _joined(text: str) -> str:
    """Characters past the first plane come as two halves."""
    return clean(text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace"))
