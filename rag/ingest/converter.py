"""The child process of ``rag.ingest.convert``: reads one document after another, shut in.

Before the first byte comes: memory is limited, no file can grow, no core is dumped, the
network is left behind where the kernel allows it, and an audit hook (PEP 578), which cannot
be taken back, refuses sockets, writing, other programs than the OCR program, and reading
outside of Python's own folders.
"""

from __future__ import annotations

import ctypes
import json
import os
import resource
import select
import struct
import sys
import threading
from collections.abc import Mapping
from typing import Any, BinaryIO

from rag.errors import Malformed, TooLarge, VeilragError
from rag.ingest.limits import Limits
from rag.ingest.loaders import load
from rag.ingest.loaders.ocr import page_done, program
from rag.types import Document

_MOST_JOBS = 500
_MOST_RESIDENT = 400_000_000
_CLONE_NEWNET, _CLONE_NEWUSER, _NO_NEW_PRIVILEGES = 0x40000000, 0x10000000, 38
_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_REFUSED = (
    "socket.", "os.system", "os.exec", "os.fork", "os.posix_spawn", "os.spawn", "os.startfile",
    "os.mkdir", "os.remove", "os.rename", "os.rmdir", "os.link", "os.symlink", "os.chmod",
    "os.chown", "os.truncate", "os.utime", "os.putenv", "os.setxattr", "os.kill", "pty.",
    "shutil.", "tempfile.", "urllib.", "http.", "ftplib.", "smtplib.", "webbrowser.",
)  # fmt: skip


def main() -> None:
    """Answer documents on stdin with text on stdout, until stdin ends."""
    requests, answers = sys.stdin.buffer, _own_stdout()
    _limit(int(sys.argv[1]))
    _leave_network()
    sys.addaudithook(_audit)
    answers.write(b"R")
    answers.flush()
    jobs = 0
    while (head := _head(requests)) is not None:
        request, data = head
        jobs += 1
        with _ParentWatch(requests.fileno()):
            answer = _answer(request, data, answers)
        answer["last"] = jobs >= _MOST_JOBS or _peak() > _MOST_RESIDENT
        _send(answers, answer)


def _own_stdout() -> BinaryIO:
    """The pipe to the parent; what libraries print goes nowhere."""
    kept = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    return kept


def _limit(memory: int) -> None:
    resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _leave_network() -> None:
    """A network of its own, with nothing in it; where that is not allowed the hook remains."""
    try:
        libc = ctypes.CDLL(None, use_errno=True)
        libc.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0)
        if libc.unshare(_CLONE_NEWNET) != 0:
            libc.unshare(_CLONE_NEWUSER | _CLONE_NEWNET)
    except (OSError, AttributeError):  # no Linux
        return


def _audit(event: str, arguments: tuple[Any, ...]) -> None:
    if event == "open":
        _check_open(*arguments)
    elif event == "subprocess.Popen":
        if program() is None or arguments[0] != program():
            raise PermissionError("a document starts no program")
    elif event.startswith(_REFUSED) and (event, arguments) != _OWN_END:
        raise PermissionError("a document has no such right")


def _check_open(path: object, _: object, flags: object) -> None:
    if not isinstance(path, str | bytes):
        return  # a descriptor that is open already
    place = os.path.realpath(os.fsdecode(path))
    if place in {"/dev/null", "/dev/urandom"}:
        return
    if isinstance(flags, int) and flags & _WRITES:
        raise PermissionError("a document writes no file")
    if not place.startswith(_READABLE):
        raise PermissionError("a document opens no file")


_PLACES = {sys.prefix, sys.base_prefix, *sys.path, "/usr/lib", "/usr/share/zoneinfo"}
_READABLE = (
    *(os.path.join(place, "") for place in map(os.path.realpath, _PLACES) if place != "/"),
    *("/proc/meminfo", "/proc/cpuinfo", "/proc/self/", "/sys/devices/system/cpu/"),
)


_OWN_END = ("os.killpg", (0, 9))


class _ParentWatch:
    """Ends the process when the parent is gone while a document is being read."""

    def __init__(self, pipe: int) -> None:
        self._pipe = pipe
        self._wake, self._done = os.pipe()

    def __enter__(self) -> None:
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        os.close(self._done)
        self._thread.join()
        os.close(self._wake)

    def _watch(self) -> None:
        poll = select.poll()
        poll.register(self._pipe, select.POLLHUP)
        poll.register(self._wake, select.POLLIN | select.POLLHUP)
        if any(pipe == self._pipe for pipe, _ in poll.poll()):
            os.killpg(0, 9)


def _head(requests: BinaryIO) -> tuple[Mapping[str, Any], bytes] | None:
    sizes = requests.read(12)
    if len(sizes) < 12:
        return None
    head, data = struct.unpack(">IQ", sizes)
    return json.loads(requests.read(head)), requests.read(data)


def _answer(request: Mapping[str, Any], data: bytes, answers: BinaryIO) -> dict[str, Any]:
    limits = Limits(**request["limits"])

    def tell() -> None:
        """An empty frame says that the document is long, and not stuck."""
        _grant_time(limits.seconds)
        answers.write(bytes(8))
        answers.flush()

    _grant_time(limits.seconds)
    page_done.set(tell)
    try:
        document = load(
            request["name"], data, request["media_type"], limits, password=request["password"]
        )
        return _told(document)
    except VeilragError as error:
        return {"error": type(error).__name__, "message": error.message}
    except MemoryError:
        return _refused(TooLarge("The document takes too much memory to read."))
    except RecursionError:
        return _refused(TooLarge("The document nests too deeply."))
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException:  # the outermost handler: whatever a library does is the file's fault
        return _refused(Malformed())


def _refused(error: VeilragError) -> dict[str, Any]:
    return {"error": type(error).__name__, "message": error.message}


def _grant_time(seconds: float) -> None:
    used = resource.getrusage(resource.RUSAGE_SELF)
    allowed = int(used.ru_utime + used.ru_stime + seconds) + 2
    resource.setrlimit(resource.RLIMIT_CPU, (allowed, resource.RLIM_INFINITY))


def _peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def _told(document: Document) -> dict[str, Any]:
    return {
        "source": document.source,
        "content": document.content,
        "metadata": dict(document.metadata),
        "sections": [[s.start, s.headings, s.page] for s in document.sections],
        "language": document.language,
    }


def _send(answers: BinaryIO, answer: Mapping[str, Any]) -> None:
    written = json.dumps(answer, ensure_ascii=False).encode("utf-8", "replace")
    answers.write(struct.pack(">Q", len(written)))
    answers.write(written)
    answers.flush()


if __name__ == "__main__":
    main()
