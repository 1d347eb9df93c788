"""Numbers, addresses and secrets: what is found, as what, and where it ends."""

from __future__ import annotations

from collections.abc import Callable

import pytest

PEM = """-----BEGIN RSA PRIVATE KEY-----
MIIBOgIBAAJBAKj34GkxFhD90vcNLYLInFEX6Ppy1tPf9Cnzj4p4WGeKLs1Pt8Qu
KUpRKfFLfRYC9AIKjbJTWit+CqvjWYzvQwECAwEAAQJAIJLixBy2qpFoS4DSmoEm
o3qGy0t6z09AIJtH+5OeRV1be+N4cDYJKffGzDa88vQENZiRm0GRq6a+HPGQMd2k
-----END RSA PRIVATE KEY-----"""

FOUND = [
    # e-mail
    ("Mail rosa.quint@example.org today.", "EMAIL", ["rosa.quint@example.org"]),
    ("Internal: jo@localhost, jo@mail.local and jo@[192.0.2.7].", "EMAIL",
     ["jo@localhost", "jo@mail.local", "jo@[192.0.2.7]"]),
    ("a@example.org b@example.org c@example.org", "EMAIL",
     ["a@example.org", "b@example.org", "c@example.org"]),
    ("See https://shop.example.org/u?mail=rosa%40example.org&x=1", "EMAIL",
     ["rosa%40example.org"]),
    ("<td>rosa&#64;example.org</td>", "EMAIL", ["rosa&#64;example.org"]),
    ("ro\u200bsa@example.org", "EMAIL", ["ro\u200bsa@example.org"]),
    ("token cm9zYS5xdWludEBleGFtcGxlLm9yZw== here", "EMAIL",
     ["cm9zYS5xdWludEBleGFtcGxlLm9yZw=="]),
    # phone
    ("+351 210 555 142 or +1-555-123-4567 or 0049 30 23125142", "PHONE",
     ["+351 210 555 142", "+1-555-123-4567", "0049 30 23125142"]),
    ("Tel. 555-0142, ext. 12", "PHONE", ["555-0142, ext. 12"]),
    ("Ring 07700 900142 or (020) 7946 0018.", "PHONE", ["07700 900142", "(020) 7946 0018"]),
    ("Office 030/23125142, depot 010-5550142", "PHONE", ["030/23125142", "010-5550142"]),
    ("You can call my phone 907-882-3534.", "PHONE", ["907-882-3534"]),
    # cards
    ("Card 5105.1051.0510.5100, 5105  1051  0510  5100 or 5105 - 1051 - 0510 - 5100", "CARD",
     ["5105.1051.0510.5100", "5105  1051  0510  5100", "5105 - 1051 - 0510 - 5100"]),
    ("2223003122003222 and 6205500000000000004 were charged", "CARD",
     ["2223003122003222", "6205500000000000004"]),
    ("My credit card is 4929-1122-3344-5567, mistyped", "CARD", ["4929-1122-3344-5567"]),
    ("Her card 4151 3217 6243 3448.com, CVC 914", "CARD", ["4151 3217 6243 3448", "914"]),
    # accounts
    ("Pay to DE89 3704 0044 0532 0130 00 by Friday", "BANK_ACCOUNT",
     ["DE89 3704 0044 0532 0130 00"]),
    ("IBAN GB82-WEST-1234-5698-7654-32.", "BANK_ACCOUNT", ["GB82-WEST-1234-5698-7654-32"]),
    ("card 4929-1122-3344-5567 and my IBAN is DE51 0000 0000 0123 4567 89 (which bank?)",
     "BANK_ACCOUNT", ["DE51 0000 0000 0123 4567 89"]),
    ("Sort code 20-00-00, account number 55779911", "BANK_ACCOUNT", ["20-00-00", "55779911"]),
    ("Send to 1A1zP1eP5QGefi2DMPTfTL5SLmv7DivfNa", "WALLET",
     ["1A1zP1eP5QGefi2DMPTfTL5SLmv7DivfNa"]),
    ("0x52908400098527886E0F7030069857D2E4169EE7", "WALLET",
     ["0x52908400098527886E0F7030069857D2E4169EE7"]),
    # identity
    ("SSN 212-45-6789", "NATIONAL_ID", ["212-45-6789"]),
    ("her NINO is QQ 12 34 56 C.", "NATIONAL_ID", ["QQ 12 34 56 C"]),
    ("AB 12 34 56 C signed", "NATIONAL_ID", ["AB 12 34 56 C"]),
    ("NHS number: 943 476 5919", "DOCUMENT_ID", ["943 476 5919"]),
    ("passport no. 533401987", "DOCUMENT_ID", ["533401987"]),
    ('{"passportNumber": "C01X00T47"}', "DOCUMENT_ID", ["C01X00T47"]),
    ("Driving licence MORGA657054SM9IJ", "DOCUMENT_ID", ["MORGA657054SM9IJ"]),
    ("Employee no. 4471 left", "DOCUMENT_ID", ["4471"]),
    ("Tax ID: 912-71-1234", "TAX_ID", ["912-71-1234"]),
    # dates of birth
    ("born 05.03.1987 in Leeds", "BIRTH_DATE", ["05.03.1987"]),
    ("DOB: 1987-03-05", "BIRTH_DATE", ["1987-03-05"]),
    ('{"birthDate":"1987-03-05"}', "BIRTH_DATE", ["1987-03-05"]),
    ("Date of birth: 5th of March 1987", "BIRTH_DATE", ["5th of March 1987"]),
    ("She was born on March 5, 1987.", "BIRTH_DATE", ["March 5, 1987"]),
    ("Her birthday is 5 March.", "BIRTH_DATE", ["5 March"]),
    # network
    ("Client 2345:0425:2ca1:0000:0000:0567:5673:23b5, then 2345:425:2ca1::567:5673:23b5", "NETWORK",
     ["2345:0425:2ca1:0000:0000:0567:5673:23b5", "2345:425:2ca1::567:5673:23b5"]),
    ("login from 81.2.69.142:443", "NETWORK", ["81.2.69.142"]),
    ("Visitor with IP 203.0.113.9", "NETWORK", ["203.0.113.9"]),
    ("MAC 00:1A:2B:3C:4D:5E", "NETWORK", ["00:1A:2B:3C:4D:5E"]),
    # addresses
    ("Deliver to:\n48 Heather Lane\nFlat 3B\nLeeds\nLS6 4QX", "ADDRESS",
     ["48 Heather Lane\nFlat 3B\nLeeds\nLS6 4QX"]),
    ("at 5507 Kestrel Hollow Road, Apt 12, Chattanooga, TN 37499.", "ADDRESS",
     ["5507 Kestrel Hollow Road, Apt 12, Chattanooga, TN 37499"]),
    ("of 19 Osprey Crescent, Berwick TD15\n2AB.", "ADDRESS",
     ["19 Osprey Crescent, Berwick TD15\n2AB"]),
    ("Flat 2, 17 St. Mary's Court, York YO1 7EP", "ADDRESS",
     ["Flat 2, 17 St. Mary's Court, York YO1 7EP"]),
    ("Besuch: Lindenstraße 27, 10969 Berlin.", "ADDRESS", ["Lindenstraße 27, 10969 Berlin"]),
    ("Kerkstraat 12a, 1017 GC Amsterdam", "ADDRESS", ["Kerkstraat 12a, 1017 GC Amsterdam"]),
    ("12 rue de la Paix, 75002 Paris", "ADDRESS", ["12 rue de la Paix, 75002 Paris"]),
    ("she lives at 9 willow lane now", "ADDRESS", ["9 willow lane"]),
    # secrets
    (f"Key:\n{PEM}\nend", "CREDENTIAL", [PEM]),
    ("AWS key AKIAQ7QUINTPOST4TEST", "CREDENTIAL", ["AKIAQ7QUINTPOST4TEST"]),
    ("sk-proj-Qu1ntP0stT3stK3y9aBcDeFgHiJkLm", "CREDENTIAL",
     ["sk-proj-Qu1ntP0stT3stK3y9aBcDeFgHiJkLm"]),
    ("password: Kestrel!77", "CREDENTIAL", ["Kestrel!77"]),
    ('"db_password": "two words 9"', "CREDENTIAL", ["two words 9"]),
    ("eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0THsR8U",
     "CREDENTIAL", ["eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_"
                    "XgL0n3I9PlFUP0THsR8U"]),
    ("postgres://rosa:s3cr3t@db/app", "CREDENTIAL", ["s3cr3t"]),
    ("PIN 4821", "CREDENTIAL", ["4821"]),
    # user names
    ('{"login":"r_quint87"}', "USERNAME", ["r_quint87"]),
    ("cd /home/rquint/cv", "USERNAME", ["rquint"]),
    ("https://www.linkedin.com/in/rosa-quint-4a", "USERNAME", ["rosa-quint-4a"]),
    ("ask @rquint_87 about it", "USERNAME", ["@rquint_87"]),
]  # fmt: skip


@pytest.mark.parametrize(("text", "type", "expected"), FOUND)
def test_it_is_found_whole(
    protected: Callable[[str], list[tuple[str, str]]], text: str, type: str, expected: list[str]
) -> None:
    """Each value is one span of its type, from its first to its last character."""
    assert [found for kind, found in protected(text) if kind == type] == expected


LEFT_ALONE = [
    "Upgrade to version 10.4.2.1, bind to 0.0.0.0:8080 and use std::vector in C++.",
    "The documentation uses 192.0.2.7 as an example.",
    "Clauses B43, H1 and X9 apply as public policy; see section 4.2.1.",
    "Integrity: sha512-0AbLicM2x9. Store backups in S3, run EKS on C4 nodes.",
    "AN INTRODUCTORY NOTE",
    "article;stock\n7044182;19\n7044183;21",
    "ISBN 0-306-40615-2 and ISBN 978-0-306-40615-7, ISSN 2049-3630",
    "The id is 26c446d2-65a9-4eaa-9a70-53da2aded653.",
    "npm install lodash@4.17.21 react@18 @babel/core@7.2.0",
    "@dataclass\nclass Box:\n    pass",
    "Revenue rose from 1,240,500 to 2,417,300 EUR (12.5 %) in 2023.",
    "Due on 12.05.2024, paid 2024-05-14, in the years 2019-2021.",
    "Order 1234567890123 ships in 3 boxes of 250 x 40 mm.",
    "password: required. Token: none. PIN: see below.",
    "Every individual who applies must send an individual form.",
    "Name: see below. Dear Sir or Madam, Dr.: none. Tel: none. Customer: unknown. TODO: ask.",
    "The Kestrel 3000 boiler costs 45 at 3 Way Valves.",
    "Visit https://www.example.org/products/heating for more.",
    "In May the roses bloom, and hope will mark the summer.",
    "He will bill the grant in June; Grace periods end in August.",
    "The meeting is in Washington on Monday at 10:30:45.",
    "Room 4, floor 2, row 7, seat 12.",
    '{"text": "Sensor 40-1987 reads 12 cm more than the gauge."}',
    "Head of Field Service, Installation Engineer",
    "Report BW-I-2025-009, 4 July 2025.",
    "The cold store is in Lyon, the depot in Bergen.",
]


@pytest.mark.parametrize("text", LEFT_ALONE)
def test_it_names_nobody(protected: Callable[[str], list[tuple[str, str]]], text: str) -> None:
    """Versions, clauses, articles, dates, labels and ordinary words reach the model."""
    assert protected(text) == []
