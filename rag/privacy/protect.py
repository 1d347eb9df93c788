"""Finding what must not leave in a text, and writing placeholders in its place (I1).

Besides its own spans, a text is searched for every form of every subject that the scope
knows. A *weak* form (also a common word or a place, or very short) needs evidence of its
own at the place where it stands, for else "Washington" and "May" would vanish everywhere:

- a title stands before it ("Ms May"), or
- its subject stands in this scope, by a fuller form or by just this one, and here it is
  capitalised and nothing speaks against it.

What speaks against it: a span here says that it is a place, an organisation or a date; a
preposition of time before a word of the calendar, or of place before a place ("in May",
"from Washington"); a number beside it ("5 May"); a common word at the beginning of a
sentence or in a line of capitals. What was let through so is *released*: the guard does not
refuse on it in this scope.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from rag.privacy.decode import Unreadable, layers
from rag.privacy.forms import Form, Words, read_keys, read_words, start_of_words
from rag.privacy.lexicon import is_ambiguous_title, is_common_word, is_title, words
from rag.types import EntityType, Span

if TYPE_CHECKING:
    from presidio_anonymizer import AnonymizerEngine

_SPEAKS_AGAINST = frozenset(
    {EntityType.PLACE, EntityType.ORGANISATION, EntityType.DATE, EntityType.BIRTH_DATE}
)
_PLACE_BEFORE = words("in at from near to of via through around outside inside across")
_TIME_BEFORE = words(
    "in by since until till during this next last every each early late mid before after of on"
)
_CALENDAR = words(
    "january february march april may june july august september october november december "
    "monday tuesday wednesday thursday friday saturday sunday spring summer autumn winter "
    "easter christmas"
)
_POSSESSIVE = re.compile(r"['\u2019\u2018\u02bc](?:s|S)?\Z")
_SENTENCE_END = re.compile(r"(?:^|[.!?:;\n\u2026][\"')\]\u201d\u2019]*\s*|[\n>*#|\-\u2022]\s*)\Z")
_RUN = re.compile(r"[^\s\"',()<>\[\]{}|]+")
_LINE_END = re.compile(r"\n")
_TOO_DEEP = "\U00010381"
_MOST_LINES = 3
CUT = " \U00010380 "
"""A letter of a dead script: a word of its own, so that no match reaches across it."""
SPELLED = re.compile(r"(?<![^\W_])(?:[^\W_][^\w\n]{1,2}|[^\W_]_){3,}[^\W_](?![^\W_])")
"""A word letter by letter: ``T-A-R-L-U-N-D``, ``T. a. r. l``."""
_TITLE_BEFORE = re.compile(r"([^\W_]+)\.?\s{1,2}\Z")
_WORD_BEFORE = re.compile(r"([^\W_]+)[.,]?\s{1,3}\Z")
_NUMBER_AFTER = re.compile(r"\s{0,2}\d")
_JOINING = re.compile(r"[\s\-'\u2019\u2010-\u2015.,_/\"\u201c\u201d()&+@:]{0,4}")
_ABBREVIATION = 3
"""A full stop behind a word of so few letters may be an initial's or a title's."""
_SENTENCE_BREAK = re.compile(r"[.!?]\s|\n\s*\n")


@dataclass(frozen=True, slots=True)
class Piece:
    """Something variable that will leave, raw, with its known spans of all types."""

    text: str = field(repr=False)
    spans: tuple[Span, ...] = ()


@dataclass(frozen=True, slots=True)
class Found:
    """An original at ``text[start:end]``; ``literal`` text only looks like a placeholder."""

    start: int
    end: int
    type: EntityType
    literal: bool = False


@dataclass(frozen=True, slots=True)
class Known:
    """A form that the scope knows."""

    type: EntityType
    weak: bool
    derived: bool


class KnownForms:
    """All forms known to a scope, looked up by groups of words: one pass over a text."""

    def __init__(self, forms: Iterable[tuple[EntityType, Form]]) -> None:
        self._known: dict[str, Known] = {}
        self._compact: dict[str, EntityType] = {}
        lengths: dict[str, set[int]] = defaultdict(set)
        for kind, form in forms:
            if form.compact:
                if not form.weak:
                    self._compact.setdefault(form.key, kind)
                continue
            self._add(kind, form)
            lengths[form.key.split(" ", 1)[0]].add(form.key.count(" ") + 1)
        self._lengths = {first: sorted(sizes, reverse=True) for first, sizes in lengths.items()}

    def _add(self, kind: EntityType, form: Form) -> None:
        before = self._known.get(form.key)
        if before is None:
            self._known[form.key] = Known(kind, form.weak, form.derived)
        else:
            self._known[form.key] = Known(
                before.type, before.weak and form.weak, before.derived or form.derived
            )

    def find(self, text: str, read: Words) -> Iterator[tuple[int, int, Known, str]]:
        """``(start, end, form, key)``: longest first at every word, and all numbers."""
        yield from self._numbers(text, read)
        at = 0
        while at < len(read):
            size = 0
            sizes = list(self._sizes(read, at))
            for size in sizes:
                known = self._known[key := " ".join(read.keys[at : at + size])]
                if size > sizes[-1] and not self._holds_together(text, read, at, size):
                    continue
                yield read.starts[at], read.ends[at + size - 1], known, key
                if not known.weak:
                    break
            else:
                size = 1
                yield from self._plural(text, read, at)
            at += max(size, 1)

    def _sizes(self, read: Words, at: int) -> Iterator[int]:
        for size in self._lengths.get(read.keys[at], ()):
            if at + size <= len(read) and " ".join(read.keys[at : at + size]) in self._known:
                yield size

    @staticmethod
    def _holds_together(text: str, read: Words, at: int, size: int) -> bool:
        """Whether the words are one mention, not the end and the beginning of two sentences."""
        return all(
            _JOINING.fullmatch(text, read.ends[n], read.starts[n + 1])
            and (
                len(read.keys[n]) <= _ABBREVIATION
                or not _SENTENCE_BREAK.search(text, read.ends[n], read.starts[n + 1])
            )
            for n in range(at, at + size - 1)
        )

    def _plural(self, text: str, read: Words, at: int) -> Iterator[tuple[int, int, Known, str]]:
        """ "the Sorrels' garage": the family of a known surname, without its plural."""
        key, end = read.keys[at], read.ends[at]
        known = self._known.get(key[:-1]) if len(key) > 4 and key.endswith("s") else None
        if known is None or known.weak or known.type is not EntityType.PERSON:
            return
        family = text[end : end + 1] in ("'", "\u2019") or (at and read.keys[at - 1] == "the")
        if family and text[end - 1] in "sS":
            yield read.starts[at], end - 1, known, key[:-1]

    def _numbers(self, text: str, read: Words) -> Iterator[tuple[int, int, Known, str]]:
        if not self._compact:
            return
        stream = "".join(read.keys)
        offsets = start_of_words(read.keys)
        word_at = {offset: n for n, offset in enumerate(offsets)}
        for key, kind in self._compact.items():
            for first, last in find_compact(stream, key, word_at, kind is EntityType.PHONE):
                start, end = read.starts[first], read.ends[last]
                if start and text[start - 1] in "+\uff0b":
                    start -= 1
                yield start, end, Known(kind, False, False), key


def find_compact(
    stream: str, key: str, word_at: dict[int, int], phone: bool
) -> Iterator[tuple[int, int]]:
    """``(first word, last word)`` of each place where ``key`` stands between word boundaries.

    A phone number may have its trunk zero or country code glued before it.
    """
    at = stream.find(key)
    while at >= 0:
        last = word_at.get(at + len(key))
        first = word_at.get(at)
        if first is None and phone:
            first = _word_of_prefix(stream, at, word_at)
        if first is not None and last is not None:
            yield first, last - 1
        at = stream.find(key, at + 1)


def _word_of_prefix(stream: str, at: int, word_at: dict[int, int]) -> int | None:
    for size in range(1, 7):
        if at - size in word_at:
            prefix = stream[at - size : at].lstrip("0")
            return word_at[at - size] if prefix == "" or (prefix.isdigit() and size < 6) else None
    return None


@dataclass(frozen=True, slots=True)
class Finding:
    """What must be replaced in one text, and which weak forms were let through."""

    found: tuple[Found, ...]
    released: frozenset[str] = field(default=frozenset(), repr=False)


def search(piece: Piece, read: Words, known: KnownForms, taken: Sequence[Found]) -> Finding:
    """Known forms in ``piece`` outside of ``taken``, weak ones only with evidence."""
    found: list[Found] = []
    released: set[str] = set()
    covered = [(one.start, one.end) for one in taken]
    for start, end, form, key in known.find(piece.text, read):
        if any(a < end and start < b for a, b in covered):
            continue
        if form.weak and not has_evidence(piece, start, end, key):
            released.add(key)
            continue
        found.append(Found(start, end, form.type))
        covered.append((start, end))
    return Finding(tuple(found), frozenset(released))


def disguised(text: str, known: KnownForms, taken: Sequence[Found]) -> list[Found]:
    """Runs that spell a known form in Base64, in percent or other escapes, or letter by letter.

    Such a run is replaced whole: the guard reads what is inside of it, and would refuse.
    """
    return [
        Found(start, end, EntityType.OTHER)
        for start, end, inner in hidden_runs(text, taken)
        if inner == _TOO_DEEP or _names_known(inner, known)
    ]


def hidden_runs(text: str, taken: Sequence[Found]) -> Iterator[tuple[int, int, str]]:
    """``(start, end, what it says)`` of runs outside of ``taken`` in another writing."""
    bare = list(text)
    for one in taken:
        bare[one.start : one.end] = " " * (one.end - one.start)
    seen = "".join(bare)
    for spelled in SPELLED.finditer(seen):
        yield spelled.start(), spelled.end(), "".join(read_keys(spelled.group()))
    if not _inside(seen):
        return
    for run in _RUN.finditer(seen):
        for inner in _inside(run.group()):
            yield run.start(), run.end(), inner


def _inside(text: str) -> list[str]:
    try:
        return layers([text])[1:]
    except Unreadable:
        return [_TOO_DEEP]


def _names_known(inner: str, known: KnownForms) -> bool:
    return any(not form.weak for _, _, form, _ in known.find(inner, read_words(inner)))


def showing_lines(text: str, taken: Sequence[Found], sees: Callable[[str], bool]) -> list[Found]:
    """The fewest whole lines of ``text`` without which ``sees`` sees nothing any more.

    Lines alone first, then neighbours together, at last the whole text. ``taken`` is not
    shown to ``sees``.
    """
    cuts = [0, *(match.end() for match in _LINE_END.finditer(text)), len(text)]
    lines = [(a, b) for a, b in pairwise(cuts) if text[a:b].strip()]
    hidden: list[Found] = []
    for width in range(1, min(_MOST_LINES, len(lines)) + 1):
        for at in range(len(lines) - width + 1):
            start, end = lines[at][0], lines[at + width - 1][1]
            if sees(_shown(text, start, end, [*taken, *hidden])):
                hidden.append(_stripped(text, start, end))
        if not sees(_shown(text, 0, len(text), [*taken, *hidden])):
            return hidden
    return [_stripped(text, 0, len(text))]


def _shown(text: str, start: int, end: int, taken: Sequence[Found]) -> str:
    """``text[start:end]`` with a dead letter for everything that is taken."""
    parts, at = [], start
    for one in sorted(taken, key=lambda f: f.start):
        if one.end > at and one.start < end:
            parts += [text[at : max(at, one.start)], CUT]
            at = max(at, one.end)
    return "".join([*parts, text[at:end]])


def _stripped(text: str, start: int, end: int) -> Found:
    body = text[start:end]
    lead = len(body) - len(body.lstrip())
    return Found(start + lead, start + len(body.rstrip()), EntityType.OTHER)


def indexed_evidence(piece: Piece, start: int, end: int, key: str) -> bool:
    """Whether a weak form that only other documents know names its subject here.

    A place needs a title: somebody called Paris in some document hides no city. A common
    word needs what it needs within a scope.
    """
    if titled(piece.text, start):
        return True
    if all(is_common_word(word) for word in key.split()):
        return has_evidence(piece, start, end, key)
    return False


def has_evidence(piece: Piece, start: int, end: int, key: str) -> bool:
    """Whether a weak form at this place names its subject: see the module's docstring."""
    text = piece.text
    if titled(text, start):
        return True
    if not _capitalised(text[start:end]) or _called_thing(piece, start, end):
        return False
    before = _word_before(text, start)
    common = all(is_common_word(word) for word in key.split())
    if before.casefold() in (_TIME_BEFORE if key in _CALENDAR else () if common else _PLACE_BEFORE):
        return False
    if before.isdigit() or _NUMBER_AFTER.match(text, end):
        return False
    return not common or _no_mere_word(text, start, end, key)


def _no_mere_word(text: str, start: int, end: int, key: str) -> bool:
    """Whether the capital of a common word means more than where it stands."""
    if _in_capitals(text, start, end):
        return False
    begins = _SENTENCE_END.search(text, max(0, start - 6), start) is not None
    return not begins or " " in key or _POSSESSIVE.match(text, end, end + 2) is not None


def titled(text: str, start: int) -> bool:
    """Whether a title that means nothing else stands right before."""
    match = _TITLE_BEFORE.search(text, max(0, start - 24), start)
    return match is not None and is_title(match[1]) and not is_ambiguous_title(match[1])


def _word_before(text: str, start: int) -> str:
    match = _WORD_BEFORE.search(text, max(0, start - 24), start)
    return match[1] if match else ""


def _capitalised(text: str) -> bool:
    return all(word[0].isupper() or not word[0].isalpha() for word in re.findall(r"[^\W_]+", text))


def _called_thing(piece: Piece, start: int, end: int) -> bool:
    """A thing's name around one word; several words are a thing's only where they are all of it."""
    several = " " in piece.text[start:end].strip()
    return any(
        span.type in _SPEAKS_AGAINST
        and span.start <= start
        and end <= span.end
        and (not several or (span.start, span.end) == (start, end))
        for span in piece.spans
    )


def _in_capitals(text: str, start: int, end: int) -> bool:
    line = text[text.rfind("\n", 0, start) + 1 : start] + text[end:].split("\n", 1)[0]
    return text[start:end].isupper() and not any(char.islower() for char in line)


# --- spans -----------------------------------------------------------------------------------


def from_spans(text: str, spans: Iterable[Span], literals: Iterable[Found]) -> list[Found]:
    """Protected spans and literal look-alikes as originals that do not overlap.

    A possessive stays text. What overlaps becomes one original: nothing is left half in sight.
    """
    ranges = [_trimmed(text, span) for span in spans]
    return disjoint([*literals, *(one for one in ranges if one is not None)])


def disjoint(found: Iterable[Found], *, touching: bool = False) -> list[Found]:
    """Overlapping (and ``touching``) originals united; the type of the longest holds."""
    united: list[Found] = []
    for one in sorted(found, key=lambda f: (f.start, -f.end)):
        if united and one.start < united[-1].end + touching:
            last = united.pop()
            main = max(last, one, key=lambda f: f.end - f.start)
            end = max(last.end, one.end)
            literal = main.literal and (main.start, main.end) == (last.start, end)
            united.append(Found(last.start, end, main.type, literal))
        else:
            united.append(one)
    return united


def _trimmed(text: str, span: Span) -> Found | None:
    start, end = max(0, span.start), min(len(text), span.end)
    while start < end and text[start].isspace():
        start += 1
    while start < end and text[end - 1].isspace():
        end -= 1
    if span.type is EntityType.PERSON:
        possessive = _POSSESSIVE.search(text, start, end)
        if possessive and possessive.start() > start:
            end = possessive.start()
    return Found(start, end, span.type) if start < end else None


def widened(text: str, found: Found) -> Found:
    """To the next word boundary: for placeholders without brackets."""
    start, end = found.start, found.end
    while start and _ascii_word(text[start - 1]):
        start -= 1
    while end < len(text) and _ascii_word(text[end]):
        end += 1
    return Found(start, end, found.type, found.literal and (start, end) == (found.start, found.end))


def _ascii_word(char: str) -> bool:
    return char.isascii() and char.isalnum()


# --- writing out -----------------------------------------------------------------------------


def write_out(
    text: str, named: Sequence[tuple[Found, str]]
) -> tuple[str, list[tuple[int, str, str]]]:
    """``text`` with every original replaced, and ``(start, placeholder, form)`` of each.

    Presidio's engine replaces, with an operator of ours. Its merging is off: the entity type
    carries the placeholder and nothing overlaps, so it has no conflict to resolve.
    """
    if not named:
        return text, []
    from presidio_anonymizer.entities import (
        ConflictResolutionStrategy,
        OperatorConfig,
        RecognizerResult,
    )

    results = [
        RecognizerResult(entity_type=placeholder, start=one.start, end=one.end, score=1.0)
        for one, placeholder in named
    ]
    written = _engine().anonymize(
        text=text,
        analyzer_results=results,
        operators={"DEFAULT": OperatorConfig("veilrag")},
        conflict_resolution=ConflictResolutionStrategy.REMOVE_INTERSECTIONS,
        merge_entities_with_spaces=False,
    )
    placed: list[tuple[int, str, str]] = []
    shift = 0
    for one, placeholder in sorted(named, key=lambda item: item[0].start):
        placed.append((one.start + shift, placeholder, text[one.start : one.end]))
        shift += len(placeholder) - (one.end - one.start)
    return written.text, placed


def warm_up() -> None:
    """Load Presidio's engine (about 2 s): when the service opens, not in the first request."""
    _engine()


@cache
def _engine() -> AnonymizerEngine:
    """Presidio's engine with our operator: holds no text, so one serves all scopes."""
    from presidio_anonymizer import AnonymizerEngine
    from presidio_anonymizer.operators import Operator, OperatorType

    class Veil(Operator):  # type: ignore[misc,unused-ignore]
        """Writes the placeholder that the entity type names."""

        def operate(self, text: str, params: dict[str, Any] | None = None) -> str:
            return str((params or {})["entity_type"])

        def validate(self, params: dict[str, Any] | None = None) -> None:
            """Nothing to check: the placeholder is ours."""

        def operator_name(self) -> str:
            return "veilrag"

        def operator_type(self) -> OperatorType:
            return OperatorType.Anonymize

    engine = AnonymizerEngine()  # type: ignore[no-untyped-call]
    engine.add_anonymizer(Veil)
    return engine
