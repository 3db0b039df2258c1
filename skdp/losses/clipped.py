"""Margin losses whose slope is capped so that no record's gradient exceeds a public norm."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from skdp.losses._bounds import ROUND_UP
from skdp.losses.base import Loss, MarginLoss, TargetKind


@dataclass(frozen=True)
class ClippedLoss(Loss):
    """A convex margin loss that never rises, whose slope is cut at ``clip / ||x||`` for a row x.

    The cut depends on the record and not on the weights: this is a loss of the margin again, convex
    with a Lipschitz derivative (a Huberised loss), and clipped gradients are gradients of it.

    Examples
    --------
    >>> from skdp.losses import ClippedLoss, LogisticLoss
    >>> loss = ClippedLoss(LogisticLoss(), clip=0.25)
    >>> loss.lipschitz(row_norm=1.0), loss.smoothness(row_norm=1.0)
    (0.25, 0.1875)
    """

    unclipped: MarginLoss
    clip: float

    target_kind: ClassVar[TargetKind] = "signs"
    convex = True
    slope_sign = -1
    slope_law = "known-sign"
    piecewise_quadratic = False

    def __post_init__(self) -> None:
        if not 0.0 < self.clip < math.inf:
            raise ValueError(f"clip must be a positive finite number, got {self.clip}.")
        object.__setattr__(self, "clip", float(self.clip))
        base = self.unclipped
        if not (isinstance(base, MarginLoss) and base.convex and base.slope_sign == -1):
            raise ValueError(
                "Slopes can be cut of a convex loss of the margin that never rises, got "
                f"{type(base).__name__}."
            )

    @property
    def kernel_loss(self) -> Loss:
        """The loss whose scalar functions kernels are given; they cut its slopes."""
        return self.unclipped

    def values_of_rows(
        self, margins: NDArray[np.float64], row_norms: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Return the loss of (augmented) rows of given norms at given margins."""
        caps = np.minimum(self.clip / np.maximum(row_norms, 1e-300), self.unclipped.largest_slope)
        joints = np.maximum(margins, self.unclipped.margin_of_slope(caps))
        return self.unclipped.value(joints) + caps * (joints - margins)

    def curvature_of_rows(
        self, margins: NDArray[np.float64], row_norms: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Return second derivatives of rows of given norms; 0 where the slope is cut."""
        steep = np.abs(self.unclipped.derivative(margins)) * row_norms > self.clip
        return np.where(steep, 0.0, self.unclipped.second_derivative(margins))

    def lipschitz(self, row_norm: float) -> float:
        """Return the bound on the norm of one record's gradient: ``clip``, or the base's."""
        return min(self.clip, self.unclipped.lipschitz(row_norm))

    def smoothness(self, row_norm: float) -> float:
        """Return the Lipschitz constant of one record's gradient.

        For a row of norm r it is r^2 times the largest second derivative where the slope is at
        most clip/r, and that is largest at ``row_norm``.
        """
        cap = min(self.unclipped.largest_slope, self.clip / row_norm)
        return row_norm * row_norm * self.unclipped.largest_curvature(cap)

    def minimiser_norm_bound(self, row_norm: float, penalty: float) -> float:
        """Return a bound on the norm of the regularised minimiser that no data set exceeds.

        Cutting slopes makes ``-m l'(m)`` no larger: the base's bound holds, and L / penalty.
        """
        base = self.unclipped.minimiser_norm_bound(row_norm, penalty)
        return min(base, self.lipschitz(row_norm) / penalty * ROUND_UP)

    def smoother_losses(self) -> tuple[Loss, ...]:
        """Return the base's easier losses, clipped to the same norm."""
        return tuple(ClippedLoss(loss, self.clip) for loss in self.unclipped.smoother_losses())
