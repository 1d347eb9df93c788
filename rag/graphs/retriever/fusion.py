"""Reciprocal rank fusion: Cormack, Clarke, Büttcher, SIGIR 2009.

    score(d) = sum over rankings r of 1 / (K + rank_r(d)),  K = 60, rank from 1

divided by its greatest possible value, so that a score stands between 0 and 1: a chunk
that leads every ranking gets 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from uuid import UUID

from rag.types import Hit

K = 60


def fuse(rankings: Sequence[Sequence[Hit]]) -> list[Hit]:
    """One ranking from several, best first; ties keep the order of first appearance."""
    kept: dict[UUID, Hit] = {}
    scores: dict[UUID, float] = {}
    for ranking in rankings:
        for rank, hit in enumerate(ranking, start=1):
            key = hit.chunk.id
            known = kept.setdefault(key, hit)
            if known.similarity is None and hit.similarity is not None:
                kept[key] = replace(known, similarity=hit.similarity)
            scores[key] = scores.get(key, 0.0) + 1.0 / (K + rank)
    best = max(1, len(rankings)) / (K + 1)
    order = sorted(scores, key=lambda key: -scores[key])
    return [replace(kept[key], score=scores[key] / best) for key in order]


def best_rank(results: Sequence[Sequence[Hit]], top_k: int) -> list[Hit]:
    """The union of several results, each chunk once at its best rank, cut at ``top_k``.

    At one rank the higher score goes first, then the earlier result, so that the same
    results always give the same order.
    """
    best: dict[UUID, tuple[int, float, int, Hit]] = {}
    for at, result in enumerate(results):
        for rank, hit in enumerate(result):
            entry = (rank, -hit.score, at, hit)
            known = best.get(hit.chunk.id)
            if known is None or entry[:3] < known[:3]:
                best[hit.chunk.id] = entry
    ordered = sorted(best.values(), key=lambda entry: entry[:3])
    return [entry[3] for entry in ordered[:top_k]]
