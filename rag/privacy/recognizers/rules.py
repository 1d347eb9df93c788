"""Pattern rules and the one way to run them, which never skips a pattern (I2).

Presidio logs a warning and goes on when a pattern's time limit runs out, so a text that
is hard to match passes unread. Here the limit is an error. Presidio's own recognizers
give their patterns and checks (``from_presidio``); their ``analyze`` is not called, nor
its context words, which need a lemmatizer: a rule looks for whole words in the letters
before and after the finding instead.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from hashlib import sha256
from typing import Any, Protocol

import regex

from rag.types import EntityType, Span

FLAGS = regex.IGNORECASE | regex.MULTILINE
SECONDS = 5.0
"""Longest time for one pattern over one text."""

WINDOW, REACH = 2_000, 256
"""A pattern that looks arbitrarily far ahead is run over windows: over a whole document each
of its attempts would read to the end."""

_WORD = regex.compile(r"[^\W\d_]+")
_FAR = regex.compile(r"(?<!\\)\.[*+]")


class Recognizer(Protocol):
    """Finds one family of personal data. Safe to call from several threads at once."""

    @property
    def name(self) -> str: ...

    def find(self, text: str) -> list[Span]:
        """Findings with their scores; they may overlap. Raises ``TimeoutError``."""
        ...


Check = Callable[[str], float | None]
"""Judges a matched text: its score, or ``None`` to drop it."""


@dataclass(frozen=True, slots=True)
class Rule:
    """A pattern (the group ``v`` is the finding where it has one) and how to judge a match.

    ``near`` are words around the match that lift it to ``near_score``; with ``needs_near``
    a match without one is dropped. ``never`` are words before it that drop it.
    """

    name: str
    type: EntityType
    pattern: str
    score: float
    check: Check | None = None
    near: frozenset[str] = frozenset()
    near_score: float = 0.85
    needs_near: bool = False
    never: frozenset[str] = frozenset()
    reach: int = 40
    flags: int = int(FLAGS)


class RuleSet:
    """A named set of rules, compiled once."""

    def __init__(self, name: str, rules: Iterable[Rule], seconds: float = SECONDS) -> None:
        self.name = name
        self._seconds = seconds
        self._rules = [(rule, _compiled(rule.pattern, rule.flags)) for rule in rules]
        self._far = {rule.name for rule, _ in self._rules if looks_far(rule)}

    @property
    def fingerprint(self) -> str:
        """Changes with any pattern, score or word of the rules (not with a check's code)."""
        told = [
            (r.name, r.type, r.pattern, r.score, sorted(r.near), r.near_score, r.needs_near,
             sorted(r.never), r.reach, r.flags)
            for r, _ in self._rules
        ]  # fmt: skip
        return sha256(repr(told).encode()).hexdigest()

    def find(self, text: str) -> list[Span]:
        return [
            span for rule, pattern in self._rules for span in self._matches(rule, pattern, text)
        ]

    def _found(self, rule: Rule, pattern: Any, text: str) -> Iterator[Any]:
        if rule.name not in self._far:
            yield from pattern.finditer(text, timeout=self._seconds)
            return
        for at in range(0, len(text), WINDOW):
            until = min(len(text), at + WINDOW + REACH)
            for match in pattern.finditer(text, at, until, timeout=self._seconds):
                if match.start() < at + WINDOW:
                    yield match

    def _matches(self, rule: Rule, pattern: Any, text: str) -> Iterator[Span]:
        group = "v" if "v" in pattern.groupindex else 0
        for match in self._found(rule, pattern, text):
            start, end = match.span(group)
            score = judge(rule, text, start, end) if end > start else None
            if score is not None:
                yield Span(start, end, rule.type, score)


def looks_far(rule: Rule) -> bool:
    """Whether the pattern's dot crosses lines without a bound."""
    return bool(rule.flags & regex.DOTALL and _FAR.search(rule.pattern))


def judge(rule: Rule, text: str, start: int, end: int) -> float | None:
    """The score of a match, after its check and the words around it; ``None`` drops it."""
    score: float | None = rule.score
    if rule.check is not None:
        score = rule.check(text[start:end])
    if score is None or (rule.never and has_word(text, start, end, rule.never, after=0)):
        return None
    if rule.near:
        if has_word(text, start, end, rule.near, before=rule.reach):
            return max(score, rule.near_score)
        if rule.needs_near:
            return None
    return score


def has_word(
    text: str, start: int, end: int, words: frozenset[str], *, before: int = 40, after: int = 20
) -> bool:
    """Whether one of ``words`` (lower case) stands near ``text[start:end]`` as a whole word.

    A plural ``s`` is forgiven. Words in camel case count one by one: ``passportNumber``.
    """
    near = text[max(0, start - before) : start] + " \n " + text[end : end + after]
    for match in _WORD.finditer(_split_camel(near)):
        word = match[0].casefold()
        if word in words or word.removesuffix("s") in words:
            return True
    return False


_CAMEL = regex.compile(r"(?<=[a-z])(?=[A-Z])")


def _split_camel(text: str) -> str:
    return str(_CAMEL.sub(" ", text))


@lru_cache(maxsize=1024)
def _compiled(pattern: str, flags: int) -> Any:
    return regex.compile(pattern, flags=flags)


def from_presidio(
    recognizer: Any,
    type: EntityType,
    *,
    near: Iterable[str] = (),
    needs_near: bool = True,
    lowest: float = 0.0,
    lift: float = 0.85,
    never: Iterable[str] = (),
) -> list[Rule]:
    """The rules of a Presidio ``PatternRecognizer``: patterns, scores and checks.

    A passed checksum lifts the score to ``lift`` at least: many numbers pass one by chance,
    so by default a word that says what it is has to be near as well.
    """
    return [
        Rule(
            name=f"{recognizer.name}/{pattern.name}",
            type=type,
            pattern=pattern.regex,
            score=max(pattern.score, lowest),
            check=_presidio_check(recognizer, max(pattern.score, lowest), lift),
            near=frozenset(near),
            needs_near=needs_near,
            never=frozenset(never),
            flags=int(recognizer.global_regex_flags),
        )
        for pattern in recognizer.patterns
    ]


def _presidio_check(recognizer: Any, score: float, lift: float) -> Check:
    def check(matched: str) -> float | None:
        valid = recognizer.validate_result(matched)
        if valid is False or recognizer.invalidate_result(matched):
            return None
        return max(score, lift) if valid else score

    return check
