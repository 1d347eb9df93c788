"""One line of what the doctor says."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Status(StrEnum):
    """``warn``: it works, and somebody should know. ``fail``: it does not work."""

    OK = "ok"
    WARN = "warn"
    FAIL = "fail"


@dataclass(frozen=True, slots=True)
class Finding:
    """``advice`` says what to do about it; where all is well there is none."""

    part: str
    what: str
    status: Status
    found: str
    advice: str = ""

    @classmethod
    def ok(cls, part: str, what: str, found: str) -> Finding:
        return cls(part, what, Status.OK, found)

    @classmethod
    def warn(cls, part: str, what: str, found: str, advice: str) -> Finding:
        return cls(part, what, Status.WARN, found, advice)

    @classmethod
    def fail(cls, part: str, what: str, found: str, advice: str = "") -> Finding:
        return cls(part, what, Status.FAIL, found, advice)
