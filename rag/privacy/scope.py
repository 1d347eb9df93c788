"""A scope: one request's or one thread's mapping, with all that is done by it (I8).

Everything is bound to the instance; nothing is kept in a module. Whatever fails here
fails closed: no text is returned that was not protected whole (I2).
"""

from __future__ import annotations

import asyncio
from bisect import bisect_left
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from rag.errors import DetectorFailed, Unavailable
from rag.ports import AliasIndex, Allocator, Detector
from rag.privacy.forms import (
    FormHasher,
    Group,
    Words,
    groups_at,
    groups_of,
    long_runs,
    numbers,
    read_words,
)
from rag.privacy.guard import Guard
from rag.privacy.mapping import Mention, Subject, Subjects
from rag.privacy.names import suffix_after, title_before
from rag.privacy.policy import Policy
from rag.privacy.protect import (
    Found,
    KnownForms,
    Piece,
    disguised,
    disjoint,
    from_spans,
    hidden_runs,
    indexed_evidence,
    search,
    showing_lines,
    widened,
    write_out,
)
from rag.privacy.restore import Places, Restored, Restorer
from rag.privacy.shapes import DEFAULT_SHAPE, SHAPES, Finder, Shape, new_nonce
from rag.types import Alias, EntityType, Span

_LEAST_PLURAL = 4

_TYPE_WORDS = {
    "PERSON": "a person",
    "EMAIL": "an e-mail address",
    "PHONE": "a phone number",
    "ADDRESS": "an address",
    "PLACE": "a place",
    "ORGANISATION": "an organisation",
    "DATE": "a date",
    "ACCOUNT": "an account",
    "ID": "a number",
    "SECRET": "a secret",
    "NETWORK": "a network address",
    "LINK": "a link",
}


@dataclass(frozen=True, slots=True)
class Replaced:
    """What was at ``[start, end)`` of a piece, and what stands for it outside."""

    start: int
    end: int
    type: EntityType
    placeholder: str


@dataclass(frozen=True, slots=True)
class Protected:
    """A piece's protected text, and every place of the piece that was replaced, in order."""

    text: str
    replacements: tuple[Replaced, ...]


class Scope:
    """Protects and restores the texts of one request or thread."""

    def __init__(
        self,
        *,
        policy: Policy,
        detector: Detector,
        aliases: AliasIndex,
        allocator: Allocator,
        hasher: FormHasher,
        detect_timeout: float,
        nonce: str | None = None,
        shape: Shape = SHAPES[DEFAULT_SHAPE],
    ) -> None:
        self._policy, self._detector, self._aliases = policy, detector, aliases
        self._hasher, self._detect_timeout = hasher, detect_timeout
        self._nonce = nonce or new_nonce()
        self._shape = shape
        self._finder = Finder(shape, self._nonce)
        self._subjects = Subjects(shape, self._nonce, allocator)
        self._places = Places()
        self._restorer = Restorer(self._subjects, self._places, self._finder)
        self._literals: set[str] = set()
        self._released: set[str] = set()
        self._strict = False
        self._hashes: dict[str, int] = {}
        self._lock = asyncio.Lock()

    @property
    def nonce(self) -> str:
        """What makes this scope's placeholders its own; a thread keeps it."""
        return self._nonce

    async def detect(self, text: str) -> tuple[Span, ...]:
        """Spans of all types in ``text``, found in a worker thread.

        Raises ``DetectorFailed`` when the detector fails or takes too long, ``TooLarge``.
        """
        try:
            async with asyncio.timeout(self._detect_timeout):
                spans = await asyncio.to_thread(self._detector.detect, text)
        except TimeoutError:
            raise DetectorFailed("The detector did not answer in time.") from None
        if any(not 0 <= span.start < span.end <= len(text) for span in spans):
            raise DetectorFailed("The detector named a place outside of the text.")
        return tuple(spans)

    async def protect(self, pieces: Sequence[Piece]) -> list[str]:
        """The protected text of each piece, in their order.

        Pieces are raw text, never text that was protected already. All pieces of one call
        are linked together; pass everything that leaves in one request, so that what one
        piece gives away is protected in all of them.
        """
        return [written.text for written in await self.protect_detailed(pieces)]

    async def protect_detailed(self, pieces: Sequence[Piece]) -> list[Protected]:
        """As ``protect``, with what was replaced where, for those who want to look."""
        async with self._lock:
            read = [read_words(piece.text) for piece in pieces]
            taken = [self._given(piece) for piece in pieces]
            released = self._search(pieces, read, taken)
            if await self._add_known_elsewhere(pieces, read, taken):
                released |= self._search(pieces, read, taken)
            written = await self._write(pieces, taken, released)
            if self._add_what_the_guard_sees(pieces, taken, written):
                written = await self._write(pieces, taken, released)
            return written

    def _add_what_the_guard_sees(
        self, pieces: Sequence[Piece], taken: list[list[Found]], written: Sequence[Protected]
    ) -> bool:
        """Hide whole the lines in which the guard would see an original; whether there were any.

        The guard reads more disguises than are replaced in place (quoted-printable over line
        ends, spaced hexadecimal): what it would refuse does not leave, and the rest may.
        """
        guard = self.guard()
        shown = [n for n, one in enumerate(written) if guard.sees(one.text)]
        for n in shown:
            lines = showing_lines(pieces[n].text, taken[n], guard.sees)
            taken[n] = disjoint([*taken[n], *lines])
        return bool(shown)

    def _search(
        self, pieces: Sequence[Piece], read: Sequence[Words], taken: list[list[Found]]
    ) -> frozenset[str]:
        """Add every known form of every piece to ``taken``; the weak keys that were let through."""
        known = self._known_forms(pieces, taken)
        released: frozenset[str] = frozenset()
        for n, piece in enumerate(pieces):
            finding = search(piece, read[n], known, taken[n])
            taken[n] = disjoint([*taken[n], *finding.found])
            taken[n] = disjoint([*taken[n], *disguised(piece.text, known, taken[n])])
            released |= finding.released
        return released

    def _given(self, piece: Piece) -> list[Found]:
        """What the spans name, and literal text that looks like one of our placeholders."""
        literals = [
            Found(token.start, token.end, EntityType.OTHER, literal=True)
            for token in self._finder.find(piece.text, inside_words=True)
        ]
        return from_spans(piece.text, self._policy.select(piece.spans), literals)

    def _known_forms(self, pieces: Sequence[Piece], taken: Sequence[list[Found]]) -> KnownForms:
        """Every form of every subject of the scope and of these pieces."""
        originals = {
            (one.type, piece.text[one.start : one.end])
            for piece, found in zip(pieces, taken, strict=True)
            for one in found
            if not one.literal
        }
        originals |= {
            (s.type, text) for s in self._subjects if not s.literal for text in s.originals
        }
        return KnownForms(
            (kind, form)
            for kind, text in sorted(originals)
            for form in self._subjects.forms(kind, text)
        )

    async def _add_known_elsewhere(
        self, pieces: Sequence[Piece], read: Sequence[Words], taken: list[list[Found]]
    ) -> bool:
        """Forms known to the readable collections: first words, then whole groups.

        Whether there were any.
        """
        looked = [_uncovered(words, found) for words, found in zip(read, taken, strict=True)]
        counted = [list(numbers(p.text, w)) for p, w in zip(pieces, read, strict=True)]
        for n, piece in enumerate(pieces):
            counted[n] += hidden_groups(piece.text, taken[n])
        firsts = {
            words.keys[at] for words, places in zip(read, looked, strict=True) for at in places
        }
        firsts |= {key[:-1] for key in firsts if len(key) > _LEAST_PLURAL and key.endswith("s")}
        firsts |= {group.first_key for groups in counted for group in groups}
        if not firsts:
            return False
        hashes = await self._aliases.known_first(sorted({self._hash(key) for key in firsts}))
        begun = {key for key in firsts if self._hash(key) in hashes}
        if not begun:
            return False
        candidates = [
            _candidates(piece.text, words, places, groups, begun)
            for piece, words, places, groups in zip(pieces, read, looked, counted, strict=True)
        ]
        wanted = {self._hash(group.key) for groups in candidates for group in groups}
        known: dict[int, list[Alias]] = {}
        for alias in await self._aliases.known_forms(sorted(wanted)):
            if alias.type in self._policy.protect:
                known.setdefault(alias.form, []).append(alias)
        more = [
            self._of_aliases(*one, known) for one in zip(pieces, candidates, taken, strict=True)
        ]
        for n, found in enumerate(more):
            taken[n] += found
        return any(more)

    def _of_aliases(
        self,
        piece: Piece,
        candidates: Sequence[Group],
        taken: Sequence[Found],
        known: Mapping[int, list[Alias]],
    ) -> list[Found]:
        """Longest groups first; a weak form only with evidence of its own."""
        found: list[Found] = []
        for group in sorted(candidates, key=lambda g: g.start - g.end):
            aliases = known.get(self._hash(group.key), ())
            alias = next((a for a in aliases if not a.weak), aliases[0] if aliases else None)
            if alias is None or any(
                one.start < group.end and group.start < one.end for one in (*taken, *found)
            ):
                continue
            if not alias.weak or indexed_evidence(piece, group.start, group.end, group.key):
                found.append(Found(group.start, group.end, alias.type))
        return found

    def _hash(self, key: str) -> int:
        if key not in self._hashes:
            self._hashes[key] = self._hasher.hash(key)
        return self._hashes[key]

    async def _write(
        self, pieces: Sequence[Piece], taken: Sequence[Sequence[Found]], released: frozenset[str]
    ) -> list[Protected]:
        if self._shape.bare:
            taken = [
                disjoint([widened(piece.text, one) for one in found], touching=True)
                for piece, found in zip(pieces, taken, strict=True)
            ]
        mentions = [
            [(one, _mention(piece.text, one)) for one in found]
            for piece, found in zip(pieces, taken, strict=True)
        ]
        linked = await self._subjects.link(m for found in mentions for _, m in found)
        self._released |= released
        return [
            self._write_piece(piece, [(one, linked[m]) for one, m in found])
            for piece, found in zip(pieces, mentions, strict=True)
        ]

    def _write_piece(self, piece: Piece, named: Sequence[tuple[Found, Subject]]) -> Protected:
        protected, placed = write_out(piece.text, [(one, s.placeholder) for one, s in named])
        expected = [(start, start + len(name)) for start, name, _ in placed]
        if not self._strict:
            self._strict = expected != self._tokens(protected, strict=False)
        if self._strict and expected != self._tokens(protected, strict=True):
            raise Unavailable("A text cannot be protected so that it can be restored.")
        self._literals.update(self._restorer.strangers(protected, expected))
        self._places.record(protected, placed)
        return Protected(
            protected,
            tuple(Replaced(one.start, one.end, one.type, s.placeholder) for one, s in named),
        )

    def _tokens(self, text: str, *, strict: bool) -> list[tuple[int, int]]:
        return [(token.start, token.end) for token in self._finder.find(text, strict=strict)]

    def restore(self, text: str) -> Restored:
        """Originals for this scope's placeholders; whatever else looks like one is reported."""
        return self._restorer.restore(text, strict=self._strict, literals=frozenset(self._literals))

    def knows(self, text: str) -> bool:
        """Whether every token of ``text`` that looks like a placeholder can be restored."""
        return self._restorer.knows(text, strict=self._strict, literals=frozenset(self._literals))

    def type_words(self, protected: str) -> str:
        """``protected`` with "a person" and the like for placeholders, for a remote embedder."""
        parts, at = [], 0
        for token in self._finder.find(protected, strict=self._strict):
            parts += [protected[at : token.start], _TYPE_WORDS[token.type], token.suffix]
            at = token.end
        return "".join([*parts, protected[at:]])

    def guard(self, templates: frozenset[str] = frozenset()) -> Guard:
        """A guard that knows all subjects of this scope, as they are now."""
        return Guard(
            originals=[
                (subject.type, text) for subject in self._subjects for text in subject.originals
            ],
            released=frozenset(self._released),
            placeholders=frozenset(subject.placeholder for subject in self._subjects),
            templates=templates,
            forms=self._subjects.forms,
        )

    def masked(self) -> Mapping[str, str]:
        """Each placeholder with its original masked: first letter and length. Read-only."""
        return MappingProxyType(
            {s.placeholder: f"{s.fullest[:1]}••• ({len(s.fullest)})" for s in self._subjects}
        )

    def entities(self) -> dict[str, int]:
        """How many subjects of each type are protected so far."""
        return dict(Counter(str(s.type) for s in self._subjects if not s.literal))


def _uncovered(words: Words, taken: Sequence[Found]) -> list[int]:
    """The words that no original holds already."""
    places: list[int] = []
    at = 0
    for one in (*sorted(taken, key=lambda found: found.start), None):
        start = bisect_left(words.starts, one.start) if one else len(words)
        places += range(at, max(at, start))
        at = max(at, bisect_left(words.starts, one.end) if one else at)
    return places


def _mention(text: str, one: Found) -> Mention:
    """The original with what stands around it: a span leaves title and suffix outside."""
    original = text[one.start : one.end]
    if one.type is not EntityType.PERSON or one.literal:
        return Mention(one.type, original, one.literal)
    title, suffix = title_before(text, one.start), suffix_after(text, one.end)
    return Mention(one.type, original, title=title, suffix=suffix)


def hidden_groups(text: str, taken: Sequence[Found]) -> list[Group]:
    """What may be looked up of what is written in Base64, escapes or letter by letter.

    A group's place is the whole run that hides it.
    """
    found: list[Group] = []
    for start, end, inner in hidden_runs(text, taken):
        words = read_words(inner)
        groups = [*groups_of(inner, words), *numbers(inner, words)]
        found += [Group(start, end, g.words, g.first_key, g.key) for g in groups]
    return found


def _candidates(
    text: str, words: Words, places: Sequence[int], counted: Sequence[Group], begun: set[str]
) -> list[Group]:
    """Groups whose first word begins some known form."""
    found = [group for group in counted if group.first_key in begun]
    for at in places:
        key = words.keys[at]
        if key in begun:
            found += groups_at(words, at)
        if len(key) > _LEAST_PLURAL and key.endswith("s") and key[:-1] in begun:
            # "the Tarlunds": the family, its plural outside
            found.append(Group(words.starts[at], words.ends[at] - 1, 1, key[:-1], key[:-1]))
    found += [group for group in long_runs(text, words) if group.first_key in begun]
    return found
