"""What many right guesses about the canaries of one run disprove, whatever the mechanism is.

Proofs: Lemma 4 and Theorem 5 of ``docs/proofs/audits.md``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr, ndtri

from skdp.accounting.numerics.bracket import narrow_bracket
from skdp.audit.bounds import Array

# From the probability of an event on one of two neighbours, the least that it has on the other.
Contrast = Callable[[float], float]

_MARGIN = 1.0 - 1e-6  # for thousands of roundings
_LARGEST = 512.0  # beyond what canaries can show


@dataclass(frozen=True)
class Guesses:
    """Right guesses about canaries, of a number of guesses that was fixed before the run."""

    canaries: int
    made: int
    right: int
    failure: float

    def mu_lower(self) -> float:
        """Return the mu below which no guarantee of mu-GDP allows so many right guesses; or 0."""
        return self._bound(lambda mu: lambda rate: float(ndtr(ndtri(rate) - mu)))

    def epsilon_lower(self, delta: float) -> float:
        """Return the same of (epsilon, delta)."""
        return self._bound(lambda epsilon: contrast(np.array([[epsilon, delta]])))

    def disproves(self, curve: Array) -> bool:
        """Tell whether a claimed curve of points (epsilon, delta) allows no such guesses."""
        return self._refute(contrast(curve))

    def _bound(self, claim: Callable[[float], Contrast]) -> float:
        """Return the largest parameter, up to rounding, whose claim is refuted."""

        def sign(parameter: float) -> float:
            return 1.0 if self._refute(claim(parameter)) else -1.0

        return narrow_bracket(sign, 0.0, _LARGEST, 1e-6, 1e-6)[0] if sign(0.0) > 0.0 else 0.0

    def _refute(self, least: Contrast) -> bool:
        """Tell whether a claim gives as many right guesses less than the failure probability."""
        share = self.failure * _MARGIN / self.canaries
        # Expected shares of right and of wrong guesses, in runs with at least k right ones.
        right, wrong = share * self.right, share * (self.made - self.right)
        for k in range(self.right - 1, -1, -1):
            needed = max(wrong, least(right))
            right += k / (self.made - k) * (needed - wrong)
            wrong = needed
            if right + wrong > self.made / self.canaries:
                return True
        return False


def contrast(curve: Array) -> Contrast:
    """Return what guarantees of (epsilon, delta), one a row, say together."""
    factor, delta = np.exp(curve[:, 0]), curve[:, 1]

    def least(rate: float) -> float:
        bounds = np.maximum((rate - delta) / factor, 1.0 - delta - factor * (1.0 - rate))
        return max(float(bounds.max()), 0.0)

    return least
