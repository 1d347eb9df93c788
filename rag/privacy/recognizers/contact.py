"""E-mail addresses, phone numbers and user names.

An e-mail address need not be one of the public internet: ``jo@localhost``,
``jo@host.local`` and ``jo@[192.0.2.7]`` reach somebody too. Public suffixes come from
the list inside tldextract, never from the network.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from typing import Any

import regex

from rag.errors import Misconfigured
from rag.privacy.lexicon import is_common_word, words
from rag.privacy.recognizers.rules import SECONDS, Rule, RuleSet, has_word
from rag.types import EntityType, Span

REGIONS = (
    "GB",
    "US",
    "CA",
    "IE",
    "AU",
    "NZ",
    "ZA",
    "IN",
    "SG",
    "DE",
    "AT",
    "CH",
    "NL",
    "BE",
    "LU",
    "FR",
    "ES",
    "PT",
    "IT",
    "NO",
    "SE",
    "DK",
    "FI",
    "IS",
    "PL",
    "CZ",
    "GR",
    "TR",
    "BR",
    "MX",
)
"""Regions whose national notation is known without a country code."""

_EMAIL = r"""(?<![\w.+])
(?P<v>(?:"[^"\s@]{1,64}"|\w[\w!#$%'*+^~-]*+(?:\.[\w!#$%'*+^~-]++)*+)
@(?:\[(?:IPv6:)?[0-9A-Fa-f.:]{2,45}\]|\w(?:[\w-]*\w)?(?:\.\w(?:[\w-]*\w)?)*+))"""
_INTERNAL = words(
    """localhost localdomain local internal intern intranet lan home corp private test example
    invalid arpa onion"""
)
_NOT_HOSTS = words("latest next beta alpha canary main master head stable dev rc")


@cache
def _suffixes() -> Any:
    import tldextract

    return tldextract.TLDExtract(suffix_list_urls=(), cache_dir=None)


def judge_email(address: str) -> float | None:
    """Its score by its domain; ``None`` for package versions such as ``name@1.2.3``."""
    host = address.rpartition("@")[2].casefold()
    if host.startswith("["):
        return 0.95
    last = host.rpartition(".")[2]
    if not any(c.isalpha() for c in last) or last in _NOT_HOSTS:
        return None
    if last in _INTERNAL:
        return 0.95
    if "." not in host:
        return 0.6
    return 0.99 if _suffixes()(host, include_psl_private_domains=False).suffix else None


class EmailRecognizer:
    """E-mail addresses, apart from a name that a dash joins to them (``Ada Quill-ada@…``)."""

    name = "email"

    def __init__(self) -> None:
        verbose = int(regex.VERBOSE | regex.IGNORECASE)
        rule = Rule("email", EntityType.EMAIL, _EMAIL, 0.99, check=judge_email, flags=verbose)
        self._rules = RuleSet(self.name, [rule])

    def find(self, text: str) -> list[Span]:
        found = self._rules.find(text)
        alone = {text[s.start : s.end].casefold() for s in found}
        return [replace(s, start=_own_start(text, s, alone)) for s in found]


def _own_start(text: str, span: Span, alone: set[str]) -> int:
    """Where the address itself begins: after a name and a dash, when that is what stands there."""
    at = span.start
    while (dash := text.find("-", at, text.index("@", span.start))) >= 0:
        rest, head = text[dash + 1 : span.end], text[span.start : dash]
        named = head.isalpha() and head[:1].isupper() and _NAME_BEFORE.search(text, 0, span.start)
        if rest.casefold() in alone or (named and rest[:1].islower()):
            return dash + 1
        at = dash + 1
    return span.start


_NAME_BEFORE = regex.compile(r"\p{Lu}[\p{L}'’.-]*[ ]\Z")


_PHONE_WORDS = words(
    """phone telephone tel cell cellphone mobile mob call called calling ring rang dial sms fax
    whatsapp telegram hotline landline handy telefon telefoon mobil téléphone teléfono
    contact reach ext extension"""
)
_NOT_PHONES = words(
    """isbn issn ean gtin upc sku article item part invoice order ref reference version serial
    clause section doi orcid arxiv rfc ticket case account iban card ssn nhs vat tax port
    passport patient policy id pin nino"""
)
_NUMBER = regex.compile(
    r"(?<![\w.,/+@#$€£%-])(?:\+[ ]?)?(?:\(\+?\d{1,5}\)|\d)"
    r"(?:[ ]?(?:[-./–]|\(0\))?[ ]?(?:\(\d{1,4}\)|\d)){4,17}(?![\w%@]|[.,]\d)"
)
_EXTENSION = regex.compile(
    r"(?:[ ,;]*)(?:ext\.?|extension|x)[ ]?(?P<v>\d{1,6})\b", regex.IGNORECASE
)
_BARE_EXTENSION = regex.compile(
    r"\b(?:ext\.?|extension)[ :]{0,2}(?P<v>\d{2,6})\b", regex.IGNORECASE
)
_DATE_LIKE = regex.compile(
    r"(?:\d{1,2}[-./ ]\d{1,2}[-./ ](?:\d{4}|\d{2})|(?:1[89]|20)\d{2}[-./ ]\d{1,2}[-./ ]\d{1,2}"
    r"|(?:1[89]|20)\d{2}\s?[-–/]\s?(?:(?:1[89]|20)?\d{2}))(?:\D.*)?"
)
_DOTTED_QUAD = regex.compile(r"\d{1,3}(?:\.\d{1,3}){3}")


class PhoneRecognizer:
    """Phone numbers, judged by libphonenumber's metadata; Presidio's asks eight regions only.

    International notation counts anywhere. National notation counts when it is valid in one
    of the regions and written as a phone number (a leading zero or brackets, or groups), or
    when a word such as "call" or "fax" is near.
    """

    name = "phone"

    def __init__(self, regions: Sequence[str] = REGIONS) -> None:
        import phonenumbers

        unknown = set(regions) - set(phonenumbers.SUPPORTED_REGIONS)
        if unknown or not regions:
            raise Misconfigured("A phone region is not known: use two-letter country codes.")
        self._regions = tuple(regions)
        self._numbers = phonenumbers

    def find(self, text: str) -> list[Span]:
        spans = []
        for match in _NUMBER.finditer(text, timeout=SECONDS):
            start, end = match.span()
            start += len(match[0]) - len(match[0].lstrip())
            score = self._judge(text, start, end)
            if score is None:
                continue
            if extension := _EXTENSION.match(text, end, timeout=SECONDS):
                end = extension.end("v")
            spans.append(Span(start, end, EntityType.PHONE, score))
        for match in _BARE_EXTENSION.finditer(text, timeout=SECONDS):
            start, end = match.span("v")
            spans.append(Span(start, end, EntityType.PHONE, 0.6))
        return spans

    def _judge(self, text: str, start: int, end: int) -> float | None:
        written = text[start:end]
        digits = "".join(c for c in written if c.isdigit())
        if not 6 <= len(digits) <= 15 or len(set(digits)) == 1:
            return None
        if written.startswith(("+", "00")) and (score := self._international(written, digits)):
            return score
        if _DATE_LIKE.fullmatch(written) or _DOTTED_QUAD.fullmatch(written):
            return None
        if has_word(text, start, end, _NOT_PHONES, before=20, after=0):
            return None
        named = has_word(text, start, end, _PHONE_WORDS, before=48, after=12)
        return self._national(written, digits, named=named)

    def _international(self, written: str, digits: str) -> float | None:
        dialled = "+" + (digits if written.startswith("+") else digits[2:])
        try:
            number = self._numbers.parse(dialled.replace("(0)", ""), None)
        except self._numbers.NumberParseException:
            return 0.6 if written.startswith("+") and len(digits) >= 8 else None
        if self._numbers.is_valid_number(number):
            return 0.95
        if written.startswith("+"):
            return 0.8
        return None

    def _national(self, written: str, digits: str, *, named: bool) -> float | None:
        if named:
            return 0.9 if self._valid(digits) else 0.75
        grouped = any(not c.isdigit() for c in written)
        if not self._valid(digits):
            leading = digits.startswith("0") and len(digits) >= 9
            return 0.45 if grouped and leading and self._possible(digits) else None
        if digits.startswith("0") or written.startswith("("):
            return 0.7 if grouped else 0.6
        groups = [len(g) for g in regex.split(r"\D+", written) if g]
        return 0.7 if groups in ([3, 3, 4], [1, 3, 3, 4]) else (0.3 if grouped else None)

    def _valid(self, digits: str) -> bool:
        return any(self._parsed(digits, region) == "valid" for region in self._regions)

    def _possible(self, digits: str) -> bool:
        return any(self._parsed(digits, region) == "possible" for region in self._regions)

    def _parsed(self, digits: str, region: str) -> str | None:
        try:
            number = self._numbers.parse(digits, region)
        except self._numbers.NumberParseException:
            return None
        if self._numbers.is_valid_number_for_region(number, region):
            return "valid"
        return "possible" if self._numbers.is_possible_number(number) else None


def _judge_handle(handle: str) -> float | None:
    word = handle.lstrip("@")
    if is_common_word(word) or word.casefold() in _CODE_WORDS:
        return 0.25
    return 0.6


_CODE_WORDS = words(
    """dataclass classmethod staticmethod pytest param params returns return override
    deprecated nullable autowired bean component injectable import media keyframes todo see
    link author everyone channel here types babel angular vue"""
)
_VALUE = r"(?P<v>[^\s\"'<>,;:(){}\[\]=]{2,64})"


def username_rules() -> RuleSet:
    """``@handle``, labelled logins, home folders, profile pages: a person under another name."""
    user = EntityType.USERNAME
    label = r"(?:log[ -]?in|user[ _-]?(?:name|id)|handle|screen[ _-]?name|nick(?:name)?|skype)"
    return RuleSet(
        "username",
        [
            Rule(
                "handle",
                user,
                r"(?<![\w@./:#-])(?P<v>@[A-Za-z_]\w{2,29})(?![\w/(@]|\.\w)",
                0.6,
                check=_judge_handle,
            ),
            Rule(
                "labelled",
                user,
                rf"\b{label}[\"'*_]*\s?(?:[:=]|\bis\b)\s?[\"'*`]*@?{_VALUE}",
                0.85,
                check=_judge_login,
            ),
            Rule(
                "home",
                user,
                r"(?:/home/|/Users/|\\Users\\)(?P<v>[^\s/\\:\"'<>]{2,64})",
                0.85,
                check=_judge_home,
            ),
            Rule(
                "profile",
                user,
                r"\b(?:linkedin\.com/(?:in|pub)|(?:facebook|instagram|twitter|x|tiktok|github|"
                r"gitlab|keybase|pinterest)\.(?:com|io)|t\.me|medium\.com|wa\.me|"
                r"(?:reddit\.com/(?:u|user))|(?:mastodon\.\w+))/(?P<v>@?[^\s/?#\"'<>()]{2,64})",
                0.7,
                check=_judge_profile,
            ),
            Rule(
                "url-user",
                user,
                r"\b[a-z][a-z0-9+.-]{1,12}://(?P<v>[^\s/:@\"'<>]{1,64})(?=(?::[^\s/@]*)?@)",
                0.85,
            ),
        ],
    )


_BLANK = words("none unknown required n/a null true false string see the not")


def _judge_login(value: str) -> float | None:
    blank = {
        "none",
        "unknown",
        "required",
        "n/a",
        "null",
        "true",
        "false",
        "string",
        "see",
        "the",
        "not",
    }
    if value.casefold() in blank:
        return None
    return 0.45 if is_common_word(value) else 0.85


def _judge_home(value: str) -> float | None:
    shared = {"user", "ubuntu", "shared", "public", "default", "runner", "app", "root", "admin"}
    return None if value.casefold() in shared else 0.85


def _judge_profile(value: str) -> float | None:
    pages = {
        "share",
        "sharer",
        "intent",
        "company",
        "groups",
        "pages",
        "watch",
        "explore",
        "orgs",
        "features",
        "about",
        "help",
        "login",
        "search",
        "home",
        "hashtag",
        "p",
        "reel",
    }
    if value.casefold().removesuffix(".php") in pages:
        return None
    return 0.45 if is_common_word(value) else 0.7
