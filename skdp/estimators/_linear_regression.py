"""Linear regression by clipped gradient steps on preconditioned rows."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from skdp.estimators._base import PrivateModel
from skdp.estimators._regressors import PrivateRegressorMixin, scale_of
from skdp.fitting import FitProgress
from skdp.mechanisms.random_stream import RandomStream
from skdp.models import ScaledUnits
from skdp.parameters import released
from skdp.plans.defaults import PublicNumbers
from skdp.plans.linear_regression import RegressionPlan
from skdp.reporting.privacy_spent import PrivacySpent
from skdp.tables.records import Records


class PrivateLinearRegression(PrivateRegressorMixin, PrivateModel):
    r"""Linear least squares by noisy gradient steps; the regressor to begin with.

    One budget pays for noisy counts of the target in 32 bins, which say how far errors may reach;
    for noisy second moments of the rows, which even out badly scaled columns; and for 32 sums of
    gradients (10 where a table is very large), each row's cut to a norm that follows from these.
    There is nothing to tune.

    See Also
    --------
    PrivateRidge : Coefficients with intervals, and many models from one charge.

    Notes
    -----
    Gaussian mechanisms of parameters mu that see each other's outputs are together
    ``sqrt(sum of mu^2)``-GDP: counts take 13 % of the square, second moments a fifth of the rest,
    steps what is left. Statements and proofs: ``docs/proofs/linear_regression.md``.

    Steps of full size from zero, a mean of them in which late ones count most, and eigenvalues of
    the second moments raised by half of what noise alone would show: few steps do what a
    penalty would.
    Gradients that are cut make the loss one of Huber's, with a bend of its own for each row.

    References
    ----------
    Dong, Roth & Su (2022), "Gaussian differential privacy", Theorem 3.2 and Corollary 3.3; Balle &
    Wang (2018), Theorem 8; Abadi et al. (2016), for clipped gradients; Dwork, Talwar, Thakurta &
    Zhang (2014), "Analyze Gauss", Algorithm 1, for the moments.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp import PrivateLinearRegression
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-0.7, 0.7, size=(20_000, 2))
    >>> y = 3.0 + 2.0 * X[:, 0] + rng.normal(0.0, 0.3, 20_000)
    >>> model = PrivateLinearRegression(target_bounds=(0.0, 6.0), data_norm=1.0).fit(X, y)
    >>> bool(abs(model.coef_[0] - 2.0) < 0.2)
    True
    """

    _added_texts: ClassVar[dict[str, str]] = {
        "target_bounds": "The noise follows the spread of the targets, and wide bounds cost little "
        "unless "
        "they are many times as wide.",
        "fit_intercept": "Without one, targets are taken from `center_`.",
        "adjacency": "What is removed contributes nothing, while the public n stays the divisor.",
    }

    center_: float = released("float", "Median of the targets by their noisy counts.")
    scale_: float = released(
        "float",
        "About the standard deviation of the targets, by two quantiles of their noisy counts.",
    )

    # A record's part in each sum is the mean over its unit's rows, and no row is drawn.
    unit_weighting = "mean"
    alpha = 0.0  # few steps stand for a penalty
    intercept_scaling = "auto"  # preconditioning takes its value out
    _public = ("center_", "scale_")

    def _make_model(self, numbers: PublicNumbers) -> ScaledUnits:
        return ScaledUnits(self._row_bound)  # squares are planned without a loss

    def _build_plan(self, model: ScaledUnits, numbers: PublicNumbers) -> RegressionPlan:
        return RegressionPlan.build(numbers, model, self.fit_intercept)

    def _account(self, plan: RegressionPlan) -> PrivacySpent:
        return self._record(
            plan,
            plan.achieved_epsilon(float(self.epsilon), float(self.delta)),
            "gdp",
            f"Gaussian noise on counts of targets in {plan.tuning.bins} bins, on second moments of "
            f"rows and on {plan.steps.times} sums of clipped gradients, of deviation "
            f"{plan.counts.scale:.6g}, {plan.moments.scale:.6g} and, in units of the clip, "
            f"{plan.steps.scale:.6g} (scaled units); together {plan.mu:.6g}-GDP (Dong, Roth & Su "
            "2022, Corollary 3.3)",
            "the clip follows from the noisy counts and moments; every iterate is paid for",
        )

    def _public_steps(self, plan: RegressionPlan) -> int:
        return plan.steps.times

    def _carry_out(
        self, plan: Any, records: Records, stream: RandomStream, progress: FitProgress
    ) -> np.ndarray:
        return plan.carry_out(records.bind(plan), stream, progress.steps_done)

    def _publish(
        self, plan: RegressionPlan, records: Records, released: np.ndarray, spent: PrivacySpent
    ) -> None:
        super()._publish(plan, records, released, spent)
        middle, half = scale_of(self._fitted_bounds)
        *_, center, scale = released
        weights = half * released[:-2]
        self.coef_ = weights[: plan.n_features] / plan.units.data_norm
        self.center_, self.scale_ = float(middle + half * center), float(half * scale)
        self.intercept_ = self.center_ + float(weights[plan.n_features :].sum()) * plan.constant

    def _score_rows(self, X: Any) -> np.ndarray:
        return np.asarray(X @ self.coef_)[:, np.newaxis] + self.intercept_
