"""Policies: which types of personal data are protected, and from which score on.

Spans of all types are stored with their score (I10); a policy only selects among them
at question time, so that changing it never needs a second detection.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from rag.errors import UnknownName
from rag.types import EntityType, Span

DIRECT: frozenset[EntityType] = frozenset(
    {
        EntityType.PERSON,
        EntityType.USERNAME,
        EntityType.EMAIL,
        EntityType.PHONE,
        EntityType.ADDRESS,
        EntityType.CARD,
        EntityType.BANK_ACCOUNT,
        EntityType.WALLET,
        EntityType.NATIONAL_ID,
        EntityType.TAX_ID,
        EntityType.DOCUMENT_ID,
        EntityType.CREDENTIAL,
        EntityType.NETWORK,
        EntityType.BIRTH_DATE,
    }
)
"""Direct identifiers: what every policy protects.

A URL that names a person holds spans of these types for the telling part of it, so the
rest of the URL can stay.
"""


@dataclass(frozen=True, slots=True)
class Policy:
    """What is protected: spans of a type in ``protect`` whose score is at least ``threshold``."""

    name: str
    protect: frozenset[EntityType]
    threshold: float

    def select(self, spans: Iterable[Span]) -> list[Span]:
        """Those of ``spans`` that this policy protects, in their order."""
        return [s for s in spans if s.type in self.protect and s.score >= self.threshold]

    def stricter_than(self, other: Policy) -> bool:
        """Whether it protects everything that ``other`` does (a policy does so itself)."""
        return self.protect >= other.protect and self.threshold <= other.threshold


_POLICIES = {
    policy.name: policy
    for policy in (
        Policy("default", DIRECT, threshold=0.4),
        Policy("strict", frozenset(EntityType), threshold=0.2),
    )
}


def load_policy(name: str) -> Policy:
    """The policy of that name. Raises ``UnknownName``."""
    try:
        return _POLICIES[name]
    except KeyError:
        raise UnknownName("There is no such policy.") from None
