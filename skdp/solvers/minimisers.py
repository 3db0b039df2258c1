"""Minimisers to a fixed tolerance, by damped Newton steps or gradient descent."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

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
    "the minimiser was not found within the steps that its theorem allows. This may happen if rows "
    "change during the fit. Nothing is released, and the charge stays."
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

    The first metric is that of ``sample``. After ``max_iter`` steps it is computed anew at every
    step. After a public number of these, `_descend` takes over.
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
    """Minimise by accelerated gradient descent, within the proved number of steps.

    An objective that does not meet the theorem's conditions ends in an error, which says no more.
    """
    # For curvatures between m and b, q = m / b, steps of 1/b and momentum (1 - sqrt q)/(1 + sqrt q)
    # have f(x_k) - f* + m ||v_k - x*||^2 / 2 <= 2 (f(x_0) - f*) (1 - sqrt q)^k (Nesterov 2018,
    # section 2.2.1). The point y_k that is tested averages x_k and v_k: f(y_k) - f* is at most
    # 1/sqrt q times as large. With f(x_0) - f* <= ||g_0||^2 / 2m and ||g||^2 <= 2b (f - f*), the
    # norm at y_k is at most the target once (1 - sqrt q)^k <= q^1.5 (target / ||g_0||)^2 / 2. Half
    # of the target is required.
    smoothness = objective.smoothness
    root = math.sqrt(objective.penalty / smoothness)
    norm = _norm(objective.gradient(weights, rows))
    if not math.isfinite(norm):
        raise RuntimeError(NOT_FOUND)
    ratio = max(2.0 * norm / target, 1.0)
    logarithm = math.log(2.0) + 2.0 * math.log(ratio) - 3.0 * math.log(root)
    steps = math.ceil(logarithm / root)
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

    A sensitivity depends on the tolerance, and nothing may reveal how hard it was to meet. There is
    no warning, no iteration count and no early exit.

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
            f"tolerance={tolerance} is below {smallest:.3g}, the least that float64 can guarantee; "
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


def gradient_descent(
    objective: RegularisedObjective,
    steps: int,
    step_sizes: float | Vector,
    radius: float = math.inf,
) -> Vector:
    """Return the last of `steps` iterates from zero, each projected onto the ball of the radius.

    Only the iterates depend on the data, so the sensitivity of the last one follows from the
    contraction of the step. Projection onto a ball is non-expansive and preserves it.

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
