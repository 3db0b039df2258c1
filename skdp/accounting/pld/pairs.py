"""What a dominating pair of one release must tell, and how its losses are put on a grid.

A pair ``(P, Q)`` dominates a mechanism when its hockey-stick divergence bounds the mechanism's at
every epsilon; compositions are then dominated by products of pairs (Zhu, Dong and Wang, 2022,
Theorem 10).

`spread` connects the dots (Doroshenko et al., 2022): the mass of each cell moves to the two ends of
the cell so that its mass under P and under Q are both kept. The discrete pair dominates.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


class NodeMasses(NamedTuple):
    """Probabilities under P at the given losses, and at an infinite loss."""

    masses: Array
    infinite: float


class Pair(Protocol):
    """A dominating pair of one release.

    ``failure`` is P's probability of an infinite loss, ``largest_loss`` the supremum of the others;
    ``atomic`` says that these are few. ``variation`` bounds the total variation distance.
    """

    failure: float
    largest_loss: float
    atomic: bool
    variation: float

    def span(self, tail: float) -> tuple[float, float]:
        """Return the losses between which all but ``tail`` of P's mass lies on either side."""

    def sketch(self, tail: float) -> tuple[Array, Array]:
        """Return a coarse list of losses with their probabilities, for estimates."""

    def grid(self, step: float, tail: float) -> tuple[NDArray[np.int64], Array, float]:
        """Return indices of losses in units of ``step``, their masses, and the infinite mass."""


def spread(edges: Array, mass: Array, excess: Array, below: float, above: float) -> NodeMasses:
    """Move each cell's mass to its ends, keeping its masses under P and Q.

    ``excess`` is the mass under P less ``e^l`` times that under Q, ``l`` the lower end: what the
    upper end receives, times ``1 - e^-width``. Clipping to [0, mass] only matters for rounding.
    """
    share = -np.expm1(-np.diff(edges))
    upper = np.where(share > 0.0, np.clip(excess / np.maximum(share, 1e-300), 0.0, mass), mass)
    nodes = np.zeros(len(edges))
    nodes[:-1] += mass - upper
    nodes[1:] += upper
    nodes[0] += below
    return NodeMasses(nodes, above)
