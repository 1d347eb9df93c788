"""What a loader gets out of a file, before it is cleaned and named."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from rag.types import Section


@dataclass(frozen=True, slots=True)
class Read:
    """Text with its sections, and what the file says about itself."""

    content: str = field(repr=False)
    sections: tuple[Section, ...] = field(default=(), repr=False)
    metadata: Mapping[str, Any] = field(default_factory=dict, repr=False)
    language: str | None = None
