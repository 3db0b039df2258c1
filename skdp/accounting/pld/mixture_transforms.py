"""The mixtures behind sampled Gaussian pairs, and the decay of their transforms.

Let ``M(x) = 1 - q + q e^(mu x - mu^2/2)`` and ``w = 1 + z``. With x standard normal, the pairs of
`pairs.gaussian` have the moments ``E_P[e^(z L)]``

- `RemovalMixture`: E[M^w]; `AdditionMixture`: E[M^(-z)];
- `PoissonReplacementMixture`: E[M(x)^w M(-x)^(-z)];
- `UniformReplacementMixture`: 1 + E[(M^w + M^(-z) - M - 1) 1(x > mu/2)].

A multiple of ``M - 1`` is subtracted from each integrand, so errors are small against the *loss* of
one release. The decay is bounded by an integral along a contour ``x + i b(x)``. Proofs: sections 3
and 4 of ``docs/proofs/certified_intervals.md``.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np
from scipy.special import ndtr

from skdp.accounting.numerics.arithmetic import log_mixture, narrow_bracket
from skdp.accounting.pld.pairs.base import Array

Term = tuple[float, float]  # the sign s and the power e of a factor M(s x)^e


class Integrand(NamedTuple):
    """Integrand of the moments at the nodes of a rule, on one or two branches.

    Branches have losses, the logarithm of the tilt, and bounds on its order and size. ``linear`` is
    subtracted, ``constant`` and ``drift`` remain; ``ratio`` bounds M - 1, ``steep`` the slope of
    log M.
    """

    branches: list[tuple[Array, Array, float, Array]]
    linear: Array
    constant: float
    drift: float
    ratio: Array
    steep: Array


@dataclass(frozen=True)
class Mixture(ABC):
    """A sampled Gaussian pair with rate in (0, 1), cut where x exceeds ``cut``.

    Additions are never cut; symmetric pairs are cut on both sides.
    """

    rate: float
    mu: float
    cut: float = math.inf

    rises: ClassVar[bool] = True  # a positive power of M is a factor
    falls: ClassVar[bool] = False  # a negative power of M is
    two_sided: ClassVar[bool] = False  # that of M(-x), whereas it is M(x) elsewhere
    half_line: ClassVar[bool] = False  # x counts above mu/2 only

    @abstractmethod
    def products(self, theta: float) -> list[list[Term]]:
        """Return the density's factor: a sum of products of powers of M."""

    @abstractmethod
    def evaluate(self, theta: float, x: Array, weights: Array) -> Integrand:
        """Evaluate the integrand."""

    def top(self, theta: float) -> float:
        """Return a point beyond which the tilted density falls like a normal one."""
        return self.mu * (1.0 + theta)

    @property
    def still(self) -> float:
        """Probability of a zero loss outside the products."""
        return 0.0

    @property
    def cut_base(self) -> float:
        """Standard normal probability of the dropped part."""
        return float(ndtr(-self.cut))

    @property
    def cut_gain(self) -> float:
        """Excess of (1 - q) N(0) + q N(mu) over N(0) on the dropped part."""
        return self.rate * (float(ndtr(self.mu - self.cut)) - self.cut_base)

    @property
    def cut_up(self) -> float:
        """Probability of the dropped part under (1 - q) N(0) + q N(mu)."""
        return self.cut_base + self.cut_gain

    @property
    def cut_mass(self) -> float:
        """Probability under P of the dropped part."""
        return self.cut_up

    def _evaluate_ratio(self, x: Array) -> tuple[Array, Array, Array]:
        """Return log M, M - 1 and the slope of log M."""
        up = log_mixture(self.rate, self.mu * (x - 0.5 * self.mu))
        ratio = np.expm1(up)
        return up, ratio, self.mu * (ratio + self.rate) / (1.0 + ratio)


class RemovalMixture(Mixture):
    """(1-q) N(0) + q N(mu) against N(0)."""

    def products(self, theta: float) -> list[list[Term]]:
        """Return M^(1 + theta)."""
        return [[(1.0, 1.0 + theta)]]

    def evaluate(self, theta: float, x: Array, weights: Array) -> Integrand:
        """Evaluate M^w, less w (M - 1)."""
        power = 1.0 + theta
        up, ratio, steep = self._evaluate_ratio(x)
        drift = float(np.sum(weights * ratio)) + self.cut_gain
        branches = [(up, power * up, power, np.abs(up))]
        constant = -power * self.cut_gain - self.cut_base
        return Integrand(branches, power * ratio, constant, drift, ratio, steep)


class AdditionMixture(Mixture):
    """N(0) against (1-q) N(0) + q N(mu)."""

    rises, falls = False, True

    def products(self, theta: float) -> list[list[Term]]:
        """Return M^(-theta)."""
        return [[(1.0, -theta)]]

    def top(self, theta: float) -> float:
        """See `Mixture`."""
        return self.mu

    def evaluate(self, theta: float, x: Array, weights: Array) -> Integrand:
        """Evaluate M^(-z), plus z (M - 1)."""
        up, ratio, steep = self._evaluate_ratio(x)
        drift = float(np.sum(weights * ratio))
        branches = [(-up, -theta * up, theta, np.abs(up))]
        return Integrand(branches, -theta * ratio, 0.0, -drift, ratio, steep)


class PoissonReplacementMixture(Mixture):
    """(1-q) N(0) + q N(mu) against (1-q) N(0) + q N(-mu)."""

    falls = True
    two_sided = True

    @property
    def cut_loss(self) -> float:
        """Excess of (1 - q) N(0) + q N(-mu) over N(0) on the dropped part; negative."""
        return self.rate * (float(ndtr(-self.mu - self.cut)) - self.cut_base)

    @property
    def cut_mass(self) -> float:
        """See `Mixture`."""
        return self.cut_up + self.cut_base + self.cut_loss

    def products(self, theta: float) -> list[list[Term]]:
        """Return M(x)^(1 + theta) M(-x)^(-theta)."""
        return [[(1.0, 1.0 + theta), (-1.0, -theta)]]

    def top(self, theta: float) -> float:
        """See `Mixture`."""
        return self.mu * (1.0 + 2.0 * theta)

    def evaluate(self, theta: float, x: Array, weights: Array) -> Integrand:
        """Evaluate M(x)^w M(-x)^(-z), less w (M(x) - 1) - z (M(-x) - 1)."""
        power = 1.0 + theta
        up, ratio, steep = self._evaluate_ratio(x)
        down, fall, steep_down = self._evaluate_ratio(-x)
        return Integrand(
            [(up - down, power * up - theta * down, power, np.abs(up) + np.abs(down))],
            power * ratio - theta * fall,
            -(self.cut_gain + self.cut_loss) - 2.0 * self.cut_base,  # on both sides
            0.0,
            np.abs(ratio) + np.abs(fall),
            steep + steep_down,
        )


class UniformReplacementMixture(Mixture):
    """The symmetric pair of samples of fixed size."""

    falls = True
    half_line = True

    @property
    def still(self) -> float:
        """See `Mixture`."""
        return (1.0 - self.rate) * math.erf(0.5 * self.mu / math.sqrt(2.0))

    @property
    def cut_mass(self) -> float:
        """See `Mixture`."""
        return self.cut_up + self.cut_base

    def products(self, theta: float) -> list[list[Term]]:
        """Return M^(1 + theta) and M^(-theta)."""
        return [[(1.0, 1.0 + theta)], [(1.0, -theta)]]

    def evaluate(self, theta: float, x: Array, weights: Array) -> Integrand:
        """Evaluate M^w + M^(-z), less M + 1."""
        power = 1.0 + theta
        up, ratio, steep = self._evaluate_ratio(x)
        size = np.abs(up)
        branches = [(up, power * up, power, size), (-up, -theta * up, theta, size)]
        return Integrand(branches, ratio, -(self.cut_up + self.cut_base), 0.0, ratio, steep)


_REACH = 8.5  # standard deviations around the ends of what the tilted density can weigh
_SHARE = 0.9  # of the strip around the real line in which the integrand is analytic
_FINENESS = 8.0  # cells in the distance over which the tilted density may bend
_CELLS = (400, 4000)  # fewest and most cells
_STEEP = 0.3  # shift from which more than one contour is tried
_ROUNDING = 1e-11  # relative error of the sums, generously


class _Cells(NamedTuple):
    """Cells, heights of the contour, and bounds on the rest."""

    x: Array
    heights: Array
    open_ends: tuple[int, ...]  # indices of ends that are none of the integral's


class _Part(NamedTuple):
    """Sums over cells: tilted mass (two bounds), on the contour, and change."""

    least: float
    most: float
    shifted: float
    change: float


def log_decay(mixture: Mixture, theta: float, frequency: float) -> float:
    """Bound ``log |E e^((theta + i v) L)| - log E e^(theta L)`` for all v from a frequency on."""
    # Any contour gives a bound. Where the slope is exponential, the first is the best; where the
    # shifted component dominates, the second.
    best = _along(mixture, theta, frequency, 1.0)
    return min(best, _along(mixture, theta, frequency, 0.0)) if mixture.mu > _STEEP else best


def _along(mixture: Mixture, theta: float, frequency: float, restraint: float) -> float:
    """Bound the fall by the integral along one contour."""
    cells = _cells(mixture, theta, frequency, restraint)
    if cells is None:
        return 0.0
    with np.errstate(over="ignore", invalid="ignore"):
        parts = [_bound(mixture, cells, terms, frequency) for terms in mixture.products(theta)]
    still = mixture.still  # it does not fall
    least = still + math.fsum(part.least for part in parts)
    most = still + math.fsum(part.most for part in parts)
    shifted = still + math.fsum(part.shifted for part in parts)
    change = math.fsum(part.change for part in parts)
    # What overflows is not claimed to fall.
    if not (math.isfinite(most) and change < 0.0 < least):
        return 0.0
    # The first is sharp for slight falls, the second for steep ones.
    best = math.log1p(change / most) if -change < most else 0.0
    if math.isfinite(shifted):
        best = min(best, math.log(shifted / least))
    return min(best * (1.0 - _ROUNDING), 0.0)


def _cells(mixture: Mixture, theta: float, frequency: float, restraint: float) -> _Cells | None:
    """Choose range, cells and heights of the contour."""
    rate, mu, cut, replace = mixture.rate, mixture.mu, mixture.cut, mixture.two_sided
    if mixture.half_line:
        start = 0.5 * mu
    elif not mixture.rises:
        start = _left_of_falling(rate, mu, theta)
    else:
        start = max(-_REACH - mu * replace, -cut if replace else -math.inf)
    end = min(mixture.top(theta) + _REACH, cut)
    if not start < end:
        return None
    bend = math.sqrt(1.0 + 0.25 * mu * mu * (1.0 + 2.0 * theta))
    count = int(np.clip(_FINENESS * bend * (end - start), *_CELLS))
    x = np.linspace(start, end, count + 1)
    slope = mu * _share(rate, mu * (x - 0.5 * mu))
    if replace:
        slope = slope + mu * _share(rate, -mu * (x + 0.5 * mu))
    limit = _SHARE * (0.5 * math.pi if mixture.falls else math.pi) / mu
    # What resists: the normal density, the length of the contour, and M^-theta.
    resistance = 1.0 + restraint * mu * mu + (0.0 if mixture.rises else theta * mu * slope)
    pull = frequency / resistance
    # The contour has to start and to end where the integral does, or on the real line.
    onset = np.tanh(x - x[0]) * np.tanh(x[-1] - x)
    heights = limit * np.tanh(pull * slope / limit) * onset
    ends = [0] if not mixture.half_line and not (replace and start == -cut) else []
    return _Cells(x, heights, tuple(ends + ([count] if end < cut else [])))


def _left_of_falling(rate: float, mu: float, theta: float) -> float:
    """Return where ``M^-theta`` times the normal density rises by `reach` nats per unit.

    Its log slope, ``-x - theta mu p``, is larger to the left.
    """

    def exceed(x: float) -> float:
        share = float(_share(rate, np.array([mu * (x - 0.5 * mu)]))[0])
        return -x - theta * mu * share - _REACH

    low = high = -_REACH
    while exceed(low) < 0.0:
        low *= 2.0
    return low if low == high else narrow_bracket(exceed, low, high, 1e-12)[0]


def _bound(mixture: Mixture, cells: _Cells, terms: list[Term], frequency: float) -> _Part:
    """Bound tilted mass and modulus for one product of factors."""
    rate, mu = mixture.rate, mixture.mu
    x, heights, open_ends = cells
    widths = np.diff(x)
    tangents = np.diff(heights) / widths
    log_density: Array = -0.5 * x * x - 0.5 * math.log(2.0 * math.pi)
    turn, growth = np.zeros(len(x)), np.zeros(len(x))
    size = np.zeros(len(x))
    density_bend: Array = np.ones(len(widths))
    change_bend = np.zeros(len(widths))
    highest = np.maximum(heights[1:], heights[:-1])
    squares = tangents * tangents
    for sign, power in terms:
        exponent = mu * (sign * x - 0.5 * mu)
        share = _share(rate, exponent)
        modulus, angle = _off_the_line(share, mu * heights)
        log_density = log_density + power * log_mixture(rate, exponent)
        growth = growth + power * modulus
        turn = turn + angle
        size = size + abs(power) * np.abs(modulus)
        second, third = _derivatives(mu, share, highest)
        density_bend = density_bend + abs(power) * second[0]
        off_line = highest * third * (1.0 + 2.0 * np.abs(tangents) + squares)
        change_bend += abs(power) * (off_line + squares * second[1])
        change_bend += frequency * (off_line + 2.0 * np.abs(tangents) * second[1])
    slack = 0.125 * widths * widths * density_bend + _ROUNDING
    size = size + 0.5 * heights * heights + frequency * turn
    total = 0.5 * heights * heights + growth - frequency * turn + _ROUNDING * size
    stretch = 0.5 * np.log1p(squares) * (1.0 + _ROUNDING)
    stretch = stretch + 0.125 * widths * widths * change_bend
    left, right = total[:-1] + stretch, total[1:] + stretch
    near, far = _halves(np.diff(log_density))
    mass = widths * np.exp(log_density[:-1])
    near, far = mass * near, mass * far
    # expm1 is convex, so it is below its chord; what falls counts for less, what rises for more.
    down, up = np.exp(-slack), np.exp(slack)
    change = _weighted(near, np.expm1(left), down, up)
    change += _weighted(far, np.expm1(right), down, up)
    moved = near * np.exp(left) + far * np.exp(right)
    # On the real line outside, densities fall at least as a normal one beyond `_REACH`.
    outside = float(np.sum(np.exp(log_density[list(open_ends)]))) / _REACH
    return _Part(
        float(np.sum((near + far) * down)),
        float(np.sum((near + far) * up)) + outside,
        float(np.sum(moved * up)) + outside,
        change,
    )


def _weighted(mass: Array, change: Array, down: Array, up: Array) -> float:
    return float(np.sum(mass * change * np.where(change > 0.0, up, down)))


def _halves(rise: Array) -> tuple[Array, Array]:
    """Return the integrals of ``(1 - t) e^(t rise)`` and ``t e^(t rise)``, t from 0 to 1."""
    small = np.abs(rise) < 0.3
    d = np.where(small, 1.0, rise)
    far = (np.exp(d) * (d - 1.0) + 1.0) / (d * d)
    whole = np.expm1(d) / d
    d = np.where(small, rise, 0.0)
    series, whole_series, term = np.zeros(len(d)), np.zeros(len(d)), np.ones(len(d))
    for k in range(14):
        series += term / (k + 2.0)
        whole_series += term / (k + 1.0)
        term = term * d / (k + 1.0)
    far = np.where(small, series, far)
    return np.where(small, whole_series, whole) - far, far


def _derivatives(mu: float, share: Array, highest: Array) -> tuple[tuple[Array, Array], Array]:
    """Bound two derivatives of log M, up to a height."""
    larger = np.maximum(share[1:], share[:-1])
    smaller = np.minimum(share[1:], share[:-1])
    spread = np.minimum(0.25, np.minimum(larger, 1.0 - smaller))
    # |M(x + ib) / M(x)|^2 = 1 - 2 p (1 - p) (1 - cos mu b), p (1 - p) at most `spread`.
    shrinkage = 1.0 - 4.0 * spread * np.sin(0.5 * mu * highest) ** 2
    second = mu * mu * spread
    return (second, second / shrinkage), mu * second / shrinkage**1.5


def _share(rate: float, exponent: Array) -> Array:
    """Return the shifted component's share."""
    return 1.0 / (1.0 + np.exp(np.minimum(math.log1p(-rate) - math.log(rate) - exponent, 700.0)))


def _off_the_line(share: Array, angle: Array) -> tuple[Array, Array]:
    """Return the real and imaginary change of log M off the line."""
    # M(x + ib) / M(x) = 1 + share (e^(i angle) - 1).
    real, imaginary = -2.0 * share * np.sin(0.5 * angle) ** 2, share * np.sin(angle)
    change = 0.5 * np.log1p(np.maximum(real * (2.0 + real) + imaginary * imaginary, -1.0))
    return change, np.arctan2(imaginary, 1.0 + real)
