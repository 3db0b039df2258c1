"""Trade-off functions of f-differential privacy from privacy profiles.

A test between two neighbours with false-alarm rate ``alpha`` misses with probability at least

    f(alpha) = sup over epsilon >= 0 of
        max(0, 1 - delta(epsilon) - e^epsilon alpha, e^-epsilon (1 - delta(epsilon) - alpha))

(Dong, Roth and Su, 2022, Proposition 6). Upper bounds on delta at a few epsilons bound ``f`` from
below. Upper bounds on ``f`` also need the epsilons in between. Delta is a convex function of
``e^epsilon``, so lines through neighbouring points of its graph, extended, are below it.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

_N_EPSILONS = 101
_LAST_DELTA = 1e-9  # the profile is followed until it has fallen to this
_ROUNDING = 1e-15  # above that of a line where it is in [0, 1]
LARGEST_EPSILON = 500.0  # e^epsilon must stay a number


def profile_grid(epsilon: Callable[[float], float]) -> Array:
    """Return epsilons that cover a profile."""
    last = epsilon(0.0)
    last = min(last if math.isfinite(last) else epsilon(_LAST_DELTA), LARGEST_EPSILON)
    return np.linspace(0.0, max(last, 1e-6), _N_EPSILONS)


def trade_off_lower(epsilons: Array, upper: Array, alphas: Array) -> Array:
    """Bound a trade-off function from below: the guarantee.

    `upper` bounds delta at `epsilons`, in nats. Returns miss rates at `alphas`.
    """
    found = _supremum(np.exp(epsilons), np.asarray(upper), alphas)
    return np.maximum(found - _ROUNDING, 0.0)


def trade_off_upper(epsilons: Array, lower: Array, upper: Array, alphas: Array) -> Array:
    """Bound a trade-off function from above: some test does at least as well.

    Delta is bounded at `epsilons`, increasing from 0. Returns miss rates at `alphas`.
    """
    gamma, low = np.exp(epsilons), np.asarray(lower)
    # Slopes of lines that stay below the graph to the right of each point, and to the left.
    widths = np.diff(gamma)
    # Exchanging the neighbours gives delta(1/gamma) = 1 - 1/gamma + delta(gamma)/gamma.
    mirrored = 1.0 - (1.0 - upper[1]) / gamma[1]
    first = (low[0] - mirrored) / (1.0 - 1.0 / gamma[1])
    rightward = np.concatenate([[first], (low[1:] - upper[:-1]) / widths])
    leftward = np.concatenate([(upper[1:] - low[:-1]) / widths, [0.0]])
    rightward, leftward = np.maximum(rightward, -1.0), np.minimum(leftward, 0.0)
    # Where the line from the left end of a cell meets the one from its right end, delta is least.
    a, b = rightward[:-1], leftward[1:]
    drop = low[:-1] - low[1:] + b * widths
    with np.errstate(divide="ignore", invalid="ignore"):
        offset = np.where(b != a, drop / (b - a), 0.0)
    offset = np.clip(np.nan_to_num(offset), 0.0, widths)
    middle = np.maximum(low[:-1] + a * offset, low[1:] + b * (offset - widths))
    # Beyond the last point the line falls until it meets zero.
    reach = low[-1] / -rightward[-1] if rightward[-1] < 0.0 else 0.0
    gammas = np.concatenate([gamma, gamma[:-1] + offset, [gamma[-1] + reach]])
    deltas = np.concatenate([low, middle, [0.0]])
    return np.minimum(1.0 - alphas, _supremum(gammas, deltas, alphas))


def _supremum(gamma: Array, delta: Array, alphas: Array) -> Array:
    """Return the largest of the supporting lines at every ``alpha``."""
    alpha = np.asarray(alphas, dtype=np.float64)[:, None]
    rest = 1.0 - delta
    lines = np.maximum(rest - gamma * alpha, (rest - alpha) / gamma)
    return np.clip(lines.max(axis=1), 0.0, 1.0)
