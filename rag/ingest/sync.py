"""A folder kept in step with a collection: what is new comes in, what changed replaces, what
is gone is deleted. Only documents that came from that very folder are ever deleted, and only
when the whole folder could be listed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol
from uuid import UUID

from rag.errors import InvalidInput, NotFound
from rag.ingest.batch import OnProgress
from rag.ingest.cleaning import clean_name
from rag.ingest.files import File, find_files, origin_of
from rag.ports import DocumentStore
from rag.types import Ingested


class Ingests(Protocol):
    """What a synchronization asks of the pipeline."""

    async def ingest_many(
        self,
        files: Sequence[File],
        collection: str = "default",
        on_progress: OnProgress | None = None,
    ) -> list[Ingested]: ...


def found_in(
    folders: Sequence[Path], base: Path | None = None
) -> tuple[list[File], dict[str, set[str]]]:
    """The files of the folders, named as ``find_files`` does, and by folder what is to stay.

    Raises ``InvalidInput`` for what is no folder or cannot be listed whole.
    """
    if not all(folder.is_dir() for folder in folders):
        raise InvalidInput("Only folders can be synchronized.")
    files = list(find_files(folders, base))
    there: dict[str, set[str]] = {origin_of(folder): set() for folder in folders}
    for file in files:
        if file.origin is not None and file.source.strip():
            there[file.origin].add(clean_name(file.source))
    return files, there


async def synchronize(
    ingestor: Ingests,
    documents: DocumentStore,
    files: Sequence[File],
    there: Mapping[str, set[str]],
    collection: str = "default",
    on_progress: OnProgress | None = None,
) -> list[Ingested]:
    """Ingest what was found, delete what is gone; a file that fails keeps its old version."""
    outcomes = await ingestor.ingest_many(files, collection, on_progress)
    for origin, sources in there.items():
        stored = await documents.of_origin(collection, origin)
        for source, known in stored.items():
            if source not in sources and (gone := await _delete(documents, source, known)):
                outcomes.append(gone)
    return outcomes


async def _delete(documents: DocumentStore, source: str, id: UUID) -> Ingested | None:
    try:
        await documents.delete(id)
    except NotFound:  # somebody else was quicker
        return None
    return Ingested(source, "deleted", id)
