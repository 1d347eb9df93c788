"""One opened detector for all tests here; it keeps no state between texts."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from rag.privacy.detect import PresidioDetector
from rag.privacy.policy import load_policy

Found = list[tuple[str, str]]


@pytest.fixture(scope="session")
def detector() -> PresidioDetector:
    return PresidioDetector.open()


@pytest.fixture(scope="session")
def protected(detector: PresidioDetector) -> Callable[[str], Found]:
    """What the default policy would protect in a text, as ``(type, substring)``."""
    policy = load_policy("default")

    def find(text: str) -> Found:
        spans = policy.select(detector.detect(text))
        return [(span.type.value, text[span.start : span.end]) for span in spans]

    return find
