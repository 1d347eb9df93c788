"""What the service does to its own process so that nothing personal is left behind (I6).

No core dumps; every log line through one formatter that shows no exception text; lines of
foreign loggers reduced to their place, for libraries put values into their messages; the
interpreter's own printers of tracebacks replaced likewise.
"""

from __future__ import annotations

import logging
import resource
import sys
import threading
import types

from api.errors import place_of

OWN_LOGGERS = ("api", "rag", "veilrag")
"""Loggers whose messages are ours and hold no user text."""

SERVER_LOGGER = "uvicorn.error"
"""Fixed messages of the server; what it quotes of exceptions never gets past the formatter."""


def harden() -> None:
    """Forbid core dumps, of this process and its children."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


class PlaceFormatter(logging.Formatter):
    """Formats our messages; of foreign records only logger and place; of exceptions only place."""

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)s %(name)s %(message)s")

    def format(self, record: logging.LogRecord) -> str:
        error = record.exc_info[1] if record.exc_info else None
        if is_own(record.name):
            message = record.getMessage()
        else:
            message = f"({record.module}:{record.lineno})"
        record.message = message.strip() + (f" [{place_of(error)}]" if error else "")
        record.asctime = self.formatTime(record)
        return self.formatMessage(record)


def is_own(name: str) -> bool:
    """Whether a logger's messages may be shown."""
    return name == SERVER_LOGGER or name.split(".", 1)[0] in OWN_LOGGERS


def configure_logging(level: str) -> None:
    """One handler on the root, to stderr. ``level`` is for our loggers; foreign: WARNING."""
    handler = logging.StreamHandler()
    handler.setFormatter(PlaceFormatter())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.WARNING)
    for name in OWN_LOGGERS:
        logging.getLogger(name).setLevel(level.upper())
    logging.getLogger("uvicorn").setLevel(logging.INFO)
    for name in ("uvicorn", "uvicorn.error", "openai", "httpx", "httpx2", "httpcore", "langsmith"):
        logger = logging.getLogger(name)
        logger.handlers[:] = []
        logger.propagate = True
    for name in ("openai", "httpx", "httpx2", "httpcore", "httpcore2", "langsmith"):
        logging.getLogger(name).setLevel(logging.WARNING)
    logging.captureWarnings(True)
    _quiet_interpreter()


def _quiet_interpreter() -> None:
    """The last printers of exceptions, those of interpreter and threads, show place only."""
    log = logging.getLogger("api.process")

    def uncaught(
        _type: type[BaseException], error: BaseException, _trace: types.TracebackType | None
    ) -> None:
        if not isinstance(error, KeyboardInterrupt):
            log.critical("uncaught: %s", place_of(error))

    def in_thread(args: threading.ExceptHookArgs) -> None:
        if args.exc_value is not None:
            log.error("uncaught in a thread: %s", place_of(args.exc_value))

    def unraisable(args: sys.UnraisableHookArgs) -> None:
        if args.exc_value is not None:
            log.error("unraisable: %s", place_of(args.exc_value))

    sys.excepthook = uncaught
    threading.excepthook = in_thread
    sys.unraisablehook = unraisable
