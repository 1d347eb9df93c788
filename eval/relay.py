"""The scorer child's only way out: its parent, over the pipe that started it.

The child has no key, no address of a model and no originals. It asks its parent for a
completion or for vectors, one JSON object a line, and the parent sends it through the
same guarded transport as every other request (I1, I7). Connecting anywhere else is
refused inside the process, whatever a library tries.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import sys
from collections.abc import Mapping, Sequence
from typing import Any, BinaryIO

LINE_LIMIT = 32_000_000
REFUSED_EVENTS = frozenset(
    {
        "socket.connect",
        "socket.sendto",
        "socket.sendmsg",
        "socket.getaddrinfo",
        "socket.gethostbyname",
        "socket.gethostbyaddr",
    }
)


class AskFailed(Exception):
    """The parent could not give what was asked; ``code`` says why."""

    def __init__(self, code: str) -> None:
        super().__init__(code)
        self.code = code


def _refuse(event: str, _: tuple[Any, ...]) -> None:
    if event in REFUSED_EVENTS:
        raise PermissionError("the scorer has no network")


def forbid_network() -> None:
    """Refuse every outgoing connection and look-up that Python code of this process tries.

    An audit hook (PEP 578), so it cannot be taken back and sees every HTTP library; and the
    seal of every process of ours, which keeps native network stacks from being imported.
    """
    from rag.models.seal import seal_process

    sys.addaudithook(_refuse)
    seal_process(())


def own_stdout() -> BinaryIO:
    """Keep the real stdout for the protocol; what libraries print goes to stderr."""
    kept = os.fdopen(os.dup(1), "wb", buffering=0)
    os.dup2(2, 1)
    return kept


class Relay:
    """Asks the parent; answers may come in any order, so each ask has a number."""

    def __init__(self, reader: asyncio.StreamReader, out: BinaryIO) -> None:
        self._reader = reader
        self._out = out
        self._numbers = itertools.count(1)
        self._waiting: dict[int, asyncio.Future[Mapping[str, Any]]] = {}
        self._closed = False

    @classmethod
    async def open(cls, out: BinaryIO) -> Relay:
        """A relay over this process's stdin and ``out``."""
        loop = asyncio.get_running_loop()
        reader = asyncio.StreamReader(limit=LINE_LIMIT)
        await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
        return cls(reader, out)

    async def read(self) -> Mapping[str, Any] | None:
        """The next object of the parent; ``None`` when it is gone."""
        line = await self._reader.readline()
        return json.loads(line) if line else None

    def send(self, value: Mapping[str, Any]) -> None:
        self._out.write(json.dumps(value, allow_nan=False).encode() + b"\n")

    async def pump(self) -> None:
        """Hand the parent's answers to who waits for them, until the parent is gone."""
        while (answer := await self.read()) is not None:
            waiting = self._waiting.pop(int(answer["id"]), None)
            if waiting is not None and not waiting.done():
                waiting.set_result(answer)
        self._closed = True
        for waiting in self._waiting.values():
            if not waiting.done():
                waiting.set_exception(AskFailed("closed"))

    async def _ask(self, kind: str, **fields: Any) -> Mapping[str, Any]:
        if self._closed:
            raise AskFailed("closed")
        number = next(self._numbers)
        waiting = asyncio.get_running_loop().create_future()
        self._waiting[number] = waiting
        self.send({"id": number, "ask": kind, **fields})
        answer: Mapping[str, Any] = await waiting
        if "error" in answer:
            raise AskFailed(str(answer["error"]))
        return answer

    async def complete(self, prompt: str) -> str:
        """What the judge says to ``prompt``. Raises ``AskFailed``."""
        return str((await self._ask("complete", prompt=prompt))["text"])

    async def embed(self, texts: Sequence[str]) -> list[list[float]]:
        """The local embedder's vectors, in order. Raises ``AskFailed``."""
        vectors: list[list[float]] = (await self._ask("embed", texts=list(texts)))["vectors"]
        return vectors
