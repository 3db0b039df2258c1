"""Optimal composition: the least that single (epsilon, delta) guarantees imply."""

from __future__ import annotations

import math
from itertools import accumulate
from typing import ClassVar

from skdp.accounting.accountants.advanced_composition import check_split
from skdp.accounting.accountants.rdp import RDPAccountant
from skdp.accounting.accountants.stepwise import Step, StepwiseAccountant, share
from skdp.accounting.analysis import analysis_of
from skdp.accounting.events import PureDPEvent
from skdp.accounting.numerics.bracket import minimise, smallest_delta
from skdp.accounting.numerics.floats import UNIT_ROUNDOFF as _U
from skdp.accounting.numerics.floats import log_rest
from skdp.accounting.numerics.randomised_response_profile import RandomisedResponseProfile
from skdp.choices import Adjacency

_ALL_TERMS = 4_500_000
_FEW_TERMS = 50_000  # where many profiles are tried
_LOG_ODDS = [2.0 * k for k in range(-9, 10)]
_LOG_DELTAS = [-700.0 + 20.0 * k for k in range(36)]


class OptimalCompositionAccountant(StepwiseAccountant):
    """Account by the optimal composition of releases of which only (epsilon, delta) is known.

    Parameters
    ----------
    adjacency : {"add-remove", "replace-one"}, default="add-remove"
        The relation between neighbouring data sets.
    split : float or "best", default="best"
        Share of delta spent on composition, in (0, 1); Gaussian releases share the rest equally.
        ``"best"`` takes the share with the least result.

    Notes
    -----
    Releases that are (eps, delta)-DP, k of them, are at worst randomised response that fails with
    probability delta and, when it does not, lies with probability ``1 / (1 + e^eps)``; for equal
    eps that composition is a binomial sum (Kairouz, Oh and Viswanath, 2015, Theorem 3.3). Nothing
    better can be said of releases with these guarantees alone, so the interval has no gap. Where
    guarantees differ, all are taken to be as bad as the worst, and the lower bound takes those
    above any one eps to be as good as that: then `PLDAccountant`, which composes different
    guarantees numerically, is tighter. Deltas compose to ``1 - prod (1 - delta_i)``.

    Beyond 1e10 releases, or a million Gaussian ones, the moments of randomised response stand in
    for its exact profile; that is still an upper bound.

    A Gaussian release enters with one point of its profile, which loses much: what is optimal for
    (epsilon, delta) guarantees is far from it for Gaussian noise. Lower bounds count only releases
    of which nothing but a guarantee is known.

    Examples
    --------
    >>> from skdp.accounting import ApproxDPEvent, OptimalCompositionAccountant
    >>> accountant = OptimalCompositionAccountant().compose(ApproxDPEvent(0.1, 1e-8), count=100)
    >>> lower, upper = accountant.epsilon(1e-5)
    >>> round(lower, 4), round(upper, 4)
    (4.3296, 4.3296)
    """

    name = "optimal"
    _parameters: ClassVar[tuple[str, ...]] = ("split",)

    def __init__(self, adjacency: Adjacency = "add-remove", *, split: float | str = "best") -> None:
        super().__init__(adjacency)
        check_split(split)
        self.split = split

    def _log_kept(self) -> float:
        """Return the log probability that no release fails which states a delta."""
        deltas = [(known[1], n) for _, known, n in self._stated() if known is not None]
        return math.fsum(n * log_rest(d) for d, n in deltas)

    def _attained(self) -> list[Step]:
        """Return the steps of which nothing is known but their guarantee, so that it is attained.

        Laplace noise has a guarantee as well, but does not behave as badly as that allows.
        """
        return [
            Step(known[0], count)
            for leaf, known, count in self._stated()
            if analysis_of(leaf, self._adjacency).only_stated and known and known[0] > 0.0
        ]

    def _epsilon(self, delta: float) -> float:
        return self._epsilon_interval(delta)[1]

    def _delta(self, epsilon: float) -> float:
        return self._delta_interval(epsilon)[1]

    def _epsilon_interval(self, delta: float) -> tuple[float, float]:
        choosing, log_kept = self._choosing(), self._log_kept()
        # What may still fail once the stated failures did not happen.
        left = -math.expm1(math.log1p(-delta) - log_kept)
        rounding = 8.0 * _U * (delta - log_kept) if math.isfinite(log_kept) else 0.0
        if not left > rounding:
            return math.inf if left < -rounding else 0.0, math.inf
        cases = _attained_cases(self._attained())
        lower = max((case.epsilon(left + rounding)[0] for case in cases), default=0.0)
        left -= rounding
        if not choosing:
            return lower, _upper_epsilon(self._steps(0.0), left)
        if self.split != "best":
            return lower, self._shared(left, choosing, float(self.split))
        return lower, minimise(
            lambda x: self._shared(left, choosing, 1.0 / (1.0 + math.exp(-x))), _LOG_ODDS, 25
        )

    def _shared(self, delta: float, choosing: int, split: float) -> float:
        """Bound epsilon for one share of what may fail."""
        step_delta = share(delta, choosing, split).step
        left = -math.expm1(math.log1p(-delta) - choosing * math.log1p(-step_delta))
        left -= 8.0 * _U * delta
        if step_delta <= 0.0 or left <= 0.0:
            return math.inf
        return _upper_epsilon(self._steps(step_delta), left, _FEW_TERMS)

    def _delta_interval(self, epsilon: float) -> tuple[float, float]:
        choosing, log_kept = self._choosing(), self._log_kept()
        if math.isinf(epsilon):
            return -math.expm1(log_kept), -math.expm1(log_kept)
        cases = _attained_cases(self._attained())
        attained = max((case.delta(epsilon)[0] for case in cases), default=0.0)
        lower = _failing(log_kept, attained) * (1.0 - 16.0 * _U)
        if not choosing:
            upper = _failing(log_kept, _upper_delta(self._steps(0.0), epsilon))
            return lower, upper * (1.0 + 16.0 * _U)
        if self.split != "best":
            return lower, smallest_delta(self._epsilon, epsilon)

        def total(log_step_delta: float) -> float:
            step_delta = min(math.exp(log_step_delta), 0.5) / choosing
            rest = _upper_delta(self._steps(step_delta), epsilon, _FEW_TERMS)
            return _failing(log_kept + choosing * math.log1p(-step_delta), rest)

        return lower, minimise(total, _LOG_DELTAS) * (1.0 + 16.0 * _U)


def _failing(log_kept: float, delta: float) -> float:
    """Return the delta of parts that fail outright or, when they do not, lose ``delta``."""
    return -math.expm1(log_kept + log_rest(delta))


def _worst(steps: list[Step]) -> Step:
    return Step(max((s.epsilon for s in steps), default=0.0), sum(s.times for s in steps))


def _attained_cases(steps: list[Step]) -> list[RandomisedResponseProfile]:
    """Return, for every epsilon, the profile of the steps that have it or more; each is a part."""
    ordered = sorted(steps, reverse=True)
    times = accumulate(step.times for step in ordered)
    try:
        return [
            RandomisedResponseProfile(step.epsilon, count)
            for step, count in zip(ordered, times, strict=True)
        ]
    except OverflowError:
        return []


def _worst_case(steps: list[Step], terms: int) -> RandomisedResponseProfile | RDPAccountant:
    """Return what bounds finite steps: all as bad as the worst, or moments, if there are many."""
    try:
        return RandomisedResponseProfile(*_worst(steps), terms)
    except OverflowError:
        accountant = RDPAccountant()
        for epsilon, times in steps:
            accountant.compose(PureDPEvent(epsilon), times)
        return accountant


def _upper_epsilon(steps: list[Step], delta: float, terms: int = _ALL_TERMS) -> float:
    basic = math.fsum(n * eps for eps, n in steps)
    if not steps or math.isinf(basic):
        return basic
    _, upper = _worst_case(steps, terms).epsilon(delta)
    return min(basic, upper)


def _upper_delta(steps: list[Step], epsilon: float, terms: int = _ALL_TERMS) -> float:
    basic = math.fsum(n * eps for eps, n in steps)
    if basic <= epsilon:
        return 0.0
    if math.isinf(_worst(steps).epsilon):
        return 1.0
    _, upper = _worst_case(steps, terms).delta(epsilon)
    return upper
