"""IP and MAC addresses and URLs.

Version numbers, clause numbers, ``::`` and loopback or unspecified addresses name nobody.
The ranges kept for documentation (RFC 5737, RFC 3849) count only where the text treats
them as somebody's address.
"""

from __future__ import annotations

import ipaddress

import regex

from rag.privacy.lexicon import words
from rag.privacy.recognizers.rules import SECONDS, Rule, RuleSet, from_presidio, has_word
from rag.types import EntityType, Span

_V4 = regex.compile(r"(?<![\w.-])(?:\d{1,3}\.){3}\d{1,3}(?![\w-]|\.\d)")
_V6 = regex.compile(
    r"(?<![\w:.])(?=[0-9A-Fa-f:.]{4,45}(?:%\w+)?(?![\w:]))(?=[0-9A-Fa-f]*:[0-9A-Fa-f:]*:)"
    r"[0-9A-Fa-f:]+(?:\d{1,3}(?:\.\d{1,3}){3})?(?![\w:])"
)
_VERSION_WORDS = words(
    "version versions ver v release releases upgrade upgraded update build clause section chapter "
    "paragraph article firmware kernel driver"
)
_ADDRESS_WORDS = words(
    "ip ipv4 ipv6 address addresses client host login logged visitor remote peer server device "
    "from connected source session"
)
_DOCUMENTATION = tuple(
    ipaddress.ip_network(net)
    for net in ("192.0.2.0/24", "198.51.100.0/24", "203.0.113.0/24", "2001:db8::/32", "3fff::/20")
)


class IpRecognizer:
    """IPv4 and IPv6 addresses; Presidio's cuts short an IPv6 address before its end."""

    name = "ip"

    def find(self, text: str) -> list[Span]:
        spans = []
        for pattern in (_V4, _V6):
            for match in pattern.finditer(text, timeout=SECONDS):
                start, end = match.span()
                score = self._judge(text, start, end)
                if score is not None:
                    spans.append(Span(start, end, EntityType.NETWORK, score))
        return spans

    def _judge(self, text: str, start: int, end: int) -> float | None:
        try:
            address = ipaddress.ip_address(text[start:end].partition("%")[0])
        except ValueError:
            return None
        if address.is_unspecified or address.is_loopback or address.is_multicast:
            return None
        if str(address) in ("255.255.255.255",) or text[start:end].startswith("255."):
            return None
        if address.version == 4 and has_word(text, start, end, _VERSION_WORDS, before=16, after=0):
            return None
        named = has_word(text, start, end, _ADDRESS_WORDS, before=48, after=0)
        if any(address.version == net.version and address in net for net in _DOCUMENTATION):
            return 0.85 if named else 0.3
        return 0.9 if named or address.is_global else 0.7


def network_rules() -> RuleSet:
    from presidio_analyzer.predefined_recognizers import MacAddressRecognizer

    url = r"\b(?:https?|ftp|sftp|ssh|git)://[^\s<>\"'`{}|\\^]+|\bwww\.[\w-]+\.[^\s<>\"'`{}|\\^]+"
    bare = (
        r"(?<![\w@./-])(?:[a-z0-9](?:[a-z0-9-]*[a-z0-9])?\.)+(?:com|org|net|edu|gov|info|biz|io|"
        r"co\.uk|eu|de|fr|nl|no|se|it|es|ch|at)(?:/[^\s<>\"'`{}|\\^]*)?(?![\w@-])"
    )
    return RuleSet(
        "network",
        [
            Rule("url", EntityType.URL, url, 0.95),
            Rule("domain", EntityType.URL, bare, 0.5),
            *from_presidio(
                MacAddressRecognizer(), EntityType.NETWORK, needs_near=False, lowest=0.9
            ),
        ],
    )
