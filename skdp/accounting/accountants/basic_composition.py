"""Basic composition: epsilons and deltas add up."""

from __future__ import annotations

import math

from skdp.accounting.accountants.stepwise import StepwiseAccountant, share
from skdp.accounting.numerics.bracket import smallest_delta


class BasicCompositionAccountant(StepwiseAccountant):
    """Account by adding up epsilons and deltas.

    Parameters
    ----------
    adjacency : {"add-remove", "replace-one"}, default="add-remove"
        The relation between neighbouring data sets.

    Notes
    -----
    Releases that are (eps_i, delta_i)-DP compose to (sum eps_i, sum delta_i)-DP (Dwork, Kenthapadi,
    McSherry, Mironov and Naor, 2006), even where later ones are chosen after looking at earlier
    results. A Gaussian release satisfies a whole curve of guarantees: all of them enter at the same
    delta, what other releases leave of the total over their number, each with the exact profile of
    the Gaussian mechanism and the exact effect of sampling.

    Examples
    --------
    >>> from skdp.accounting import ApproxDPEvent, BasicCompositionAccountant
    >>> accountant = BasicCompositionAccountant().compose(ApproxDPEvent(0.5, 1e-6), count=3)
    >>> float(accountant.epsilon(1e-5))
    1.5
    """

    name = "basic"

    def _epsilon(self, delta: float) -> float:
        choosing = self._choosing()
        left = delta - self._stated_delta()
        if left < 0.0 or (left == 0.0 and choosing):
            return math.inf
        step_delta = share(left, choosing, 0.0).step
        return math.fsum(step.times * step.epsilon for step in self._steps(step_delta))

    def _delta(self, epsilon: float) -> float:
        stated = self._stated_delta()
        if not self._choosing():
            return stated if self._epsilon(1.0) <= epsilon else 1.0
        return stated if math.isinf(epsilon) else smallest_delta(self._epsilon, epsilon)
