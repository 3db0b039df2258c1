"""Scaled units, in which all models, plans and solvers work.

A row ``x`` is multiplied by ``min(1 / R, 1 / |x|)`` where ``R`` is the public bound `data_norm`, so
that it has norm at most 1. Weights ``u`` of the scaled problem are ``u / R`` in the user's units;
the scores, and hence the losses, are the same in both.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class ScaledUnits:
    """Conversion of the user's numbers, in units of the features, to scaled units.

    Examples
    --------
    >>> from skdp.models import ScaledUnits
    >>> units = ScaledUnits(data_norm=10.0)
    >>> units.weight(0.3), units.feature(5.0), units.learning_rate(units.step(0.5))
    (3.0, 0.5, 0.5)
    """

    data_norm: float = 1.0  # the bound R on the norm of a row

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
