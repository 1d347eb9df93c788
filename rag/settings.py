"""Settings: environment variables with the prefix ``VEILRAG_``, and ``.env`` where present.

``DATABASE_URL``, ``OPENAI_API_KEY`` and ``OPENAI_BASE_URL`` keep their usual names.
Whatever the environment does not say may stand in a folder of files, one a setting, named
like its variable in small letters (``VEILRAG_SECRETS_DIR``, for container secrets).
Nothing is read at import; ``load_settings()`` reads (I11). Secrets mask themselves.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from pydantic import AliasChoices, Field, SecretStr, ValidationError, field_validator
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict, SettingsError

from rag.errors import Misconfigured

Names = Annotated[tuple[str, ...], NoDecode]
"""A comma-separated list in the environment."""


class Settings(BaseSettings):
    """Every setting with its default. Sizes in characters or bytes, times in seconds.

    Of two places that name a setting the environment wins, then ``.env``, then the files.
    """

    model_config = SettingsConfigDict(
        env_prefix="VEILRAG_",
        env_file=".env",
        extra="ignore",
        frozen=True,
        hide_input_in_errors=True,
    )

    # the store
    database_url: SecretStr | None = Field(
        None, validation_alias=AliasChoices("VEILRAG_DATABASE_URL", "DATABASE_URL")
    )
    database_password: SecretStr | None = None
    data_dir: Path = Path(".veilrag")
    pool_size: int = Field(8, ge=1, le=100)
    secret_key: SecretStr | None = None
    database_timeout: float = Field(4.0, gt=0)

    # the models
    openai_api_key: SecretStr | None = Field(
        None, validation_alias=AliasChoices("VEILRAG_OPENAI_API_KEY", "OPENAI_API_KEY")
    )
    openai_base_url: str | None = Field(
        None, validation_alias=AliasChoices("VEILRAG_OPENAI_BASE_URL", "OPENAI_BASE_URL")
    )
    chat_model: str = "gpt-5-mini"
    embeddings: str = "local"
    embedding_batch_texts: int = Field(64, ge=1, le=2_048)
    embedding_batch_chars: int = Field(100_000, ge=1)
    judge_model: str | None = None
    trusted_hosts: Names = ()
    model_timeout: float = Field(60.0, gt=0)
    model_retries: int = Field(2, ge=0, le=10)
    max_output_tokens: int | None = Field(None, ge=1)

    # privacy
    policy: str = "default"
    allow_tracing: bool = False
    detect_timeout: float = Field(10.0, gt=0)
    max_detect_chars: int = Field(2_000_000, ge=1)

    # limits and splitting
    max_question_chars: int = Field(8_000, ge=1)
    max_body_bytes: int = Field(50_000_000, ge=1)
    max_file_bytes: int = Field(2_000_000_000, ge=1)  # of a plain text, read in parts
    max_document_chars: int = Field(20_000_000, ge=1)  # of any other format
    chunk_tokens: int = Field(256, ge=16)  # of the local model
    chunk_chars: int = Field(2_000, ge=100)  # a bound beside the tokens
    chunk_overlap_chars: int = Field(0, ge=0)
    ingest_workers: int = Field(0, ge=0, le=256)  # 0: by the number of processors
    context_chars: int = Field(8_000, ge=200)

    # the service
    api_keys: Names = Field((), repr=False)
    allowed_hosts: Names = ()
    log_level: str = "INFO"
    secrets_dir: Path | None = None

    @field_validator("trusted_hosts", "api_keys", "allowed_hosts", mode="before")
    @classmethod
    def _split(cls, value: object) -> object:
        """Parts between commas or, in a file, on lines of their own."""
        if isinstance(value, str):
            parts = value.replace("\n", ",").split(",")
            return tuple(part.strip() for part in parts if part.strip())
        return value

    @field_validator(
        *("database_url", "database_password", "secret_key", "openai_api_key"),
        *("openai_base_url", "judge_model", "max_output_tokens", "secrets_dir"),
        mode="before",
    )
    @classmethod
    def _none_when_empty(cls, value: object) -> object:
        """An empty variable or file is one that is not set."""
        return None if isinstance(value, str) and not value.strip() else value

    @property
    def has_model(self) -> bool:
        """A chat model is configured when there is a key or a base URL."""
        return self.openai_api_key is not None or self.openai_base_url is not None


def load_settings(**overrides: object) -> Settings:
    """Read the settings; raise ``Misconfigured`` that names the setting, never its value."""
    try:
        settings = Settings(**overrides)  # type: ignore[arg-type]
        folder = settings.secrets_dir
        if folder is None:
            return settings
        if not folder.is_dir():
            raise Misconfigured("VEILRAG_SECRETS_DIR names no folder.")
        return Settings(_secrets_dir=folder, **overrides)  # type: ignore[arg-type]
    except ValidationError as error:
        names = ", ".join(".".join(map(str, e["loc"])) + f" ({e['type']})" for e in error.errors())
        raise Misconfigured(f"Wrong setting: {names}.") from None
    except (OSError, UnicodeDecodeError, SettingsError) as error:
        kind = type(error).__name__
        raise Misconfigured(f"A file of settings cannot be read ({kind}).") from None
