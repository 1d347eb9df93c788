"""What a model says that no source and no question holds (I4).

Such a value was invented or remembered, and is nobody's to send on: it is counted, and
taken out of the protected answer before a judge sees it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from rag.types import Span

TAKEN_OUT: Final = "[unsourced]"


def unsourced_values(answer: str, spans: Sequence[Span], sources: Sequence[str]) -> tuple[str, ...]:
    """The distinct span texts of ``answer`` whose letters and digits stand in no source."""
    known = _bare(" ".join(sources))
    texts = dict.fromkeys(answer[span.start : span.end] for span in spans)
    return tuple(text for text in texts if _bare(text) not in known)


def hide_unsourced(protected: str, values: Sequence[str]) -> str:
    """The protected answer with these values taken out."""
    for value in sorted(values, key=len, reverse=True):
        protected = protected.replace(value, TAKEN_OUT)
    return protected


def _bare(text: str) -> str:
    return re.sub(r"[\W_]+", "", text.casefold())
