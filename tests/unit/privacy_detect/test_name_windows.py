"""The name model reads in bounded windows, and no window border cuts a name."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag.privacy.recognizers.model import OVERLAP, WINDOW, SpacyNames, windows
from rag.types import EntityType

NAME = "Kirsti Haugland"


@pytest.fixture(scope="module")
def model() -> SpacyNames:
    return SpacyNames()


@given(
    st.integers(0, 3 * WINDOW), st.sampled_from(["x", "word ", "A line of text.\n", "One. Two. "])
)
def test_windows_cover_the_text(length: int, piece: str) -> None:
    """Windows are bounded, leave nothing out and share at least half the overlap."""
    text = (piece * (length // len(piece) + 1))[:length]
    found = list(windows(text))
    assert found[0][0] == 0
    assert found[-1][1] == len(text)
    assert all(end - start <= WINDOW for start, end in found)
    assert all(left[1] - right[0] >= OVERLAP // 2 for left, right in pairwise(found))


@pytest.mark.parametrize("at", range(WINDOW - 40, WINDOW + 4, 3))
def test_a_name_at_a_border_is_found_whole_and_once(model: SpacyNames, at: int) -> None:
    """Neither half of a name that a window cuts is reported beside the whole."""
    filler = "we cleaned the boiler and changed the filter, " * 120
    text = filler[:at] + ", then Kirsti Haugland signed the list, " + filler
    start = text.index(NAME)
    people = [
        (s.start, s.end)
        for s in model.entities(text)
        if s.type is EntityType.PERSON and s.start < start + len(NAME) and s.end > start
    ]
    assert people == [(start, start + len(NAME))]
