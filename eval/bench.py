"""``python -m eval bench ask|memory|ingest``: what a question costs apart from the model, what
the service holds resident, how fast documents enter. Figures are measured, printed with their
spread, and compared with the target that the project set itself."""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Sequence
from pathlib import Path

from eval.report import write_json


def parser() -> argparse.ArgumentParser:
    top = argparse.ArgumentParser(prog="python -m eval bench", description=__doc__)
    commands = top.add_subparsers(dest="command", required=True)
    ask = commands.add_parser("ask", help="one question, against scanning passages when asked")
    ask.add_argument("--rounds", type=int, default=5, help="times that every question is asked")
    ask.add_argument("--rewrites", type=int, default=3)
    ask.add_argument("--top-k", type=int, default=5)
    memory = commands.add_parser("memory", help="resident memory of a served process")
    memory.add_argument("--requests", type=int, default=1_000)
    memory.add_argument("--every", type=int, default=50, help="requests between two samples")
    ingest = commands.add_parser("ingest", help="chunks a second, against stock Presidio")
    ingest.add_argument("--megabytes", type=float, default=200.0, help="of the text file")
    ingest.add_argument("--files", type=int, default=5_000, help="of the folder")
    ingest.add_argument("--plain-megabytes", type=float, default=1.0, help="for the plain pipeline")
    ingest.add_argument("--plain-files", type=int, default=300, help="for the plain pipeline")
    for command in (ask, memory):
        command.add_argument("--data", type=Path, help="documents instead of the samples")
        command.add_argument("--questions", type=Path, help="one a line, for --data")
    for command in (ask, memory, ingest):
        command.add_argument("--json", type=Path, help="write the figures there too")
    return top


def main(argv: Sequence[str]) -> int:
    """Run one benchmark; 1 when its target is missed."""
    options = parser().parse_args(argv)
    if options.command == "ask":
        from eval import ask_cost

        figures = asyncio.run(ask_cost.run(options))
        ask_cost.show(figures)
    elif options.command == "ingest":
        from eval import ingest_cost

        figures = ingest_cost.run(options)
        ingest_cost.show(figures)
    else:
        from eval import memory

        figures = memory.run(options)
        memory.show(figures)
    write_json(figures, options.json)
    return 0 if figures["met"] else 1
