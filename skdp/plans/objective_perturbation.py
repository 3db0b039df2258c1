"""Plans of objective perturbation: add a random linear term to the objective, and minimise.

Proofs: Theorems 2 to 6 of ``docs/proofs/objective_perturbation.md``. Objectives are sums over the
records there and means here: the theorems' penalty ``Lam`` is n times `penalty`, and the linear
term is the secret noise over n.

Proofs of pure epsilon, in units of sums: Theorems 3 to 5 of ``docs/proofs/pure.md``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction

from scipy.optimize import brentq

from skdp.accounting import Event, ObjectivePerturbationEvent, PureDPEvent
from skdp.accounting.numerics import gaussian_profile
from skdp.base.parameters import SmoothSolver
from skdp.mechanisms.additive import LARGEST_LENGTH
from skdp.mechanisms.contribution import ROUND_UP, Adjacency
from skdp.mechanisms.discrete import secret_on_grid
from skdp.mechanisms.release import Release
from skdp.models import LinearModel, require
from skdp.plans.output_perturbation import MinimiserPlan, Numerics, proved_tolerance, release_of
from skdp.solvers.objective import smallest_tolerance

# Cost of the final noise, as a share of the total mu. It adds to mu in squares for one output; for
# several it is paid by a slightly smaller epsilon, and has to be less. Where rounding errors govern
# the final noise a larger share makes less noise in all.
_APPROXIMATION, _APPROXIMATION_JOINT = 0.02, 0.002
_MORE, _MOST, _COSTLY = 4.0, 0.35, 1.1
# Final noise over that of the minimiser in a direction in which all records have full curvature.
FINAL_NOISE = 0.1
# A normal vector is longer than the root of its dimension by more than this with a probability
# below exp(-37^2 / 2) < 1e-297.
_EXCESS_LENGTH = 37.0
# Below, neither the noise nor the time to reach the tolerance would be of use.
_SMALLEST_PENALTY = 1e-10
_LARGEST_MULTIPLIER = 1e12
# Tries to move a root to the side that is allowed, before its bracket's end is taken.
_MOST_MENDS = 100


def curvature_ratio(model: LinearModel, penalty: float) -> float:
    """Return one record's largest curvature over the penalty on the sum: sup l'' |x|^2 / (n m)."""
    return model.part_loss.smoothness(model.row_norm) / (model.n_rows * penalty)


def smallest_penalty(
    model: LinearModel, epsilon: float, share: float = 1.0, rows: int | None = 1
) -> float:
    """Return the penalty on the mean loss at which determinants cost a share of epsilon."""
    allowed = share * epsilon / model.n_parts
    if rows is not None:
        allowed = rows * math.expm1(min(700.0, allowed / rows))
    return model.part_loss.smoothness(model.row_norm) / (model.n_rows * allowed)


@dataclass(frozen=True, kw_only=True)
class ObjectivePerturbationPlan(MinimiserPlan):
    """Everything that must agree in one fit by objective perturbation; see `build`."""

    tilt_sigma: float
    tilt_grid: float
    minimiser_event: ObjectivePerturbationEvent | PureDPEvent

    @classmethod
    def build(
        cls,
        model: LinearModel,
        *,
        penalty: float,
        adjacency: Adjacency,
        epsilon: float,
        delta: float,
        solver: SmoothSolver = "newton",
        max_iter: int = 100,
        numerics: Numerics = "float",
        rows_per_unit: int | None = 1,
        priced_penalty: float | None = None,
    ) -> ObjectivePerturbationPlan:
        """Derive both noises and the tolerance from public numbers.

        `rows_per_unit` bounds the rows of a protected unit, None for any number. The model's n then
        counts units, and a unit's loss is a convex combination of its rows' losses. The number of
        columns is not used: it would help little, and searches do not know it. The event may be
        that of a smaller penalty, which costs more.
        """
        facts = ("linear", "convex", "Lipschitz", "smooth", "of one score")
        require(model, "Objective perturbation", *facts)
        check_penalty(model, penalty)
        share = _APPROXIMATION if model.n_parts == 1 else _APPROXIMATION_JOINT
        rows = rows_per_unit
        priced = penalty if priced_penalty is None else min(penalty, priced_penalty)
        event = _calibrate(model, priced, adjacency, epsilon, delta, share, rows)
        if event is None:
            raise ValueError(too_small(model, priced, epsilon, rows))
        most = _COSTLY * event.noise_multiplier
        lipschitz = model.part_loss.lipschitz(model.row_norm)
        while True:
            tilt_sigma = event.noise_multiplier * lipschitz / model.n_rows
            tilt_grid = near = 0.0
            if numerics == "discrete":
                tilt_sigma, tilt_grid, near = secret_on_grid(tilt_sigma, model.n_weights)
            smoothness = model.part_loss.smoothness(model.row_norm) + penalty
            wanted = FINAL_NOISE * tilt_sigma / smoothness * event.approximation
            longest = tilt_sigma * (math.sqrt(model.n_weights_per_output) + _EXCESS_LENGTH) + near
            distance, tolerance = final_distance(model, penalty, longest, wanted, near)
            share *= _MORE
            if distance <= 1.01 * wanted or share > _MOST:
                break
            other = _calibrate(model, priced, adjacency, epsilon, delta, share, rows)
            if other is None or other.noise_multiplier > most:
                break
            event = other
        multiplier, noise = 1.0 / event.approximation, Release("weights", distance)
        if numerics == "discrete":
            noise = noise.on_grid(multiplier, model.n_weights)
        else:
            noise = replace(noise, scale=distance * multiplier * (1.0 + 1e-12))
        gap = math.sqrt(model.n_parts) * lipschitz * (2.0 if adjacency == "replace-one" else 1.0)
        return cls(
            model=model,
            penalty=penalty,
            adjacency=adjacency,
            epsilon=epsilon,
            delta=delta,
            solver=solver,
            max_iter=max_iter,
            tilt_sigma=tilt_sigma * model.n_rows,
            tolerance=tolerance,
            # What one record moves while the tilt stays the same: for replays, not for accounting.
            sensitivity=(gap / model.n_rows + 2.0 * tolerance) / penalty
            + noise.grid * math.sqrt(model.n_weights),
            sigma=noise.sigma,
            grid=noise.grid,
            tilt_grid=tilt_grid,
            minimiser_event=event,
        )

    @property
    def secret(self) -> Release:
        """The linear term, whose noise is never released on its own."""
        moved, scale = self.sensitivity * self.penalty, self.tilt_sigma / self.model.n_rows
        return release_of("objective", moved, scale, self.tilt_grid, self.delta)

    @property
    def own_event(self) -> Event:
        """One release of approximate minimisers."""
        return self.minimiser_event


def check_penalty(model: LinearModel, penalty: float) -> None:
    """Refuse a penalty that is too small to be useful."""
    if not penalty >= _SMALLEST_PENALTY:
        raise ValueError(
            f"alpha={_alpha(model, penalty):.6g} is too small: objective perturbation needs "
            f"alpha of at least {_alpha(model, _SMALLEST_PENALTY):.3g} (1e-10 times the square "
            "of data_norm), or alpha='auto'."
        )


def _alpha(model: LinearModel, penalty: float) -> float:
    """Return the user's alpha that equals a scaled penalty."""
    return penalty * model.units.data_norm**2


def least_noise_event(
    curvature: float,
    slope: str,
    adjacency: Adjacency,
    epsilon: float,
    delta: float,
    *,
    outputs: int = 1,
    approximation: float = 0.0,
    rows_per_unit: int | None = 1,
    opposite: float = 1.0,
) -> ObjectivePerturbationEvent | None:
    """Return the event with the least noise that meets a target; None if no noise does.

    `approximation` is the distance of approximate minima over the final noise, as a share of the
    total mu of the exact ones. The rest is as in `ObjectivePerturbationEvent`.
    """
    factor = math.sqrt(outputs) * (2.0 if adjacency == "replace-one" else 1.0)

    def event(logarithm: float) -> ObjectivePerturbationEvent:
        multiplier = math.exp(logarithm)
        spread = approximation * factor / multiplier
        return ObjectivePerturbationEvent(
            multiplier, curvature, slope, spread, outputs, rows_per_unit, opposite
        )

    def excess(logarithm: float) -> float:
        bound = event(logarithm).profile_bound(epsilon, adjacency)
        return math.log(max(bound, 1e-320) / delta)

    low = high = math.log(factor / gaussian_profile.mu(epsilon, delta))
    step = 0.02  # the logistic loss's own bound may hold for the least noise only
    while excess(high) > 0.0:
        low, high, step = high, high + step, min(1.0, 2.0 * step)
        if high > math.log(_LARGEST_MULTIPLIER):
            return None
    while excess(low) <= 0.0:  # without noise delta is near 1: at most some hundred steps
        low, high = low - 1.0, low
    root = brentq(excess, low, high, xtol=1e-11, rtol=1e-14)
    for _ in range(_MOST_MENDS):
        if excess(root) <= 0.0:
            return event(root)
        root = min(high, root + 1e-10)
    return event(high)


def _calibrate(
    model: LinearModel,
    penalty: float,
    adjacency: Adjacency,
    epsilon: float,
    delta: float,
    share: float,
    rows: int | None,
) -> ObjectivePerturbationEvent | None:
    """Return the event of a model with the least noise; None if the penalty allows none."""
    return least_noise_event(
        curvature_ratio(model, penalty),
        model.part_loss.slope_law,
        adjacency,
        epsilon,
        delta,
        outputs=model.n_parts,
        approximation=share,
        rows_per_unit=rows,
        opposite=model.part_loss.opposite,
    )


def too_small(
    model: LinearModel, penalty: float, epsilon: float, rows: int | None, share: float = 1.0
) -> str:
    """Report that determinants use up epsilon with this penalty, and give a sufficient one."""
    least = smallest_penalty(model, epsilon, share, rows)
    alpha, needed = _alpha(model, penalty), _alpha(model, least)
    whose = "record" if rows == 1 else "unit"
    return (
        f"alpha={alpha:.6g} is too small for epsilon={epsilon:g}: the curvature of one {whose}'s "
        f"loss may then use all of epsilon, whatever the noise. alpha must exceed {needed:.6g} "
        f"({needed / alpha:.3g} times the given value); ten times this bound costs little noise. "
        "alpha='auto' finds a value."
    )


def final_distance(
    model: LinearModel, penalty: float, largest_tilt: float, wanted: float, near: float = 0.0
) -> tuple[float, float]:
    """Return the distance that the final noise must hide, and the solver's tolerance in it.

    The distance is ``2 (tolerance + near) / penalty``. The `wanted` one keeps the final noise far
    below the minimiser's. It is larger where double precision could not guarantee the tolerance. No
    mean linear term is longer than `largest_tilt`. `near` is the distance of a linear term on a
    grid to a continuous one, 0 for continuous ones.
    """
    floor = smallest_tolerance(model.part_loss, model.row_norm, penalty, largest_tilt)
    floor *= math.sqrt(model.n_parts) * (1.0 + 1e-9)
    if near > 0.0:
        floor = max(floor, proved_tolerance(model, penalty, largest_tilt))
    covered = max(0.5 * penalty * wanted, (floor + near) * (1.0 + 1e-9))
    return 2.0 * covered / penalty, covered - near


# Of epsilon, for the final noise. Epsilons add up: no more than makes that noise small, and where
# rounding errors govern it what makes the least noise in all.
_SHARES = (0.005, 0.02, 0.08, 0.32)


def secret_scale(
    model: LinearModel, penalty: float, adjacency: Adjacency, epsilon: float, rows: int | None = 1
) -> float:
    """Return the least scale of the linear term on the sum of losses; infinite if there is none.

    A unit has at most this number of rows, or any number.
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

    The mean loss counts for a unit with several rows; None: their number has no bound.
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
