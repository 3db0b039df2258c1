"""Constants of K binary losses that are summed: the one-vs-rest loss of a K-class problem."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from skdp.losses._bounds import ROUND_UP
from skdp.losses.base import Loss, TargetKind, check_n_classes


@dataclass(frozen=True)
class OneVsRestLoss(Loss):
    """Sum over K classes of a margin loss `base` of "this class" against "the rest".

    Its weights are the K binary weight vectors side by side. Solvers treat K binary problems; the
    constants below are those of the joint vector, which is what one record can move.

    Examples
    --------
    >>> from skdp.losses import LogisticLoss, OneVsRestLoss
    >>> loss = OneVsRestLoss(LogisticLoss(), n_classes=4)
    >>> loss.n_outputs, round(loss.lipschitz(row_norm=1.0), 6)
    (4, 2.0)
    """

    base: Loss
    n_classes: int

    target_kind: ClassVar[TargetKind] = "codes"

    def __post_init__(self) -> None:
        if self.base.n_outputs != 1:
            raise ValueError(
                f"One loss for each class takes one of a single score, got "
                f"{type(self.base).__name__} with {self.base.n_outputs}."
            )
        check_n_classes(self.n_classes)

    @property
    def n_outputs(self) -> int:  # type: ignore[override]
        """Number K of scores."""
        return self.n_classes

    @property
    def convex(self) -> bool:
        """Whether the binary loss is."""
        return self.base.convex

    @property
    def part(self) -> Loss:
        """The binary loss."""
        return self.base

    @property
    def _root(self) -> float:
        return math.sqrt(self.n_classes) * ROUND_UP

    def lipschitz(self, row_norm: float) -> float:
        """Return the bound on one record's joint gradient: ``sqrt(K)`` times the binary one."""
        return self._root * self.base.lipschitz(row_norm)

    def smoothness(self, row_norm: float) -> float:
        """Return the smoothness, that of one block since the Hessian is block-diagonal."""
        return self.base.smoothness(row_norm)

    def gradient_gap(self, row_norm: float, weight_norm_bound: float | None = None) -> float:
        """Return the bound on the distance of two joint gradients; each block's weights obey it."""
        return self._root * self.base.gradient_gap(row_norm, weight_norm_bound)

    def zero_out_gap(self, row_norm: float, weight_norm_bound: float | None = None) -> float:
        """Return the bound on one record's joint gradient at weights of bounded norm."""
        return self._root * self.base.zero_out_gap(row_norm, weight_norm_bound)

    def minimiser_norm_bound(self, row_norm: float, penalty: float) -> float:
        """Return the bound on the norm of the joint minimiser."""
        return self._root * self.base.minimiser_norm_bound(row_norm, penalty)
