"""State of the child graph: one query in, its best chunks out."""

from __future__ import annotations

from typing import TypedDict

import numpy as np
from numpy.typing import NDArray

from rag.types import Hit


class RetrieverState(TypedDict, total=False):
    """``query`` holds original words; ``outside_query`` is what a remote embedder may see."""

    query: str
    outside_query: str
    top_k: int
    embedding: NDArray[np.float32]
    rankings: list[list[Hit]]
    chunks: list[Hit]
