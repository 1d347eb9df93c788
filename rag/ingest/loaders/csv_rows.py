"""CSV: every row becomes one line ``header: value; header: value``, so values keep context."""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from collections.abc import Iterator

from rag.errors import Malformed, TooLarge
from rag.ingest.limits import BoundedText, Limits
from rag.ingest.loaders.read import Read

_DELIMITERS = ",;\t|"
_SAMPLE_CHARS = 65_536
_SAMPLE_ROWS = 100
_DECLARED = re.compile(r"sep=(.)\n", re.I)
_SPACES = re.compile(r"\s+")
_NO_HEADER = re.compile(r"^[\W\d_]*\d[\W\d_]*$|@|^\W*$")
"""What no column is called: a bare number, an amount, a date, an e-mail address, nothing."""


def read_csv(text: str, limits: Limits) -> Read:
    """Rows as lines. Raises ``TooLarge`` past the limits on rows, columns or characters."""
    limits.admit_source_text(text)
    declared = _DECLARED.match(text)
    body = text[declared.end() :] if declared else text
    delimiter = declared[1] if declared else _delimiter(body)
    written = BoundedText(limits.characters)
    header: list[str] | None = None
    for n, row in enumerate(_rows(body, delimiter, limits)):
        if n == 0 and is_header(row):
            header = row
            continue
        written.add(row_line(header, row) + "\n")
    if written.length == 0 and header:
        written.add("; ".join(filter(None, header)) + "\n")
    return Read(written.whole())


def _rows(text: str, delimiter: str, limits: Limits) -> Iterator[list[str]]:
    # the limit is the process's; the text's own length bounds every field already
    csv.field_size_limit(max(csv.field_size_limit(), limits.characters * limits.markup))
    try:
        count = 0
        for row in csv.reader(io.StringIO(text, newline=""), delimiter=delimiter):
            cells = [_SPACES.sub(" ", cell).strip() for cell in row[: limits.columns + 1]]
            if len(row) > limits.columns:
                raise TooLarge(f"A table has more than {limits.columns} columns.")
            if not any(cells):
                continue
            count += 1
            if count > limits.rows:
                raise TooLarge(f"A table has more than {limits.rows} rows.")
            yield cells
    except csv.Error:
        raise Malformed("The document is no CSV that can be read.") from None


def _delimiter(text: str) -> str:
    """The delimiter that cuts most rows into the same number of columns, at least two."""
    sample = text[:_SAMPLE_CHARS]
    if len(sample) < len(text):
        sample = sample[: sample.rfind("\n") + 1] or sample
    return max(_DELIMITERS, key=lambda delimiter: _agreement(sample, delimiter))


def _agreement(sample: str, delimiter: str) -> tuple[float, int]:
    widths: Counter[int] = Counter()
    try:
        for row in csv.reader(io.StringIO(sample, newline=""), delimiter=delimiter):
            widths[len(row)] += bool(row)
            if widths.total() >= _SAMPLE_ROWS:
                break
    except csv.Error:
        return 0.0, 0
    wide = [(count, width) for width, count in widths.items() if width > 1]
    if not wide:
        return 0.0, 0
    count, width = max(wide)
    return count / widths.total(), width


def is_header(row: list[str]) -> bool:
    """Names of columns: none empty or looking like data, no two alike."""
    filled = [cell for cell in row if cell]
    return (
        len(row) > 1
        and len(filled) >= max(2, len(row) - 1)
        and len({cell.casefold() for cell in filled}) == len(filled)
        and not any(_NO_HEADER.search(cell) or len(cell) > 100 for cell in filled)
    )


def row_line(header: list[str] | None, row: list[str]) -> str:
    """``name: value; name: value``, empty cells left out."""
    names = header or []
    cells = []
    for n, value in enumerate(row):
        name = names[n] if n < len(names) else ""
        if value:
            cells.append(f"{name}: {value}" if name else value)
    return "; ".join(cells)
