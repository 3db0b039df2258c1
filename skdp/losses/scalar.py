"""Compiled scalar functions of the losses, shared by every kernel.

Kernels take a loss as a named tuple of its numbers, whose class names the scalar functions: numba
compiles a kernel once for each such class and keeps it on disk, which it cannot do for kernels that
are given functions. Its `family` says how a record enters: by its "margin", the product of score
and label; by its "score", beside a target of any kind; or by all scores of the "softmax".
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numba.extending import overload

from skdp.losses.elementary import FAST, STRICT, exp_negative, log_one_plus


@njit(cache=True, nogil=True, fastmath=STRICT)
def logistic_value(numbers: Logistic, margin: float, target: float) -> float:
    """Return the logistic loss."""
    return max(-margin, 0.0) + log_one_plus(exp_negative(abs(margin)))


@njit(cache=True, nogil=True, fastmath=STRICT)
def logistic_slope(numbers: Logistic, margin: float, target: float) -> float:
    """Return the derivative of the logistic loss."""
    tail = exp_negative(abs(margin))
    return -(tail if margin >= 0.0 else 1.0) / (1.0 + tail)


@njit(cache=True, nogil=True, fastmath=STRICT)
def logistic_curvature(numbers: Logistic, margin: float, target: float) -> float:
    """Return the second derivative of the logistic loss."""
    tail = exp_negative(abs(margin))
    return tail / ((1.0 + tail) * (1.0 + tail))


class Logistic(NamedTuple("Logistic", [])):
    """The logistic loss."""

    family = "margin"
    value, slope, curvature = logistic_value, logistic_slope, logistic_curvature


@njit(cache=True, nogil=True, fastmath=STRICT)
def hinge_value(numbers: SmoothedHinge, margin: float, target: float) -> float:
    """Return the smoothed hinge loss."""
    gap, width = 1.0 - margin, numbers.width
    # The parabola up to its end, then the line; both are smooth there.
    inner = min(max(gap, -width), width) + width
    return 0.25 * inner * inner / width + max(gap - width, 0.0)


@njit(cache=True, nogil=True, fastmath=STRICT)
def hinge_slope(numbers: SmoothedHinge, margin: float, target: float) -> float:
    """Return the derivative of the smoothed hinge loss."""
    return -0.5 * (min(max((1.0 - margin) / numbers.width, -1.0), 1.0) + 1.0)


@njit(cache=True, nogil=True, fastmath=STRICT)
def hinge_curvature(numbers: SmoothedHinge, margin: float, target: float) -> float:
    """Return the second derivative of the smoothed hinge loss, a generalised one at its kinks."""
    return 0.5 / numbers.width if abs(1.0 - margin) <= numbers.width else 0.0


class SmoothedHinge(NamedTuple("SmoothedHinge", [("width", float)])):
    """The smoothed hinge loss."""

    family = "margin"
    value, slope, curvature = hinge_value, hinge_slope, hinge_curvature


class Softmax(NamedTuple("Softmax", [("n_classes", int)])):
    """The softmax loss, which has a kernel of its own."""

    family = "softmax"


def _choose(choice: Callable[[Any], Callable[..., float]]) -> Callable[..., float]:
    """Return what compiled code calls for the function that the class of numbers chooses."""

    def stub(numbers: Any, entry: Any, target: Any) -> Any:
        raise NotImplementedError("scalar functions are chosen in compiled code only")

    @overload(stub)
    def choose(numbers: Any, entry: Any, target: Any) -> Any:
        function = choice(numbers.instance_class)

        def call(numbers: Any, entry: Any, target: Any) -> Any:
            return function(numbers, entry, target)

        return call

    return stub


@njit(cache=True, nogil=True, fastmath=STRICT)
def apply_sign(numbers: Any, entry: float, target: float) -> float:
    """Return a score as a margin, or a derivative in the margin as one in the score."""
    return target * entry


@njit(cache=True, nogil=True, fastmath=STRICT)
def ignore_sign(numbers: Any, entry: float, target: float) -> float:
    """Return the score, or the derivative in it."""
    return entry


in_terms_of = _choose(lambda loss: apply_sign if loss.family == "margin" else ignore_sign)
loss_value = _choose(lambda loss: loss.value)
loss_slope = _choose(lambda loss: loss.slope)
loss_curvature = _choose(lambda loss: loss.curvature)


@njit(cache=True, nogil=True, fastmath=FAST)
def slopes_in_place(
    numbers: Any, entries: np.ndarray, targets: np.ndarray, count: int, want_values: bool
) -> float:
    """Turn margins, or scores, into slopes in them; return the sum of the losses if wanted."""
    total = 0.0
    if want_values:
        for k in range(count):
            total += loss_value(numbers, entries[k], targets[k])
    for k in range(count):
        entries[k] = loss_slope(numbers, entries[k], targets[k])
    return total


@njit(cache=True, nogil=True, fastmath=STRICT)
def evaluate_scores(
    numbers: Any, order: int, scores: np.ndarray, targets: np.ndarray, out: np.ndarray
) -> None:
    """Write the derivative of the given ``order`` (0, 1 or 2) in the score into ``out``."""
    for i in range(scores.size):
        entry = in_terms_of(numbers, scores[i], targets[i])
        if order == 0:
            out[i] = loss_value(numbers, entry, targets[i])
        elif order == 1:
            out[i] = in_terms_of(numbers, loss_slope(numbers, entry, targets[i]), targets[i])
        else:
            out[i] = loss_curvature(numbers, entry, targets[i])


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
