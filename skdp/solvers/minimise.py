"""Minimisers whose gradient norm is below a fixed tolerance on every data set."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from skdp.solvers._newton import newton
from skdp.solvers.objective import RegularisedObjective
from skdp.solvers.rows import Vector

# The stopping test is this much stricter than the promise, to cover rounding in the test itself.
_SAFETY = 0.9
# Rows that a first look at the problem takes, and by how much each look grows.
_FIRST_ROWS = 10_000
_GROWTH = 3
# Gradient norm that a look is minimised to, times the square root of its number of rows.
_LOOK_ACCURACY = 0.1
# Gradient norm that the minimisers of easier losses are good for.
_ROUGH = 1e-2


def minimise(
    objective: RegularisedObjective,
    tolerance: float,
    *,
    method: str = "newton",
    max_iter: int = 100,
) -> Vector:
    """Return weights at which the gradient norm is at most ``tolerance``, whatever the data.

    A sensitivity rests on the tolerance, and nothing may tell how hard it was to meet: there is no
    warning, no iteration count and no other way out.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp.losses import LogisticLoss
    >>> from skdp.solvers import RegularisedObjective, Rows, minimise
    >>> X, signs = np.array([[0.6, 0.8], [0.8, 0.6]]), np.array([-1, 1], dtype=np.int8)
    >>> rows = Rows.from_matrix(X, signs, data_norm=1.0)
    >>> objective = RegularisedObjective(rows, LogisticLoss(), penalty=0.1)
    >>> weights = minimise(objective, tolerance=1e-9)
    >>> bool(np.linalg.norm(objective.gradient(weights)) <= 1e-9)
    True
    """
    # After ``max_iter`` iterations of the fast method comes a damped Newton method with exact
    # Hessians. Every one of its steps decreases the strongly convex objective by an amount bounded
    # below, or halves the smallest gradient norm seen, so it ends (Nocedal and Wright 2006, ch. 3
    # and 7; Byrd, Chin, Neveitt and Nocedal 2011 for Hessians of samples).
    if method not in ("newton", "lbfgs"):
        raise ValueError(f"method must be 'newton' or 'lbfgs', got {method!r}.")
    if not objective.penalty > 0.0:
        raise ValueError(
            "penalty must be positive to minimise: without it a minimiser may not exist. "
            "Use gradient_descent."
        )
    smallest = objective.smallest_tolerance()
    if not tolerance >= smallest:
        raise ValueError(
            f"tolerance={tolerance} is below {smallest:.3g}, which float64 can promise here; "
            "raise the tolerance or the penalty."
        )
    target = _SAFETY * tolerance
    weights = np.zeros(objective.n_weights)
    if method == "lbfgs":
        weights = _lbfgs(objective, weights, target, max_iter)
        return newton(objective, weights, target, max_iter=0)
    looks = _looks(objective.rows.n_rows, weights.size)
    first = looks[0] if looks else None
    for loss in objective.loss.smoother_losses():
        easier = objective.with_loss(loss)
        weights = newton(easier, weights, max(target, _ROUGH), rows=first, max_iter=max_iter)
    # The largest look is for the Hessian alone, unless it is the only one.
    for look in looks[:-1] or looks:
        # No look need be better than its own sampling error.
        rough = max(target, _LOOK_ACCURACY / math.sqrt(look.size))
        weights = newton(objective, weights, rough, rows=look, max_iter=max_iter)
    return newton(
        objective, weights, target, sample=looks[-1] if looks else None, max_iter=max_iter
    )


def _looks(n_rows: int, n_weights: int) -> list[NDArray[np.int64]]:
    """Return growing, evenly spaced samples of row numbers, each a small part of the rows."""
    looks = []
    count = max(_FIRST_ROWS, 50 * n_weights)
    while 8 * count <= n_rows:
        looks.append(np.linspace(0, n_rows - 1, count).astype(np.int64))
        count *= _GROWTH
    return looks


def _lbfgs(
    objective: RegularisedObjective, weights: Vector, target: float, max_iter: int
) -> Vector:
    from scipy.optimize import minimize

    result = minimize(
        objective.value_and_gradient,
        weights,
        jac=True,
        method="L-BFGS-B",
        options={
            "maxiter": max_iter,
            "maxcor": 20,
            "maxls": 50,
            # The test is on the largest entry; the norm is at most sqrt(n) times it.
            "gtol": target / math.sqrt(weights.size),
            "ftol": 0.0,
        },
    )
    return result.x
