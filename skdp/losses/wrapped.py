"""Losses made of others: clipped, weighted, one against the rest."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from skdp.losses.base import (
    ROUND_UP,
    Loss,
    MarginLoss,
    TargetKind,
    check_n_classes,
    kernel_arguments,
)


@dataclass(frozen=True)
class ClippedLoss(Loss):
    """A convex margin loss that never rises, whose slope is cut at ``clip / ||x||`` for a row x.

    The cut depends on the record and not on the weights. The result is again a convex loss of the
    margin with a Lipschitz derivative (a Huberised loss). Its gradients are the clipped gradients.

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
                "Only slopes of a convex, non-increasing loss of the margin can be clipped, got "
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

        For a row of norm r it is r^2 times the largest second derivative at slopes of at most
        clip/r. It is largest at ``row_norm``.
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


def _of_base(name: str) -> Any:
    return property(lambda self: getattr(self.base, name), doc=f"`{name}` of the base.")


@dataclass(frozen=True)
class WeightedLoss(Loss):
    """A loss times row weights of at most `heaviest`; kernels receive the loss without weights.

    Every constant is derived from the base's here, so that no plan can omit a factor. Gradients are
    clipped to `clip` before they are multiplied. Theorem 1 of ``docs/proofs/class_weights.md``.
    """

    base: Loss
    heaviest: float

    def __post_init__(self) -> None:
        if not 1e-50 <= self.heaviest <= 1e50:
            raise ValueError(f"heaviest must be a positive finite number, got {self.heaviest}.")
        kernel_arguments(self.base.part)

    kernel_loss = _of_base("kernel_loss")
    unweighted = _of_base("unweighted")
    n_outputs = _of_base("n_outputs")
    target_kind = _of_base("target_kind")
    clip = _of_base("clip")
    convex = _of_base("convex")
    slope_sign = _of_base("slope_sign")
    piecewise_quadratic = _of_base("piecewise_quadratic")
    # At the same slope a lighter record has less curvature, so that laws of slopes stay what they
    # are.
    slope_law = _of_base("slope_law")
    opposite = _of_base("opposite")
    largest_target = _of_base("largest_target")

    @property
    def part(self) -> Loss:
        """Loss of one problem, with the same weights in each."""
        part = self.base.part
        return self if part is self.base else WeightedLoss(part, self.heaviest)

    def lipschitz(self, row_norm: float) -> float:
        """Return a bound on the norm of one record's gradient."""
        return self._times(self.base.lipschitz(row_norm))

    def smoothness(self, row_norm: float) -> float:
        """Return the Lipschitz constant of one record's gradient."""
        return self._times(self.base.smoothness(row_norm))

    def minimiser_norm_bound(self, row_norm: float, penalty: float) -> float:
        """Return a bound on the minimiser's norm, from the mean loss with weights of mean <= 1.

        Dividing the objective by `heaviest` divides the penalty.
        """
        return self.base.minimiser_norm_bound(row_norm, penalty / self.heaviest) * ROUND_UP

    def zero_out_gap(self, row_norm: float, weight_norm_bound: float | None = None) -> float:
        """Return a bound on the norm of one record's gradient at weights up to a public norm."""
        return self._times(self.base.zero_out_gap(row_norm, weight_norm_bound))

    def gradient_gap(self, row_norm: float, weight_norm_bound: float | None = None) -> float:
        """Return a bound on the distance of two records' gradients, the lighter of them zero."""
        gap = self.base.gradient_gap(row_norm, weight_norm_bound)
        return self._times(max(gap, self.base.zero_out_gap(row_norm, weight_norm_bound)))

    def smoother_losses(self) -> tuple[Loss, ...]:
        """Return the base's easier losses, with the same weights."""
        return tuple(WeightedLoss(loss, self.heaviest) for loss in self.base.smoother_losses())

    def _times(self, constant: float) -> float:
        return constant * self.heaviest * ROUND_UP if constant < math.inf else math.inf


def with_weights(loss: Loss, heaviest: float) -> Loss:
    """Return a loss with weights up to a bound, replacing its previous weights."""
    return loss.unweighted if heaviest == 1.0 else WeightedLoss(loss.unweighted, heaviest)


@dataclass(frozen=True)
class OneVsRestLoss(Loss):
    """Sum over K classes of a margin loss `base` of "this class" against "the rest".

    Its weights are the K binary weight vectors side by side. Solvers treat K binary problems; the
    constants below are those of the joint vector, which one record can change.

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
                f"A one-vs-rest loss needs a base loss with a single score, got "
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
