"""Which shape of a placeholder survives a language model? (``python -m eval placeholders``)

A placeholder must come back as it was sent (I4). This measures how often each of several
shapes does, with a real small model over real HTTP: a hundred questions about invented
people, each asked with a *rewrite* prompt (the placeholders of the question should return)
and a *synthesize* prompt (the placeholder that is the answer should). Every placeholder
that the reply needed counts once, and so does every other (*extra*) that it used:

- **intact**: byte for byte as sent;
- **bent**: not so, but the project's own finder of placeholders still knows it (for shapes
  that are not the project's: its letters and digits stand there in order);
- **broken**: something like a placeholder that is none of this request (invented, or with
  a wrong number or nonce), also in place of a needed one;
- **missing**: needed, and nowhere.

Rates come with Wilson's 95 % interval (Wilson 1927, doi 10.1080/01621459.1927.10502953).
"""

from __future__ import annotations

import argparse
import json
import random
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from pathlib import Path

from eval import statistics
from rag.privacy.shapes import SHAPES, Finder, Shape

Write = Callable[[str, int, str], str]
"""``(type, number, nonce) -> placeholder``."""

ORIGINALS: Mapping[str, tuple[str, ...]] = {
    "PERSON": ("Oda Kvistad", "Ruben Sallow"),
    "EMAIL": ("oda.kvistad@example.org",),
    "PHONE": ("+47 402 55 318",),
    "ADDRESS": ("17 Larkfield Row",),
    "ACCOUNT": ("NO7086011117947",),
    "ID": ("LK-480-2217",),
}


@dataclass(frozen=True, slots=True)
class Style:
    """A way to write a placeholder: one of the project's shapes, or one to compare with."""

    write: Write
    shape: Shape | None = None


def _ours(shape: Shape) -> Style:
    return Style(lambda t, n, k: shape.render(t, k, n), shape)


STYLES: Mapping[str, Style] = {
    **{shape.render("PERSON", "k7q", 1): _ours(shape) for shape in SHAPES.values()},
    "Person-k7q-1": Style(lambda t, n, k: f"{t.capitalize()}-{k}-{n}"),
    # controls: without a nonce, and what the model does with the originals themselves
    "[PERSON_1]": Style(lambda t, n, _: f"[{t}_{n}]"),
    "(originals)": Style(lambda t, n, _: ORIGINALS[t][n - 1]),
}

SLOTS = 4
"""Requests at a time: the server works on them together."""

TYPES = ("PERSON", "EMAIL", "PHONE", "ADDRESS", "ACCOUNT", "ID")

REWRITE = (
    "Write 2 other ways to ask the question below, one per line. "
    "Copy names like {example} exactly as they are.\n\nQuestion: {question}"
)
SYNTHESIZE = (
    "Read the context and answer the question in one sentence. "
    "Copy names like {example} exactly as they are.\n\n"
    "Context:\n[1] {context}\n\nQuestion: {question}\nAnswer:"
)


@dataclass(frozen=True, slots=True)
class Case:
    """One question. ``{0}``, ``{1}`` stand for subjects whose coarse types are ``types``."""

    context: str
    question: str
    types: tuple[str, ...]
    asked: tuple[int, ...]  # subjects that the question names
    answer: int  # the subject that is the answer


PATTERNS: tuple[Case, ...] = (
    Case(
        "The {thing} in {place} belongs to {0}, who bought it in {year}.",
        "Who owns the {thing} in {place}?",
        ("PERSON",),
        (),
        0,
    ),
    Case(
        "{0} looks after the {thing} in {place}. Questions go to {1} before noon.",
        "Where can I write to {0} about the {thing}?",
        ("PERSON", "EMAIL"),
        (0,),
        1,
    ),
    Case(
        "In {year} {0} reported a fault of the {thing}. The number to call back is {1}.",
        "Which number should we call to reach {0} about the {thing}?",
        ("PERSON", "PHONE"),
        (0,),
        1,
    ),
    Case(
        "{0} moved the {thing} from {place} to {1} in {year}.",
        "To which address did {0} move the {thing}?",
        ("PERSON", "ADDRESS"),
        (0,),
        1,
    ),
    Case(
        "The rent of the {thing} is paid by {0} from account {1} every month.",
        "From which account does {0} pay the rent of the {thing}?",
        ("PERSON", "ACCOUNT"),
        (0,),
        1,
    ),
    Case(
        "{0} signed for the {thing} with the identity card {1} at the desk in {place}.",
        "Which identity card did {0} show for the {thing}?",
        ("PERSON", "ID"),
        (0,),
        1,
    ),
    Case(
        "After {year} {0} handed the {thing} in {place} over to {1}.",
        "Who took over the {thing} from {0}?",
        ("PERSON", "PERSON"),
        (0,),
        1,
    ),
    Case(
        "{0} and {1} share the {thing} in {place}, but only {1} has the key.",
        "Who has the key of the {thing} that {0} uses?",
        ("PERSON", "PERSON"),
        (0,),
        1,
    ),
    Case(
        "A letter from {1} says that the {thing} at {0} was repaired in {year}.",
        "Who wrote that the {thing} at {0} was repaired?",
        ("ADDRESS", "PERSON"),
        (0,),
        1,
    ),
    Case(
        "The mail box {0} is read by {1}, who answers for the {thing} in {place}.",
        "Who reads the mail that is sent to {0}?",
        ("EMAIL", "PERSON"),
        (0,),
        1,
    ),
)
LETTERS, DIGITS = "bcdfghjkmnpqrtvwxz", "2345679"
THINGS = ("garage", "boat", "workshop", "copier", "piano", "bakery", "orchard", "mill", "tram")
PLACES = ("Harwick", "Ostrava", "Lund", "Tarragona", "Galway", "Bolzano", "Delft")


@dataclass(frozen=True, slots=True)
class Asked:
    """A case made concrete in one shape: what is sent, and what must come back."""

    prompt: str
    known: tuple[str, ...]
    needed: tuple[str, ...]
    finder: Finder | None = None


@dataclass(slots=True)
class Tally:
    """Counts of one shape under one prompt."""

    counts: Counter[str] = field(default_factory=Counter)

    @property
    def total(self) -> int:
        return sum(self.counts.values())


def cases(n: int, seed: int = 20) -> list[tuple[Case, str]]:
    """``n`` concrete cases with the nonce of each; the same for every shape."""
    draw = random.Random(seed)  # noqa: S311 - a repeatable experiment, no secret
    made = []
    for i in range(n):
        pattern = PATTERNS[i % len(PATTERNS)]
        words = {
            "thing": draw.choice(THINGS),
            "place": draw.choice(PLACES),
            "year": draw.randint(1998, 2024),
        }
        fill = {str(j): f"{{{j}}}" for j in range(len(pattern.types))}
        context, question = (_fill(t, words | fill) for t in (pattern.context, pattern.question))
        nonce = f"{draw.choice(LETTERS)}{draw.choice(DIGITS)}{draw.choice(LETTERS)}"
        concrete = Case(context, question, pattern.types, pattern.asked, pattern.answer)
        made.append((concrete, nonce))
    return made


def _fill(template: str, words: Mapping[str, object]) -> str:
    return re.sub(r"\{(\w+)\}", lambda m: str(words[m[1]]), template)


def ask(case: Case, nonce: str, style: Style, prompt: str) -> Asked:
    """The case in one style under one prompt (``REWRITE`` or ``SYNTHESIZE``)."""
    numbers: Counter[str] = Counter()
    known = []
    for word in case.types:
        numbers[word] += 1
        known.append(style.write(word, numbers[word], nonce))
    words = {str(i): p for i, p in enumerate(known)}
    question, context = _fill(case.question, words), _fill(case.context, words)
    sent = _fill(prompt, {"question": question, "context": context, "example": known[0]})
    needed = [known[i] for i in case.asked] if prompt is REWRITE else [known[case.answer]]
    finder = Finder(style.shape, nonce) if style.shape else None
    return Asked(sent, tuple(known), tuple(needed), finder)


def judge(asked: Asked, reply: str) -> Iterator[str]:
    """``needed VERDICT`` for each placeholder that had to return, ``extra VERDICT`` for others."""
    verdicts, rest = _found_by(asked.finder, asked, reply) if asked.finder else _found(asked, reply)
    broken = len(re.findall(LOOKS_LIKE, rest))
    for placeholder in asked.needed:
        if placeholder not in verdicts:
            verdicts[placeholder] = "broken" if broken else "missing"
            broken -= bool(broken)
    for placeholder, verdict in verdicts.items():
        yield f"{'needed' if placeholder in asked.needed else 'extra'} {verdict}"
    yield from ["extra broken"] * broken


def _found_by(finder: Finder, asked: Asked, reply: str) -> tuple[dict[str, str], str]:
    """What the project's finder knows, and the reply without it; unknown numbers stay."""
    verdicts: dict[str, str] = {}
    rest, floor = "", 0
    for token in finder.find(reply):
        placeholder = finder.shape.render(token.type, finder.nonce, token.number)
        if placeholder not in asked.known:
            continue
        exact = reply[token.start : token.end] == placeholder
        if not exact or placeholder not in verdicts:
            verdicts[placeholder] = "intact" if exact else "bent"
        rest, floor = rest + reply[floor : token.start] + " ", token.end
    return verdicts, rest + reply[floor:]


def _found(asked: Asked, reply: str) -> tuple[dict[str, str], str]:
    """The same for styles that are not the project's: letters and digits in order."""
    verdicts: dict[str, str] = {}
    rest = reply
    for placeholder in sorted(asked.known, key=len, reverse=True):
        rest, exact = re.subn(_bounded(re.escape(placeholder)), " ", rest)
        parts = re.findall(r"[a-z]+|\d+", placeholder.casefold())
        loose = r"[\W_]{0,3}".join(map(re.escape, parts))
        rest, bent = re.subn(_bounded(loose), " ", rest, flags=re.IGNORECASE)
        if exact or bent:
            verdicts[placeholder] = "bent" if bent else "intact"
    return verdicts, rest


LOOKS_LIKE = re.compile(
    rf"(?i)(?<![a-z0-9])(?:{'|'.join(TYPES)})(?=[-_a-z0-9]*\d)[-_a-z0-9]{{1,16}}(?![a-z0-9])"
)


def _bounded(pattern: str) -> str:
    return rf"(?<![A-Za-z0-9]){pattern}(?![A-Za-z0-9])"


def wilson(hits: int, total: int) -> tuple[float, float]:
    """The 95 % interval of ``hits / total``; all of 0-1 where nothing was counted."""
    return statistics.wilson(hits, total) or (0.0, 1.0)


class Model:
    """The model under test; greedy, so that the same prompt gives the same reply."""

    def __init__(self, base_url: str, max_tokens: int) -> None:
        import httpx2

        self._http = httpx2.Client(base_url=base_url, trust_env=False, timeout=600)
        self._max_tokens = max_tokens

    def reply(self, prompt: str) -> str:
        body = {
            "model": "any",
            "messages": [{"role": "user", "content": prompt}],
            "max_tokens": self._max_tokens,
            "temperature": 0,
        }
        answer = self._http.post("chat/completions", json=body)
        answer.raise_for_status()
        return str(answer.json()["choices"][0]["message"]["content"])

    def tokens(self, text: str) -> int:
        """How many of the model's tokens ``text`` costs."""
        root = str(self._http.base_url).removesuffix("/v1/")
        answer = self._http.post(f"{root}/tokenize", json={"content": f" {text}"})
        return len(answer.json()["tokens"])


@dataclass(frozen=True, slots=True)
class Row:
    """What one shape did: counts of ``needed|extra intact|bent|broken|missing`` by prompt."""

    shape: str
    tokens: int
    rewrite: Mapping[str, int]
    synthesize: Mapping[str, int]

    def together(self) -> Counter[str]:
        return Counter(self.rewrite) + Counter(self.synthesize)


def run(model: Model, n: int, names: Iterable[str]) -> Iterator[Row]:
    """Ask everything; rows in the order of the styles' ``names``."""
    from rich.progress import track

    material = cases(n)
    for name in names:
        style = STYLES[name]
        tallies = {REWRITE: Tally(), SYNTHESIZE: Tally()}
        questions = [
            (prompt, asked)
            for case, nonce in material
            for prompt in tallies
            if (asked := ask(case, nonce, style, prompt)).needed
        ]
        with ThreadPoolExecutor(SLOTS) as pool:
            replies = pool.map(lambda question: model.reply(question[1].prompt), questions)
            for (prompt, asked), reply in track(
                zip(questions, replies, strict=True), description=name, total=len(questions)
            ):
                tallies[prompt].counts.update(judge(asked, reply))
        counts = (dict(tallies[p].counts) for p in (REWRITE, SYNTHESIZE))
        yield Row(name, model.tokens(style.write("PERSON", 1, "k7q")), *counts)


def table(rows: Sequence[Row], n: int) -> object:
    """A rich table, best first by what a tolerant restorer gets back."""
    from rich.markup import escape
    from rich.table import Table

    view = Table(title=f"Placeholders that come back, {n} questions, two prompts each")
    view.add_column("shape", no_wrap=True)
    names = ("tokens", "needed", "intact", "95 %", "intact+bent", "95 %", "broken", "missing")
    for name in (*names, "rewrite", "synthesize", "extra", "bent", "broken"):
        view.add_column(name, justify="right")
    for row in sorted(rows, key=lambda r: _back(r.together())[0], reverse=True):
        both = row.together()
        intact, (back, total) = both["needed intact"], _back(both)
        extra = {k: both[f"extra {k}"] for k in ("intact", "bent", "broken")}
        view.add_row(
            escape(row.shape),
            str(row.tokens),
            str(total),
            _rate(intact, total),
            _interval(intact, total),
            _rate(back, total),
            _interval(back, total),
            str(both["needed broken"]),
            str(both["needed missing"]),
            _rate(*_back(row.rewrite)),
            _rate(*_back(row.synthesize)),
            str(sum(extra.values())),
            str(extra["bent"]),
            str(extra["broken"]),
        )
    return view


def _back(counts: Mapping[str, int]) -> tuple[int, int]:
    """Needed placeholders that a tolerant restorer gets back, of how many."""
    needed = {k: v for k, v in counts.items() if k.startswith("needed")}
    back = needed.get("needed intact", 0) + needed.get("needed bent", 0)
    return back, sum(needed.values())


def _rate(hits: int, total: int) -> str:
    return f"{hits / max(total, 1):.3f}"


def _interval(hits: int, total: int) -> str:
    low, high = wilson(hits, total)
    return f"{low:.3f}-{high:.3f}"


def main(argv: Sequence[str] | None = None) -> int:
    """Run the experiment on the packaged small model, or on ``--base-url``."""
    parser = argparse.ArgumentParser(prog="python -m eval placeholders", description=__doc__)
    parser.add_argument("--n", type=int, default=100, help="questions (default 100)")
    parser.add_argument("--max-tokens", type=int, default=48)
    parser.add_argument("--shape", action="append", choices=list(STYLES), help="only this one")
    parser.add_argument("--base-url", help="an OpenAI-compatible server instead of the small model")
    parser.add_argument("--json", type=Path, help="write the counts here")
    options = parser.parse_args(argv)
    if options.base_url:
        _measure(options.base_url, options)
    else:
        from rag.testing.llama import serve_llama

        with serve_llama(slots=SLOTS, context=512) as llama:
            _measure(llama.base_url, options)
    return 0


def _measure(base_url: str, options: argparse.Namespace) -> None:
    """Print the table at the end; write what there is after every style: this takes long."""
    from rich.console import Console

    rows: list[Row] = []
    for row in run(Model(base_url, options.max_tokens), options.n, options.shape or STYLES):
        rows.append(row)
        if options.json:
            made = {"n": options.n, "rows": [asdict(r) for r in rows]}
            options.json.write_text(json.dumps(made))
    Console(width=185).print(table(rows, options.n))


if __name__ == "__main__":
    raise SystemExit(main())
