"""Bounds on the privacy profile of objective perturbation if a protected unit has several rows.

All names and numbers of theorems are those of ``docs/proofs/objective_perturbation_units.md``:
a loss is at most a constant plus h, and h is compared with the loss Y of a Gaussian mechanism.
Whatever is computed is rounded so that the bound rises.
"""

from __future__ import annotations

import math
import sys
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from scipy.special import erfcx, ndtr

from skdp.accounting.numerics import gaussian_profile
from skdp.accounting.numerics.objective_profile import (
    CUTS,
    LARGEST_EPSILON,
    by_moments,
    by_subsets,
    passed_losses,
)
from skdp.choices import Adjacency

_TINY = sys.float_info.min
_FAR = 38.0  # deviations beyond which a normal density is below the smallest double
_LARGEST_MU = 1e5  # beyond, nothing is protected below the largest epsilon
# Where calls on h are compared with those on Y, in deviations above the first such place.
_PLACES = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 9.0, 14.0, 20.0)
_STEPS = 60  # of Newton's method
_NOTHING = 1e-10  # a share of delta
_USELESS = -50.0  # an epsilon at which a delta is 1


def _rounding(mu: float, start: float) -> float:
    """Return a relative error of tail probabilities and calls, that of the arguments included."""
    a = abs(start / mu - 0.5 * mu)
    return 1e-15 * (8.0 + 4.0 * min(a, _FAR) ** 2 + (min(a, _FAR) + 2.0) * (abs(start) / mu + mu))


def call_bounds(mu: float, start: float) -> tuple[float, float]:
    """Return a lower and an upper bound on E(Y - start)_+, where Y ~ N(mu^2/2, mu^2)."""
    a = start / mu - 0.5 * mu
    if a > _FAR:
        return 0.0, _TINY
    density = math.exp(-0.5 * a * a) / math.sqrt(2.0 * math.pi)
    if a <= 0.0:
        value = mu * (density - a * float(ndtr(-a)))
    else:
        mills = math.sqrt(0.5 * math.pi) * float(erfcx(a / math.sqrt(2.0)))
        value = mu * density * (1.0 - a * mills)
    error = min(1.0, _rounding(mu, start))
    return max(0.0, value * (1.0 - error)), value * (1.0 + error) + _TINY


def _gaussian(mu: float, epsilon: float) -> tuple[float, float]:
    """Return bounds on the profile of a Gaussian mechanism at any real epsilon."""
    low, high = gaussian_profile.delta_bounds(mu, abs(epsilon))
    if epsilon >= 0.0:
        return low, high
    above, factor = -math.expm1(epsilon), math.exp(epsilon)
    return (above + factor * low) * (1.0 - 1e-15), min(1.0, (above + factor * high) * (1.0 + 1e-15))


def shift(mu: float, excess: float, start: float, surplus: float = 0.0) -> float:
    """Return s with ``E(1 - exp(excess' - h))_+ <= delta_G(excess' - s)`` from excess on (Lemma 3).

    `surplus` bounds ``E(h - start)_+ - E(Y - start)_+``. Infinite if no such s is found.
    """
    slope = float(ndtr(0.5 * mu - start / mu)) * (1.0 - min(1.0, _rounding(mu, start)))
    base = call_bounds(mu, start)[1]
    trial, failed, best = 0.0, 0.0, math.inf
    for _ in range(_STEPS):
        low = _gaussian(mu, excess - trial)[0]
        gained = max(trial * slope, call_bounds(mu, start - trial)[0] - base)
        lacking = call_bounds(mu, excess - trial)[1] - low + surplus - gained
        failed, best = (failed, trial) if lacking <= 0.0 else (trial, best)
        rising = float(ndtr(0.5 * mu - (start - trial) / mu)) - low
        if not rising > 0.0:
            break
        trial = (trial + lacking / rising) * (1.0 + 1e-13)
        if not failed <= trial <= best:
            trial = 0.5 * (failed + best)
        if excess - trial < _USELESS or abs(best - trial) <= 1e-11 * trial:
            break
    return best


class _Law(NamedTuple):
    """What is known of a loss: it is at most `constant` plus an h that Theorem 4 is about."""

    constant: float
    mu: float
    starts: tuple[float, ...]
    surpluses: tuple[float, ...]

    def profile(self, epsilon: float, spread: float, best: float) -> float:
        """Bound delta, or return the best that is known if that is less; see `UnitObjective`."""
        excess = epsilon - self.constant
        both = math.hypot(self.mu, spread) * (1.0 + 1e-15)
        least = _gaussian(both, excess)[1]
        if least >= best:
            return best
        if spread == 0.0:
            shifted = _gaussian(self.mu, excess - self._shift(excess))[1]
            return min(best, self._below(excess), shifted)
        for loss, tail in passed_losses(spread):
            best = min(best, self._below(excess - loss) + tail)
        tails = [float(ndtr(0.5 * spread - cut)) * (1.0 + 1e-12) for cut in CUTS]
        for k in reversed(range(len(CUTS))):
            if k > 0 and tails[k - 1] < _NOTHING * least:
                continue  # a nearer cut has next to no tail either
            if tails[k] >= best:
                break
            moved = self._shift(excess - CUTS[k] * spread)
            best = min(best, _gaussian(both, excess - moved)[1] + tails[k])
        return best

    def _shift(self, excess: float) -> float:
        """Return the least s of Lemma 3 among a few places, the same ones at any epsilon."""
        pairs = zip(self.starts, self.surpluses, strict=True)
        return min(
            (shift(self.mu, excess, *pair) for pair in pairs if pair[0] < excess), default=math.inf
        )

    def _below(self, excess: float) -> float:
        """Bound delta by what is known at the first place, and by 1 far below it."""
        largest = min(1.0, call_bounds(self.mu, self.starts[0])[1] + self.surpluses[0])
        lower = min(0.0, excess - self.starts[0])
        return min(1.0, math.exp(lower) * largest - math.expm1(lower) + 1e-14)


@lru_cache(maxsize=32)
def _laws(objective: UnitObjective) -> tuple[_Law, ...]:
    """Return everything that is known of the loss between neighbours."""
    moved = 1.0 if objective.adjacency == "add-remove" else 2.0  # units' gradients
    mu, outputs, constant = objective.mu * moved, objective.outputs, objective.curvature
    if objective.rows is not None:
        constant = objective.rows * math.log1p(constant / objective.rows)
    constant *= outputs * (1.0 + 1e-15)
    if objective.slope == "any-sign":
        starts = tuple(0.5 * mu * mu + mu * place for place in _PLACES)
        return (_Law(constant, mu, starts, tuple(call_bounds(mu, t)[1] for t in starts)),)
    if outputs > 1:
        total = mu * math.sqrt(outputs) * (1.0 + 1e-15)
        mean = outputs * call_bounds(mu, 0.0)[1]
        starts = (0.0, *(mean + total * place for place in _PLACES))
        surpluses = tuple(_sum_surplus(mu, total, t, outputs) for t in starts)
        return (_Law(constant, total, starts, surpluses),)
    laws: tuple[_Law, ...] = (_Law(constant, mu, (0.0,), (0.0,)),)
    if objective.slope == "logistic":
        most = 4.0 * moved * objective.curvature * (1.0 + 1e-15)
        start = max(0.0, most - 0.5 * mu * mu * (1.0 - 1e-15))
        laws = (_Law(0.0, mu, (start,), (0.0,)), *laws)  # mostly the lesser one
    return laws


def _sum_surplus(mu: float, total: float, start: float, outputs: int) -> float:
    """Bound what the calls on a sum of positive parts exceed those on the sum by (Lemma 5)."""
    upper = min(
        by_subsets(mu, start, outputs, lambda mu, start: call_bounds(mu, start)[1]),
        by_moments(mu, start, outputs, lambda orders: -1.0 - np.log(orders)),
    )
    return max(0.0, upper - call_bounds(total, start)[0])


class UnitObjective(NamedTuple):
    """What the bounds need to know, as `ObjectivePerturbationEvent` says it."""

    mu: float
    curvature: float
    slope: str
    outputs: int
    adjacency: Adjacency
    rows: int | None

    def profile(self, epsilon: float, spread: float) -> float:
        """Bound delta if noise hides that the minimiser is only ``spread`` of its units near."""
        if epsilon == math.inf:
            return 0.0
        if self.mu > _LARGEST_MU:
            return 1.0
        epsilon = min(epsilon, LARGEST_EPSILON)
        best = 1.0
        for law in _laws(self):
            best = law.profile(epsilon, spread, best)
        return best
