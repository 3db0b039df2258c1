"""Compiled scalar functions of the losses, shared by every kernel.

Margin losses are told apart by an integer ``kind`` and a float ``width`` so that one compiled
kernel serves them all: choosing by a branch costs nothing beside the exponential, while one
specialisation per loss would multiply the time spent compiling.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from skdp.losses.elementary import FAST, STRICT, exp_negative, log_one_plus
from skdp.losses.kinds import LOGISTIC, SMOOTHED_HINGE


@njit(cache=True, nogil=True, fastmath=STRICT)
def check_margin_kind(kind: int) -> None:
    """Refuse a number that no branch of the kernels stands for."""
    if kind != LOGISTIC and kind != SMOOTHED_HINGE:
        raise ValueError("Kernels do not know this kind of margin loss.")


@njit(cache=True, nogil=True, fastmath=STRICT)
def logistic_slope(margin: float) -> float:
    """Return the derivative of the logistic loss."""
    tail = exp_negative(abs(margin))
    return -(tail if margin >= 0.0 else 1.0) / (1.0 + tail)


@njit(cache=True, nogil=True, fastmath=STRICT)
def logistic_value(margin: float) -> float:
    """Return the logistic loss."""
    return max(-margin, 0.0) + log_one_plus(exp_negative(abs(margin)))


@njit(cache=True, nogil=True, fastmath=STRICT)
def hinge_slope(margin: float, width: float) -> float:
    """Return the derivative of the smoothed hinge loss."""
    return -0.5 * (min(max((1.0 - margin) / width, -1.0), 1.0) + 1.0)


@njit(cache=True, nogil=True, fastmath=STRICT)
def hinge_value(margin: float, width: float) -> float:
    """Return the smoothed hinge loss."""
    gap = 1.0 - margin
    # The parabola up to its end, then the line; both are smooth there.
    inner = min(max(gap, -width), width) + width
    return 0.25 * inner * inner / width + max(gap - width, 0.0)


@njit(cache=True, nogil=True, fastmath=FAST)
def slopes_in_place(
    kind: int, width: float, margins: np.ndarray, count: int, want_values: bool
) -> float:
    """Turn the first ``count`` margins into slopes; return the sum of their losses if wanted."""
    check_margin_kind(kind)
    total = 0.0
    if kind == LOGISTIC:
        if want_values:
            for k in range(count):
                total += logistic_value(margins[k])
        for k in range(count):
            margins[k] = logistic_slope(margins[k])
    else:
        if want_values:
            for k in range(count):
                total += hinge_value(margins[k], width)
        for k in range(count):
            margins[k] = hinge_slope(margins[k], width)
    return total


@njit(cache=True, nogil=True, fastmath=STRICT)
def margin_curvature(kind: int, width: float, margin: float) -> float:
    """Return the second derivative of a margin loss (a generalised one at the hinge's kinks)."""
    if kind == LOGISTIC:
        tail = exp_negative(abs(margin))
        return tail / ((1.0 + tail) * (1.0 + tail))
    return 0.5 / width if abs(1.0 - margin) <= width else 0.0


@njit(cache=True, nogil=True, fastmath=STRICT)
def evaluate_margins(
    kind: int, width: float, order: int, margins: np.ndarray, out: np.ndarray
) -> None:
    """Write the derivative of the given ``order`` (0, 1 or 2) of a margin loss into ``out``."""
    check_margin_kind(kind)
    for i in range(margins.size):
        m = margins[i]
        if order == 0:
            out[i] = logistic_value(m) if kind == LOGISTIC else hinge_value(m, width)
        elif order == 1:
            out[i] = logistic_slope(m) if kind == LOGISTIC else hinge_slope(m, width)
        else:
            out[i] = margin_curvature(kind, width, m)


@njit(cache=True, nogil=True, fastmath=STRICT)
def softmax_in_place(scores: np.ndarray, code: int, want_value: bool) -> float:
    """Turn ``scores`` into ``softmax(scores) - e_code``; return the cross-entropy loss if wanted.

    The entry of the true class is minus the sum of the others, which keeps its relative accuracy
    when the probability of the true class is close to one.
    """
    top = scores[0]
    for k in range(1, scores.size):
        top = max(top, scores[k])
    lead = top - scores[code]
    others = 0.0
    for k in range(scores.size):
        if k != code:
            scores[k] = exp_negative(top - scores[k])
            others += scores[k]
    own = exp_negative(lead)
    total = own + others
    for k in range(scores.size):
        scores[k] /= total
    scores[code] = -others / total
    if not want_value:
        return 0.0
    if lead == 0.0:
        return math.log1p(others)
    return lead + math.log(total)


@njit(cache=True, nogil=True, fastmath=STRICT)
def evaluate_softmax(
    scores: np.ndarray, codes: np.ndarray, gradient: np.ndarray, value: np.ndarray
) -> None:
    """Write cross-entropy losses and their gradients with respect to the scores, row by row."""
    for i in range(scores.shape[0]):
        gradient[i] = scores[i]
        value[i] = softmax_in_place(gradient[i], codes[i], True)
