"""Detector and converters: each is given a line of our own and must find what it holds."""

from __future__ import annotations

import asyncio
import time

from rag.doctor.findings import Finding
from rag.errors import VeilragError
from rag.settings import Settings
from rag.types import EntityType

PLANTED = "Please call Dr Ada Quill of Lower Mill Lane, ada.quill@mill.example, before noon."
NAME, MAIL = "Ada Quill", "ada.quill@mill.example"
OCR = "tesseract"


async def examine_detector(settings: Settings) -> list[Finding]:
    from rag.privacy.detect import PresidioDetector

    began = time.perf_counter()
    try:
        detector = await asyncio.to_thread(
            PresidioDetector.open, max_chars=settings.max_detect_chars
        )
        spans = await asyncio.to_thread(detector.detect, PLANTED)
    except VeilragError as error:
        return [Finding.fail("detector", "detector", error.message)]
    took = time.perf_counter() - began
    people = [PLANTED[s.start : s.end] for s in spans if s.type is EntityType.PERSON]
    mails = [PLANTED[s.start : s.end] for s in spans if s.type is EntityType.EMAIL]
    if not any(NAME in found for found in people) or MAIL not in mails:
        advice = "Install veilrag anew with -c requirements.lock; do not serve as it is."
        return [Finding.fail("detector", "detector", "misses a planted name", advice)]
    return [Finding.ok("detector", "detector", f"loads and finds a planted name ({took:.1f} s)")]


async def examine_converters(settings: Settings) -> list[Finding]:
    """Every format that there is a sample of is read, in the child process that reads files."""
    from rag.doctor.samples import samples
    from rag.ingest.convert import convert
    from rag.ingest.formats import ENDINGS

    failed: dict[str, str] = {}
    for ending, data in samples(PLANTED).items():
        if ending not in ENDINGS:
            continue
        try:
            document = await convert(f"sample.{ending}", data)
        except VeilragError as error:
            failed[ending] = error.code
        else:
            if NAME not in document.content:
                failed[ending] = "not read whole"
    return [_converted(sorted(ENDINGS), failed), _pictures()]


def _converted(endings: list[str], failed: dict[str, str]) -> Finding:
    if failed:
        found = "fail: " + ", ".join(f"{name} ({why})" for name, why in sorted(failed.items()))
        advice = "Install veilrag anew, with its dependencies."
        return Finding.fail("converters", "formats", found, advice)
    return Finding.ok("converters", "formats", " ".join(endings))


def _pictures() -> Finding:
    from rag.ingest.loaders.ocr import program

    if program() is None:
        found = "no OCR program: scanned pages are refused"
        advice = "Install tesseract (Debian: tesseract-ocr, and its languages) if you need them."
        return Finding.warn("converters", "scanned pages", found, advice)
    return Finding.ok("converters", "scanned pages", f"read by {OCR}")
