"""Compiled solvers of regularised empirical risk, without privacy or budgets.

Names here are not covered by ``docs/policy.md``: they may change in any version.
"""

from skdp.solvers.gradients import sum_expected_gradients, sum_gradients
from skdp.solvers.layer_sums import Layers, LayerSums, wide_sums
from skdp.solvers.minimisers import gradient_descent, minimise
from skdp.solvers.objective import RegularisedObjective
from skdp.solvers.rows import Rows
from skdp.solvers.steps import StepState, UpdateRule, apply_update, run_steps

__all__ = [
    "LayerSums",
    "Layers",
    "RegularisedObjective",
    "Rows",
    "StepState",
    "UpdateRule",
    "apply_update",
    "gradient_descent",
    "minimise",
    "run_steps",
    "sum_expected_gradients",
    "sum_gradients",
    "wide_sums",
]
