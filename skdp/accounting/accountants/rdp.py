"""Renyi differential privacy: closed-form and quadrature bounds, order by order."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Mapping

import numpy as np
from numpy.typing import NDArray

from skdp.accounting.accountants.base import Accountant
from skdp.accounting.analysis import gaussian_mu, sampled_gaussian
from skdp.accounting.events import ApproxDPEvent, Event, PureDPEvent, leaf_counts
from skdp.accounting.profile_events import OneOfEvent
from skdp.accounting.releases import sampled_gaussian as divergences
from skdp.accounting.releases.noise_moments import noise_log_moment
from skdp.accounting.releases.selection import RepeatAndSelectEvent
from skdp.accounting.releases.selection_moments import has_failures, selection_log_moment

# Orders minus one of the first, coarse scan; the best is then refined between its neighbours.
_COARSE = np.geomspace(1e-3, 1e5, 41)
_REFINEMENTS = 4
_LARGEST_SHIFT = 1e150
_FRACTIONAL_UP_TO = 64.0  # binomial sums at integer orders are dense enough beyond


class RDPAccountant(Accountant):
    """Account with Renyi divergences at the best of many orders.

    Parameters
    ----------
    adjacency : {"add-remove", "replace-one"}, default="add-remove"
        The relation between neighbouring data sets.

    Notes
    -----
    The divergence of a sampled Gaussian is that of its dominating pair, at integer orders by a
    binomial sum and between them by quadrature (Mironov, Talwar and Zhang, 2019; under replace-one
    the pairs of `PLDAccountant`). Divergences add up over releases, even adaptive ones, and become
    (epsilon, delta) by Canonne, Kamath and Steinke (2020), Proposition 12. For long
    runs the result is 5 to 30 % above `PLDAccountant`'s, for few steps more.

    Examples
    --------
    >>> from skdp.accounting import GaussianEvent, PoissonSampledEvent, RDPAccountant
    >>> step = PoissonSampledEvent(0.01, GaussianEvent(4.0))
    >>> round(RDPAccountant().compose(step, count=10_000).epsilon(1e-5), 4)
    1.0354
    """

    name = "rdp"

    def log_moment(self, order: float) -> float:
        """Return ``(order - 1)`` times the Renyi divergence of the history.

        Parameters
        ----------
        order : float
            Order of the divergence, above 1.

        Returns
        -------
        float
            An upper bound in nats; infinite where the divergence is, or is out of reach.
        """
        if not order > 1:
            raise ValueError(f"order must exceed 1, got {order!r}.")
        return math.fsum(
            count * self._leaf_log_moment(leaf, order) for leaf, count in self._counts.items()
        )

    def _supports_leaf(self, leaf: Event) -> bool:
        if isinstance(leaf, OneOfEvent):
            return all(self.supports(event) for event in leaf.events)
        if isinstance(leaf, RepeatAndSelectEvent):
            run = RDPAccountant(self._adjacency)
            return run.supports(leaf.event) and not has_failures(leaf.event)
        return (
            isinstance(leaf, PureDPEvent | ApproxDPEvent)
            or gaussian_mu(leaf, self._adjacency) is not None
            or sampled_gaussian(leaf, self._adjacency) is not None
            or noise_log_moment(leaf, self._adjacency, 2.0) is not None
        )

    def _leaf_log_moment(self, leaf: Event, order: float) -> float:
        if isinstance(leaf, OneOfEvent):
            return max(
                math.fsum(
                    count * self._leaf_log_moment(part, order)
                    for part, count in leaf_counts(event).items()
                )
                for event in leaf.events
            )
        if isinstance(leaf, PureDPEvent | ApproxDPEvent):
            return divergences.log_moment_randomised_response(leaf.epsilon, order)
        if isinstance(leaf, RepeatAndSelectEvent):
            return selection_log_moment(leaf, self._adjacency, order)
        mu = gaussian_mu(leaf, self._adjacency)
        if mu is not None:
            return 0.5 * order * (order - 1.0) * mu * mu
        noise = noise_log_moment(leaf, self._adjacency, order)
        if noise is not None:
            return noise
        pair = sampled_gaussian(leaf, self._adjacency)
        assert pair is not None
        if pair.mu > _LARGEST_SHIFT:
            return math.inf
        if pair.kind == "poisson-replace-one":
            return divergences.log_moment_replace_one(pair.rate, pair.mu, order)
        if pair.kind == "uniform-replace-one":
            return divergences.log_moment_uniform(pair.rate, pair.mu, order)
        if order == int(order):
            return divergences.log_moment_integer(pair.rate, pair.mu, int(order))
        return divergences.log_moment_add_remove(pair.rate, pair.mu, order)

    def _failure(self) -> float:
        """Total probability with which (epsilon, delta)-DP parts fail outright."""
        return -math.expm1(_log_kept(self._counts))

    def _epsilon(self, delta: float) -> float:
        # With probability 1 - failure the history is a composition of Renyi-bounded parts.
        failure = self._failure()
        if failure >= delta:
            return math.inf
        log_rest = math.log((delta - failure) / (1.0 - failure))

        def bound(moment: float) -> float:
            log_moment = self.log_moment(moment + 1.0)
            return divergences.sum_up(log_moment, self._conversion(moment), -log_rest) / moment

        return self._best(bound)

    def _delta(self, epsilon: float) -> float:
        failure = self._failure()
        if failure >= 1.0 or math.isinf(epsilon):
            return failure

        def log_bound(moment: float) -> float:
            log_moment = self.log_moment(moment + 1.0)
            return divergences.sum_up(log_moment, self._conversion(moment), -moment * epsilon)

        value = math.exp(min(0.0, self._best(log_bound)))
        return failure + (1.0 - failure) * max(value, sys.float_info.min)

    def _conversion(self, moment: float) -> float:
        """Return what may be added to a log moment for a conversion tighter than Chernoff's."""
        return divergences.conversion(moment)

    def _best(self, bound: Callable[[float], float]) -> float:
        """Minimise over moments, order minus one: scan coarsely, then near the best."""
        grid: NDArray[np.float64] = _COARSE
        best = math.inf
        for _ in range(_REFINEMENTS):
            values: list[float] = []
            for x in grid:
                values.append(bound(self._order(float(x)) - 1.0))
                # The bound falls and then rises; large orders are the expensive ones.
                if len(values) > 4 and values[-1] > values[-2] > values[-3] > values[-4]:
                    break
            k = int(np.argmin(values))
            best = min(best, values[k])
            if not math.isfinite(best):
                break
            grid = np.geomspace(grid[max(k - 1, 0)], grid[min(k + 1, len(grid) - 1)], 9)
        return best

    @staticmethod
    def _order(order_minus_one: float) -> float:
        order = 1.0 + order_minus_one
        return order if order <= _FRACTIONAL_UP_TO else float(round(order))


def _log_kept(counts: Mapping[Event, int]) -> float:
    """Return the logarithm of the probability that no (epsilon, delta)-DP part fails."""
    total = 0.0
    for leaf, count in counts.items():
        if isinstance(leaf, ApproxDPEvent):
            total += count * (math.log1p(-leaf.delta) if leaf.delta < 1.0 else -math.inf)
        elif isinstance(leaf, OneOfEvent):
            total += count * min(_log_kept(leaf_counts(event)) for event in leaf.events)
    return total
