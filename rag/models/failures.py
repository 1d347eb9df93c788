"""Foreign errors of the model libraries, mapped by class and status (I6).

Their texts quote prompts and server replies; of them only the status code goes on. The
caller raises what ``failure_of`` returns *after* its ``except`` block, so that the new
error carries no ``__context__`` that a reporter could print.
"""

from __future__ import annotations

import logging

import httpx2
import openai

from rag.errors import BoundaryRefused, Misconfigured, ModelFailed, ModelTimeout, VeilragError

FOREIGN: tuple[type[Exception], ...] = (
    openai.OpenAIError,
    httpx2.HTTPError,
    TimeoutError,
    # what a library raises when a reply has not the shape it expects
    AttributeError,
    IndexError,
    KeyError,
    TypeError,
    ValueError,
    RecursionError,
)

_SETTINGS = {
    401: "The model endpoint refused the key (401): check OPENAI_API_KEY.",
    403: "The model endpoint does not allow this key to use the model (403).",
    404: "The model endpoint does not know the model or path (404): check "
    "OPENAI_BASE_URL and the model's name.",
}


class Refused(BoundaryRefused, openai.OpenAIError):
    """A refusal that the openai library passes on at once, neither retried nor wrapped."""


def failure_of(error: Exception) -> VeilragError:
    """Our error for theirs."""
    if isinstance(error, BoundaryRefused):
        return BoundaryRefused(error.message)
    if isinstance(error, openai.APITimeoutError | httpx2.TimeoutException | TimeoutError):
        return ModelTimeout()
    if isinstance(error, openai.APIStatusError):
        return failure_of_status(error.status_code)
    if isinstance(error, openai.APIConnectionError | httpx2.TransportError):
        return ModelFailed("The model endpoint could not be reached.")
    return ModelFailed("The model endpoint gave a reply that cannot be read.")


def failure_of_status(status: int) -> VeilragError:
    if status in _SETTINGS:
        return Misconfigured(_SETTINGS[status])
    return ModelFailed(f"The model endpoint answered with status {status}.")


def quiet_loggers() -> None:
    """Cap the loggers that would write URLs, headers and bodies."""
    for name in ("openai", "httpx", "httpx2", "httpcore", "httpcore2", "langsmith"):
        logger = logging.getLogger(name)
        logger.setLevel(max(logger.level, logging.WARNING))
