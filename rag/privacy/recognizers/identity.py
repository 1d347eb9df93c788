"""National, tax and document numbers.

Most such numbers are only digits, and many pass a checksum by chance (an ISBN-10 has the
check digit of an NHS number): without a tell-tale shape they count only beside a word
that names them.
"""

from __future__ import annotations

from collections.abc import Iterator

from rag.privacy.recognizers.rules import Rule, RuleSet, from_presidio
from rag.types import EntityType

_NATIONAL, _TAX, _DOCUMENT = EntityType.NATIONAL_ID, EntityType.TAX_ID, EntityType.DOCUMENT_ID

_NUMBER = r"(?:(?:no|nr|num|numbers?|code|id|card|reg|registration|\#|№)(?![A-Za-z])\.?)"
_QUOTES = r"[\"'*_()\[\]]{0,3}"
_LINK = rf"{_QUOTES}\s?(?:[:=\#]|is\b|was\b|of\b)?\s{{0,3}}{_QUOTES}"
"""What may stand between a label and its value: ``passport no.: ``, ``"passport": "``."""
_VALUE = (
    r"(?-i:(?P<v>(?:[A-Z]{1,6}[ .-]?)?\d[A-Z0-9]*(?:[-./ ]?(?=[A-Z0-9]*\d)[A-Z0-9]+)*"
    r"(?:[ -]?[A-Z])?)(?![A-Za-z0-9]))"
)

_STRONG = {
    _NATIONAL: r"ssns?|social\s(?:security|insurance)|national\s(?:id|identity|identification|"
    r"insurance)|identity\s(?:card|document|number)|id\scard|nino|personnummer|f[øo]dselsnummer|"
    r"cpr|bsn|cpf|dni|curp|pesel|aadhaar|hkid|nric|codice\sfiscale|birth\snumber",
    _TAX: r"tax(?:payer)?[\s_-]?(?:id|identification|number|no|reference|file|code)|itin|utr|tfn|"
    r"steuer-?(?:id|nummer)|nif|gstin|vat",
    _DOCUMENT: r"passport|driv(?:er|er['’]?s|ing|ers)\s?licen[cs]e|licen[cs]e\splate|number\splate|"
    r"vehicle\sregistration|medical\srecord|mrn|nhs|health\s(?:card|insurance|plan)|medicare|"
    r"medicaid|residence\spermit|work\spermit|travel\sdocument|national\shealth\sservice",
}
"""Labels that name the kind of number by themselves."""

_WEAK = {
    _NATIONAL: r"personal|identity|identification|national|citizen|ni|sin|nie",
    _TAX: r"tin|ein|pan|abn|nit|tax",
    _DOCUMENT: r"licen[cs]e|plate|patient|insurance|policy|member(?:ship)?|employee|staff|"
    r"personnel|student|pupil|matriculation|customer|client|subscriber|beneficiary|visa|green|"
    r"inmate|badge|payroll|vin|chassis|tenant|case|claim|loyalty|donor|hospital",
}
"""Labels that do so only together with "number", "no.", "id" or the like."""


def _labelled() -> Iterator[Rule]:
    for kind, labels in _STRONG.items():
        pattern = rf"(?<![A-Za-z])(?:{labels})s?(?:[\s_-]?{_NUMBER}){{0,2}}{_LINK}{_VALUE}"
        yield Rule(f"labelled-{kind.lower()}", kind, pattern, 0.88, check=_judge_labelled)
    for kind, labels in _WEAK.items():
        pattern = rf"(?<![A-Za-z])(?:{labels})[\s_-]?{_NUMBER}{_LINK}{_VALUE}"
        yield Rule(f"numbered-{kind.lower()}", kind, pattern, 0.8, check=_judge_numbered)


def _judge_labelled(value: str) -> float | None:
    digits = sum(c.isdigit() for c in value)
    return 0.88 if digits >= 4 and not _year(value) else None


def _judge_numbered(value: str) -> float | None:
    """Short member and employee numbers count too: three digits are somebody's."""
    digits = sum(c.isdigit() for c in value)
    return 0.8 if digits >= 3 and not _year(value) else None


def _year(value: str) -> bool:
    return len(value) == 4 and value[:2] in ("19", "20")


def identity_rules() -> RuleSet:
    """Labelled numbers of any country, and Presidio's formats with their checks."""
    from presidio_analyzer import predefined_recognizers as presidio

    return RuleSet(
        "identity",
        [
            *_labelled(),
            Rule("ssn", _NATIONAL,
                 r"(?<![\w-])(?!000|666|9)\d{3}-(?!00)\d{2}-(?!0000)\d{4}(?![\w-])", 0.85),
            *from_presidio(
                presidio.UsSsnRecognizer(), _NATIONAL, near=("ssn", "social"), lowest=0.5
            ),
            *from_presidio(
                presidio.UkNinoRecognizer(), _NATIONAL, needs_near=False, lowest=0.7
            ),
            *from_presidio(presidio.NhsRecognizer(), _DOCUMENT, near=("nhs", "patient", "health")),
            *from_presidio(
                presidio.UsItinRecognizer(), _TAX, near=("itin", "taxpayer", "tax"), lowest=0.5
            ),
            *from_presidio(
                presidio.UsPassportRecognizer(), _DOCUMENT, near=("passport",), lowest=0.5
            ),
            *from_presidio(
                presidio.UkPassportRecognizer(), _DOCUMENT, near=("passport",), lowest=0.5
            ),
            *from_presidio(
                presidio.UsLicenseRecognizer(), _DOCUMENT, near=("license", "licence", "dl"),
                lowest=0.5, never=("software", "open", "source", "public", "permit"),
            ),
            *from_presidio(presidio.AuTfnRecognizer(), _TAX, near=("tfn", "tax")),
            *from_presidio(presidio.AuMedicareRecognizer(), _DOCUMENT, near=("medicare",)),
            *from_presidio(presidio.InAadhaarRecognizer(), _NATIONAL, near=("aadhaar", "uidai")),
            *from_presidio(presidio.InPanRecognizer(), _TAX, near=("pan", "tax", "income")),
            *from_presidio(presidio.SgFinRecognizer(), _NATIONAL, near=("nric", "fin")),
        ],
    )  # fmt: skip
