"""Embedders by name: ``local``, or ``openai:MODEL`` at an OpenAI-compatible server.

The remote one is outside the boundary: it requires a guard with every call and sends
strings only (a token array could not be checked), numbers in plain JSON, one bounded
batch at a time.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from rag.errors import BoundaryRefused, Misconfigured, ModelFailed
from rag.models.chat import OPENAI
from rag.models.local import LocalEmbedder, unit
from rag.models.text import sendable
from rag.ports import OutboundGuard, Vectors
from rag.settings import Settings
from rag.types import Space

if TYPE_CHECKING:
    from rag.models.egress import Egress

PROBE = "word"
"""The one fixed text that finds out a remote model's dimension; our own, never a user's."""

_TOO_MUCH = frozenset({400, 413, 422})
"""How servers say that a batch is too large for them; a smaller one may pass."""


@asynccontextmanager
async def open_embedder(settings: Settings) -> AsyncIterator[LocalEmbedder | RemoteEmbedder]:
    """The configured embedder, ready to use.

    Raises ``Misconfigured`` for an unknown name, ``Unavailable`` without local weights,
    and as ``ChatModel.complete`` does when the remote model cannot be probed.
    """
    embedder = await _opened(settings)
    try:
        yield embedder
    finally:
        await embedder.aclose()


async def _opened(settings: Settings) -> LocalEmbedder | RemoteEmbedder:
    if settings.embeddings == "local":
        return await LocalEmbedder.open()
    kind, _, model = settings.embeddings.partition(":")
    if kind != "openai" or not model:
        raise Misconfigured("VEILRAG_EMBEDDINGS must be local or openai:MODEL.")
    return await RemoteEmbedder.open(settings, model)


class RemoteEmbedder:
    """The ``Embedder`` port at ``OPENAI_BASE_URL``."""

    remote = True

    def __init__(self, settings: Settings, model: str) -> None:
        from rag.models.egress import Egress, Endpoint
        from rag.models.failures import quiet_loggers

        quiet_loggers()
        key = settings.openai_api_key
        endpoint = Endpoint.parse(
            settings.openai_base_url or OPENAI, key.get_secret_value() if key else None
        )
        self.trusted = endpoint.trusted_by(settings.trusted_hosts)
        self.space = Space(f"openai:{model}", 0)
        self._model = model
        self._most = settings.embedding_batch_texts
        self._settings = settings
        self._egress: Egress = Egress(endpoint, settings.model_timeout)

    @classmethod
    async def open(cls, settings: Settings, model: str) -> Self:
        """Probe the dimension with ``PROBE``."""
        made = cls(settings, model)
        try:
            [vector] = await made._ask([PROBE], _ProbeGuard())
            if not isinstance(vector, list) or not vector:
                raise ModelFailed("The embedding endpoint gave no vector.")
        except BaseException:
            await made.aclose()
            raise
        made.space = Space(made.space.model, len(vector))
        return made

    @property
    def base_url(self) -> str:
        """Where it goes, for ``seal_process``."""
        return self._egress.endpoint.base_url

    async def embed(self, texts: Sequence[str], guard: OutboundGuard | None = None) -> Vectors:
        """Unit vectors; rows of zeros for empty texts and for useless replies.

        Raises ``BoundaryRefused`` without a guard, else as ``ChatModel.complete`` does.
        """
        if guard is None:
            raise BoundaryRefused("A remote embedder needs a guard.")
        vectors = np.zeros((len(texts), self.space.dimension), np.float64)
        filled = [i for i, text in enumerate(texts) if text.strip()]
        while filled:
            rows = _batch(filled, texts, self._most, self._settings.embedding_batch_chars)
            del filled[: len(rows)]
            replies = await self._vectors([sendable(texts[i]) for i in rows], guard)
            for row, reply in zip(rows, replies, strict=True):
                vectors[row] = self._row(reply)
        return unit(vectors.astype(np.float32))

    async def _vectors(self, texts: list[str], guard: OutboundGuard) -> list[Any]:
        """As ``_ask``, in halves when the server takes no more at once.

        The smaller size is kept when the halves passed, not when the server refuses a text
        of its own accord: later documents would go one text at a time for nothing.
        """
        try:
            return await self._ask(texts, guard)
        except _TooMuch:
            half = len(texts) // 2
        first = await self._vectors(texts[:half], guard)
        vectors = first + await self._vectors(texts[half:], guard)
        self._most = min(self._most, half)
        return vectors

    def _row(self, reply: object) -> Any:
        if reply is None or reply == []:
            return 0.0
        if not isinstance(reply, list) or len(reply) != self.space.dimension:
            raise ModelFailed("The embedding endpoint gave a vector of another dimension.")
        if not all(isinstance(x, int | float) for x in reply):
            return 0.0  # nulls among the numbers
        return reply

    async def _ask(self, texts: list[str], guard: OutboundGuard) -> list[Any]:
        """The replies' vectors in the order of ``texts``, unchecked in themselves."""
        from rag.models.failures import FOREIGN, failure_of

        try:
            async with asyncio.timeout(self._settings.model_timeout):
                data = await self._create(texts, guard)
            vectors = {int(item.index): item.embedding for item in data}
            if len(data) != len(texts) or vectors.keys() != set(range(len(texts))):
                raise ModelFailed("The embedding endpoint gave another number of vectors.")
            return [vectors[i] for i in range(len(texts))]
        except FOREIGN as error:
            too_much = len(texts) > 1 and getattr(error, "status_code", 0) in _TOO_MUCH
            failure = _TooMuch() if too_much else failure_of(error)
        raise failure

    async def _create(self, texts: list[str], guard: OutboundGuard) -> list[Any]:
        from openai import AsyncOpenAI

        from rag.models.failures import Refused

        client = AsyncOpenAI(
            api_key=self._egress.endpoint.key or "unused",
            base_url=self.base_url,
            http_client=self._egress.async_client(guard, Refused),
            timeout=self._settings.model_timeout,
            max_retries=self._settings.model_retries,
        )
        reply = await client.embeddings.create(
            input=texts, model=self._model, encoding_format="float"
        )
        return list(reply.data)

    async def ping(self) -> None:
        """Ready as soon as it is open: the probe has shown it."""

    async def aclose(self) -> None:
        await self._egress.aclose()


class _ProbeGuard:
    """Lets out ``PROBE`` and nothing else."""

    def check(self, method: str, url: str, headers: Sequence[tuple[str, str]], body: bytes) -> None:
        if json.loads(body).get("input") != [PROBE]:
            raise BoundaryRefused("Only the probe may leave here.")


class _TooMuch(ModelFailed):
    """The server takes no batch of this size."""


def _batch(rows: Sequence[int], texts: Sequence[str], most: int, most_chars: int) -> list[int]:
    """The first of ``rows``: at least one, else at most ``most`` and ``most_chars`` together."""
    chars = 0
    for n, row in enumerate(rows[:most]):
        chars += len(texts[row])
        if n and chars > most_chars:
            return list(rows[:n])
    return list(rows[:most])
