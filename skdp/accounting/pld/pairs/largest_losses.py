"""The largest losses of a sampled Gaussian release, for plans that set them apart."""

from __future__ import annotations

import sys
from typing import NamedTuple

import numpy as np
from scipy.special import ndtr

from skdp.accounting.pld.pairs.gaussian import (
    AdditionPair,
    GaussianMixturePair,
    GaussianPair,
    PoissonReplacementPair,
    RemovalPair,
)
from skdp.accounting.pld.transforms.gaussian import GaussianMixtureLoss


class LargestLosses(NamedTuple):
    """The losses of a release beyond a level, and the others.

    ``more`` is by how much their probability under P exceeds that under Q, ``under_q``, both up to
    a relative ``error``; ``rest`` are the other losses. Besides, ``rest`` lacks the least losses if
    ``mirrored``, which are below minus the level with probability ``under_q`` under P.
    """

    level: float
    more: float
    under_q: float
    error: float
    mirrored: bool
    rest: GaussianMixtureLoss


def largest_losses(pair: GaussianMixturePair, level: float) -> LargestLosses | None:
    """Set the losses apart that exceed about a level in nats; None where bounded, or normal."""
    q, mu = pair.rate, pair.mu
    if isinstance(pair, GaussianPair | AdditionPair):
        return None
    where = np.array([level])
    if isinstance(pair, PoissonReplacementPair):
        x = float(pair.threshold(where)[0])
        reached = float(pair.losses_at(np.array([x]))[0])
        unlikely = q * float(ndtr(-mu - x))
    else:
        x = float(pair._invert(where)[0][0])
        reached = float(pair._log_ratios(np.array([x]))[0])
        unlikely = q * float(ndtr(-x))
    likely = q * float(ndtr(mu - x))
    error = 1e-14 * (1.0 + (abs(x) + mu) ** 2)
    return LargestLosses(
        reached * (1.0 - 1e-12),
        likely - unlikely,
        (1.0 - q) * float(ndtr(-x)) + unlikely,
        error * (likely + unlikely) / max(likely - unlikely, sys.float_info.min),
        not isinstance(pair, RemovalPair),
        GaussianMixtureLoss(pair.mixture_type(q, mu, x)),
    )
