"""Fixtures that several parts share, and the rule for what is not on this machine.

A test that needs the public data sets or a program of the distribution's package
manager is named as not run where that is absent, and fails where it must be there:
the data when ``VEILRAG_BENCH_DATA`` is set, the program when ``CI`` is.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def bench_data() -> Path:
    """The folder of public data sets that ``VEILRAG_BENCH_DATA`` names."""
    named = os.environ.get("VEILRAG_BENCH_DATA")
    if not named:
        pytest.skip("VEILRAG_BENCH_DATA is not set: tests on the public data sets are not run")
    folder = Path(named)
    if not os.access(folder, os.R_OK | os.X_OK) or not any(folder.iterdir()):
        pytest.fail("VEILRAG_BENCH_DATA names a folder that cannot be read")
    return folder


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip, or under ``CI`` fail, a test whose program is not installed."""
    for mark in item.iter_markers("system"):
        for program in mark.args:
            if shutil.which(program) or Path("/usr/sbin", program).exists():
                continue
            if os.environ.get("CI"):
                pytest.fail(f"{program} is not installed", pytrace=False)
            pytest.skip(f"{program} is not installed")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Name what was not run, and why, so that nothing is left out silently."""
    skipped = terminalreporter.stats.get("skipped", [])
    if skipped:
        terminalreporter.section("not run")
        for report in skipped:
            reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longrepr
            terminalreporter.write_line(f"{report.nodeid}: {reason}")
