"""``veilrag doctor``: every part is asked whether it works, and what to do where it does not.

Nothing is sent but questions of our own, nothing is stored, and no line of what it says
holds a secret or a word of a document (I6).
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from functools import partial

from rag.doctor.findings import Finding, Status
from rag.errors import VeilragError
from rag.settings import Settings

__all__ = ["Finding", "Status", "examine"]

Examination = Callable[[], Awaitable[list[Finding]]]


async def examine(settings: Settings) -> AsyncIterator[Finding]:
    """What is found of each part, in order; a part that breaks off is a failure of that part.

    The disk comes before the database, which puts the modes of its folder right.
    """
    from rag.doctor.configuration import examine_configuration
    from rag.doctor.database import examine_database
    from rag.doctor.disk import examine_disk
    from rag.doctor.models import examine_models
    from rag.doctor.reading import examine_converters, examine_detector

    parts: dict[str, Examination] = {
        "settings": partial(examine_configuration, settings),
        "disk": partial(examine_disk, settings),
        "database": partial(examine_database, settings),
        "models": partial(examine_models, settings),
        "detector": partial(examine_detector, settings),
        "converters": partial(examine_converters, settings),
    }
    for part, examination in parts.items():
        for finding in await _examined(part, examination):
            yield finding


async def _examined(part: str, examination: Examination) -> list[Finding]:
    try:
        return await examination()
    except VeilragError as error:
        return [Finding.fail(part, part, error.message)]
    except (ImportError, OSError, TimeoutError) as error:
        name = getattr(error, "name", None)
        found = f"could not be examined ({type(error).__name__}{f': {name}' if name else ''})"
        return [Finding.fail(part, part, found, "Install veilrag anew, with its dependencies.")]
