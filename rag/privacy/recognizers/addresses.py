"""Street addresses with what belongs to them: unit, town, postcode, over line breaks.

English forms (number, street name, street type), and the continental ones in which the
type is part of the name or comes first: ``Lindenstraße 27``, ``12 rue de la Paix``.
"""

from __future__ import annotations

import regex

from rag.privacy.recognizers.rules import Rule, RuleSet
from rag.types import EntityType

_TYPES = (
    r"(?:Street|St|Road|Rd|Lane|Ln|Avenue|Ave|Av|Drive|Dr|Close|Court|Ct|Crescent|Cres|Way|Place|"
    r"Pl|Square|Sq|Terrace|Ter|Boulevard|Blvd|Grove|Gardens?|Gdns|Mews|Row|Walk|Hill|Rise|Park|"
    r"Parade|Circle|Cir|Highway|Hwy|Parkway|Pkwy|Trail|Trl|Turnpike|Alley|Quay|Wharf|Green|View|"
    r"Heights|Loop|Path|Pike|Ridge|Run|Plaza|Embankment|Esplanade|Broadway|Bend|Cove|Crossing|"
    r"Croft|Dale|End|Field|Fields|Gate|Mount|Orchard|Vale|Villas|Yard)"
)
_WORD = r"(?:[A-ZÀ-ÞŁŚŽČ][\w'’.-]*|\d{1,3}(?:st|nd|rd|th)|of|the|and|de|la|le|du|St\.?)"
_SEP = r"(?:\s?,\s?|[ ]?\r?\n[ ]?|[ ]-[ ]|[ ])"
_BREAK = r"(?:\s?,\s?|[ ]?\r?\n[ ]?)"
_UNIT = (
    r"(?:(?:Flat|Apt|Apartment|Unit|Suite|Ste|Room|Rm|Floor|Fl|Building|Bldg|Block|House|Lot|"
    r"Studio|Level)\.?[ ]?\#?[ ]?[0-9]{0,5}[A-Za-z]?(?![A-Za-z])|\#[ ]?\d{1,5}[A-Za-z]?)"
)
_UK = r"(?:GIR ?0AA|[A-PR-UWYZ][A-HK-Y]?[0-9][0-9A-HJKMNPR-Y]?(?: |\r?\n)?[0-9][ABD-HJLNP-UW-Z]{2})"
_STATE = (
    r"(?:A[KLRZ]|C[AOT]|D[CE]|FL|GA|HI|I[ADLN]|K[SY]|LA|M[ADEINOST]|N[CDEHJMVY]|O[HKR]|PA|RI|S[CD]|"
    r"T[NX]|UT|V[AT]|W[AIVY]|PR)"
)
_US = rf"(?:(?:{_STATE}|[A-Z][a-z]+)[ ,]{{1,2}}\d{{5}}(?:-\d{{4}})?)"
_CAPITAL = r"[A-ZÀ-ÞŁŚŽČ][\w'’.-]+"
_TOWN = rf"(?:{_CAPITAL}(?:[ -](?:{_CAPITAL}|upon|on|of|am|an|der|in|le|la|de)){{0,3}})"
_CODES = (
    rf"(?:{_UK}|{_US}|\d{{4,5}}(?:[ ]?[A-Z]{{2}})?(?![\d\w])(?:[ ]{_TOWN})?"
    r"|[A-Z]\d[A-Z][ ]?\d[A-Z]\d)"
)
_REST = (
    rf"(?:{_SEP}{_UNIT})?"
    rf"(?:(?:{_BREAK}{_TOWN}){{0,2}}{_SEP}{_CODES}(?!\w)"
    rf"|,[ ]{_TOWN}(?:,[ ](?:{_STATE}|UK|USA)\b|(?=\s*(?:[.,;:)\n\"]|$))))?"
)
_HOUSE = r"(?<![\w.,/-])(?:\d{1,5}(?:[ ]?[A-Za-z](?![A-Za-z]))?(?:[ ]?[-–/][ ]?\d{1,5}[A-Za-z]?)?)"
_DIRECTION = r"(?:(?:[NSEW]|NE|NW|SE|SW|North|South|East|West)\.?[ ])?"

_ENGLISH = (
    rf"(?:{_UNIT}{_SEP})?{_HOUSE},?[ ]{_DIRECTION}(?:{_WORD}[ ]){{1,4}}?"
    rf"{_TYPES}\b\.?(?:[ ](?:N|S|E|W|NE|NW|SE|SW|North|South|East|West)\b\.?)?{_REST}"
)
_LOWER = (
    rf"{_HOUSE},?[ ](?:[\w'’.-]+[ ]){{1,3}}?"
    r"(?:street|road|lane|avenue|drive|close|crescent|boulevard|terrace)\b"
)
_GERMANIC = (
    r"(?<!\w)(?:[A-ZÄÖÜØÅÆ][\w'’.-]*[ -]){0,2}[A-ZÄÖÜØÅÆ]?[\w-]*"
    r"(?:stra(?:ß|ss)e|str\.|weg|platz|allee|gasse|damm|ufer|straat|laan|plein|gracht|kade|dijk|"
    r"gata|gaten|gate|vei|veien|vej|vegen|väg|vägen|gatan|gade|katu|tie|[ ](?:Straße|Weg|Platz|"
    r"Allee|Ring))[ ]\d{1,4}(?:[ ]?[a-zA-Z](?![\w]))?(?:[ ]?[-/][ ]?\d{1,4}[a-z]?)?"
    rf"(?:{_SEP}{_UNIT})?(?:{_BREAK}\d{{4,5}}(?:[ ]?[A-Z]{{2}}\b)?(?:[ ]{_TOWN})?)?"
)
_ROMANCE_NUMBER_FIRST = (
    r"(?<![\w.,/-])\d{1,4}(?:[ ]?(?:bis|ter|quater))?,?[ ](?:rue|avenue|av\.|boulevard|bd|place|"
    r"chemin|impasse|allée|quai|cours|route|square|passage)[ ][\w'’.-]+(?:[ -][\w'’.-]+){0,4}?"
    rf"(?=[,\n.;)]|$|[ ]\d{{5}})(?:{_SEP}\d{{5}}(?:[ ]{_TOWN})?)?"
)
_ROMANCE_TYPE_FIRST = (
    r"(?<!\w)(?:Calle|C/|Avenida|Avda\.?|Plaza|Paseo|Carrer|Via|Viale|Piazza|Corso|Largo|Rua|"
    r"Travessa|Praça|Rue|ul\.|Ulica)[ ]"
    r"(?:[\w'’.-]+[ ]){0,4}?[\w'’.-]+,?[ ](?:n[º°.]?[ ]?)?\d{1,4}[A-Za-z]?\b"
    rf"(?:{_BREAK}\d{{4,5}}(?:-\d{{3}})?(?:[ ]{_TOWN})?)?"
)
_BOX = rf"\b(?:P\.?[ ]?O\.?[ ]?Box|Post[ ]Office[ ]Box|Postfach|Postbus)[ ]\d{{1,6}}{_REST}"
_LABELLED = (
    r"\b(?:home|postal|mailing|street|billing|delivery|shipping|residential|private|current)?[ _]?"
    r"address[\"'*_]{0,3}\s?[:=]\s?[\"'*_]{0,3}(?P<v>(?=[^\n\"@]{0,80}\d)(?!https?:)[^\n\"@]{6,120}?)"
    r"(?=\"|\n|$|;|\s\|)"
)

_CASED = int(regex.MULTILINE)


def address_rules() -> RuleSet:
    address = EntityType.ADDRESS
    return RuleSet(
        "address",
        [
            Rule("english", address, _ENGLISH, 0.92, _judge_street, flags=_CASED),
            Rule("english-lower", address, _LOWER, 0.8, _judge_street),
            Rule("germanic", address, _GERMANIC, 0.9, flags=_CASED),
            Rule("romance", address, _ROMANCE_NUMBER_FIRST, 0.9),
            Rule("romance-type", address, _ROMANCE_TYPE_FIRST, 0.9, flags=_CASED),
            Rule("box", address, _BOX, 0.9),
            Rule("labelled", address, _LABELLED, 0.85, _judge_labelled),
            Rule("uk-postcode", address, rf"(?<![\w-]){_UK}(?![\w-])", 0.55, _spaced, flags=_CASED),
            Rule("us-postcode", address, rf"(?<![\w-]){_STATE}[ ]\d{{5}}(?:-\d{{4}})?(?![\w-])",
                 0.55, flags=_CASED),
        ],
    )  # fmt: skip


def _judge_street(found: str) -> float | None:
    """House number 0 does not exist."""
    first = found.split(maxsplit=1)[0]
    return None if first.strip("0") == "" else 0.92


def _judge_labelled(found: str) -> float | None:
    """A postal address has letters; "address: 10.0.0.5:80" does not."""
    return 0.85 if sum(c.isalpha() for c in found) >= 4 and " " in found.strip() else None


def _spaced(code: str) -> float | None:
    """Alone, a postcode needs its space: ``LS6 4QX``; clause and part numbers have none."""
    return 0.55 if any(c.isspace() for c in code) else None
