"""The words of the domain, as values.

Frozen and slotted: a value that crosses a layer cannot be changed on the way.
Whatever can hold an original masks it in its ``repr`` (I6); a span holds
offsets, never text.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any
from uuid import UUID


class EntityType(StrEnum):
    """What a span of personal data is. Stored for every span; the policy decides later."""

    PERSON = "PERSON"
    EMAIL = "EMAIL"
    PHONE = "PHONE"
    ADDRESS = "ADDRESS"
    PLACE = "PLACE"
    ORGANISATION = "ORGANISATION"
    DATE = "DATE"
    BIRTH_DATE = "BIRTH_DATE"
    CARD = "CARD"
    BANK_ACCOUNT = "BANK_ACCOUNT"
    NATIONAL_ID = "NATIONAL_ID"
    TAX_ID = "TAX_ID"
    DOCUMENT_ID = "DOCUMENT_ID"  # passport, driving licence, plate, health or member number
    CREDENTIAL = "CREDENTIAL"
    NETWORK = "NETWORK"  # IP and MAC addresses
    URL = "URL"
    WALLET = "WALLET"
    USERNAME = "USERNAME"
    OTHER = "OTHER"


OUTSIDE_TYPE: Mapping[EntityType, str] = {
    EntityType.PERSON: "PERSON",
    EntityType.EMAIL: "EMAIL",
    EntityType.PHONE: "PHONE",
    EntityType.ADDRESS: "ADDRESS",
    EntityType.PLACE: "PLACE",
    EntityType.ORGANISATION: "ORGANISATION",
    EntityType.DATE: "DATE",
    EntityType.BIRTH_DATE: "DATE",
    EntityType.CARD: "ACCOUNT",
    EntityType.BANK_ACCOUNT: "ACCOUNT",
    EntityType.WALLET: "ACCOUNT",
    EntityType.NATIONAL_ID: "ID",
    EntityType.TAX_ID: "ID",
    EntityType.DOCUMENT_ID: "ID",
    EntityType.CREDENTIAL: "SECRET",
    EntityType.NETWORK: "NETWORK",
    EntityType.URL: "LINK",
    EntityType.USERNAME: "PERSON",
    EntityType.OTHER: "ID",
}
"""The coarse word a placeholder carries: at most twelve, and no country in any."""


@dataclass(frozen=True, slots=True, order=True)
class Span:
    """Personal data at ``text[start:end]`` (Python string indices), 0 < score <= 1."""

    start: int
    end: int
    type: EntityType
    score: float = 1.0

    def shifted(self, by: int) -> Span:
        return Span(self.start + by, self.end + by, self.type, self.score)


@dataclass(frozen=True, slots=True)
class Section:
    """A stretch of a document that one heading path and one page hold for.

    ``headings`` are ``(start, end)`` ranges of the document's own content, outermost
    first, so that a heading's personal data is known from the document's spans.
    """

    start: int
    headings: tuple[tuple[int, int], ...] = ()
    page: int | None = None


HEADING_SEPARATOR = " > "
"""Between the headings of a path, where it is shown as one text."""


@dataclass(frozen=True, slots=True)
class Document:
    """What came in, as text. ``source`` is the name the user knows it by, never a path to open."""

    source: str
    content: str = field(repr=False)
    metadata: Mapping[str, Any] = field(default_factory=dict, repr=False)
    sections: tuple[Section, ...] = field(default=(), repr=False)
    language: str = "en"

    def surface(self) -> str:
        """Everything of the document that may ever leave: content, then source and metadata.

        Detection runs on this text once; offsets at or past ``len(content)`` belong to
        the source name and the metadata.
        """
        fields = [self.source, *(f"{k}: {v}" for k, v in sorted(self.metadata.items()))]
        return "\n".join([self.content, *fields])


@dataclass(frozen=True, slots=True)
class Chunk:
    """What is stored and searched: ``text == content[start:end]`` of its document."""

    id: UUID
    document_id: UUID
    source: str
    n: int
    start: int
    end: int
    text: str = field(repr=False)
    heading: str = field(default="", repr=False)
    page: int | None = None
    spans: tuple[Span, ...] = ()  # relative to ``text``
    heading_spans: tuple[Span, ...] = ()  # relative to ``heading``
    detector: str = ""  # the version that found the spans; empty until they are filled in


@dataclass(frozen=True, slots=True)
class Hit:
    """A chunk with its score (0-1 within one retriever) and its dense cosine where known."""

    chunk: Chunk
    score: float
    similarity: float | None = None


@dataclass(frozen=True, slots=True)
class ChunkDraft:
    """A chunk before it is stored; offsets into the document's content."""

    n: int
    start: int
    end: int
    headings: tuple[tuple[int, int], ...] = ()
    page: int | None = None


@dataclass(frozen=True, slots=True)
class Alias:
    """One form of a subject as the index knows it: keyed hashes, no text.

    ``first`` hashes the form's first word, ``form`` the whole form, both 64-bit signed;
    ``weak`` forms (also a common word, a place, an organisation) need evidence of their own.
    """

    first: int
    form: int
    words: int
    type: EntityType
    weak: bool = False


@dataclass(frozen=True, slots=True)
class Space:
    """An embedding model with its dimension. Vectors of two spaces are never compared."""

    model: str
    dimension: int


@dataclass(frozen=True, slots=True)
class StoredDocument:
    """A document as it is listed: no content."""

    id: UUID
    source: str
    collection: str
    chunks: int
    entities: Mapping[str, int]
    metadata: Mapping[str, Any] = field(repr=False)
    language: str
    detector: str
    created_at: str


@dataclass(frozen=True, slots=True)
class Known:
    """What is stored under a source: enough to tell whether what comes is the same.

    ``file_hash`` is a digest of the bytes that it was read from, ``origin`` one of the folder
    that it came from; ``None`` where it came otherwise.
    """

    id: UUID
    content_hash: str
    detector: str
    file_hash: str | None = None
    origin: str | None = None
    chunks: int = 0
    entities: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Ingested:
    """The outcome of one document: ``ready | unchanged | replaced | deleted | failed``."""

    source: str
    status: str
    id: UUID | None = None
    chunks: int = 0
    entities: Mapping[str, int] = field(default_factory=dict)
    error: str | None = None
    error_code: str | None = None


@dataclass(frozen=True, slots=True)
class Message:
    """One chat message that may leave: role ``system | user | assistant`` and protected text."""

    role: str
    content: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class Completion:
    """What a model said: protected text as it came, and why it stopped."""

    text: str = field(repr=False)
    finish_reason: str = "stop"


@dataclass(frozen=True, slots=True)
class ScoreCase:
    """What a judge may see: placeholder text only (I7)."""

    question: str = field(repr=False)
    answer: str = field(repr=False)
    contexts: tuple[str, ...] = field(repr=False)
    reference: str | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class Score:
    """One metric's value in 0-1, or ``None`` and the reason."""

    score: float | None
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class Source:
    """One piece of evidence of an answer, with original words, for the asker alone.

    ``content`` is the chunk's text cut at 300 characters plus ``...``; ``start`` and ``end``
    are its offsets in the document; ``score`` is 0-1 within the retriever.
    """

    source: str
    chunk_index: int
    content: str = field(repr=False)
    document_id: UUID
    score: float
    start: int
    end: int
    page: int | None = None


@dataclass(frozen=True, slots=True)
class Receipt:
    """What the boundary did for one request: counts and names of types, no values."""

    policy: str
    entities: Mapping[str, int]
    outbound_calls: int
    unresolved: tuple[str, ...] = ()
    unsourced: int = 0


@dataclass(frozen=True, slots=True)
class Result:
    """An answer to the asker. ``outbound`` is what left, or without a model would have left:
    one list of messages for each call, placeholders only."""

    answer: str = field(repr=False)
    rewrites: tuple[str, ...] = field(repr=False)
    sources: tuple[Source, ...]
    eval_score: Mapping[str, Score] | None
    trace: tuple[str, ...]
    confidence: str
    top_similarity: float | None
    warnings: tuple[str, ...]
    privacy: Receipt
    outbound: tuple[tuple[Message, ...], ...] = field(default=(), repr=False)


@dataclass(frozen=True, slots=True)
class PreviewEntity:
    """A protected span of a previewed text, and the placeholder that would stand for it."""

    type: str
    start: int
    end: int
    placeholder: str


@dataclass(frozen=True, slots=True)
class Preview:
    """What would leave if ``text`` were sent."""

    text: str = field(repr=False)
    entities: tuple[PreviewEntity, ...] = ()
