"""Credentials: private keys, tokens with a known prefix, passwords and keys in context."""

from __future__ import annotations

import regex

from rag.privacy.lexicon import is_common_word, words
from rag.privacy.recognizers.rules import Rule, RuleSet
from rag.types import EntityType

_SECRET = EntityType.CREDENTIAL
_EXACT = int(regex.MULTILINE)

_PREFIXED = (
    r"(?:AKIA|ASIA|ABIA|ACCA|AIDA|AROA)[A-Z0-9]{12,20}",  # Amazon
    r"sk-(?:proj-|ant-|or-|svcacct-|live-)?[A-Za-z0-9_-]{16,}",  # OpenAI, Anthropic
    r"(?:sk|pk|rk|whsec)_(?:live_|test_)?[A-Za-z0-9]{14,}",  # Stripe
    r"gh[pousr]_[A-Za-z0-9]{20,}|github_pat_\w{20,}|glpat-[\w-]{16,}",  # GitHub, GitLab
    r"xox[abeoprs]-[A-Za-z0-9-]{10,}|xapp-[A-Za-z0-9-]{10,}",  # Slack
    r"AIza[\w-]{30,}|ya29\.[\w-]{20,}|GOCSPX-[\w-]{20,}",  # Google
    r"npm_[A-Za-z0-9]{30,}|pypi-[\w-]{30,}|hf_[A-Za-z0-9]{20,}|dop_v1_[a-f0-9]{40,}",
    r"SG\.[\w-]{16,}\.[\w-]{16,}|key-[a-f0-9]{32}|SK[a-f0-9]{32}",  # SendGrid, Mailgun, Twilio
    r"eyJ[\w-]{6,}\.(?:eyJ)?[\w-]{6,}\.?[\w-]*",  # JSON web tokens
    r"\d{8,10}:AA[\w-]{33}",  # Telegram bots
)
_BLANK = words(
    """none required unknown null true false n/a yes no reset changed expired missing see below
    above here set not is was must should protected protection manager policy empty optional
    string redacted hidden the a an your my"""
)
_JOIN = r"[\"'*_`]{0,3}\s?(?:[:=]{1,2}>?|\bis\b|\bwas\b)\s{0,3}"
_LABEL_PASSWORD = r"(?:pass\s?word|passwd|pwd|passphrase|pass\s?code|passwort|kennwort|wachtwoord)"  # noqa: S105
_LABEL_KEY = (
    r"(?:api[\s_-]?(?:key|token|secret)|access[\s_-]?(?:key|token)(?:[\s_-]?id)?|secret[\s_-]?"
    r"(?:access[\s_-]?)?(?:key|token)?|client[\s_-]?secret|auth(?:entication)?[\s_-]?token|token|"
    r"private[\s_-]?key|recovery[\s_-]?(?:key|code)|licen[cs]e[\s_-]?key|session[\s_-]?(?:id|key)|"
    r"connection[\s_-]?string|encryption[\s_-]?key|webhook[\s_-]?secret)"
)


def secret_rules() -> RuleSet:
    return RuleSet(
        "secret",
        [
            Rule(
                "private-key",
                _SECRET,
                r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----"
                r"[\s\S]{0,20000}?(?:-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----|\Z)",
                1.0,
                flags=_EXACT,
            ),
            Rule(
                "prefixed",
                _SECRET,
                rf"(?<![A-Za-z0-9])(?:{'|'.join(_PREFIXED)})(?![A-Za-z0-9])",
                0.97,
                flags=_EXACT,
            ),
            Rule("bearer", _SECRET, r"\b(?:bearer|basic)\s(?P<v>[\w.~+/-]{16,}=*)", 0.9, _digit),
            Rule(
                "quoted-password",
                _SECRET,
                rf"(?<![A-Za-z]){_LABEL_PASSWORD}{_JOIN}(?P<q>[\"'`])(?P<v>[^\"'`\n]{{3,128}})(?P=q)",
                0.95,
            ),
            Rule(
                "password",
                _SECRET,
                rf"(?<![A-Za-z]){_LABEL_PASSWORD}{_JOIN}[\"'`*]{{0,2}}(?P<v>[^\s\"'`<>]{{3,128}})",
                0.95,
                _judge_password,
            ),
            Rule(
                "token",
                _SECRET,
                rf"(?<![A-Za-z]){_LABEL_KEY}{_JOIN}[\"'`*]{{0,2}}(?P<v>[^\s\"'`<>,;]{{6,512}})",
                0.92,
                _judge_token,
            ),
            Rule(
                "pin",
                _SECRET,
                r"\b(?:pin|otp|one[\s-]time\s(?:code|password)|verification\scode|security\scode|"
                r"door\scode|alarm\scode|access\scode|entry\scode)(?:\s?(?:code|no|number))?"
                r"[\"']?\s?(?:[:=]|\bis\b)?\s?[\"']?(?P<v>\d{4,8})(?![\d-])",
                0.9,
            ),
            Rule(
                "url-password",
                _SECRET,
                r"\b[a-z][a-z0-9+.-]{1,12}://[^\s/:@\"'<>]{0,64}:(?P<v>[^\s/@\"'<>]{1,128})(?=@)",
                0.97,
            ),
            Rule(
                "url-token",
                _SECRET,
                r"[?&](?:access_?token|token|api_?key|key|sig|signature|secret|password|pwd|auth|code)"
                r"=(?P<v>[^&\s\"'<>#]{8,512})",
                0.9,
                _digit,
            ),
        ],
    )


def _digit(value: str) -> float | None:
    """A token is not a word: it has a digit, or both cases in its midst."""
    mixed = any(c.isupper() for c in value[1:]) and any(c.islower() for c in value)
    return 0.9 if mixed or any(c.isdigit() for c in value) else None


def _judge_password(value: str) -> float | None:
    word = value.strip(".,;:!?)*\"'").casefold()
    if word in _BLANK or not word:
        return None
    return 0.6 if is_common_word(word) and value.islower() else 0.95


def _judge_token(value: str) -> float | None:
    word = value.strip(".,;:!?)*\"'")
    if word.casefold() in _BLANK or is_common_word(word):
        return None
    return 0.92 if _digit(value) else None
