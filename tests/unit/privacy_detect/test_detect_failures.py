"""The detector fails closed (I2) and silently about the text (I6)."""

from __future__ import annotations

import logging
from collections.abc import Callable

import pytest

from rag.errors import DetectorFailed, Misconfigured, TooLarge
from rag.privacy.detect import PresidioDetector
from rag.privacy.recognizers.contact import PhoneRecognizer
from rag.privacy.recognizers.rules import Rule, RuleSet
from rag.types import EntityType, Span

SECRET = "rosa.quint@example.org"


class Broken:
    """A recognizer that raises what it is told, with the text in the message."""

    name = "broken"

    def __init__(self, error: Callable[[str], Exception]) -> None:
        self._error = error

    def find(self, text: str) -> list[Span]:
        raise self._error(text)


class Silent:
    name = "silent"

    def find(self, text: str) -> list[Span]:
        return []


def broken(error: Callable[[str], Exception]) -> PresidioDetector:
    return PresidioDetector([Broken(error)], Silent(), version="test")


def test_a_pattern_out_of_time_is_an_error() -> None:
    """A pattern whose time limit runs out stops the request; it is never skipped."""
    slow = RuleSet(
        "slow", [Rule("slow", EntityType.OTHER, r"(?:a|a)+(?:a|a)+(?:a|a)+b", 0.9)], 0.01
    )
    detector = PresidioDetector([slow], Silent(), version="test")
    with pytest.raises(DetectorFailed, match="ran out of time"):
        detector.detect("a" * 5_000)


@pytest.mark.parametrize("error", [ValueError, KeyError, RuntimeError, RecursionError, MemoryError])
def test_any_fault_is_a_detector_failure(error: type[Exception]) -> None:
    """Whatever a recognizer raises, the caller sees DetectorFailed."""
    with pytest.raises(DetectorFailed):
        broken(error).detect(SECRET)


def test_the_error_does_not_hold_the_text() -> None:
    """Neither message nor cause nor context of the error shows what was searched."""
    with pytest.raises(DetectorFailed) as caught:
        broken(ValueError).detect(SECRET)
    assert SECRET not in str(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__


def test_a_fault_of_the_name_model_is_a_failure() -> None:
    """The name part fails closed like every other."""
    with pytest.raises(DetectorFailed):
        PresidioDetector([], Broken(ValueError), version="test").detect("x")


def test_a_text_over_the_limit_is_too_large() -> None:
    """One character over the limit is refused, the limit itself is searched."""
    detector = PresidioDetector([], Silent(), version="test", max_chars=10)
    assert detector.detect("x" * 10) == []
    with pytest.raises(TooLarge):
        detector.detect("x" * 11)


def test_an_unknown_phone_region_is_refused() -> None:
    """A region that libphonenumber does not know is a wrong setting, not an empty search."""
    with pytest.raises(Misconfigured):
        PhoneRecognizer(["GB", "XX"])


@pytest.mark.parametrize(
    "text", ["", " ", "\n\n", "\u200b", "%", "&#", "\x00", "\ud800", "\\u00e9"]
)
def test_odd_texts_are_searched(detector: PresidioDetector, text: str) -> None:
    """Empty, invisible and broken texts are no fault."""
    assert detector.detect(text) == []


def test_nothing_is_logged(detector: PresidioDetector, caplog: pytest.LogCaptureFixture) -> None:
    """At the finest level no logger says what was searched or found (I6)."""
    caplog.set_level(logging.DEBUG)
    text = f"{SECRET}, IBAN DE51 0000 0000 0123 4567 8Z, card 4929-1122-3344-5567, Rosa Quint"
    detector.detect(text)
    assert not caplog.records


def test_the_version_follows_what_could_change_spans(detector: PresidioDetector) -> None:
    """Another choice of phone regions is another version; the same choice is the same."""
    assert PresidioDetector.open().version == detector.version
    assert PresidioDetector.open(regions=["GB"]).version != detector.version
