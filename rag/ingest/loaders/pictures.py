"""Pages of a PDF as pictures for the OCR program (PGM, made without a file)."""

from __future__ import annotations

import math
from typing import Any

_RESOLUTION = 300
_MOST_PIXELS = 25_000_000
_POINTS = 72


def page_picture(page: Any) -> tuple[bytes, int]:
    """A page in grey and its resolution; no bytes when all of it is one colour."""
    width, height = page.get_size()
    most = math.sqrt(_MOST_PIXELS / max(1.0, width * height))
    scale = min(_RESOLUTION / _POINTS, most)
    bitmap = page.render(scale=scale, grayscale=True)
    try:
        rows = bytes(bitmap.buffer)
        line, wide, high = bitmap.stride, bitmap.width, bitmap.height
    finally:
        bitmap.close()
    pixels = b"".join(rows[n * line : n * line + wide] for n in range(high))
    if not pixels or pixels.count(pixels[:1]) == len(pixels):
        return b"", 0
    return b"P5 %d %d 255\n" % (wide, high) + pixels, max(70, round(scale * _POINTS))
