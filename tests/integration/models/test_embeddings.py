"""Embedders: the local one within the boundary, the remote one against a real server."""

from __future__ import annotations

import asyncio
import json
import math
import subprocess
import sys
import traceback
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import numpy as np
import pytest

from rag.errors import BoundaryRefused, Misconfigured, ModelFailed, VeilragError
from rag.models.embeddings import RemoteEmbedder, open_embedder
from rag.models.local import LocalEmbedder, unit
from rag.settings import Settings
from rag.testing.stub import Script, Stub, bag_of_words, serve_stub

SECRET = "Ingrun"
TEXTS = ["The boat is in Lund.", "", "The mill is old.", "  \n", "The boat is in Lund."]


@pytest.fixture(scope="module")
def local() -> LocalEmbedder:
    return asyncio.run(LocalEmbedder.open())


@pytest.fixture
def stub() -> Iterator[Stub]:
    with serve_stub(Script(strict=True, dimension=48)) as running:
        yield running


@pytest.fixture
async def remote(
    stub: Stub, settings_for: Callable[..., Settings]
) -> AsyncIterator[RemoteEmbedder]:
    async with open_embedder(settings_for(stub.base_url, embeddings="openai:m")) as embedder:
        stub.forget()
        assert isinstance(embedder, RemoteEmbedder)
        yield embedder


async def test_local_rows_are_unit_vectors(local: LocalEmbedder) -> None:
    """Float32 rows of unit norm in the order of the texts, zeros for what holds no word."""
    vectors = await local.embed(TEXTS)
    assert (vectors.shape, vectors.dtype) == ((5, local.space.dimension), np.float32)
    norms = np.linalg.norm(vectors, axis=1)
    assert norms == pytest.approx([1, 0, 1, 0, 1], abs=1e-5)
    assert np.array_equal(vectors[0], vectors[4])


async def test_local_batches_change_nothing(local: LocalEmbedder) -> None:
    """A text has the same vector alone and among hundreds of other lengths."""
    texts = [f"word{i} " * (i % 40) for i in range(300)]
    together = await local.embed(texts)
    alone = np.vstack([await local.embed([t]) for t in texts[:45]])
    assert together[:45] == pytest.approx(alone, abs=1e-5)


async def test_local_means_something(local: LocalEmbedder) -> None:
    """A question is nearer to its answer than to another sentence."""
    q, near, far = await local.embed(
        ["Who repairs the boat?", "A ship needs its hull mended.", "Taxes rose in spring."]
    )
    assert q @ near > q @ far + 0.1


@pytest.mark.parametrize("text", ["\x00", "\ud800", "💥" * 1000, "\u202e", "x" * 200_000])
async def test_local_takes_any_text(local: LocalEmbedder, text: str) -> None:
    """No text breaks it; the vector is unit or zero."""
    [norm] = np.linalg.norm(await local.embed([text]), axis=1)
    assert norm == pytest.approx(1, abs=1e-4) or norm == 0


async def test_local_of_nothing(local: LocalEmbedder) -> None:
    """No texts give no rows, with the right width."""
    assert (await local.embed([])).shape == (0, 256)


def test_local_opens_without_network() -> None:
    """Loading the weights looks up no name and opens no connection."""
    done = subprocess.run(
        [
            sys.executable,
            "-c",
            "import asyncio\nfrom rag.models.seal import seal_process\nseal_process([])\n"
            "from rag.models.local import LocalEmbedder\n"
            "async def main():\n    e = await LocalEmbedder.open()\n"
            "    print((await e.embed(['boat'])).shape)\nasyncio.run(main())",
        ],
        env={"HOME": "/nonexistent"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.stdout.strip() == "(1, 256)", done.stderr


async def test_remote_dimension_is_probed(
    stub: Stub, settings_for: Callable[..., Settings]
) -> None:
    """The space is found out with one fixed word of ours, and nothing else leaves."""
    async with open_embedder(settings_for(stub.base_url, embeddings="openai:m")) as embedder:
        assert (embedder.space.model, embedder.space.dimension) == ("openai:m", 48)
        assert (embedder.remote, embedder.trusted) == (True, False)
    assert [record.inputs for record in stub.embeddings] == [["word"]]


async def test_remote_rows_are_unit_vectors(remote: RemoteEmbedder, stub: Stub, guard: Any) -> None:
    """Rows in the order of the texts; empty texts are not sent and come as zeros."""
    vectors = await remote.embed(TEXTS, guard)
    assert vectors.dtype == np.float32
    assert np.linalg.norm(vectors, axis=1) == pytest.approx([1, 0, 1, 0, 1], abs=1e-5)
    assert vectors[2] == pytest.approx(bag_of_words(TEXTS[2], 48), abs=1e-6)
    assert [r.inputs for r in stub.embeddings] == [[TEXTS[0], TEXTS[2], TEXTS[4]]]


async def test_remote_sends_strings_in_plain_json(
    remote: RemoteEmbedder, stub: Stub, guard: Any
) -> None:
    """The body is the texts, the model and a format that can be read: no tokens, no base64."""
    await remote.embed(["boat"], guard)
    assert stub.embeddings[0].json == {"input": ["boat"], "model": "m", "encoding_format": "float"}


async def test_remote_takes_half_a_character(
    remote: RemoteEmbedder, stub: Stub, guard: Any
) -> None:
    """A lone surrogate in a text does not break the request."""
    await remote.embed(["the \ud800 boat"], guard)
    assert stub.embeddings[0].inputs == ["the ? boat"]


async def test_remote_without_a_guard(remote: RemoteEmbedder, stub: Stub) -> None:
    """Without a guard nothing leaves."""
    with pytest.raises(BoundaryRefused):
        await remote.embed(["boat"])
    assert stub.sent == []


async def test_remote_refusal(
    remote: RemoteEmbedder, stub: Stub, guard_against: Callable[..., Any]
) -> None:
    """What the guard refuses is BoundaryRefused and never sent."""
    with pytest.raises(BoundaryRefused):
        await remote.embed([f"the boat of {SECRET}"], guard_against(SECRET))
    assert stub.sent == []


async def test_remote_order_is_by_index(remote: RemoteEmbedder, stub: Stub, guard: Any) -> None:
    """A server may send the vectors in any order."""
    stub.script.reverse = True
    vectors = await remote.embed(["boat", "mill"], guard)
    assert vectors[0] == pytest.approx(bag_of_words("boat", 48), abs=1e-6)


async def test_remote_batches_are_bounded(remote: RemoteEmbedder, stub: Stub, guard: Any) -> None:
    """Many texts go in several requests, each of bounded count and length."""
    texts = [f"boat {i}" for i in range(150)] + ["mill " * 10_000] * 3
    vectors = await remote.embed(texts, guard)
    assert len(vectors) == 153
    assert sum(len(r.inputs) for r in stub.embeddings) == 153
    assert max(len(r.inputs) for r in stub.embeddings) <= 64
    assert max(len(r.body) for r in stub.embeddings) < 150_000


async def test_remote_batches_shrink(remote: RemoteEmbedder, stub: Stub, guard: Any) -> None:
    """A server that takes ten texts at a time gets them all, and is asked with fewer after."""
    stub.script.most_inputs = 10
    texts = [f"boat {i}" for i in range(95)]
    vectors = await remote.embed(texts, guard)
    assert vectors[94] == pytest.approx(bag_of_words("boat 94", 48), abs=1e-6)
    stub.forget()
    await remote.embed(texts, guard)
    assert max(len(r.inputs) for r in stub.embeddings) <= 10


async def test_remote_batches_obey_the_settings(
    stub: Stub, settings_for: Callable[..., Settings], guard: Any
) -> None:
    """Limits that are known beforehand are kept from the first request on, none is refused."""
    stub.script.most_inputs = 10
    own = {"embedding_batch_texts": 10, "embedding_batch_chars": 300}
    settings = settings_for(stub.base_url, embeddings="openai:m", **own)
    texts = [f"boat {i} " + "oar " * 10 for i in range(95)]
    async with open_embedder(settings) as embedder:
        stub.forget()
        vectors = await embedder.embed(texts, guard)
    assert vectors[94] == pytest.approx(bag_of_words(texts[94], 48), abs=1e-6)
    assert max(len(r.inputs) for r in stub.embeddings) <= 10
    assert max(sum(map(len, r.inputs)) for r in stub.embeddings) <= 300
    assert sum(len(r.inputs) for r in stub.embeddings) == 95


async def test_remote_batches_are_whole_after_a_refused_text(
    remote: RemoteEmbedder, stub: Stub, guard: Any
) -> None:
    """A text that the server refuses fails its own call; later ones go as many at once as ever."""
    stub.script.refuse = lambda record: 413 if any("mill" in x for x in record.inputs) else None
    with pytest.raises(ModelFailed):
        await remote.embed(["boat"] * 20 + ["mill"] + ["boat"] * 20, guard)
    stub.forget()
    await remote.embed([f"boat {i}" for i in range(60)], guard)
    assert [len(r.inputs) for r in stub.embeddings] == [60]


USELESS: dict[str, Any] = {
    "null": None,
    "zeros": [0.0] * 48,
    "NaN": [math.nan] + [1.0] * 47,
    "infinity": [math.inf] + [1.0] * 47,
    "nothing": [],
    "a null inside": [None] + [1.0] * 47,
}


@pytest.mark.parametrize("useless", USELESS.values(), ids=list(USELESS))
async def test_remote_useless_vectors_are_zeros(
    remote: RemoteEmbedder, stub: Stub, guard: Any, useless: Any
) -> None:
    """A vector that means nothing is a row of zeros; its neighbours are right."""
    stub.script.vector = lambda text: useless if "mill" in text else bag_of_words(text, 48)
    vectors = await remote.embed(["boat", "mill", "tram"], guard)
    assert np.linalg.norm(vectors, axis=1) == pytest.approx([1, 0, 1], abs=1e-5)


BROKEN: dict[str, Script] = {
    "one too few": Script(lose=1, dimension=48),
    "another dimension": Script(dimension=7),
    "a string for a vector": Script(vector=lambda _: "AAAA"),  # type: ignore[arg-type,return-value]
    "no data": Script(body=b'{"object": "list"}'),
    "null data": Script(body=b'{"object": "list", "data": null}'),
    "one index twice": Script(
        body=json.dumps({"data": [{"index": 0, "embedding": [1]}] * 2}).encode()
    ),
    "no index": Script(body=b'{"data": [{"embedding": [1]}, {"embedding": [1]}]}'),
    "no JSON": Script(body=b"Ingrun"),
    "an error": Script(status=500),
    "a rejection": Script(status=400),
    "a reset": Script(reset_after=0),
}


@pytest.mark.parametrize("script", BROKEN.values(), ids=list(BROKEN))
async def test_remote_broken_replies_are_failures(
    remote: RemoteEmbedder, stub: Stub, guard: Any, script: Script
) -> None:
    """A reply that cannot be trusted whole fails; nothing of it or of the texts is quoted."""
    stub.script = script
    with pytest.raises(ModelFailed) as raised:
        await remote.embed([f"the boat of {SECRET}", "the mill"], guard)
    assert type(raised.value) is ModelFailed
    assert SECRET not in "".join(traceback.format_exception(raised.value))


async def test_remote_probe_failure(stub: Stub, settings_for: Callable[..., Settings]) -> None:
    """An embedder whose server knows no such model does not open."""
    stub.script.status = 404
    with pytest.raises(Misconfigured):
        async with open_embedder(settings_for(stub.base_url, embeddings="openai:m")):
            pass


@pytest.mark.parametrize("name", ["", "openai", "openai:", "cohere:m", "LOCAL"])
async def test_unknown_names(settings_for: Callable[..., Settings], name: str) -> None:
    """An embedder that is not known is a setting that is wrong."""
    with pytest.raises(VeilragError) as raised:
        async with open_embedder(settings_for(None, embeddings=name)):
            pass
    assert type(raised.value) is Misconfigured


def test_unit_of_extremes() -> None:
    """Very large and very small numbers still give unit rows; what is no number gives zeros."""
    rows = np.array([[3e38, 3e38], [1e-8, 0], [0, 0], [np.nan, 1], [np.inf, 1]], np.float32)
    assert np.linalg.norm(unit(rows), axis=1) == pytest.approx([1, 1, 0, 0, 0], abs=1e-5)
