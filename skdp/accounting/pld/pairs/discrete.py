"""Dominating pairs whose privacy losses are atoms at equal distances.

They belong to noise on the integers, shifted by ``sensitivity``. The output x has a loss of
``lattice * (x - sensitivity / 2)`` (for Laplace noise, with x cut to [0, sensitivity]). The pairs
are symmetric, so one covers both orders of two neighbours. Densities are log-concave, so smaller
shifts reveal less.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod

import numpy as np
from scipy.special import ndtr, ndtri

from skdp.accounting.numerics.arithmetic import LARGEST_EXPONENT, SMALLEST_TAIL, UNIT_ROUNDOFF
from skdp.accounting.pld.composed_transforms import AtomsLoss
from skdp.accounting.pld.grid_bounds import LIMITS
from skdp.accounting.pld.grid_estimates import atoms_cumulants
from skdp.accounting.pld.pairs.base import (
    Array,
    Complex,
    Indices,
    NodeMasses,
    Transformable,
    log_one_plus,
    place,
    subdivision,
)
from skdp.accounting.pld.pairs.cells import CellPair, lowered, spread
from skdp.base.parameters import cached_property

_SKETCHED = 2000  # losses of a sketch
_PROFILE_ROUNDING = 1e-12  # relative error of a profile in closed form, generously


class AtomicPair(ABC):
    """A pair whose losses are ``origin + k * lattice`` for integers ``k``."""

    failure = 0.0
    largest_loss = math.inf
    atomic = True
    lattice: float
    origin: float

    def roundings(self, tail: float) -> float:
        """See `Pair`."""
        return 1.0 - math.log(max(float(np.min(self.atoms(tail)[1])), SMALLEST_TAIL))

    @abstractmethod
    def atoms(self, tail: float) -> tuple[Array, Array, float]:
        """Return integers ``k``, probabilities under P, and a bound on the mass above.

        ``tail`` may be outside on either side; the lower part is dropped.
        """

    def span(self, tail: float) -> tuple[float, float]:
        """See `Pair`."""
        losses = self._losses(self.atoms(tail)[0], False)
        return float(losses[0]), float(losses[-1])

    def sketch(self, tail: float) -> tuple[Array, Array]:
        """See `Pair`."""
        numbers, masses, _ = self.atoms(tail)
        losses = self._losses(numbers, False)
        if len(losses) <= _SKETCHED:
            return losses, masses
        step = (losses[-1] - losses[0]) / _SKETCHED
        indices, nodes = place(losses, masses, step)
        return step * indices, nodes.masses

    def grid(self, step: float, tail: float, aligned: bool = False) -> tuple[Indices, Array, float]:
        """See `Pair`."""
        numbers, masses, above = self.atoms(tail)
        missing = max(0.0, 1.0 - self.failure - above - float(np.sum(masses)))
        masses = masses.copy()
        masses[0] += missing + 1e-16
        above += self.failure
        factor = subdivision(self.lattice, step)
        if aligned and factor:
            return (numbers * factor).astype(np.int64), masses, above
        indices, nodes = place(self._losses(numbers, aligned), masses, step)
        return indices, nodes.masses, above

    def optimistic_grid(
        self, step: float, tail: float, aligned: bool = False
    ) -> tuple[Indices, Array, float]:
        """See `Pair`."""
        numbers, masses, _ = self.atoms(tail)
        factor = subdivision(self.lattice, step)
        if aligned and factor:
            return (numbers * factor).astype(np.int64), masses, self.failure
        indices, nodes = place(self._losses(numbers, aligned), masses, step)
        first, size = int(indices[0]), int(indices[-1] - indices[0]) + 1
        dense = np.zeros((3, size))
        at = indices - first
        dense[0, at] = nodes.masses
        dense[1, at[:-1]] = nodes.falling
        dense[2, at[:-1]] = nodes.rising
        full = NodeMasses(dense[0], 0.0, dense[1, :-1], dense[2, :-1])
        zero = -first if 0 <= -first < size and self.failure == 0.0 and not aligned else None
        indices = np.arange(first, first + size, dtype=np.int64)
        return indices, lowered(step, full, zero), self.failure

    def _losses(self, numbers: Array, aligned: bool) -> Array:
        losses = self.lattice * numbers
        return losses if aligned else losses + self.origin

    def transforms(self, tail: float) -> tuple[Transformable, Transformable]:
        """See `Pair`."""
        numbers, masses, _ = self.atoms(0.0)
        doubt = LIMITS.cell_error * self.roundings(0.0)
        loss = AtomsLoss(self._losses(numbers, False), masses, self.failure, doubt)
        return loss, loss


class DiscreteLaplacePair(AtomicPair):
    """Discrete Laplace noise, shifted by ``shift`` scales."""

    def __init__(self, sensitivity: int, shift: float) -> None:
        self.sensitivity = sensitivity
        self.shift = shift
        self.largest_loss = shift
        self.lattice = 2.0 * shift / sensitivity
        self.origin = shift
        self.variation = self.profile(0.0)[1]

    def atoms(self, tail: float) -> tuple[Array, Array, float]:
        """See `AtomicPair`."""
        k = np.arange(-self.sensitivity, 1, dtype=np.float64)
        scale = self.shift / self.sensitivity
        # P(X - sensitivity = k) = (1 - a) / (1 + a) a^-k, with the tails at both ends.
        masses = np.exp(scale * k) * math.tanh(0.5 * scale)
        masses[-1] = 1.0 / (1.0 + math.exp(-scale))
        masses[0] = math.exp(-self.shift) / (1.0 + math.exp(-scale))
        return k, masses, 0.0

    def profile(self, epsilon: float) -> tuple[float, float]:
        """See `Pair`."""
        if epsilon >= self.largest_loss:
            return 0.0, 0.0
        # Linear in e^epsilon between losses l, where it is 1 - e^((l - shift) / 2).
        k = max(math.ceil((self.shift - epsilon) / self.lattice) - 1, 0)
        above = self.shift - k * self.lattice
        value = -math.expm1(-0.5 * self.lattice * k)
        rest = math.exp(-0.5 * self.lattice * k) * -math.expm1(-0.5 * self.lattice)
        value += rest * math.expm1(min(epsilon - above, 0.0)) / math.expm1(-self.lattice)
        error = _PROFILE_ROUNDING * (value + min(self.shift + epsilon, 1.0))
        return max(0.0, value - error), min(1.0, value + error)


_RESPONSE_ROUNDING = 1e-14


class RandomisedResponsePair(AtomicPair):
    """The pair that dominates all (epsilon, delta)-DP releases (Kairouz, Oh, Viswanath, 2015)."""

    def __init__(self, epsilon: float, delta: float = 0.0) -> None:
        self.largest_loss = epsilon
        self.failure = delta
        self.lattice = 2.0 * epsilon
        self.origin = epsilon
        self.variation = delta + (1.0 - delta) * math.tanh(0.5 * epsilon)

    def atoms(self, tail: float) -> tuple[Array, Array, float]:
        """See `AtomicPair`."""
        kept = 1.0 - self.failure
        down = kept * math.exp(-self.largest_loss) / (1.0 + math.exp(-self.largest_loss))
        up = kept / (1.0 + math.exp(-self.largest_loss))
        if self.largest_loss == 0.0:
            return np.zeros(1), np.array([kept]), 0.0
        return np.array([-1.0, 0.0]), np.array([down, up]), 0.0

    def profile(self, epsilon: float) -> tuple[float, float]:
        """See `Pair`."""
        value = self.failure
        error = _RESPONSE_ROUNDING * value
        if epsilon < self.largest_loss:
            up = (1.0 - self.failure) / (1.0 + math.exp(-self.largest_loss))
            more = -up * math.expm1(epsilon - self.largest_loss)
            value += more
            error = _RESPONSE_ROUNDING * value + 2.0**-51 * self.largest_loss * up
        return max(self.failure, value - error), min(1.0, value + error)


_WIDE = 2.0**13.5  # sigma from which integers are too many to be listed
_SKETCHED_GAUSSIAN = 1000  # losses of a sketch of wide noise
# of sigma, up to which a shift is followed by what it moves, not by differences
_SMALL_SHIFT = 1e-4
_NARROW = 0.5  # sigma up to which losses are few
_DIGITS = 44.0  # nats, below which terms of a theta function are left out


class DiscreteGaussianPair(AtomicPair):
    """Discrete Gaussian noise: ``P(X = x)`` is proportional to ``e^(-x^2 / (2 sigma^2))``."""

    cut_mass = 0.0

    def __init__(self, sensitivity: int, sigma: float) -> None:
        self.sensitivity = sensitivity
        self.sigma = sigma
        self.lattice = sensitivity / sigma**2
        self.origin = -0.5 * sensitivity * self.lattice
        self._log_total = math.log(sigma) + 0.5 * math.log(2.0 * math.pi)
        if sigma < 20.0:  # else the sum is the integral, to 1e-3000
            x = np.arange(1.0, math.ceil(40.0 * sigma) + 2.0)
            self._log_total = math.log1p(2.0 * float(np.sum(np.exp(-0.5 * (x / sigma) ** 2))))
        # At epsilon = 0: how much the noise is from -ceil(s/2) + 1 - (s even) to ceil(s/2) - 1.
        last = (sensitivity + 1) // 2 - 1
        mass = self._mass(last - sensitivity + 1, last) * (1.0 + 1e-9)
        most = sensitivity * math.exp(-self._log_total) * (1.0 + 1e-12)  # densities are below
        self.variation = min(1.0, mass, most)

    def _log_density(self, x: Array) -> Array:
        return -0.5 * (x / self.sigma) ** 2 - self._log_total

    def _mass(self, first: int, last: int) -> float:
        """Return the mass from ``first`` to ``last``."""
        reach = self._reach(SMALLEST_TAIL)
        x = np.arange(max(first, -reach), min(last, reach) + 1.0)
        return float(np.sum(np.exp(self._log_density(x))))

    def _reach(self, tail: float) -> int:
        """Return m with P(X > m) <= tail / 2, by Gaussian tails."""
        size = -float(ndtri(max(0.5 * tail, SMALLEST_TAIL)))
        return math.ceil(max(size, 1.0) * self.sigma) + 1

    def atoms(self, tail: float) -> tuple[Array, Array, float]:
        """See `AtomicPair`."""
        reach = self._reach(tail)
        x = np.arange(-reach, reach + 1, dtype=np.float64)
        return (
            x + self.sensitivity,
            np.exp(self._log_density(x)),
            float(ndtr(-reach / self.sigma)),
        )

    def span(self, tail: float) -> tuple[float, float]:
        """See `Pair`."""
        reach = self._reach(tail)
        middle = -self.origin
        return middle - self.lattice * reach, middle + self.lattice * reach

    @cached_property
    def _everything(self) -> tuple[Array, Array, float]:
        """Return all listed losses, probabilities, and the mass above."""
        numbers, masses, above = self.atoms(SMALLEST_TAIL)
        return self.origin + self.lattice * numbers, masses, above

    def profile(self, epsilon: float) -> tuple[float, float] | None:
        """See `Pair`."""
        losses, masses, above = self._everything
        # The sum may err by its rounding, and by that of the losses themselves.
        rounding = 8.0 * UNIT_ROUNDOFF * (abs(epsilon) - self.origin)
        first = int(np.searchsorted(losses, epsilon - rounding))
        kept = masses[first:]
        value = float(np.dot(kept, -np.expm1(np.minimum(epsilon - losses[first:], 0.0))))
        error = _PROFILE_ROUNDING * value + rounding * float(np.sum(kept))
        return max(0.0, value - error), min(1.0, value + error + above)

    def transforms(self, tail: float) -> tuple[Transformable, Transformable]:
        """Return the pair itself, or a short list if noise is narrow."""
        return super().transforms(tail) if self.sigma < _NARROW else (self, self)

    def cumulants(self, theta: float) -> tuple[float, float, float]:
        """See `Transformable`."""
        return atoms_cumulants(*self.sketch(1e-100), theta)

    @property
    def largest_tilt(self) -> float:
        """A tilt with moments in range: that of one unlikely loss."""
        return 1e6 / max(self.span(1e-12)[1], 1e-12)

    def decay(self, theta: float, frequency: float) -> float:
        """Return 0, as atoms do not fall."""
        return 0.0

    def log_transform(self, z: Complex) -> tuple[Complex, Array]:
        """Return the transform by a ratio of theta functions; see `Transformable`.

        They are at ``(z + 1) * sensitivity`` and at zero, times a Gaussian factor, and periodic in
        Im z.
        """
        period = 2.0 * math.pi / self.lattice
        turns = np.round(z.imag / period)
        w = z - 1j * turns * period
        square = self.sensitivity**2 / self.sigma**2
        # Over a period the loss makes a turn or, if an odd number of half lattices, half of one.
        values = 0.5 * square * w * (w + 1.0) + 1j * math.pi * turns * (self.sensitivity % 2)
        centre = np.asarray((w + 1.0) * self.sensitivity, dtype=np.complex128)
        ratio, errors = self._dual_sum(centre)
        sizes = np.abs(values) + np.abs(turns) * 4.0 + square * np.abs(w) * np.abs(z)
        return values + ratio, errors + 16.0 * UNIT_ROUNDOFF * sizes

    def _dual_sum(self, centre: Complex) -> tuple[Complex, Array]:
        """Return the log ratio of the theta functions, by Poisson summation."""
        rate = 2.0 * math.pi**2 * self.sigma**2
        terms = 1 + math.ceil(math.sqrt(_DIGITS / rate)) + 1
        added = np.zeros(len(centre), dtype=np.complex128)
        size, base = np.zeros(len(centre)), 0.0
        x = centre.real - np.round(centre.real)
        for k in range(1, terms + 1):
            y = 2.0 * math.pi * k * centre.imag
            with np.errstate(under="ignore"):
                up = np.exp(-rate * k * k + y + 2j * math.pi * k * -x)
                down = np.exp(-rate * k * k - y + 2j * math.pi * k * x)
            added += up + down
            size += (np.abs(up) + np.abs(down)) * (16.0 + 8.0 * k * (1.0 + np.abs(centre)))
            base += 2.0 * math.exp(-rate * k * k)
        modulus = np.maximum(np.abs(1.0 + added), 1e-300)
        errors = 4.0 * UNIT_ROUNDOFF * (size / modulus + base)
        return log_one_plus(added) - math.log1p(base), errors


class WideDiscreteGaussianPair(CellPair, DiscreteGaussianPair):
    """Discrete Gaussian noise with too many integers to list."""

    atomic = True

    def _mass(self, first: int, last: int) -> float:
        """Return the mass from ``first`` to ``last``, rounded up."""
        return float(self._cells(np.array([float(first), last + 1.0]))[0]) + 1e-15

    def span(self, tail: float) -> tuple[float, float]:
        """See `Pair`."""
        return DiscreteGaussianPair.span(self, tail)

    def roundings(self, tail: float) -> float:
        """See `Pair`."""
        farthest = (self._reach(tail) + self.sensitivity) / self.sigma
        return 1.0 + 0.5 * min(farthest, -float(ndtri(SMALLEST_TAIL))) ** 2

    def sketch(self, tail: float) -> tuple[Array, Array]:
        """See `Pair`."""
        edges = np.linspace(*self.span(tail), _SKETCHED_GAUSSIAN)
        return edges, self.node_masses(edges).masses

    def node_masses(self, edges: Array) -> NodeMasses:
        """See `CellPair`."""
        first = np.ceil((edges - self.origin) / self.lattice)  # least output in each cell
        still, moved = self._cells(first), self._cells(first - self.sensitivity)
        if self.sensitivity < _SMALL_SHIFT * self.sigma:
            # Masses are rounded by more than so small a shift changes them.
            below = self._just_below(first)
            excess = below[:-1] - below[1:] - np.expm1(edges[:-1]) * still
        else:
            excess = moved - np.exp(np.minimum(edges[:-1], LARGEST_EXPONENT)) * still
        excess = np.where(moved > 1e-290, excess, moved)
        ends = (first[[0, -1]] - self.sensitivity - 1.0) / self.sigma
        return spread(edges, moved, excess, float(ndtr(ends[0])), float(ndtr(-ends[1])))

    def profile(self, epsilon: float) -> None:
        """Return None, as no sum is short enough."""

    def _cells(self, edges: Array) -> Array:
        """Return the mass from each integer to before the next.

        By Euler-Maclaurin at half-integers: the next term is below 1e-11 of the sum at 38 sigma.
        """
        x = (edges - 0.5) / self.sigma
        left, right = x[:-1], x[1:]
        flip = left + right > 0.0
        a, b = np.where(flip, -right, left), np.where(flip, -left, right)
        edge = b * np.exp(-0.5 * b * b) - a * np.exp(-0.5 * a * a)
        edge /= 24.0 * self.sigma**2 * math.sqrt(2.0 * math.pi)
        return np.where(b > a, np.maximum(ndtr(b) - ndtr(a) + edge, 0.0), 0.0)

    def _just_below(self, edges: Array) -> Array:
        """Return the mass that a small shift moves across each edge.

        By the density in the middle and its second derivative, to 1e-13 of it.
        """
        u = (edges - 0.5 * (self.sensitivity + 1.0)) / self.sigma
        bend = (self.sensitivity**2 - 1.0) / (24.0 * self.sigma**2) * (u * u - 1.0)
        return self.sensitivity * np.exp(-0.5 * u * u - self._log_total) * (1.0 + bend)


def discrete_gaussian_pair(sensitivity: int, sigma: float) -> DiscreteGaussianPair:
    """Return the pair for the width of the noise."""
    suited = WideDiscreteGaussianPair if sigma > _WIDE else DiscreteGaussianPair
    return suited(sensitivity, sigma)
