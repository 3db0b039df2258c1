"""Plan of private variational inference, and the effect of its noise on the posterior.

It is DP-SGD on gradients of the evidence bound (after Jalko, Dikmen and Honkela 2017). Everything
except the plan is post-processing. Proof: Theorem 1 of ``docs/proofs/variational.md``.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from scipy.special import softmax

from skdp.models import LinearModel, VariationalModel
from skdp.plans.defaults import PublicNumbers
from skdp.plans.dpsgd import build_dpsgd
from skdp.plans.noisy_gradient import DPSGDChoices, NoisyGradientPlan

# Precision of the prior of scaled weights while training: rows have norm 1, so that the prior
# deviation of their scores is 3. Afterwards the released means may choose from other variances.
_PRIOR_PRECISION = 0.1
_PRIOR_VARIANCES = np.geomspace(1e-2, 1e2, 25)[:, None, None]
# Of an intercept, in units of scores.
_INTERCEPT_DEVIATION = 1.0
# Norm to which gradients are clipped, as a share of the longest where the signal-to-noise ratio is
# one, and how it grows. Shorter ones have less noise, and fit scores too large for their labels.
_CLIP_SHARE, _CLIP_GROWTH = 0.21, 0.137
# Relaxation times of curvatures in a whole fit.
_RELAXATIONS = 8.0


def build_variational(
    linear: LinearModel,
    numbers: PublicNumbers,
    choices: DPSGDChoices,
    prior_precision: float | None,
) -> NoisyGradientPlan:
    """Derive a plan of DP-SGD from public numbers, the user's choices and the prior."""
    precision = _PRIOR_PRECISION if prior_precision is None else prior_precision
    model: Any = VariationalModel(linear, precision, pace=1.0)
    penalty = precision / numbers.n_rows
    share = min(1.0, _CLIP_SHARE * numbers.signal_to_noise**_CLIP_GROWTH)
    clip = choices.max_grad_norm or share * model.lipschitz
    plan = build_dpsgd(model, numbers, replace(choices, penalty=penalty, max_grad_norm=clip))
    travel = plan.steps * plan.schedule.initial / (1.0 - plan.rule.momentum)
    # The penalty, which is on all weights, is a part of the pace.
    return replace(plan, model=replace(model, pace=max(min(_RELAXATIONS / travel, 1e50), penalty)))


def account_for_noise(
    plan: NoisyGradientPlan, means: np.ndarray, curvatures: np.ndarray, learns_prior: bool
) -> tuple[np.ndarray, np.ndarray]:
    """Return means and deviations of weights, given the released means and all of their noise.

    The optimum is a share of the likelihood's maximum, which is normal around the weights with
    precision n c. The released mean is a share of the optimum, with noise.
    """
    model: Any = plan.model
    curvatures = steady_curvatures(plan, curvatures)
    information = plan.lots.n_rows * curvatures
    # Steps of a user's size may diverge on these curvatures: then the release says nothing.
    with np.errstate(over="ignore", invalid="ignore"):
        through, noise = pass_through(plan, curvatures)
        gain = through * information / (information + model.prior_precision)
        noise = noise + gain * through / (information + model.prior_precision)
        known, towards = np.nan_to_num(
            [gain**2 / noise, gain * means / noise], posinf=0.0, neginf=0.0
        )
    if not learns_prior:
        posterior = model.prior_precision + known
        return towards / posterior, posterior**-0.5
    # One variance for all weights but the intercept's, averaged over by its evidence.
    variances = _PRIOR_VARIANCES * np.ones_like(means)
    if model.linear.intercept_value > 0.0:
        variances[:, :, -1] = (_INTERCEPT_DEVIATION / model.linear.intercept_value) ** 2
    posterior = 1.0 / variances + known
    evidence = 0.5 * (towards**2 / posterior - np.log1p(variances * known)).sum(axis=(1, 2))
    share = softmax(evidence)[:, None, None]
    mean = np.sum(share * towards / posterior, axis=0)
    between = (towards / posterior - mean) ** 2
    return mean, np.sqrt(np.sum(share * (1.0 / posterior + between), axis=0))


def pass_through(plan: NoisyGradientPlan, curvatures: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return how the released average depends on the optimum, and the variance of its noise.

    To first order, a mean gradient is ``(c + penalty)(weight - optimum)`` and steps are linear.
    Both results follow from the derivatives of the average, taken backwards.
    """
    slope, divisor = curvatures + plan.rule.penalty, plan.rule.divisor
    # Gradients of the rows of a lot vary as their curvature does where the model holds.
    sampling = (1.0 - divisor / plan.lots.n_rows) * curvatures / divisor
    rates = plan.schedule.rates(0, plan.steps)
    shares = plan.averaging_weights(0, plan.steps)
    shares /= shares.sum()
    of_weight, of_velocity, total, squares = np.zeros((4, *curvatures.shape))
    for rate, share in zip(rates[::-1], shares[::-1], strict=True):
        of_weight = of_weight + share
        of_gradient = of_velocity - rate * of_weight
        of_weight = of_weight + slope * of_gradient
        of_velocity = plan.rule.momentum * of_gradient
        total = total - of_gradient
        squares = squares + of_gradient**2
    return slope * total, ((plan.sigma / divisor) ** 2 + sampling) * squares


def steady_curvatures(plan: NoisyGradientPlan, curvatures: np.ndarray) -> np.ndarray:
    """Shrink the columns' curvatures towards their mean by the noise's share of their spread."""
    model: Any = plan.model
    columns = curvatures[:, : model.n_features]
    pace = np.array([[model.pace - plan.rule.penalty]])
    noise = pass_through(plan, pace)[1] * model.curvature_unit**2
    centre, spread = columns.mean(axis=1, keepdims=True), columns.var(axis=1, keepdims=True)
    keep = np.maximum(0.0, spread - noise) / np.maximum(spread, np.finfo(float).tiny)
    return np.hstack([centre + keep * (columns - centre), curvatures[:, model.n_features :]])
