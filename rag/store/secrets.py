"""The secret that keys the hashes of forms and seals what threads hold.

Hashes of forms are worth nothing under another key (and then I1 would silently lose the
forms that documents gave away), so the database remembers a fingerprint of the key and
the store refuses to open under another one.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import os
import secrets
import stat
from contextlib import suppress
from pathlib import Path

from rag.errors import Misconfigured
from rag.settings import Settings

ALIASES = "aliases"
SEALING = "sealing"
FINGERPRINT = "fingerprint"

_LEAST_BYTES = 32


def load_secret(settings: Settings) -> bytes:
    """At least 32 bytes: ``VEILRAG_SECRET_KEY``, or the file beside the embedded database.

    The file is made at first use. With ``DATABASE_URL`` the setting is required, for the
    key must not lie on one machine of several. Raises ``Misconfigured``.
    """
    if settings.secret_key is not None:
        return _decoded(settings.secret_key.get_secret_value())
    if settings.database_url is not None:
        raise Misconfigured("VEILRAG_SECRET_KEY is required with DATABASE_URL.")
    return _from_file(settings.data_dir.expanduser().absolute() / "secret_key")


def derive(secret: bytes, purpose: str) -> bytes:
    """A 32-byte key for one purpose; none of them tells of the secret or of another."""
    key = hashlib.blake2b(secret, digest_size=64).digest()
    return hashlib.blake2b(purpose.encode(), key=key, digest_size=32).digest()


def _decoded(text: str) -> bytes:
    """Base64 of 32 bytes or more, else the text itself where it is that long."""
    text = text.strip()
    with suppress(binascii.Error, ValueError):
        raw = base64.b64decode(text, validate=True)
        if len(raw) >= _LEAST_BYTES:
            return raw
    raw = text.encode()
    if len(raw) < _LEAST_BYTES:
        raise Misconfigured(
            "VEILRAG_SECRET_KEY is too short: give 32 random bytes as Base64, for example from "
            "`openssl rand -base64 32`."
        )
    return raw


def _from_file(path: Path) -> bytes:
    try:
        if not path.exists():
            _make(path)
        if stat.S_IMODE(path.stat().st_mode) & 0o077:
            raise Misconfigured(f"Others may read {path.name}: set its mode to 0600.")
        return _decoded(path.read_text(encoding="ascii"))
    except (OSError, UnicodeDecodeError) as error:
        kind = type(error).__name__
        raise Misconfigured(f"The file {path.name} of the data directory: {kind}.") from None


def _make(path: Path) -> None:
    """Write it whole beside, then link: of several processes at once one wins, none sees half."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    draft = path.with_name(f"{path.name}.{os.getpid()}.{secrets.token_hex(4)}")
    handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        os.write(handle, base64.b64encode(secrets.token_bytes(_LEAST_BYTES)) + b"\n")
        os.fsync(handle)
    finally:
        os.close(handle)
    with suppress(FileExistsError):
        os.link(draft, path)
    draft.unlink()
