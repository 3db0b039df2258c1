"""Plan of differentially private stochastic gradient descent (Abadi et al. 2016).

Each record's gradient is clipped, in closed form, to a public norm. Batches are Poisson samples, or
each record falls into one random batch per epoch. Noise is added to the clipped sum, which is
divided by the public expected batch size. Proofs: Theorems 4 and 5 of ``docs/proofs/dpsgd.md``.
"""

from __future__ import annotations

import math

import numpy as np

from skdp.mechanisms.contribution import ContributionBound
from skdp.models import Model, require
from skdp.plans.defaults import (
    DescentDefaults,
    PublicNumbers,
    default_adam_step,
    default_clip,
    default_steps,
    noisy_descent_defaults,
)
from skdp.plans.gradient_perturbation import (
    calibrate_sigma,
    choose_averaging,
    choose_lots,
    refuse_divergence,
)
from skdp.plans.noisy_gradient import (
    LARGEST_WEIGHTS,
    DPSGDChoices,
    LearningRateSchedule,
    NoisyGradientPlan,
    adaptive_contribution,
    clipped_contribution,
)
from skdp.solvers import UpdateRule


def build_dpsgd(model: Model, numbers: PublicNumbers, choices: DPSGDChoices) -> NoisyGradientPlan:
    """Derive batches, steps, noise and step sizes from public numbers and the user's choices."""
    require(model, "DP-SGD")
    lots = choose_lots(model, numbers, choices.sampling, choices.batch_size, choices.max_iter)
    steps = choices.max_iter or default_steps(model, numbers, choices.batch_size)
    steps = -(-steps // lots.epoch) * lots.epoch
    clipped = ContributionBound.from_clipping
    contribution = adaptive_contribution if choices.adaptive else clipped
    multiplier = choices.noise_multiplier or calibrate_sigma(
        lots, contribution(1.0), numbers, steps
    )
    ratio = lots.size * math.sqrt(steps) / multiplier
    clip = default_clip(model, ratio) if choices.max_grad_norm is None else choices.max_grad_norm
    mean_rate = float(np.mean(_schedule(choices, steps, 1.0).rates(0, steps)))
    defaults = noisy_descent_defaults(
        model,
        steps=steps,
        signal_to_noise=ratio,
        bound=model.heaviest * clip,
        momentum=choices.momentum,
        penalty=choices.penalty,
        mean_rate=mean_rate,
    )
    adam = choices.solver == "adam"
    step = default_adam_step(model, mean_rate) if adam else defaults.initial_step
    schedule = _schedule(choices, steps, choices.initial_step or step)
    if choices.solver == "sgd":
        refuse_divergence(model, schedule, defaults)
    average_from, average_decay = choose_averaging(choices.average, defaults, steps)
    bound = contribution(clip) if choices.adaptive else clipped_contribution(model, clip)
    return NoisyGradientPlan(
        model=model,
        adjacency=numbers.adjacency,
        lots=lots,
        steps=steps,
        bound=bound,
        clip=clip,
        sigma=multiplier * bound.norm,
        schedule=schedule,
        rule=_rule(choices, lots.size, defaults),
        average_from=average_from,
        average_decay=average_decay,
        adaptive=choices.adaptive,
    )


def _schedule(choices: DPSGDChoices, steps: int, initial: float) -> LearningRateSchedule:
    if choices.learning_rate == "constant":
        return LearningRateSchedule("constant", initial)
    return LearningRateSchedule(
        choices.learning_rate,
        initial,
        final=initial * choices.final_share,
        decay_steps=max(1, round(choices.decay_share * steps)),
    )


def _rule(choices: DPSGDChoices, lot_size: float, defaults: DescentDefaults) -> UpdateRule:
    if choices.solver == "adam":
        return UpdateRule.adam(
            divisor=lot_size,
            penalty=defaults.penalty,
            radius=LARGEST_WEIGHTS,
            beta1=choices.beta_1,
            beta2=choices.beta_2,
        )
    return UpdateRule(
        divisor=lot_size,
        penalty=defaults.penalty,
        radius=LARGEST_WEIGHTS,
        momentum=defaults.momentum,
    )
