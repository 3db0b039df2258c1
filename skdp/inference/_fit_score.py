"""The score that a fit by objective perturbation has released already, as a reading of the look.

Conditions are those of section 6 of ``docs/proofs/inference.md``. They concern the quality of
intervals only: the reading is a function of released weights and public numbers.
"""

from __future__ import annotations

import math
from typing import Any

from skdp.estimators import ObjectivePerturbationLogisticRegression
from skdp.inference._stages import Reading
from skdp.plans.defaults import INTERCEPT_VALUE
from skdp.plans.objective_perturbation import ObjectivePerturbationPlan

# Largest curvature of the logistic loss of a row of norm 1.
_CURVATURE = 0.25


def released_score(linear: Any) -> bool:
    """Return whether the weights of a fit give its score: nothing was clipped or changed."""
    return (
        type(linear) is ObjectivePerturbationLogisticRegression
        and linear.max_grad_norm is None
        and linear.class_weight is None
        and linear.calibration_ == (0.0, 1.0)
        and linear.unit_weighting == "mean"
        and linear.max_unit_rows is None
        and linear.delta > 0.0
        and linear.fit_intercept
        and linear.numerics == "float"
    )


def constant_of_fit(linear: Any) -> float:
    """Return the value of the constant column of a fit, over its bound on rows."""
    value = linear._choose("intercept_scaling", lambda given: given / linear._row_bound)
    return float(INTERCEPT_VALUE if value is None else value)


def reading_of_fit(part: Any, shape: tuple[int, int], by_unit: bool) -> Reading | None:
    """Return the reading for a table of the fit's rows; None if its plan was another one."""
    linear, spent = part.linear, part.linear.privacy_spent_
    try:
        plan: ObjectivePerturbationPlan = linear._plan_shape(shape, 2, by_unit)
    except ValueError:  # of parameters that were changed after the fit
        return None
    unit = "group" if by_unit else "row"
    same = plan.event == spent.event and plan.adjacency == spent.adjacency and unit == spent.unit
    scale = plan.model.units.data_norm, plan.model.intercept_value
    if not same or scale != (part.data_norm, part.constant):
        return None
    # Rows of the fit have the same direction, and are longer by this.
    length = part.norm / part.data_norm
    penalty = plan.model.n_rows * plan.penalty
    curvature = _CURVATURE * plan.model.n_rows * plan.model.row_norm**2
    noise = math.hypot(plan.tilt_sigma, (curvature + penalty) * plan.sigma)
    weights = part.theta / length
    return part.reduced(Reading(part.theta, penalty * weights / length, noise / length))
