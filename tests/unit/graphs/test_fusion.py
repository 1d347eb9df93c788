"""Joining rankings: reciprocal ranks, and the union that keeps each chunk's best rank."""

from __future__ import annotations

from uuid import UUID

import pytest

from rag.graphs.retriever.fusion import best_rank, fuse
from rag.types import Chunk, Hit

DOCUMENT = UUID(int=99)


def hit(number: int, score: float = 0.5, similarity: float | None = None) -> Hit:
    chunk = Chunk(UUID(int=number), DOCUMENT, "a.md", number, 0, 4, "text")
    return Hit(chunk, score, similarity)


def numbers(hits: list[Hit]) -> list[int]:
    return [h.chunk.n for h in hits]


def test_a_chunk_that_leads_every_ranking_scores_one() -> None:
    """The score is divided by its greatest possible value."""
    fused = fuse([[hit(1), hit(2)], [hit(1), hit(3)]])
    assert fused[0].chunk.n == 1
    assert fused[0].score == pytest.approx(1.0)


def test_fusion_by_hand() -> None:
    """Rank 1 and rank 2 of two rankings: (1/21 + 1/22) / (2/21)."""
    fused = fuse([[hit(1), hit(2)], [hit(3), hit(1)]])
    assert numbers(fused) == [1, 3, 2]
    assert fused[0].score == pytest.approx((1 / 21 + 1 / 22) / (2 / 21))


def test_a_heavier_ranking_decides() -> None:
    """With weights 1 and 3 the leader of the second ranking leads."""
    assert numbers(fuse([[hit(1), hit(2)], [hit(2), hit(1)]], (1.0, 3.0))) == [2, 1]


def test_fusion_keeps_the_similarity_of_the_dense_ranking() -> None:
    """A chunk first met in the lexical ranking still gets its cosine."""
    [fused] = fuse([[hit(1)], [hit(1, similarity=0.8)]])
    assert fused.similarity == 0.8


def test_the_union_holds_each_chunk_once_at_its_best_rank() -> None:
    """Chunk 2 leads the second result and so goes before chunk 3 of the first."""
    joined = best_rank([[hit(1), hit(3), hit(2)], [hit(2), hit(1)]], top_k=5)
    assert numbers(joined) == [1, 2, 3]


def test_at_one_rank_the_chunk_that_more_results_hold_goes_first() -> None:
    """Chunk 2 leads one result and stands in the others; chunk 1 leads one alone."""
    joined = best_rank([[hit(1), hit(2)], [hit(2)], [hit(5), hit(2)]], top_k=5)
    assert numbers(joined) == [2, 1, 5]


def test_the_union_is_cut_at_top_k() -> None:
    """No more than top_k chunks come out, however many queries there were."""
    assert len(best_rank([[hit(n) for n in range(9)], [hit(20)]], top_k=3)) == 3


def test_equal_ranks_keep_the_order_of_the_queries() -> None:
    """The same results always give the same prompt."""
    results = [[hit(5)], [hit(4)], [hit(6)]]
    assert numbers(best_rank(results, 3)) == [5, 4, 6]
