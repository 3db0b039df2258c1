"""Carry out a plan on rows: solver, sampler and noise meet only here."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import singledispatch
from numbers import Integral
from typing import Any

import numpy as np

from skdp.mechanisms.additive import AdditiveMechanism
from skdp.mechanisms.random_stream import RandomStream
from skdp.mechanisms.trace import active_trace
from skdp.models import LinearModel, LinearProblem, Model, Problem
from skdp.plans.noisy_gradient import NoisyGradientPlan, Sampler, pack_sum, unpack_sum
from skdp.plans.objective_perturbation import ObjectivePerturbationPlan
from skdp.plans.output_perturbation import OutputPerturbationPlan
from skdp.solvers import StepState, apply_update, gradient_descent, minimise
from skdp.tables.units import LotsOfUnits, Units

# Rows and noise values drawn ahead for the compiled loop; they bound its extra memory.
_INDICES_AHEAD = 2**18
_NOISE_AHEAD = 2**18

StepObserver = Callable[[int], None]

# A block of rows of a network, on which the margins for rounding of its sums rest.
_SMALLEST_PIECE = 288


def _check(model: Model, problems: Sequence[Any]) -> None:
    """Refuse more problems, or heavier rows, than the noise was calibrated for."""
    if len(problems) != model.n_parts:
        raise ValueError(
            f"{model.name} was bound to {len(problems)} problems, and has n_parts={model.n_parts}."
        )
    for rows in (problem.rows for problem in problems):
        weights = None if rows is None else rows.row_weight
        if weights is not None and weights.size and not weights.max() <= model.heaviest:
            raise ValueError(
                f"{model.name}: a row weighs more than the public heaviest={model.heaviest:g}."
            )


def _check_rows(model: LinearModel, problems: Sequence[LinearProblem], grid: float = 0.0) -> None:
    """Refuse a mean over another number of rows than the sensitivity assumes.

    With noise on a grid, the bound on rounding errors also depends on this number.
    """
    for rows in (problem.rows for problem in problems):
        if rows.n_units != model.n_rows or (grid > 0.0 and rows.n_rows > model.most_rows):
            raise ValueError(
                f"{model.name} was bound to a table that does not have n_rows={model.n_rows}."
            )


def _release(
    mechanism: AdditiveMechanism, model: Model, value: np.ndarray, *, beside: int = 0
) -> np.ndarray:
    """Return the value with noise; refuse values that are not finite, which noise cannot hide."""
    if value.size != model.n_weights + beside or not np.isfinite(value).all():
        raise ValueError(
            f"{model.name}: the value must have n_weights={model.n_weights} finite numbers."
        )
    return mechanism.release(value)


@singledispatch
def carry_out(
    plan: Any,
    problems: Sequence[Any],
    stream: RandomStream,
    on_step: StepObserver | None = None,
    **lots: Units,
) -> np.ndarray:
    """Return the released weights of a plan; `on_step` receives the number of finished steps."""
    raise TypeError(f"No function is registered that carries out a {type(plan).__name__}.")


@carry_out.register(OutputPerturbationPlan)
def carry_out_output_perturbation(
    plan: OutputPerturbationPlan,
    problems: Sequence[LinearProblem],
    stream: RandomStream,
    on_step: StepObserver | None = None,
) -> np.ndarray:
    """Minimise each problem and release all weights together with one noise vector."""
    _check(plan.model, problems)
    _check_rows(plan.model, problems, plan.grid)
    # Gradient norms of the parts add in squares: the joint tolerance is shared out evenly.
    tolerance = plan.tolerance / math.sqrt(plan.model.n_parts)
    parts = []
    for problem in problems:
        objective = problem.objective(plan.penalty)
        if plan.solver == "gd":
            parts.append(gradient_descent(objective, plan.max_iter, plan.step_size))
        else:
            parts.append(minimise(objective, tolerance, method=plan.solver, max_iter=plan.max_iter))
    noise = plan.release.mechanism(stream.spawn("noise"))
    return _release(noise, plan.model, np.concatenate(parts))


@carry_out.register(ObjectivePerturbationPlan)
def carry_out_objective_perturbation(
    plan: ObjectivePerturbationPlan,
    problems: Sequence[LinearProblem],
    stream: RandomStream,
    on_step: StepObserver | None = None,
) -> np.ndarray:
    """Minimise each randomly tilted problem and release all weights with a little noise."""
    model = plan.model
    _check(model, problems)
    _check_rows(model, problems, plan.grid)
    noise = plan.release.mechanism(stream.spawn("noise"))
    secret = plan.secret.mechanism(stream.spawn("objective"))
    tilts = secret.noise((model.n_parts, model.n_weights_per_output))
    tolerance = plan.tolerance / math.sqrt(model.n_parts)
    parts = []
    for problem, tilt in zip(problems, tilts, strict=True):
        objective = problem.objective(plan.penalty, tilt)
        parts.append(minimise(objective, tolerance, method=plan.solver, max_iter=plan.max_iter))
    return _release(noise, model, np.concatenate(parts))


@carry_out.register(NoisyGradientPlan)
def carry_out_noisy_gradient(
    plan: NoisyGradientPlan,
    problems: Sequence[Problem],
    stream: RandomStream,
    on_step: StepObserver | None = None,
    units: Units | None = None,
) -> np.ndarray:
    """Run all steps of a noisy-gradient plan and return the averaged weights.

    With `units`, batches are drawn from units and contain all rows of each.
    """
    _check(plan.model, problems)
    sampler: Any = plan.lots.sampler(stream.spawn("lots"))
    if sampler is not None and units is not None:
        sampler = LotsOfUnits(sampler, units)
    mechanism = plan.release.mechanism(stream.spawn("noise"))
    states = [StepState.zeros(plan.model.n_weights // len(problems)) for _ in problems]
    loops = [problem.run_steps for problem in problems]
    batch = plan.execution.physical_batch_size
    plain = not plan.adaptive and (batch is None or (units is None and batch >= plan.lots.n_rows))
    if sampler is not None and plain and None not in loops and active_trace() is None:
        _run_at_once(plan, loops, states, sampler, mechanism, on_step)
    else:
        _run_stepwise(plan, problems, states, sampler, mechanism, on_step)
    return np.concatenate([state.average_iterates() for state in states])


def _run_at_once(
    plan: NoisyGradientPlan,
    loops: Sequence[Any],
    states: Sequence[StepState],
    sampler: Sampler | LotsOfUnits,
    mechanism: AdditiveMechanism,
    on_step: StepObserver | None,
) -> None:
    """Draw batches and noise for many steps and run them in one call per problem."""
    n_weights = plan.model.n_weights
    ahead = min(_INDICES_AHEAD / max(plan.lots.size, 1.0), _NOISE_AHEAD / n_weights)
    # A Poisson sampler walks over steps * n_rows trials, whose count must fit 64 bits.
    ahead = min(ahead, 2.0**52 / plan.lots.n_rows)
    if isinstance(sampler, LotsOfUnits):  # rows of about as many units as there are, at most
        ahead = min(ahead, 1.0 / plan.lots.sample_rate)
    for first in range(0, plan.steps, max(1, int(ahead))):
        count = min(max(1, int(ahead)), plan.steps - first)
        indices, offsets = sampler.draw(count)
        noise = mechanism.noise((count, len(loops), n_weights // len(loops)))
        for part, (run_steps, state) in enumerate(zip(loops, states, strict=True)):
            run_steps(
                state,
                plan.rule,
                indices,
                offsets,
                np.ascontiguousarray(noise[:, part]),
                plan.schedule.rates(first, count),
                plan.averaging_weights(first, count),
                clip=_clip_of_part(plan),
            )
        if on_step is not None:
            on_step(first + count)


def _run_stepwise(
    plan: NoisyGradientPlan,
    problems: Sequence[Problem],
    states: Sequence[StepState],
    sampler: Sampler | LotsOfUnits | None,
    mechanism: AdditiveMechanism,
    on_step: StepObserver | None,
) -> None:
    """Run step by step, releasing each noisy sum through the mechanism."""
    total = np.empty((len(problems), plan.model.n_weights // len(problems)))
    clip = _clip_of_part(plan)
    public_gradient = plan.model.public_gradient
    for step in range(plan.steps):
        lot = None if sampler is None else sampler.draw(1)[0]
        total[:], n_cut = 0.0, 0
        for part, (problem, state) in enumerate(zip(problems, states, strict=True)):
            weights = state.weights.copy()  # nothing but noisy sums may change the state
            for piece in _pieces(lot, plan.execution.physical_batch_size):
                within = problem.sum_clipped(weights, piece, clip, total[part])
                if plan.adaptive:
                    n_cut += _count_cut(plan, piece, within)
        if plan.adaptive:
            vector = pack_sum(total, n_cut, clip)
            noisy = _release(mechanism, plan.model, vector, beside=1)
            released, clip = unpack_sum(noisy, clip, plan.clip, plan.lots.size)
        else:
            released = _release(mechanism, plan.model, total)
        rate = plan.schedule.rates(step, 1)[0]
        weight = plan.averaging_weights(step, 1)[0]
        for state, gradient_sum in zip(states, released.reshape(total.shape), strict=True):
            if public_gradient is not None:
                gradient_sum = gradient_sum + plan.rule.divisor * public_gradient(state.weights)
            apply_update(state, plan.rule, gradient_sum, rate, weight)
        if on_step is not None:
            on_step(step + 1)


def _clip_of_part(plan: NoisyGradientPlan) -> float:
    """Return the clipping norm of each part of a record's gradient; squared norms add up."""
    return plan.clip / math.sqrt(plan.model.n_parts)


def _count_cut(plan: NoisyGradientPlan, piece: np.ndarray | None, within: int | None) -> int:
    """Return the number of clipped rows of a chunk, from the model's count of the others."""
    n_rows = plan.lots.n_rows if piece is None else piece.size
    if not isinstance(within, Integral) or not 0 <= within <= n_rows:
        raise ValueError(
            f"{plan.model.name}: sum_clipped must return the number of rows that it did not clip."
        )
    return n_rows - int(within)


def _pieces(lot: np.ndarray | None, physical_batch_size: int | None) -> list[np.ndarray | None]:
    """Cut a batch into chunks; None stands for all rows, read in place."""
    if lot is None:
        return [None]
    size = lot.size if physical_batch_size is None else physical_batch_size
    size = max(size, _SMALLEST_PIECE)
    return [lot[k : k + size] for k in range(0, lot.size, size)] or [lot]
