"""PDFs that no sample can be: one that wants a password, one that is only a picture."""

from __future__ import annotations

import pytest


def _pdf(*objects: str, trailer: str = "") -> bytes:
    """A PDF of these objects, numbered from 1, with the table that finds them."""
    body = b"%PDF-1.4\n"
    places = []
    for number, content in enumerate(objects, 1):
        places.append(len(body))
        body += f"{number} 0 obj\n{content}\nendobj\n".encode("latin-1")
    table = "".join(f"{place:010d} 00000 n \n" for place in places)
    count = len(objects) + 1
    head = f"xref\n0 {count}\n0000000000 65535 f \n{table}"
    end = f"{head}trailer\n<< /Size {count} /Root 1 0 R {trailer} >>\n"
    return body + f"{end}startxref\n{len(body)}\n%%EOF\n".encode("latin-1")


CATALOG = "<< /Type /Catalog /Pages 2 0 R >>"
PAGES = "<< /Type /Pages /Kids [3 0 R] /Count 1 >>"
PAGE = "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 200 200] /Contents 4 0 R >>"
RULED = "<< /Length 24 >>\nstream\n10 10 100 100 re f     \nendstream"


@pytest.fixture
def blank_pdf() -> bytes:
    """One page with a black square on it and no text."""
    return _pdf(CATALOG, PAGES, PAGE, RULED)


@pytest.fixture
def locked_pdf() -> bytes:
    """Standard encryption with keys that no empty password opens."""
    lock = f"<< /Filter /Standard /V 1 /R 2 /P -4 /O <{'ab' * 32}> /U <{'cd' * 32}> >>"
    ids = f"/Encrypt 5 0 R /ID [<{'01' * 16}> <{'01' * 16}>]"
    return _pdf(CATALOG, PAGES, PAGE, RULED, lock, trailer=ids)
