"""The few statistics that a report needs, each with its formula.

Everything takes plain numbers and returns plain numbers; what cannot be computed
is ``None``, never NaN, so that a report stays strict JSON.
"""

from __future__ import annotations

import math
from collections.abc import Sequence


def mean(values: Sequence[float]) -> float | None:
    """``sum(x) / n``; ``None`` for no values."""
    return math.fsum(values) / len(values) if values else None


def percentile(values: Sequence[float], q: float) -> float | None:
    """The ``q``-th percentile (0-100) by linear interpolation between order statistics.

    With the values sorted as ``x[0..n-1]`` and ``h = (n - 1) q / 100``:
    ``x[floor(h)] + (h - floor(h)) (x[floor(h) + 1] - x[floor(h)])`` (Hyndman and Fan 1996,
    type 7). ``None`` for no values.
    """
    if not 0 <= q <= 100:
        raise ValueError("a percentile lies between 0 and 100")
    if not values:
        return None
    ordered = sorted(values)
    h = (len(ordered) - 1) * q / 100
    low = math.floor(h)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (h - low) * (ordered[high] - ordered[low])


def median(values: Sequence[float]) -> float | None:
    """The 50th percentile."""
    return percentile(values, 50)


def wilson(successes: int, trials: int, z: float = 1.959963984540054) -> tuple[float, float] | None:
    """The Wilson score interval of a proportion, 95 % by default (Wilson 1927).

    With ``p = successes / trials``::

        centre = (p + z^2 / 2n) / (1 + z^2 / n)
        half   = z sqrt(p (1 - p) / n + z^2 / 4n^2) / (1 + z^2 / n)

    and the interval ``(centre - half, centre + half)``, cut to 0-1. Unlike the normal
    approximation it says something at 0 of n. ``None`` for no trials.
    """
    if not 0 <= successes <= trials:
        raise ValueError("successes lie between 0 and the number of trials")
    if trials == 0:
        return None
    p, n, z2 = successes / trials, trials, z * z
    scale = 1 + z2 / n
    centre = (p + z2 / (2 * n)) / scale
    half = z * math.sqrt(p * (1 - p) / n + z2 / (4 * n * n)) / scale
    return max(0.0, centre - half), min(1.0, centre + half)


def slope(x: Sequence[float], y: Sequence[float]) -> float | None:
    """The least-squares slope ``sum((x - mx)(y - my)) / sum((x - mx)^2)``.

    ``None`` when fewer than two different ``x`` are given.
    """
    if len(x) != len(y):
        raise ValueError("as many x as y are needed")
    if len(set(x)) < 2:
        return None
    mx, my = math.fsum(x) / len(x), math.fsum(y) / len(y)
    across = math.fsum((a - mx) * (b - my) for a, b in zip(x, y, strict=True))
    return across / math.fsum((a - mx) ** 2 for a in x)
