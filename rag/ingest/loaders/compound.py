"""Compound files (OLE2): what is in them, and what a password opens.

XLS and MSG are compound files, and so is every Office file that was encrypted.
"""

from __future__ import annotations

import io
from types import SimpleNamespace
from typing import Any

from rag.errors import Encrypted, Malformed, TooLarge
from rag.ingest.limits import Limits

_BROKEN = (OSError, ValueError, IndexError, KeyError, TypeError, AttributeError, OverflowError)


class CompoundFile:
    """Streams by their paths, ``folder/name``."""

    def __init__(self, data: bytes, limits: Limits) -> None:
        import olefile

        try:
            self._file: Any = olefile.OleFileIO(data, raise_defects=olefile.DEFECT_FATAL)
            found = self._file.listdir(streams=True, storages=False)
        except _BROKEN:
            raise Malformed("The document's container is damaged.") from None
        except RecursionError:
            raise TooLarge("The document nests too deeply.") from None
        self.streams = {"/".join(path) for path in found}
        if len(self.streams) > limits.entries:
            raise TooLarge(f"The document has more than {limits.entries} parts.")
        self._left = limits.expanded

    def __contains__(self, path: str) -> bool:
        return path in self.streams

    def read(self, path: str) -> bytes:
        """A stream's bytes, none when it is not there. Raises ``Malformed``, ``TooLarge``."""
        if path not in self.streams:
            return b""
        try:
            data: bytes = self._file.openstream(path.split("/")).read()
        except _BROKEN:
            raise Malformed("A part of the document is damaged.") from None
        self._left -= len(data)
        if self._left < 0:
            raise TooLarge("The document's parts are too large.")
        return data


def decrypted(data: bytes, password: str | None) -> bytes:
    """An encrypted Office file, opened. Raises ``Encrypted`` without the right password."""
    if not password:
        raise Encrypted("The document is encrypted and needs a password.")
    import msoffcrypto
    from msoffcrypto.exceptions import DecryptionError, FileFormatError, InvalidKeyError

    _keep_in_memory()
    written = io.BytesIO()
    try:
        file = msoffcrypto.OfficeFile(io.BytesIO(data))
        file.load_key(password=password, verify_password=_verifies(file))
        file.decrypt(written)
    except (InvalidKeyError, DecryptionError):
        raise Encrypted("The password does not open the document.") from None
    except FileFormatError:
        raise Malformed("The encrypted document is damaged.") from None
    except (*_BROKEN, AssertionError):
        raise Encrypted("The document is encrypted in a way that cannot be opened.") from None
    except Exception as error:
        if type(error).__module__.startswith(("msoffcrypto", "cryptography", "struct", "xml")):
            raise Malformed("The encrypted document is damaged.") from None
        raise
    return written.getvalue()


def _verifies(file: Any) -> bool:
    """The newer schemes tell a wrong password before anything is opened."""
    return type(file).__name__ == "OOXMLFile" and getattr(file, "type", "") != "extensible"


def _keep_in_memory() -> None:
    """The library opens XLS by way of a temporary file; nothing of a document goes to disk."""
    from msoffcrypto.format import xls97

    xls97.tempfile = SimpleNamespace(TemporaryFile=io.BytesIO)
