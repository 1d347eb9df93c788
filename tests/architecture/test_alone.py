"""No module of the light parts needs another to have been imported before it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
NAMES = sorted(
    ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
    for package in ("rag/ingest", "rag/doctor", "rag/store", "rag/privacy")
    for path in (ROOT / package).rglob("*.py")
    if path.name != "__main__.py" and "data" not in path.parts
)

TRY = """
import importlib, os, sys
for name in sys.argv[1:]:
    child = os.fork()
    if child == 0:
        try:
            importlib.import_module(name)
        except ModuleNotFoundError as error:
            own = (error.name or "").split(".")[0] in {"rag", "api", "eval"}
            os._exit(1 if own else 0)
        except ImportError:
            os._exit(1)
        os._exit(0)
    if os.waitpid(child, 0)[1]:
        print(name)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_every_module_imports_by_itself() -> None:
    """Each is imported first in a process of its own: no circle shows in any order."""
    assert len(NAMES) > 60
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", TRY, *NAMES],
        cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stdout.split() == []
