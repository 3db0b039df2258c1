"""Gradient descent with a number of steps fixed in advance."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from skdp.solvers.objective import RegularisedObjective


def gradient_descent(
    objective: RegularisedObjective,
    steps: int,
    step_sizes: float | NDArray[np.float64],
    radius: float = math.inf,
) -> NDArray[np.float64]:
    """Return the last of so many iterates from zero, each projected onto the ball of the radius.

    Nothing depends on the data but the iterates, so the sensitivity of the last one follows from
    the contraction of the step alone. Projection onto a ball is non-expansive and keeps it.
    """
    if steps < 0:
        raise ValueError(f"steps must be >= 0, got {steps}.")
    if not radius > 0:
        raise ValueError(f"radius must be positive (inf = no projection), got {radius}.")
    sizes = np.broadcast_to(np.asarray(step_sizes, dtype=np.float64), (steps,))
    weights = np.zeros(objective.n_weights)
    for size in sizes:
        weights -= size * objective.gradient(weights)
        if radius < math.inf:
            norm = math.sqrt(float(weights @ weights))
            if norm > radius:
                weights *= radius / norm
    return weights
