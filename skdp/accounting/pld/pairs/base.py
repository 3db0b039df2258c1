"""Interface of a dominating pair of one release for all engines.

A pair ``(P, Q)`` dominates a mechanism if its hockey-stick divergence bounds the mechanism's at
every epsilon. Products of pairs then dominate compositions (Zhu, Dong and Wang, 2022, Theorem 10).
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Complex = NDArray[np.complex128]
Indices = NDArray[np.int64]

_LARGEST_RATIO = 2.0**48
_ON_THE_GRID = 2e-15  # relative deviation of a lattice from a multiple of the step: rounding


class NodeMasses(NamedTuple):
    """Probabilities under P at losses, and at an infinite loss.

    ``falling`` and ``rising`` came from cells, to their two ends; ``below`` from below the first
    node.
    """

    masses: Array
    infinite: float
    falling: Array
    rising: Array
    below: float = 0.0


class Transformable(Protocol):
    """The loss of one release for the inversion.

    ``failure`` (infinite losses) and ``cut_mass`` (dropped ones) are not in the moments.
    """

    failure: float

    @property
    def cut_mass(self) -> float:
        """Probability under P of dropped losses."""

    @property
    def largest_tilt(self) -> float:
        """A tilt with moments in range."""

    def cumulants(self, theta: float) -> tuple[float, float, float]:
        """Estimate log E[e^(theta L)] and two derivatives."""

    def log_transform(self, z: Complex) -> tuple[Complex, Array]:
        """Return log E[e^(zL)] over finite losses, and error bounds.

        All ``z`` have the same positive real part. Any branch is valid.
        """

    def decay(self, theta: float, frequency: float) -> float:
        """Bound log |phi(theta + iv)| - log phi(theta) for all ``v >= frequency``."""


class Pair(Protocol):
    """A dominating pair of one release.

    ``failure`` is P's infinite probability, ``largest_loss`` the finite supremum (or slightly above
    it); ``variation`` bounds the total variation distance. If ``atomic``, all losses are atoms.
    Atoms are at ``origin`` plus multiples of ``lattice`` (0 without atoms); an aligned grid starts
    there.
    """

    failure: float
    atomic: bool
    lattice: float
    origin: float

    @property
    def largest_loss(self) -> float:
        """The supremum of the finite losses."""

    @property
    def variation(self) -> float:
        """A bound on the total variation distance."""

    def transforms(self, tail: float) -> tuple[Transformable, Transformable]:
        """Return losses above this pair, and below it, for the inversion.

        They may be one object. Large losses of probability about ``tail`` may be missing.
        """

    def profile(self, epsilon: float) -> tuple[float, float] | None:
        """Bound the hockey-stick divergence at ``epsilon >= 0``, or return None."""

    def span(self, tail: float) -> tuple[float, float]:
        """Return losses with about ``tail`` of P outside on either side."""

    def roundings(self, tail: float) -> float:
        """Bound relative errors of masses, in sixteenths of unit roundoff.

        One more than their largest exponent; see section 8.
        """

    def sketch(self, tail: float) -> tuple[Array, Array]:
        """Return coarse losses and probabilities, for estimates."""

    def grid(self, step: float, tail: float, aligned: bool = False) -> tuple[Indices, Array, float]:
        """Return indices of losses in steps, masses, and infinite mass.

        If ``aligned``, indices count from ``origin``, else from a loss of 0.
        """

    def optimistic_grid(
        self, step: float, tail: float, aligned: bool = False
    ) -> tuple[Indices, Array, float]:
        """Return the same for a discrete pair that this one dominates."""


def subdivision(lattice: float, step: float) -> int:
    """Return a lattice's distance in steps, or 0."""
    ratio = lattice / step
    if ratio > _LARGEST_RATIO:
        return 0
    nearest = round(ratio)
    return nearest if nearest > 0 and abs(ratio - nearest) <= _ON_THE_GRID * ratio else 0


def place(losses: Array, masses: Array, step: float) -> tuple[Indices, NodeMasses]:
    """Put atoms on a grid, dominating them.

    Return indices, perhaps with gaps, and masses; cells go from each index to the next.
    """
    lower = np.floor(losses / step)
    offset = losses - lower * step
    share = np.clip(np.expm1(-offset) / np.expm1(-step), 0.0, 1.0)
    cells = lower.astype(np.int64)
    indices = np.unique(np.concatenate([cells, cells + 1]))
    at = np.searchsorted(indices, cells)
    falling, rising = np.zeros(len(indices)), np.zeros(len(indices))
    np.add.at(falling, at, masses * (1.0 - share))
    np.add.at(rising, at, masses * share)
    nodes = falling.copy()
    nodes[1:] += rising[:-1]  # both ends of a cell that holds an atom are in the list
    return indices, NodeMasses(nodes, 0.0, falling[:-1], rising[:-1])


def log_one_plus(u: Complex) -> Complex:
    """Return the principal log(1 + u), accurate for small ``u``."""
    square = u.real**2 + u.imag**2
    near = 0.5 * np.log1p(np.maximum(2.0 * u.real + square, -0.9))
    with np.errstate(divide="ignore"):
        far = np.log(np.abs(1.0 + u))
    out = np.empty(u.shape, dtype=np.complex128)
    out.real = np.where(square < 0.04, near, far)
    out.imag = np.arctan2(u.imag, 1.0 + u.real)
    return out
