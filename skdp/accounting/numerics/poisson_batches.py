"""How large Poisson batches become."""

from __future__ import annotations

import math
from bisect import bisect_left


def oversize_probability(most: int, dataset_size: int, sample_rate: float, steps: int) -> float:
    """Bound the probability that one of a run's Poisson batches holds more than ``most`` records.

    Chernoff: ``P(Bin(n, p) >= k) <= exp(-n KL(k/n, p))`` for ``k >= n p``; a union over the steps.
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
    """Return a size that all batches stay within, but for a failure of positive probability."""
    plan = dataset_size, sample_rate, steps
    sizes = range(dataset_size)
    return bisect_left(sizes, True, key=lambda most: oversize_probability(most, *plan) <= failure)
