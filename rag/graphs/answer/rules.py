"""What the graphs do without a model: rewrites by rule, and an answer that quotes.

Both work on protected text, so that the offline path crosses the same boundary code
as the one with a model.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence
from typing import Final

from rag.graphs.answer.sentences import sentences

QUOTED: Final = "No language model is configured; these sentences of your documents fit best:"
NOTHING: Final = "Nothing in the documents fits the question."

_WORD = re.compile(r"[^\W_]+(?:[_'’\-][^\W_]+)*")
_STOP_WORDS: Final = """
a about all am an and any are as at be been but by can could did do does doing for from had has
have having he her here hers him his how i if in into is it its just me more most my no not of
off on once only or other our ours out over own please s she should so some such t tell than that
the their theirs them then there these they this those through to too under until up very was we
were what when where which while who whom whose why will with would you your yours give show find
"""
_STOP: Final = frozenset(_STOP_WORDS.split())

_ASKED_TYPES: Final = {
    "PERSON": "who whom whose name names",
    "PHONE": "phone telephone call ring mobile number",
    "EMAIL": "mail email e-mail write",
    "ADDRESS": "address where live lives lived located street",
    "ACCOUNT": "account iban card bank pay paid",
    "DATE": "born birthday birth",
}
"""A question's words that ask for a value of a type; that type's placeholders answer them."""

_PLACEHOLDER: Final = re.compile(r"(?i)(?<![a-z])(person|phone|email|address|account|date)(?=_?\d)")


def words(text: str) -> list[str]:
    """The words of ``text`` that carry meaning, case-folded, in order."""
    found = (word.casefold() for word in _WORD.findall(text))
    return [word for word in found if word not in _STOP and (len(word) > 1 or word.isdigit())]


def stem(word: str) -> str:
    """A crude stem: placeholders and numbers whole, other words by their first five letters."""
    if any(char.isdigit() or char == "_" for char in word):
        return word
    return word[:5]


def rewrite_by_rules(question: str, count: int) -> list[str]:
    """At most ``count`` queries: the key words; the subject alone; what is asked of it."""
    spelled = [w for w in _WORD.findall(question) if w.casefold() in set(words(question))]
    # A question's first word is capitalised by position, not because it names something.
    named = {w for w in spelled if "_" in w or (w[:1].isupper() and not question.startswith(w))}
    subject = [w for w in spelled if w in named]
    predicate = [w for w in spelled if w not in named]
    queries: list[str] = []
    for candidate in (spelled, subject, predicate):
        query = " ".join(candidate)
        if query and query not in queries and query != question:
            queries.append(query)
    return queries[:count]


def answer_by_quoting(question: str, contexts: Sequence[str], most: int = 3) -> str | None:
    """The ``most`` best sentences of the contexts, each with its citation; None if none fits.

    A sentence's worth is the sum of the inverse document frequencies of the question's
    stems that it holds, over all candidate sentences, damped by its length. A question that
    asks for a phone number is also answered by a phone number's placeholder, and so on;
    such a type alone is no answer.
    """
    candidates = [
        (sentence, number, {stem(word) for word in words(sentence)} | _held_types(sentence))
        for number, context in enumerate(contexts, start=1)
        for sentence in sentences(context)
    ]
    asked = _asked(question, set().union(*(held for _, _, held in candidates)))
    frequency = Counter(s for _, _, stems in candidates for s in stems & asked)
    rated = [
        (_worth(stems & asked, frequency, len(candidates), len(sentence)), -at, sentence, number)
        for at, (sentence, number, stems) in enumerate(candidates)
    ]
    chosen = sorted((row for row in rated if row[0] > 0), reverse=True)
    if not chosen:
        return None
    floor = chosen[0][0] * 0.5
    seen: dict[str, int] = {}
    for worth, _, sentence, number in chosen:
        if worth >= floor and len(seen) < most:
            seen.setdefault(sentence, number)
    lines = [f"- “{sentence}” [{number}]" for sentence, number in seen.items()]
    return "\n".join([QUOTED, *lines])


def _asked(question: str, held: set[str]) -> set[str]:
    """The question's stems, and marks such as ``<PHONE>`` for the types that it asks for.

    Where some sentence holds a value of the type, the value counts and the word for it
    does not: "the address in 1.1" answers no question for an address.
    """
    spelled = {word.casefold() for word in _WORD.findall(question)}
    asked = {stem(word) for word in words(question)}
    for kind, cues in _ASKED_TYPES.items():
        said = spelled & set(cues.split())
        if said and f"<{kind}>" in held:
            asked = (asked - {stem(word) for word in said}) | {f"<{kind}>"}
    return asked


def _held_types(sentence: str) -> set[str]:
    return {f"<{found.upper()}>" for found in _PLACEHOLDER.findall(sentence)}


def _worth(held: set[str], frequency: Counter[str], total: int, length: int) -> float:
    if all(mark.startswith("<") for mark in held):
        return 0.0
    weight = sum(math.log(1 + total / frequency[s]) for s in held)
    return weight / (1 + math.log1p(length / 200))
