"""The error contract: ``{"error": {"code", "message", "request_id"}}``, never with user text.

Messages come from our own errors or from the tables below. What a framework or a
validator says about an input is dropped, for it quotes the input (I6): of a failed
validation only the places and the kinds of the faults remain, and a place that is not
one of our field names is shown as ``?``.
"""

from __future__ import annotations

import logging
import traceback
from collections.abc import Mapping, Sequence
from typing import Any

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response

from api.schemas import FIELD_NAMES
from rag.errors import VeilragError

log = logging.getLogger("api.errors")

CLIENT_GONE = 499
"""The client left before its answer; nobody reads this status but the access log."""

RETRY_AFTER_SECONDS = 2

_CODES: Mapping[int, tuple[str, str]] = {
    400: ("bad_request", "The request cannot be read."),
    401: ("unauthorized", "A valid API key is needed: Authorization: Bearer KEY."),
    403: ("forbidden", "That is not allowed."),
    404: ("not_found", "There is no such route."),
    405: ("method_not_allowed", "This route does not take that method."),
    413: ("too_large", "The input is too large."),
    422: ("invalid", "The input is not valid."),
    429: ("too_many", "Too many requests."),
    500: ("internal", "Something failed inside the service."),
    503: ("unavailable", "The service is not ready yet."),
}


def error_body(code: str, message: str, request_id: str) -> dict[str, dict[str, str]]:
    """The body of every error."""
    return {"error": {"code": code, "message": message, "request_id": request_id}}


def error_response(
    status: int,
    request_id: str,
    *,
    code: str | None = None,
    message: str | None = None,
    headers: Mapping[str, str] | None = None,
    more: Mapping[str, Any] | None = None,
) -> JSONResponse:
    """An error as a response; what is not given comes from the status' row of the table."""
    known = _CODES.get(status, ("error", "The request failed."))
    body = error_body(code or known[0], message or known[1], request_id)
    extra = dict(headers or {})
    if status == 503:
        extra.setdefault("Retry-After", str(RETRY_AFTER_SECONDS))
    if status == 401:
        extra.setdefault("WWW-Authenticate", "Bearer")
    return JSONResponse({**body, **(more or {})}, status, extra)


def request_id_of(request: Request) -> str:
    """The id that the envelope gave to this request."""
    return str(request.scope.get("request_id", ""))


def place_of(error: BaseException) -> str:
    """``Type at module:line`` of where an exception arose: all that a log may say of it (I6)."""
    frames = traceback.extract_tb(error.__traceback__)
    where = f"{frames[-1].filename.rsplit('/', 1)[-1]}:{frames[-1].lineno}" if frames else "?"
    ours = [f for f in frames if "/site-packages/" not in f.filename]
    if ours and frames and ours[-1] is not frames[-1]:
        where += f", from {'/'.join(ours[-1].filename.split('/')[-2:])}:{ours[-1].lineno}"
    return f"{type(error).__module__}.{type(error).__qualname__} at {where}"


def describe(faults: Sequence[Mapping[str, Any]]) -> str:
    """Places and kinds of at most five faults of a validation, without any input."""
    parts = [f"{_place(fault.get('loc', ()))} ({fault.get('type', 'invalid')})" for fault in faults]
    more = f" and {len(parts) - 5} more" if len(parts) > 5 else ""
    return f"The input is not valid: {', '.join(parts[:5])}{more}."


def _place(loc: Sequence[Any]) -> str:
    known = (str(p) if isinstance(p, int) or p in FIELD_NAMES else "?" for p in loc)
    return ".".join(known) or "body"


async def _ours(request: Request, error: Exception) -> Response:
    assert isinstance(error, VeilragError)
    if error.status >= 500:
        log.warning("%s %s: %s", request_id_of(request), error.code, place_of(error))
    return error_response(
        error.status, request_id_of(request), code=error.code, message=error.message
    )


async def _invalid(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    faults = error.errors()
    if any(fault.get("type") == "json_invalid" for fault in faults):
        return error_response(400, request_id_of(request), message="The body is not valid JSON.")
    return error_response(422, request_id_of(request), message=describe(faults))


async def _http(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    allow = {k: v for k, v in (error.headers or {}).items() if k.lower() == "allow"}
    return error_response(error.status_code, request_id_of(request), headers=allow)


async def _gone(_request: Request, _error: Exception) -> Response:
    return Response(status_code=CLIENT_GONE)


def install(app: FastAPI) -> None:
    """Give every error that a route can raise its answer; the envelope has the rest."""
    app.add_exception_handler(VeilragError, _ours)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(HTTPException, _http)
    app.add_exception_handler(ClientDisconnect, _gone)
