"""Random numbers of runs, and sizes of Poisson batches.

The truncated negative binomial distribution on 1, 2, ... has parameters ``eta > -1`` and ``gamma``
in (0, 1). Its generating function is ``((1 - (1 - gamma) x)^-eta - 1) / (gamma^-eta - 1)``; it is
logarithmic for ``eta = 0`` and geometric for ``eta = 1`` (Papernot and Steinke, 2022, Definition
1).
"""

from __future__ import annotations

import math
from bisect import bisect_left

import numpy as np

from skdp.accounting.numerics.arithmetic import Array

_SMALLEST_LOG = -690.0


def check_stopping(owner: str, mean: float, shape: float) -> None:
    """Check a random number of runs; an infinite shape is Poisson."""
    if not shape > -1.0:
        raise ValueError(
            f"{owner}: shape must exceed -1; 0 is logarithmic, 1 geometric, inf Poisson, "
            f"got {shape!r}."
        )
    if not math.isfinite(mean) or (mean <= 0.0 if math.isinf(shape) else mean < 1.0):
        least = "> 0" if math.isinf(shape) else ">= 1 (there is always one run)"
        raise ValueError(f"{owner}: mean must be a finite number {least}, got {mean!r}.")
    if mean > 1.0 and math.isfinite(shape):
        gamma_of_mean(mean, shape, owner)


def mean_of_gamma(gamma: float, shape: float) -> float:
    """Return the mean for a gamma in (0, 1]."""
    return _mean_of_log(math.log(gamma), shape)


def _mean_of_log(log_gamma: float, shape: float) -> float:
    if log_gamma == 0.0:
        return 1.0
    growth = math.expm1(-log_gamma)
    exponent = shape * log_gamma
    if abs(exponent) < 1e-12:
        return -growth / log_gamma
    return growth * shape / -math.expm1(exponent)


def gamma_of_mean(mean: float, shape: float, owner: str = "gamma_of_mean") -> float:
    """Return the gamma in (0, 1] for a mean of at least 1."""
    if mean == 1.0:
        return 1.0
    if _mean_of_log(_SMALLEST_LOG, shape) <= mean:
        raise ValueError(
            f"{owner}: mean={mean!r} is too large for shape={shape!r}; use a larger shape or a "
            "smaller mean."
        )
    from scipy.optimize import brentq

    low = -1.0
    while _mean_of_log(low, shape) < mean:
        low = max(2.0 * low, _SMALLEST_LOG)
    log_gamma = brentq(
        lambda x: math.log(_mean_of_log(x, shape) / mean),
        *(low, -1e-300),
        xtol=1e-18,
        rtol=1e-15,
        maxiter=1000,
    )
    return math.exp(float(log_gamma))


class StoppingNumber:
    """Best of a random number of runs; an infinite shape is Poisson.

    The density of an output as the best is ``mean * weight(t)`` times that in one run, if a run
    beats it with probability ``t``.
    """

    def __init__(self, mean: float, shape: float) -> None:
        self.mean, self.shape = mean, shape
        self.gamma = math.nan
        if math.isfinite(shape):
            self.gamma = gamma_of_mean(mean, shape)
            # Where the shape is huge, gamma's last digit tells.
            self.mean = max(mean, mean_of_gamma(self.gamma, shape))

    def weight(self, t: Array) -> Array:
        """Return the generating function's slope at ``1 - t`` over that at 1."""
        if math.isinf(self.shape):
            return np.exp(-self.mean * t)
        odds = (1.0 - self.gamma) / self.gamma
        return np.exp(-(1.0 + self.shape) * np.log1p(odds * t))

    def log_slope(self, t: Array) -> Array:
        """Return minus the slope of the log weight."""
        if math.isinf(self.shape):
            return np.full(len(t), self.mean)
        return (1.0 + self.shape) * (1.0 - self.gamma) / (self.gamma + (1.0 - self.gamma) * t)

    @property
    def scale(self) -> float:
        """A probability ``t`` from which on the weight falls markedly."""
        if math.isinf(self.shape):
            return 1.0 / (1.0 + self.mean)
        return self.gamma / (1.0 + self.shape)

    def pure_surcharge(self, epsilon: float) -> float:
        """Return the additional epsilon of the best if one run is epsilon-DP.

        The ratio of weights is largest at ``t = 1 / (1 + e^epsilon)``, ``t' = 1 - t``.
        """
        if math.isinf(self.shape):
            return self.mean * math.tanh(0.5 * epsilon)
        # log((e^epsilon + gamma) / (1 + gamma e^epsilon)), without overflow or cancellation.
        growth = (1.0 - self.gamma) * -math.expm1(-epsilon)
        ratio = math.log1p(growth / (math.exp(-epsilon) + self.gamma))
        return (1.0 + self.shape) * ratio * (1.0 + 1e-14)


def oversize_probability(most: int, dataset_size: int, sample_rate: float, steps: int) -> float:
    """Bound the probability of a Poisson batch above ``most`` in a run.

    Chernoff: ``P(Bin(n, p) >= k) <= exp(-n KL(k/n, p))`` for ``k >= n p``; a union over steps.
    """
    if most >= dataset_size:
        return 0.0
    share = (most + 1) / dataset_size
    if share <= sample_rate:
        return 1.0
    divergence = share * math.log(share / sample_rate)
    if share < 1.0:
        divergence += (1.0 - share) * (math.log1p(-share) - math.log1p(-sample_rate))
    # Rounding errors of the two terms are proportional to the larger one, not to their sum; that
    # needs log1p, whose error is relative where shares are tiny.
    error = 1e-14 * share * (1.0 + abs(math.log(share / sample_rate)))
    exponent = math.log(steps) - dataset_size * max(0.0, divergence - error)
    return math.exp(min(0.0, exponent + 1e-12))


def largest_likely_batch(failure: float, dataset_size: int, sample_rate: float, steps: int) -> int:
    """Return a size for all batches, except with probability ``failure > 0``."""
    plan = dataset_size, sample_rate, steps
    sizes = range(dataset_size)
    return bisect_left(sizes, True, key=lambda most: oversize_probability(most, *plan) <= failure)
