"""Objective perturbation without a delta: the secret linear term has a norm-exponential law.

Proofs, in the units of sums that are used there: Theorems 3 to 5 of ``docs/proofs/pure.md``.
"""

from __future__ import annotations

import math
from fractions import Fraction

from skdp.accounting import PureDPEvent
from skdp.choices import SmoothSolver
from skdp.mechanisms.contribution import ROUND_UP, Adjacency
from skdp.mechanisms.norm_exponential import LARGEST_LENGTH
from skdp.models import LinearModel, require
from skdp.plans.objective_perturbation import (
    FINAL_NOISE,
    ObjectivePerturbationPlan,
    check_penalty,
    curvature_ratio,
    final_distance,
    too_small,
)
from skdp.plans.output_perturbation import Numerics

# Of epsilon, for the final noise. Epsilons add up: no more than makes that noise small, and where
# rounding errors govern it what makes the least noise in all.
_SHARES = (0.005, 0.02, 0.08, 0.32)


def secret_scale(
    model: LinearModel, penalty: float, adjacency: Adjacency, epsilon: float, rows: int | None = 1
) -> float:
    """Return the least scale of the linear term on the sum of losses; infinite if there is none.

    A unit has up to so many rows, or any number.
    """
    times = 2 if adjacency == "replace-one" else 1
    lipschitz = model.part_loss.lipschitz(model.row_norm)
    each = curvature_ratio(model, penalty)
    if rows is not None:
        each = rows * math.log1p(each / rows)
    left = epsilon - model.n_parts * each * ROUND_UP
    if model.part_loss.slope_law == "logistic":
        # The curvature is none where the gradient is longest. Exact, as this may be an equality.
        least = times * model.n_parts * Fraction(lipschitz) * Fraction(model.row_norm)
        if Fraction(epsilon) * Fraction(penalty) * model.n_rows >= least:
            left = epsilon
    moved = times * math.sqrt(model.n_parts) * lipschitz * ROUND_UP**2
    return moved / left if left > 0.0 else math.inf


def pure_objective_plan(
    model: LinearModel,
    *,
    penalty: float,
    adjacency: Adjacency,
    epsilon: float,
    solver: SmoothSolver = "newton",
    max_iter: int = 100,
    numerics: Numerics = "float",
    rows_per_unit: int | None = 1,
) -> ObjectivePerturbationPlan:
    """Derive both noises and the tolerance from public numbers.

    Of a unit with several rows the mean of their losses counts; None: their number has no bound.
    """
    facts = ("linear", "convex", "Lipschitz", "smooth", "of one score")
    require(model, "Objective perturbation", *facts)
    check_penalty(model, penalty)
    if numerics == "discrete":
        raise ValueError(
            "Objective perturbation has no numerics='discrete' with delta=0: its secret linear "
            "term is drawn in doubles. Take an Opera estimator, or numerics='float'."
        )
    smoothness = model.part_loss.smoothness(model.row_norm) + penalty
    found = []
    for share in _SHARES:
        final = epsilon * share
        main = math.nextafter(epsilon - final, 0.0)  # both together are at most epsilon
        tilt = secret_scale(model, penalty, adjacency, main, rows_per_unit) / model.n_rows
        if math.isfinite(tilt):
            wanted = FINAL_NOISE * tilt / smoothness * final
            longest = LARGEST_LENGTH * model.n_weights * tilt
            distance, tolerance = final_distance(model, penalty, longest, wanted)
            sigma = distance / final * ROUND_UP
            found.append((math.hypot(tilt / smoothness, sigma), tilt, sigma, tolerance))
    if not found:
        raise ValueError(too_small(model, penalty, epsilon, rows_per_unit, 1.0 - _SHARES[0]))
    _, tilt, sigma, tolerance = min(found)
    gap = math.sqrt(model.n_parts) * model.part_loss.lipschitz(model.row_norm)
    gap *= 2.0 if adjacency == "replace-one" else 1.0
    return ObjectivePerturbationPlan(
        model=model,
        penalty=penalty,
        adjacency=adjacency,
        epsilon=epsilon,
        delta=0.0,
        solver=solver,
        max_iter=max_iter,
        tilt_sigma=tilt * model.n_rows,
        tolerance=tolerance,
        # As with Gaussian noise: for replays, not for accounting.
        sensitivity=(gap / model.n_rows + 2.0 * tolerance) / penalty,
        sigma=sigma,
        grid=0.0,
        tilt_grid=0.0,
        minimiser_event=PureDPEvent(epsilon),
    )
