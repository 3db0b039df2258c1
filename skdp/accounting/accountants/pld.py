"""Privacy-loss distributions: the tightest composition of a plan fixed in advance."""

from __future__ import annotations

import math
from collections.abc import Callable
from operator import itemgetter
from typing import Self

from skdp.accounting.accountants.base import Accountant
from skdp.accounting.accountants.rdp import RDPAccountant
from skdp.accounting.analysis import analysis_of
from skdp.accounting.checks import check_real
from skdp.accounting.events import Event
from skdp.accounting.numerics import gaussian_profile
from skdp.accounting.pld.composed_bounds import (
    Pairs,
    Plan,
    delta_bounds,
    engines,
    epsilon_bounds,
    is_supported,
    mu_of_all_rows,
    plan_of,
)
from skdp.accounting.pld.grid_bounds import extremes
from skdp.accounting.value import Interval, PrivacyValue, Proved, is_narrow, meet, named, provers
from skdp.base.parameters import Adjacency

_LARGE_EPSILON = 20.0  # beyond these two, other bounds are consulted if the interval is wide
_LARGE_DELTA = 0.5
_SMALLEST_DELTA = 1e-290


class PLDAccountant(Accountant):
    """Accountant with privacy-loss distributions: the tightest certified bounds.

    Supports these releases and any composition of them:

    - Gaussian releases: without sampling or on Poisson samples under either adjacency, or on
      samples of fixed size under replace-one.
    - Laplace releases, without sampling or on Poisson samples.
    - Discrete Gaussian and discrete Laplace releases.
    - Releases with a known (epsilon, delta) or profile.
    - Poisson samples of all these under either adjacency, and samples of fixed size under
      replace-one.

    Parameters
    ----------
    adjacency : {"add-remove", "replace-one"}, default="add-remove"
        Adjacency relation between neighbouring data sets.
    rtol : float, default=1e-3
        Relative distance between lower and upper bound that is close enough, in (0, 1). Most plans
        come out far closer. Bounds are still valid where `rtol` is out of reach:

        - delta is so near its value at an epsilon of 0 that its last permille determines epsilon.
        - epsilon is below 1e-6 or above 1e3.
        - sampling is rare, noise is small and delta is below 1e-11.

    Notes
    -----
    Each release is replaced by a dominating pair of distributions (Zhu, Dong and Wang, 2022,
    Theorem 10). The composed profile is an inverse Laplace transform, integrated along a line
    through its saddle point as by Alghamdi et al. (2023). Every error is bounded: quadrature,
    aliases, the kernel's kink, the tail of the integral and rounding.

    Few releases, and atoms, are put on a grid instead (Doroshenko et al., 2022) and convolved by
    Fourier transform with exponential tilting. Plans of unsampled Gaussians are exact.

    Lower bounds are those of the dominating pairs. They are zero where a pair is strictly worse
    than its release.

    Examples
    --------
    >>> from skdp.accounting import GaussianEvent, PLDAccountant, PoissonSampledEvent
    >>> step = PoissonSampledEvent(0.01, GaussianEvent(4.0))
    >>> epsilon = PLDAccountant().compose(step, count=10_000).epsilon(1e-5)
    >>> lower, upper = epsilon
    >>> print(f"{lower:.4f} <= {upper:.4f}")
    0.9469 <= 0.9469
    """

    name = "pld"
    _parameters = ("rtol",)

    def __init__(self, adjacency: Adjacency = "add-remove", *, rtol: float = 1e-3) -> None:
        super().__init__(adjacency)
        self.rtol = check_real(type(self).__name__, "rtol", rtol)
        if not 0.0 < self.rtol < 1.0:
            raise ValueError(f"rtol must lie in (0, 1), got {rtol!r}.")

    def epsilon(self, delta: float, *, rtol: float | None = None) -> PrivacyValue:
        """Return certified bounds on epsilon at a given delta.

        Parameters
        ----------
        delta : float
            Failure probability, in [0, 1).
        rtol : float, optional
            Target for the relative distance of the bounds; by default that of the accountant.

        Returns
        -------
        PrivacyValue
            Upper bound in nats, ``>= 0``; infinite when there is no bound at this delta. It unpacks
            as ``lower, upper``.
        """
        return super().epsilon(delta) if rtol is None else self._aiming_at(rtol).epsilon(delta)

    def delta(self, epsilon: float, *, rtol: float | None = None) -> PrivacyValue:
        """Return certified bounds on delta at a given epsilon.

        Parameters
        ----------
        epsilon : float
            Privacy parameter in nats, ``>= 0``.
        rtol : float, optional
            Target for the relative distance of the bounds; by default that of the accountant.

        Returns
        -------
        PrivacyValue
            Upper bound, in [0, 1]. It unpacks as ``lower, upper``.
        """
        return super().delta(epsilon) if rtol is None else self._aiming_at(rtol).delta(epsilon)

    def engines(self) -> tuple[str, ...]:
        """Return the names of the engines for the plan, without running any.

        Returns
        -------
        tuple of str
            Names as in ``proved_by``. For each direction they are in the order of use, until the
            bounds are close. Empty if no bound is possible.

        Examples
        --------
        >>> from skdp.accounting import GaussianEvent, PLDAccountant, PoissonSampledEvent
        >>> step = PoissonSampledEvent(0.01, GaussianEvent(4.0))
        >>> PLDAccountant().compose(step, count=10_000).engines()
        ('inversion', 'grid')
        """
        plan = plan_of(self._counts, self._adjacency)
        found = () if plan is None else [engines(pairs, mu) for pairs, mu in plan.directions]
        return tuple(dict.fromkeys(name for names in found for name in names))

    def _aiming_at(self, rtol: float) -> Self:
        accountant = type(self)(self._adjacency, rtol=rtol)
        accountant._counts = self._counts
        return accountant

    def _supports_leaf(self, leaf: Event) -> bool:
        return is_supported(leaf, self._adjacency)

    def _epsilon(self, delta: float) -> float:
        return self._epsilon_interval(delta)[1]

    def _delta(self, epsilon: float) -> float:
        return self._delta_interval(epsilon)[1]

    def _epsilon_interval(self, delta: float) -> Interval:
        plan = plan_of(self._counts, self._adjacency)
        if plan is None:
            return 0.0, math.inf
        best = self._worst(
            plan, lambda pairs, mu, floor: self._one_direction(pairs, mu, delta, floor)
        )
        return self._with_others(
            best, _LARGE_EPSILON, delta, gaussian_profile.epsilon, RDPAccountant.epsilon
        )

    def _delta_interval(self, epsilon: float) -> Interval:
        plan = plan_of(self._counts, self._adjacency)
        if plan is None:
            return 0.0, 1.0
        if math.isinf(epsilon):
            failures = [extremes(pairs)[0] for pairs, _ in plan.directions]
            return 0.0, max(max(failures), float(math.isinf(plan.directions[0].mu)))
        best = self._worst(
            plan, lambda pairs, mu, floor: delta_bounds(pairs, mu, epsilon, self.rtol, floor)
        )
        return self._with_others(
            best, _LARGE_DELTA, epsilon, gaussian_profile.delta, RDPAccountant.delta
        )

    def _with_others(
        self,
        best: Interval,
        large: float,
        argument: float,
        gaussian: Callable[[float, float], float],
        renyi: Callable[[RDPAccountant, float], PrivacyValue],
    ) -> Interval:
        """Consult other bounds on large values with wide intervals."""
        # With very little noise the losses of one release span more scales than there are cells or
        # frequencies; these bounds are valid as well, for any loss.
        if best[1] <= large or is_narrow(best, self.rtol):
            return best
        mu = mu_of_all_rows(self._counts, self._adjacency)
        best = meet(best, named((0.0, gaussian(mu, argument)), "all rows"))
        moments = (analysis_of(leaf, self._adjacency).log_moments() for leaf in self._counts)
        if all(known is not None and known.quick for known in moments):
            history = RDPAccountant(self._adjacency).compose(self.event)
            best = meet(best, named((0.0, renyi(history, argument).upper), "rdp"))
        return best

    def _one_direction(self, pairs: Pairs, mu: float, delta: float, floor: float) -> Interval:
        """Bound epsilon for one direction, at any delta."""
        if not pairs or delta >= _SMALLEST_DELTA:
            return epsilon_bounds(pairs, mu, delta, self.rtol, floor)
        # A smaller delta costs no less than the smallest one that is computed.
        lower, _ = epsilon_bounds(pairs, mu, _SMALLEST_DELTA, self.rtol)
        failure, largest, _ = extremes(pairs)
        return lower, largest if failure == 0.0 == mu else math.inf

    @staticmethod
    def _worst(plan: Plan, bound: Callable[[Pairs, float, float], Interval]) -> Interval:
        """Return the larger of each bound over directions."""
        intervals: list[Interval] = []
        for pairs, mu in plan.directions:
            # Values below the lower bound of another direction need no refinement.
            floor = max((lower for lower, _ in intervals), default=0.0)
            intervals.append(bound(pairs, mu, floor))
        lower, upper = (max(intervals, key=itemgetter(side)) for side in (0, 1))
        least = lower[0] if plan.attained else 0.0
        return Proved((least, upper[1]), (provers(lower)[0], provers(upper)[1]))
