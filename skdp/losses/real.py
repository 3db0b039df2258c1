"""Losses of numbers: scores are compared with targets scaled to [-1, 1].

Statements and proofs: ``docs/proofs/regression_losses.md``, Theorem 1.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import ClassVar, Self

from skdp.losses.base import ROUND_UP, ScoreLoss, TargetKind, functions_named


class RealLoss(ScoreLoss):
    """Base of losses of a score and a target in [-1, 1]; models clip the target to this range."""

    target_kind: ClassVar[TargetKind] = "real"
    largest_target = 1.0
    convex = True
    piecewise_quadratic = True  # cut slopes are those of a loss of the same kind

    @property
    @abstractmethod
    def opposite(self) -> float:
        """Slopes of a target lie in [-p, q]: sup (p + q) over the largest slope, minus 1."""


class _ResidualLoss(RealLoss):
    """A loss of the residual, whose slope is 0 at a residual of size `_root` at most."""

    _root: float = 0.0

    def product_bound(self) -> float:
        """Return kappa."""
        # At scores between 0 and a target of size y; slopes are at most L, and the curvature times
        # the distance from the root.
        most, y = self.largest_slope, 1.0 + self._root
        if 2.0 * most >= self.curvature * y:
            return self.curvature * y * y / 4.0 * ROUND_UP
        return most * (y - most / self.curvature) * ROUND_UP


@dataclass(frozen=True)
class _WideLoss(_ResidualLoss):
    """A loss whose slope changes within a width of the target."""

    width: float

    def __post_init__(self) -> None:
        if not 0.0 < self.width < math.inf:
            raise ValueError(f"width must be a positive finite number, got {self.width}.")
        object.__setattr__(self, "width", float(self.width))

    def smoother_losses(self) -> tuple[Self, ...]:
        """Return losses wide enough for every row to have curvature at zero, down to this one."""
        doublings = max(0, math.ceil(math.log2(2.0 / self.width)))
        return tuple(replace(self, width=self.width * 2.0**k) for k in range(doublings, 0, -1))


@dataclass(frozen=True)
class HuberLoss(_WideLoss):
    """Half the squared residual up to a width, and straight lines beyond (Huber 1964).

    Examples
    --------
    >>> from skdp.losses import HuberLoss
    >>> loss = HuberLoss(width=0.25)
    >>> loss.lipschitz(row_norm=1.0), loss.smoothness(row_norm=1.0)
    (0.25, 1.0)
    """

    curvature = 1.0
    opposite = 1.0

    @property
    def largest_slope(self) -> float:
        """The width."""
        return self.width

    scalar_functions = functions_named("HUBER", "width")


@dataclass(frozen=True)
class PseudoHuberLoss(_WideLoss):
    """The smooth ``h^2 (sqrt(1 + (r/h)^2) - 1)`` of the residual r, for a width h.

    Examples
    --------
    >>> from skdp.losses import PseudoHuberLoss
    >>> PseudoHuberLoss(width=0.25).lipschitz(row_norm=2.0)
    0.5
    """

    curvature = 1.0
    opposite = 1.0
    piecewise_quadratic = False

    @property
    def largest_slope(self) -> float:
        """The width."""
        return self.width

    scalar_functions = functions_named("PSEUDO_HUBER", "width")


@dataclass(frozen=True)
class ClippedSquaredLoss(_ResidualLoss):
    """Half the squared residual, with constant slope where scores leave [-1, 1].

    Predictions are clipped to that anyway. Slopes of each target span an interval of length 2.

    Examples
    --------
    >>> from skdp.losses import ClippedSquaredLoss
    >>> loss = ClippedSquaredLoss()
    >>> loss.lipschitz(row_norm=1.0), loss.opposite
    (2.0, 0.0)
    """

    largest_slope = 2.0
    curvature = 1.0
    opposite = 0.0

    scalar_functions = functions_named("CLIPPED_SQUARE")


@dataclass(frozen=True)
class QuantileLoss(_WideLoss):
    """The pinball loss of a quantile, its kink a parabola over residuals up to ``width / 2``.

    Examples
    --------
    >>> from skdp.losses import QuantileLoss
    >>> loss = QuantileLoss(width=0.1, quantile=0.75)
    >>> loss.lipschitz(row_norm=1.0), round(loss.opposite, 6)
    (0.75, 0.333333)
    """

    quantile: float = 0.5

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0.0 < self.quantile < 1.0:
            raise ValueError(f"quantile must lie between 0 and 1, got {self.quantile}.")
        object.__setattr__(self, "quantile", float(self.quantile))

    @property
    def largest_slope(self) -> float:
        """That of the steeper side."""
        return max(self.quantile, 1.0 - self.quantile)

    @property
    def curvature(self) -> float:
        """That of the parabola."""
        return 1.0 / self.width

    @property
    def opposite(self) -> float:
        """Share of the slopes of both sides, rounded up."""
        low, high = sorted((self.quantile, 1.0 - self.quantile))
        return min(1.0, low / high * ROUND_UP)

    @property
    def _root(self) -> float:  # type: ignore[override]
        return self.width * abs(self.quantile - 0.5)

    scalar_functions = functions_named("QUANTILE", "width", "quantile")


@dataclass(frozen=True)
class PoissonLoss(RealLoss):
    """Half the Poisson deviance of a count ``1 + target`` at the rate ``e^score``, cut at 2.

    So counts lie between 0 and 2, in units of which the largest is 2. Slopes of each target span an
    interval of length 2.

    Examples
    --------
    >>> from skdp.losses import PoissonLoss
    >>> loss = PoissonLoss()
    >>> loss.lipschitz(row_norm=1.0), loss.smoothness(row_norm=1.0), loss.opposite
    (2.0, 2.0, 0.0)
    """

    largest_slope = 2.0
    curvature = 2.0
    opposite = 0.0
    piecewise_quadratic = False

    scalar_functions = functions_named("POISSON")

    def product_bound(self) -> float:
        """Return kappa."""
        # Of a count of 0, at the score -1; of others less, at scores above 0 up to .2044.
        return math.exp(-1.0) * ROUND_UP
