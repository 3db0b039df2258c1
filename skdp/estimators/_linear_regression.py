"""Linear regression by clipped gradient steps on preconditioned rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from skdp.choices import Adjacency
from skdp.estimators._base import PrivateModel, Table
from skdp.estimators._regressors import PrivateRegressorMixin, scale_of
from skdp.fitting import FitProgress
from skdp.mechanisms.random_stream import RandomStream
from skdp.models import ScaledUnits
from skdp.plans.defaults import PublicNumbers
from skdp.plans.linear_regression import RegressionPlan
from skdp.reporting import PrivacySpent


class PrivateLinearRegression(PrivateRegressorMixin, PrivateModel):
    r"""Linear least squares by noisy gradient steps; the regressor to begin with.

    One budget pays for noisy counts of the target in 32 bins, which say how far errors may reach;
    for noisy second moments of the rows, which even out badly scaled columns; and for 32 sums of
    gradients (10 where a table is very large), each row's cut to a norm that follows from these.
    There is nothing to tune.

    Parameters
    ----------
    epsilon : float, default=1.0
        Privacy parameter of one fit, positive.
    delta : float, default=1e-6
        Privacy parameter of one fit, in (0, 1); keep it well below 1/n.
    target_bounds : tuple of float, default=None
        Public bounds (low, high) of the target, which must be given. Targets beyond them are
        clipped, and so are predictions. The noise follows the spread of the targets, and wide
        bounds cost little unless they are many times as wide.
    adjacency : {"replace-one", "add-remove"}, default="replace-one"
        Neighbouring tables: one row replaced, or one added or removed. What is removed contributes
        nothing, while the public n stays the divisor.
    data_norm : float or None, default=None
        Public bound on the Euclidean norm of a row. Longer rows are scaled down to it. None takes
        1.0, and `fit` warns unless the rows come from a step of skdp that bounds them by that.
    fit_intercept : bool, default=True
        Whether to fit an intercept. Without one, targets are taken from `center_`.
    accountant : BudgetAccountant or None, default=None
        Budget to charge before rows are used. None charges that of the ``with`` block in which it
        is made or fitted; without one the fit is not counted, or refused where `set_config`
        requires a budget.
    random_state : int, RandomState or None, default=None
        None draws all randomness from a cryptographic stream keyed by the operating system. A seed
        is for tests: the guarantee does not hold against whoever knows it.
    verbose : int, default=0
        If positive, print what the fit will spend.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,)
        Private coefficients.
    intercept_ : float
        Private intercept.
    center_ : float
        Median of the targets by their noisy counts.
    scale_ : float
        About the standard deviation of the targets, by two quantiles of their noisy counts.
    privacy_spent_ : PrivacySpent
        The guarantee, its mechanism and its assumptions.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features,)
        Feature names, if `X` had any.

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

    intercept_: float  # type: ignore[assignment]

    # A record's part in each sum is the mean over its unit's rows, and no row is drawn.
    unit_weighting = "mean"
    alpha = 0.0  # few steps stand for a penalty
    intercept_scaling = "auto"  # preconditioning takes its value out
    _public = ("center_", "scale_")

    def __init__(
        self,
        epsilon: float = 1.0,
        delta: float = 1e-6,
        *,
        target_bounds: Sequence[float] | None = None,
        adjacency: Adjacency = "replace-one",
        data_norm: float | None = None,
        fit_intercept: bool = True,
        accountant: Any = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.target_bounds = target_bounds
        self.adjacency = adjacency
        self.data_norm = data_norm
        self.fit_intercept = fit_intercept
        self.accountant = accountant
        self.random_state = random_state
        self.verbose = verbose

    def _make_model(self, numbers: PublicNumbers) -> ScaledUnits:
        return ScaledUnits(self._row_bound)  # squares are planned without a loss

    def _build_plan(self, model: ScaledUnits, numbers: PublicNumbers) -> RegressionPlan:
        return RegressionPlan.build(numbers, model, self.fit_intercept)

    def _account(self, plan: RegressionPlan) -> PrivacySpent:
        return self._record(
            plan,
            plan.achieved_epsilon,
            "gdp",
            f"Gaussian noise on counts of targets in {plan.tuning.bins} bins, on second moments of "
            f"rows and on {plan.steps.releases} sums of clipped gradients, of deviation "
            f"{plan.counts.sigma:.6g}, {plan.moments.sigma:.6g} and, in units of the clip, "
            f"{plan.steps.sigma:.6g} (scaled units); together {plan.mu:.6g}-GDP (Dong, Roth & Su "
            "2022, Corollary 3.3)",
            "the clip follows from the noisy counts and moments; every iterate is paid for",
        )

    def _public_steps(self, plan: RegressionPlan) -> int:
        return plan.steps.releases

    def _carry_out(
        self, plan: Any, problems: list[Any], stream: RandomStream, progress: FitProgress, **_: Any
    ) -> np.ndarray:
        return plan.carry_out(problems, stream, progress.steps_done)

    def _publish(
        self, plan: RegressionPlan, table: Table, released: np.ndarray, spent: PrivacySpent
    ) -> None:
        super()._publish(plan, table, released, spent)
        middle, half = scale_of(self._fitted_bounds)
        *_, center, scale = released
        weights = half * released[:-2]
        self.coef_ = weights[: plan.n_features] / plan.units.data_norm
        self.center_, self.scale_ = float(middle + half * center), float(half * scale)
        self.intercept_ = self.center_ + float(weights[plan.n_features :].sum()) * plan.constant

    def _score_rows(self, X: Any) -> np.ndarray:
        return np.asarray(X @ self.coef_)[:, np.newaxis] + self.intercept_
