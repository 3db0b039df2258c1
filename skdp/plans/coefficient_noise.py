"""Public law of the privacy noise in the coefficients that a plan releases.

Statements and proofs are in ``docs/inspection.md``. Nothing here depends on a row.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from functools import cache, singledispatch
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import chdtri, erfc, gammaincinv, ndtr, ndtri

from skdp.base.parameters import cached_property
from skdp.mechanisms.contribution import ROUND_UP
from skdp.mechanisms.discrete import distance_on_grid
from skdp.models import LinearModel
from skdp.plans.noisy_gradient import NoisyGradientPlan
from skdp.plans.objective_perturbation import ObjectivePerturbationPlan
from skdp.plans.output_perturbation import OutputPerturbationPlan

Array = NDArray[np.float64]


@dataclass(frozen=True)
class CoefficientNoise:
    """Noise of a score, the product of a row and coefficients, as a multiple of the row's norm.

    Rows include the intercept's column, with value `constant`. Multiplying by a public or released
    factor multiplies the noise of the coefficients.
    """

    about: str
    deviation: float = math.inf  # of each coefficient, or a bound on it; inf: nothing is known
    exact: bool = False  # whether it is the deviation itself, and the noise around no noise
    law: Literal["normal", "norm-exponential", "unimodal"] = "normal"  # or with lighter tails
    n_weights: int = 1
    offset: float = 0.0  # bound on what the law leaves out
    constant: float = 0.0
    afterwards: str = ""  # what was done to the coefficients since, for the statement

    def __mul__(self, factor: float) -> CoefficientNoise:
        size = abs(float(factor))
        return replace(self, deviation=size * self.deviation, offset=size * self.offset)

    def shape(self, rows: Array, places: slice, constant: float = 0.0) -> Array:
        """Return rows of selected features whose norms `half_width` takes.

        `constant` is the multiple of the intercept in their scores.
        """
        column = np.full((len(rows), 1), constant * self.constant)
        return np.hstack([rows, column]) if constant else rows

    @property
    def known(self) -> bool:
        """Whether the law of the noise is known."""
        return math.isfinite(self.deviation)

    def half_width(self, row_norm: Any, level: float) -> Any:
        """Return the half-width that holds a row's score noise with this probability, or None."""
        if not self.known:
            return None
        size = _quantile(self.law, self.n_weights, float(level))
        return row_norm * (size * self.deviation + self.offset)

    def half_width_of_root_mean_square(self, squares: Array, level: float) -> float | None:
        """Return the half-width for the root mean square of several scores.

        The mean square is a quadratic form of the coefficients with these eigenvalues.
        """
        if not self.known:
            return None
        mean, top = math.sqrt(squares.sum()), math.sqrt(squares.max(initial=0.0))
        if self.law == "normal" and self.exact:
            rank = np.count_nonzero(squares > 1e-12 * squares.max(initial=0.0))
            chi = math.sqrt(chdtri(max(1, rank), 1.0 - level))
            spread = min(mean + top * max(0.0, float(ndtri(level))), top * chi * (1.0 + 1e-6))
        elif self.law == "normal":
            spread = mean + top * math.sqrt(-2.0 * math.log1p(-level))
        else:
            spread = mean / math.sqrt(1.0 - level)
        return spread * self.deviation + top * self.offset


@dataclass(frozen=True)
class JointNoise(CoefficientNoise):
    """Noise of coefficients computed from noisy second moments, to first order."""

    solution: Any = field(default=None, kw_only=True)
    back: Any = field(default=None, kw_only=True)  # from its weights to coefficients and intercept

    @cached_property
    def root(self) -> Array:
        """Weights of independent numbers in each coefficient, with the intercept last."""
        values, vectors = np.linalg.eigh(self.solution.noise_covariance)
        found: Array = self.back @ (vectors * np.sqrt(values.clip(0.0)))
        return found

    @property
    def deviations(self) -> Array:
        """Deviation in each coefficient and the intercept; NaN for those that were left out."""
        found = np.linalg.norm(self.root, axis=1)
        return np.where(found > 0.0, found, np.nan)

    def shape(self, rows: Array, places: slice, constant: float = 0.0) -> Array:
        """Return the weights of those numbers in the scores of rows."""
        return rows @ self.root[:-1][places] + constant * self.root[-1]


@cache
def _quantile(law: str, n_weights: int, level: float) -> float:
    """Return the quantile of the absolute value of this law with standard deviation 1."""
    tail = 1.0 - level
    if law == "unimodal":  # Gauss's inequality
        return 2.0 / (3.0 * math.sqrt(tail)) if tail <= 1 / 3 else math.sqrt(3.0) * level
    if law == "normal":
        return float(-ndtri(tail / 2.0))
    # Normal, of a variance that is a Gamma variable: the mean of normal tails, over its quantiles.
    shape, points = (n_weights + 1.0) / 2.0, np.linspace(-8.0, 8.0, 401)
    shares = np.exp(-(points**2) / 2.0) / np.exp(-(points**2) / 2.0).sum()
    scales = np.sqrt(shape / 2.0 / gammaincinv(shape, ndtr(points)))

    def excess(size: float) -> float:
        return float(shares @ erfc(size * scales)) - tail

    return float(brentq(excess, 0.0, 2.0 / math.sqrt(tail), xtol=1e-9)) * (1.0 + 1e-6)


@singledispatch
def coefficient_noise(plan: Any) -> CoefficientNoise:
    """Return the law of the noise in the coefficients, in the user's units."""
    return CoefficientNoise("the effect of its noise on the scores depends on private rows")


def _in_user_units(model: LinearModel, noise: CoefficientNoise) -> CoefficientNoise:
    scale = model.units.data_norm
    constant = model.intercept_value * scale
    return replace(noise * (ROUND_UP / scale), constant=constant, n_weights=model.n_weights)


@coefficient_noise.register
def _of_output_perturbation(plan: OutputPerturbationPlan) -> CoefficientNoise:
    count, deviation = plan.model.n_weights, plan.sigma
    law: Literal["normal", "norm-exponential", "unimodal"] = "normal"
    if plan.delta == 0.0 and plan.grid > 0.0:  # Laplace, and uniform between the grid's points
        law, deviation = "unimodal", math.hypot(math.sqrt(2.0) * plan.sigma, plan.grid)
    elif plan.delta == 0.0:
        law, deviation = "norm-exponential", math.sqrt(count + 1.0) * plan.sigma
    noise = CoefficientNoise(
        "output perturbation: the noise that was added, whose law is public",
        deviation,
        exact=True,
        law=law,
        offset=distance_on_grid(plan.grid, count),
    )
    return _in_user_units(plan.model, noise)


@coefficient_noise.register
def _of_objective_perturbation(plan: ObjectivePerturbationPlan) -> CoefficientNoise:
    if plan.delta == 0.0:
        return CoefficientNoise(
            "objective perturbation with delta=0: all proved bounds on the effect of its noise are "
            "far too wide"
        )
    count, penalty = plan.model.n_weights, plan.penalty
    near = plan.tolerance + distance_on_grid(plan.tilt_grid, count)
    noise = CoefficientNoise(
        "objective perturbation: an upper bound, reached where rows have no curvature, on the "
        "deviation from the median over the noise",
        math.hypot(plan.tilt_sigma / plan.model.n_rows / penalty, plan.sigma),
        offset=near / penalty + distance_on_grid(plan.grid, count),
    )
    return _in_user_units(plan.model, noise)


@coefficient_noise.register
def _of_noisy_gradients(plan: NoisyGradientPlan) -> CoefficientNoise:
    model = plan.model
    if not isinstance(model, LinearModel):
        return CoefficientNoise("noisy gradients of a model that is not linear")
    if reason := _no_contraction(plan, model):
        return CoefficientNoise(f"noisy gradients, {reason}")
    noise = CoefficientNoise(
        "noisy gradients: an upper bound, reached where rows have no curvature, on the deviation "
        "from the median over the noise, given the batches",
        plan.sigma / plan.rule.divisor * _reach_of_steps(plan),
    )
    return _in_user_units(model, noise)


def _no_contraction(plan: NoisyGradientPlan, model: LinearModel) -> str:
    """Return why steps may expand distances, so that noise could grow; empty if they cannot."""
    if not {"convex", "smooth"} <= model.facts:
        return "whose loss is not convex and smooth"
    if plan.clip < math.inf and model.part_loss.n_outputs > 1:
        return "which are clipped and then no gradients of a convex loss"
    if plan.rule.code != 0.0 or plan.rule.momentum > 0.0:
        return "whose momentum, or adaptive step size, may let noise grow where rows have curvature"
    if plan.lots.sampling not in ("full", "uniform") or plan.adaptive:
        return "whose batches have no public size: steps may be too long for some of them"
    longest = plan.schedule.rates(0, plan.steps).max() * (model.smoothness + plan.rule.penalty)
    return "whose steps are too long for a bound" if longest > 2.0 else ""


def _reach_of_steps(plan: NoisyGradientPlan) -> float:
    """Bound the deviation of the released average for noise of deviation 1 in each step."""
    rates, penalty = plan.schedule.rates(0, plan.steps), plan.rule.penalty
    strong, steep = rates * penalty, rates * (plan.model.smoothness + penalty)
    factors = np.maximum(np.abs(1.0 - strong), np.abs(1.0 - steep))
    weights = plan.averaging_weights(0, plan.steps)
    reach, squares = 0.0, 0.0
    for step in reversed(range(plan.steps)):
        following = factors[step + 1] * reach if step + 1 < plan.steps else 0.0
        reach = weights[step] / weights.sum() + following
        squares += (rates[step] * reach) ** 2
    return math.sqrt(squares)
