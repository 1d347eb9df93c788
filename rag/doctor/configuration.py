"""The settings: tracing, policy, keys, and who may read the files they come from."""

from __future__ import annotations

import stat
from pathlib import Path

from rag import __version__
from rag.doctor.findings import Finding
from rag.errors import Misconfigured, VeilragError
from rag.settings import Settings

PART = "settings"
LEAST_KEY_CHARS = 20
ENV_FILE = Path(".env")


async def examine_configuration(settings: Settings) -> list[Finding]:
    return [_tracing(settings), _policy(settings), _keys(settings), *_files(settings)]


def _tracing(settings: Settings) -> Finding:
    from rag.engine import refuse_tracing

    if settings.allow_tracing:
        return Finding.warn(
            PART,
            "tracing",
            "allowed: a trace collector would get what the graphs see",
            "Unset VEILRAG_ALLOW_TRACING unless the collector is inside your boundary.",
        )
    try:
        refuse_tracing(settings)
    except Misconfigured as error:
        return Finding.fail(PART, "tracing", "switched on", error.message)
    return Finding.ok(PART, "tracing", "off")


def _policy(settings: Settings) -> Finding:
    from rag.privacy.policy import load_policy

    try:
        policy = load_policy(settings.policy)
    except VeilragError as error:
        return Finding.fail(PART, "policy", "unknown", f"Set VEILRAG_POLICY: {error.message}")
    return Finding.ok(PART, "policy", f"{policy.name} (veilrag {__version__})")


def _keys(settings: Settings) -> Finding:
    keys = settings.api_keys
    if not keys:
        return Finding.ok(PART, "API keys", "none: the service binds to loopback only")
    if min(map(len, keys)) < LEAST_KEY_CHARS:
        return Finding.warn(
            PART,
            "API keys",
            f"{len(keys)}, at least one of fewer than {LEAST_KEY_CHARS} characters",
            "Make keys with `openssl rand -base64 32`.",
        )
    return Finding.ok(PART, "API keys", f"{len(keys)}: the service may bind to any address")


def _files(settings: Settings) -> list[Finding]:
    findings = []
    if ENV_FILE.is_file():
        findings.append(_private(ENV_FILE, ".env", "600"))
    if settings.secrets_dir is not None:
        number = sum(1 for path in settings.secrets_dir.iterdir() if path.is_file())
        findings.append(Finding.ok(PART, "secrets", f"{number} files in VEILRAG_SECRETS_DIR"))
    return findings


def _private(path: Path, what: str, mode: str) -> Finding:
    others = stat.S_IMODE(path.stat().st_mode) & 0o077
    if others:
        found = "other users of this machine may read it"
        return Finding.warn(PART, what, found, f"chmod {mode} {what}")
    return Finding.ok(PART, what, "readable by its owner alone")
