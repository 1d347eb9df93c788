"""The benchmarks' arithmetic and the way they look at a process, on small known things."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from eval import ask_cost, memory
from eval.bench import main, parser
from eval.material import Material
from eval.report import strict_json

PROMPT = "Context:\n[1] The key is blue.\n\n[2] No.\n\nQuestion: Which key?"


def test_the_instant_model_cites_the_first_passage() -> None:
    """Its answer is of the first passage, with the citation that resolves to it."""
    assert ask_cost.compose(PROMPT) == "The key is blue. [1]"


def test_the_instant_model_rewrites_with_the_questions_words() -> None:
    """Three different wordings, each holding the question with its placeholders."""
    lines = ask_cost.compose("Number of queries: 3\nQuestion: Who is [PERSON_1_a]?").splitlines()
    assert len(set(lines)) == 3
    assert all("[PERSON_1_a]" in line for line in lines)


def test_the_ratio_is_of_medians_and_of_pairs() -> None:
    """Medians 6 and 2 are three times; the pairs 2, 3 and 6 have the median 3."""
    found = ask_cost.ratio([4.0, 6.0, 12.0], [2.0, 2.0, 2.0])
    assert (found["of_medians"], found["median_of_pairs"]) == (3.0, 3.0)


def taken(ask: float, plain: float) -> ask_cost.Taken:
    times = ask_cost.Taken(passages=[9], characters=[700])
    for name in ask_cost.LABELS:
        end = plain if name.startswith("plain") else ask
        times.add(name, ask_cost.Moment(0.0, 0.0), ask_cost.Moment(end, end))
    return times


@pytest.mark.parametrize(("ask", "plain", "met"), [(0.01, 0.051, True), (0.01, 0.049, False)])
def test_five_times_cheaper_is_the_target(ask: float, plain: float, met: bool) -> None:
    """Under five times is a missed target, and the report stays strict JSON."""
    options = parser().parse_args(["ask"])
    figures = ask_cost.figures(taken(ask, plain), Material("m", (), ("q",)), 3, options)
    assert figures["met"] is met
    assert strict_json(figures)


def samples(*resident: float) -> list[dict[str, float]]:
    return [
        {"requests": 100.0 * number, "resident_mb": mb, "database_mb": 0.0}
        for number, mb in enumerate(resident)
    ]


@pytest.mark.parametrize(
    ("resident", "ready", "missed"),
    [
        ((500, 600, 700, 705, 710), 9.0, []),
        ((500, 600, 700, 720, 740), 9.0, ["flat_from_200"]),
        ((500, 600, 1300, 1300, 1300), 9.0, ["resident_1200_mb"]),
        ((500, 600, 700, 700, 700), 16.0, ["ready_15_s"]),
    ],
)
def test_each_target_of_memory_can_be_missed(
    resident: tuple[float, ...], ready: float, missed: list[str]
) -> None:
    """Growth from the 200th request, size at the end and time to ready each decide."""
    figures = memory.figures(samples(*resident), [0.1], 800, ready, 3)
    assert [name for name, met in figures["targets"].items() if not met] == missed
    assert figures["met"] is (not missed)


def test_too_short_a_run_claims_nothing() -> None:
    """Below 200 requests flatness was not measured: the target is not met."""
    figures = memory.figures(samples(100, 100), [0.1], 100, 1, 1)
    assert figures["targets"]["flat_from_200"] is False
    assert strict_json(figures)


def test_growth_is_counted_from_the_200th_request() -> None:
    """What is loaded before does not count: 10 MB more for each 100 after is a slope of 10."""
    figures = memory.figures(samples(100, 400, 600, 610, 620), [0.1], 800, 1, 1)
    assert figures["mb_per_100_requests_from_200"] == pytest.approx(10)


def test_the_resident_set_is_read_of_the_process_that_is_named() -> None:
    """Holding 64 MB more shows as 64 MB more, to a few."""
    before = memory.megabytes(os.getpid(), "VmRSS")
    held = bytearray(os.urandom(64_000_000))
    assert memory.megabytes(os.getpid(), "VmRSS") - before == pytest.approx(64, abs=8)
    assert len(held) == 64_000_000


def test_a_process_that_is_gone_holds_nothing() -> None:
    """A process that ended between two samples is no error."""
    done = subprocess.Popen([sys.executable, "-c", ""])
    done.wait()
    assert memory.megabytes(done.pid, "VmRSS") == 0.0


def test_children_of_children_are_found() -> None:
    """The processes below one are all found, not the nearest alone."""
    code = "import subprocess, sys; subprocess.run([sys.executable, '-c', 'input()'])"
    child = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE)
    try:
        for _ in range(400):
            below = memory.descendants(child.pid)
            if below:
                break
        parent = Path("/proc", str(below[0]), "stat").read_text().rpartition(")")[2].split()[1]
        assert int(parent) == child.pid
        assert set(below) <= set(memory.descendants(os.getpid()))
    finally:
        child.communicate(b"\n")


def test_data_without_questions_is_refused(tmp_path: Path) -> None:
    """A folder alone cannot be asked."""
    with pytest.raises(SystemExit, match="--questions"):
        main(["ask", "--data", str(tmp_path)])
