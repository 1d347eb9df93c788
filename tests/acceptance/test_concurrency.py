"""Many requests at once: each gets its own people, and the same findings as alone (I2, I8)."""

from __future__ import annotations

import asyncio
import re
import time
from typing import Any

import httpx2

from rag.testing.noleak import assert_no_leak
from rag.testing.stub import question_of

FIRST = ["Margaret", "Thomas", "Frederick", "Harriet", "Dorothy", "Edward", "Walter", "George"]
LAST = ["Holloway", "Pemberton", "Ashcroft", "Whitlock", "Merriweather", "Hathersage", "Penhallow"]
WORDS = (  # noqa: SIM905 - fifty words are read more easily so
    "amber basket candle drum engine feather garden hammer island jacket kettle ladder mirror "
    "needle orange pencil quilt ribbon saddle table umbrella violin wagon yarn zipper arrow "
    "bottle carpet diamond emerald fountain glove harp ivory jungle lantern marble notebook "
    "oyster parcel quartz rocket silver trumpet velvet window copper meadow pepper walnut"
).split()
PEOPLE = [f"{first} {last}" for last in LAST for first in FIRST]


def post_all(url: str, bodies: list[dict[str, Any]], at_once: int) -> list[httpx2.Response]:
    """All answers, in the order of the bodies."""

    async def run() -> list[httpx2.Response]:
        slots = asyncio.Semaphore(at_once)
        async with httpx2.AsyncClient(base_url=url, trust_env=False, timeout=120) as client:

            async def one(body: dict[str, Any]) -> httpx2.Response:
                async with slots:
                    return await client.post("/ask", json=body)

            return await asyncio.gather(*map(one, bodies))

    return asyncio.run(run())


def test_fifty_askers_get_their_own_people(service: Any, stub: Any, collection: str) -> None:
    """Restored values never cross from one request to another (I8)."""
    people = PEOPLE[:50]
    for n, person in enumerate(people):
        service.add(f"The {WORDS[n]} locker belongs to {person}.", f"{n}.md", collection)

    def reply(prompt: str) -> str:
        [asked] = re.findall(r"Who has the (\w+) locker\?", question_of(prompt))
        found = re.search(rf"The {asked} locker belongs to (\S+?)\.", prompt)
        return f"{asked}: {found[1]}." if found else "I don't know."

    stub.script.answer = reply
    bodies = [
        {"question": f"Who has the {WORDS[n]} locker?", "collection": collection, "rewrite_n": 1}
        for n in range(len(people))
    ]
    replies = post_all(service.url, bodies, 50)
    answers = [one.json().get("answer", one.text) for one in replies]
    assert answers == [f"{WORDS[n]}: {person}." for n, person in enumerate(people)]
    assert_no_leak(stub, [word for person in people for word in person.split()])


def test_findings_are_the_same_together_as_alone(
    service: Any, stub: Any, collection: str, normal: Any
) -> None:
    """Short and long texts at once have the findings of a sequential run."""
    short = "Is Thomas Pemberton on duty?"
    long = (
        "The rota of the harbour office, week by week. " * 40
        + "Is Thomas Pemberton on duty, or Eleanor Ashcroft, reachable at +44 7700 900371?"
    )
    service.add("Thomas Pemberton is on duty on Sunday.", collection=collection)
    bodies = [
        {"question": text, "collection": collection, "rewrite_n": 0} for text in (short, long)
    ]
    alone = []
    for body in bodies:
        service.ask(**body)
        alone.append(normal(stub.answers[-1].prompt))
    stub.forget()
    replies = post_all(service.url, bodies * 50, 30)
    assert {one.status_code for one in replies} == {200}
    assert {normal(one.prompt) for one in stub.answers} == set(alone)
    assert len(stub.answers) == 100
    assert_no_leak(stub, ["Pemberton", "Thomas", "Ashcroft", "7700 900371"])


def test_a_question_in_parts_is_repeatable(
    service: Any, stub: Any, collection: str, normal: Any
) -> None:
    """Concurrent children join in one order: twenty runs send one and the same prompt."""
    service.add("Thomas Pemberton pays for boathouse 4.", "a.md", collection)
    service.add("The boiler of boathouse 9 was replaced in 2021.", "b.md", collection)
    for n in range(8):
        service.add(f"Boathouse {n + 20} is empty and its boiler is off.", f"c{n}.md", collection)
    stub.script.rewrite = lambda _: "boathouse 4 payer\nboathouse 9 boiler\nboiler replaced"
    question = "Who pays for boathouse 4 and when was the boiler of boathouse 9 replaced?"
    for _ in range(20):
        answer = service.ask(question, collection=collection)
    assert len(stub.answers) == 20
    assert len({normal(one.prompt) for one in stub.answers}) == 1
    assert "Thomas Pemberton pays" in answer["answer"]
    assert "2021" in answer["answer"]


def test_a_passage_found_by_several_rewrites_is_used_once(
    service: Any, stub: Any, collection: str
) -> None:
    """The union of the children holds each chunk once, in the prompt and in the sources."""
    service.add("Boathouse 4 is paid by direct debit. Its boiler is new.", "a.md", collection)
    stub.script.rewrite = lambda _: "boathouse debit\nboathouse boiler\nnew boiler\nboathouse 4"
    answer = service.ask(
        "How is boathouse 4 paid, and is its boiler new?", rewrite_n=4, collection=collection
    )
    keys = [(one["document_id"], one["chunk_index"]) for one in answer["sources"]]
    assert len(keys) == len(set(keys)) == 1
    assert stub.answers[-1].prompt.count("paid by direct debit") == 1


def test_askers_who_leave_cost_nobody_a_connection(
    service: Any, stub: Any, collection: str
) -> None:
    """A hundred aborted requests leave the pool whole: twenty honest ones pass in five seconds."""
    service.add("Thomas Pemberton pays for boathouse 4.", collection=collection)
    stub.script.delay = 0.2
    body = {"question": "Who pays for boathouse 4?", "collection": collection, "rewrite_n": 1}

    async def leave(client: httpx2.AsyncClient, n: int) -> None:
        task = asyncio.create_task(client.post("/ask", json=body))
        await asyncio.sleep(0.005 * n)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    async def leave_all() -> None:
        async with httpx2.AsyncClient(base_url=service.url, trust_env=False, timeout=60) as client:
            await asyncio.gather(*(leave(client, n) for n in range(100)))

    asyncio.run(leave_all())
    stub.script.delay = 0
    began = time.monotonic()
    replies = post_all(service.url, [body] * 20, 20)
    took = time.monotonic() - began
    assert [one.status_code for one in replies] == [200] * 20
    assert took < 5
    with service.database() as database:
        rows = database.execute(
            "select state, xact_start is not null from pg_stat_activity where usename <> 'postgres'"
        ).fetchall()
    assert len(rows) <= 4
    assert [row for row in rows if row[0] != "idle"] == []
