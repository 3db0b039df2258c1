"""Plan of gradient perturbation that pays for its last iterate alone.

Noisy gradient descent on a convex, smooth objective with a constant step forgets what its early
steps leaked, if a penalty contracts distances or a projection bounds them and nothing but the last
iterate leaves the fit (Bok, Su and Altschuler 2024). The noise then stops growing with the number
of steps. Proofs: Theorems 4 and 6 of ``docs/proofs/hidden_state.md``, whose section 1 lists the
conditions.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from skdp.accounting import calibrate_event
from skdp.accounting.numerics.poisson_batches import largest_likely_batch
from skdp.mechanisms.contribution import ContributionBound
from skdp.models import Model, require
from skdp.plans.choices import GradientPerturbationChoices
from skdp.plans.defaults import (
    PublicNumbers,
    default_last_iterate_penalty,
    default_last_iterate_steps,
)
from skdp.plans.noisy_gradient import (
    LARGEST_WEIGHTS,
    Lots,
    NoisyGradientPlan,
    contribution_in_ball,
)
from skdp.plans.schedules import LearningRateSchedule
from skdp.solvers import UpdateRule

# Share of delta that may go to Poisson lots too large for the step size.
_SHARE_OF_LARGE_LOTS = 0.01
_SIX_DIGITS_DOWN = 1.0 - 5e-6  # a number that is printed so is not above its limit


@dataclass(frozen=True)
class Descent:
    """A constant-step descent on a smooth convex objective."""

    loss_smoothness: float
    penalty: float
    lots: Lots
    steps: int
    delta: float

    @property
    def smoothness(self) -> float:
        """Smoothness of the objective on a lot of the expected size."""
        return self.loss_smoothness + self.penalty

    @property
    def longest_step(self) -> float:
        """The longest step that moves no two points apart, 2/M for lots of a fixed size."""
        # Poisson lots may be larger than their divisor: their step must not move points apart, and
        # must contract as much as the penalty can, on all but very rare lots.
        if self.lots.sampling != "poisson":
            return 2.0 / self.smoothness
        largest = largest_likely_batch(
            _SHARE_OF_LARGE_LOTS * self.delta, self.lots.n_rows, self.lots.sample_rate, self.steps
        )
        excess = max(1.0, largest / self.lots.size) * (1.0 + 1e-9)
        return 2.0 / (self.loss_smoothness * excess + 2.0 * self.penalty)

    @property
    def default_step(self) -> float:
        """The step 1/M, or a shorter one where Poisson lots may be large."""
        return min(1.0 / self.smoothness, self.longest_step)


def build_last_iterate(
    model: Model,
    numbers: PublicNumbers,
    choices: GradientPerturbationChoices,
    lots: Lots,
) -> NoisyGradientPlan:
    """Derive a plan that meets the conditions of the last-iterate theorem, or list what fails."""
    require(model, "calibration='hidden-state'", "convex", "Lipschitz", "smooth")
    penalty = choices.penalty
    if penalty is None:
        penalty = default_last_iterate_penalty(model, numbers)
    radius = _radius(model, choices, penalty, numbers)
    bound = contribution_in_ball(model, radius)
    smoothness = model.smoothness
    steps = choices.max_iter or default_last_iterate_steps(
        model,
        numbers,
        choices.batch_size,
        _relaxation(model, numbers, lots, bound, penalty, radius),
    )
    descent = Descent(smoothness, penalty, lots, steps, numbers.delta)
    _refuse(unmet_conditions(model, choices, descent))
    step = descent.default_step if choices.initial_step is None else choices.initial_step
    plan = NoisyGradientPlan(
        model=model,
        adjacency=numbers.adjacency,
        lots=lots,
        steps=steps,
        bound=bound,
        clip=math.inf,
        sigma=bound.norm,
        schedule=LearningRateSchedule("constant", step),
        rule=UpdateRule(divisor=lots.size, penalty=penalty, radius=radius),
        average_from=steps - 1,
        last_iterate_only=True,
    )
    multiplier = calibrate_event(
        lambda multiplier: replace(plan, sigma=multiplier * bound.norm).event,
        numbers.target_epsilon,
        numbers.delta,
        adjacency=numbers.adjacency,
        accountant=plan.accountant,
    )
    return replace(plan, sigma=multiplier * bound.norm)


def unmet_conditions(
    model: Model, choices: GradientPerturbationChoices, descent: Descent
) -> list[str]:
    """Say which conditions of the theorem the user's choices break, and how to meet them."""
    unmet = []
    if choices.step_sizes != "constant":
        unmet.append(
            f"step sizes must be constant, not learning_rate={choices.step_sizes!r}: with falling "
            "steps early iterates are not forgotten; take learning_rate='constant'"
        )
    if not isinstance(choices.average, bool):
        unmet.append(
            f"no iterate but the last may be used, not average={choices.average!r}: take "
            "average=False, or leave average out"
        )
    if choices.max_grad_norm is not None:
        unmet.append("no gradient may be clipped: leave max_grad_norm out")
    longest, step = descent.longest_step, choices.initial_step
    if step is not None and step > longest:
        units = model.units
        poisson = descent.lots.sampling == "poisson"
        remedy = ", or sampling='uniform', which allows longer ones" if poisson else ""
        unmet.append(
            f"steps must not drive iterates apart, learning_rate_init="
            f"{units.learning_rate(step):.6g} is too long: take at most "
            f"{units.learning_rate(longest) * _SIX_DIGITS_DOWN:.6g}{remedy}"
        )
    return unmet


def _refuse(unmet: list[str]) -> None:
    if unmet:
        raise ValueError(
            "calibration='hidden-state' pays for the last iterate alone, which is proved under "
            f"conditions that this estimator breaks: {'; '.join(unmet)}. Nothing was charged; "
            "calibration='pld' has no such conditions."
        )


def _radius(
    model: Model,
    choices: GradientPerturbationChoices,
    penalty: float,
    numbers: PublicNumbers,
) -> float:
    """Return the radius of the projection: by default a ball that holds every minimiser."""
    if choices.radius is not None:
        return min(choices.radius, LARGEST_WEIGHTS)
    if penalty > 0.0:
        return min(model.minimiser_norm(penalty), LARGEST_WEIGHTS)
    return math.sqrt(numbers.signal_to_noise)


def _relaxation(
    model: Model,
    numbers: PublicNumbers,
    lots: Lots,
    bound: ContributionBound,
    penalty: float,
    radius: float,
) -> float:
    """Return the number of steps of size 1/M after which early ones are forgotten."""
    smoothness = model.smoothness + penalty
    by_penalty = smoothness / penalty if penalty > 0.0 else math.inf
    moved = bound.sensitivity(numbers.adjacency) / (smoothness * lots.size)
    return min(by_penalty, 2.0 * radius * math.sqrt(model.n_parts) / moved)
