"""The detector in its process: offline, from many threads, over a long run."""

from __future__ import annotations

import random
import string
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

from rag.privacy.detect import PresidioDetector
from rag.privacy.recognizers.model import SpacyNames

OFFLINE = """
import sys
seen = []
def note(event, args):
    if event.startswith("socket."):
        seen.append(event)
sys.addaudithook(note)
from rag.privacy.detect import PresidioDetector
text = "Rosa Quint, rosa@quint.co.uk, +44 20 7946 0018, http://quint.co.uk, DE89370400440532013000"
detector = PresidioDetector.open()
# urllib3, which Presidio imports, binds a local socket once to see whether IPv6 is there
opened = [event for event in seen if event not in ("socket.__new__", "socket.bind")]
seen.clear()
assert len(detector.detect(text)) >= 4
print(opened + seen)
"""

IMPORTED = """
import sys
import rag.privacy.detect, rag.privacy.policy, rag.privacy.lexicon, rag.privacy.resolve
print([m for m in ("spacy", "presidio_analyzer", "phonenumbers", "tldextract") if m in sys.modules])
"""


def run(code: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=True
    )
    return done.stdout.strip()


def test_no_socket_is_touched() -> None:
    """Loading connects nowhere and looks up no name; detecting touches no socket at all."""
    assert run(OFFLINE) == "[]"


def test_importing_loads_nothing() -> None:
    """Importing the detector loads neither Presidio nor spaCy (I11)."""
    assert run(IMPORTED) == "[]"


def test_threads_find_what_one_finds(detector: PresidioDetector) -> None:
    """200 concurrent calls with texts of differing length give the sequential spans."""
    short = "Kasper Brandvik has the key."
    long = short + " The heating was checked and nothing was found. " * 20 + "Ask Kasper Brandvik."
    texts = [f"{(short, long)[n % 2]} No. {n}: call 07700 9001{n:02d}." for n in range(20)]
    expected = {text: detector.detect(text) for text in texts}
    assert all(expected.values())
    with ThreadPoolExecutor(16) as pool:
        found = list(pool.map(detector.detect, texts * 10))
    assert found == [expected[text] for text in texts * 10]


def test_the_string_store_does_not_grow() -> None:
    """Unseen words are forgotten after each text."""
    model = SpacyNames()
    chance = random.Random(7)
    model.entities("The first text.")
    before = model.strings()
    for _ in range(200):
        words = ("".join(chance.choices(string.ascii_letters, k=12)) for _ in range(20))
        model.entities(" ".join(words))
    assert model.strings() == before
