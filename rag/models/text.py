"""What a text needs before it can be written as UTF-8."""

from __future__ import annotations


def sendable(text: str) -> str:
    """``text`` with each lone surrogate replaced: UTF-8 has no bytes for half a character."""
    return text.encode("utf-8", "replace").decode("utf-8")
