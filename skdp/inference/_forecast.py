"""Expected widths of intervals from public numbers, before a look is paid for.

Section 9 of ``docs/proofs/inference.md`` derives them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit, logit, ndtri
from sklearn.base import clone, is_classifier

from skdp.accounting.numerics import gaussian_profile
from skdp.base.scikit_learn import is_private, last_and_meaning, last_step, responds
from skdp.inference._models import LinearPart, usual_norm
from skdp.inference._release import LookPlan, constant_value

Array = NDArray[np.float64]

# Public rows from the schema, with a fixed seed.
_ROWS, _SEED = 4000, 0
_NODES = 64
# Directions of less than this share of the largest second moment have no information.
_LEAST_MOMENT = 1e-10


def widths_of(
    model: Any,
    plan: LookPlan,
    n: int,
    curvature: float,
    marginals: Mapping[str, Any] | None,
    prior_sd: float,
    epsilon: float,
) -> dict[str, NDArray[Any]]:
    """Return expected widths of the effects of a schema's columns."""
    linear, schema = last_step(model), model.schema if responds(model, "schema") else None
    if schema is None or not hasattr(linear, "_row_bound") or not is_classifier(linear):
        raise TypeError(
            "widths are expected for schema.pipeline(linear private classifier). For a regressor, "
            "evaluate a model of a simulated table of the same size."
        )
    before = [step for _, step in model.steps[:-1]]
    if any(map(is_private, before)):
        raise TypeError("widths are not expected behind steps that learn privately.")
    Z = schema.sample_public(_ROWS, marginals=marginals, random_state=_SEED)
    for step in before:
        Z = clone(step).fit_transform(Z)
    Z, meaning = np.asarray(Z, dtype=np.float64), last_and_meaning(model)[1]
    if meaning is None:
        raise TypeError("the steps before the model give its columns no meaning of the schema.")
    part = LinearPart(
        model=model,
        steps=(),
        linear=linear,
        meaning=meaning,
        classes=np.arange(2),
        coef=np.zeros(Z.shape[1]),
        intercept=0.0,
        data_norm=usual_norm(meaning, float(linear._row_bound), epsilon),
        names=np.arange(Z.shape[1]),
        constant=constant_value(len(meaning.parts), bool(linear.fit_intercept)),
    )
    effects = [own for _, own in meaning.effects({}, range(Z.shape[1]))[0] if not own.is_reference]
    functions = np.array([effect.weights for effect in effects])
    # The last column is the constant one, if there is any.
    rows = np.column_stack([Z, np.full(len(Z), part.data_norm * part.constant)]) / part.norm
    functions = np.column_stack([functions, np.zeros(len(functions))])
    rows, functions = rows[:, : part.theta.size] @ part.basis, functions[:, : part.theta.size]
    lengths = np.linalg.norm(Z, axis=1, keepdims=True)
    cut = rows * np.minimum(1.0, part.data_norm / np.maximum(lengths, 1e-300))
    fit_mu = gaussian_profile.mu(float(linear.epsilon), max(float(linear.delta), 1e-12))
    widths = expected_widths(
        *(cut.T @ cut / len(rows), n, curvature),
        own_moments=rows.T @ rows / len(rows),
        score_noise=plan.sums.sigma,
        matrix_noise=plan.sums.sigma / plan.factors[0],
        fit_noise=plan.sums.l2 / fit_mu,
        prior_sd=part.prior(prior_sd),
        contrasts=functions @ part.contrasts,
    )
    names = np.array([(effect.name, effect.step) for effect in effects], dtype=object).T
    return {"name": names[0], "step": names[1], **widths}


def mean_curvature(prevalence: float, roc_auc: float) -> float:
    """Return the mean of p (1 - p), for log odds that are normal in each class (binormal)."""
    variance = 2.0 * ndtri(roc_auc) ** 2
    nodes, weights = np.polynomial.hermite_e.hermegauss(_NODES)
    total = 0.0
    for share, side in ((prevalence, 0.5), (1.0 - prevalence, -0.5)):
        chance = expit(logit(prevalence) + side * variance + np.sqrt(variance) * nodes)
        total += share * float(weights @ (chance * (1.0 - chance))) / np.sqrt(2.0 * np.pi)
    return total


def expected_widths(
    second_moments: Array,
    n_records: float,
    curvature: float,
    *,
    score_noise: float,
    matrix_noise: float,
    fit_noise: float,
    prior_sd: ArrayLike,
    contrasts: Array,
    own_moments: Any = None,
) -> dict[str, Array]:
    """Return widths of 95 % intervals from means of x x^T and of p (1 - p), in scaled units.

    Noise is that of a `Reading`, `fit_noise` that of a sum of scores. `own_moments` are those
    without privacy, if they are others: longer rows count less in the look.
    """
    information = n_records * curvature * second_moments
    identity = np.eye(len(information))
    variances = np.broadcast_to(prior_sd, len(information)) ** 2.0

    def posterior(noise: Array) -> Any:
        precision = information @ np.linalg.solve(noise, information)
        return np.linalg.inv(precision + np.diag(1.0 / variances))

    distance = posterior(information + max(fit_noise, 1e-12) ** 2 * identity)
    noise = information + max(score_noise, 1e-12) ** 2 * identity
    noise += 0.5 * matrix_noise**2 * (np.trace(distance) * identity + distance)
    variance = ((contrasts @ posterior(noise)) * contrasts).sum(axis=1)

    own = second_moments if own_moments is None else own_moments
    values, basis = np.linalg.eigh(n_records * curvature * own)
    known, squares = values > _LEAST_MOMENT * values[-1], (contrasts @ basis) ** 2
    lost = squares[:, ~known].sum(axis=1) > _LEAST_MOMENT * squares.sum(axis=1)
    alone = np.where(lost, np.inf, (squares[:, known] / values[known]).sum(axis=1))
    return {
        "width": 2.0 * ndtri(0.975) * np.sqrt(variance),
        "width_ratio": np.sqrt(variance / alone),
        "prior_share": variance / (contrasts**2 @ variances),
    }
