"""Certified suprema that the losses' constants are made of."""

from __future__ import annotations

import math

import numpy as np
from scipy.special import expit, lambertw

# Relative excess allowed in a certified supremum; it costs as much extra noise, no more.
_EXCESS = 1e-8
# Covers the rounding of exp, sin and cos in the evaluation of a bound.
ROUND_UP = 1.0 + 1e-14


def logistic_gradient_gap(weight_norm: float) -> float:
    r"""Return an upper bound on the difference of two logistic gradients in the unit ball.

    With rows in the unit ball and weights of norm at most ``weight_norm`` = W, the supremum over
    pairs of records is :math:`G(W) = \max_{0 \le t \le \pi/2} 2 \cos t\; \sigma(W \sin t)`. On a
    cell [a, b] the function is at most :math:`2 \cos a\; \sigma(W \sin b)`; cells are halved until
    the best such bound exceeds a value attained by at most a relative 1e-8.

    Parameters
    ----------
    weight_norm : float
        Bound on the norm of the weights; infinity is allowed and gives 2.

    Returns
    -------
    float
        A certified bound in [1, 2].
    """
    if not math.isfinite(weight_norm):
        return 2.0
    # Geometric edges: the maximiser lies near log(W)/W when W is large.
    edges = np.concatenate([[0.0], np.geomspace(1e-12, math.pi / 2, 400)])
    left, right = edges[:-1], edges[1:]
    while True:
        upper = 2.0 * np.cos(left) * expit(weight_norm * np.sin(right))
        attained = 2.0 * np.cos(left) * expit(weight_norm * np.sin(left))
        best = float(attained.max())
        if upper.max() <= best * (1.0 + _EXCESS):
            return min(2.0, float(upper.max()) * ROUND_UP)
        alive = upper > best * (1.0 + 0.5 * _EXCESS)
        left, right = left[alive], right[alive]
        middle = 0.5 * (left + right)
        left, right = np.concatenate([left, middle]), np.concatenate([middle, right])


def lambert_over_e(count: float) -> float:
    """Return W_0(count / e) rounded up: the maximum of ``count*d*e^-d / (1 + count*e^-d)``."""
    return float(lambertw(count / math.e).real) * ROUND_UP
