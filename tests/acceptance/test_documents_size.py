"""Long documents, and values that lie where a document is cut."""

from __future__ import annotations

import itertools
import random
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psutil
import pytest

from rag.testing.noleak import assert_no_leak, assert_seen
from rag.testing.stub import frame

PERSON, PHONE, MAIL = "Beatrice Lockhart", "07700 900457", "b.lockhart@ferry.example"
PIECES = ("Beatrice", "Lockhart", "b.lockhart@", "@ferry.example")
DIGITS = PHONE.replace(" ", "")
FOURS = tuple(DIGITS[i : i + 4] for i in range(len(DIGITS) - 3))

SENTENCES = (
    "The slipway was swept and the ropes were dried before the tide turned.",
    "A crate of lamps came in on the early boat and was put beneath the stairs.",
    "Paint is stirred for an hour, then it is left to stand beside the stove.",
    "The log says that the wind was steady and that the water was clear.",
)


def filler(characters: int, seed: int = 1) -> str:
    """Plain prose of about so many characters, in paragraphs, that names nobody."""
    chance = random.Random(seed)
    parts: list[str] = []
    length = 0
    while length < characters:
        paragraph = " ".join(chance.choices(SENTENCES, k=chance.randint(3, 9)))
        parts.append(paragraph)
        length += len(paragraph) + 2
    return "\n\n".join(parts)


@contextmanager
def watched(pid: int) -> Iterator[list[int]]:
    """Resident bytes of a process and its children, from time to time."""
    seen: list[int] = []
    done = threading.Event()

    def watch() -> None:
        while not done.wait(0.25):
            family = [psutil.Process(pid), *psutil.Process(pid).children(recursive=True)]
            total = 0
            for one in family:
                try:
                    if "postgres" not in one.name():
                        total += one.memory_info().rss
                except psutil.Error:
                    continue
            seen.append(total)

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        yield seen
    finally:
        done.set()
        thread.join()


PLACES = {
    "the start": ("wheelhouse", PERSON, PHONE),
    "character 1,000,000": ("lamp room", "Clement Hartwell", "07700 900618"),
    "the end": ("sail loft", "Rosalind Amberley", "07700 900739"),
}
MILLION = 1_000_000


def long_document() -> str:
    """1.3 million characters with somebody at the start, across the millionth, at the end."""
    lines = [
        f"The key of the {place} is held by {person}, {phone}, until the spring."
        for place, person, phone in PLACES.values()
    ]
    first, middle, last = lines
    across = middle.index("Clement") + 4
    head = f"{first}\n\n{filler(MILLION - 2_000)}\n\n"
    pad = MILLION - across - len(head)
    assert pad > 0
    head += "ebb " * (pad // 4 - 1) + "e" * (pad % 4) + "bb\n\n"
    text = f"{head}{middle}\n\n{filler(300_000, 2)}\n\n{last}"
    assert text[MILLION - 4 : MILLION + 4] == "Clement "
    return text


@pytest.mark.slow
def test_a_very_long_text_is_protected_to_its_end(launch: Any, new_stub: Any) -> None:
    """1.3 million characters: all three people are hidden and come back, in bounded memory;
    else the whole is refused as too large, with nothing sent."""
    stub = new_stub()
    service = launch(stub).until_ready()
    file = {"file": ("long.txt", long_document().encode(), "text/plain")}
    with watched(service.process.pid) as resident:
        time.sleep(0.6)
        reply = service.client.post("/documents", files=file, timeout=900)
    assert max(resident) - resident[0] < 1_000_000_000
    if reply.status_code == 413:
        assert stub.records == []
        return
    assert reply.status_code == 201, reply.text
    for place, person, phone in PLACES.values():
        stub.forget()
        stub.script.answer = frame(f"key of the {place} is held by ", ", until the", "It is {}.")
        answer = service.ask(f"Who holds the key of the {place}?")
        assert answer["answer"] == f"It is {person}, {phone}."
        assert_seen(stub, [f"The key of the {place}"])
        assert_no_leak(stub, [*person.split(), phone])


SIZES = {
    "defaults": {},
    "small chunks": {"chunk_chars": "200"},
    "small chunks that overlap": {"chunk_chars": "200", "chunk_overlap_chars": "60"},
}


@pytest.mark.parametrize("sizes", SIZES.values(), ids=SIZES)
def test_no_chunk_holds_a_piece_of_a_value(
    launch: Any, new_stub: Any, sizes: dict[str, str]
) -> None:
    """Wherever the cuts would fall by size, none falls inside a number, an address or a name."""
    stub = new_stub()
    service = launch(stub, embeddings="openai:stub-embed", **sizes).until_ready()
    size = int(sizes.get("chunk_chars", "1100"))
    send_padded(service, size)
    values = (PERSON, PHONE, MAIL)
    texts = chunk_texts(service)
    assert len(texts) > 60
    for value in values:
        assert sum(value in text for text in texts) >= 60
    for text in texts:
        rest = text
        for value in values:
            rest = rest.replace(value, "")
        assert [piece for piece in (*PIECES, *FOURS) if piece in rest] == []
    assert_no_leak(stub, [*PIECES, *FOURS])
    answer = service.ask("Who keeps the wheelhouse of jetty 17?", top_k=5)
    assert [value for value in values if value not in answer["answer"]] == []
    assert_no_leak(stub, [*PIECES, *FOURS])
    assert_seen(stub, ["for the season"])


def send_padded(service: Any, size: int) -> None:
    """Sixty documents whose values lie one character further each, about the first cut."""
    line = f"The wheelhouse of jetty {{}} is kept by {PERSON}, {PHONE}, {MAIL} for the season."
    start = size - line.index(MAIL) - len(MAIL)
    words = list(itertools.islice(itertools.cycle(SENTENCES), 400))
    files = []
    for n in range(60):
        before = " ".join(words)[: max(0, start + n)].rsplit(" ", 1)[0]
        before += " " + "o" * max(0, start + n - len(before) - 1)
        text = f"{before} {line.format(n)} {' '.join(words)[:size]}"
        files.append(("file", (f"jetty-{n}.txt", text.encode(), "text/plain")))
    reply = service.client.post("/documents", files=files, timeout=300)
    assert reply.status_code == 201, reply.text
    assert {one["status"] for one in reply.json()["documents"]} == {"ready"}


def chunk_texts(service: Any) -> list[str]:
    with service.database() as database:
        return [row[0] for row in database.execute("select text from veilrag.chunks").fetchall()]
