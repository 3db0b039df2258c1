"""Dominating pairs whose privacy losses are atoms at equal distances.

Both kinds of noise on the integers have these: shifted by ``sensitivity``, the output x has a loss
of ``lattice * (x - sensitivity / 2)`` (for Laplace noise, with x cut to [0, sensitivity]). They are
symmetric, so one pair covers both orders of two neighbours, and their densities are log-concave, so
that smaller shifts reveal less.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod

import numpy as np

from skdp.accounting.numerics.floats import SMALLEST_TAIL
from skdp.accounting.pld.grid.targets import LIMITS
from skdp.accounting.pld.optimistic import lowered
from skdp.accounting.pld.pairs.base import (
    Array,
    Indices,
    NodeMasses,
    Transformable,
    place,
    subdivision,
)
from skdp.accounting.pld.transforms.atoms import AtomsLoss

_SKETCHED = 2000  # losses of a sketch
_PROFILE_ROUNDING = 1e-12  # relative error of a profile in closed form, generously


class AtomicPair(ABC):
    """A pair whose losses are ``origin + k * lattice`` for whole numbers ``k``."""

    failure = 0.0
    largest_loss = math.inf
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
        if len(losses) <= _SKETCHED:
            return losses, masses
        step = (losses[-1] - losses[0]) / _SKETCHED
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

    def transforms(self, tail: float) -> tuple[Transformable, Transformable]:
        """Return the losses for the inversion; see `Pair`."""
        numbers, masses, _ = self.atoms(0.0)
        doubt = LIMITS.cell_error * self.roundings(0.0)
        loss = AtomsLoss(self._losses(numbers, False), masses, self.failure, doubt)
        return loss, loss


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
        error = _PROFILE_ROUNDING * (value + min(self.shift + epsilon, 1.0))
        return max(0.0, value - error), min(1.0, value + error)
