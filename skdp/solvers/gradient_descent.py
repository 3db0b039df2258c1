"""Gradient descent with a number of steps fixed in advance."""

from __future__ import annotations

import math

import numpy as np

from skdp.solvers.objective import RegularisedObjective
from skdp.solvers.rows import Vector


def gradient_descent(
    objective: RegularisedObjective,
    steps: int,
    step_sizes: float | Vector,
    radius: float = math.inf,
) -> Vector:
    """Return the last of so many iterates from zero, each projected onto the ball of the radius.

    Nothing depends on the data but the iterates, so the sensitivity of the last one follows from
    the contraction of the step alone. Projection onto a ball is non-expansive and keeps it.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp.losses import LogisticLoss
    >>> from skdp.solvers import RegularisedObjective, Rows, gradient_descent
    >>> X, signs = np.array([[0.6, 0.8], [0.8, 0.6]]), np.array([-1, 1], dtype=np.int8)
    >>> rows = Rows.from_matrix(X, signs, data_norm=1.0)
    >>> objective = RegularisedObjective(rows, LogisticLoss(), penalty=0.1)
    >>> gradient_descent(objective, steps=1, step_sizes=1.0).round(4)
    array([ 0.05, -0.05])
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
