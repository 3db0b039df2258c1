"""Gauss-Legendre rules, correctly rounded."""

from __future__ import annotations

from decimal import Decimal, localcontext
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

_DIGITS = 50
_NEWTON_STEPS = 2  # from double precision


@lru_cache(maxsize=8)
def gauss_legendre(count: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the nodes and weights of a Gauss-Legendre rule of even length on [-1, 1].

    NumPy's own has weights that are off by thousands of units in the last place.
    """
    guesses, _ = np.polynomial.legendre.leggauss(count)
    points, weights = np.empty(count), np.empty(count)
    with localcontext() as context:
        context.prec = _DIGITS
        for i, guess in enumerate(guesses[count // 2 :].tolist()):
            x = Decimal(guess)
            for _ in range(_NEWTON_STEPS):
                x -= _polynomial(count, x)[0] / _polynomial(count, x)[1]
            slope = _polynomial(count, x)[1]
            points[count // 2 + i] = float(x)
            weights[count // 2 + i] = float(2 / ((1 - x * x) * slope * slope))
    points[: count // 2] = -points[: count // 2 - 1 : -1]
    weights[: count // 2] = weights[: count // 2 - 1 : -1]
    return points, weights


@lru_cache(maxsize=8)
def unit_gauss_legendre(count: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the nodes and weights of the rule on [0, 1]."""
    nodes, weights = gauss_legendre(count)
    return 0.5 * (nodes + 1.0), 0.5 * weights


def _polynomial(count: int, x: Decimal) -> tuple[Decimal, Decimal]:
    """Return the Legendre polynomial and its derivative."""
    before, value = Decimal(1), x
    for k in range(2, count + 1):
        before, value = value, ((2 * k - 1) * x * value - (k - 1) * before) / k
    return value, count * (x * value - before) / (x * x - 1)
