"""Certified suprema that the losses' constants are made of."""

from __future__ import annotations

import math

import numpy as np
from scipy.special import expit, lambertw

# Relative excess allowed in a certified supremum; it costs as much extra noise, no more.
_EXCESS = 1e-8
# Cells have the width of a rounding by then; whatever their number, they bound the supremum.
_HALVINGS = 100
# Covers the rounding of exp, sin and cos in the evaluation of a bound.
ROUND_UP = 1.0 + 1e-14


def logistic_gradient_gap(weight_norm: float) -> float:
    """Return an upper bound on the difference of two logistic gradients in the unit ball."""
    # For weights of norm at most W it is the largest of 2 cos(t) sigma(W sin t), 0 <= t <= pi/2. On
    # a cell [a, b] that is at most 2 cos(a) sigma(W sin b); cells are halved until the largest of
    # these bounds exceeds a value that is attained by at most a relative 1e-8.
    if not math.isfinite(weight_norm):
        return 2.0
    # Geometric edges: the maximiser lies near log(W)/W when W is large.
    edges = np.concatenate([[0.0], np.geomspace(1e-12, math.pi / 2, 400)])
    left, right = edges[:-1], edges[1:]
    for _ in range(_HALVINGS):
        upper = 2.0 * np.cos(left) * expit(weight_norm * np.sin(right))
        attained = 2.0 * np.cos(left) * expit(weight_norm * np.sin(left))
        best = float(attained.max())
        if upper.max() <= best * (1.0 + _EXCESS):
            break
        alive = upper > best * (1.0 + 0.5 * _EXCESS)
        left, right = left[alive], right[alive]
        middle = 0.5 * (left + right)
        left, right = np.concatenate([left, middle]), np.concatenate([middle, right])
    return min(2.0, float(upper.max()) * ROUND_UP)


def lambert_over_e(count: float) -> float:
    """Return W_0(count / e) rounded up: the maximum of ``count*d*e^-d / (1 + count*e^-d)``."""
    return float(lambertw(count / math.e).real) * ROUND_UP
