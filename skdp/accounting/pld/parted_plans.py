"""Where to part the losses of a plan, and how to bound what is not set apart."""

from __future__ import annotations

import math
from typing import NamedTuple, Protocol, TypeGuard

from skdp.accounting.intervals import Interval
from skdp.accounting.pld.cut_mixtures import cut_pair
from skdp.accounting.pld.grid.estimates import LossEstimate
from skdp.accounting.pld.inversion import Inversion
from skdp.accounting.pld.lattice_interval import Bounds, Target, compose_both
from skdp.accounting.pld.pairs.base import Pair
from skdp.accounting.pld.pairs.gaussian import AdditionPair, GaussianMixturePair, GaussianPair
from skdp.accounting.pld.pairs.largest_losses import largest_losses
from skdp.accounting.pld.rare_losses import Pairs, RareLosses, ReversedProfile
from skdp.accounting.pld.transforms.composed import Saddle, find_saddle

_FEW = 64  # releases, up to which a grid is tried first
_LOG_CELLS = (12, 14, 16)  # of a grid, from the smallest loss, or zero, to the level
_TAIL = 1e-9  # share of delta that the grid's truncations may add
_FIRST_WIDTH = 0.03  # of the smoothing, against epsilon and the deviation of the tilted loss
_NEGLECTED = 0.01  # of the allowed gap that aliases and the sum's tail may use
_SMOOTHED = 0.6  # of the allowed gap that the smoothing is meant to use
_DOUBT = 0.1  # of the allowed gap that may come from losses set apart
_LOWER = (0.05, 0.3)  # of epsilon, at which a lower tilt would be the saddle point
_REACH = 30.0  # nats by which a sum may cancel
_REFINEMENTS = 4
_LEVELS = 16
_MANY = 300_000  # frequencies
_HALVINGS = 50
_OFTEN = 0.5  # losses above the level, expected
_LARGEST_SHIFT = 60.0
_LARGEST_LEVEL = 1e4
_LARGEST_EPSILON = 600.0  # whose exponential is not too large
_SMALLEST = 1e-300


class Rest(Protocol):
    """What bounds the profile of the losses that are not set apart."""

    def delta_bounds(self, epsilon: float) -> Interval:
        """Return a lower and an upper bound."""


class Grid(NamedTuple):
    """Bounds from a grid."""

    composed: Bounds

    def delta_bounds(self, epsilon: float) -> Interval:
        """Return a lower and an upper bound.

        Parameters
        ----------
        epsilon : float
            Privacy parameter in nats.

        Returns
        -------
        tuple of float
            Bounds on the profile.
        """
        return self.composed.delta(epsilon)


class Parted(NamedTuple):
    """Bounds near one epsilon, for one level and one way of treating the rest."""

    rare: RareLosses
    reverse: ReversedProfile
    rest: Rest

    def bounds(self, epsilon: float) -> Interval:
        """Bound the profile of the whole plan.

        Parameters
        ----------
        epsilon : float
            Privacy parameter in nats.

        Returns
        -------
        tuple of float
            Lower and upper bound on delta, in [0, 1].
        """
        if epsilon > _LARGEST_EPSILON:
            return 0.0, 1.0
        lower, upper = self._without_doubt(epsilon)
        margin = self.rare.level - epsilon
        doubt = self.rare.doubt(epsilon)
        if not self.reverse.symmetric:
            upper += doubt * self.reverse.profile(margin)
        elif margin < epsilon or doubt >= 1.0:
            upper = 1.0
        else:
            # The reversed profile is the profile, which is no larger at the margin than here.
            upper /= 1.0 - doubt
        return max(lower, 0.0), min(max(upper * (1.0 + 1e-15), _SMALLEST), 1.0)

    def middle(self, epsilon: float) -> float:
        """Return the middle of what is not in doubt, positive.

        Parameters
        ----------
        epsilon : float
            Privacy parameter in nats, at most 600.

        Returns
        -------
        float
            An estimate of delta.
        """
        lower, upper = self._without_doubt(epsilon)
        return max(0.5 * (lower + upper), _SMALLEST)

    def _without_doubt(self, epsilon: float) -> Interval:
        lower, upper = self.rest.delta_bounds(epsilon)
        less, more = self.rare.excess(epsilon)
        return lower + less, upper + more


class PartedPlan:
    """A plan whose largest losses are to be set apart.

    Parameters
    ----------
    pairs : sequence of (Pair, int)
        Dominating pairs and how often each is composed.
    mu : float
        Total shift of unsampled Gaussian releases.
    """

    def __init__(self, pairs: Pairs, mu: float) -> None:
        self._pairs, self._mu = pairs, mu
        self._mixtures = [(pair, n) for pair, n in pairs if _is_parted(pair)]
        shifts = [pair.mu for pair, _ in self._mixtures]
        self.suits = bool(shifts) and max(shifts) <= _LARGEST_SHIFT
        if self.suits:
            self._reverse = ReversedProfile(pairs, mu)
            self.suits = self._reverse.known
            self._least = self._rarely()

    def _rarely(self) -> float:
        """Return a level above which hardly any loss is expected."""
        low, high = -40.0, math.log(_LARGEST_LEVEL)
        for _ in range(_HALVINGS):
            middle = 0.5 * (low + high)
            if self._expected(math.exp(middle)) > _OFTEN:
                low = middle
            else:
                high = middle
        return math.exp(high)

    def _expected(self, level: float) -> float:
        found = ((largest_losses(pair, level), n) for pair, n in self._mixtures)
        return math.fsum(n * (part.more + part.under_q) for part, n in found if part is not None)

    def single(self, epsilon: float) -> float:
        """Return the sum of the profiles of single releases.

        Parameters
        ----------
        epsilon : float
            Privacy parameter in nats, at least 0.

        Returns
        -------
        float
            An estimate of delta where one loss is what matters.
        """
        profiles = ((pair.profile(epsilon), n) for pair, n in self._pairs)
        return math.fsum(n * found[1] for found, n in profiles if found is not None)

    def parted(self, epsilon: float, share: float) -> Parted | None:
        """Set losses apart, and bound the rest so that delta is known up to a share of itself.

        Parameters
        ----------
        epsilon : float
            Where, in nats, positive and at most 600.
        share : float
            Relative gap of the bounds aimed at.

        Returns
        -------
        Parted or None
            None where the method does not apply.
        """
        rare = self._part(epsilon, share)
        if rare is None:
            return None
        best: Parted | None = None
        gap = math.inf
        methods = [self._inverted]
        if sum(n for _, n in self._pairs) <= _FEW:
            methods = [self._gridded, self._inverted]
        for method in methods:
            found = method(rare, epsilon, share)
            if found is not None:
                lower, upper = found.bounds(epsilon)
                if upper - lower < gap:
                    best, gap = found, upper - lower
                if gap <= share * upper:
                    break
        return best

    def _part(self, epsilon: float, share: float) -> RareLosses | None:
        """Choose a level for an epsilon: a low one, which leaves little doubt all the same."""
        if not self._reverse.symmetric:
            log_share = math.log(max(_DOUBT * share * self.single(epsilon), _SMALLEST))
            margin = max(self._reverse.margin(log_share), 0.02 * epsilon)
            level = max(epsilon + 1.02 * margin, self._least)
            return RareLosses(self._pairs, self._mu, level) if level <= _LARGEST_LEVEL else None
        level = max(2.02 * epsilon, self._least)
        for _ in range(_LEVELS):
            rare = RareLosses(self._pairs, self._mu, level)
            if rare.doubt(epsilon) <= _DOUBT * share:
                break
            level *= 1.5
        return rare

    def _gridded(self, rare: RareLosses, epsilon: float, share: float) -> Parted | None:
        """Put the rest on a grid."""
        best = None
        guess = self.single(epsilon)
        total = sum(n for _, n in self._pairs)
        for log_cells in _LOG_CELLS:
            step = rare.level * 2.0**-log_cells
            cut: list[tuple[Pair, int]] = [
                (cut_pair(pair, rare.level, step) if _is_parted(pair) else pair, n)
                for pair, n in self._pairs
            ]
            apart = RareLosses(cut, 0.0)
            if self._mu > 0.0:
                cut.append((GaussianPair(self._mu), 1))
            estimate = LossEstimate(cut, max(_TAIL * guess / total, _SMALLEST))
            target = Target(guess, estimate.tilt_for_epsilon(epsilon), estimate)
            best = Parted(apart, self._reverse, Grid(compose_both(cut, target, step)))
            lower, upper = best.bounds(epsilon)
            if upper - lower <= share * upper:
                break
        return best

    def _inverted(self, rare: RareLosses, epsilon: float, share: float) -> Parted | None:
        """Invert the transform of the rest, smoothed as much as the share allows."""
        saddle = _low_saddle(rare, epsilon, share)
        if saddle is None:
            return None
        size = max(rare.excess(epsilon)[0], 0.0) + math.exp(saddle.log_delta)
        eta = best_eta = _FIRST_WIDTH * min(saddle.deviation, epsilon)
        best = None
        for _ in range(_REFINEMENTS):
            log_neglected = math.log(max(_NEGLECTED * share * size, _SMALLEST)) - saddle.log_delta
            inversion = Inversion(rare.loss, saddle, eta, min(log_neglected, -3.0), _MANY)
            if not inversion.feasible:
                if best is None:
                    break
                eta = math.sqrt(eta * best_eta)
                continue
            best, best_eta = Parted(rare, self._reverse, inversion), eta
            lower, upper = best.bounds(epsilon)
            if upper - lower <= share * upper:
                break
            size = min(size, upper)
            eta *= min(math.sqrt(_SMOOTHED * share * upper / (upper - lower)), 0.5)
        return best


def _low_saddle(rare: RareLosses, epsilon: float, share: float) -> Saddle | None:
    """Return a tilt under which a loss as large as epsilon is uncommon, if that is accurate enough.

    At the saddle point proper about one such loss is expected, and several often enough to make
    aliases a nuisance.
    """
    proper = find_saddle(rare.loss, epsilon=epsilon)
    if proper is None:
        return None
    for lower in _LOWER:
        found = find_saddle(rare.loss, epsilon=lower * epsilon)
        if found is not None:
            reach = found.log_moment - found.theta * epsilon - proper.log_delta
            if reach <= _REACH + math.log(share):
                break
    else:
        found = proper
    return Saddle(found.theta, found.log_moment, epsilon, found.deviation, proper.log_delta)


def _is_parted(pair: Pair) -> TypeGuard[GaussianMixturePair]:
    """Tell whether a pair has losses that are large and rare."""
    return isinstance(pair, GaussianMixturePair) and not isinstance(
        pair, GaussianPair | AdditionPair
    )
