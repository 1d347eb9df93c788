"""Chat through langchain-openai, against any OpenAI-compatible server.

A ``ChatOpenAI`` is built for every call (under 2 ms) around the caller's guard, so that
two requests can never share one (I8), with both its HTTP clients on the guarded
transport (I1). Tracing is off in code, not only by variable (I6). What a model thought
before it answered is dropped.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from rag.errors import ModelFailed
from rag.models.text import sendable
from rag.ports import OutboundGuard
from rag.settings import Settings
from rag.types import Completion, Message

if TYPE_CHECKING:
    from langchain_core.messages import BaseMessage
    from langchain_openai import ChatOpenAI

OPENAI = "https://api.openai.com/v1"

_THOUGHT = re.compile(
    r"\A\s*(?:<(think|thinking|reasoning)>.*?(?:</\1>|\Z)\s*|\[THINK\].*?(?:\[/THINK\]|\Z)\s*)+",
    re.DOTALL | re.IGNORECASE,
)
# a server whose chat template opens the thought itself sends only its end
_THOUGHT_END = re.compile(r"\A(?:(?!<think(?:ing)?>).)*?</think(?:ing)?>\s*", re.DOTALL | re.I)


class OpenAIChat:
    """The ``ChatModel`` port. Close it to close its connections."""

    def __init__(self, settings: Settings) -> None:
        from rag.models.egress import Egress, Endpoint
        from rag.models.failures import quiet_loggers

        quiet_loggers()
        key = settings.openai_api_key
        endpoint = Endpoint.parse(
            settings.openai_base_url or OPENAI, key.get_secret_value() if key else None
        )
        self.name = settings.chat_model
        self.trusted = endpoint.trusted_by(settings.trusted_hosts)
        self._settings = settings
        self._egress = Egress(endpoint, settings.model_timeout)

    @property
    def base_url(self) -> str:
        """Where it goes, for ``seal_process``."""
        return self._egress.endpoint.base_url

    async def complete(self, messages: Sequence[Message], guard: OutboundGuard) -> Completion:
        """One completion, all attempts together within ``settings.model_timeout`` seconds.

        Raises ``ModelFailed``, ``ModelTimeout``, ``BoundaryRefused``, ``Misconfigured``.
        """
        from rag.models.failures import FOREIGN, failure_of

        try:
            async with asyncio.timeout(self._settings.model_timeout):
                reply = await self._ask(messages, guard)
            return _completion(reply)
        except FOREIGN as error:
            failure = failure_of(error)
        raise failure

    async def _ask(self, messages: Sequence[Message], guard: OutboundGuard) -> BaseMessage:
        from langsmith.run_helpers import tracing_context

        model = self._bound_to(guard)
        with tracing_context(enabled=False):
            return await model.ainvoke(
                [(message.role, sendable(message.content)) for message in messages],
                config={"callbacks": []},
            )

    def _bound_to(self, guard: OutboundGuard) -> ChatOpenAI:
        from langchain_openai import ChatOpenAI
        from pydantic import SecretStr

        from rag.models.failures import Refused

        return ChatOpenAI(
            model=self.name,
            base_url=self.base_url,
            api_key=SecretStr(self._egress.endpoint.key or "unused"),
            http_client=self._egress.client(guard, Refused),
            http_async_client=self._egress.async_client(guard, Refused),
            timeout=self._settings.model_timeout,
            max_retries=self._settings.model_retries,
            cache=False,
            stream_usage=False,
            use_responses_api=False,
            openai_proxy=None,
            **self._limit(),
        )

    def _limit(self) -> dict[str, Any]:
        limit = self._settings.max_output_tokens
        if limit is None:
            return {}
        # OpenAI renamed the field; most compatible servers know the old name only
        if self.base_url.startswith("https://api.openai.com:"):
            return {"max_completion_tokens": limit}
        return {"extra_body": {"max_tokens": limit}}

    async def ping(self) -> None:
        """Ready as soon as it is made: a call would cost money and leave the boundary."""

    async def aclose(self) -> None:
        await self._egress.aclose()


@asynccontextmanager
async def open_chat(settings: Settings) -> AsyncIterator[OpenAIChat | None]:
    """The configured chat model, or ``None`` without a key and a base URL."""
    if not settings.has_model:
        yield None
        return
    await asyncio.to_thread(_load_libraries)
    chat = OpenAIChat(settings)
    try:
        yield chat
    finally:
        await chat.aclose()


def _load_libraries() -> None:
    """Over a second of imports, which the first question would pay otherwise."""
    import langsmith.run_helpers  # noqa: F401
    import openai.resources.chat
    import openai.resources.embeddings  # noqa: F401
    from langchain_openai import ChatOpenAI  # noqa: F401


def without_thought(text: str) -> str:
    """``text`` without the reasoning that some models send before their answer."""
    stripped = _THOUGHT.sub("", text, count=1)
    return _THOUGHT_END.sub("", stripped, count=1).strip()


def _completion(reply: BaseMessage) -> Completion:
    text = without_thought(str(reply.text))
    if not text:
        raise ModelFailed("The model endpoint gave no text.")
    reason = reply.response_metadata.get("finish_reason")
    return Completion(text, reason if isinstance(reason, str) else "stop")
