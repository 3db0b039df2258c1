"""Dominating pairs of Gaussian releases, sampled or not, cut into cells of the privacy loss.

With ``M(x) = 1 - q + q e^(mu x - mu^2/2)`` and unit noise, the pairs are

- `GaussianPair`: N(mu) against N(0);
- `RemovalPair`, `AdditionPair`: (1-q) N(0) + q N(mu) against N(0), and the reverse (Poisson,
  add-remove). One pair of neighbours has one direction throughout a plan;
- `PoissonReplacementPair`: (1-q) N(0) + q N(mu) against (1-q) N(0) + q N(-mu), which dominates by
  convexity and Gaussian interpolation;
- `UniformReplacementPair`: the symmetric pair with the profile ``p delta_G(log(1 + (e^eps - 1)/p);
  mu)`` for ``eps >= 0`` (Balle, Barthe and Gaboardi, 2018, Theorem 9).

The last loss is log M with a removal's masses and -log M with an addition's, for x > mu/2. It is
zero with mass ``(1-p) (1 - 2 Phi(-mu/2))``. The larger of the two composed directions is *not* a
bound, as removals and additions may alternate (Lebeda, Regehr, Kamath and Steinke, 2024).
"""

from __future__ import annotations

import math
import sys
from abc import abstractmethod
from dataclasses import replace
from typing import ClassVar

import numpy as np
from scipy.special import log_ndtr, ndtr, ndtri

from skdp.accounting.numerics import gaussian_profile
from skdp.accounting.numerics.arithmetic import (
    LARGEST_EXPONENT,
    SMALLEST_TAIL,
    UNIT_ROUNDOFF,
    log_mixture,
)
from skdp.accounting.pld.gaussian_transforms import GaussianMixtureLoss
from skdp.accounting.pld.mixture_transforms import (
    AdditionMixture,
    Mixture,
    PoissonReplacementMixture,
    RemovalMixture,
    UniformReplacementMixture,
)
from skdp.accounting.pld.pairs.base import Array, Complex, NodeMasses, Transformable
from skdp.accounting.pld.pairs.cells import CellPair, invert_mixture, join_at_zero, spread

_FARTHEST = 38.0  # deviations, beyond which tails are no floats
_ROUNDED = 1.0 + 1e-14  # above the rounding of a profile's or a distance's last operations


class GaussianMixturePair(CellPair):
    """A pair of unit Gaussians at 0 and at ``mu > 0`` (and ``-mu``).

    The rate of the latter is in (0, 1), except for `GaussianPair`.
    """

    spare_nodes = 1
    largest_loss = math.inf
    mixture_type: ClassVar[type[Mixture]]
    farthest: ClassVar[float] = 1.0  # distance of the shifted Gaussians, in units of mu

    def __init__(self, rate: float, mu: float) -> None:
        self.rate, self.mu = rate, mu
        distance = self.farthest * mu
        self.variation = min(1.0, rate * math.erf(0.5 * distance / math.sqrt(2.0)) * _ROUNDED)
        self._mixture = self.mixture_type(rate, mu)

    @abstractmethod
    def losses_at(self, x: Array) -> Array:
        """Return the losses at points, monotone in them."""

    def span(self, tail: float) -> tuple[float, float]:
        """See `Pair`."""
        low, high = np.sort(self.losses_at(np.array(self._support(tail))))
        return float(low), float(high)

    def roundings(self, tail: float) -> float:
        """See `Pair`."""
        return 1.0 + 0.5 * min(_reach(tail) + self.farthest * self.mu, _FARTHEST) ** 2

    def sketch(self, tail: float) -> tuple[Array, Array]:
        """See `Pair`."""
        x_low, x_high = self._support(tail)
        reach = x_high - self.mu if x_high > self.mu else -x_low
        parts = [np.arange(x_low, min(-x_low, x_high) + 0.1, 0.1)]
        if x_high > -x_low:
            parts.append(np.arange(max(-x_low, self.mu - reach) + 0.1, x_high + 0.1, 0.1))
        # One more cell at either end, for losses that rounding has merged.
        edges = np.unique(self.losses_at(np.concatenate(parts)))
        size = max(abs(edges[0]), abs(edges[-1]))
        margin = max(1e-3 * (edges[-1] - edges[0]), 1e-9 * size, 1e-300)
        edges = np.concatenate([[edges[0] - margin], edges, [edges[-1] + margin]])
        return edges, self.node_masses(edges).masses

    def transforms(self, tail: float) -> tuple[Transformable, Transformable]:
        """See `Pair`."""
        cut = self._support(tail)[1] if tail > 0.0 and self._mixture.rises else math.inf
        loss = GaussianMixtureLoss(replace(self._mixture, cut=cut))
        return loss, loss

    def profile(self, epsilon: float) -> tuple[float, float]:
        """See `Pair`."""
        return self._scaled_profile(self.rate, float(log_mixture(1.0 / self.rate, epsilon)))

    def _scaled_profile(
        self, factor: float, inner: float, doubt: float = 0.0
    ) -> tuple[float, float]:
        """Bound a factor times the Gaussian divergence at another epsilon.

        Both may have a doubt, relative for the factor.
        """
        slip = 1e-15 * (1.0 + inner) + doubt
        low, _ = gaussian_profile.delta_bounds(self.mu, inner + slip)
        _, high = gaussian_profile.delta_bounds(self.mu, max(inner - slip, 0.0))
        most = factor * high * (_ROUNDED + doubt)
        return max(factor * low * (1.0 - 1e-14 - doubt), 0.0), most

    def _support(self, tail: float) -> tuple[float, float]:
        """Interval of x with about ``tail`` of P outside on either side."""
        reach = _reach(tail)
        share = max(0.5 * tail / self.rate, SMALLEST_TAIL)
        shifted = self.mu - float(ndtri(share)) if share < 0.5 else 0.0
        return -reach, max(reach, shifted)

    def _log_ratios(self, x: Array) -> Array:
        """Return log M(x), accurate also where it is tiny."""
        return log_mixture(self.rate, self.mu * x - 0.5 * self.mu**2)

    def _invert(self, loss: Array) -> tuple[Array, Array]:
        """Return x with log M(x) = loss, and the density ratio of N(mu) to N(0) there."""
        log_ratio, ratio = invert_mixture(self.rate, loss)
        return (log_ratio + 0.5 * self.mu**2) / self.mu, ratio

    def _spread_up(self, edges: Array, whole: bool = True) -> NodeMasses:
        """Spread P = (1-q) N(0) + q N(mu) against Q = N(0), perhaps without the part below."""
        q = self.rate
        x, ratio = self._invert(edges)
        still, moved = _normal_cells(x), _normal_cells(x - self.mu)
        # a - b e^l with the (1-q) N(0) parts cancelled by hand, which keeps q's digits.
        excess = q * (moved - ratio[:-1] * still)
        below, above = self._outside(x)
        mass = (1.0 - q) * still + q * moved
        return spread(edges, mass, excess, below if whole else 0.0, above)

    def _spread_down(self, edges: Array) -> NodeMasses:
        """Spread P = N(0) against Q = (1-q) N(0) + q N(mu); the loss falls as x rises."""
        x, ratio = self._invert(-edges)
        still, moved = -_normal_cells(x), -_normal_cells(x - self.mu)
        growth = np.exp(np.minimum(edges[:-1], LARGEST_EXPONENT))
        excess = growth * self.rate * (ratio[:-1] * still - moved)
        # Where the ratio was cut, the true excess may be anything up to the whole cell.
        excess = np.where(ratio[:-1] < math.exp(LARGEST_EXPONENT), excess, still)
        return spread(edges, still, excess, float(ndtr(-x[0])), float(ndtr(x[-1])))

    def _outside(self, x: Array) -> tuple[float, float]:
        """Return the mixture's mass below the first point, and above the last."""
        q, low, high = self.rate, x[0], x[-1]
        below = (1.0 - q) * ndtr(low) + q * ndtr(low - self.mu)
        return float(below), float((1.0 - q) * ndtr(-high) + q * ndtr(self.mu - high))


class RemovalPair(GaussianMixturePair):
    """(1-q) N(0) + q N(mu) against N(0)."""

    mixture_type = RemovalMixture

    def __init__(self, rate: float, mu: float) -> None:
        super().__init__(rate, mu)
        self.origin = math.log1p(-rate) if rate < 1.0 else 0.0

    def losses_at(self, x: Array) -> Array:
        """See `GaussianMixturePair`."""
        return self._log_ratios(x)

    def node_masses(self, edges: Array) -> NodeMasses:
        """See `CellPair`."""
        return self._spread_up(edges)


class GaussianPair(RemovalPair):
    """N(mu) against N(0)."""

    largest_tilt = math.inf
    cut_mass = 0.0

    def __init__(self, mu: float) -> None:
        super().__init__(1.0, mu)

    def cumulants(self, theta: float) -> tuple[float, float, float]:
        """See `Transformable`."""
        square = self.mu * self.mu
        return 0.5 * square * theta * (theta + 1.0), square * (theta + 0.5), square

    def log_transform(self, z: Complex) -> tuple[Complex, Array]:
        """See `Transformable`."""
        values = 0.5 * self.mu * self.mu * z * (z + 1.0)
        return values, 8.0 * UNIT_ROUNDOFF * np.abs(values)

    def decay(self, theta: float, frequency: float) -> float:
        """See `Transformable`."""
        return -0.5 * (self.mu * frequency) ** 2

    def transforms(self, tail: float) -> tuple[Transformable, Transformable]:
        """Return the pair itself."""
        return self, self

    def profile(self, epsilon: float) -> tuple[float, float]:
        """See `Pair`."""
        low, high = gaussian_profile.delta_bounds(self.mu, epsilon)
        return low * (1.0 - 1e-14), high * _ROUNDED

    def _support(self, tail: float) -> tuple[float, float]:
        return self.mu - _reach(tail), self.mu + _reach(tail)


class AdditionPair(GaussianMixturePair):
    """N(0) against (1-q) N(0) + q N(mu)."""

    mixture_type = AdditionMixture

    def __init__(self, rate: float, mu: float) -> None:
        super().__init__(rate, mu)
        self.largest_loss = -math.log1p(-rate)

    def losses_at(self, x: Array) -> Array:
        """See `GaussianMixturePair`."""
        return -self._log_ratios(x)

    def node_masses(self, edges: Array) -> NodeMasses:
        """See `CellPair`."""
        return self._spread_down(edges)

    def profile(self, epsilon: float) -> tuple[float, float]:
        """See `Pair`."""
        share = (1.0 - self.rate) * math.expm1(min(epsilon, LARGEST_EXPONENT)) / self.rate
        if epsilon >= self.largest_loss:
            return 0.0, 0.0
        left = max(1.0 - share, 1e-15)
        return self._scaled_profile(self.rate * left, epsilon - math.log(left), 1e-15 / left)

    def _support(self, tail: float) -> tuple[float, float]:
        return -_reach(tail), _reach(tail)


class PoissonReplacementPair(GaussianMixturePair):
    """(1-q) N(0) + q N(mu) against (1-q) N(0) + q N(-mu)."""

    mixture_type = PoissonReplacementMixture
    farthest = 2.0

    def losses_at(self, x: Array) -> Array:
        """See `GaussianMixturePair`."""
        return self._log_ratios(x) - self._log_ratios(-x)

    def node_masses(self, edges: Array) -> NodeMasses:
        """See `CellPair`."""
        q, mu = self.rate, self.mu
        x = self.threshold(edges)
        still, up, down = _normal_cells(x), _normal_cells(x - mu), _normal_cells(x + mu)
        loss = np.minimum(edges[:-1], LARGEST_EXPONENT)
        excess = -(1.0 - q) * np.expm1(loss) * still + q * (up - np.exp(loss) * down)
        return spread(edges, (1.0 - q) * still + q * up, excess, *self._outside(x))

    def profile(self, epsilon: float) -> tuple[float, float]:
        """Bound P(x > t) - e^epsilon Q(x > t), with t at loss epsilon.

        As t is optimal, its error has an effect of second order.
        """
        q, mu = self.rate, self.mu
        x = float(self.threshold(np.array([epsilon]))[0])
        up = q * float(ndtr(mu - x))
        # With logarithms, as tails vanish where the growth is beyond all floats.
        down = q * math.exp(epsilon + float(log_ndtr(-mu - x)))
        rest = (1.0 - q) * -math.expm1(-epsilon) * math.exp(epsilon + float(log_ndtr(-x)))
        terms = up, down, rest
        value = up - down - rest
        slip = 1e-14 * (1.0 + (abs(x) + mu) ** 2) * sum(terms) + sys.float_info.min
        return max(value - slip, 0.0), min(max(value, 0.0) + slip, 1.0)

    def threshold(self, losses: Array) -> Array:
        """Return the points of given losses."""
        half = 0.5 * np.abs(losses)
        with np.errstate(divide="ignore"):
            log_sinh = half + np.log(-np.expm1(-2.0 * half)) - math.log(2.0)
        log_argument = log_sinh + 0.5 * self.mu * self.mu + math.log1p(-self.rate)
        log_argument = log_argument - math.log(self.rate)
        asinh = np.where(
            log_argument > 18.0,
            log_argument + math.log(2.0),
            np.arcsinh(np.exp(np.minimum(log_argument, 18.0))),
        )
        return np.sign(losses) * (asinh + half) / self.mu


class UniformReplacementPair(GaussianMixturePair):
    """The symmetric pair of fixed-size samples; see this module."""

    mixture_type = UniformReplacementMixture
    needs_zero = True

    def losses_at(self, x: Array) -> Array:
        """Return the losses at points above mu/2, on both branches, and zero."""
        up = self._log_ratios(x[x > 0.5 * self.mu])
        return np.concatenate([-up[::-1], [0.0], up])

    def span(self, tail: float) -> tuple[float, float]:
        """See `Pair`."""
        x_low, x_high = self._support(tail)
        # The negative branch has the masses of an addition, whose x is a standard normal.
        high = self._log_ratios(np.array([max(-x_low, 0.5 * self.mu), x_high]))
        return -float(high[0]), max(float(high[1]), 0.0)

    def node_masses(self, edges: Array) -> NodeMasses:
        """See `CellPair`."""
        zero = int(np.searchsorted(edges, 0.0))
        negative = self._spread_down(edges[: zero + 1])
        positive = self._spread_up(edges[zero:], whole=False)
        return join_at_zero(zero, negative, positive, self._mixture.still)


def _reach(tail: float) -> float:
    return -float(ndtri(max(0.5 * tail, SMALLEST_TAIL)))


def _normal_cells(x: Array) -> Array:
    """Return normal mass between monotone points, from the nearer tail.

    It is negative for falling points.
    """
    left, right = x[:-1], x[1:]
    flip = left + right > 0.0
    return ndtr(np.where(flip, -left, right)) - ndtr(np.where(flip, -right, left))


_KINDS: dict[str, type[GaussianMixturePair]] = {
    "remove": RemovalPair,
    "add": AdditionPair,
    "poisson-replace-one": PoissonReplacementPair,
    "uniform-replace-one": UniformReplacementPair,
}


def gaussian_pair(kind: str, rate: float, mu: float) -> GaussianMixturePair:
    """Return the pair of a direction, or of a kind of sampling."""
    return GaussianPair(mu) if kind == "gaussian" else _KINDS[kind](rate, mu)
