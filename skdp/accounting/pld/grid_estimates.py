"""Saddle-point estimates of a composed privacy loss.

They are not bounds. They choose the tilt, the grid and the windows of the rigorous composition,
which is valid for any choice.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from scipy.special import erfcx

from skdp.accounting.pld.pairs.base import Array, Pair

_LARGEST_TILT = 60.0  # in units of the inverse standard deviation of the tilted loss
_DOUBLINGS = 40  # of a tilt, beyond which lists of losses are too coarse to be tilted further
_HALVINGS = 24
_SMALLEST = 1e-290  # of deviations, and of what logarithms are taken of

Pairs = Sequence[tuple[Pair, int]]


def atoms_cumulants(losses: Array, masses: Array, tilt: float) -> tuple[float, float, float]:
    """Return log E[e^(tilt L)] in nats, and two derivatives."""
    kept = masses > 0.0
    return _cumulants(losses[kept], np.log(masses[kept]), tilt)


def _cumulants(losses: Array, log_masses: Array, tilt: float) -> tuple[float, float, float]:
    exponents = log_masses + tilt * losses
    top = float(np.max(exponents))
    weights = np.exp(exponents - top)
    total = float(np.sum(weights))
    mean = float(np.dot(weights, losses)) / total
    variance = float(np.dot(weights, (losses - mean) ** 2)) / total
    return top + math.log(total), mean, variance


class WindowEstimate(NamedTuple):
    """Exponents of Chernoff bounds for a window; positive ones are valid.

    ``plain`` is for P's upper tail; ``above`` and ``below`` are distances from the tilt. ``width``
    is the estimated width in nats.
    """

    plain: float
    above: float
    below: float
    width: float


class LossEstimate:
    """Cumulants of a composed loss under P, from coarse lists.

    Each release may lack a probability of ``tail``.
    """

    def __init__(self, pairs: Pairs, tail: float) -> None:
        self._parts: list[tuple[Array, Array, int]] = []
        for pair, count in pairs:
            losses, masses = pair.sketch(tail)
            kept = masses > 0.0
            self._parts.append((losses[kept], np.log(masses[kept]), count))
        self.deviation = math.sqrt(self.cumulants(0.0)[2])

    @property
    def flat(self) -> float:
        """The tilt below which tilting makes no difference."""
        return 1.0 / max(self.deviation, _SMALLEST)

    def cumulants(self, tilt: float) -> tuple[float, float, float]:
        """Return log moment, mean and variance of the tilted loss."""
        k = mean = variance = 0.0
        for losses, log_masses, count in self._parts:
            part = _cumulants(losses, log_masses, tilt)
            k, mean, variance = (
                k + count * part[0],
                mean + count * part[1],
                variance + count * part[2],
            )
        return k, mean, max(variance, 1e-300)

    def _log_moments(self, tilts: Array) -> Array:
        total = np.zeros(len(tilts))
        for losses, log_masses, count in self._parts:
            exponents = log_masses + tilts[:, None] * losses
            top = np.max(exponents, axis=1)
            total += count * (top + np.log(np.sum(np.exp(exponents - top[:, None]), axis=1)))
        return total

    def log_delta(self, tilt: float) -> tuple[float, float]:
        """Return estimates of log delta and epsilon for the saddle point ``tilt``."""
        k, mean, variance = self.cumulants(tilt)
        s = math.sqrt(0.5 * variance)
        factor = 0.5 * float(erfcx(tilt * s) - erfcx((tilt + 1.0) * s))
        return k - tilt * mean + math.log(max(factor, 1e-300)), mean

    def tilt_for_delta(self, delta: float) -> float:
        """Return the tilt for about a delta; 0 if below the mean."""
        target = math.log(delta)
        return self._bisect(lambda tilt: self.log_delta(tilt)[0] > target)

    def tilt_for_epsilon(self, epsilon: float) -> float:
        """Return the tilt with mean ``epsilon``; 0 if at or above it."""
        return self._bisect(lambda tilt: self.cumulants(tilt)[1] < epsilon)

    def _bisect(self, too_small: Callable[[float], bool]) -> float:
        """Find finely where a predicate turns false, as heavy tails turn suddenly."""
        if not too_small(0.0):
            return 0.0
        low, high = 0.0, self.flat
        for _ in range(_DOUBLINGS):
            if not too_small(high):
                break
            # With a heavy tail the variance may grow a lot within the last doubling, which is then
            # still searched.
            if high**2 * self.cumulants(high)[2] > _LARGEST_TILT**2:
                return high
            low, high = high, 2.0 * high
        else:
            return low
        for _ in range(_HALVINGS):
            middle = 0.5 * (low + high)
            if too_small(middle):
                low = middle
            else:
                high = middle
        return 0.5 * (low + high)

    def window(self, tilt: float, log_infinite: float, log_alias: float) -> WindowEstimate:
        """Estimate the place of a window that omits little.

        Arguments are logs of P's probability above, and of tilted ones on either side.
        """
        k, _, variance = self.cumulants(tilt)
        # With a heavy tail the best exponents are far below those of a Gaussian, hence the range.
        scales = np.geomspace(3e-4, 4.0, 24) * math.sqrt(-2.0 * log_infinite / variance)
        up = self._log_moments(tilt + scales)
        plain = (up - log_infinite) / (tilt + scales)
        above = (up - k - log_alias) / scales
        below = (k - self._log_moments(tilt - scales) + log_alias) / scales
        return WindowEstimate(
            tilt + float(scales[np.argmin(plain)]),
            float(scales[np.argmin(above)]),
            float(scales[np.argmax(below)]),
            float(max(np.min(plain), np.min(above)) - np.max(below)),
        )
