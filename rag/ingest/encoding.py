"""Bytes to text when nobody says how they were written.

A byte order mark, then what the document declares, then UTF-8, then what the bytes
make likely. Decoding is strict: bytes that are no text are ``Malformed``, never
text with holes in it.
"""

from __future__ import annotations

import codecs
import re

from rag.errors import Malformed

_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),  # before UTF-16, whose mark it begins with
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_CONTROLS = re.compile(r"[\x00-\x08\x0e-\x1a\x1c-\x1f\x7f]")
_FEW_CONTROLS = 8
_SAMPLE = 200_000

_PUNCTUATION = "\xa0“”„‘’‚–—…•€§°«»·©®™´`²³½×÷"
_WESTERN = _PUNCTUATION + "äöüßÄÖÜéèêëàâáãåæçñóòôõøúùûíìîïœÿ" + "ÉÈÊËÀÂÁÃÅÆÇÑÓÒÔÕØÚÙÛÍÌÎÏŒ¿¡ªº£šžŠŽ"
_TURKISH = _PUNCTUATION + "ğışĞİŞçÇöÖüÜâîûÂÎÛé"
_ICELANDIC = _WESTERN + "ðþýÐÞÝ"
_CENTRAL = (
    _PUNCTUATION + "ąćęłńóśźżĄĆĘŁŃÓŚŹŻáčďéěíňřšťúůýžÁČĎÉĚÍŇŘŠŤÚŮÝŽ"
    "őűŐŰöüÖÜăâîşţĂÂÎŞŢäëôßđĐĺľŕĹĽŔôÔÄËçÇ"
)
_LIKELY = (
    ("cp1252", frozenset(_WESTERN)),
    ("cp1254", frozenset(_TURKISH)),
    ("cp1252", frozenset(_ICELANDIC)),
    ("cp1250", frozenset(_CENTRAL)),
)
_ODD = re.compile(
    r"[a-zà-öø-ÿß-ÿąćęłńśźżčďěňřťůőűğış][À-ÖØ-ÞĄĆĘŁŃŚŹŻČĎĚŇŘŤŮŐŰĞİŞŠŽŒ]|[£€§°©®™]\w{2}"
)
_OTHERS = [
    "cp1251", "koi8_r", "cp1253", "cp1255", "cp1256", "cp1257", "cp1258", "cp874", "shift_jis",
    "euc_jp", "gb18030", "big5", "euc_kr", "cp1250", "cp1252", "cp1254", "mac_roman", "cp437",
]  # fmt: skip


def decode(data: bytes, declared: str | None = None) -> str:
    """The text of ``data``. Raises ``Malformed`` when it is none in any known encoding."""
    for mark, encoding in _MARKS:
        if data.startswith(mark):
            return _as_text(_strictly(data[len(mark) :], encoding))
    if wide := _wide(data):
        return _as_text(_strictly(data, wide))
    for encoding in _named(declared):
        text = _strictly(data, encoding)
        if text is not None:
            return _as_text(text)
    return _legacy(data)


def _strictly(data: bytes, encoding: str) -> str | None:
    try:
        return data.decode(encoding)
    except (UnicodeDecodeError, LookupError):
        return None


def _as_text(text: str | None) -> str:
    """A few stray control characters are text, many are a binary file."""
    if text is None or len(_CONTROLS.findall(text)) > max(_FEW_CONTROLS, len(text) // 20):
        raise Malformed("The document is no text in any known encoding.")
    return text


def _wide(data: bytes) -> str | None:
    """UTF-16 without a mark: in Western text every other byte is zero."""
    sample = data[:_SAMPLE]
    pairs = len(sample) // 2
    if pairs < 2 or len(data) % 2:
        return None
    if sample[1::2].count(0) > 0.4 * pairs and sample[0::2].count(0) < 0.1 * pairs:
        return "utf-16-le"
    if sample[0::2].count(0) > 0.4 * pairs and sample[1::2].count(0) < 0.1 * pairs:
        return "utf-16-be"
    return None


def _named(declared: str | None) -> list[str]:
    """What to try first. Text is never UTF-8 by chance where a Western encoding is declared."""
    try:
        codec = codecs.lookup(declared).name if declared else "utf-8"
    except (LookupError, ValueError):
        return ["utf-8"]
    if codec in {"utf-8", "ascii"} or codec.startswith(("utf-16", "utf-32", "utf-7")):
        return ["utf-8"]  # the bytes have no zeros: a wide encoding is declared in error
    if codec in {"iso8859-1", "cp1252"}:
        return ["utf-8", "cp1252"]  # browsers read Latin-1 as its superset
    return [codec, "utf-8"] if codec.startswith(_TEXT_CODECS) else ["utf-8"]


_TEXT_CODECS = (
    "cp", "iso8859", "koi8", "mac", "shift_jis", "euc_", "gb", "big5", "iso2022", "tis", "hz",
    "johab", "hp-roman", "kz", "ptcp",
)  # fmt: skip


def _legacy(data: bytes) -> str:
    data = data.removesuffix(b"\x1a")  # the end of a file of DOS
    if _CONTROLS.search(data[:_SAMPLE].decode("latin-1")):
        raise Malformed("The document is no text in any known encoding.")
    for encoding, letters in _LIKELY:
        text = _strictly(data, encoding)
        if text is not None and _plausible(text, letters):
            return text
    # for alphabets that the tables above do not hold
    from charset_normalizer import from_bytes

    best = from_bytes(data[:_SAMPLE], cp_isolation=_OTHERS).best()
    text = None if best is None else _strictly(data, best.encoding)
    if text is None:
        raise Malformed("The document is no text in any known encoding.")
    return text


def _plausible(text: str, letters: frozenset[str]) -> bool:
    return all(c < "\x80" or c in letters for c in set(text)) and not _ODD.search(text)
