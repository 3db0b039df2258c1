"""Dominating pairs whose privacy losses are atoms at equal distances.

Both kinds of noise on the integers have these: shifted by ``sensitivity``, the output x has a loss
of ``lattice * (x - sensitivity / 2)`` (for Laplace noise, with x cut to [0, sensitivity]). They are
symmetric, so one pair covers both orders of two neighbours, and their densities are log-concave, so
that smaller shifts reveal less.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np

from skdp.accounting.numerics.floats import SMALLEST_TAIL, UNIT_ROUNDOFF
from skdp.accounting.pld.grid.estimates import atoms_cumulants
from skdp.accounting.pld.optimistic import lowered
from skdp.accounting.pld.pairs.base import (
    Array,
    Complex,
    Indices,
    NodeMasses,
    atoms_transform,
    log_one_plus,
    place,
    subdivision,
)
from skdp.accounting.pld.transforms.laplace import randomised_response_transform


@dataclass(frozen=True)
class _Limits:
    """How lists of atoms are kept short."""

    sketched: int = 2000  # losses of a sketch
    profile_rounding: float = 1e-12  # relative error of a profile in closed form, generously
    listed: int = 64  # atoms, above which their sum is evaluated as a geometric one


_LIMITS = _Limits()


class AtomicPair(ABC):
    """A pair whose losses are ``origin + k * lattice`` for whole numbers ``k``."""

    failure = 0.0
    largest_loss = math.inf
    cut_mass = 0.0
    atomic = True
    lattice: float
    origin: float

    def roundings(self, tail: float) -> float:
        """Bound the relative errors of its masses; see `Pair`."""
        return 1.0 - math.log(max(float(np.min(self.atoms(tail)[1])), SMALLEST_TAIL))

    @abstractmethod
    def atoms(self, tail: float) -> tuple[Array, Array, float]:
        """Return the numbers ``k``, their probabilities under P, and a bound on what lies above.

        A probability ``tail`` may lie on either side; a shortfall at the lower end is left out.
        """

    def span(self, tail: float) -> tuple[float, float]:
        """Return the losses between which all but ``tail`` of P's mass lies on either side."""
        losses = self._losses(self.atoms(tail)[0], False)
        return float(losses[0]), float(losses[-1])

    def sketch(self, tail: float) -> tuple[Array, Array]:
        """Return a coarse list of losses with their probabilities, for estimates."""
        numbers, masses, _ = self.atoms(tail)
        losses = self._losses(numbers, False)
        if len(losses) <= _LIMITS.sketched:
            return losses, masses
        step = (losses[-1] - losses[0]) / _LIMITS.sketched
        indices, nodes = place(losses, masses, step)
        return step * indices, nodes.masses

    def grid(self, step: float, tail: float, aligned: bool = False) -> tuple[Indices, Array, float]:
        """Return indices of losses in units of ``step``, their masses, and the infinite mass."""
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
        """Return the same for a discrete pair that this one dominates."""
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

    def cumulants(self, theta: float) -> tuple[float, float, float]:
        """Return the log moment of the loss and its first two derivatives, estimated."""
        return atoms_cumulants(*self.sketch(1e-100), theta)

    @property
    def largest_tilt(self) -> float:
        """A tilt at which moments are not yet out of reach: that of one unlikely loss."""
        return 1e6 / max(self.span(1e-12)[1], 1e-12)

    def decay(self, theta: float, frequency: float) -> float:
        """Return 0: transforms of atoms come back to their full size."""
        return 0.0


class DiscreteLaplacePair(AtomicPair):
    """Discrete Laplace noise; the shift is sensitivity over scale, the largest loss."""

    def __init__(self, sensitivity: int, shift: float) -> None:
        self.sensitivity = sensitivity
        self.shift = shift
        self.largest_loss = shift
        self.lattice = 2.0 * shift / sensitivity
        self.origin = shift
        self.variation = self.profile(0.0)[1]

    def atoms(self, tail: float) -> tuple[Array, Array, float]:
        """Return the numbers of losses and their probabilities under P: all of them."""
        k = np.arange(-self.sensitivity, 1, dtype=np.float64)
        scale = self.shift / self.sensitivity
        # P(X - sensitivity = k) = (1 - a) / (1 + a) a^-k, with the tails at both ends.
        masses = np.exp(scale * k) * math.tanh(0.5 * scale)
        masses[-1] = 1.0 / (1.0 + math.exp(-scale))
        masses[0] = math.exp(-self.shift) / (1.0 + math.exp(-scale))
        return k, masses, 0.0

    def profile(self, epsilon: float) -> tuple[float, float]:
        """Return bounds on the hockey-stick divergence at ``epsilon >= 0``."""
        if epsilon >= self.largest_loss:
            return 0.0, 0.0
        # Linear in e^epsilon between losses l, where it is 1 - e^((l - shift) / 2).
        k = max(math.ceil((self.shift - epsilon) / self.lattice) - 1, 0)
        above = self.shift - k * self.lattice
        value = -math.expm1(-0.5 * self.lattice * k)
        rest = math.exp(-0.5 * self.lattice * k) * -math.expm1(-0.5 * self.lattice)
        value += rest * math.expm1(min(epsilon - above, 0.0)) / math.expm1(-self.lattice)
        error = _LIMITS.profile_rounding * (value + min(self.shift + epsilon, 1.0))
        return max(0.0, value - error), min(1.0, value + error)

    def log_transform(self, z: Complex) -> tuple[Complex, Array]:
        """Return log E[e^(zL)] and bounds on its absolute error; see `Pair`."""
        if self.sensitivity == 1:
            return randomised_response_transform(self.shift, z)
        numbers, masses, _ = self.atoms(0.0)
        losses = self.origin + self.lattice * numbers
        if (float(np.max(np.abs(z))) + 1.0) * self.shift > 1.0:
            if self.sensitivity <= _LIMITS.listed:
                return atoms_transform(losses, masses, z)
            return self._geometric_sum(z)
        # Symmetric in s = z + 1/2, and 1 at s = 1/2: pairs of sinh have the difference.
        scale = self.shift / self.sensitivity
        weights = np.full(len(losses), -math.expm1(-scale))
        weights[0] = weights[-1] = 1.0
        weights *= math.exp(-0.5 * self.shift) / (1.0 + math.exp(-scale))
        half = 0.5 * losses[None, :]
        terms = np.sinh((z[:, None] + 1.0) * half) * np.sinh(z[:, None] * half)
        added = 2.0 * np.sum(weights * terms, axis=1)
        return log_one_plus(added), 64.0 * UNIT_ROUNDOFF * np.abs(added)

    def _geometric_sum(self, z: Complex) -> tuple[Complex, Array]:
        """Return the transform in closed form, relative to its largest term."""
        scale = self.shift / self.sensitivity
        twice = np.asarray(2.0 * (z + 0.5) * scale, dtype=np.complex128)
        ends = np.exp(-self.sensitivity * twice)
        divisor = -np.expm1(-twice)
        inner = -math.expm1(-scale) * (np.exp(-twice) - ends) / divisor
        total = 1.0 + ends + inner
        values = z * self.shift + np.log(total) - math.log1p(math.exp(-scale))
        exponent = np.abs(twice) * self.sensitivity + 1.0
        doubt = (1.0 + np.abs(ends)) * exponent
        doubt = doubt + np.abs(inner) * (2.0 * exponent + np.abs(twice) / np.abs(divisor) + 8.0)
        doubt = doubt + 2.0 * -math.expm1(-scale) * exponent / np.abs(divisor)
        errors = 8.0 * UNIT_ROUNDOFF * (doubt / np.maximum(np.abs(total), 1e-300) + exponent)
        return values, errors
