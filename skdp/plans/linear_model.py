"""The public side of a linear model: its shape, its loss, and its scaled units.

All plans and solvers work in scaled units. A row ``x`` is multiplied by ``min(1 / R, 1 / |x|)``
where ``R`` is the public bound `data_norm`, so that it has norm at most 1, and an intercept adds
a column of constant value ``s``. Weights ``u`` of the scaled problem give ``coef = u / R`` and
``intercept = s * u_last``; the margins, and hence the losses, are the same in both units.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from skdp.losses.kinds import kernel_kind

# Row norms are bounded by 1 up to a few rounding errors; every bound below includes this margin.
_ROUNDING = 1.0 + 1e-12


@dataclass(frozen=True)
class ScaledUnits:
    """Conversion of the user's numbers, in units of the features, to scaled units.

    Parameters
    ----------
    data_norm : float
        The bound R on the norm of a row.
    """

    data_norm: float = 1.0

    def penalty(self, alpha: float) -> float:
        """Return the penalty on scaled weights that equals `alpha` on the user's."""
        return alpha / self.data_norm**2

    def step(self, learning_rate: float) -> float:
        """Return the step size on scaled weights that equals one on the user's."""
        return learning_rate * self.data_norm**2

    def learning_rate(self, step: float) -> float:
        """Return the user's step size that equals one on scaled weights."""
        return step / self.data_norm**2

    def weight(self, length: float) -> float:
        """Return the length of scaled weights that equals one of the user's."""
        return length * self.data_norm

    def gradient(self, norm: float) -> float:
        """Return the norm of a scaled gradient that equals one of the user's."""
        return norm / self.data_norm

    def feature(self, value: float) -> float:
        """Return the value of a scaled feature that equals one of the user's."""
        return value / self.data_norm


@dataclass(frozen=True)
class LinearModel:
    """Loss and public shape of a linear classifier in scaled units.

    Parameters
    ----------
    loss : loss object of :mod:`skdp.losses`
        Publishes its constants as functions of the row norm.
    n_rows, n_features : int
        Public size of the table.
    n_outputs : int
        Scores a row gets: 1 for two classes, else the number of classes.
    intercept_value : float
        Value ``s`` of the constant column; 0 without intercept.
    units : ScaledUnits
        What a unit of the scaled problem is in the user's.
    """

    loss: Any
    n_rows: int
    n_features: int
    n_outputs: int
    intercept_value: float
    units: ScaledUnits = ScaledUnits()

    def __post_init__(self) -> None:
        # Before anything is charged; solvers would refuse it too, but afterwards.
        kernel_kind(self.part_loss)

    def require(self, method: str, *wanted: str) -> None:
        """Refuse a loss without the properties that a method's theorem rests on.

        Parameters
        ----------
        method : str
            What the theorem is about.
        *wanted : {"convex", "Lipschitz", "smooth", "of a slope of known sign"}
            The properties. A loss that does not say that it has one counts as one without.

        Raises
        ------
        ValueError
            If one is missing.
        """
        has = {
            "convex": getattr(self.loss, "convex", False),
            "Lipschitz": math.isfinite(self.loss.lipschitz(self.row_norm)),
            "smooth": math.isfinite(self.loss.smoothness(self.row_norm)),
            "of a slope of known sign": getattr(self.part_loss, "slope_sign", 0) != 0,
        }
        missing = [name for name in wanted if not has[name]]
        if missing:
            raise ValueError(
                f"{method} is proved for losses that are {', '.join(wanted)}, with public "
                f"constants; {type(self.part_loss).__name__} is not {', '.join(missing)}."
            )

    @property
    def part_loss(self) -> Any:
        """Loss of one problem: the binary one where several are solved side by side."""
        return getattr(self.loss, "base", self.loss)

    @property
    def n_parts(self) -> int:
        """Number of binary problems solved side by side; 1 but for one-vs-rest."""
        return self.n_outputs if self.part_loss is not self.loss else 1

    @property
    def row_norm(self) -> float:
        """Bound on the norm of a scaled row with its constant column."""
        return math.sqrt(1.0 + self.intercept_value**2) * _ROUNDING

    @property
    def n_weights_per_output(self) -> int:
        """Number of features, plus one for the intercept."""
        return self.n_features + (self.intercept_value > 0.0)

    @property
    def n_weights(self) -> int:
        """Length of the whole weight vector."""
        return self.n_outputs * self.n_weights_per_output
