"""The disk: room for documents, and folders and key that nobody else may open (I6)."""

from __future__ import annotations

import asyncio
import os
import shutil
import stat
import tempfile
from pathlib import Path

from rag.doctor.findings import Finding
from rag.settings import Settings

PART = "disk"
LEAST_BYTES = 200_000_000
ENOUGH_BYTES = 2_000_000_000


async def examine_disk(settings: Settings) -> list[Finding]:
    return await asyncio.to_thread(_examine, settings)


def _examine(settings: Settings) -> list[Finding]:
    folder = settings.data_dir.expanduser().absolute()
    findings = [_room("free space", _nearest(folder)), _folder(folder)]
    if settings.database_url is None:
        findings += _key(folder / "secret_key")
    return [*findings, _temporary()]


def _nearest(folder: Path) -> Path:
    """The folder, or the first above it that is there."""
    return next(path for path in (folder, *folder.parents) if path.exists())


def _room(what: str, folder: Path) -> Finding:
    free = shutil.disk_usage(folder).free
    found = f"{free / 1e9:.1f} GB free at {folder}"
    advice = "Make room, or set VEILRAG_DATA_DIR to a folder on another disk."
    if free < LEAST_BYTES:
        return Finding.fail(PART, what, found, advice)
    if free < ENOUGH_BYTES:
        return Finding.warn(PART, what, found, advice)
    return Finding.ok(PART, what, found)


def _folder(folder: Path) -> Finding:
    what = "data folder"
    if not folder.exists():
        if os.access(_nearest(folder), os.W_OK | os.X_OK):
            return Finding.ok(PART, what, "not there yet: made at first use")
        advice = "Set VEILRAG_DATA_DIR to a folder that may be written."
        return Finding.fail(PART, what, "cannot be made", advice)
    if not folder.is_dir() or not os.access(folder, os.W_OK | os.X_OK):
        advice = f"Let the service's user own {folder}, or set VEILRAG_DATA_DIR."
        return Finding.fail(PART, what, "cannot be written", advice)
    mode = stat.S_IMODE(folder.stat().st_mode)
    if mode & 0o077:
        advice = f"chmod 700 {folder}"
        return Finding.warn(PART, what, f"others may look into it (mode {mode:04o})", advice)
    return Finding.ok(PART, what, f"{folder}, mode {mode:04o}")


def _key(path: Path) -> list[Finding]:
    """The secret beside the embedded database; the setting has it where there is another."""
    what = "secret key"
    if not path.exists():
        return []
    mode = stat.S_IMODE(path.stat().st_mode)
    if mode & 0o077:
        return [
            Finding.fail(PART, what, f"others may read it (mode {mode:04o})", f"chmod 600 {path}")
        ]
    return [Finding.ok(PART, what, f"mode {mode:04o}")]


def _temporary() -> Finding:
    what = "temporary folder"
    try:
        folder = Path(tempfile.gettempdir())
        with tempfile.TemporaryFile(dir=folder) as file:
            file.write(b"\0")
    except OSError as error:
        advice = "Set TMPDIR to a folder that may be written and has room."
        return Finding.fail(PART, what, f"cannot be written (errno {error.errno})", advice)
    return _room(what, folder)
