"""Dominating pairs of Gaussian releases, sampled or not, cut into cells of the privacy loss.

With ``M(x) = 1 - q + q e^(mu x - mu^2/2)`` and unit noise, the pairs are

- ``"gaussian"``: N(mu) against N(0);
- ``"remove"`` / ``"add"``: (1-q) N(0) + q N(mu) against N(0), and the reverse (Poisson sampling,
  add-remove; one pair of neighbours has one direction throughout a plan);
- ``"poisson-replace-one"``: (1-q) N(0) + q N(mu) against (1-q) N(0) + q N(-mu), which dominates by
  convexity and Gaussian interpolation;
- ``"uniform-replace-one"``: the symmetric pair whose profile is
  ``p delta_G(log(1 + (e^eps - 1)/p); mu)`` for ``eps >= 0`` in both orders (Balle, Barthe and
  Gaboardi, 2018, Theorem 9). Its loss is log M with the masses of "remove" and -log M with those
  of "add", both for x > mu/2, and zero with mass ``(1-p) (1 - 2 Phi(-mu/2))``. The larger of the
  two composed directions is *not* a bound here: one pair of neighbours may act as "remove" at one
  step and as "add" at another (Lebeda, Regehr, Kamath and Steinke, 2024).
"""

from __future__ import annotations

import math
import sys
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

from skdp.accounting.analysis import log_mixture
from skdp.accounting.numerics import gaussian_profile
from skdp.accounting.pld.optimistic import lowered
from skdp.accounting.pld.pairs.base import Array, Indices, NodeMasses, spread
from skdp.accounting.pld.transforms.gaussian import GaussianMixtureLoss
from skdp.accounting.pld.transforms.gaussian_rules import Mixture

_SMALLEST_TAIL = 1e-300
_LARGE = 700.0  # exponents are cut here; every cut errs towards a larger privacy loss


class LargestLosses(NamedTuple):
    """The losses of a release beyond a level, and the others.

    ``more`` is by how much their probability under P exceeds that under Q, ``under_q``, both up to
    a relative ``error``; ``rest`` are the other losses. Besides, ``rest`` lacks the least losses if
    ``mirrored``, which are below minus the level with probability ``under_q`` under P.
    """

    level: float
    more: float
    under_q: float
    error: float
    mirrored: bool
    rest: GaussianMixtureLoss


class GaussianMixturePair:
    """A pair made of unit Gaussians at 0 and at ``mu`` (and ``-mu``), the latter with a rate.

    Parameters
    ----------
    kind : str
        One of the names in the module's description.
    rate : float
        Sampling probability, in (0, 1); 1 for ``"gaussian"``.
    mu : float
        Shift in units of the noise, positive.
    """

    def __init__(self, kind: str, rate: float, mu: float) -> None:
        self.kind = kind
        self.rate = rate
        self.mu = mu
        self.failure = 0.0
        self.cut_mass = 0.0
        self.atomic = False
        self.lattice = self.origin = 0.0
        distance = 2.0 * mu if kind == "poisson-replace-one" else mu
        self._loss = GaussianMixtureLoss(Mixture(kind, rate, mu))
        self.variation = rate * math.erf(0.5 * distance / math.sqrt(2.0))
        self.largest_loss = -math.log1p(-rate) if kind == "add" else math.inf

    def span(self, tail: float) -> tuple[float, float]:
        """Return the losses between which all but ``tail`` of P's mass lies on either side."""
        x_low, x_high = self._support(tail)
        if self.kind == "add":
            return -self._log_ratio(x_high), -self._log_ratio(x_low)
        high = self._log_ratio(x_high)
        if self.kind == "poisson-replace-one":
            return (
                self._log_ratio(x_low) - self._log_ratio(-x_low),
                high - self._log_ratio(-x_high),
            )
        if self.kind == "uniform-replace-one":
            # The negative branch has the masses of "add", whose x is a standard normal.
            return -self._log_ratio(max(-x_low, 0.5 * self.mu)), max(high, 0.0)
        return self._log_ratio(x_low), high

    def sketch(self, tail: float) -> tuple[Array, Array]:
        """Return a coarse list of losses with their probabilities, for estimates."""
        x_low, x_high = self._support(tail)
        reach = x_high - self.mu if x_high > self.mu else -x_low
        parts = [np.arange(x_low, min(-x_low, x_high) + 0.1, 0.1)]
        if x_high > -x_low:
            parts.append(np.arange(max(-x_low, self.mu - reach) + 0.1, x_high + 0.1, 0.1))
        x = np.concatenate(parts)
        if self.kind == "uniform-replace-one":
            up = self._log_ratios(x[x > 0.5 * self.mu])
            edges = np.concatenate([-up[::-1], [0.0], up])
        elif self.kind == "poisson-replace-one":
            edges = self._log_ratios(x) - self._log_ratios(-x)
        elif self.kind == "add":
            edges = -self._log_ratios(x[::-1])
        else:
            edges = self._log_ratios(x)
        # One more cell at either end, for losses that rounding has merged.
        edges = np.unique(edges)
        size = max(abs(edges[0]), abs(edges[-1]))
        margin = max(1e-3 * (edges[-1] - edges[0]), 1e-9 * size, 1e-300)
        edges = np.concatenate([[edges[0] - margin], edges, [edges[-1] + margin]])
        return edges, self.node_masses(edges).masses

    def grid(self, step: float, tail: float, aligned: bool = False) -> tuple[Indices, Array, float]:
        """Return indices of losses in units of ``step``, their masses, and the infinite mass."""
        indices, nodes = self._nodes_on_grid(step, tail)
        return indices, nodes.masses, nodes.infinite

    def optimistic_grid(
        self, step: float, tail: float, aligned: bool = False
    ) -> tuple[Indices, Array, float]:
        """Return the same for a discrete pair that this one dominates."""
        indices, nodes = self._nodes_on_grid(step, tail)
        return indices, lowered(step, nodes, int(-indices[0])), 0.0

    def _nodes_on_grid(self, step: float, tail: float) -> tuple[Indices, NodeMasses]:
        low, high = self.span(tail)
        first, last = math.floor(low / step), math.ceil(high / step) + 1
        if self.kind == "uniform-replace-one":
            first, last = min(first, -1), max(last, 1)
        indices = np.arange(first, last + 1, dtype=np.int64)
        return indices, self.node_masses(np.asarray(indices * step, dtype=np.float64))

    def node_masses(self, edges: Array) -> NodeMasses:
        """Spread P's mass over the given losses, dominating the pair.

        Parameters
        ----------
        edges : ndarray
            Increasing losses; zero must be among them for ``"uniform-replace-one"``.

        Returns
        -------
        NodeMasses
            Mass below the first loss is moved up to it, mass above the last one to infinity.
        """
        if self.kind == "add":
            return spread(edges, *self._down_cells(edges))
        if self.kind == "poisson-replace-one":
            return spread(edges, *self._replace_cells(edges))
        if self.kind != "uniform-replace-one":
            return spread(edges, *self._up_cells(edges))
        zero = int(np.searchsorted(edges, 0.0))
        mass, excess, below, _ = self._down_cells(edges[: zero + 1])
        negative = spread(edges[: zero + 1], mass, excess, below, 0.0)
        mass, excess, _, above = self._up_cells(edges[zero:])
        positive = spread(edges[zero:], mass, excess, 0.0, above)
        masses = np.zeros(len(edges))
        masses[: zero + 1] += negative.masses
        masses[zero:] += positive.masses
        masses[zero] += (1.0 - self.rate) * math.erf(0.5 * self.mu / math.sqrt(2.0))
        falling = np.concatenate([negative.falling, positive.falling])
        rising = np.concatenate([negative.rising, positive.rising])
        return NodeMasses(masses, positive.infinite, falling, rising, below)

    def cumulants(self, theta: float) -> tuple[float, float, float]:
        """Return the log moment of the loss and its first two derivatives, estimated."""
        if self.kind == "gaussian":
            square = self.mu * self.mu
            return 0.5 * square * theta * (theta + 1.0), square * (theta + 0.5), square
        return self._loss.cumulants(theta)

    def log_transform(self, z: NDArray[np.complex128]) -> tuple[NDArray[np.complex128], Array]:
        """Return log E_P[e^(z L)] and bounds on its absolute error; see `Pair`."""
        if self.kind == "gaussian":
            values = 0.5 * self.mu * self.mu * z * (z + 1.0)
            return values, 8.0 * 2.0**-53 * np.abs(values)
        return self._loss.log_transform(z)

    @property
    def largest_tilt(self) -> float:
        """A tilt at which moments are not yet out of reach."""
        return math.inf if self.kind == "gaussian" else self._loss.largest_tilt

    def decay(self, theta: float, frequency: float) -> float:
        """Bound how much smaller the moments are at all frequencies from a given one on."""
        if self.kind == "gaussian":
            return -0.5 * (self.mu * frequency) ** 2
        return self._loss.decay(theta, frequency)

    def truncated(self, tail: float) -> GaussianMixtureLoss:
        """Return the loss with all but about ``tail`` of its mass, the largest values cut off."""
        if self.kind in ("gaussian", "add"):
            return self._loss
        cut = self._support(tail)[1]
        return GaussianMixtureLoss(Mixture(self.kind, self.rate, self.mu, cut))

    def largest_losses(self, level: float) -> LargestLosses | None:
        """Set the losses apart that exceed a level.

        Parameters
        ----------
        level : float
            About where to part them, in nats, positive; the one returned counts.

        Returns
        -------
        LargestLosses or None
            None where losses are bounded, or normal.
        """
        q, mu = self.rate, self.mu
        if self.kind in ("gaussian", "add"):
            return None
        where = np.array([level])
        if self.kind == "poisson-replace-one":
            x = float(_replacement_threshold(q, mu, where)[0])
            reached = self._log_ratio(x) - self._log_ratio(-x)
            unlikely = q * float(ndtr(-mu - x))
        else:
            x = float(self._invert(where)[0][0])
            reached = self._log_ratio(x)
            unlikely = q * float(ndtr(-x))
        likely = q * float(ndtr(mu - x))
        error = 1e-14 * (1.0 + (abs(x) + mu) ** 2)
        return LargestLosses(
            reached * (1.0 - 1e-12),
            likely - unlikely,
            (1.0 - q) * float(ndtr(-x)) + unlikely,
            error * (likely + unlikely) / max(likely - unlikely, sys.float_info.min),
            self.kind != "remove",
            GaussianMixtureLoss(Mixture(self.kind, q, mu, x)),
        )

    def profile(self, epsilon: float) -> tuple[float, float] | None:
        """Return bounds on the hockey-stick divergence at ``epsilon >= 0``; see `Pair`."""
        q = self.rate
        if self.kind == "poisson-replace-one":
            return self._replacement_profile(epsilon)
        # Mixtures have the Gaussian divergence at another epsilon, times a factor.
        factor, inner = q, epsilon
        if self.kind == "add":
            if epsilon >= self.largest_loss:
                return 0.0, 0.0
            factor = q - (1.0 - q) * math.expm1(epsilon)
            if factor <= 0.0:
                return 0.0, 0.0
            inner = epsilon + math.log(q) - math.log(factor)
        elif q < 1.0:
            inner = float(log_mixture(1.0 / q, epsilon))
        slip = 1e-15 * (1.0 + inner) if q < 1.0 else 0.0
        low, _ = gaussian_profile.delta_bounds(self.mu, inner + slip)
        _, high = gaussian_profile.delta_bounds(self.mu, max(inner - slip, 0.0))
        return factor * low * (1.0 - 1e-14), factor * high * (1.0 + 1e-14)

    def _replacement_profile(self, epsilon: float) -> tuple[float, float]:
        """Return bounds on P(x > t) - e^epsilon Q(x > t), with t where the loss is epsilon.

        As this t is the best, an error of it matters to second order only.
        """
        q, mu = self.rate, self.mu
        x = float(_replacement_threshold(q, mu, np.array([epsilon]))[0])
        growth = math.exp(min(epsilon, _LARGE))
        still, up, down = (float(ndtr(y)) for y in (-x, mu - x, -mu - x))
        terms = q * up, q * growth * down, (1.0 - q) * math.expm1(min(epsilon, _LARGE)) * still
        value = terms[0] - terms[1] - terms[2]
        slip = 1e-14 * (1.0 + (abs(x) + mu) ** 2) * sum(terms) + sys.float_info.min
        return max(value - slip, 0.0), min(max(value, 0.0) + slip, 1.0)

    def _support(self, tail: float) -> tuple[float, float]:
        """Interval of x outside which P has at most about ``tail`` on either side."""
        reach = -float(ndtri(max(0.5 * tail, _SMALLEST_TAIL)))
        if self.kind == "add":
            return -reach, reach
        share = max(0.5 * tail / self.rate, _SMALLEST_TAIL)
        shifted = self.mu - float(ndtri(share)) if share < 0.5 else 0.0
        low = self.mu - reach if self.kind == "gaussian" else -reach
        return low, max(low + 2.0 * reach if self.kind == "gaussian" else reach, shifted)

    def _log_ratio(self, x: float) -> float:
        return float(self._log_ratios(np.array([x]))[0])

    def _log_ratios(self, x: Array) -> Array:
        """Return log M(x), accurately also where it is tiny."""
        exponent = self.mu * x - 0.5 * self.mu**2
        return log_mixture(self.rate, exponent)

    def _invert(self, loss: Array) -> tuple[Array, Array]:
        """Return x with log M(x) = loss, and the density ratio of N(mu) to N(0) there.

        Below log(1 - q), which no x attains, x is -inf and the "ratio" negative: it is the number
        r for which ``1 - q + q r = e^loss``.
        """
        q = self.rate
        if q == 1.0:
            log_ratio, ratio = loss, np.exp(np.minimum(loss, _LARGE))
        else:
            shifted = np.expm1(np.minimum(loss, 30.0)) / q
            with np.errstate(divide="ignore"):
                near = np.log1p(np.maximum(shifted, -1.0))
            far = loss - math.log(q) + np.log1p(-(1.0 - q) * np.exp(-np.maximum(loss, 30.0)))
            log_ratio = np.where(loss < 30.0, near, far)
            ratio = np.where(loss < 30.0, 1.0 + shifted, np.exp(np.minimum(far, _LARGE)))
        return (log_ratio + 0.5 * self.mu**2) / self.mu, ratio

    def _up_cells(self, edges: Array) -> tuple[Array, Array, float, float]:
        """Cells of P = (1-q) N(0) + q N(mu) against Q = N(0)."""
        q = self.rate
        x, ratio = self._invert(edges)
        still, moved = _normal_cells(x), _normal_cells(x - self.mu)
        # a - b e^l with the (1-q) N(0) parts cancelled by hand, which keeps q's digits.
        excess = q * (moved - ratio[:-1] * still)
        below = (1.0 - q) * ndtr(x[0]) + q * ndtr(x[0] - self.mu)
        above = (1.0 - q) * ndtr(-x[-1]) + q * ndtr(self.mu - x[-1])
        return (1.0 - q) * still + q * moved, excess, float(below), float(above)

    def _down_cells(self, edges: Array) -> tuple[Array, Array, float, float]:
        """Cells of P = N(0) against Q = (1-q) N(0) + q N(mu); the loss falls as x rises."""
        x, ratio = self._invert(-edges)
        still, moved = -_normal_cells(x), -_normal_cells(x - self.mu)
        growth = np.exp(np.minimum(edges[:-1], _LARGE))
        excess = growth * self.rate * (ratio[:-1] * still - moved)
        # Where the ratio was cut, the true excess may be anything up to the whole cell.
        excess = np.where(ratio[:-1] < math.exp(_LARGE), excess, still)
        return still, excess, float(ndtr(-x[0])), float(ndtr(x[-1]))

    def _replace_cells(self, edges: Array) -> tuple[Array, Array, float, float]:
        """Cells of P = (1-q) N(0) + q N(mu) against Q = (1-q) N(0) + q N(-mu)."""
        q, mu = self.rate, self.mu
        x = _replacement_threshold(q, mu, edges)
        still, up, down = _normal_cells(x), _normal_cells(x - mu), _normal_cells(x + mu)
        loss = np.minimum(edges[:-1], _LARGE)
        excess = -(1.0 - q) * np.expm1(loss) * still + q * (up - np.exp(loss) * down)
        below = (1.0 - q) * ndtr(x[0]) + q * ndtr(x[0] - mu)
        above = (1.0 - q) * ndtr(-x[-1]) + q * ndtr(mu - x[-1])
        return (1.0 - q) * still + q * up, excess, float(below), float(above)


def _normal_cells(x: Array) -> Array:
    """Return the standard normal mass between consecutive points, from the nearer tail.

    Parameters
    ----------
    x : ndarray
        Monotone points; for falling ones the masses are negative.

    Returns
    -------
    ndarray
        One mass for each neighbouring pair of points.
    """
    left, right = x[:-1], x[1:]
    flip = left + right > 0.0
    return ndtr(np.where(flip, -left, right)) - ndtr(np.where(flip, -right, left))


def _replacement_threshold(rate: float, mu: float, losses: Array) -> Array:
    """Return where (1-q) N(0) + q N(mu) against (1-q) N(0) + q N(-mu) has the given losses."""
    half = 0.5 * np.abs(losses)
    with np.errstate(divide="ignore"):
        log_sinh = half + np.log(-np.expm1(-2.0 * half)) - math.log(2.0)
    log_argument = log_sinh + 0.5 * mu * mu + math.log1p(-rate) - math.log(rate)
    asinh = np.where(
        log_argument > 18.0,
        log_argument + math.log(2.0),
        np.arcsinh(np.exp(np.minimum(log_argument, 18.0))),
    )
    return np.sign(losses) * (asinh + half) / mu
