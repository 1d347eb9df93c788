"""The models' endpoints, asked through the guarded transport for their lists of models.

That request has no body and a fixed path: no user's word could be in it (I1). The remote
embedder is asked for the vector of one fixed word, as at every start.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence
from typing import Any

from rag.doctor.findings import Finding
from rag.errors import BoundaryRefused, VeilragError
from rag.settings import Settings

PART = "models"
MOST_SECONDS = 10.0


class OnlyLists:
    """A guard that lets out the question for the list of models and nothing else."""

    def check(self, method: str, url: str, headers: Sequence[tuple[str, str]], body: bytes) -> None:
        if method != "GET" or body or not url.endswith("/models"):
            raise BoundaryRefused("Only the list of models may be asked for here.")


async def examine_models(settings: Settings) -> list[Finding]:
    findings = [await _embeddings(settings)]
    if not settings.has_model:
        found = "none configured: answers quote the documents"
        return [*findings, Finding.ok(PART, "chat", found)]
    return [*await _endpoint(settings), *findings]


async def _endpoint(settings: Settings) -> list[Finding]:
    from rag.models.chat import OPENAI
    from rag.models.egress import Endpoint

    key = settings.openai_api_key
    try:
        endpoint = Endpoint.parse(
            settings.openai_base_url or OPENAI, key.get_secret_value() if key else None
        )
        names = await _listed(settings, endpoint)
    except VeilragError as error:
        advice = "Check OPENAI_BASE_URL and OPENAI_API_KEY, and that the server is up."
        return [Finding.fail(PART, "endpoint", error.message, advice)]
    where = f"{endpoint.host}:{endpoint.port}"
    return [
        _trust(endpoint, where, endpoint.trusted_by(settings.trusted_hosts)),
        _named("chat", settings.chat_model, "VEILRAG_CHAT_MODEL", names),
        *(
            [_named("judge", settings.judge_model, "VEILRAG_JUDGE_MODEL", names)]
            if settings.judge_model
            else []
        ),
    ]


async def _listed(settings: Settings, endpoint: Any) -> set[str] | None:
    """The names that the server lists, or ``None`` where it has no list."""
    from rag.models.egress import Egress
    from rag.models.failures import FOREIGN, failure_of, failure_of_status, quiet_loggers

    quiet_loggers()
    egress = Egress(endpoint, min(settings.model_timeout, MOST_SECONDS))
    try:
        reply = await egress.async_client(OnlyLists()).get(f"{endpoint.base_url}/models")
        status = reply.status_code
        listed = _names(reply.json()) if status == 200 else None
    except FOREIGN as error:
        failure = failure_of(error)
    else:
        if status in {200, 404, 405}:  # a server need not have a list
            return listed
        failure = failure_of_status(status)
    finally:
        await egress.aclose()
    raise failure


def _names(reply: object) -> set[str] | None:
    data = reply.get("data") if isinstance(reply, dict) else None
    if not isinstance(data, list):
        return None
    return {str(one.get("id")) for one in data if isinstance(one, dict)}


def _trust(endpoint: Any, where: str, trusted: bool) -> Finding:
    if trusted:
        found = f"{where} answers; trusted: inside the boundary by your setting"
        return Finding.ok(PART, "endpoint", found)
    if endpoint.scheme == "http" and not _is_near(endpoint.host):
        advice = "Use https: the key and the questions' words travel in the clear."
        return Finding.warn(PART, "endpoint", f"{where} answers, over plain http", advice)
    return Finding.ok(PART, "endpoint", f"{where} answers; outside: it gets placeholders only")


def _is_near(host: str) -> bool:
    """A host that no wire leads to, or a name without a dot, such as a container's."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return "." not in host


def _named(what: str, model: str, setting: str, names: set[str] | None) -> Finding:
    if names is None:
        return Finding.ok(PART, what, f"{model} (the server lists no models: not verified)")
    if model in names:
        return Finding.ok(PART, what, f"{model}, listed by the server")
    advice = f"Set {setting} to a model that the server has."
    return Finding.warn(PART, what, f"{model} is not among the server's {len(names)}", advice)


async def _embeddings(settings: Settings) -> Finding:
    from rag.models.embeddings import open_embedder

    try:
        async with open_embedder(settings) as embedder:
            space = embedder.space
            place = "remote: it gets type words" if embedder.remote else "on this machine"
    except VeilragError as error:
        advice = "Check VEILRAG_EMBEDDINGS and its server; `local` needs none."
        return Finding.fail(PART, "embeddings", error.message, advice)
    return Finding.ok(PART, "embeddings", f"{space.model}, {space.dimension} dimensions, {place}")
