"""A damped Newton method that reaches its tolerance on every strongly convex objective."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from skdp.solvers.objective import RegularisedObjective
from skdp.solvers.rows import Index, Vector

Solve = Callable[[Vector], Vector]

# The Hessian is formed up to this many weights and multiplications; beyond, systems are solved by
# conjugate gradients from products with it.
_DIRECT_WEIGHTS = 1500
_DIRECT_WORK = 4e10
_CG_STEPS = 500
# A metric is kept while each step divides the gradient norm by this much.
_KEEP = 0.3
# Past steps that correct the metric.
_PAIRS = 8
# A metric from a sample of the rows is given up for good when steps gain less than this.
_POOR = 0.5
# Steps beyond those of the caller, after which gradients alone are used: their number is proved.
_MORE_STEPS = 1000
NOT_FOUND = (
    "the minimiser was not found within the steps that its theorem allows, as may happen if rows "
    "change while they are in use. Nothing is released, and what was charged stays."
)


def newton(
    objective: RegularisedObjective,
    weights: Vector,
    target: float,
    *,
    rows: Index = None,
    sample: Index = None,
    max_iter: int = 100,
) -> Vector:
    """Return weights at which the norm of the gradient over ``rows`` is at most ``target``.

    The metric is first that of ``sample``; after ``max_iter`` steps it is fresh at every one, and
    after a public number of these `_descend` has the last word.
    """
    # Steps are minus the inverse of a metric times the exact gradient. The metric is a Hessian,
    # from a sample of the rows at first, corrected by the last few steps as in limited-memory BFGS.
    # All of these have eigenvalues bounded in terms of the penalty m and the smoothness b, so every
    # step is a descent direction at a bounded angle to the gradient. A step is accepted if the
    # slope along it is still not positive at its end, so that by convexity the objective went down
    # all the way, or if the gradient norm is half the smallest seen. The first decreases the
    # objective by at least a constant times the squared gradient norm, for steps not longer than
    # |slope| / (b ||p||^2) always have it; the second happens finitely often. So it would end.
    # Neither test compares values of the objective, which rounding would blur near the minimiser.
    gradient = objective.gradient(weights, rows)
    norm = best = _norm(gradient)
    metric_rows = rows if sample is None else sample
    metric: Solve | None = None
    pairs: list[tuple[Vector, Vector, float]] = []
    for iteration in range(max_iter + _MORE_STEPS):
        if norm <= target:
            return weights
        if not math.isfinite(norm):
            raise ValueError(f"{type(objective.loss).__name__}: a gradient is not finite.")
        if iteration >= max_iter:
            metric_rows, metric = rows, None
        fresh = metric is None
        if metric is None:
            metric, pairs = _inverse(objective, weights, metric_rows), []
        direction = _correct(metric, pairs, gradient)
        new, new_gradient = _step(objective, weights, gradient, direction, best, rows)
        moved, turned = new - weights, new_gradient - gradient
        weights, gradient = new, new_gradient
        previous, norm = norm, _norm(gradient)
        best = min(best, norm)
        product = float(moved @ turned)
        if product > 0.0:
            pairs = [*pairs[1 - _PAIRS :], (moved, turned, product)]
        if norm > _KEEP * previous:
            if fresh and norm > _POOR * previous:
                metric_rows = rows
            metric = None
    return _descend(objective, weights, target, rows)


def _descend(
    objective: RegularisedObjective, weights: Vector, target: float, rows: Index
) -> Vector:
    """Do the same by accelerated gradient descent, in at most as many steps as are proved.

    An objective that does not meet the theorem's conditions ends in an error, which says no more.
    """
    # For curvatures between m and b, q = m / b, steps of 1/b and momentum (1 - sqrt q)/(1 + sqrt q)
    # have f(x_k) - f* <= 2 (f(x_0) - f*) (1 - sqrt q)^k (Nesterov 2018, Theorem 2.2.3). With
    # f(x_0) - f* <= ||g_0||^2 / 2m and ||g_k||^2 <= 2b (f(x_k) - f*) the norm is at most the target
    # once (1 - sqrt q)^k <= q (target / ||g_0||)^2 / 2. A half of the target is asked for.
    smoothness = objective.smoothness
    root = math.sqrt(objective.penalty / smoothness)
    norm = _norm(objective.gradient(weights, rows))
    if not math.isfinite(norm):
        raise RuntimeError(NOT_FOUND)
    ratio = max(2.0 * norm / target, 1.0)
    steps = math.ceil((math.log(2.0) + 2.0 * math.log(ratio / root)) / root)
    momentum = (1.0 - root) / (1.0 + root)
    previous = weights
    for _ in range(steps + 1):
        ahead = weights + momentum * (weights - previous)
        gradient = objective.gradient(ahead, rows)
        if _norm(gradient) <= target:
            return ahead
        previous, weights = weights, ahead - gradient / smoothness
    raise RuntimeError(NOT_FOUND)


def _correct(metric: Solve, pairs: list[tuple[Vector, Vector, float]], gradient: Vector) -> Vector:
    """Apply the inverse metric after the BFGS updates by ``pairs`` (two-loop recursion)."""
    vector = gradient.copy()
    factors = []
    for moved, turned, product in reversed(pairs):
        factors.append(float(moved @ vector) / product)
        vector -= factors[-1] * turned
    vector = metric(vector)
    for moved, turned, product in pairs:
        vector += (factors.pop() - float(turned @ vector) / product) * moved
    return vector


def _step(
    objective: RegularisedObjective,
    weights: Vector,
    gradient: Vector,
    direction: Vector,
    best: float,
    rows: Index,
) -> tuple[Vector, Vector]:
    """Return the end of a step along minus ``direction`` and the gradient there."""
    slope = -float(gradient @ direction)
    length = 1.0
    # No turn leaves more than .9 of a length: there are at most 306.
    while slope < 0.0 and length > 1e-14:
        new = weights - length * direction
        new_gradient = objective.gradient(new, rows)
        new_slope = -float(new_gradient @ direction)
        if new_slope <= 0.0 or _norm(new_gradient) <= 0.5 * best:
            return new, new_gradient
        # Slightly short of the zero of the slope's secant, to end on its near side.
        length *= min(max(0.9 * slope / (slope - new_slope), 0.1), 0.9)
    # Rounding spoilt the direction: the gradient step of length 1/b always decreases.
    new = weights - gradient / objective.smoothness
    return new, objective.gradient(new, rows)


def _inverse(objective: RegularisedObjective, weights: Vector, rows: Index) -> Solve:
    """Return the function that applies (or approximates) the inverse Hessian over ``rows``."""
    count = objective.rows.n_rows if rows is None else rows.size
    size = weights.size
    if size > _DIRECT_WEIGHTS or float(count) * size * size > _DIRECT_WORK:
        multiply = objective.hessian_operator(weights, rows)
        return lambda vector: _conjugate_gradients(multiply, vector)
    from scipy.linalg import cho_factor, cho_solve

    matrix = objective.hessian(weights, rows)
    # The penalty keeps the matrix positive definite unless it drowns in rounding.
    matrix.flat[:: size + 1] += 4.0 * np.finfo(float).eps * float(np.trace(matrix))
    factor = cho_factor(matrix, lower=True, overwrite_a=True, check_finite=False)
    return lambda vector: cho_solve(factor, vector, check_finite=False)


def _conjugate_gradients(multiply: Callable[[Vector], Vector], right: Vector) -> Vector:
    """Return an approximate solution; any number of steps gives a descent direction."""
    norm = _norm(right)
    # Solving more exactly as the gradient shrinks makes the outer loop converge superlinearly.
    goal = norm * min(0.1, math.sqrt(norm))
    solution = np.zeros_like(right)
    residual = right.copy()
    direction = residual.copy()
    square = float(residual @ residual)
    for _ in range(_CG_STEPS):
        product = multiply(direction)
        curvature = float(direction @ product)
        if not curvature > 0.0:
            break
        length = square / curvature
        solution += length * direction
        residual -= length * product
        previous, square = square, float(residual @ residual)
        if math.sqrt(square) <= goal:
            break
        direction *= square / previous
        direction += residual
    return solution


def _norm(vector: Vector) -> float:
    return math.sqrt(float(vector @ vector))
