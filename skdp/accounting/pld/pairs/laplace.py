"""Dominating pairs of Laplace releases, sampled or not, cut into cells of the privacy loss.

In units of the scale, let ``S`` be the Laplace distribution at ``shift`` and ``Q0`` that at 0. At x
the likelihood ratio of ``(1-q) Q0 + q S`` to ``Q0`` is ``M(u) = 1 - q + q e^(2u - shift)``. Here
``u`` is x cut to [0, shift]. The pairs are

- `LaplacePair`: S against Q0;
- `RemovalPair`, `AdditionPair`: (1-q) Q0 + q S against Q0, and the reverse, for Poisson samples
  under add-remove (Zhu, Dong and Wang, 2022, Theorem 11);
- `ReplacementPair`: (1-q) Q0 + q S against (1-q) Q0 + q S', with S' at ``-shift``.

Proofs: Theorem 1 and Corollary 4 of ``docs/proofs/sampled_releases.md``.
"""

from __future__ import annotations

import math

import numpy as np

from skdp.accounting.numerics.arithmetic import LARGEST_EXPONENT, log_mixture
from skdp.accounting.pld.composed_transforms import AtomsLoss
from skdp.accounting.pld.grid_bounds import LIMITS
from skdp.accounting.pld.pairs.base import Array, Indices, NodeMasses, Transformable
from skdp.accounting.pld.pairs.cells import CellPair, invert_mixture, join_at_zero, spread

_PROFILE_ROUNDING = 1e-13
_SKETCHED = 400
_LISTED = (2**12, 2**15)  # losses that stand for all others in transforms, and in closer ones


class LaplaceMixturePair(CellPair):
    """A pair of unit Laplace distributions at 0 and ``shift`` (and ``-shift``).

    The rate is in (0, 1), except for `LaplacePair`.
    """

    def __init__(self, rate: float, shift: float) -> None:
        self.rate, self.shift = rate, shift
        self._highest = float(log_mixture(rate, shift))
        self._lowest = float(log_mixture(rate, -shift))
        self._offset = 0.0  # what the loss is above that of a removal
        self.origin = self._highest
        self.largest_loss = self._rounded_up(self._highest)
        self.lattice = self._highest - self._lowest
        self.variation = self._bound_variation(shift)

    def _rounded_up(self, loss: float) -> float:
        """Return a loss rounded up; beyond it the profile is zero."""
        return loss * (1.0 + 2.0**-50 * (1.0 + min(self.shift, LARGEST_EXPONENT)))

    def _bound_variation(self, distance: float) -> float:
        return -self.rate * math.expm1(-0.5 * distance) * (1.0 + _PROFILE_ROUNDING)

    def span(self, tail: float) -> tuple[float, float]:
        """See `Pair`."""
        return self._lowest, self._highest

    def roundings(self, tail: float) -> float:
        """See `Pair`."""
        return 1.0 + min(self.shift, LARGEST_EXPONENT)

    def sketch(self, tail: float) -> tuple[Array, Array]:
        """See `Pair`."""
        low, high = self.span(tail)
        # Most of the mass of a large shift is within a few nats of the ends.
        ends = np.geomspace(1e-3, 30.0, 60)
        ends = ends[ends < 0.5 * (high - low)]
        middle = [0.0] if self.needs_zero else []
        edges = np.linspace(low, high, _SKETCHED + 1)
        edges = np.unique(np.concatenate([edges, low + ends, high - ends, middle]))
        return edges, self.node_masses(edges).masses

    def transforms(self, tail: float) -> tuple[Transformable, Transformable]:
        """Return losses rounded up and down; see section 6 of the page."""
        step = self.lattice / _LISTED[tail > 0.0]
        doubt = LIMITS.cell_error * self.roundings(0.0)
        moved, up = doubt * min(self.lattice, 1.0), math.exp(doubt)
        indices, masses, infinite = self.grid(step, 0.0, aligned=True)
        above = AtomsLoss(self._losses(indices, step) + moved, masses * up, infinite * up)
        indices, masses, _ = self.optimistic_grid(step, 0.0, aligned=True)
        return above, AtomsLoss(self._losses(indices, step) - moved, masses / up)

    def _losses(self, indices: Indices, step: float) -> Array:
        return np.asarray(self.origin + step * indices, dtype=np.float64)

    def profile(self, epsilon: float) -> tuple[float, float]:
        """See `Pair`."""
        if epsilon >= self.largest_loss:
            return 0.0, 0.0
        position = float(self._position(np.array([epsilon - self._offset]))[0])
        return self._with_error(-self.rate * math.expm1(position - self.shift), epsilon)

    def _with_error(self, value: float, epsilon: float) -> tuple[float, float]:
        # An error of the position, by as much as one of epsilon, matters near the largest loss.
        error = _PROFILE_ROUNDING * (value + self.rate * (epsilon + self.shift))
        return max(0.0, value - error), value + error

    def _position(self, loss: Array) -> Array:
        """Return u with log M(u) = loss, cut to [0, shift]."""
        log_ratio, _ = invert_mixture(self.rate, loss)
        return np.clip(0.5 * (log_ratio + self.shift), 0.0, self.shift)

    def _loss(self, u: Array) -> Array:
        """Return log M(u)."""
        return log_mixture(self.rate, 2.0 * u - self.shift)

    def _spread_up(self, edges: Array, whole: bool = True) -> NodeMasses:
        """Spread P = (1-q) Q0 + q S against Q0, perhaps only for x > 0.

        An extreme loss within rounding of the first or last edge counts as equal to it.
        """
        q, shift = self.rate, self.shift
        u = self._position(edges)
        width = np.diff(u)
        still = -0.5 * np.exp(-u[:-1]) * np.expm1(-width)
        moved = 0.5 * np.exp(u[:-1] - shift) * np.expm1(width)
        mass = (1.0 - q) * still + q * moved
        # P less M(u) Q0 from the lower end of what the cell holds, and the rest of the factor.
        excess = 2.0 * q * np.exp(u[:-1] - shift) * np.sinh(0.5 * width) ** 2
        raised = np.maximum(self._loss(u[:-1]) - edges[:-1], 0.0)
        growth = np.exp(np.minimum(edges[:-1], LARGEST_EXPONENT))
        excess += growth * np.expm1(raised) * still * (width > 0.0)
        bottom = 0.5 * ((1.0 - q) + q * math.exp(-shift)) if whole else 0.0
        top = 0.5 * ((1.0 - q) * math.exp(-shift) + q)
        below = q * 0.5 * float(np.exp(u[0] - shift) - math.exp(-shift))
        below += (1.0 - q) * 0.5 * -math.expm1(-float(u[0]))
        nodes = spread(edges, mass, excess, below, 0.0)
        return _with_atoms(edges, nodes, [(self._lowest, bottom), (self._highest, top)])

    def _spread_down(self, edges: Array, share: float, top: float) -> NodeMasses:
        """Spread Q0 against (1-q) Q0 + q S, times ``share``.

        The largest loss has the mass ``top``.
        """
        q, shift = self.rate, self.shift
        u = self._position(-edges)[::-1]  # ascending
        u[0] = 0.0  # the last edge is the largest loss, from which rounding may not tell it
        width = np.diff(u)
        still = -0.5 * np.exp(-u[:-1]) * np.expm1(-width)
        mass = still[::-1]
        lower = edges[:-1]
        # The product of e^lower and the density ratio stays in range where its factors do not.
        exponents = lower + (u[1:] + width - shift)[::-1]
        excess = 0.5 * q * np.exp(exponents) * np.expm1(-width[::-1]) ** 2
        lacking = np.minimum(self._loss(u[1:])[::-1] + lower, 0.0)
        excess -= np.expm1(lacking) * mass * (mass > 0.0)
        bottom = 0.5 * math.exp(-shift)
        below = 0.5 * (math.exp(-float(u[-1])) - math.exp(-shift))
        nodes = spread(edges, share * mass, share * excess, share * max(below, 0.0), 0.0)
        atoms = [(-self._highest, share * bottom), (-self._lowest, share * top)]
        return _with_atoms(edges, nodes, atoms)


class RemovalPair(LaplaceMixturePair):
    """(1-q) Q0 + q S against Q0."""

    def node_masses(self, edges: Array) -> NodeMasses:
        """See `CellPair`."""
        return self._spread_up(edges)


class LaplacePair(RemovalPair):
    """S against Q0."""

    def __init__(self, shift: float) -> None:
        super().__init__(1.0, shift)

    def span(self, tail: float) -> tuple[float, float]:
        """See `Pair`."""
        # The loss is shift - 2 E with E of exponential tails.
        low = max(self._lowest, self.shift + 2.0 * math.log(max(tail, 1e-300)))
        return low, self._highest


class AdditionPair(LaplaceMixturePair):
    """Q0 against (1-q) Q0 + q S."""

    def __init__(self, rate: float, shift: float) -> None:
        super().__init__(rate, shift)
        self.origin = -self._lowest
        self.largest_loss = self._rounded_up(self.origin)

    def span(self, tail: float) -> tuple[float, float]:
        """See `Pair`."""
        return -self._highest, self.origin

    def node_masses(self, edges: Array) -> NodeMasses:
        """See `CellPair`."""
        return self._spread_down(edges, 1.0, 0.5)

    def profile(self, epsilon: float) -> tuple[float, float]:
        """See `Pair`."""
        # q H at the order e^epsilon' = q y / (1 - y (1-q)), times what makes the masses one.
        if epsilon >= self.largest_loss:
            return 0.0, 0.0
        share = (1.0 - self.rate) * math.expm1(min(epsilon, LARGEST_EXPONENT)) / self.rate
        share = min(share, 1.0 - 1e-15)
        inner = epsilon - math.log1p(-share)
        value = -self.rate * (1.0 - share) * math.expm1(0.5 * (inner - self.shift))
        return self._with_error(max(value, 0.0), epsilon)


class ReplacementPair(LaplaceMixturePair):
    """(1-q) Q0 + q S against (1-q) Q0 + q S'."""

    needs_zero = True

    def __init__(self, rate: float, shift: float) -> None:
        super().__init__(rate, shift)
        self._offset = -self._lowest
        # Between the extreme losses zero must be on the grid.
        self.lattice = self._highest - self._lowest
        self.largest_loss = self._rounded_up(self.lattice)
        self.origin = 0.0
        self.variation = self._bound_variation(2.0 * shift)

    def span(self, tail: float) -> tuple[float, float]:
        """See `Pair`."""
        return -self.lattice, self.lattice

    def node_masses(self, edges: Array) -> NodeMasses:
        """See `CellPair`."""
        zero = int(np.searchsorted(edges, 0.0))
        # P is a multiple of Q0 where its loss is negative, so is Q where it is positive.
        share = math.exp(self._lowest)
        negative = self._spread_down(edges[: zero + 1] + self._offset, share, 0.0)
        positive = self._spread_up(edges[zero:] - self._offset, whole=False)
        return join_at_zero(zero, negative, positive, 0.0)


_KINDS: dict[str, type[LaplaceMixturePair]] = {
    "remove": RemovalPair,
    "add": AdditionPair,
    "poisson-replace-one": ReplacementPair,
}


def laplace_pair(kind: str, rate: float, shift: float) -> LaplaceMixturePair:
    """Return the pair of a direction or kind of release."""
    return LaplacePair(shift) if kind == "laplace" else _KINDS[kind](rate, shift)


def _with_atoms(edges: Array, nodes: NodeMasses, atoms: list[tuple[float, float]]) -> NodeMasses:
    """Add atoms to a node there, or to both ends of their cell."""
    masses, falling, rising = nodes.masses, nodes.falling.copy(), nodes.rising.copy()
    below, infinite = nodes.below, nodes.infinite
    for loss, mass in atoms:
        tolerance = 1e-14 * max(abs(edges[0]), abs(edges[-1]), abs(loss))
        nearest = int(np.argmin(np.abs(edges - loss)))
        if abs(edges[nearest] - loss) <= tolerance:
            masses[nearest] += mass
        elif loss < edges[0]:
            masses[0] += mass
            below += mass
        elif loss > edges[-1]:
            infinite += mass
        else:
            cell = int(np.searchsorted(edges, loss)) - 1
            width = edges[cell + 1] - edges[cell]
            share = math.expm1(edges[cell] - loss) / math.expm1(-width)
            masses[cell] += (1.0 - share) * mass
            masses[cell + 1] += share * mass
            falling[cell] += (1.0 - share) * mass
            rising[cell] += share * mass
    return NodeMasses(masses, infinite, falling, rising, below)
