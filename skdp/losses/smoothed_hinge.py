"""The smoothed hinge loss."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from skdp.losses.base import MarginLoss, functions_named


@dataclass(frozen=True)
class SmoothedHingeLoss(MarginLoss):
    """Hinge loss whose kink is a parabola over margins in [1 - h, 1 + h], with h the half-width.

    There it is ``(1 - u)^2 / (4h) + (1 - u) / 2 + h / 4`` (Chapelle 2007). For rows of norm at most
    B its gradient has norm at most B and is (B^2 / 2h)-Lipschitz.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp.losses import SmoothedHingeLoss
    >>> loss = SmoothedHingeLoss(half_width=0.5)
    >>> loss.value(np.array([0.0, 1.0, 2.0]))
    array([1.   , 0.125, 0.   ])
    >>> loss.smoothness(row_norm=1.0)
    1.0
    """

    half_width: float = 0.5

    convex = True
    largest_slope = 1.0
    slope_sign = -1
    piecewise_quadratic = True

    def __post_init__(self) -> None:
        if not 0.0 < self.half_width < float("inf"):
            raise ValueError(
                f"half_width must be a positive finite number, got {self.half_width}; 0.5 is usual."
            )
        object.__setattr__(self, "half_width", float(self.half_width))

    scalar_functions = functions_named("SMOOTHED_HINGE", "half_width")

    @property
    def curvature(self) -> float:
        """Second derivative of the parabola, which slopes of any size reach."""
        return 0.5 / self.half_width

    def margin_of_slope(self, slopes: ArrayLike) -> NDArray[np.float64]:
        """Return the margin on the parabola with each slope; its end for 1."""
        return 1.0 + self.half_width - 2.0 * self.half_width * np.asarray(slopes, dtype=np.float64)

    def smoother_losses(self) -> tuple[SmoothedHingeLoss, ...]:
        """Return hinges wide enough for every row to have curvature at zero, down to this one.

        A narrow hinge is a straight line around the origin, where Newton's method has no curvature
        to go by.
        """
        wider = []
        width = 2.0 * self.half_width
        while width < 4.0:
            wider.append(SmoothedHingeLoss(width))
            width *= 2.0
        return tuple(reversed(wider))

    def _product_bound(self) -> float:
        # -u H'(u) rises up to u = 1 - h and is the parabola u (1 + h - u) / 2h after it.
        if 3.0 * self.half_width >= 1.0:
            return (1.0 + self.half_width) ** 2 / (8.0 * self.half_width)
        return 1.0 - self.half_width
