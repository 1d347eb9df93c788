"""No text makes the boundary slow: what a model or a document may send is bounded in time."""

from __future__ import annotations

import contextlib
import time

import pytest

from rag.privacy.decode import Unreadable, layers
from rag.privacy.links import inert, targets
from rag.privacy.shapes import SHAPES, Finder, lookalikes

REPEATED = [
    *("[", "[[a]", "![", "<", "<a ", "<a '", "](", "(", "[](", "\\", "[a](b", "a:", "http://"),
    *("[x]:\n", "a.", "PERSON_1_k7q", "[PERSON_1_k7q", "%5B", "&#91;", "%25", '{"a":', "a b "),
    *("A" * 20 + "\n", "<http:", "person 1 ", "0 0 ", "deadbeef ", "=C3"),
]


@pytest.mark.parametrize("part", REPEATED)
def test_repetition_is_read_in_linear_time(part: str) -> None:
    """Three thousand times the same few characters take less than a second of processor time."""
    text = part * 3000
    finder = Finder(SHAPES["bracket"], "k7q")
    start = time.process_time()
    inert(text, [])
    list(targets(text))
    lookalikes(text)
    list(finder.find(text))
    with contextlib.suppress(Unreadable):
        layers([text])
    assert time.process_time() - start < 1.0
