"""Collections and the space they live in: fixed by the first document, never mixed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from rag.errors import InvalidInput, NotFound, SpaceMismatch
from rag.store.pool import Connection
from rag.store.statements import statement
from rag.store.time_ordered import new_id
from rag.types import Space

MOST_NAME_CHARS = 200
MOST_DIMENSION = 16_000


@dataclass(frozen=True, slots=True)
class Collection:
    """A collection as the database knows it; without a space until its first document."""

    id: UUID
    name: str
    space_id: int | None
    space: Space | None
    languages: tuple[str, ...]
    holds_documents: bool

    def require(self, space: Space) -> None:
        """Raises ``SpaceMismatch`` when documents of another space are in it."""
        if self.holds_documents and self.space is not None and self.space != space:
            raise SpaceMismatch(
                f"The collection was embedded with {self.space.model} "
                f"({self.space.dimension} dimensions), not with {space.model} "
                f"({space.dimension} dimensions): use another collection, or reindex."
            )


async def find_collections(connection: Connection, names: Sequence[str]) -> list[Collection]:
    """Those collections. Raises ``NotFound`` unless every name is known."""
    found = await _named(connection, names)
    if len(found) < len(set(names)):
        raise NotFound("There is no such collection.")
    return found


async def space_id(connection: Connection, space: Space) -> int | None:
    cursor = await connection.execute(statement("space"), _of(space))
    row = await cursor.fetchone()
    return None if row is None else int(row[0])


async def take_collection(connection: Connection, name: str, space: Space) -> Collection:
    """The collection, made when it is new, living in ``space`` from now on.

    Raises ``SpaceMismatch``. Should another transaction give it another space meanwhile,
    the foreign key of documents refuses ours.
    """
    _check_name(name)
    number = await _known_space(connection, space)
    found = await _named(connection, [name])
    if not found:
        parameters = {"id": new_id(), "name": name, "space": number}
        await connection.execute(statement("add_collection"), parameters)
        found = await _named(connection, [name])
    [collection] = found
    collection.require(space)
    if collection.space_id != number:
        parameters = {"id": collection.id, "space": number}
        await connection.execute(statement("set_space"), parameters)
    return Collection(
        collection.id,
        name,
        number,
        space,
        collection.languages,
        collection.holds_documents,
    )


async def _known_space(connection: Connection, space: Space) -> int:
    if not 1 <= space.dimension <= MOST_DIMENSION:
        raise InvalidInput(f"Embeddings have between 1 and {MOST_DIMENSION} dimensions.")
    number = await space_id(connection, space)
    if number is None:
        await connection.execute(statement("add_space"), _of(space))
        number = await space_id(connection, space)
    assert number is not None
    return number


async def _named(connection: Connection, names: Sequence[str]) -> list[Collection]:
    cursor = await connection.execute(statement("collections"), {"names": list(names)})
    return [
        Collection(
            id=row[0],
            name=row[1],
            space_id=row[2],
            space=None if row[2] is None else Space(row[3], row[4]),
            languages=tuple(row[5]),
            holds_documents=row[6],
        )
        for row in await cursor.fetchall()
    ]


def _check_name(name: str) -> None:
    if not name.strip() or len(name) > MOST_NAME_CHARS or not name.isprintable():
        raise InvalidInput(f"A collection's name has 1 to {MOST_NAME_CHARS} printable characters.")


def _of(space: Space) -> dict[str, object]:
    return {"model": space.model, "dimension": space.dimension}
