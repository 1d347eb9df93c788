"""``/documents``: what is asked about. An upload is finished even when its client leaves.

The files of an upload are kept in memory while they are read, bounded by the body limit
and the number of slots: none is ever spooled to a temporary file (I6).
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, TypeVar
from uuid import UUID

from fastapi import APIRouter, Query, Request
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, ValidationError
from starlette.datastructures import UploadFile
from starlette.exceptions import HTTPException
from starlette.formparsers import MultiPartException, MultiPartParser
from starlette.responses import JSONResponse, Response

from api.deps import EngineDep, OpeningDep, to_the_end
from api.errors import error_response, request_id_of
from api.schemas import (
    DocumentOut,
    DocumentPage,
    DocumentsOut,
    ListedDocument,
    Name,
    Refusal,
    TextDocument,
    UploadFields,
    UploadName,
)
from rag.errors import DocumentRefused, InvalidInput, VeilragError

if TYPE_CHECKING:
    from rag.engine import Engine
    from rag.types import Ingested, StoredDocument

router = APIRouter(prefix="/documents", tags=["documents"])

MAX_FILES = 1_000

M = TypeVar("M", bound=BaseModel)

_UPLOAD_BODY: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "content": {
            "application/json": {"schema": TextDocument.model_json_schema()},
            "multipart/form-data": {
                "schema": {
                    "type": "object",
                    "required": ["file"],
                    "properties": {
                        "file": {"type": "array", "items": {"type": "string", "format": "binary"}},
                        "collection": {"type": "string", "default": "default"},
                        "metadata": {
                            "type": "string",
                            "contentMediaType": "application/json",
                            "description": "A JSON object, kept with each of the files.",
                        },
                        "password": {
                            "type": "string",
                            "format": "password",
                            "description": "Opens those of the files that are encrypted.",
                        },
                    },
                }
            },
        },
    }
}


@dataclass(frozen=True, slots=True)
class Upload:
    """One file of an upload."""

    name: str
    data: bytes
    media_type: str | None


class InMemoryParser(MultiPartParser):
    """A multipart parser whose files never touch the disk (0: no size rolls them over)."""

    spool_max_size = 0


@router.post("", status_code=201, response_model=DocumentsOut, openapi_extra=_UPLOAD_BODY)
async def upload(request: Request, engine: EngineDep, opening: OpeningDep) -> Response:
    """Store documents. One that fails: its own error; several: 201 if any entered."""
    async with opening.upload_slots:
        kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind == "multipart/form-data":
            fields, uploads = await read_form(request)
            work = ingest_files(engine, uploads, fields)
        elif kind == "application/json":
            document = validated(TextDocument, await read_json(request))
            work = ingest_text(engine, document)
        else:
            raise InvalidInput("Send multipart/form-data with files, or application/json.")
        outcomes = await to_the_end(opening, work)
    return answer(outcomes, request_id_of(request))


async def read_json(request: Request) -> Any:
    """The decoded body; 400 when it is not JSON."""
    body = await request.body()
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        raise HTTPException(400) from None


async def read_form(request: Request) -> tuple[UploadFields, list[Upload]]:
    """The form's fields and files; 400 when it is malformed, 422 for a field it must not have."""
    parser = InMemoryParser(request.headers, request.stream(), max_files=MAX_FILES, max_fields=10)
    try:
        form = await parser.parse()
    except MultiPartException:
        raise HTTPException(400) from None
    try:
        items = form.multi_items()
        files = [v for k, v in items if k == "file" and isinstance(v, UploadFile)]
        plain = [(k, v) for k, v in items if k != "file" or not isinstance(v, UploadFile)]
        if not files:
            raise InvalidInput("The form has no file.")
        if len(plain) != len(dict(plain)):
            raise InvalidInput("A form field is given twice.")
        fields = validated(UploadFields, dict(plain))
        return fields, [await read_file(file) for file in files]
    finally:
        await form.close()


async def read_file(file: UploadFile) -> Upload:
    """A file's name and bytes."""
    name = validated(UploadName, {"file": file.filename or ""}).file
    return Upload(name, await file.read(), file.content_type)


def validated(model: type[M], data: Any) -> M:
    """The model of ``data``, with the same error as a body that FastAPI validates."""
    try:
        return model.model_validate(data)
    except ValidationError as error:
        faults = error.errors(include_input=False, include_url=False, include_context=False)
        raise RequestValidationError(
            [{**fault, "loc": ("body", *fault["loc"])} for fault in faults]
        ) from None


Outcome = tuple[str, "Ingested | VeilragError"]


async def ingest_files(
    engine: Engine, uploads: Sequence[Upload], fields: UploadFields
) -> list[Outcome]:
    """Each file in turn; what refuses one does not keep the others out."""
    password = fields.password.get_secret_value() if fields.password else None
    outcomes: list[Outcome] = []
    for one in uploads:
        try:
            done = await engine.ingest_bytes(
                one.name,
                one.data,
                one.media_type,
                fields.collection,
                metadata=fields.metadata,
                password=password or None,
            )
            outcomes.append((one.name, done))
        except VeilragError as error:
            outcomes.append((one.name, error))
    return outcomes


async def ingest_text(engine: Engine, given: TextDocument) -> list[Outcome]:
    """The one document of a JSON body."""
    try:
        done = await engine.ingest_text(given.text, given.source, given.metadata, given.collection)
    except VeilragError as error:
        return [(given.source, error)]
    return [(given.source, done)]


def answer(outcomes: Sequence[Outcome], request_id: str) -> Response:
    """201 when any entered; else the first one's error, with all outcomes beside it."""
    errors = [outcome for _, outcome in outcomes if isinstance(outcome, VeilragError)]
    if len(outcomes) == 1 and errors:
        raise errors[0]
    body = DocumentsOut(documents=[shown(source, outcome) for source, outcome in outcomes])
    shown_body = body.model_dump(mode="json")
    if len(errors) == len(outcomes):
        first = errors[0]
        return error_response(
            first.status, request_id, code=first.code, message=first.message, more=shown_body
        )
    return JSONResponse(shown_body, status_code=201)


def shown(source: str, outcome: Ingested | VeilragError) -> DocumentOut:
    """One outcome as the contract names it."""
    if isinstance(outcome, VeilragError):
        return DocumentOut(
            id=None,
            source=source,
            chunks=0,
            entities={},
            status="failed",
            error=Refusal(code=outcome.code, message=outcome.message),
        )
    return DocumentOut(
        id=outcome.id,
        source=outcome.source,
        chunks=outcome.chunks,
        entities=dict(outcome.entities),
        status=outcome.status,
        error=refusal(outcome),
    )


def refusal(outcome: Ingested) -> Refusal | None:
    """Why it did not enter, where it did not."""
    if outcome.error is None:
        return None
    return Refusal(code=outcome.error_code or DocumentRefused.code, message=outcome.error)


@router.get("", response_model=DocumentPage)
async def listing(
    engine: EngineDep,
    collection: Annotated[Name, Query()] = "default",
    limit: Annotated[int, Query(ge=1, le=200)] = 50,
    after: UUID | None = None,
) -> DocumentPage:
    """One page of a collection's documents, without their content."""
    page = await engine.list_documents(collection, limit, after)
    return DocumentPage(
        documents=[listed(one) for one in page],
        next=page[-1].id if len(page) == limit else None,
    )


def listed(one: StoredDocument) -> ListedDocument:
    """A stored document as it is listed."""
    return ListedDocument(
        id=one.id,
        source=one.source,
        collection=one.collection,
        chunks=one.chunks,
        entities=dict(one.entities),
        metadata=dict(one.metadata),
        language=one.language,
        created_at=str(one.created_at),
    )


@router.get("/{document_id}", response_model=ListedDocument)
async def read(engine: EngineDep, document_id: UUID) -> ListedDocument:
    """One document, without its content."""
    stored, _content, _spans = await engine.get_document(document_id)
    return listed(stored)


@router.delete("/{document_id}", status_code=204)
async def delete(engine: EngineDep, document_id: UUID) -> None:
    """Make a document unreachable at once."""
    await engine.delete_document(document_id)
