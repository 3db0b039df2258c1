"""The largest losses of a plan apart from the others, exactly.

Rare sampling with little noise has losses that hardly ever show but, once tilted, outweigh all
others, so that no tilt brings out the losses around epsilon. Therefore they are not tilted. Let U
be the event that some release loses more than a level K. There the composed loss S exceeds epsilon
but for a slight doubt, and where it does, the profile's integrand is linear in measures whose
masses are known:

    E[(1 - e^(epsilon - S))_+ ; U] = P(U) - e^epsilon Q(U) + doubt.

What remains are releases whose losses end at K, with all the moments that one could want.

The doubt is ``E_Q[(e^epsilon - e^S)_+ ; U]``. As one loss is above K, the others must be below
``epsilon - K``, so the doubt is at most ``e^epsilon`` times the expected number of losses above K
under Q times the profile of the plan in the reversed order at ``K - epsilon``: a product of two
unlikely things.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from skdp.accounting.intervals import Interval
from skdp.accounting.pld.cut_mixtures import CutMixturePair
from skdp.accounting.pld.pairs import gaussian, laplace
from skdp.accounting.pld.pairs.base import Pair
from skdp.accounting.pld.pairs.discrete import DiscreteLaplacePair
from skdp.accounting.pld.pairs.discrete_gaussian import DiscreteGaussianPair
from skdp.accounting.pld.pairs.gaussian import GaussianMixturePair
from skdp.accounting.pld.pairs.laplace import LaplaceMixturePair
from skdp.accounting.pld.pairs.largest_losses import LargestLosses, largest_losses
from skdp.accounting.pld.pairs.randomised_response import RandomisedResponsePair
from skdp.accounting.pld.transforms.composed import ComposedLoss, Transformable
from skdp.accounting.pld.transforms.gaussian import GaussianMixtureLoss

_ROUNDING = 1e-13  # of sums and exponentials, relative to their terms, generously
_EXPONENTS = 12  # of Chernoff's bound that are tried
_DEPTH = 40.0  # nats below one, where Chernoff's bound is to be good
_UNDERFLOW = 1e-306  # probability that may vanish below the smallest float
_SYMMETRIC = (RandomisedResponsePair, DiscreteGaussianPair, DiscreteLaplacePair)

Pairs = Sequence[tuple[Pair, int]]


class ReversedProfile:
    """Bounds on the profile of a composition in the reversed order.

    Parameters
    ----------
    pairs : sequence of (Pair, int)
        Dominating pairs in the first order and how often each is composed.
    mu : float
        Total shift of unsampled Gaussian releases.
    """

    def __init__(self, pairs: Pairs, mu: float) -> None:
        reverses = [(_reverse(pair), count) for pair, count in pairs]
        self.symmetric = all(
            reverse is pair for (reverse, _), (pair, _) in zip(reverses, pairs, strict=True)
        )
        self.known = all(reverse is not None for reverse, _ in reverses)
        self.largest = 0.0 if mu == 0.0 else math.inf
        self._moments: list[tuple[float, float]] = []
        if self.symmetric or not self.known:
            return
        self._failure = math.fsum(n * (pair.failure + pair.cut_mass) for pair, n in pairs)
        self.largest += math.fsum(
            count * reverse.largest_loss for reverse, count in reverses if reverse is not None
        )
        loss = ComposedLoss([(r, count) for r, count in reverses if r is not None], mu)
        scale = self.largest
        if not scale < math.inf:
            scale = 64.0 * math.sqrt(loss.cumulants(0.0)[2])
        exponents = [0.5 * _DEPTH / scale * 2.0**k for k in range(_EXPONENTS)]
        for s in exponents:
            moment = loss.log_moment(s)
            if moment < math.inf:
                self._moments.append((s, moment))

    def profile(self, margin: float) -> float:
        """Bound the profile in the reversed order, if that is another one.

        Parameters
        ----------
        margin : float
            Where, in nats.

        Returns
        -------
        float
            The bound, at most 1.
        """
        if margin < 0.0 or self.symmetric:
            return 1.0
        if margin >= self.largest:
            return min(self._failure, 1.0)
        # (1 - e^-x)_+ is at most s^s (1 + s)^-(1 + s) e^(s x).
        best = min(
            (moment + s * math.log(s / (1.0 + s)) - math.log1p(s) - s * margin)
            for s, moment in self._moments
        )
        return min(math.exp(min(best, 0.0)) * (1.0 + 1e-9) + self._failure, 1.0)

    def margin(self, log_share: float) -> float:
        """Return where Chernoff's bound falls to a share; 0 if the order does not matter.

        Parameters
        ----------
        log_share : float
            Logarithm of the share, negative.

        Returns
        -------
        float
            A loss in nats.
        """
        if self.symmetric:
            return 0.0
        needed = [(moment - log_share) / s for s, moment in self._moments]
        return min([self.largest, *needed])


class RareLosses:
    """A plan whose largest losses are set apart.

    Parameters
    ----------
    pairs : sequence of (Pair, int)
        Dominating pairs and how often each is composed. Those that have been cut are parted where
        they are.
    mu : float
        Total shift of unsampled Gaussian releases.
    level : float, default=inf
        The level K above which losses of the others are set apart, in nats, positive.
    """

    def __init__(self, pairs: Pairs, mu: float, level: float = math.inf) -> None:
        self._apart: list[tuple[LargestLosses, int]] = []
        rest: list[tuple[Transformable, int]] = []
        for pair, count in pairs:
            found = None
            if isinstance(pair, GaussianMixturePair):
                where = pair.level if isinstance(pair, CutMixturePair) else level
                found = largest_losses(pair, where)
            if found is not None:
                self._apart.append((found, count))
            rest.append((pair if found is None else _Rest(found.rest.mixture), count))
        self.loss = ComposedLoss(rest, mu)
        self.level = min((found.level for found, _ in self._apart), default=level)
        neither = math.fsum(n * math.log1p(-found.under_q) for found, n in self._apart)
        closer = math.fsum(
            n * math.log1p(-found.more / (1.0 - found.under_q)) for found, n in self._apart
        )
        self._error = max((found.error for found, _ in self._apart), default=0.0) + _ROUNDING
        self._underflow = _UNDERFLOW * math.fsum(n for _, n in self._apart)
        self.under_p = -math.expm1(neither + closer) * (1.0 + self._error) + self._underflow
        self._under_q = -math.expm1(neither)
        self._more = -math.exp(neither) * math.expm1(closer)
        self._mirrored = any(found.mirrored for found, _ in self._apart)
        expected = math.fsum(n * found.under_q for found, n in self._apart)
        self._expected = expected * (1.0 + self._error) + self._underflow

    def excess(self, epsilon: float) -> Interval:
        """Bound P(U) - e^epsilon Q(U), and what an infinite loss does on U besides.

        Parameters
        ----------
        epsilon : float
            Privacy parameter in nats, at most 600.

        Returns
        -------
        tuple of float
            What to add to the bounds on the profile of `loss`, negative ones included.
        """
        growth = math.expm1(epsilon)
        less = growth * self._under_q
        value = self._more - less
        error = self._error * (self._more + less) + (1.0 + growth) * self._underflow
        # Infinite losses are counted with those of the rest, once too often on U.
        return value - error - self.under_p * self.loss.outside[1], value + error

    def doubt(self, epsilon: float) -> float:
        """Bound what to add to `excess`, over the reversed profile at ``level - epsilon``.

        Parameters
        ----------
        epsilon : float
            Privacy parameter in nats, at most 600.

        Returns
        -------
        float
            The factor.
        """
        growth = math.exp(epsilon) + float(self._mirrored)
        return growth * self._expected * (1.0 + 1e-12)


class _Rest(GaussianMixtureLoss):
    """A loss without its largest values, which are accounted for elsewhere."""

    largest_sums = 2_000_000_000

    @property
    def cut_mass(self) -> float:
        return 0.0


def _reverse(pair: Pair) -> Pair | None:
    """Return the pair in the reversed order, itself where it is symmetric, None if unknown."""
    if isinstance(pair, GaussianMixturePair | LaplaceMixturePair):
        if isinstance(pair, gaussian.GaussianPair | laplace.LaplacePair):
            return pair
        if isinstance(pair, gaussian.RemovalPair):
            return gaussian.AdditionPair(pair.rate, pair.mu)
        if isinstance(pair, gaussian.AdditionPair):
            return gaussian.RemovalPair(pair.rate, pair.mu)
        if isinstance(pair, laplace.RemovalPair):
            return laplace.AdditionPair(pair.rate, pair.shift)
        if isinstance(pair, laplace.AdditionPair):
            return laplace.RemovalPair(pair.rate, pair.shift)
        return pair
    return pair if isinstance(pair, _SYMMETRIC) else None
