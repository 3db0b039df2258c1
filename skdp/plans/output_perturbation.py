"""Plan of output perturbation (OPERA): minimise, then add noise once.

Proofs: Theorems 1 to 8 of ``docs/proofs/output_perturbation.md``. The method is from Ding et al.,
"Private empirical risk minimization with analytic Gaussian mechanism for healthcare system". The
sensitivities here are smaller than those of the paper, with new proofs.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction

from skdp.accounting import Event
from skdp.accounting.numerics.arithmetic import sum_of_powers
from skdp.base.parameters import Numerics, Solver
from skdp.mechanisms.analytic_gaussian import analytic_gaussian_sigma
from skdp.mechanisms.contribution import ROUND_UP, Adjacency
from skdp.mechanisms.release import Law, Release
from skdp.models import LinearModel, require
from skdp.plans.noisy_gradient import contribution_in_ball
from skdp.plans.protocol import FitPlan, OnAllRows
from skdp.solvers.gradients import certified_tolerance, gradient_rounding
from skdp.solvers.objective import smallest_tolerance

# The tolerance may cost this share of the noise; see minimiser_sensitivity.
_TOLERANCE_SHARE = 1e-3
# Below, neither the noise nor the time to reach the tolerance would be of use.
_SMALLEST_PENALTY = 1e-10
# Rounding of ``weights - step * gradient``, relative to the norms of both.
_STEP_ROUNDING = 2.0**-50


def default_tolerance(model: LinearModel, penalty: float) -> float:
    """Return the gradient norm to solve to, from public numbers only.

    It is ``1e-3 L / n``, which raises the sensitivity by about 0.1 %, or the least norm that double
    precision can guarantee. For huge n or tiny penalties the sensitivity grows accordingly.
    """
    lipschitz = model.lipschitz
    part_floor = smallest_tolerance(model.part_loss, model.row_norm, penalty)
    floor = math.sqrt(model.n_parts) * part_floor * (1.0 + 1e-9)
    return max(_TOLERANCE_SHARE * lipschitz / model.n_rows, floor)


def proved_tolerance(model: LinearModel, penalty: float, tilt_norm: float = 0.0) -> float:
    """Return the least norm of the joint gradient that the solver proves, rounding included."""
    shape = (model.most_rows, model.n_weights_per_output)
    least = certified_tolerance(model.part_loss, model.row_norm, penalty, shape, tilt_norm)
    if least == math.inf:
        raise ValueError(
            "alpha is too small for numerics='discrete' with this many columns: rounding errors "
            "leave nothing to be proved. Give a larger alpha, or numerics='float'."
        )
    return math.sqrt(model.n_parts) * least * (1.0 + 1e-9)


def minimiser_sensitivity(
    model: LinearModel, penalty: float, tolerance: float, adjacency: Adjacency
) -> float:
    """Return the L2 sensitivity ``(G + 2 n tau) / (n m)`` of an approximate minimiser.

    The solver reaches a gradient of norm ``tau`` on *every* data set. G bounds the change of the
    sum of gradients by one record. Add-remove keeps the public divisor n.
    """
    reach = model.loss.minimiser_norm_bound(model.row_norm, penalty) + tolerance / penalty
    gap = contribution_in_ball(model, reach).sensitivity(adjacency)
    return (gap + 2.0 * model.n_rows * tolerance) / (model.n_rows * penalty) * ROUND_UP


def descent_sensitivity(
    model: LinearModel,
    penalty: float,
    steps: int,
    step_size: float,
    adjacency: Adjacency,
    numerics: Numerics = "float",
) -> float:
    """Return the L2 sensitivity of T steps of gradient descent from zero.

    It is ``(eta G / n) (1 + c + ... + c**(T - 1))`` with the contraction factor ``c = max(|1 - eta
    m|, |1 - eta M|)``. The step eta is in ``(0, 2 / M]``, and m may be zero. With discrete
    numerics, the rounding errors of each step count like a moved record.
    """
    smoothness = model.smoothness + penalty
    if not 0.0 < step_size <= 2.0 / smoothness:
        raise ValueError(
            f"learning_rate_init={model.units.learning_rate(step_size):.6g} is too long for "
            f"solver='gd': it must lie in (0, {model.units.learning_rate(2.0 / smoothness):.6g}], "
            "twice the inverse smoothness."
        )
    # What a step contracts by, 1 - c, is exact: it may be far below the rounding of c itself.
    eta, strong = Fraction(step_size), Fraction(penalty)
    steepest = Fraction(model.smoothness) + strong
    shrink = float(min(eta * strong, 2 - eta * steepest))
    walked = step_size * sum_of_powers(shrink, steps)
    error = _step_error(model, penalty, step_size, walked) if numerics == "discrete" else 0.0
    reach = _descent_reach(model, penalty, steps, step_size) + walked * error
    gap = contribution_in_ball(model, reach).sensitivity(adjacency)
    return (gap / model.n_rows + 2.0 * error) * walked * ROUND_UP


def _step_error(model: LinearModel, penalty: float, step_size: float, walked: float) -> float:
    """Bound a step's rounding errors over its size; `walked` is the sum of contracted steps."""
    shape = (model.most_rows, model.n_weights_per_output)
    rounding = gradient_rounding(model.part_loss, model.row_norm, penalty, shape)
    fixed = math.sqrt(model.n_parts) * rounding.fixed + _STEP_ROUNDING * model.lipschitz
    share = walked * (rounding.slope + _STEP_ROUNDING / step_size)
    if share > 0.01:
        raise ValueError(
            "numerics='discrete' cannot bound the rounding errors of this number of steps. Use a "
            "smaller max_iter, a larger alpha, or numerics='float'."
        )
    return 1.1 * (fixed + share * (model.lipschitz + fixed))


def _descent_reach(model: LinearModel, penalty: float, steps: int, step_size: float) -> float:
    """Bound the norm of the iterates at which gradients are evaluated (all but the last)."""
    lipschitz = model.lipschitz
    walked = step_size * lipschitz * (steps - 1)
    if penalty > 0.0 and step_size * penalty <= 1.0:
        return min(walked, lipschitz / penalty)
    if penalty == 0.0:
        return walked
    return math.inf


@dataclass(frozen=True, kw_only=True)
class MinimiserPlan(FitPlan, OnAllRows):
    """Base of plans that release a minimiser, exact or approximate, with noise."""

    model: LinearModel
    penalty: float
    adjacency: Adjacency
    epsilon: float
    delta: float
    solver: Solver
    max_iter: int
    tolerance: float
    sensitivity: float
    sigma: float
    grid: float

    @property
    def release(self) -> Release:
        """All weights with their noise, and the sensitivity that audits check."""
        return release_of("weights", self.sensitivity, self.sigma, self.grid, self.delta)


@dataclass(frozen=True, kw_only=True)
class OutputPerturbationPlan(MinimiserPlan):
    """Everything that must agree in one fit by output perturbation; see `build`."""

    step_size: float

    @classmethod
    def build(
        cls,
        model: LinearModel,
        *,
        penalty: float,
        adjacency: Adjacency,
        epsilon: float,
        delta: float,
        solver: Solver,
        max_iter: int,
        step_size: float | None = None,
        numerics: Numerics = "float",
    ) -> OutputPerturbationPlan:
        """Derive sensitivity and noise from public numbers; without a delta see `Release`.

        `max_iter` is the number T of steps of "gd", the only solver that takes a penalty of zero.
        The others reach a minimiser to a fixed tolerance, and it limits their fast phase only.
        """
        require(model, "Output perturbation", "linear", "convex", "Lipschitz", "smooth")
        tolerance = 0.0
        step = step_size or 1.0 / (model.smoothness + penalty)
        if solver == "gd":
            sensitivity = descent_sensitivity(model, penalty, max_iter, step, adjacency, numerics)
        elif penalty >= _SMALLEST_PENALTY:
            tolerance = default_tolerance(model, penalty)
            if numerics == "discrete":
                tolerance = max(tolerance, proved_tolerance(model, penalty))
            sensitivity = minimiser_sensitivity(model, penalty, tolerance, adjacency)
        else:
            raise ValueError(
                f"alpha below {_SMALLEST_PENALTY:g} times the square of data_norm gives no useful "
                "bound on the minimiser's sensitivity. Use a larger alpha, or solver='gd', "
                "whose T-step bound holds even at alpha=0."
            )
        weights, discrete = Release("weights", sensitivity), numerics == "discrete"
        if delta == 0.0:
            weights = weights.without_delta(epsilon, model.n_weights, discrete)
        elif discrete:
            weights = weights.on_grid(analytic_gaussian_sigma(epsilon, delta), model.n_weights)
        else:
            weights = replace(weights, scale=analytic_gaussian_sigma(epsilon, delta, sensitivity))
        return cls(
            model=model,
            penalty=penalty,
            adjacency=adjacency,
            epsilon=epsilon,
            delta=delta,
            solver=solver,
            max_iter=max_iter,
            tolerance=tolerance,
            step_size=step,
            sensitivity=weights.sensitivity,
            sigma=weights.sigma,
            grid=weights.grid,
        )

    @property
    def own_event(self) -> Event:
        """One release with Gaussian noise, or without a delta with norm-exponential noise."""
        return self.release.event


def release_of(label: str, sensitivity: float, sigma: float, grid: float, delta: float) -> Release:
    """Return a vector with Gaussian noise, without a delta with that of `without_delta`."""
    law: Law = "gaussian" if delta > 0.0 else "laplace"
    return Release(label, sensitivity, sensitivity, law=law, scale=sigma, grid=grid)
