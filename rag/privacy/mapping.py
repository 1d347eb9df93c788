"""The mapping of one scope: which placeholder stands for which subject (I3).

One subject has one placeholder, two subjects never share one. Mentions of one call are
linked together, fullest names first, so the order of the texts does not matter; a mention
that could be two people becomes a subject of its own. Numbers come from the allocator and
are dealt out at random, so a placeholder tells nothing of its subject or of what came
first (I4). Whatever holds an original masks it in its ``repr`` (I6).
"""

from __future__ import annotations

import re
import secrets
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from ipaddress import ip_address

from rag.errors import Unavailable
from rag.ports import Allocator
from rag.privacy.forms import COMPACT, Form, compact_key, forms_of, phone_key, words_key
from rag.privacy.names import PersonName, parse_name
from rag.privacy.shadow import shadow
from rag.privacy.shapes import Shape
from rag.types import OUTSIDE_TYPE, EntityType

_BY_WORDS = frozenset(
    {
        EntityType.ADDRESS,
        EntityType.PLACE,
        EntityType.ORGANISATION,
        EntityType.DATE,
        EntityType.BIRTH_DATE,
    }
)
_BY_SHADOW = frozenset({EntityType.EMAIL, EntityType.USERNAME})


@dataclass(frozen=True, slots=True)
class Mention:
    """An original as it is written somewhere, with its type."""

    type: EntityType
    text: str = field(repr=False)
    literal: bool = False  # text that only looks like a placeholder: stands for itself
    title: str = field(default="", repr=False)  # what ``names.title_before`` says of the place
    suffix: str = field(default="", repr=False)  # what ``names.suffix_after`` says of it


@dataclass(eq=False, slots=True)
class Subject:
    """Whom or what originals name; ``placeholder`` is empty until a number is allocated."""

    type: EntityType
    placeholder: str = ""
    names: list[PersonName] = field(default_factory=list, repr=False)
    originals: dict[str, None] = field(default_factory=dict, repr=False)
    ambiguous: bool = False
    literal: bool = False

    @property
    def fullest(self) -> str:
        """The form that a restored text takes where no place decides."""
        return max(self.originals, key=_fullness) if self.names else max(self.originals, key=_size)

    @property
    def name(self) -> PersonName:
        return max(self.names, key=lambda name: name.fullness)

    @property
    def gender(self) -> str:
        return next((name.gender for name in self.names if name.gender), "")

    @property
    def suffix(self) -> str:
        return next((name.suffix for name in self.names if name.suffix), "")

    def add(self, mention: Mention, name: PersonName | None = None) -> None:
        self.originals.setdefault(mention.text)
        if name is not None and name not in self.names:
            self.names.append(name)


def _size(text: str) -> tuple[int, str]:
    return len(text), text


def _written(mention: Mention) -> tuple[object, ...]:
    return mention.type, mention.literal, mention.text, mention.title, mention.suffix


_UNCLEAN = re.compile(r"[0-9*`~\n,;]")


def _fullness(text: str) -> tuple[tuple[int, int], bool, int, bool, int, int, str]:
    """Most parts, no log-in or broken word, most letters, normal casing, without a title."""
    name = parse_name(text)
    cased = text != text.upper() and text != text.lower()
    *parts, letters = name.fullness
    clean = _UNCLEAN.search(text) is None and not (name.log_in and cased)
    return (parts[0], parts[1]), clean, letters, cased, -len(name.titles), len(text), text


class Subjects:
    """The subjects of one scope and their placeholders."""

    def __init__(self, shape: Shape, nonce: str, allocator: Allocator) -> None:
        self._shape, self._nonce, self._allocator = shape, nonce, allocator
        self._by_key: dict[str, Subject] = {}
        self._by_placeholder: dict[tuple[str, int], Subject] = {}
        self._forms: dict[tuple[EntityType, str], list[Form]] = {}
        self._people: list[Subject] = []
        self._names: dict[tuple[str, str, str], PersonName] = {}

    def __iter__(self) -> Iterator[Subject]:
        return iter(self._by_placeholder.values())

    def __len__(self) -> int:
        return len(self._by_placeholder)

    def numbered(self, type: str, number: int) -> Subject | None:
        """The subject of a placeholder, by its coarse type and number."""
        return self._by_placeholder.get((type, number))

    def forms(self, type: EntityType, text: str) -> list[Form]:
        """``forms_of``, computed once a scope."""
        slot = (type, text)
        if slot not in self._forms:
            self._forms[slot] = forms_of(type, text)
        return self._forms[slot]

    async def link(self, mentions: Iterable[Mention]) -> dict[Mention, Subject]:
        """The subject of each mention, known or new, every one with a placeholder.

        Mentions are linked as a set. Raises what the allocator raises; then nothing is
        linked, and no placeholder may leave.
        """
        ordered = sorted(
            set(mentions), key=lambda m: (m.type, m.literal, m.text, m.title, m.suffix)
        )
        names = {m: name for m in ordered if (name := self._name(m)) is not None}
        found = _People(self._people).link(names)
        keys = self._value_keys([m for m in ordered if m not in names])
        fresh: dict[str, Subject] = {}
        for mention, own in keys.items():
            known = [self._by_key.get(key) or fresh.get(key) for key in own]
            subject = next(filter(None, known), None) or Subject(
                mention.type, literal=mention.literal
            )
            found[mention] = subject
            for key in own:
                fresh.setdefault(key, subject)
        await self._number(found.values())
        self._by_key = fresh | self._by_key
        self._people += dict.fromkeys(p for m in names if (p := found[m]) not in self._people)
        for mention, subject in found.items():
            subject.add(mention, names.get(mention))
        return found

    def _name(self, mention: Mention) -> PersonName | None:
        """The name of a mention of a person, read once a scope."""
        if mention.literal or mention.type is not EntityType.PERSON:
            return None
        slot = (mention.text, mention.title, mention.suffix)
        name = self._names.get(slot)
        if name is None:
            name = self._names[slot] = parse_name(mention.text).placed(*slot[1:])
        return name if name.units else None

    def _value_keys(self, mentions: Sequence[Mention]) -> dict[Mention, tuple[str, ...]]:
        """What each mention is compared by, the best first, where it is not a person's name."""
        phones = [m.text for m in mentions if m.type is EntityType.PHONE]
        phones += [t for s in self if s.type is EntityType.PHONE for t in s.originals]
        countries: dict[str, set[str]] = defaultdict(set)
        for country, national in map(phone_key, phones):
            if country:
                countries[national].add(country)
        return {
            mention: _phone_keys(mention.text, countries)
            if mention.type is EntityType.PHONE and not mention.literal
            else (_value_key(mention),)
            for mention in mentions
        }

    async def _number(self, subjects: Iterable[Subject]) -> None:
        """Give new subjects numbers, dealt out at random."""
        fresh: dict[str, list[Subject]] = defaultdict(list)
        for subject in dict.fromkeys(subjects):
            if not subject.placeholder:
                fresh[OUTSIDE_TYPE[subject.type]].append(subject)
        dealt: list[tuple[str, int, Subject]] = []
        for word, new in fresh.items():
            numbers = await self._allocator.allocate(word, len(new))
            if len(set(numbers)) != len(new) or any(self.numbered(word, n) for n in numbers):
                raise Unavailable("The numbers of placeholders are not unique.")
            secrets.SystemRandom().shuffle(new)
            dealt += [(word, number, subject) for number, subject in zip(numbers, new, strict=True)]
        for word, number, subject in dealt:
            subject.placeholder = self._shape.render(word, self._nonce, number)
            self._by_placeholder[word, number] = subject


def _value_key(mention: Mention) -> str:
    """Equal for two spellings of one value, and only for those.

    The key begins with the coarse type: what looks different outside stays different.
    """
    text, kind = mention.text, mention.type
    if mention.literal:
        return f"literal:{text}"
    value = text
    if kind in COMPACT:
        value = compact_key(text)
    elif kind is EntityType.NETWORK:
        value = _network_value(text)
    elif kind in _BY_WORDS:
        value = words_key(text)
    elif kind in _BY_SHADOW:
        value = shadow(text).text
    return f"{OUTSIDE_TYPE[kind]}:{value or text}"


def _phone_keys(text: str, countries: Mapping[str, set[str]]) -> tuple[str, ...]:
    """A number without a country code is the one number with a code that it can be."""
    country, national = phone_key(text)
    known = countries.get(national, set())
    bare = f"PHONE::{national or text}"
    if len(known) > 1:
        return (f"PHONE:{country or '?'}:{national}",)
    if known:
        return f"PHONE:{next(iter(known))}:{national}", bare
    return (bare,)


def _network_value(text: str) -> str:
    try:
        return ip_address(text.strip("[]")).exploded
    except ValueError:
        return compact_key(text)


@dataclass(eq=False, slots=True)
class _Person:
    """One person among the names of a call: the fullest name, and what else is known."""

    full: PersonName
    gender: str
    suffix: str
    subject: Subject | None = None
    ambiguous: bool = False

    def agrees(self, other: _Item) -> bool:
        return _agree(self.gender, other.gender) and _agree(self.suffix, other.suffix)

    def is_exactly(self, item: _Item) -> bool:
        mine = self.full.whole, self.gender, self.suffix
        return mine == (item.name.whole, item.gender, item.suffix)


@dataclass(eq=False, slots=True)
class _Item:
    """A name to be placed: of mentions of this call, or that of a known person."""

    name: PersonName
    gender: str
    suffix: str
    subject: Subject | None = None
    asks: frozenset[str] = field(init=False)
    marks: frozenset[str] = field(init=False)
    candidates: list[_Person] = field(default_factory=list)
    fuller: list[_Item] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.asks, self.marks = self.name.asks, self.name.marks

    @property
    def rank(self) -> tuple[object, ...]:
        """Most telling first, and the same in any order of the texts."""
        sizes = (-size for size in self.name.fullness)
        known = self.subject.placeholder if self.subject else ""
        told = not self.suffix, not self.gender, not known, known
        return (*sizes, *told, self.name.key, self.name.titles, self.name.log_in)

    def can_be(self, other: _Item | _Person) -> bool:
        """Whether this can be short for the name of the other, as the names are written."""
        name = other.name if isinstance(other, _Item) else other.full
        return self.name.whole == name.whole or self.name.can_be(name)

    def waits_for(self, other: _Item) -> bool:
        """Whether the other tells more, so that it must be placed before."""
        if not self.can_be(other):
            return False
        return self.tells < other.tells or not other.can_be(self)

    @property
    def tells(self) -> int:
        return bool(self.suffix) + bool(self.gender)


class _People:
    """Decides who is who among the names of one call and the people already known.

    Names are placed in batches, those with the most parts first, known people's among them.
    A name joins the person of exactly this name, or else the one person that it can be short
    for; when it could be several, it is a person of its own. So it is when two names that
    cannot be one person both could only be the same third one: neither is given to it.
    Nothing depends on the order of the mentions.
    """

    def __init__(self, known: Sequence[Subject]) -> None:
        self._known = known
        self._by_mark: dict[str, list[_Person]] = defaultdict(list)
        self._placed: dict[_Item, _Person] = {}

    def link(self, names: Mapping[Mention, PersonName]) -> dict[Mention, Subject]:
        items: dict[tuple[object, ...], _Item] = {}
        for name in names.values():
            items.setdefault(_identity(name), _Item(name, name.gender, name.suffix))
        known = [_Item(p.name, p.gender, p.suffix, p) for p in self._known]
        batches: dict[tuple[int, int], list[_Item]] = defaultdict(list)
        for item in [*known, *items.values()]:
            batches[item.name.fullness[:2]].append(item)
        for size in sorted(batches, reverse=True):
            self._place(sorted(batches[size], key=lambda item: item.rank))
        subjects: dict[_Person, Subject] = {}
        for person in dict.fromkeys(self._placed[item] for item in items.values()):
            subjects[person] = person.subject or Subject(
                EntityType.PERSON, ambiguous=person.ambiguous
            )
        return {m: subjects[self._placed[items[_identity(name)]]] for m, name in names.items()}

    def _place(self, batch: list[_Item]) -> None:
        """Place names of equally many parts: first those that only one person can bear."""
        _order(batch)
        for item in batch:
            near = dict.fromkeys(p for mark in item.asks for p in self._by_mark.get(mark, ()))
            item.candidates = [person for person in near if item.can_be(person)]
        waiting = dict.fromkeys(batch)
        while waiting:
            claims: dict[_Person, list[_Item]] = defaultdict(list)
            for item in waiting:
                if (person := self._only(item, waiting)) is not None:
                    claims[person].append(item)
            if claims:
                for person, claiming in claims.items():
                    self._settle(person, claiming, waiting)
                continue
            free = (one for one in waiting if not any(o in waiting for o in one.fuller))
            item = next(free, None) or next(iter(waiting))
            self._own(item, waiting, ambiguous=any(p.agrees(item) for p in item.candidates))

    def _only(self, item: _Item, waiting: Mapping[_Item, None]) -> _Person | None:
        """The one person whom this name can mean, once all that tells more is placed."""
        if any(other in waiting for other in item.fuller):
            return None
        agreeing = [person for person in item.candidates if person.agrees(item)]
        exact = [person for person in agreeing if person.is_exactly(item)]
        only = exact if len(exact) == 1 else agreeing
        if len(only) != 1:
            return None
        taken = item.subject and (item.subject.ambiguous or only[0].subject or len(agreeing) > 1)
        return None if taken else only[0]

    def _settle(self, person: _Person, claiming: list[_Item], waiting: dict[_Item, None]) -> None:
        """Give ``person`` the names that claim to be it, unless they contradict each other."""
        genders = {item.gender for item in claiming} - {""}
        suffixes = {item.suffix for item in claiming} - {""}
        known = [item for item in claiming if item.subject is not None]
        if len(genders) > 1 or len(suffixes) > 1 or len(known) > 1:
            for item in claiming:
                self._own(item, waiting, ambiguous=item.subject is None)
            return
        person.gender = person.gender or "".join(genders)
        person.suffix = person.suffix or "".join(suffixes)
        for item in claiming:
            person.subject = person.subject or item.subject
            self._placed[item] = person
            del waiting[item]

    def _own(self, item: _Item, waiting: dict[_Item, None], *, ambiguous: bool) -> None:
        if item.subject is not None:
            ambiguous = item.subject.ambiguous
        person = _Person(item.name, item.gender, item.suffix, item.subject, ambiguous)
        self._placed[item] = person
        del waiting[item]
        for mark in item.marks:
            self._by_mark[mark].append(person)
        for other in waiting:
            if other.asks & item.marks and other.can_be(person):
                other.candidates.append(person)


def _order(batch: Sequence[_Item]) -> None:
    """Tell each name of a batch which others must be placed before it."""
    by_mark: dict[str, list[_Item]] = defaultdict(list)
    for item in batch:
        for mark in item.marks:
            by_mark[mark].append(item)
    for item in batch:
        near = dict.fromkeys(other for mark in item.asks for other in by_mark.get(mark, ()))
        item.fuller = [other for other in near if other is not item and item.waits_for(other)]


def _agree(one: str, other: str) -> bool:
    return not one or not other or one == other


def _identity(name: PersonName) -> tuple[object, ...]:
    """Equal for names that say the same of who it is."""
    return name.key, len(name.units), name.gender, name.turnable, name.log_in
