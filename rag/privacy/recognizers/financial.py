"""Cards, bank accounts and wallets.

A valid checksum is proof; without one a number counts when the text itself calls it a
card or an IBAN, for people mistype. Any separator may stand between the digits.
"""

from __future__ import annotations

from collections.abc import Iterator

import regex

from rag.privacy.lexicon import words
from rag.privacy.recognizers.rules import SECONDS, Rule, RuleSet, from_presidio, has_word
from rag.types import EntityType, Span

_CARD_WORDS = words(
    """card credit debit visa mastercard maestro amex american express discover diners jcb
    unionpay cc pan charge charged"""
)
_DIGITS = regex.compile(r"(?<![\w.,-])\d(?:[ \t.\-–_/·]{0,3}\d){11,18}(?![\d])")
_NOT_CARDS = words("isbn ean gtin issn imei order invoice tracking iccid")


class CardRecognizer:
    """Payment cards of 13 to 19 digits: Luhn and issuer, or a word that says card."""

    name = "card"

    def find(self, text: str) -> list[Span]:
        return [
            span
            for m in _DIGITS.finditer(text, timeout=SECONDS)
            for span in self._card(text, *m.span())
        ]

    def _card(self, text: str, start: int, end: int) -> Iterator[Span]:
        named = has_word(text, start, end, _CARD_WORDS, before=60, after=24)
        for stop in _stops(text, start, end):
            digits = _digits(text[start:stop])
            if luhn(digits) and issuer(digits) and (named or len(digits) > 13):
                barred = not named and has_word(text, start, end, _NOT_CARDS, after=0)
                yield Span(start, stop, EntityType.CARD, 0.5 if barred else 0.97)
                return
        if named and len(_digits(text[start:end])) >= 13:
            yield Span(start, end, EntityType.CARD, 0.9)


def _stops(text: str, start: int, end: int) -> Iterator[int]:
    """Where the number may end: the whole run first, then each earlier group border."""
    yield end
    for at in range(end - 1, start, -1):
        if text[at - 1].isdigit() and not text[at].isdigit() and len(_digits(text[start:at])) >= 13:
            yield at


def _digits(text: str) -> str:
    return "".join(c for c in text if c.isdigit())


def luhn(digits: str) -> bool:
    """The check of ISO/IEC 7812."""
    total = 0
    for place, digit in enumerate(reversed(digits)):
        value = int(digit) * (1 + place % 2)
        total += value - 9 * (value > 9)
    return total % 10 == 0 and len(set(digits)) > 1


def issuer(digits: str) -> bool:
    """Whether the first digits and the length belong to a card scheme."""
    lengths = {
        "4": (13, 16, 18, 19), "51-55": (16,), "2221-2720": (16,), "34": (15,), "37": (15,),
        "300-305": (14, 16), "36": (14, 16), "38-39": (14, 16), "35": (16, 17, 18, 19),
        "60": (16, 17, 18, 19), "62": (16, 17, 18, 19), "64-65": (16, 17, 18, 19),
        "50": (13, 14, 15, 16, 17, 18, 19), "56-58": (13, 14, 15, 16, 17, 18, 19),
        "63": (16, 18, 19), "66-69": (16, 17, 18, 19), "81": (16, 17, 18, 19),
        "9792": (16,), "2200-2204": (16, 17, 18, 19),
    }  # fmt: skip
    for prefix, allowed in lengths.items():
        low, _, high = prefix.partition("-")
        if int(low) <= int(digits[: len(low)]) <= int(high or low) and len(digits) in allowed:
            return True
    return False


_IBAN = regex.compile(
    r"(?<![A-Za-z0-9])[A-Za-z]{2}\d{2}(?:[ \-.]?[A-Za-z0-9]){11,30}(?![A-Za-z0-9])"
)
_IBAN_WORDS = words("iban")


class IbanRecognizer:
    """IBANs by ISO 13616 check digits and the country's format, or labelled as one.

    Presidio's own logs the text when it cannot be checked, so only its formats are used.
    """

    name = "iban"

    def __init__(self) -> None:
        from presidio_analyzer.predefined_recognizers.generic import iban_patterns

        self._formats = {
            country: regex.compile(pattern)
            for country, pattern in iban_patterns.regex_per_country.items()
        }

    def find(self, text: str) -> list[Span]:
        spans = []
        for match in _IBAN.finditer(text, timeout=SECONDS):
            start, end = match.span()
            stop = self._valid_end(text, start, end)
            if stop is not None:
                spans.append(Span(start, stop, EntityType.BANK_ACCOUNT, 0.99))
            elif has_word(text, start, end, _IBAN_WORDS, before=30):
                stop = _end_of_groups(text, start, end)
                spans.append(Span(start, stop, EntityType.BANK_ACCOUNT, 0.9))
        return spans

    def _valid_end(self, text: str, start: int, end: int) -> int | None:
        for stop in range(end, start + 14, -1):
            if not text[stop - 1].isalnum() or (stop < end and text[stop].isalnum()):
                continue
            number = "".join(c for c in text[start:stop] if c.isalnum()).upper()
            form = self._formats.get(number[:2])
            if form and form.fullmatch(number, timeout=SECONDS) and _mod97(number) == 1:
                return stop
        return None


def _mod97(number: str) -> int:
    return int("".join(str(int(c, 36)) for c in number[4:] + number[:4])) % 97


def _end_of_groups(text: str, start: int, end: int) -> int:
    """Leave out trailing words that the pattern took for groups: ``… 67 89 which bank``."""
    stop = end
    while (space := text.rfind(" ", start + 4, stop)) > 0 and text[space:stop].strip().isalpha():
        stop = space
    return stop


def financial_rules() -> RuleSet:
    """Labelled accounts, card codes, and wallets by their checksums or shapes."""
    from presidio_analyzer.predefined_recognizers import AbaRoutingRecognizer, CryptoRecognizer

    account, wallet = EntityType.BANK_ACCOUNT, EntityType.WALLET
    number = (
        r"(?:\s?(?:no|nr|num|number|code|\#)\b\.?)?[\"'*_]*\s{0,2}(?:[:=\#]|\bis\b)?\s{0,2}[\"'*]*"
    )
    return RuleSet(
        "financial",
        [
            Rule(
                "card-code",
                EntityType.CARD,
                r"\b(?:cvc2?|cvv2?|cv2|cid|card\s(?:verification|security)\s(?:code|number))\b"
                r"\W{0,4}(?:is\s|code\W{0,3})?(?P<v>\d{3,4})\b",
                0.9,
            ),
            Rule(
                "account",
                account,
                rf"\b(?:(?:bank\s)?(?:account|acct)|a/c|kontonummer|konto|rekening){number}"
                r"(?P<v>\d[\d \-./]{4,22}\d)\b",
                0.85,
            ),
            Rule(
                "sort-code",
                account,
                rf"\b(?:sort\scode|bsb){number}(?P<v>\d{{2,3}}[- ]?\d{{2,3}}(?:[- ]?\d{{2}})?)\b",
                0.85,
            ),
            Rule("routing", account, rf"\b(?:routing|aba|transit){number}(?P<v>\d{{9}})\b", 0.85),
            Rule("ethereum", wallet, r"(?<![0-9A-Za-z])0x[0-9a-f]{40}(?![0-9A-Za-z])", 0.95),
            Rule(
                "tron",
                wallet,
                r"(?<![0-9A-Za-z])T[1-9A-HJ-NP-Za-km-z]{33}(?![0-9A-Za-z])",
                0.6,
                flags=0,
            ),
            Rule(
                "monero",
                wallet,
                r"(?<![0-9A-Za-z])[48][0-9AB][1-9A-HJ-NP-Za-km-z]{93}(?![0-9A-Za-z])",
                0.95,
                flags=0,
            ),
            Rule(
                "wallet",
                wallet,
                r"(?<![0-9A-Za-z])[13LMDXrA-Z][1-9A-HJ-NP-Za-km-z]{24,58}(?![0-9A-Za-z])",
                0.5,
                near=words(
                    "wallet btc bitcoin crypto litecoin ltc dogecoin doge ripple xrp cardano solana"
                ),
                needs_near=True,
                flags=0,
            ),
            *from_presidio(CryptoRecognizer(), wallet, needs_near=False, lift=0.95),
            *from_presidio(
                AbaRoutingRecognizer(), account, near=("routing", "aba", "rtn"), lift=0.7
            ),
        ],
    )
