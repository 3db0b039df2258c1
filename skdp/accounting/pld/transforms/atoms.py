"""The transform of a list of losses."""

from __future__ import annotations

import math

import numpy as np

from skdp.accounting.numerics.floats import UNIT_ROUNDOFF
from skdp.accounting.pld.grid.estimates import atoms_cumulants
from skdp.accounting.pld.pairs.base import Array, Complex
from skdp.accounting.pld.transforms.gaussian import TiltedNodes, transform

_ULPS = 128.0  # roundings of a term: a pairwise sum adds 40, elementary functions a few each
_LARGEST_EXPONENT = 500.0  # of a tilt


class AtomsLoss:
    """Losses with their probabilities, and that of an infinite loss.

    Each probability may be off by ``doubt``, relative to itself.
    """

    cut_mass = 0.0

    def __init__(
        self, losses: Array, masses: Array, failure: float = 0.0, doubt: float = 0.0
    ) -> None:
        self.losses, self.masses, self.failure, self._doubt = losses, masses, failure, doubt
        self._size = float(np.max(np.abs(losses)))
        self.largest_tilt = _LARGEST_EXPONENT / max(self._size, 1e-300)

    def cumulants(self, theta: float) -> tuple[float, float, float]:
        """Return the log moment of the loss and its first two derivatives, estimated."""
        return atoms_cumulants(self.losses, self.masses, theta)

    def log_transform(self, z: Complex) -> tuple[Complex, Array]:
        """Return log E[e^(zL)] and bounds on its absolute error; see `Transformable`."""
        with np.errstate(over="ignore", invalid="ignore"):
            nodes = self._tilted(float(z[0].real))
        return transform(nodes, z.imag)

    def _tilted(self, theta: float) -> TiltedNodes:
        """Tilt the list, counting that losses may be off by a few roundings of the largest one."""
        weights = self.masses * np.exp(theta * self.losses)
        grown = self.masses * np.expm1(theta * self.losses)
        excess = float(np.sum(grown)) + (math.fsum(self.masses) - 1.0)
        total, mean = float(np.sum(weights)), float(np.dot(weights, np.abs(self.losses)))
        moved = 8.0 * UNIT_ROUNDOFF * self._size
        relative = UNIT_ROUNDOFF * _ULPS
        rounding = (
            relative * float(np.sum(np.abs(grown))) + (moved * theta + self._doubt) * total,
            (relative + moved * theta + self._doubt) * mean + moved * total,
        )
        return TiltedNodes(
            self.losses, weights, excess, 0.0, 4.0 * UNIT_ROUNDOFF * abs(excess), rounding
        )

    def decay(self, theta: float, frequency: float) -> float:
        """Return 0: transforms of atoms come back to their full size."""
        return 0.0
