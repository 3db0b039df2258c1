"""Expected widths of intervals for a schema, before any private row is used."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone, is_classifier

from skdp.accounting.numerics import gaussian_profile
from skdp.base.scikit_learn import is_private, last_and_meaning
from skdp.inference._forecast import expected_widths, mean_curvature
from skdp.inference._models import LinearPart, usual_norm
from skdp.inference._release import LookPlan, constant_value, norm_of_rows

# Public rows from the schema, with a fixed seed.
_ROWS, _SEED = 4000, 0


def widths_of(
    model: Any,
    plan: LookPlan,
    n: int,
    curvature: tuple[float, float],
    marginals: Mapping[str, Any] | None,
    prior_sd: float,
    epsilon: float,
) -> dict[str, NDArray[Any]]:
    """Return expected widths of the effects of a schema's columns; see `expected_widths` there."""
    part, Z = _public_part(model, marginals, epsilon)
    rows = Z / part.norm
    if part.constant > 0.0:
        rows = np.column_stack(
            [rows, np.full(len(rows), part.constant / norm_of_rows(part.constant))]
        )
    rows = rows @ part.basis
    lengths = np.linalg.norm(Z, axis=1, keepdims=True)
    cut = rows * np.minimum(1.0, part.data_norm / np.maximum(lengths, 1e-300))
    found, *_ = part.meaning.effects({}, range(part.coef.size))
    functions = np.array([effect.weights for _, effect in found])
    if part.constant > 0.0:
        functions = np.column_stack([functions, np.zeros(len(functions))])
    told = [effect for _, effect in found if not effect.is_reference]
    kept = [place for place, (_, effect) in enumerate(found) if not effect.is_reference]
    linear, noise = part.linear, plan.sums.sigma
    fit_mu = gaussian_profile.mu(float(linear.epsilon), max(float(linear.delta), 1e-12))
    expected = expected_widths(
        *(cut.T @ cut / len(rows), n, mean_curvature(*curvature)),
        own_moments=rows.T @ rows / len(rows),
        score_noise=noise,
        matrix_noise=noise / plan.factors[0],
        fit_noise=plan.sums.l2 / fit_mu,
        prior_sd=part.prior(prior_sd),
        contrasts=(functions @ part.contrasts)[kept],
    )
    return {
        "name": np.array([effect.name for effect in told], dtype=object),
        "step": np.array([effect.step for effect in told], dtype=object),
        "width": expected.width,
        "width_ratio": expected.ratio,
        "prior_share": expected.prior_share,
    }


def _public_part(
    model: Any, marginals: Mapping[str, Any] | None, epsilon: float
) -> tuple[LinearPart, Any]:
    """Return the scale of a schema's pipeline, fitted or not, and encoded public rows."""
    schema = getattr(model, "schema", None)
    steps = [step for _, step in getattr(model, "steps", ())]
    if schema is None or not hasattr(steps[-1], "_row_bound") or not is_classifier(steps[-1]):
        raise TypeError(
            "widths are expected for schema.pipeline(linear private classifier). For a regressor, "
            "evaluate a model of a simulated table of the same size."
        )
    if any(map(is_private, steps[:-1])):
        raise TypeError("widths are not expected behind steps that learn privately.")
    Z = schema.sample_public(_ROWS, marginals=marginals, random_state=_SEED)
    for step in steps[:-1]:
        Z = clone(step).fit_transform(Z)
    linear, meaning = steps[-1], last_and_meaning(model)[1]
    if meaning is None:
        raise TypeError("the steps before the model give its columns no meaning of the schema.")
    count = Z.shape[1]
    part = LinearPart(
        model=model,
        steps=(),
        linear=linear,
        meaning=meaning,
        classes=np.arange(2),
        coef=np.zeros(count),
        intercept=0.0,
        data_norm=usual_norm(meaning, float(linear._row_bound), epsilon),
        names=np.arange(count).astype(object),
        constant=constant_value(len(meaning.parts), bool(linear.fit_intercept)),
    )
    return part, np.asarray(Z, dtype=np.float64)
