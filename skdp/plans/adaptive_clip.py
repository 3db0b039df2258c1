"""Clipping norms that follow a quantile of the norms of gradients, paid for by each step's noise.

After Andrew, Thakkar, McMahan and Ramaswamy (2021), with one noise vector for the sum and for the
count of cut gradients. In units of the norm a record adds its gradient, cut, times
``sqrt(1 - SHARE)`` to a release, and to one more number ``sqrt(SHARE)`` if it was cut, else 0: a
vector of norm at most 1. Proof: Theorem 3 of ``docs/proofs/networks.md``.
"""

from __future__ import annotations

import math

import numpy as np

from skdp.mechanisms.contribution import ROUND_UP, ContributionBound

# Share of gradients that are not to be cut: where many are, probabilities get too close to 0 and 1.
QUANTILE = 0.8
RATE = 0.2  # of change: the norm's logarithm moves by at most that in a step, but noise
SHARE = 0.01  # of the signal's square that the count gets
# The norm stays within a factor of 10,000 of the one that it starts from, which is one of these:
# all are norms to which gradients can be clipped.
_REACH = math.log(1e4)
_STARTS = (1.001e-6, 0.999e6)
MOST_ROWS = 10**7
_ROUNDING = 1.0 - 1e-8  # far above errors of both coordinates, in sums of so many records at most


def adaptive_contribution(start: float) -> ContributionBound:
    """Return what one record adds to a release in units of the norm, which begins at `start`.

    Two records are farthest apart if their gradients are opposite and of just the norm, and one of
    them was cut.
    """
    if not _STARTS[0] <= start <= _STARTS[1]:
        raise ValueError(f"max_grad_norm must be in {_STARTS} if it adapts, got {start:g}.")
    return ContributionBound(
        1.0,
        math.sqrt(4.0 - 3.0 * SHARE) * ROUND_UP,
        "in units of the clipping norm, a record adds its gradient, clipped, and a mark if it was "
        f"cut: together a vector of norm at most 1. The clipping norm starts at {start:.6g} "
        "(scaled units) and follows noisy counts of these marks",
    )


def _lengths() -> tuple[float, float]:
    """Return the length of the longest gradient in a release, and the size of a mark."""
    return math.sqrt(1.0 - SHARE) * _ROUNDING, math.sqrt(SHARE) * _ROUNDING


def pack_sum(total: np.ndarray, n_cut: int, clip: float) -> np.ndarray:
    """Return a sum of clipped gradients and the number of cut ones as one vector."""
    length, mark = _lengths()
    return np.append(total.ravel() * (length / clip), mark * n_cut)


def unpack_sum(
    released: np.ndarray, clip: float, start: float, lot_size: float
) -> tuple[np.ndarray, float]:
    """Return the noisy sum of gradients, in units of which `start` is the norm, and the next norm.

    In these units the noise is the same in all steps, as step sizes expect. The next norm follows
    from the noisy share of cut gradients in a lot of the public expected size.
    """
    length, mark = _lengths()
    total, share_cut = released[:-1] * (start / length), released[-1] / mark / lot_size
    moved = math.log(clip / start) + RATE * (share_cut - (1.0 - QUANTILE))
    return total, start * math.exp(min(max(moved, -_REACH), _REACH))
