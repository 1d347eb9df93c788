"""Ids that grow with time (UUID version 7, RFC 9562), so that pages need no second key."""

from __future__ import annotations

import secrets
import time
from uuid import UUID


def new_id() -> UUID:
    """48 bits of milliseconds, then 74 random ones."""
    milliseconds = time.time_ns() // 1_000_000
    value = (milliseconds & (1 << 48) - 1) << 80 | secrets.randbits(80)
    value = value & ~(0xF << 76) | 0x7 << 76
    value = value & ~(0x3 << 62) | 0x2 << 62
    return UUID(int=value)
