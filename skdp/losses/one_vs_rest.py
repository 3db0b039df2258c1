"""Constants of K binary losses that are summed: the one-vs-rest loss of a K-class problem."""

from __future__ import annotations

import math
from typing import Any

from skdp.losses._bounds import ROUND_UP


class OneVsRestLoss:
    """Sum over the classes of a margin loss of "this class" against "the rest".

    Its weights are the K binary weight vectors side by side. The sum separates, so that solvers
    treat K binary problems with `base`; the constants below are those of the joint vector, which
    is what one record can move.

    Parameters
    ----------
    base : margin loss
        The binary loss.
    n_classes : int
        Number K of classes.
    """

    def __init__(self, base: Any, n_classes: int) -> None:
        self.base = base
        self.n_outputs = n_classes
        self.convex = base.convex
        self._root = math.sqrt(n_classes) * ROUND_UP

    def lipschitz(self, row_norm: float) -> float:
        """Return the bound on one record's joint gradient: ``sqrt(K)`` times the binary one."""
        return self._root * self.base.lipschitz(row_norm)

    def smoothness(self, row_norm: float) -> float:
        """Return the smoothness, that of one block since the Hessian is block-diagonal."""
        return self.base.smoothness(row_norm)

    def gradient_gap(self, row_norm: float, weight_norm_bound: float | None = None) -> float:
        """Return the bound on the distance of two records' joint gradients.

        `weight_norm_bound` bounds the joint vector and hence each block.
        """
        return self._root * self.base.gradient_gap(row_norm, weight_norm_bound)

    def zero_out_gap(self, row_norm: float, weight_norm_bound: float | None = None) -> float:
        """Return the bound on one record's joint gradient at weights of bounded norm."""
        return self._root * self.base.zero_out_gap(row_norm, weight_norm_bound)

    def minimiser_norm_bound(self, row_norm: float, penalty: float) -> float:
        """Return the bound on the norm of the joint minimiser."""
        return self._root * self.base.minimiser_norm_bound(row_norm, penalty)
