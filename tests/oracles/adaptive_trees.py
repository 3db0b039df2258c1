"""Exact worst cases over adaptive choices among mechanisms with few outcomes.

A mechanism is an event together with two finite distributions that are one realisation of it: the
outcome on one data set and on its neighbour. An adversary picks the next mechanism, and which of
the two distributions belongs to which data set, after seeing all outcomes; a rule says what may
still be picked. The hockey-stick divergence of the whole tree at ``gamma`` is

    H_gamma = sum over outcomes y of p(y) H_(gamma q(y) / p(y)) of what follows y,

so that the best strategy is found by recursion, with no error but that of summation.
"""

import math
from functools import cache
from typing import NamedTuple

import numpy as np
from scipy.special import ndtr

from skdp.accounting import (
    ApproxDPEvent,
    Event,
    GaussianEvent,
    LaplaceEvent,
    PoissonSampledEvent,
    PureDPEvent,
)


class Mechanism(NamedTuple):
    """An event and the outcomes' probabilities under two neighbours."""

    event: Event
    left: tuple[float, ...]
    right: tuple[float, ...]


def randomised_response(epsilon, delta=0.0):
    """Randomised response that fails with some probability: attains any (epsilon, delta)."""
    up = 1.0 / (1.0 + math.exp(-epsilon))
    left = (delta, (1 - delta) * up, (1 - delta) * (1 - up), 0.0)
    right = (0.0, (1 - delta) * (1 - up), (1 - delta) * up, delta)
    event = ApproxDPEvent(epsilon, delta) if delta else PureDPEvent(epsilon)
    return Mechanism(event, left, right)


def _cells(cdf, cuts):
    values = [0.0, *(float(cdf(cut)) for cut in cuts), 1.0]
    return np.diff(values)


def rounded_gaussian(noise_multiplier, cuts):
    """Gaussian noise, of which only the cell of a partition of the line is seen."""
    mu = 1.0 / noise_multiplier
    return Mechanism(
        GaussianEvent(noise_multiplier),
        tuple(_cells(lambda x: ndtr(x - mu), cuts)),
        tuple(_cells(ndtr, cuts)),
    )


def rounded_sampled_gaussian(rate, noise_multiplier, cuts):
    """Gaussian noise on a Poisson sample, under add-remove, rounded likewise."""
    mu = 1.0 / noise_multiplier
    without = _cells(ndtr, cuts)
    mixed = (1 - rate) * without + rate * _cells(lambda x: ndtr(x - mu), cuts)
    event = PoissonSampledEvent(rate, GaussianEvent(noise_multiplier))
    return Mechanism(event, tuple(mixed), tuple(without))


def rounded_laplace(noise_multiplier, cuts):
    """Laplace noise, rounded likewise."""
    shift = 1.0 / noise_multiplier

    def cdf(x):
        return 0.5 * math.exp(x) if x < 0 else 1.0 - 0.5 * math.exp(-x)

    return Mechanism(
        LaplaceEvent(noise_multiplier),
        tuple(_cells(lambda x: cdf(x - shift), cuts)),
        tuple(_cells(cdf, cuts)),
    )


def divergence(left, right, gamma):
    """Return the hockey-stick divergence of two finite distributions."""
    return sum(max(0.0, p - gamma * q) for p, q in zip(left, right, strict=True))


def worst_case(grant, start, library, gamma, depth):
    """Return the largest divergence that any adaptive strategy attains.

    ``grant(spent, mechanism)`` returns what is spent after the mechanism, or None if it is refused.
    """
    granted = cache(grant)
    oriented = [(m, m.left, m.right) for m in library] + [(m, m.right, m.left) for m in library]

    @cache
    def value(gamma, spent, depth):
        best = max(0.0, 1.0 - gamma)
        if depth == 0:
            return best
        for mechanism, left, right in oriented:
            after = granted(spent, mechanism)
            if after is None:
                continue
            total = sum(
                p * (value(gamma * q / p, after, depth - 1) if q > 0.0 else 1.0)
                for p, q in zip(left, right, strict=True)
                if p > 0.0
            )
            best = max(best, total)
        return best

    return value(gamma, start, depth)
