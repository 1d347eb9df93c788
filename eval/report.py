"""What a measurement leaves behind: one strict JSON object, and lines for a reader."""

from __future__ import annotations

import json
import os
import platform
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any


def strict_json(value: Any) -> str:
    """JSON without NaN or infinities (RFC 8259); ``ValueError`` where one lies."""
    return json.dumps(value, allow_nan=False, ensure_ascii=False, indent=2, sort_keys=True)


def write_json(value: Mapping[str, Any], target: Path | None) -> None:
    """Write one object to ``target``; nothing when there is none."""
    if target is not None:
        target.write_text(strict_json(value) + "\n", encoding="utf-8")


def machine() -> dict[str, Any]:
    """What a figure depends on: processors, platform, Python. No host or user name."""
    return {
        "cpus": os.cpu_count(),
        "python": platform.python_version(),
        "system": f"{sys.platform} {platform.machine()}",
    }
