"""A loss whose records have weights: its constants are those of the heaviest."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from skdp.losses._bounds import ROUND_UP
from skdp.losses.base import Loss, kernel_arguments


def _of_base(name: str) -> Any:
    return property(lambda self: getattr(self.base, name), doc=f"`{name}` of the base.")


@dataclass(frozen=True)
class WeightedLoss(Loss):
    """A loss times weights of at most `heaviest` that rows carry; kernels are given the loss alone.

    Every constant is derived from the base's here, so that no plan can forget a factor. Gradients
    are cut to `clip` before they are multiplied. Theorem 1 of
    ``docs/proofs/class_weights.md``.
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
        """Return a bound on the norm of the minimiser: the mean loss has weights of mean <= 1 then.

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
    """Return a loss with weights up to that in place of those that it had."""
    return loss.unweighted if heaviest == 1.0 else WeightedLoss(loss.unweighted, heaviest)
