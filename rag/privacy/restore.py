"""From placeholders back to originals, and never anything else (I3, I4, I12).

Only placeholders of this scope are restored. In a passage that the model quotes, the form
comes back that stood at that place: the place whose words to the left agree longest.
Words to the right do not count, so that a stream restores to the same bytes. Elsewhere
the fullest form is taken. Inside a link or image target or a tag nothing is restored,
unless that whole target stood so in a text of this scope.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from rag.privacy.links import targets
from rag.privacy.mapping import Subject, Subjects
from rag.privacy.shapes import Finder, Token, lookalikes

_CONTEXT_WORD = re.compile(r"[^\W_]+")
_CITATION = re.compile(
    r"(?:(?<=\n)|(?<![\s\S]))[ \t>*+\-\"'\u201c\u2018]{0,16}"
    r"(?:\[[0-9]{1,3}\]|[0-9]{1,3}(?![.)0-9]))(?=[:\s])"
)
"""A passage's number at the beginning of a line: what follows is its beginning."""
_QUOTE = 2
"""So many words to the left must agree before a place counts as quoted."""
_MOST_WORDS = 64
"""So many are compared at most."""


@dataclass(frozen=True, slots=True)
class Restored:
    """A text with its originals, and what looked like a placeholder but was not restored."""

    text: str = field(repr=False)
    unresolved: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Place:
    """Where in a protected text a placeholder stood, and in which form."""

    piece: int
    at: int  # index into the piece's context words
    ordinal: int  # which placeholder of the piece it is
    form: str = field(repr=False)


@dataclass(slots=True)
class Places:
    """The context words of every protected text, and the places of each placeholder."""

    _pieces: list[tuple[str, ...]] = field(default_factory=list, repr=False)
    _places: dict[str, list[Place]] = field(default_factory=lambda: defaultdict(list), repr=False)
    _seen: set[tuple[str, tuple[str, ...]]] = field(default_factory=set, repr=False)
    _targets: set[str] = field(default_factory=set, repr=False)

    def record(self, protected: str, placed: Sequence[tuple[int, str, str]]) -> None:
        """Remember one protected text: ``placed`` is ``(start, placeholder, form)`` in it."""
        known = (protected, tuple(form for _, _, form in placed))
        if known in self._seen:
            return
        self._seen.add(known)
        words: list[str] = []
        end = 0
        for ordinal, (start, placeholder, form) in enumerate(placed):
            words += context_words(protected[end:start])
            place = Place(len(self._pieces), len(words), ordinal, form)
            self._places[placeholder].append(place)
            words.append(placeholder)
            end = start + len(placeholder)
        self._pieces.append(tuple(words))
        tokens = [(start, start + len(name), name) for start, name, _ in placed]
        self._targets.update(target for _, _, target in _targets_of(protected, tokens))

    def knows_target(self, target: str) -> bool:
        return target in self._targets

    def form_at(self, placeholder: str, left: Left, last: Place | None) -> Place | None:
        """The place that ``left`` quotes, if it quotes one."""
        best, agreed = [], 0
        for place in self._places[placeholder]:
            length = self._agreement(place, left)
            if length > agreed:
                best, agreed = [place], length
            elif length == agreed:
                best.append(place)
        if agreed < _QUOTE:
            return None
        for place in best:
            if last and place.piece == last.piece and place.ordinal == last.ordinal + 1:
                return place
        if agreed >= _MOST_WORDS or len({place.form for place in best}) == 1:
            return best[0]
        return None

    def _agreement(self, place: Place, left: Left) -> int:
        """How many words agree; a common beginning of the text counts as a whole quotation."""
        words, said = self._pieces[place.piece], left.words
        most = min(place.at, len(said), _MOST_WORDS)
        for length in range(most):
            if words[place.at - 1 - length] != said[-1 - length]:
                return length
        begins = most == place.at < _MOST_WORDS and len(said) - most in left.beginnings
        return most + (_QUOTE if begins else 0)


@dataclass(slots=True)
class Left:
    """The words to the left, nearest last, and where among them a passage may begin."""

    words: list[str] = field(default_factory=list, repr=False)
    beginnings: set[int] = field(default_factory=lambda: {0})

    def read(self, text: str, start: int, end: int) -> None:
        """Go on to ``text[end]``."""
        for cited in _CITATION.finditer(text, start, end):
            self.words += context_words(text[start : cited.end()])
            self.beginnings.add(len(self.words))
            start = cited.end()
        self.words += context_words(text[start:end])


def context_words(text: str) -> list[str]:
    """What two texts are compared by: case-folded words."""
    return _CONTEXT_WORD.findall(text.casefold())


def _targets_of(
    text: str, tokens: Iterable[tuple[int, int, str]]
) -> Iterator[tuple[int, int, str]]:
    """``(start, end, target)`` with every placeholder in its own, unbent writing.

    Placeholders are taken for plain letters first: their brackets are no Markdown.
    """
    tokens = list(tokens)
    masked = list(text)
    for start, end, _ in tokens:
        masked[start:end] = "x" * (end - start)
    for start, end in targets("".join(masked)):
        inside = [token for token in tokens if start < token[1] and token[0] < end]
        if inside:
            yield start, end, _address_of(_rewritten(text, start, end, inside))


def _address_of(target: str) -> str:
    """What a target names, without the Markdown around it."""
    label, colon, rest = target.partition("]:")
    return (rest if colon and label.lstrip(" \t>*+-").startswith("[") else target).strip(
        "()<> \t\n"
    )


def _rewritten(text: str, start: int, end: int, inside: Sequence[tuple[int, int, str]]) -> str:
    parts, at = [], start
    for token_start, token_end, name in inside:
        parts += [text[at:token_start], name]
        at = token_end
    return "".join([*parts, text[at:end]])


class Restorer:
    """Restores texts of one scope."""

    def __init__(self, subjects: Subjects, places: Places, finder: Finder) -> None:
        self._subjects, self._places, self._finder = subjects, places, finder

    def restore(self, text: str, *, strict: bool, literals: frozenset[str]) -> Restored:
        """``text`` restored. ``literals``: look-alikes that the inputs themselves held."""
        tokens = self._known_tokens(text, strict)
        dead = self._dead(text, tokens)
        out: list[str] = []
        left = Left()
        last: Place | None = None
        at = 0
        for token, subject in tokens:
            left.read(text, at, token.start)
            out.append(text[at : token.start])
            if token in dead:
                out.append(text[token.start : token.end])
            else:
                place = self._places.form_at(subject.placeholder, left, last)
                last = place or last
                out.append((place.form if place else subject.fullest) + token.suffix)
            left.words.append(subject.placeholder)
            at = token.end
        out.append(text[at:])
        restored = [(t.start, t.end) for t, _ in tokens if t not in dead]
        unresolved = tuple(x for x in self.strangers(text, restored) if x not in literals)
        return Restored("".join(out), unresolved)

    def _known_tokens(self, text: str, strict: bool) -> list[tuple[Token, Subject]]:
        found = []
        for token in self._finder.find(text, strict=strict):
            subject = self._subjects.numbered(token.type, token.number)
            if subject is not None:
                found.append((token, subject))
        return found

    def _dead(self, text: str, tokens: Sequence[tuple[Token, Subject]]) -> frozenset[Token]:
        """Tokens inside a target that no text of this scope held."""
        named = [(token.start, token.end, subject.placeholder) for token, subject in tokens]
        ranges = [
            (start, end)
            for start, end, target in _targets_of(text, named)
            if not self._places.knows_target(target)
        ]
        return frozenset(
            token
            for token, _ in tokens
            if any(start < token.end and token.start < end for start, end in ranges)
        )

    def strangers(self, text: str, known: Sequence[tuple[int, int]]) -> Iterator[str]:
        """What looks like a placeholder outside of the ``known`` ranges, each once."""
        seen: set[str] = set()
        for start, end in self._lookalikes(text):
            if any(start < other_end and other < end for other, other_end in known):
                continue
            if (looks := text[start:end]) not in seen:
                seen.add(looks)
                yield looks

    def _lookalikes(self, text: str) -> list[tuple[int, int]]:
        found = lookalikes(text)
        for token in self._finder.find(text):
            if not any(start < token.end and token.start < end for start, end in found):
                found.append((token.start, token.end))
        return sorted(found)

    def knows(self, text: str, *, strict: bool, literals: frozenset[str]) -> bool:
        """Whether every placeholder-looking token is this scope's or stood in an input."""
        known = [(token.start, token.end) for token, _ in self._known_tokens(text, strict)]
        return all(looks in literals for looks in self.strangers(text, known))
