"""The detector: all recognizers over one text, resolved, or an error (I2).

Presidio's recognizers and spaCy run in this process and never touch the network.
``AnalyzerEngine`` is left aside: it detects the language, logs its decisions with the
values, merges neighbours and skips patterns that run out of time.
"""

from __future__ import annotations

import hashlib
from bisect import bisect_right
from collections.abc import Sequence
from importlib.metadata import version as installed
from importlib.resources import files
from itertools import accumulate

from rag.errors import DetectorFailed, TooLarge
from rag.privacy.policy import DIRECT
from rag.privacy.recognizers.contact import REGIONS
from rag.privacy.recognizers.decoded import DecodedRecognizer
from rag.privacy.recognizers.echoes import echoes
from rag.privacy.recognizers.model import NameModel
from rag.privacy.recognizers.people import PeopleRecognizer
from rag.privacy.recognizers.rules import Recognizer
from rag.privacy.recognizers.view import view
from rag.privacy.resolve import CERTAIN, LIKELY, resolve
from rag.types import EntityType, Span

CODE = 3
"""Raised whenever the code would give some text other spans."""


class PresidioDetector:
    """Finds personal data of all types; safe to call from several threads at once."""

    def __init__(
        self,
        patterns: Sequence[Recognizer],
        people: Recognizer,
        *,
        version: str,
        max_chars: int = 2_000_000,
    ) -> None:
        self._patterns = tuple(patterns)
        self._people = people
        self._version = version
        self._max_chars = max_chars

    @classmethod
    def open(
        cls,
        *,
        max_chars: int = 2_000_000,
        regions: Sequence[str] = REGIONS,
        model: NameModel | None = None,
    ) -> PresidioDetector:
        """Load everything, offline (about two seconds, 200 MB).

        ``regions`` are those whose national phone notation is known; raises
        ``Misconfigured`` when one is unknown, ``DetectorFailed`` when a part cannot load.
        """
        try:
            from rag.privacy.recognizers.model import SpacyNames

            names = model or SpacyNames()
            patterns = _patterns(regions)
        except ImportError as error:
            raise DetectorFailed(
                f"The detector cannot load: {error.name} is not installed. Install veilrag anew, "
                "with its dependencies."
            ) from None
        except (OSError, ValueError) as error:
            raise DetectorFailed(f"The detector cannot load ({type(error).__name__}).") from None
        detector = cls(
            (*patterns, DecodedRecognizer(patterns)),
            PeopleRecognizer(names),
            version=_version(patterns, regions, names.version),
            max_chars=max_chars,
        )
        detector.detect("Warm-up: Dr Ada Quill, ada@quill.example, +44 20 7946 0018.")
        return detector

    @property
    def version(self) -> str:
        return self._version

    def detect(self, text: str) -> list[Span]:
        """Resolved spans of all types in ``text``: sorted, not overlapping.

        Raises ``DetectorFailed`` when any recognizer errs or runs out of time, ``TooLarge``.
        """
        if len(text) > self._max_chars:
            raise TooLarge("The text is too large to be searched for personal data.")
        try:
            return self._detect(text)
        except TimeoutError:
            raise DetectorFailed("A pattern of the detector ran out of time.") from None
        except Exception as error:  # fail closed: whatever it is, nothing leaves
            raise DetectorFailed(f"The detector failed ({type(error).__name__}).") from None

    def _detect(self, text: str) -> list[Span]:
        seen = view(text)
        certain = [span for part in self._patterns for span in part.find(seen.text)]
        people = _outside_code(self._people.find(seen.text), certain)
        found = [*certain, *people]
        found += echoes(seen.text, resolve(seen.text, found))
        return resolve(text, [seen.original(span) for span in found])


def _outside_code(people: Sequence[Span], certain: Sequence[Span]) -> list[Span]:
    """What the name model sees inside links, secrets and addresses of machines is no name."""
    code = {EntityType.URL, EntityType.CREDENTIAL, EntityType.EMAIL, EntityType.NETWORK}
    ranges = sorted((s.start, s.end) for s in certain if s.type in code)
    reach = list(accumulate((end for _, end in ranges), max))
    beyond = reach[-1] + 1 if reach else 0

    def inside(span: Span) -> bool:
        index = bisect_right(ranges, (span.start, beyond)) - 1
        return index >= 0 and reach[index] >= span.end

    return [p for p in people if not inside(p)]


def _patterns(regions: Sequence[str]) -> list[Recognizer]:
    from rag.privacy.recognizers import (
        addresses,
        contact,
        dates,
        financial,
        identity,
        network,
        secrets,
    )

    return [
        contact.EmailRecognizer(),
        contact.PhoneRecognizer(regions),
        contact.username_rules(),
        financial.CardRecognizer(),
        financial.IbanRecognizer(),
        financial.financial_rules(),
        identity.identity_rules(),
        dates.DateRecognizer(),
        network.IpRecognizer(),
        network.network_rules(),
        secrets.secret_rules(),
        addresses.address_rules(),
    ]


def _version(recognizers: Sequence[Recognizer], regions: Sequence[str], model: str) -> str:
    """A hash over everything that could give a text other spans."""
    packages = ["presidio-analyzer", "spacy", "phonenumbers", "tldextract", "nicknames", "regex"]
    data = files("rag.privacy").joinpath("data")
    parts = [
        f"code={CODE}",
        f"tiers={CERTAIN},{LIKELY}",
        f"direct={','.join(sorted(DIRECT))}",
        f"model={model}",
        f"regions={','.join(sorted(regions))}",
        *(f"{r.name}={getattr(r, 'fingerprint', '')}" for r in recognizers),
        *(f"{name}={installed(name)}" for name in packages),
        *(_digest(data.joinpath(name).read_bytes()) for name in ("words.txt", "places.txt")),
    ]
    return "presidio-" + _digest("\n".join(parts).encode())[:16]


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
