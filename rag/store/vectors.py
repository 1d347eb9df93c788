"""Vectors as Postgres takes them: half precision, and NULL for what has no direction."""

from __future__ import annotations

import struct

import numpy as np
from numpy.typing import NDArray


def has_direction(vector: NDArray[np.float32]) -> bool:
    """False for a zero vector and for one with a NaN or an infinity: cosine says nothing then."""
    length = float(np.linalg.norm(vector.astype(np.float64)))
    return bool(np.isfinite(length)) and length > 0.0


def _unit(vector: NDArray[np.float32]) -> NDArray[np.float64]:
    wide = vector.astype(np.float64)
    unit: NDArray[np.float64] = wide / np.linalg.norm(wide)
    return unit


def to_binary(vector: NDArray[np.float32]) -> bytes | None:
    """``halfvec_recv``'s bytes of the unit vector for a binary COPY; ``None`` without direction."""
    if not has_direction(vector):
        return None
    return struct.pack(">hh", len(vector), 0) + _unit(vector).astype(">f2").tobytes()


def to_text(vector: NDArray[np.float32]) -> str:
    """The unit vector as a ``halfvec`` literal; ``vector`` must have a direction."""
    return "[" + ",".join(f"{value:.6g}" for value in _unit(vector)) + "]"
