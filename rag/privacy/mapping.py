"""The mapping of one scope: which placeholder stands for which subject (I3).

One subject has one placeholder, two subjects never share one. Mentions of one call are
linked together, fullest names first, so the order of the texts does not matter; a mention
that could be two people becomes a subject of its own. Numbers come from the allocator and
are dealt out at random, so a placeholder tells nothing of its subject or of what came
first (I4). Whatever holds an original masks it in its ``repr`` (I6).
"""

from __future__ import annotations

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

    def add(self, mention: Mention, name: PersonName | None = None) -> None:
        self.originals.setdefault(mention.text)
        if name is not None and name not in self.names:
            self.names.append(name)


def _size(text: str) -> tuple[int, str]:
    return len(text), text


def _fullness(text: str) -> tuple[tuple[int, int, int], bool, int, int, str]:
    """Most parts, then normal casing, then without a title."""
    name = parse_name(text)
    cased = text != text.upper() and text != text.lower()
    return name.fullness, cased, -len(name.titles), len(text), text


class Subjects:
    """The subjects of one scope and their placeholders."""

    def __init__(self, shape: Shape, nonce: str, allocator: Allocator) -> None:
        self._shape, self._nonce, self._allocator = shape, nonce, allocator
        self._by_key: dict[str, Subject] = {}
        self._by_placeholder: dict[tuple[str, int], Subject] = {}
        self._forms: dict[tuple[EntityType, str], list[Form]] = {}
        self._people: list[Subject] = []
        self._names: dict[tuple[str, str], PersonName] = {}

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
        ordered = sorted(set(mentions), key=lambda m: (m.type, m.literal, m.text, m.title))
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
        slot = (mention.text, mention.title)
        name = self._names.get(slot)
        if name is None:
            name = self._names[slot] = parse_name(mention.text).titled(mention.title)
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
    """One person among the names of a call: the fullest name first."""

    full: PersonName
    gender: str
    subject: Subject | None = None
    ambiguous: bool = False


class _People:
    """Decides who is who among the names of one call and the people already known.

    All names are taken fullest first, known people's among them. A name joins the one
    person that it is equal to, or else the one person that it can be short for; when it
    could be several, it is a person of its own.
    """

    def __init__(self, known: Sequence[Subject]) -> None:
        self._people: list[_Person] = []
        self._known = known

    def link(self, names: Mapping[Mention, PersonName]) -> dict[Mention, Subject]:
        items: list[tuple[PersonName, Subject | None]] = [(p.name, p) for p in self._known]
        items += [(name, None) for name in dict.fromkeys(names.values())]
        items.sort(key=_fullest_first)
        placed: dict[PersonName, _Person] = {}
        for name, subject in items:
            if subject is None:
                placed[name] = self._place(name)
            else:
                self._place_known(name, subject)
        subjects: dict[_Person, Subject] = {}
        for person in placed.values():
            if person not in subjects:
                subjects[person] = person.subject or Subject(
                    EntityType.PERSON, ambiguous=person.ambiguous
                )
        return {mention: subjects[placed[name]] for mention, name in names.items()}

    def _place(self, name: PersonName) -> _Person:
        same, fuller = self._candidates(name, name.gender)
        if len(same) == 1 or (not same and len(fuller) == 1):
            person = (same or fuller)[0]
            person.gender = person.gender or name.gender
            return person
        return self._own(name, name.gender, ambiguous=len(same) + len(fuller) > 1)

    def _place_known(self, name: PersonName, subject: Subject) -> None:
        """A known person of whom only a short name was known may now be one of the new ones."""
        same, fuller = self._candidates(name, subject.gender)
        free = [person for person in same + fuller if person.subject is None]
        if not subject.ambiguous and len(same + fuller) == len(free) == 1:
            free[0].subject = subject
            free[0].gender = free[0].gender or subject.gender
        else:
            self._own(name, subject.gender, ambiguous=subject.ambiguous).subject = subject

    def _own(self, name: PersonName, gender: str, *, ambiguous: bool) -> _Person:
        person = _Person(name, gender, ambiguous=ambiguous)
        self._people.append(person)
        return person

    def _candidates(self, name: PersonName, gender: str) -> tuple[list[_Person], list[_Person]]:
        """People of just this name, and people whom it can be short for."""
        same: list[_Person] = []
        fuller: list[_Person] = []
        for person in self._people:
            if gender and person.gender and gender != person.gender:
                continue
            if person.full.key == name.key:
                same.append(person)
            elif name.can_be(person.full):
                fuller.append(person)
        return same, fuller


def _fullest_first(item: tuple[PersonName, Subject | None]) -> tuple[object, ...]:
    name, subject = item
    return (
        *(-size for size in name.fullness),
        subject is None,
        name.key,
        not name.gender,
        name.titles,
    )
