"""``python -m eval COMMAND``: one command, one module, imported when it is asked for (I11)."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module

COMMANDS = {
    "bench": ("eval.bench", "time of a question, memory of the service, speed of ingestion"),
    "converters": (
        "eval.converters",
        "the public documents, read; other converters; spoiled files",
    ),
    "placeholders": ("eval.placeholders", "which shape of placeholder comes back from a model"),
    "score": ("eval.score", "faithfulness and answer relevancy of one answer"),
}
"""Name -> (module with ``main(argv) -> int``, what it measures)."""


def usage() -> str:
    width = max(map(len, COMMANDS))
    lines = [f"  {name:<{width}}  {does}" for name, (_, does) in COMMANDS.items()]
    return "\n".join(["usage: python -m eval COMMAND [options]", "", *lines])


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; 2 when there is no such command."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    if not arguments or arguments[0] in {"-h", "--help"}:
        print(usage())
        return 0 if arguments else 2
    if arguments[0] not in COMMANDS:
        print(usage(), file=sys.stderr)
        return 2
    module = import_module(COMMANDS[arguments[0]][0])
    return int(module.main(arguments[1:]) or 0)


if __name__ == "__main__":
    sys.exit(main())
