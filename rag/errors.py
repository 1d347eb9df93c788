"""Every error that veilrag raises on purpose, drawn as a tree.

    VeilragError                     500 internal
     ├─ InvalidInput                 422 invalid
     │   ├─ UnknownName              422 unknown        (graph, retriever, policy, metric ...)
     │   └─ DocumentRefused          422 document_refused
     │       ├─ UnsupportedFormat    422 unsupported_format
     │       ├─ Malformed            422 malformed
     │       ├─ Encrypted            422 encrypted
     │       ├─ NoTextLayer          422 no_text_layer
     │       └─ EmptyDocument        422 empty
     ├─ NotAllowed                   403 forbidden
     ├─ NotFound                     404 not_found
     ├─ Conflict                     409 conflict
     │   └─ SpaceMismatch            409 space_mismatch
     ├─ TooLarge                     413 too_large
     ├─ ModelFailed                  502 model_failed
     │   ├─ ModelTimeout             502 model_timeout
     │   └─ BoundaryRefused          502 boundary_refused
     ├─ Unavailable                  503 unavailable
     │   ├─ DatabaseUnavailable      503 database_unavailable
     │   ├─ DetectorFailed           503 detector_failed
     │   └─ Misconfigured            503 misconfigured
     └─ DatabaseFailed               500 database_failed

An error knows its status and its code. No message ever holds user text: foreign
errors are mapped by their codes and raised ``from None``, for their texts carry
values (I6).
"""

from __future__ import annotations


class VeilragError(Exception):
    """Base of all; ``status`` is the HTTP status, ``code`` the stable name of the kind."""

    status = 500
    code = "internal"

    def __init__(self, message: str = "") -> None:
        super().__init__(message or (self.__doc__ or self.code).strip().splitlines()[0])

    @property
    def message(self) -> str:
        return str(self.args[0])


class InvalidInput(VeilragError):
    """The input is not valid."""

    status, code = 422, "invalid"


class UnknownName(InvalidInput):
    """That name is not known."""

    code = "unknown"


class DocumentRefused(InvalidInput):
    """The document cannot be read."""

    code = "document_refused"


class UnsupportedFormat(DocumentRefused):
    """The format of this document is not supported."""

    code = "unsupported_format"


class Malformed(DocumentRefused):
    """The document is malformed."""

    code = "malformed"


class Encrypted(DocumentRefused):
    """The document is encrypted."""

    code = "encrypted"


class NoTextLayer(DocumentRefused):
    """The document has no text layer."""

    code = "no_text_layer"


class EmptyDocument(DocumentRefused):
    """The document holds no text."""

    code = "empty"


class NotAllowed(VeilragError):
    """That is not allowed."""

    status, code = 403, "forbidden"


class NotFound(VeilragError):
    """There is no such thing."""

    status, code = 404, "not_found"


class Conflict(VeilragError):
    """That conflicts with what is stored."""

    status, code = 409, "conflict"


class SpaceMismatch(Conflict):
    """The collection was embedded with another model."""

    code = "space_mismatch"


class TooLarge(VeilragError):
    """The input is too large."""

    status, code = 413, "too_large"


class ModelFailed(VeilragError):
    """The model endpoint failed."""

    status, code = 502, "model_failed"


class ModelTimeout(ModelFailed):
    """The model endpoint did not answer in time."""

    code = "model_timeout"


class BoundaryRefused(ModelFailed):
    """The privacy boundary refused to let the request leave."""

    code = "boundary_refused"


class Unavailable(VeilragError):
    """A part that is needed is not available."""

    status, code = 503, "unavailable"


class DatabaseUnavailable(Unavailable):
    """The database cannot be reached."""

    code = "database_unavailable"


class DetectorFailed(Unavailable):
    """The detector of personal data failed."""

    code = "detector_failed"


class Misconfigured(Unavailable):
    """A setting is wrong."""

    code = "misconfigured"


class DatabaseFailed(VeilragError):
    """The database refused a statement."""

    code = "database_failed"
