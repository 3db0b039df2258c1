"""How large Poisson batches become."""

from __future__ import annotations

import math
from bisect import bisect_left


def oversize_probability(most: int, dataset_size: int, sample_rate: float, steps: int) -> float:
    """Bound the probability that some of the Poisson batches of a run exceeds a size.

    Chernoff: ``P(Bin(n, p) >= k) <= exp(-n KL(k/n, p))`` for ``k >= n p``; a union bound over the
    steps.

    Parameters
    ----------
    most : int
        The largest size that does not count, at least 0.
    dataset_size : int
        Number n of records.
    sample_rate : float
        Probability p that a record enters a batch, in (0, 1).
    steps : int
        Number of batches.

    Returns
    -------
    float
        The bound, at most 1; zero where no batch can be so large.
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
    """Return a size that all batches of a run stay within, but for a given probability.

    Parameters
    ----------
    failure : float
        The probability, positive.
    dataset_size, sample_rate, steps
        As for `oversize_probability`.

    Returns
    -------
    int
        The least such size by that bound.
    """

    def is_rare(most: int) -> bool:
        return oversize_probability(most, dataset_size, sample_rate, steps) <= failure

    return bisect_left(range(dataset_size), True, key=is_rare)
