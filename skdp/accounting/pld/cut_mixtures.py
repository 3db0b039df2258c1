"""A Gaussian mixture without its largest losses, on a grid that suits the others.

Where sampling is rare nearly all outcomes have nearly the same loss. A grid has a node there, so
that they are not spread, and one at the largest loss.
"""

from __future__ import annotations

import math

import numpy as np

from skdp.accounting.pld.optimistic import lowered
from skdp.accounting.pld.pairs.base import Array, Indices, NodeMasses
from skdp.accounting.pld.pairs.gaussian import GaussianMixturePair, RemovalPair


class CutMixturePair(GaussianMixturePair):
    """A pair of Gaussian mixtures whose outcomes with a loss above a level have been withheld.

    The losses of a symmetric pair that are below minus the level count as if they were there.

    Parameters
    ----------
    pair : GaussianMixturePair
        The pair, not normal, and with a largest loss of infinity.
    level : float
        About the level, in nats, positive.
    step : float
        Step of the grids that it will be put on; the level is moved onto them.
    """

    def __init__(self, pair: GaussianMixturePair, level: float, step: float) -> None:
        super().__init__(pair.rate, pair.mu)
        self.origin = math.log1p(-pair.rate) if isinstance(pair, RemovalPair) else 0.0
        self._cells = round((level - self.origin) / step)
        self.lattice = self._cells * step
        self.level = self.largest_loss = self.origin + self.lattice

    def span(self, tail: float) -> tuple[float, float]:
        """Return the losses between which all but ``tail`` of P's mass lies on either side."""
        return max(super().span(tail)[0], -self.level), self.level

    def sketch(self, tail: float) -> tuple[Array, Array]:
        """Return a coarse list of losses with their probabilities, for estimates."""
        losses, masses = super().sketch(tail)
        kept = losses <= self.level
        return losses[kept], masses[kept]

    def grid(self, step: float, tail: float, aligned: bool = False) -> tuple[Indices, Array, float]:
        """Return indices of losses from the origin on, their masses, and the infinite mass."""
        indices, nodes = self._nodes_on_grid(step, tail)
        return indices, nodes.masses, 0.0

    def optimistic_grid(
        self, step: float, tail: float, aligned: bool = False
    ) -> tuple[Indices, Array, float]:
        """Return the same for a discrete pair that this one dominates."""
        indices, nodes = self._nodes_on_grid(step, tail)
        return indices, lowered(step, nodes), 0.0

    def _nodes_on_grid(
        self, step: float, tail: float, aligned: bool = False
    ) -> tuple[Indices, NodeMasses]:
        first = min(math.floor(self.span(tail)[0] / step), -1) if self.origin == 0.0 else 0
        indices = np.arange(first, self._cells + 1, dtype=np.int64)
        return indices, self.node_masses(np.asarray(self.origin + indices * step))


def cut_pair(pair: GaussianMixturePair, level: float, step: float) -> CutMixturePair:
    """Return the pair without its outcomes above a level."""
    made: type[CutMixturePair] = type("CutMixturePair", (CutMixturePair, type(pair)), {})
    return made(pair, level, step)
