"""Clipping norms that follow a quantile of the norms of gradients, paid for by each step's noise.

After Andrew, Thakkar, McMahan and Ramaswamy (2021), with one noise vector for the sum and for the
count of cut gradients. Proof: ``docs/proofs/networks.md``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from skdp.mechanisms.contribution import ROUND_UP, ContributionBound

# The norm stays within a factor of 10,000 of the one that it starts from, which is one of these:
# all are norms to which gradients can be clipped.
_REACH = math.log(1e4)
_STARTS = (1.001e-6, 0.999e6)
MOST_ROWS = 10**7
_ROUNDING = 1.0 - 1e-8  # far above errors of both coordinates, in sums of so many records at most


@dataclass(frozen=True)
class AdaptiveClip:
    """How a clipping norm follows a noisy count of the gradients that it cuts.

    In units of that norm a record adds its gradient, cut, times ``sqrt(1 - share)`` to a release,
    and to one more number ``sqrt(share)`` if it was cut, else 0: a vector of norm at most 1.
    """

    quantile: float = 0.5  # share of gradients that are not to be cut
    rate: float = 0.2  # of change: the norm's logarithm moves by at most that in a step, but noise
    share: float = 0.01  # of the signal's square that the count gets

    def __post_init__(self) -> None:
        ranges = 0.0 < self.quantile < 1.0 and 0.0 < self.share < 1.0 and 0.0 < self.rate < math.inf
        if not ranges:
            raise ValueError(f"{self}: quantile and share lie in (0, 1), and rate is positive.")

    def contribution(self, start: float) -> ContributionBound:
        """Return what one record adds to a release in units of the norm, which begins at `start`.

        Two records are farthest apart if their gradients are opposite and of just the norm, and one
        of them was cut.
        """
        if not _STARTS[0] <= start <= _STARTS[1]:
            raise ValueError(f"max_grad_norm must be in {_STARTS} if it adapts, got {start:g}.")
        return ContributionBound(
            1.0,
            math.sqrt(4.0 - 3.0 * self.share) * ROUND_UP,
            "in units of the clipping norm, a record adds its gradient, clipped, and a mark if it "
            "was cut: together a vector of norm at most 1. The clipping norm starts at "
            f"{start:.6g} (scaled units) and follows noisy counts of these marks",
        )

    @property
    def _lengths(self) -> tuple[float, float]:
        """Length of the longest gradient in a release, and size of a mark."""
        return math.sqrt(1.0 - self.share) * _ROUNDING, math.sqrt(self.share) * _ROUNDING

    def pack(self, total: np.ndarray, n_cut: int, clip: float) -> np.ndarray:
        """Return a sum of clipped gradients and the number of cut ones as one vector."""
        length, mark = self._lengths
        return np.append(total.ravel() * (length / clip), mark * n_cut)

    def unpack(
        self, released: np.ndarray, clip: float, start: float, lot_size: float
    ) -> tuple[np.ndarray, float]:
        """Return the noisy sum of gradients, and the norm of the next step.

        That follows from the noisy share of cut gradients in a lot of the public expected size.
        """
        length, mark = self._lengths
        total, share_cut = released[:-1] * (clip / length), released[-1] / mark / lot_size
        moved = math.log(clip / start) + self.rate * (share_cut - (1.0 - self.quantile))
        return total, start * math.exp(min(max(moved, -_REACH), _REACH))
