"""What crosses the HTTP edge, as pydantic models: the contract's names, types and defaults.

Requests forbid unknown fields and refuse what could not be stored or sent back (half
surrogate pairs, numbers that are not finite, nesting without end). Validation errors
name fields of ``FIELD_NAMES`` only, for an unknown field's name is the user's text (I6).
"""

from __future__ import annotations

import json
import math
from typing import Annotated, Any
from uuid import UUID

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    JsonValue,
    SecretStr,
    StrictBool,
    StrictInt,
    field_validator,
    model_validator,
)

MAX_DEPTH = 20
MAX_NAME = 200
MAX_SOURCE = 500
MAX_PASSWORD = 1_000

Name = Annotated[str, Field(min_length=1, max_length=MAX_NAME, pattern=r"^[^\x00-\x1f\x7f]+$")]
Source = Annotated[str, Field(min_length=1, max_length=MAX_SOURCE, pattern=r"^[^\x00-\x1f\x7f]+$")]


def is_sound(value: Any, depth: int = MAX_DEPTH) -> bool:
    """Whether a decoded JSON value can be encoded again: in UTF-8, finite, not too deep."""
    if isinstance(value, str):
        return not any("\ud800" <= c <= "\udfff" for c in value)
    if isinstance(value, float):
        return math.isfinite(value)
    if isinstance(value, dict):
        return depth > 0 and all(is_sound(k) and is_sound(v, depth - 1) for k, v in value.items())
    if isinstance(value, list):
        return depth > 0 and all(is_sound(v, depth - 1) for v in value)
    return True


class Body(BaseModel):
    """A request's JSON body."""

    model_config = ConfigDict(extra="forbid", hide_input_in_errors=True)

    @model_validator(mode="before")
    @classmethod
    def _sound(cls, data: Any) -> Any:
        if not is_sound(data):
            raise ValueError("unsound JSON")
        return data


class AskBody(Body):
    """``POST /ask``."""

    question: Annotated[str, Field(min_length=1)]
    rewrite_n: Annotated[StrictInt, Field(ge=0, le=10)] = 3
    top_k: Annotated[StrictInt, Field(ge=1, le=50)] = 5
    anonymize: StrictBool = True
    with_evaluation: StrictBool = False
    graph: Name = "linear"
    retriever: Name = "hybrid"
    collection: Name = "default"
    thread_id: Name | None = None
    filters: dict[str, JsonValue] = Field(default_factory=dict)
    policy: Name | None = None


class SourceOut(BaseModel):
    """One cited chunk; ``content`` is cut at 300 characters, offsets are the document's."""

    source: str
    chunk_index: int
    content: str
    document_id: UUID
    score: float
    start: int
    end: int
    page: int | None


class ScoreOut(BaseModel):
    """A metric's value in 0-1, or null and the reason."""

    score: float | None
    reason: str | None


class PrivacyOut(BaseModel):
    """What was protected, and what the answer holds that no source or question does."""

    policy: str
    entities: dict[str, int]
    outbound_calls: int
    unresolved: list[str]
    unsourced: int


class AskOut(BaseModel):
    """The answer of ``POST /ask``."""

    answer: str
    rewrites: list[str]
    sources: list[SourceOut]
    eval_score: dict[str, ScoreOut] | None
    request_id: str
    thread_id: str | None
    trace: list[str]
    confidence: str
    top_similarity: float | None
    warnings: list[str]
    privacy: PrivacyOut


class TextDocument(Body):
    """``POST /documents`` as JSON."""

    text: str
    source: Source
    metadata: dict[str, JsonValue] = Field(default_factory=dict)
    collection: Name = "default"


class UploadFields(BaseModel):
    """The form fields of ``POST /documents`` beside the files; they hold for all of these.

    ``metadata`` is a JSON object, as text. ``password`` opens those files that need one; it
    is used once and kept nowhere.
    """

    model_config = ConfigDict(extra="forbid", hide_input_in_errors=True)

    collection: Name = "default"
    password: SecretStr | None = Field(None, max_length=MAX_PASSWORD)
    metadata: dict[str, JsonValue] = Field(default_factory=dict)

    @field_validator("metadata", mode="before")
    @classmethod
    def _object(cls, given: Any) -> Any:
        """The object that a form field holds as text; an empty field is an empty object."""
        if not isinstance(given, str):
            return given
        try:
            value = json.loads(given) if given.strip() else {}
        except (ValueError, RecursionError):
            raise ValueError("no JSON") from None
        if not is_sound(value):
            raise ValueError("unsound JSON")
        return value


class UploadName(BaseModel):
    """The name of an uploaded file: its document's ``source``, never a path to open."""

    model_config = ConfigDict(hide_input_in_errors=True)

    file: Source


class Refusal(BaseModel):
    """Why one document of several did not enter: as in the body of an error."""

    code: str
    message: str


class DocumentOut(BaseModel):
    """The outcome of one document: ``ready | unchanged | replaced | failed``."""

    id: UUID | None
    source: str
    chunks: int
    entities: dict[str, int]
    status: str
    error: Refusal | None


class DocumentsOut(BaseModel):
    """The outcome of an upload, in the order of its files."""

    documents: list[DocumentOut]


class ListedDocument(BaseModel):
    """A document as it is listed."""

    id: UUID
    source: str
    collection: str
    chunks: int
    entities: dict[str, int]
    metadata: dict[str, Any]
    language: str
    created_at: str


class DocumentPage(BaseModel):
    """One page of a collection; ``next`` is the ``after`` of the following one."""

    documents: list[ListedDocument]
    next: UUID | None


class PreviewBody(Body):
    """``POST /privacy/preview``."""

    text: str
    policy: Name | None = None


class EntityOut(BaseModel):
    """Personal data at ``[start, end)`` of the given text, and what would stand for it."""

    model_config = ConfigDict(from_attributes=True)

    type: str
    start: int
    end: int
    placeholder: str


class PreviewOut(BaseModel):
    """What would leave, and what it stands for."""

    text: str
    entities: list[EntityOut]


class ErrorDetail(BaseModel):
    """``code`` is stable, ``message`` is for people and holds no user text."""

    code: str
    message: str
    request_id: str


class ErrorOut(BaseModel):
    """Every error's body."""

    error: ErrorDetail


class Health(BaseModel):
    """``ok``: the process answers. ``ready``: every part does."""

    status: str


_REQUESTS: tuple[type[BaseModel], ...] = (
    AskBody, TextDocument, UploadFields, UploadName, PreviewBody,
)  # fmt: skip
FIELD_NAMES = frozenset(
    {"body", "query", "path", "header", "limit", "after", "document_id"}.union(
        *(model.model_fields for model in _REQUESTS)
    )
)
"""The words that a validation error may name."""
