"""Powers of contraction factors near 1, without cancellation."""

from __future__ import annotations

import math


def power(gap: float, exponent: int) -> tuple[float, float]:
    """Return ``c^k`` and ``1 - c^k`` for ``c = 1 - gap``, both without cancellation."""
    if gap == 0.0 or exponent == 0:
        return 1.0, 0.0
    if gap >= 1.0:
        return 0.0, 1.0
    logarithm = exponent * math.log1p(-gap)
    return math.exp(logarithm), -math.expm1(logarithm)


def sum_of_powers(gap: float, count: int) -> float:
    """Return ``1 + c + ... + c^(count - 1)`` for ``c = 1 - gap``."""
    return float(count) if gap == 0.0 else power(gap, count)[1] / gap


def squeeze(gap: float, count: int) -> float:
    """Return ``1 / (1 + c^2 + ... + c^(2 count - 2))`` for ``c = 1 - gap``.

    A distance of 1, left at the end of `count` contracting steps with unit noise, can be made up
    for by these steps at the expense of this squared Gaussian-DP parameter.
    """
    return 1.0 / count if gap == 0.0 else gap * (2.0 - gap) / power(gap, 2 * count)[1]
