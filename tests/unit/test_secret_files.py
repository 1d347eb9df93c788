"""Settings from files: what a container's secrets give, and what wins over them."""

from __future__ import annotations

from pathlib import Path

import pytest

from rag.errors import Misconfigured
from rag.settings import Settings, load_settings

KEY = "k" * 44


@pytest.fixture
def secrets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder that ``VEILRAG_SECRETS_DIR`` names."""
    for name in ("VEILRAG_API_KEYS", "OPENAI_API_KEY", "VEILRAG_SECRET_KEY", "DATABASE_URL"):
        monkeypatch.delenv(name, raising=False)
    folder = tmp_path / "secrets"
    folder.mkdir()
    monkeypatch.setenv("VEILRAG_SECRETS_DIR", str(folder))
    return folder


def loaded() -> Settings:
    return load_settings(_env_file=None)


def test_a_secret_is_read_from_its_file(secrets: Path) -> None:
    """A file named like its variable gives the setting, without the newline at its end."""
    (secrets / "veilrag_secret_key").write_text(f"{KEY}\n")
    (secrets / "database_url").write_text("postgresql://ann@db/papers\n")
    settings = loaded()
    assert settings.secret_key is not None
    assert settings.secret_key.get_secret_value() == KEY
    assert settings.database_url is not None
    assert settings.database_url.get_secret_value() == "postgresql://ann@db/papers"


def test_keys_stand_on_lines(secrets: Path) -> None:
    """A file of API keys holds one a line."""
    (secrets / "veilrag_api_keys").write_text("first-key\nsecond-key\n\n")
    assert loaded().api_keys == ("first-key", "second-key")


def test_the_environment_wins(secrets: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the environment says is not changed by a file."""
    (secrets / "veilrag_policy").write_text("default")
    monkeypatch.setenv("VEILRAG_POLICY", "strict")
    assert loaded().policy == "strict"


def test_an_empty_file_is_no_setting(secrets: Path) -> None:
    """An empty key file configures no model."""
    (secrets / "openai_api_key").write_text("\n")
    assert not loaded().has_model


def test_a_folder_that_is_not_there_is_said(secrets: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A wrong folder is an error that names the setting; secrets are never silently absent."""
    monkeypatch.setenv("VEILRAG_SECRETS_DIR", str(secrets / "elsewhere"))
    with pytest.raises(Misconfigured, match="VEILRAG_SECRETS_DIR"):
        loaded()


def test_a_wrong_value_is_named_and_not_shown(secrets: Path) -> None:
    """An error names the setting, never what the file holds."""
    (secrets / "veilrag_pool_size").write_text("hunter2")
    with pytest.raises(Misconfigured, match="pool_size") as caught:
        loaded()
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize("url", ["postgresql://ann@db/papers", "host=db user=ann dbname=papers"])
def test_a_password_apart_joins_the_address(url: str) -> None:
    """The password's file completes ``DATABASE_URL``, whatever characters it holds."""
    from psycopg.conninfo import conninfo_to_dict

    from rag.store.store import database_url

    password = "a b'c\\d@/%:"
    settings = load_settings(_env_file=None, DATABASE_URL=url, database_password=password)
    parts = conninfo_to_dict(database_url(settings))
    assert parts == {"host": "db", "user": "ann", "dbname": "papers", "password": password}
