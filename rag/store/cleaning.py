"""What Postgres cannot hold: NUL characters and lone surrogates.

Each is replaced by U+FFFD, one for one, so that offsets stay as they are. Whoever ingests
cleans before detection, so that what is detected, stored and searched is one text.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")


def clean(text: str) -> str:
    """``text`` as it can be stored, of the same length."""
    return _UNSTORABLE.sub("\ufffd", text)


def clean_metadata(value: Any) -> Any:
    """Keys and strings of metadata, cleaned, however deep."""
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, Mapping):
        return {clean(str(key)): clean_metadata(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [clean_metadata(entry) for entry in value]
    return value
