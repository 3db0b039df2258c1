"""Plans of repaired gradient perturbation (GRPUA), for all iterates or only the last one.

Noisy gradient descent on a convex, smooth objective with a constant step forgets the leaks of its
early steps (Bok, Su and Altschuler 2024). A penalty must contract distances or a projection must
bound them, and only the last iterate may leave the fit. The noise then stops growing with the
number of steps. Proofs: Theorems 4 and 6 of ``docs/proofs/hidden_state.md``, whose section 1 lists
the conditions.

Each step adds Gaussian noise to the sum of a batch's gradients. The public row bound limits their
norm, so that no gradient is clipped. The algorithm is from Ding et al., "Private empirical risk
minimization with analytic Gaussian mechanism for healthcare system", Algorithm 2. The noise printed
there is too small by a factor of 2n and is not offered; the sensitivity used here is Theorem 1 of
``docs/proofs/gradient_perturbation.md``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from skdp.accounting import calibrate_event, composition_noise_multiplier
from skdp.accounting.numerics.counts import largest_likely_batch
from skdp.base.parameters import NoiseCalibration
from skdp.mechanisms.contribution import ROUND_UP, ContributionBound
from skdp.models import Model, require
from skdp.plans.defaults import (
    DEFAULT_RADIUS,
    DescentDefaults,
    PublicNumbers,
    default_last_iterate_penalty,
    default_last_iterate_steps,
    default_lot_size,
    default_steps,
    noisy_descent_defaults,
)
from skdp.plans.noisy_gradient import (
    LARGEST_WEIGHTS,
    Averaging,
    GradientPerturbationChoices,
    LearningRateSchedule,
    Lots,
    NoisyGradientPlan,
    Sampling,
    clipped_contribution,
    contribution_in_ball,
)
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
        """Smoothness of the objective on a batch of the expected size."""
        return self.loss_smoothness + self.penalty

    @property
    def longest_step(self) -> float:
        """The longest step that expands no distance, 2/M for batches of a fixed size."""
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
        """The step 1/M, or a shorter one where Poisson batches may be large."""
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
    """Return the conditions of the theorem that the user's choices break, with remedies."""
    unmet = []
    if choices.step_sizes != "constant":
        unmet.append(
            f"step sizes must be constant, not learning_rate={choices.step_sizes!r}: with falling "
            "steps early iterates are not forgotten; use learning_rate='constant'"
        )
    if not isinstance(choices.average, bool):
        unmet.append(
            f"only the last iterate may be used, not average={choices.average!r}: use "
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
            f"steps must not increase the distance of iterates, learning_rate_init="
            f"{units.learning_rate(step):.6g} is too long: use at most "
            f"{units.learning_rate(longest) * _SIX_DIGITS_DOWN:.6g}{remedy}"
        )
    return unmet


def _refuse(unmet: list[str]) -> None:
    if unmet:
        raise ValueError(
            "calibration='hidden-state' pays for the last iterate only. Its proof has conditions "
            f"that this estimator does not meet: {'; '.join(unmet)}. Nothing was charged; "
            "calibration='pld' has no such conditions."
        )


def _radius(
    model: Model,
    choices: GradientPerturbationChoices,
    penalty: float,
    numbers: PublicNumbers,
) -> float:
    """Return the radius of the projection: by default, a ball that contains every minimiser."""
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


def lipschitz_contribution(model: Model) -> ContributionBound:
    """Return the bound on one record's gradient that the loss and the row norm give."""
    norm = model.lipschitz
    gap = min(model.gradient_gap(), 2.0 * norm)
    return ContributionBound(
        norm, gap, f"the loss is {norm:.6g}-Lipschitz on rows of the public norm (scaled units)"
    )


def build_gradient_perturbation(
    model: Model, numbers: PublicNumbers, choices: GradientPerturbationChoices
) -> NoisyGradientPlan:
    """Derive batches, steps, noise and step sizes from public numbers and the user's choices."""
    require(model, "Gradient perturbation")
    if choices.calibration == "hidden-state":
        size = choices.batch_size or numbers.n_rows
        lots = choose_lots(model, numbers, choices.sampling, size, choices.max_iter)
        return build_last_iterate(model, numbers, choices, lots)
    if choices.step_sizes != "constant":
        facts = ("convex", "smooth") if choices.step_sizes == "strongly-convex" else ("convex",)
        require(model, f"learning_rate={choices.step_sizes!r}", *facts, "Lipschitz")
    radius = _projection_radius(model, choices)
    bound, clip = _contribution(model, choices, radius)
    lots = choose_lots(model, numbers, choices.sampling, choices.batch_size, choices.max_iter)
    steps = choices.max_iter or default_steps(model, numbers, choices.batch_size)
    sigma = calibrate_sigma(lots, bound, numbers, steps, choices.calibration)
    ratio = lots.size * math.sqrt(steps) * bound.norm / sigma
    defaults = noisy_descent_defaults(
        model,
        steps=steps,
        signal_to_noise=ratio,
        bound=bound.norm,
        bounded=True,
        penalty=_penalty(choices, bound.norm / ratio),
    )
    if choices.step_sizes == "convex" and choices.radius is None:
        radius = math.sqrt(ratio)  # what the noise lets weights reach
    average_from, average_decay = choose_averaging(choices.average, defaults, steps)
    return NoisyGradientPlan(
        model=model,
        adjacency=numbers.adjacency,
        lots=lots,
        steps=steps,
        bound=bound,
        clip=clip,
        sigma=sigma,
        schedule=_schedule(model, choices, defaults, radius, sigma / lots.size),
        rule=UpdateRule(
            divisor=lots.size,
            penalty=defaults.penalty,
            radius=radius,
            # The convex schedules are those of plain descent.
            momentum=defaults.momentum if choices.step_sizes == "constant" else 0.0,
        ),
        average_from=average_from,
        average_decay=average_decay,
    )


def _contribution(
    model: Model, choices: GradientPerturbationChoices, ball: float
) -> tuple[ContributionBound, float]:
    """Return the bound on one record's gradient, and the clipping norm."""
    limit, in_ball = choices.max_grad_norm, "Lipschitz in a ball" in model.facts
    proved = model.zero_out_gap(ball) if in_ball else model.lipschitz
    if limit is not None and not limit > proved / model.heaviest:
        return clipped_contribution(model, limit), limit
    if in_ball and proved < math.inf:
        bound = contribution_in_ball(model, ball)
        # Nothing is longer but by rounding, for which clipping has a margin.
        weight = model.heaviest if model.heaviest == 1.0 else model.heaviest * ROUND_UP
        return bound, bound.norm / weight
    require(model, "Gradient perturbation", "Lipschitz")
    return lipschitz_contribution(model), math.inf


def calibrate_sigma(
    lots: Lots,
    bound: ContributionBound,
    numbers: PublicNumbers,
    steps: int,
    calibration: NoiseCalibration = "pld",
) -> float:
    """Return the least noise on the sum that keeps all steps within a target.

    "pld" composes privacy-loss distributions. "composition" uses the analytic Gaussian mechanism in
    each step, with amplification by subsampling and advanced composition.
    """
    target = numbers.target_epsilon, numbers.delta
    sensitivity = bound.sensitivity(numbers.adjacency)
    if calibration == "composition":
        # The multiplier is for steps of sensitivity 2; under Poisson sampling the amplification
        # lemma is the same for both relations (docs/proofs/gradient_perturbation.md, Theorem 4).
        multiplier = composition_noise_multiplier(*target, lots.sample_rate, steps)
        return sensitivity * multiplier / 2.0
    ratio = sensitivity / bound.norm
    return bound.norm * calibrate_event(
        lambda noise_multiplier: lots.run_event(noise_multiplier, ratio, steps),
        *target,
        adjacency=numbers.adjacency,
        accountant="pld",
    )


def choose_lots(
    model: Model,
    numbers: PublicNumbers,
    sampling: Sampling,
    batch_size: int | None,
    max_iter: int | None,
) -> Lots:
    """Return batches of a public size; all rows if the size is n."""
    size = default_lot_size(model, numbers, max_iter) if batch_size is None else batch_size
    if size >= numbers.n_rows:
        return Lots("full", numbers.n_rows, float(numbers.n_rows))
    if sampling == "allocation":  # the number of lots is whole
        return Lots(sampling, numbers.n_rows, numbers.n_rows / max(2, round(numbers.n_rows / size)))
    return Lots(sampling, numbers.n_rows, float(size))


def choose_averaging(
    average: Averaging, defaults: DescentDefaults, steps: int
) -> tuple[int, float]:
    """Return the first averaged iterate, and the rate at which older ones count less."""
    if average is False:
        return steps - 1, 1.0
    default = average is True or average == "ema"
    share = defaults.average_share if default else float(average)
    first = min(steps - 1, int(steps * (1.0 - share)))
    if average != "ema":
        return first, 1.0
    # The decay at which the mean age, and what averaging leaves of independent noise, are those of
    # the tail that True averages.
    tail = steps - first
    return 0, (tail - 1.0) / (tail + 1.0)


def refuse_divergence(
    model: Model, schedule: LearningRateSchedule, defaults: DescentDefaults
) -> None:
    """Refuse steps so long that the penalty would make weights grow without bound."""
    if schedule.initial * defaults.penalty > 2.0 * (1.0 + defaults.momentum):
        raise ValueError(
            f"learning_rate_init={model.units.learning_rate(schedule.initial):.6g} is too long "
            "for this penalty (alpha, or prior_precision): weights would grow without bound. Their "
            "product must be at most 2 (1 + momentum)."
        )


def _penalty(choices: GradientPerturbationChoices, strong: float) -> float | None:
    """Return the user's penalty, or the one on which step sizes depend; None for the default."""
    if choices.penalty is None:
        # Steps 1 / (alpha t) make the noise of the weights about 1 at this penalty.
        return strong if choices.step_sizes == "strongly-convex" else None
    if choices.penalty == 0.0 and choices.step_sizes == "strongly-convex":
        raise ValueError(
            "learning_rate='strongly-convex' takes steps 1/(alpha t) and needs alpha > 0, got "
            "alpha=0. Use learning_rate='convex'."
        )
    return choices.penalty


def _projection_radius(model: Model, choices: GradientPerturbationChoices) -> float:
    """Return the radius of the projection, which may be the only bound on gradients."""
    if choices.radius is not None:
        return min(choices.radius, LARGEST_WEIGHTS)
    needed = choices.max_grad_norm is None and "Lipschitz in a ball" in model.facts
    return DEFAULT_RADIUS if needed else LARGEST_WEIGHTS


def _schedule(
    model: Model,
    choices: GradientPerturbationChoices,
    defaults: DescentDefaults,
    radius: float,
    noise: float,
) -> LearningRateSchedule:
    """Return the step sizes; `noise` is the deviation of one entry of the mean gradient."""
    if choices.step_sizes == "constant":
        step = defaults.initial_step if choices.initial_step is None else choices.initial_step
        schedule = LearningRateSchedule("constant", step)
        refuse_divergence(model, schedule, defaults)
        return schedule
    if choices.initial_step is not None:
        raise ValueError(
            "learning_rate_init applies to learning_rate='constant' only: the convex schedules "
            "follow from alpha, radius and the noise."
        )
    if choices.step_sizes == "strongly-convex":
        longest = 1.0 / (model.smoothness + defaults.penalty)
        return LearningRateSchedule("inverse", 1.0 / defaults.penalty, cap=longest)
    gradient_norm = math.hypot(
        model.lipschitz + defaults.penalty * radius,
        math.sqrt(model.n_weights) * noise,
    )
    return LearningRateSchedule("inverse-sqrt", radius / gradient_norm)
