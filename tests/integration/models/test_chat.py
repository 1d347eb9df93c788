"""The chat port against a real server: what it sends, what it makes of replies and failures."""

from __future__ import annotations

import asyncio
import json
import logging
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from rag.errors import BoundaryRefused, Misconfigured, ModelFailed, ModelTimeout, VeilragError
from rag.models.chat import OpenAIChat, open_chat
from rag.settings import Settings
from rag.testing.noleak import assert_no_leak
from rag.testing.stub import Script, Stub, say, serve_stub
from rag.types import Completion, Message

SECRET = "Ingrun Vestby"
ASK = [
    Message("system", "Answer from the context."),
    Message("user", f"Context:\n[1] The boat belongs to {SECRET}.\n\nQuestion: Whose boat?"),
]


@pytest.fixture
def stub() -> Iterator[Stub]:
    with serve_stub(Script(answer=say("It is hers [1]."))) as running:
        yield running


@pytest.fixture
def ask(stub: Stub, settings_for: Callable[..., Settings], guard: Any) -> Callable[..., Any]:
    async def run(guard: Any = guard, **more: Any) -> Completion:
        async with open_chat(settings_for(stub.base_url, **more)) as chat:
            assert chat is not None
            return await chat.complete(ASK, guard)

    return run


async def _until(holds: Callable[[], bool]) -> None:
    for _ in range(100):
        if holds():
            return
        await asyncio.sleep(0.05)
    raise AssertionError("it did not come to that within five seconds")


async def test_completes(ask: Callable[..., Any], stub: Stub) -> None:
    """The reply comes as it is, with why it stopped."""
    stub.script.finish_reason = "length"
    assert await ask() == Completion("It is hers [1].", "length")
    stub.assert_called(chats=1)


async def test_sends_nothing_but_what_is_asked(ask: Callable[..., Any], stub: Stub) -> None:
    """Messages, model and stream: no user, metadata, stream options, logprobs or ids."""
    stub.script.strict = True
    await ask()
    [record] = stub.records
    assert record.json == {
        "model": "gpt-5-mini",
        "stream": False,
        "messages": [{"role": m.role, "content": m.content} for m in ASK],
    }
    assert {name.lower() for name, _ in record.headers} == {
        *("host", "accept", "user-agent", "content-type", "content-length", "authorization"),
    }


async def test_organisation_and_project_of_the_environment_stay(
    ask: Callable[..., Any], stub: Stub, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Variables that openai's client reads by itself do not reach the server."""
    monkeypatch.setenv("OPENAI_ORG_ID", "kvistad-ltd")
    monkeypatch.setenv("OPENAI_PROJECT_ID", "project-oda")
    monkeypatch.setenv("OPENAI_PROXY", "http://127.0.0.1:9")
    monkeypatch.setenv("OPENAI_CUSTOM_HEADERS", "x-user: kvistad-ltd")
    await ask()
    assert_no_leak(stub, ["kvistad-ltd", "project-oda"])


async def test_limit_of_output(ask: Callable[..., Any], stub: Stub) -> None:
    """A compatible server gets the limit under the name that it knows."""
    await ask(max_output_tokens=7)
    assert stub.chats[0].json["max_tokens"] == 7
    assert "max_completion_tokens" not in stub.chats[0].json


THOUGHTS = {
    "a block": ("<think>Who is it? [1]</think>\n\nIt is hers.", "It is hers."),
    "a block in capitals": ("<THINK>Who?</THINK>It is hers.", "It is hers."),
    "two blocks": ("<think>a</think><think>b</think>It is hers.", "It is hers."),
    "another name": ("<thinking>a</thinking> It is hers.", "It is hers."),
    "brackets": ("[THINK]a[/THINK]It is hers.", "It is hers."),
    "only its end": ("Who could it be?</think>\nIt is hers.", "It is hers."),
    "none": ("It is hers.", "It is hers."),
    "quoted later": ("The tag <think> opens it.", "The tag <think> opens it."),
    "quoted whole": ("Write <think>a</think> there.", "Write <think>a</think> there."),
}


@pytest.mark.parametrize(("said", "kept"), THOUGHTS.values(), ids=list(THOUGHTS))
async def test_thoughts_are_dropped(
    ask: Callable[..., Any], stub: Stub, said: str, kept: str
) -> None:
    """What a model thinks before its answer is no part of the answer."""
    stub.script.answer = say(said)
    assert (await ask()).text == kept


async def test_reasoning_content_is_dropped(ask: Callable[..., Any], stub: Stub) -> None:
    """The field of its own that servers put reasoning into is not read."""
    stub.script.thought = "Whose could it be?"
    assert (await ask()).text == "It is hers [1]."


EMPTY: dict[str, Script] = {
    "null": Script(content_is_null=True),
    "empty": Script(answer=say("")),
    "blank": Script(answer=say(" \n")),
    "a thought alone": Script(answer=say("<think>Well.</think>")),
    "a thought cut off": Script(answer=say("<think>Well, she")),
    "no choices": Script(body=b'{"id": "a", "object": "chat.completion", "choices": []}'),
    "null choices": Script(body=b'{"id": "a", "object": "chat.completion", "choices": null}'),
    "no message": Script(body=b'{"id": "a", "choices": [{"index": 0}]}'),
    "an error with status 200": Script(body=f'{{"error": {{"message": "{SECRET}"}}}}'.encode()),
    "a list": Script(body=b"[]"),
    "a string": Script(body=f'"{SECRET}"'.encode()),
    "no JSON": Script(body=SECRET.encode()),
    "nothing": Script(body=b""),
    "no UTF-8": Script(body=b"\xff\xfe\x00"),
    "endless nesting": Script(body=b"[" * 200_000),
}


@pytest.mark.parametrize("script", EMPTY.values(), ids=list(EMPTY))
async def test_a_reply_without_text_is_a_failure(
    ask: Callable[..., Any], stub: Stub, script: Script
) -> None:
    """No text is never passed on as an empty answer."""
    stub.script = script
    with pytest.raises(ModelFailed) as raised:
        await ask()
    assert type(raised.value) is ModelFailed
    _assert_mute(raised.value)


STATUSES: list[tuple[int, type[VeilragError]]] = [
    *((400, ModelFailed), (401, Misconfigured), (403, Misconfigured), (404, Misconfigured)),
    *((408, ModelFailed), (409, ModelFailed), (413, ModelFailed), (422, ModelFailed)),
    *((429, ModelFailed), (500, ModelFailed), (502, ModelFailed), (503, ModelFailed)),
    *((302, ModelFailed), (418, ModelFailed)),
]


@pytest.mark.parametrize(("status", "kind"), STATUSES)
async def test_statuses_are_mapped(
    ask: Callable[..., Any], stub: Stub, status: int, kind: type[VeilragError]
) -> None:
    """Each status becomes our error; the body that quotes the prompt does not come along."""
    stub.script.status = status
    with pytest.raises(VeilragError) as raised:
        await ask()
    assert type(raised.value) is kind
    assert str(status) in raised.value.message
    _assert_mute(raised.value)


def _assert_mute(error: BaseException) -> None:
    """Neither the error nor anything that a reporter finds behind it holds a prompt's text."""
    assert error.__cause__ is None
    assert error.__context__ is None
    report = "".join(traceback.format_exception(error)) + repr(error)
    assert "Ingrun" not in report


async def test_a_server_that_is_not_there(
    settings_for: Callable[..., Settings], guard: Any
) -> None:
    """A refused connection is a failure of the model, without an address in its text."""
    with serve_stub() as gone:
        base_url = gone.base_url
    async with open_chat(settings_for(base_url)) as chat:
        assert chat is not None
        with pytest.raises(ModelFailed) as raised:
            await chat.complete(ASK, guard)
    assert "127.0.0.1" not in raised.value.message
    _assert_mute(raised.value)


async def test_a_reset_is_a_failure(ask: Callable[..., Any], stub: Stub) -> None:
    """A connection that breaks off is a failure of the model."""
    stub.script.reset_after = 0
    with pytest.raises(ModelFailed) as raised:
        await ask()
    _assert_mute(raised.value)


async def test_a_slow_server_is_a_timeout(ask: Callable[..., Any], stub: Stub) -> None:
    """All attempts together end within the time, and the server sees the client leave."""
    stub.script.delay = 30
    began = time.monotonic()
    with pytest.raises(ModelTimeout) as raised:
        await ask(model_timeout=0.4, model_retries=5)
    assert time.monotonic() - began < 2
    _assert_mute(raised.value)
    await _until(lambda: stub.chats[-1].aborted_at is not None)


async def test_cancelling_leaves_the_server(ask: Callable[..., Any], stub: Stub) -> None:
    """A caller that goes away stops the request."""
    stub.script.delay = 30
    task = asyncio.create_task(ask())
    await _until(lambda: bool(stub.chats))
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await _until(lambda: stub.chats[-1].aborted_at is not None)


async def test_a_passing_failure_is_retried(
    ask: Callable[..., Any], stub: Stub, guard: Any
) -> None:
    """An attempt that failed with 500 is made again; the guard sees each."""
    stub.script.fail_first = 1
    assert (await ask(model_retries=1)).text == "It is hers [1]."
    assert len(stub.chats) == len(guard.seen) == 2


async def test_retries_are_bounded(ask: Callable[..., Any], stub: Stub) -> None:
    """No more attempts than one and the retries that settings allow."""
    stub.script.status = 500
    with pytest.raises(ModelFailed):
        await ask(model_retries=1)
    stub.assert_called(chats=2)


async def test_a_long_wait_that_a_server_orders_is_not_obeyed(
    ask: Callable[..., Any], stub: Stub
) -> None:
    """``Retry-After`` cannot hold a request beyond its time."""
    stub.script.status = 429
    stub.script.headers["Retry-After"] = "30"
    began = time.monotonic()
    with pytest.raises(ModelFailed):
        await ask(model_timeout=0.5, model_retries=2)
    assert time.monotonic() - began < 2


async def test_a_refusal_comes_out_as_such(
    ask: Callable[..., Any], stub: Stub, guard_against: Callable[..., Any]
) -> None:
    """What the guard refuses is BoundaryRefused, asked once, not retried, and never sent."""
    guard = guard_against(SECRET)
    began = time.monotonic()
    with pytest.raises(BoundaryRefused) as raised:
        await ask(guard, model_retries=5)
    assert type(raised.value) is BoundaryRefused
    assert raised.value.message == "An original is in the body."
    assert len(guard.seen) == 1
    assert time.monotonic() - began < 2
    assert stub.sent == []
    _assert_mute(raised.value)


def test_the_sync_side_is_guarded_too(
    stub: Stub, settings_for: Callable[..., Settings], guard_against: Callable[..., Any]
) -> None:
    """``invoke()`` of the client that is built for a call passes the same guard."""
    chat = OpenAIChat(settings_for(stub.base_url))

    async def build() -> Any:
        return chat._bound_to(guard_against(SECRET))

    model = asyncio.run(build())
    with pytest.raises(BoundaryRefused):
        model.invoke([(m.role, m.content) for m in ASK])
    assert stub.sent == []


async def test_requests_at_once_keep_their_guards(
    stub: Stub, settings_for: Callable[..., Settings], guard_against: Callable[..., Any]
) -> None:
    """Of twenty requests at once on one model each is checked by its own guard only (I8)."""
    async with open_chat(settings_for(stub.base_url)) as chat:
        assert chat is not None
        guards = [guard_against("nothing" if i % 2 else SECRET) for i in range(20)]
        results = await asyncio.gather(
            *(chat.complete(ASK, g) for g in guards), return_exceptions=True
        )
    assert [isinstance(r, Completion) for r in results] == [False, True] * 10
    assert [len(g.seen) for g in guards] == [1] * 20
    stub.assert_called(chats=10)


async def test_nothing_is_logged(
    ask: Callable[..., Any], stub: Stub, caplog: pytest.LogCaptureFixture
) -> None:
    """At level DEBUG no logger writes the prompt, the reply or the key (I6)."""
    caplog.set_level(logging.DEBUG)
    await ask()
    stub.script.status = 500
    with pytest.raises(ModelFailed):
        await ask(model_retries=1)
    for text in (SECRET, "Ingrun", "It is hers", "sk-test"):
        assert text not in caplog.text
    assert not [r for r in caplog.records if r.name.split(".")[0] in {"openai", "httpx2"}]


TRACED = """
import asyncio, json, sys
from rag.models.chat import open_chat
from rag.settings import Settings
from rag.types import Message

class AnyGuard:
    def check(self, *_): pass

async def main(base_url):
    settings = Settings(_env_file=None, openai_base_url=base_url, openai_api_key="k")
    async with open_chat(settings) as chat:
        print((await chat.complete([Message("user", "Context:\\n[1] Ingrun")], AnyGuard())).text)

asyncio.run(main(sys.argv[1]))
from langchain_core.tracers.langchain import wait_for_all_tracers
wait_for_all_tracers()
"""


def test_tracing_is_off_in_code(stub: Stub) -> None:
    """With every tracing variable set, no trace collector hears of a call."""
    with serve_stub() as collector:
        tracing = {
            "LANGSMITH_TRACING": "true",
            "LANGCHAIN_TRACING_V2": "true",
            "LANGSMITH_API_KEY": "k",
            "LANGSMITH_ENDPOINT": collector.base_url,
        }
        done = subprocess.run(
            [sys.executable, "-c", TRACED, stub.base_url],
            env=tracing,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert done.stdout.strip() == "It is hers [1].", done.stderr
        assert collector.sent == []


SEALED = TRACED.replace(
    "asyncio.run(main",
    "from rag.models.seal import seal_process\nseal_process([sys.argv[1]])\nasyncio.run(main",
)


def test_works_in_a_sealed_process_by_name(stub: Stub) -> None:
    """Chat reaches a host that has to be looked up, out of a process that is sealed."""
    base_url = stub.base_url.replace("127.0.0.1", "localhost")
    done = subprocess.run(
        [sys.executable, "-c", SEALED, base_url],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.stdout.strip() == "It is hers [1].", done.stderr


@pytest.mark.parametrize(("hosts", "trusted"), [((), False), (("127.0.0.1",), True)])
async def test_trust_is_declared(
    stub: Stub, settings_for: Callable[..., Settings], hosts: tuple[str, ...], trusted: bool
) -> None:
    """Not even an endpoint on this machine is trusted unless settings say so."""
    async with open_chat(settings_for(stub.base_url, trusted_hosts=hosts)) as chat:
        assert chat is not None
        assert chat.trusted is trusted


async def test_no_model_without_key_and_base_url() -> None:
    """Without a key and a base URL there is no model."""
    async with open_chat(Settings(_env_file=None, openai_api_key=None, openai_base_url=None)) as c:
        assert c is None


async def test_half_a_character_can_be_sent(
    stub: Stub, settings_for: Callable[..., Settings], guard: Any
) -> None:
    """A lone surrogate in a text does not break the request."""
    async with open_chat(settings_for(stub.base_url)) as chat:
        assert chat is not None
        await chat.complete([Message("user", "the \ud800 boat")], guard)
    assert stub.chats[0].prompt == "the ? boat"


async def test_no_key_sends_no_authorization(ask: Callable[..., Any], stub: Stub) -> None:
    """A server without keys is sent none, not a made-up one."""
    await ask(openai_api_key=None)
    assert "authorization" not in {name.lower() for name, _ in stub.records[0].headers}


def test_prompts_are_json_as_they_are() -> None:
    """Message masks its text in its repr, so that no report of a message shows it."""
    assert SECRET not in repr(ASK) + repr(Completion(SECRET)) + json.dumps({"a": str(ASK)})
