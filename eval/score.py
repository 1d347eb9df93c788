"""Scores of one answer: ``python -m eval score < case.json``.

The case is ``{"question", "answer", "contexts", "reference"?}``. Without options it is
protected first (the judge is outside, I7), then scored by the configured judge model;
``--relay`` is the scorer's child, which is handed protected text by its parent and asks
it for everything it needs.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import secrets
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from eval.relay import Relay, forbid_network, own_stdout
from eval.report import strict_json, write_json
from rag.errors import InvalidInput, VeilragError
from rag.settings import Settings, load_settings
from rag.types import Alias, ScoreCase

if TYPE_CHECKING:
    from rag.privacy.scope import Scope


def _object(text: str) -> Mapping[str, Any]:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        raise InvalidInput("The case is not JSON.") from None
    if not isinstance(value, dict):
        raise InvalidInput("The case is not a JSON object.")
    return value


def read_case(value: Mapping[str, Any]) -> ScoreCase:
    """A case out of JSON. Raises ``InvalidInput`` naming the field, never its value."""
    texts = {name: value.get(name, "") for name in ("question", "answer")}
    contexts, reference = value.get("contexts", []), value.get("reference")
    for name, text in texts.items():
        if not isinstance(text, str):
            raise InvalidInput(f"The case's {name} is not a text.")
    if not isinstance(contexts, list) or not all(isinstance(text, str) for text in contexts):
        raise InvalidInput("The case's contexts is not a list of texts.")
    if reference is not None and not isinstance(reference, str):
        raise InvalidInput("The case's reference is not a text.")
    return ScoreCase(texts["question"], texts["answer"], tuple(contexts), reference)


async def _serve_parent(out: BinaryIO) -> int:
    """The child's life: import Ragas, read the case, score it, say the scores."""
    from eval import ragas_metrics  # seconds, and only here (I11)

    relay = await Relay.open(out)
    asked = await relay.read()
    if asked is None:
        return 0
    pumping = asyncio.create_task(relay.pump())
    scores = await ragas_metrics.score(relay, read_case(asked), asked["metrics"])
    relay.send({"scores": scores})
    pumping.cancel()
    return 0


def relay_main() -> int:
    """What the scorer starts. Nothing but the pipe is open to it."""
    out = own_stdout()
    forbid_network()
    return asyncio.run(_serve_parent(out))


class _NoAliases:
    """A case by itself: no collection gives any form away."""

    async def known_first(self, first: Sequence[int]) -> set[int]:
        return set()

    async def known_forms(self, form: Sequence[int]) -> list[Alias]:
        return []


async def open_scope(settings: Settings) -> Scope:
    """A scope of one case, without a database. Raises ``DetectorFailed`` kinds."""
    from rag.privacy.allocation import MemoryAllocator
    from rag.privacy.detect import PresidioDetector
    from rag.privacy.forms import FormHasher
    from rag.privacy.policy import load_policy
    from rag.privacy.scope import Scope

    return Scope(
        policy=load_policy(settings.policy),
        detector=await asyncio.to_thread(
            PresidioDetector.open, max_chars=settings.max_detect_chars
        ),
        aliases=_NoAliases(),
        allocator=MemoryAllocator(),
        hasher=FormHasher(secrets.token_bytes(32)),
        detect_timeout=settings.detect_timeout,
    )


async def protect_case(case: ScoreCase, scope: Scope) -> ScoreCase:
    """The same case with placeholders, one subject being one over all its texts (I3, I7)."""
    from rag.privacy.protect import Piece

    texts = [case.question, case.answer, *case.contexts, *filter(None, [case.reference])]
    pieces = [Piece(text, await scope.detect(text)) for text in texts]
    question, answer, *rest = await scope.protect(pieces)
    contexts, reference = rest[: len(case.contexts)], rest[len(case.contexts) :]
    return ScoreCase(question, answer, tuple(contexts), reference[0] if reference else None)


async def score_case(case: ScoreCase) -> dict[str, dict[str, float | str | None]]:
    """Protect the case, then score it with the judge that the settings name."""
    from rag.models.scorer import open_scorer

    settings = load_settings()
    scope = await open_scope(settings)
    scores = await open_scorer(settings).score(await protect_case(case, scope), scope.guard())
    return {name: {"score": s.score, "reason": s.reason} for name, s in scores.items()}


def main(argv: Sequence[str]) -> int:
    """Dispatch between the command and the child."""
    parser = argparse.ArgumentParser(prog="python -m eval score", description=__doc__)
    parser.add_argument("--relay", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--data", type=Path, help="the case as a file instead of stdin")
    parser.add_argument("--json", type=Path, help="write the scores there too")
    options = parser.parse_args(argv)
    if options.relay:
        return relay_main()
    text = options.data.read_text("utf-8") if options.data else sys.stdin.read()
    try:
        scores = asyncio.run(score_case(read_case(_object(text))))
    except VeilragError as error:
        print(f"{error.code}: {error.message}", file=sys.stderr)
        return 1
    print(strict_json(scores))
    write_json(scores, options.json)
    return 0
