"""Composition of discrete privacy-loss distributions by Fourier transform, as a lower bound.

As in `lattice`, with every error counted the other way: each weight is lowered by a bound on its
rounding error, and weight that a window misses is dropped, which only helps. But it is not gone:
the transform is periodic, so it reappears inside, and is subtracted where it weighs most.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from skdp.accounting.pld.grid.compose import (
    LARGEST_INDEX,
    TiltedLoss,
    convolve,
    largest_contribution,
    place_window,
    tilt_masses,
)
from skdp.accounting.pld.grid.estimates import WindowEstimate
from skdp.accounting.pld.pairs.base import Array, Indices

_UNIT_ROUNDOFF = 2.0**-53
_MASS_ERROR = 1e-13  # relative error of a probability, generously
_MOMENT_SLACK = 1e-6  # nats added to a Chernoff bound, far above the rounding of its moments
_SCALES = (0.25, 0.5, 1.0, 2.0)


@dataclass(frozen=True)
class LoweredLoss:
    """Weights below those of a composed distribution, tilted as those of `TiltedLoss`.

    ``stray`` bounds the weight among them that belongs elsewhere; ``infinite`` is a lower bound.
    """

    indices: Indices
    weights: Array
    log_moment: float
    infinite: float
    step: float
    tilt: float
    stray: float

    def delta(self, epsilon: float) -> float:
        """Return a lower bound on the hockey-stick divergence at ``epsilon``.

        Parameters
        ----------
        epsilon : float
            Privacy parameter in nats, counted from where the indices do.

        Returns
        -------
        float
            Divergence, at least ``infinite``.
        """
        first = int(np.searchsorted(self.indices, epsilon / self.step, side="right"))
        excess = np.maximum(self.indices[first:] * self.step - epsilon, 0.0)
        terms = self.weights[first:] * np.exp(-self.tilt * excess) * -np.expm1(-excess)
        total = float(np.sum(terms)) - self.stray * largest_contribution(self.tilt)
        if total <= 0.0:
            return self.infinite
        log_value = self.log_moment - self.tilt * epsilon + math.log(total)
        slack = 1e-12 + 8.0 * _UNIT_ROUNDOFF * (abs(self.log_moment) + abs(self.tilt * epsilon))
        return min(1.0, self.infinite + math.exp(min(log_value - slack, 0.0)))


def tilt_lowered(indices: Indices, masses: Array, step: float, tilt: float) -> TiltedLoss | None:
    """Tilt a dominated distribution of one release, so that its errors lower it.

    Parameters
    ----------
    indices : ndarray of int
        Losses in units of ``step``.
    masses : ndarray
        Their probabilities under P.
    step : float
        Distance of the grid's losses, in nats.
    tilt : float
        Exponent ``theta >= 0``.

    Returns
    -------
    TiltedLoss or None
        The tilted distribution; None if there is no mass.
    """
    if not np.any(masses > 0.0):
        return None
    loss = tilt_masses(indices, masses, 0.0, step, tilt)
    size = float(np.dot(loss.weights, np.abs(tilt * step * loss.indices)))
    slack = 64.0 * _UNIT_ROUNDOFF * (1.0 + size) + _MASS_ERROR
    return replace(loss, log_moment=loss.log_moment - slack)


def compose_lowered(
    parts: Sequence[tuple[TiltedLoss, int]],
    failure: float,
    exponents: WindowEstimate,
    log_infinite: float,
    log_alias: float,
    largest_size: int,
) -> LoweredLoss | None:
    """Convolve dominated distributions on one grid under one tilt, each a number of times.

    Parameters
    ----------
    parts : sequence of (TiltedLoss, int)
        Distributions with equal ``step`` and ``tilt``, and how often each is composed.
    failure : float
        Lower bound on the probability of an infinite loss.
    exponents : WindowEstimate
        Exponents of the Chernoff bounds that place the window.
    log_infinite, log_alias : float
        As for `lattice.compose`.
    largest_size : int
        Longest transform allowed.

    Returns
    -------
    LoweredLoss or None
        A lower bound on the composed distribution; None if losses are out of reach of integers.
    """
    step, tilt = parts[0][0].step, parts[0][0].tilt
    log_moment = math.fsum(count * loss.log_moment for loss, count in parts)
    window = place_window(parts, exponents, log_infinite, log_alias, largest_size)
    if max(abs(window.first), abs(window.first + window.size)) > LARGEST_INDEX:
        return None
    weights, error = convolve(parts, window.first, window.size)
    indices = np.arange(window.first, window.first + window.size, dtype=np.int64)
    return LoweredLoss(
        indices,
        np.maximum(weights - error, 0.0),
        log_moment,
        failure,
        step,
        tilt,
        _outside(parts, exponents, window.first, window.first + window.size - 1),
    )


def _outside(
    parts: Sequence[tuple[TiltedLoss, int]], exponents: WindowEstimate, first: int, last: int
) -> float:
    """Bound the tilted weight of a composition below ``first`` and above ``last``."""
    step, tilt = parts[0][0].step, parts[0][0].tilt
    total = 0.0
    smallest = sum(count * int(loss.indices[0]) for loss, count in parts)
    largest = sum(count * int(loss.indices[-1]) for loss, count in parts)
    sides = (
        (exponents.above, largest > last, last + 1),
        (-exponents.below, smallest < first, first),
    )
    for exponent, outside, end in sides:
        if not outside:
            continue
        log_bound = 0.0
        for scale in _SCALES:
            shifted = scale * exponent
            moment = math.fsum(
                count * (loss.log_moment_at(tilt + shifted) - loss.log_moment)
                for loss, count in parts
            )
            log_bound = min(log_bound, moment - shifted * step * end + _MOMENT_SLACK)
        total += math.exp(log_bound)
    return total
