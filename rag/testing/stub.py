"""A recording model server that speaks OpenAI's HTTP, for tests of what really leaves.

It listens on a loopback port of its own, keeps every byte that it is sent, and answers by
script. It presumes no grammar of placeholders: ``frame`` takes whatever stands between two
plain words of the prompt and uses it in the reply, as a model would. Its embeddings are a
hashed bag of words, so that retrieval means something and repeats.

    with serve_stub(Script(answer=frame("flat 4 is ", " and pays", "It is {}."))) as stub:
        ...  # OPENAI_BASE_URL = stub.base_url
        assert_no_leak(stub, ["Oda Kvistad"])
"""

from __future__ import annotations

import hashlib
import json
import math
import re
import select
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from io import BufferedIOBase
from typing import Any

Say = Callable[[str], str]
"""The prompt (all messages joined) -> what the model says."""


# What it says ---------------------------------------------------------------


def passage_of(prompt: str) -> str:
    """What stands between ``Context:`` and the last ``Question:``; empty without a context."""
    _, marked, rest = prompt.partition("Context:\n")
    return rest.rpartition("\nQuestion:")[0].strip() or rest.strip() if marked else ""


def question_of(prompt: str) -> str:
    """What follows the last ``Question:``, else the last line."""
    return prompt.rpartition("Question:")[2].strip() or prompt.strip().splitlines()[-1]


def say(text: str) -> Say:
    """Always the same."""
    return lambda prompt: text


def echo(prompt: str) -> str:
    """The passage it got, or the question when it got none."""
    return passage_of(prompt) or question_of(prompt)


def same_question(prompt: str) -> str:
    """As a rewrite: the question itself."""
    return question_of(prompt)


def frame(before: str, after: str, reply: str = "{}") -> Say:
    """``reply`` with what stood between two plain words of the prompt in place of ``{}``."""

    def use(prompt: str) -> str:
        found = re.search(re.escape(before) + r"(.+?)" + re.escape(after), prompt, re.DOTALL)
        return reply.replace("{}", found[1]) if found else "The frame is not in the prompt."

    return use


TOKEN = re.compile(r"[\[<{(@]*[A-Za-z][A-Za-z_-]*\w*\d\w*[\]>})]*")
"""Roughly what any placeholder looks like: letters, then something with a digit."""


def bend(prompt: str) -> str:
    """A rewrite whose placeholders lost their case and brackets."""
    return TOKEN.sub(lambda m: m[0].strip("[]<>{}()").lower(), question_of(prompt))


def drop(prompt: str) -> str:
    """A rewrite without its placeholders."""
    return " ".join(TOKEN.sub("", question_of(prompt)).split())


def swap(prompt: str) -> str:
    """A rewrite with placeholders of its own making: each digit is one higher."""

    def other(match: re.Match[str]) -> str:
        return re.sub(r"\d", lambda d: str((int(d[0]) + 1) % 10), match[0])

    return TOKEN.sub(other, question_of(prompt))


def judge(prompt: str) -> str:
    """Valid JSON for Ragas' faithfulness and answer relevancy: all faithful, all relevant."""
    given = _last_object(prompt)
    if "noncommittal" in prompt:
        response = str(given.get("response", "it"))
        return json.dumps({"question": f"What about {response}", "noncommittal": 0})
    if "verdict" in prompt:
        verdicts = [
            {"statement": str(s), "reason": "It is in the context.", "verdict": 1}
            for s in given.get("statements", [])
        ]
        return json.dumps({"statements": verdicts})
    sentences = re.split(r"(?<=[.!?])\s+", str(given.get("answer", "It is so.")).strip())
    return json.dumps({"statements": sentences})


def _last_object(prompt: str) -> dict[str, Any]:
    decoder = json.JSONDecoder()
    for match in reversed(list(re.finditer(r"\{", prompt))):
        try:
            value, _ = decoder.raw_decode(prompt, match.start())
        except ValueError:
            continue
        if isinstance(value, dict) and value.keys() & {"answer", "response", "statements"}:
            return value
    return {}


# How it says it -------------------------------------------------------------


@dataclass(slots=True)
class Script:
    """How to answer. May be changed while the stub runs (``stub.script.status = 500``)."""

    answer: Say = echo
    rewrite: Say = same_question
    """Used for prompts that hold no context."""
    thought: str | None = None
    """Reasoning to send along: as ``reasoning_content``, and before the answer in ``<think>``."""
    finish_reason: str = "stop"
    content_is_null: bool = False

    split: int = 0
    """Characters of each streamed delta; 0: one delta."""
    delay: float = 0.0
    """Seconds before the answer; the client may leave meanwhile, which is recorded."""
    pause: float = 0.0
    """Seconds between deltas."""
    reset_after: int | None = None
    """Reset the connection after so many deltas (0: before the first byte of an answer)."""

    status: int | None = None
    """Fail so; the error's body quotes the prompt, as some servers do."""
    fail_first: int = 0
    """Fail with 500 this many times, then answer."""
    refuse: Callable[[Record], int | None] | None = None
    """The status to fail a request with, or ``None`` to answer it."""
    headers: dict[str, str] = field(default_factory=dict)
    """Further response headers (``Location``, ``Retry-After``)."""
    body: bytes | None = None
    """This very body, whatever was asked."""

    strict: bool = False
    """422 for unknown fields, token arrays, base64 and too many inputs."""
    most_inputs: int = 2048
    dimension: int = 64
    vector: Callable[[str], list[float] | None] | None = None
    """In place of the bag of words; ``None`` is sent as ``null``, NaN as ``NaN``."""
    reverse: bool = False
    """Send the vectors in reverse order, with their indices."""
    lose: int = 0
    """Leave out this many of the vectors."""


STRICT_FIELDS: Mapping[str, frozenset[str]] = {
    "chat": frozenset(
        {
            *("model", "messages", "stream", "max_tokens", "max_completion_tokens"),
            *("temperature", "top_p", "stop", "seed", "n", "tools", "tool_choice"),
        }
    ),
    "embeddings": frozenset({"model", "input", "encoding_format", "dimensions"}),
}


@dataclass(slots=True)
class Record:
    """One request, every byte of it. ``at`` and ``aborted_at``: ``time.time()``."""

    method: str
    path: str
    headers: list[tuple[str, str]] = field(repr=False)
    body: bytes = field(repr=False)
    raw: bytes = field(repr=False)
    at: float
    aborted_at: float | None = None

    @property
    def sent(self) -> list[bytes]:
        return [self.raw, self.path.encode(), self.body]

    @property
    def json(self) -> dict[str, Any]:
        value = json.loads(self.body)
        assert isinstance(value, dict)
        return value

    @property
    def is_chat(self) -> bool:
        return self.path.partition("?")[0].endswith("/chat/completions")

    @property
    def is_embedding(self) -> bool:
        return self.path.partition("?")[0].endswith("/embeddings")

    @property
    def prompt(self) -> str:
        """The text of all messages."""
        return "\n\n".join(_text_of(m.get("content")) for m in self.json.get("messages", []))

    @property
    def inputs(self) -> list[str]:
        """The texts to embed."""
        given = self.json.get("input", [])
        return [given] if isinstance(given, str) else list(given)


class Stub:
    """A running stub: what it was sent, and the script it answers by."""

    def __init__(self, base_url: str, script: Script) -> None:
        self.base_url = base_url
        self.script = script
        self.records: list[Record] = []
        self.wires: list[bytearray] = []
        """Every byte of every connection, also of what was no HTTP."""
        self.lock = threading.Lock()

    @property
    def sent(self) -> list[bytes]:
        with self.lock:
            return [bytes(w) for w in self.wires] + [r.body for r in self.records]

    @property
    def chats(self) -> list[Record]:
        return [r for r in self.records if r.is_chat]

    @property
    def embeddings(self) -> list[Record]:
        return [r for r in self.records if r.is_embedding]

    @property
    def answers(self) -> list[Record]:
        """Chat requests that carried a context."""
        return [r for r in self.chats if passage_of(r.prompt)]

    @property
    def rewrites(self) -> list[Record]:
        return [r for r in self.chats if not passage_of(r.prompt)]

    def forget(self) -> None:
        """Empty the record, keep the script."""
        with self.lock:
            self.records.clear()
            self.wires.clear()

    def assert_called(self, chats: int | None = None) -> None:
        """It was asked at all, or exactly so many times for a completion."""
        assert self.records, "the stub was never called"
        if chats is not None:
            assert len(self.chats) == chats, f"{len(self.chats)} chat requests, not {chats}"


@contextmanager
def serve_stub(script: Script | None = None, host: str = "127.0.0.1") -> Iterator[Stub]:
    """Serve in a thread until the block ends."""
    server = _Server((host, 0), _Handler)
    stub = Stub(f"http://{host}:{server.server_address[1]}/v1", script or Script())
    server.stub = stub
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield stub
    finally:
        server.shutdown()
        server.drop_all()
        server.server_close()
        thread.join()


# The server -----------------------------------------------------------------


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 128
    stub: Stub

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._open: set[socket.socket] = set()

    def server_bind(self) -> None:
        # the standard server looks its own name up in the DNS here
        self.socket.bind(self.server_address)
        self.server_address = self.socket.getsockname()
        self.server_name, self.server_port = "stub", self.server_address[1]

    def process_request(self, request: Any, client_address: Any) -> None:
        self._open.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        self._open.discard(request)
        super().shutdown_request(request)

    def drop_all(self) -> None:
        for connection in list(self._open):
            try:
                connection.shutdown(socket.SHUT_RDWR)
            except OSError:
                continue

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that leaves is no error of ours."""


class _Tee:
    """Reads like the connection, and keeps what was read."""

    def __init__(self, inner: BufferedIOBase, wire: bytearray) -> None:
        self._inner, self._wire = inner, wire

    def readline(self, limit: int = -1) -> bytes:
        return self._keep(self._inner.readline(limit))

    def read(self, size: int = -1) -> bytes:
        return self._keep(self._inner.read(size))

    def close(self) -> None:
        self._inner.close()

    @property
    def closed(self) -> bool:
        return self._inner.closed

    def _keep(self, data: bytes) -> bytes:
        self._wire += data
        return data


class _Gone(Exception):
    """The client left."""


class _Refuse(Exception):
    """Answer with this status and message instead."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: _Server
    record: Record

    def setup(self) -> None:
        super().setup()
        self.stub = self.server.stub
        self.wire = bytearray()
        with self.stub.lock:
            self.stub.wires.append(self.wire)
        self.rfile = _Tee(self.rfile, self.wire)  # type: ignore[assignment]

    def log_message(self, format: str, *args: Any) -> None:
        """Quiet: what it was sent is in the record."""

    def handle_one_request(self) -> None:
        self.start = len(self.wire)
        try:
            super().handle_one_request()
        except (_Gone, ConnectionError, BrokenPipeError):
            if hasattr(self, "record"):
                self.record.aborted_at = self.record.aborted_at or time.time()
            self.close_connection = True

    def do_GET(self) -> None:
        self._keep(b"")
        if self.stub.script.status is not None:
            self._respond(self.stub.script.status, {"error": {"message": "cannot do this"}})
            return
        models = {"object": "list", "data": [{"id": "stub", "object": "model", "owned_by": "stub"}]}
        self._respond(200, models)

    def do_POST(self) -> None:
        self._keep(self._body())
        script = self.stub.script
        try:
            self._maybe_fail(script)
            if self.record.is_chat:
                self._chat(script)
            elif self.record.is_embedding:
                self._embed(script)
            else:
                raise _Refuse(404, "no such path")
        except _Refuse as refusal:
            error = {"message": str(refusal), "type": "stub", "code": refusal.status}
            self._respond(refusal.status, {"error": error})

    def _body(self) -> bytes:
        if self.headers.get("Transfer-Encoding", "").lower() == "chunked":
            return b"".join(self._chunks())
        return self.rfile.read(int(self.headers.get("Content-Length") or 0))

    def _chunks(self) -> Iterator[bytes]:
        while size := int(self.rfile.readline().split(b";")[0] or b"0", 16):
            yield self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()

    def _keep(self, body: bytes) -> None:
        self.record = Record(
            method=self.command,
            path=self.path,
            headers=list(self.headers.items()),
            body=body,
            raw=bytes(self.wire[self.start :]),
            at=time.time(),
        )
        with self.stub.lock:
            self.stub.records.append(self.record)

    def _maybe_fail(self, script: Script) -> None:
        self._wait(script.delay)
        if script.fail_first > 0:
            script.fail_first -= 1
            raise _Refuse(500, "for now")
        if script.reset_after == 0:
            self._reset()
        if script.refuse and (refused := script.refuse(self.record)) is not None:
            raise _Refuse(refused, "not this one")
        if script.status is not None:
            raise _Refuse(script.status, f"cannot do this: {self.record.body.decode()}")
        if script.body is not None:
            self._send(200, "application/json", script.body)
            raise _Gone
        if script.strict:
            self._check_strictly(script)

    def _check_strictly(self, script: Script) -> None:
        kind = "chat" if self.record.is_chat else "embeddings"
        unknown = self.record.json.keys() - STRICT_FIELDS[kind]
        if unknown:
            raise _Refuse(422, f"unknown fields: {sorted(unknown)}")
        if kind == "chat":
            return
        given = self.record.json.get("input")
        if not isinstance(given, str) and not all(isinstance(x, str) for x in given or [0]):
            raise _Refuse(400, "input must be a string or a list of strings")
        if self.record.json.get("encoding_format", "float") != "float":
            raise _Refuse(400, "only float")
        if len(self.record.inputs) > script.most_inputs:
            raise _Refuse(413, "too many inputs")

    # chat

    def _chat(self, script: Script) -> None:
        prompt = self.record.prompt
        text = (script.answer if passage_of(prompt) else script.rewrite)(prompt)
        if script.thought is not None:
            text = f"<think>{script.thought}</think>\n{text}"
        if self.record.json.get("stream"):
            self._stream(script, text)
            return
        message: dict[str, Any] = {
            "role": "assistant",
            "content": None if script.content_is_null else text,
        }
        if script.thought is not None:
            message["reasoning_content"] = script.thought
        choice = {"index": 0, "message": message, "finish_reason": script.finish_reason}
        usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
        self._respond(200, {**self._head("chat.completion"), "choices": [choice], "usage": usage})

    def _head(self, kind: str) -> dict[str, Any]:
        return {"id": "stub-1", "object": kind, "created": 0, "model": "stub"}

    def _stream(self, script: Script, text: str) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        size = script.split or max(len(text), 1)
        deltas: list[dict[str, str]] = [{"role": "assistant", "content": ""}]
        if script.thought is not None:
            deltas.append({"reasoning_content": script.thought})
        deltas += [{"content": text[i : i + size]} for i in range(0, len(text), size)]
        for n, delta in enumerate(deltas):
            if n == script.reset_after:
                self._reset()
            self._event({"index": 0, "delta": delta, "finish_reason": None})
            self._wait(script.pause)
        self._event({"index": 0, "delta": {}, "finish_reason": script.finish_reason})
        self._chunk(b"data: [DONE]\n\n")
        self.wfile.write(b"0\r\n\r\n")

    def _event(self, choice: dict[str, Any]) -> None:
        value = {**self._head("chat.completion.chunk"), "choices": [choice]}
        self._chunk(b"data: " + json.dumps(value, ensure_ascii=False).encode() + b"\n\n")

    def _chunk(self, data: bytes) -> None:
        self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
        self.wfile.flush()

    # embeddings

    def _embed(self, script: Script) -> None:
        make = script.vector or (lambda text: bag_of_words(text, script.dimension))
        data = [
            {"object": "embedding", "index": i, "embedding": make(text)}
            for i, text in enumerate(self.record.inputs)
        ]
        data = data[: len(data) - script.lose]
        if script.reverse:
            data.reverse()
        usage = {"prompt_tokens": 1, "total_tokens": 1}
        self._respond(200, {"object": "list", "model": "stub", "data": data, "usage": usage})

    # answering

    def _respond(self, status: int, value: Any) -> None:
        self._send(status, "application/json", json.dumps(value).encode())

    def _send(self, status: int, kind: str, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        for name, header in self.stub.script.headers.items():
            self.send_header(name, header)
        self.end_headers()
        self.wfile.write(body)
        self.wfile.flush()

    def _wait(self, seconds: float) -> None:
        """Sleep, unless the client leaves."""
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            readable, _, _ = select.select([self.connection], [], [], min(left, 0.05))
            if readable and not self.connection.recv(1, socket.MSG_PEEK):
                self.record.aborted_at = time.time()
                raise _Gone
            if readable:
                time.sleep(min(left, 0.05))

    def _reset(self) -> None:
        """Break the connection off, as a crashing server does."""
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.connection.close()
        raise _Gone


def bag_of_words(text: str, dimension: int) -> list[float]:
    """Each word adds one to the place that its hash names; unit norm unless empty."""
    vector = [0.0] * dimension
    for word in re.findall(r"\w+", text.casefold()):
        digest = hashlib.blake2b(word.encode(), digest_size=8).digest()
        vector[int.from_bytes(digest, "big") % dimension] += 1.0
    norm = math.sqrt(sum(x * x for x in vector))
    return [x / norm for x in vector] if norm else vector


def _text_of(content: Any) -> str:
    if isinstance(content, str):
        return content
    parts: Sequence[Any] = content if isinstance(content, list) else []
    return "\n".join(str(p.get("text", "")) for p in parts if isinstance(p, dict))
