"""Ordinary casing for lines that have none, so that the name model can read them.

The model was trained on edited text and misses names in ``marit said`` or ``MARIT SAID``.
In a line without any capital, or with nothing but capitals, words of the dictionary are
made lower-case and all others capitalised; so are several words in capitals inside
ordinary text. Lengths never change, so offsets hold.
"""

from __future__ import annotations

import re

from rag.privacy.lexicon import is_common_word, is_given_name

_LINE = re.compile(r"[^\n]+")
_SHOUTED = re.compile(r"(?<![^\W_])[^\W\d_a-zß-ÿ]{2,}(?: [^\W\d_a-zß-ÿ]{2,}){1,3}(?![^\W_])")
_WORD = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)*")


def recase(text: str) -> tuple[str, list[tuple[int, int]]]:
    """The text with such lines re-cased, and their ranges."""
    parts: list[str] = []
    changed: list[tuple[int, int]] = []
    done = 0
    for line in _LINE.finditer(text):
        if not _caseless(line[0]):
            continue
        parts += (text[done : line.start()], _WORD.sub(_ordinary, line[0]))
        changed.append(line.span())
        done = line.end()
    text = "".join((*parts, text[done:]))
    return _SHOUTED.sub(_spoken, text), changed


def _spoken(match: re.Match[str]) -> str:
    """Two to four words in capitals inside ordinary text, when one of them is no word."""
    found = match[0]
    if all(is_common_word(word) or len(word) < 3 for word in found.split()):
        return found
    return _WORD.sub(_ordinary, found)


def _caseless(line: str) -> bool:
    """Whether the line has at least two words and one case only."""
    found = [w for w in _WORD.findall(line) if len(w) > 1]
    return len(found) > 1 and (
        not any(c.isupper() for c in line) or all(w.isupper() for w in found)
    )


def _ordinary(match: re.Match[str]) -> str:
    word = match[0]
    lower = word.lower()
    bare = lower.removesuffix("'s").removesuffix("’s")
    common = len(bare) < 3 or (is_common_word(bare) and not _surely_name(bare))
    plain = lower if common else lower[:1].upper() + lower[1:]
    return plain if len(plain) == len(word) else word


def _surely_name(word: str) -> bool:
    """Given names that the dictionary has too stay words: too many are (will, may, mark)."""
    return is_given_name(word) and not is_common_word(word)
