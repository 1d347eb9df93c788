"""Embeddings on this machine: WordLlama's 256 dimensions, weights in its wheel, offline."""

from __future__ import annotations

import asyncio
import logging
import re
from array import array
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

import numpy as np

from rag.errors import Unavailable
from rag.models.text import sendable
from rag.ports import OutboundGuard, Vectors
from rag.types import Space

_CONFIG, DIMENSION = "l2_supercat", 256
SPACE = Space("local:wordllama-l2-supercat", DIMENSION)
_BATCH = 64
_AT_ONCE = 2_000
"""So many characters are embedded on the event loop itself."""


class LocalEmbedder:
    """The ``Embedder`` port within the boundary. CPU-bound: more than a question
    works in a worker thread."""

    space = SPACE
    remote = False
    trusted = True

    def __init__(self, model: Any) -> None:
        self._model = model

    @classmethod
    async def open(cls) -> Self:
        """Load the weights (about 32 MB); raises ``Unavailable`` when they are not there."""
        return cls(await asyncio.to_thread(_load))

    async def embed(self, texts: Sequence[str], guard: OutboundGuard | None = None) -> Vectors:
        """Unit vectors; a text without a known token is a row of zeros. Nothing leaves."""
        return await asyncio.to_thread(self._embed, [sendable(text) for text in texts])

    def _embed(self, texts: Sequence[str]) -> Vectors:
        vectors = np.zeros((len(texts), DIMENSION), np.float32)
        # like lengths together: a batch is padded to its longest text
        order = [
            i for i in sorted(range(len(texts)), key=lambda i: len(texts[i])) if texts[i].strip()
        ]
        for start in range(0, len(order), _BATCH):
            rows = order[start : start + _BATCH]
            vectors[rows] = self._model.embed([texts[i] for i in rows], norm=False)
        return unit(vectors)

    async def ping(self) -> None:
        """Ready as soon as it is open."""

    async def aclose(self) -> None:
        self._model = None


class TokenPlaces:
    """Where the tokens of a text begin, as this model reads it. Safe in several threads."""

    def __init__(self) -> None:
        import wordllama
        from tokenizers import Tokenizer

        path = Path(wordllama.__file__).parent / "tokenizers" / f"{_CONFIG}_tokenizer_config.json"
        try:
            self._tokenizer: Any = Tokenizer.from_file(str(path))
        except Exception:  # the library raises nothing narrower
            raise Unavailable("The local embedding model is not installed whole.") from None
        self._tokenizer.no_padding()
        self._tokenizer.no_truncation()

    def __call__(self, text: str) -> Sequence[int]:
        """Offsets in characters, in order; read in pieces, for time grows with their length."""
        places: array[int] = array("i")
        pieces = [match.span() for match in _PIECE.finditer(text)]
        for first in range(0, len(pieces), _PIECES):
            some = pieces[first : first + _PIECES]
            encoded = self._tokenizer.encode_batch(
                [sendable(text[start:end]) for start, end in some], add_special_tokens=False
            )
            for (start, _), tokens in zip(some, encoded, strict=True):
                places.extend(start + place for place, _ in tokens.offsets)
        return places


_PIECE = re.compile(r"[^\n]{1,2000}")
_PIECES = 512


def unit(vectors: Vectors) -> Vectors:
    """Rows scaled to unit norm; rows of zero or not finite numbers become all zeros."""
    with np.errstate(invalid="ignore", over="ignore"):
        norms = np.linalg.norm(vectors.astype(np.float64), axis=1, keepdims=True)
    usable = np.isfinite(norms) & (norms > 1e-12)
    scaled = np.divide(vectors, norms, out=np.zeros(vectors.shape), where=usable)
    rows: Vectors = scaled.astype(np.float32)
    return rows


def _load() -> Any:
    with _logging_unchanged():
        import wordllama

        # its own look-up of the tokenizer goes to the wrong folder, then to the network
        folder = Path(wordllama.__file__).parent
        try:
            return wordllama.WordLlama.load(
                _CONFIG, cache_dir=folder, dim=DIMENSION, disable_download=True
            )
        except (FileNotFoundError, ValueError):
            raise Unavailable("The local embedding model is not installed whole.") from None


@contextmanager
def _logging_unchanged() -> Iterator[None]:
    """Importing wordllama makes every library's INFO lines appear, which may hold values (I6)."""
    root = logging.getLogger()
    level, handlers = root.level, root.handlers[:]
    try:
        yield
    finally:
        root.setLevel(level)
        root.handlers[:] = handlers
