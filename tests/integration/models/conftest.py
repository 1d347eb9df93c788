"""What the tests of the models' door share: a guard that lets pass and remembers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

from rag.errors import BoundaryRefused
from rag.settings import Settings

KEY = "sk-test-7f3a"


@dataclass
class OpenGuard:
    """Lets everything pass that does not hold one of ``forbidden``; keeps what it saw."""

    forbidden: tuple[bytes, ...] = ()
    seen: list[tuple[str, str, list[tuple[str, str]], bytes]] = field(default_factory=list)

    def check(self, method: str, url: str, headers: Sequence[tuple[str, str]], body: bytes) -> None:
        self.seen.append((method, url, list(headers), body))
        if any(text in body for text in self.forbidden):
            raise BoundaryRefused("An original is in the body.")


@pytest.fixture
def guard() -> OpenGuard:
    return OpenGuard()


@pytest.fixture
def guard_against() -> Callable[..., OpenGuard]:
    return lambda *texts: OpenGuard(tuple(t.encode() for t in texts))


@pytest.fixture
def settings_for() -> Callable[..., Settings]:
    """Settings that know nothing but what the test says."""

    def make(base_url: str | None, **more: Any) -> Settings:
        given = {
            "openai_base_url": base_url,
            "openai_api_key": KEY,
            "model_timeout": 5,
            "model_retries": 0,
            **more,
        }
        return Settings(_env_file=None, **given)

    return make
