"""Reciprocal rank fusion (Cormack, Clarke, Büttcher, SIGIR 2009), weighted, and the union.

    score(d) = sum over rankings r of w_r / (K + rank_r(d)),  rank from 1

divided by its greatest possible value, so that a score stands between 0 and 1: a chunk
that leads every ranking gets 1. Weights and K were chosen by measurement, see
ARCHITECTURE.md: plain fusion of a strong and a weak ranking falls under the strong one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from uuid import UUID

from rag.types import Hit

K = 20


def fuse(rankings: Sequence[Sequence[Hit]], weights: Sequence[float] | None = None) -> list[Hit]:
    """One ranking from several, best first; ties keep the order of first appearance."""
    weights = weights or [1.0] * len(rankings)
    kept: dict[UUID, Hit] = {}
    scores: dict[UUID, float] = {}
    for ranking, weight in zip(rankings, weights, strict=True):
        for rank, hit in enumerate(ranking, start=1):
            key = hit.chunk.id
            known = kept.setdefault(key, hit)
            if known.similarity is None and hit.similarity is not None:
                kept[key] = replace(known, similarity=hit.similarity)
            scores[key] = scores.get(key, 0.0) + weight / (K + rank)
    best = sum(weights) / (K + 1)
    order = sorted(scores, key=lambda key: -scores[key])
    return [replace(kept[key], score=scores[key] / best) for key in order]


def best_rank(results: Sequence[Sequence[Hit]], top_k: int) -> list[Hit]:
    """The union of several results, each chunk once at its best rank, cut at ``top_k``.

    At one rank that chunk goes first which more results hold high (by the sum of its
    reciprocal ranks), then the one of the earlier result, so that the same results always
    give the same order.
    """
    best: dict[UUID, tuple[int, int, Hit]] = {}
    support: dict[UUID, float] = {}
    for at, result in enumerate(results):
        for rank, hit in enumerate(result):
            key = hit.chunk.id
            support[key] = support.get(key, 0.0) + 1.0 / (K + rank + 1)
            if key not in best or rank < best[key][0]:
                best[key] = (rank, at, hit)
    ordered = sorted(best, key=lambda key: (best[key][0], -support[key], best[key][1]))
    return [best[key][2] for key in ordered[:top_k]]
