"""The privacy profile of repeating a release a random number of times and keeping the best.

Notation: one run has the output distributions Q and Q' on two neighbours and the profile ``h`` as a
function of ``y = e^epsilon``, in both orders; ``t`` and ``t'`` are the probabilities that a run
beats a given output. The best of all runs has the densities ``m w(t) Q`` and ``m w(t') Q'`` with m
the expected number of runs and w convex and falling from 1 (`StoppingNumber`). Whatever the
outputs, ``t' <= tau(t)``, the smallest of all ``y t + h(y)``. So the profile at ``c = e^epsilon``
is at most ``m E' psi(Q / Q')`` with the convex

    psi(r) = max over t in [0, 1] of (w(t) r - c w(tau(t)))_+ ,

which is bounded by a sum of hockey sticks ``a_k (r - c s_k)_+`` whose slopes ``a_k`` add up to 1:

    delta(epsilon) <= m sum over k of a_k h(s_k e^epsilon) .

The maximum is taken over cells of t. In each, w is below its chord, and ``w(tau)``, the largest of
several convex functions, is above a tangent; both are linear, so that the ends of the cell suffice.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from skdp.accounting.numerics.stopping_numbers import Array, StoppingNumber

if TYPE_CHECKING:
    from skdp.accounting.pld.curves import ProfileCurve

_LARGEST_LOSS = 600.0  # of lines that bound tau; leaving some out is valid
_COARSE_CELLS, _CELLS = 400, 1600
_SMALLEST = 1e-280
_SMALL = 1e-3  # share of the scale of weights below which tau changes nothing
_WORTHWHILE = 0.5  # share of the value at a cell's middle that its tangent must keep at the ends
_ROUNDING = 1e-11


class SelectionProfile:
    """Bound the profile of the best of a random number of runs, from the curve of one."""

    def __init__(self, curve: ProfileCurve, number: StoppingNumber) -> None:
        self._curve = curve
        self._mean = number.mean
        slopes, heights = _lines(curve, number)
        slopes, heights = _envelope(slopes, heights)
        self._shares = np.diff(slopes, prepend=0.0)
        with np.errstate(divide="ignore"):
            self._shifts = np.log(np.diff(heights, prepend=0.0) / self._shares)

    def __call__(self, epsilon: float) -> float:
        """Return a bound on delta at ``epsilon >= 0``."""
        values = self._curve(epsilon + self._shifts)
        total = self._mean * float(np.dot(self._shares, values))
        return min(1.0, total * (1.0 + _ROUNDING))


def _lines(curve: ProfileCurve, number: StoppingNumber) -> tuple[Array, Array]:
    """Return lines ``a r - c b`` whose largest bounds psi, as arrays of a and of b."""
    nodes = _cells(curve, number.scale)
    left, right = nodes[:-1], nodes[1:]
    middle = 0.5 * (left + right)
    growth, offset = _steepest(curve, np.concatenate([middle, right]))
    at_middle = growth[: len(middle)] * middle + offset[: len(middle)]
    value = number.weight(at_middle)
    slope = -value * number.log_slope(at_middle) * growth[: len(middle)]
    drop = 0.5 * slope * (right - left)
    rough = -drop > (1.0 - _WORTHWHILE) * value
    lowest = number.weight(np.minimum(growth[len(middle) :] * right + offset[len(middle) :], 1.0))
    weights = number.weight(nodes)
    slopes = np.concatenate([weights[:-1], np.where(rough, weights[:-1], weights[1:])])
    heights = np.concatenate(
        [np.where(rough, lowest, value - drop), np.where(rough, lowest, value + drop)]
    )
    return slopes, heights * (1.0 - _ROUNDING)


def _cells(curve: ProfileCurve, scale: float) -> Array:
    """Return the ends of cells of t, fine ones from where tau begins to matter."""
    tiny = np.geomspace(_SMALLEST, 0.5, _CELLS)
    growth, offset = _steepest(curve, tiny)
    negligible = growth * tiny + offset < _SMALL * scale
    start = float(np.max(tiny, where=negligible, initial=_SMALLEST))
    coarse = np.geomspace(_SMALLEST, start, _COARSE_CELLS, endpoint=False)
    nodes = np.concatenate([[0.0], coarse, np.geomspace(start, 1.0, _CELLS)])
    nodes[-1] = 1.0
    return np.unique(nodes)


def _steepest(curve: ProfileCurve, t: Array) -> tuple[Array, Array]:
    """Return slopes and offsets of lines in t, the smallest of which is tau."""
    kept = curve.epsilons <= _LARGEST_LOSS
    epsilons, values = curve.epsilons[kept], curve.values[kept]
    if not len(values):
        return np.zeros(len(t)), np.ones(len(t))
    up = np.exp(epsilons)
    # First the line that is 1 everywhere, then the curve's half below epsilon = 0.
    y = np.concatenate([[0.0], 1.0 / up[::-1], up])
    mirrored = -np.expm1(-epsilons) + values / up
    offsets = np.concatenate([[1.0], mirrored[::-1], values]) * (1.0 + _ROUNDING)
    # How steeply the curve falls from each y to the next; the best line for t is where it falls by
    # t. A segment's mirror image falls by 1 less the value at y = 0 of the line through it.
    drops = -np.diff(values) / np.expm1(np.diff(epsilons))
    falls = np.concatenate(
        [
            [1.0 - values[-1]],
            (1.0 - values[:-1] - drops)[::-1],
            [(1.0 - values[0]) / (1.0 + up[0])],
            drops / up[:-1],
        ]
    )
    at = np.searchsorted(-np.minimum.accumulate(falls), -t, side="left")
    return y[at], offsets[at]


def _envelope(slopes: Array, heights: Array) -> tuple[Array, Array]:
    """Return the lines that are somewhere the largest, and positive, by increasing slope."""
    order = np.lexsort((heights, slopes))
    kept: list[tuple[float, float]] = [(0.0, 0.0)]
    for a, b in zip(slopes[order].tolist(), heights[order].tolist(), strict=True):
        while len(kept) > 1 and a == kept[-1][0] and b <= kept[-1][1]:
            kept.pop()
        if a <= kept[-1][0]:
            continue
        while len(kept) > 1:
            (a0, b0), (a1, b1) = kept[-2], kept[-1]
            if (b1 - b0) / (a1 - a0) < (b - b1) / (a - a1):
                break
            kept.pop()
        kept.append((a, b))
    found = np.array(kept[1:])
    return found[:, 0], found[:, 1]
