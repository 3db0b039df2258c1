"""`PrivateInference`: intervals of the coefficients of a public linear model, from private rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Literal

import numpy as np
from sklearn.base import clone

from skdp.accounting.privacy_spent import REAL_NUMBERS, PrivacySpent
from skdp.base.parameters import check_choice, check_integer, check_real, parameter
from skdp.exceptions import RowsChangedError
from skdp.fitting import FitProgress
from skdp.inference._classes import ClassResults
from skdp.inference._forecast import mean_curvature, widths_of
from skdp.inference._models import LinearPart, read_linear, reading_of_fit, released_score
from skdp.inference._regression import (
    ErrorPlan,
    RegressionPart,
    RegressionResult,
    is_regressor,
    read_regression,
)
from skdp.inference._release import Covariance, Look, LookPlan, refuse_large
from skdp.inference._result import InferenceResult
from skdp.inference._share import JointCharge
from skdp.mechanisms.random_stream import is_seeded, resolve_random_state
from skdp.metrics.base import EvaluatesModel, Judged, ask_each_row, is_known, is_of_fit
from skdp.running import around_runs
from skdp.solvers import Rows
from skdp.tables.records import Records, fit_context
from skdp.tables.units import about_units

_WITHHELD = (
    "the steps before the linear model failed on the rows, or did not return finite numbers in the "
    "columns of the model. Their message is withheld, because it may quote private values, and the "
    "charge stays: try the pipeline on made-up rows first."
)


class PrivateInference(EvaluatesModel):
    """Odds ratios of a public linear model with intervals, from private rows and one charge.

    Scores and information of the rows are released with Gaussian noise, at the coefficients of the
    model and at corrected ones; estimates, intervals and p-values follow. The model may be fitted
    privately on the same rows, for a separate charge or by `fit_evaluate`, or come from elsewhere.
    For a regressor, residuals are clipped, and coefficients are in units of the target.

    See Also
    --------
    PublicWeights : Coefficients that were published elsewhere.

    Notes
    -----
    The information adds nothing to the sensitivity, which is that of the scores: 1 per record, or 2
    under replace-one, and 1.06 or 2.004 for a regressor. A record is a row, or the mean of the rows
    of an id in ``groups=``. ``docs/proofs/inference.md`` has proofs, ``docs/odds_ratios.md`` limits
    of intervals.

    The effect of public class weights on the intercept is taken back first. Objective perturbation
    without `max_grad_norm` and recalibration has released its score with its weights, which is used
    as well on the table of the fit.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp import ObjectivePerturbationLogisticRegression
    >>> from skdp.inference import PrivateInference
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-0.7, 0.7, size=(20_000, 2))
    >>> y = (rng.random(20_000) < 1 / (1 + np.exp(-2 * X[:, 0]))).astype(int)
    >>> model = ObjectivePerturbationLogisticRegression(epsilon=1.0, data_norm=1.0).fit(X, y)
    >>> result = PrivateInference(epsilon=1.0).evaluate(model, X, y)
    >>> bool(result.table()["p_value"][0] < 0.05), result.privacy_spent_.epsilon
    (True, 1.0)
    """

    covariance: Covariance = parameter(
        '{"model", "sandwich"}',
        """Variance of the scores. ``"model"`` uses the information, an upper bound for means over
        the rows of an id. ``"sandwich"`` also releases the squared scores, with 5 % more noise in
        all: intervals stay valid if the model is wrong, and are narrower for ids with several
        rows.""",
        default="model",
    )
    prior_sd: float = parameter(
        "float",
        """Standard deviation of the normal prior of each coefficient per half the range of its
        column, and of the intercept, in log odds or half ranges of the target. Declare it before
        the look. Ranges follow from the schema; without one, columns share `data_norm` equally.""",
        default=2.5,
    )
    data_norm: float | None = parameter(
        "float or None",
        """Public bound on the Euclidean norm of a row of the linear model. Longer rows count less.
        None uses that of the model, or for a classifier behind a schema that of usual rows.""",
        default=None,
    )
    reference: Any = parameter(
        "label or None",
        """Class that others are compared with, for models of more than two classes. ``"rest"``
        compares each class with all others. Of two classes, it can only be the first.""",
        default=None,
    )
    target_bounds: Any = parameter(
        "tuple of float or None",
        """Public bounds (low, high) of the target of regressors, which scale the prior. None uses
        those of the model.""",
        default=None,
    )
    error_sd: float | None = parameter(
        "float or None",
        """Rough standard deviation of the errors of a regressor, public, in units of the target.
        Residuals count up to 1.5 times this size. None uses the ``residual_std_`` or ``scale_``
        that the model has released.""",
        default=None,
    )
    share: Literal["auto"] | float = parameter(
        'float or "auto"',
        """Share of the squared mu of (epsilon, delta) for the fit of `fit_evaluate`, in (0, 1).
        ``"auto"`` is 0.4 for objective perturbation and 0.3 for other fits.""",
        default="auto",
    )

    _assumptions = (
        "the model is public: its fit was charged for the private rows that it learned from",
        "the columns of a row behind the steps of the model are a function only of that row",
        "the label set, the bound on rows, the prior and all parameters are public",
    )
    _released = ("noisy sums of scores and of information", "all intervals computed from them")
    _arithmetic = REAL_NUMBERS
    _needs_new_rows = False
    n_bins: Any = "auto"  # not a parameter
    _joint: JointCharge | None = None  # with the fit of the model

    def evaluate(self, model: Any, X: Any, y: Any = None, *, groups: Any = None) -> Any:
        """Charge the budget, read the rows, and release all intervals.

        Parameters
        ----------
        model : fitted classifier or regressor, pipeline or PublicWeights
            Public linear model. Steps before it must treat each row by itself.
        X : array, frame or sparse matrix of shape (n_samples, n_features)
            Private rows in the format of the model, or the complete table of its schema.
        y : array of shape (n_samples,) or None, default=None
            Labels of the model, or numbers. None uses the label column of the table.
        groups : array of shape (n_samples,) or None, default=None
            Patient id of each row; each patient is protected with all rows, which count together as
            one. None uses the id column of the table, if there is one.

        Returns
        -------
        InferenceResult, RegressionResult or ClassResults
            Coefficients with intervals, and odds ratios; by class if there are more than two.

        Raises
        ------
        ValueError, TypeError
            For invalid input or a model that is not linear, before the charge. After it if the
            steps of the model fail on the rows.
        BudgetExceededError
            If the charge exceeds the remaining budget; the rows are not used.
        """
        return self._release(X, y, {"model": model, "subgroups": None, "groups": groups})

    def fit_evaluate(self, estimator: Any, X: Any, y: Any = None, *, groups: Any = None) -> Any:
        """Fit a private linear estimator and evaluate it, together for one (epsilon, delta).

        Parameters
        ----------
        estimator : private classifier or regressor, or pipeline that ends in one
            A clone is fitted, with epsilon, delta and adjacency from the plan. No other step may
            learn privately. For a regressor, `error_sd` is required.
        X, y, groups
            As for `evaluate`.

        Returns
        -------
        InferenceResult, RegressionResult or ClassResults
            As for `evaluate`; ``result.part.model`` is the fitted clone. `privacy_spent_` is the
            guarantee of fit and look together.

        Raises
        ------
        ValueError, TypeError
            As for `evaluate`, and for estimators that cannot be planned, before the charge.
        BudgetExceededError
            If the joint charge, which precedes the fit, exceeds the remaining budget.
        """
        self._check_parameters()
        look = clone(self).set_params(adjacency=self._relation)
        look._joint = JointCharge(self, look.adjacency)
        model = look._joint.fit(estimator, X, y, groups)
        return look.evaluate(model, X, y, groups=groups)

    def privacy_plan(
        self, n_samples: int, n_features: int | None = None, groups: bool = False
    ) -> PrivacySpent:
        """Return the privacy cost of `evaluate`; nothing is charged.

        Parameters
        ----------
        n_samples, n_features : int
            Number of rows or patients, and of columns. The cost depends on neither.
        groups : bool, default=False
            Whether `evaluate` will have ``groups=``.

        Returns
        -------
        PrivacySpent
            Record of the look, for the methods of budgets.
        """
        self._check_parameters()
        check_integer("n_samples", n_samples, at_least=1)
        return self._spent(self._plan_look(), groups, ())

    def expected_widths(
        self,
        model: Any,
        n: int,
        prevalence: float = 0.5,
        *,
        auc: float = 0.75,
        marginals: Any = None,
    ) -> dict[str, np.ndarray]:
        """Return the expected widths of intervals, from public numbers and without a charge.

        Parameters
        ----------
        model : Pipeline
            ``schema.pipeline(linear private classifier)``, with the epsilon of the fit.
        n : int
            Number of rows, or of patients.
        prevalence, auc : float, default=0.5 and 0.75
            Assumed share of the second class, in (0, 1), and area under the ROC curve, in [0.5, 1).
        marginals : mapping or None, default=None
            Public distributions of columns, as for `TableSchema.sample_public`.

        Returns
        -------
        dict of ndarray
            Columns of equal length: "name" and "step" of each effect, "width" of its 95 % interval
            in log odds, "width_ratio" over the width without privacy, and "prior_share".

        Raises
        ------
        TypeError
            If the model is no pipeline of a schema.
        """
        self._check_parameters()
        n = check_integer("n", n, at_least=1)
        prevalence = check_real("prevalence", prevalence, above=0.0, below=1.0)
        curvature = mean_curvature(prevalence, check_real("auc", auc, at_least=0.5, below=1.0))
        given = curvature, marginals, float(self.prior_sd), float(self.epsilon)
        return widths_of(model, self._plan_look(), n, *given)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_choice("covariance", self.covariance, ("model", "sandwich"))
        check_real("prior_sd", self.prior_sd, at_least=1e-3, at_most=1e3)
        check_real("data_norm", self.data_norm, at_least=1e-50, at_most=1e50, allowed=(None,))
        check_real("error_sd", self.error_sd, above=0.0, at_most=1e50, allowed=(None,))
        check_real("share", self.share, above=0.0, below=1.0, allowed=("auto",))

    def _about(self, model: Any) -> tuple[LinearPart, Callable[..., Any]]:
        if is_regressor(model):
            if self.covariance != "model":
                raise ValueError(
                    f"For a regressor, covariance must be 'model', got {self.covariance!r}."
                )
            given = self.data_norm, self.target_bounds, self.error_sd
            part: LinearPart = read_regression(model, *given)
        else:
            part = read_linear(model, self.data_norm, self.reference, float(self.epsilon))
        return part, part.transform

    def _encode(self, truth: np.ndarray, about: LinearPart) -> np.ndarray:
        return about.encode(truth)

    def _read(self, X: Any, y: Any, params: dict[str, Any]) -> Judged:
        records = super()._read(X, y, params)
        about: LinearPart = records.about
        refuse_large(about.theta.size, records.n_rows, self.covariance, records.by_unit)
        said = f"rows beyond the public norm data_norm={about.data_norm:g} count less"
        rows = records.X if about.steps else about.checked(records.X)
        # The fit has shortened rows beyond its bound, where they count less in the look.
        meaning, most = about.meaning, about.data_norm * (1.0 + 1e-9)
        within = meaning is not None and meaning.norms[0] <= most
        if within and released_score(about.linear) and is_of_fit(params["model"], X):
            shape = records.n_rows, about.coef.size
            about = replace(about, of_fit=reading_of_fit(about, shape, records.by_unit))
        return replace(records, X=rows, about=about, assumptions=(said, *records.assumptions))

    def _plan_about(self, n_rows: int, about: LinearPart) -> LookPlan:
        target = self.epsilon, self.delta, self._relation
        if isinstance(about, RegressionPart):
            plan: LookPlan = ErrorPlan.build(*target, limit=about.limit, n_records=n_rows)
        else:
            plan = self._plan_look(1 + len(about.others))
        return plan if self._joint is None else self._joint.with_noise(plan)

    def _plan_look(self, n_parts: int = 1) -> LookPlan:
        given = self.epsilon, self.delta, self._relation, self.covariance
        return LookPlan.build(*given, n_outputs=n_parts)

    def _spent(self, plan: LookPlan, by_unit: bool, assumptions: tuple[str, ...]) -> PrivacySpent:
        if by_unit:
            assumptions = (about_units("they count equally, together as one row"), *assumptions)
        spent = super()._spent(plan, by_unit, assumptions)
        return spent if self._joint is None else self._joint.total(spent)

    def _charge(self, spent: PrivacySpent, progress: FitProgress) -> None:
        if self._joint is None:  # else it is charged before the fit
            super()._charge(spent, progress)

    def _use_rows(self, plan: LookPlan, records: Judged, progress: FitProgress) -> list[Look]:
        if not records.about.steps:
            return self._look(plan, records, records.X)
        try:  # steps may be anyone's, and lazy ones run when the rows are summed
            with around_runs():
                return self._look(plan, records, self._encoded(records))
        except RowsChangedError:
            raise
        except (Exception, SystemExit):
            pass
        raise ValueError(_WITHHELD)

    def _encoded(self, records: Judged) -> Any:
        """Return the valid rows behind the steps; steps of others see rows as made-up ones."""
        about: LinearPart = records.about
        if records.way.block_rows > 1 and all(map(is_known, about.steps)):
            return about.checked(about.transform(records.X, dense=False))
        return about.checked(ask_each_row(about.transform, records))

    def _look(self, plan: LookPlan, records: Judged, X: Any) -> list[Look]:
        """Return a look at the model with valid rows of its columns."""
        about, units, labels = records.about, records.units, records.targets
        n_units, codes = (None, None) if units is None else (units.n_units, units.codes)
        shares = np.ones(labels.size) if units is None else units.weights(1.0)
        bounds = about.data_norm, about.constant
        ones = np.ones(labels.size, np.int8)
        rows = Rows.from_matrix(X, ones, *bounds, "signs", shares, n_units)
        parts = about, *about.others
        tables = [part.table(rows, labels, shares) for part in parts]
        context = b""
        if is_seeded(self.random_state):  # a seed ties the noise to rows, weights and plan
            weights = [(part.theta, part.code, part.against) for part in parts]
            public = plan.event, plan.adjacency, (*bounds, plan.limit), weights
            columns = (labels,) if codes is None else (labels, codes)
            context = fit_context(self, X, *columns, inferred=public)
        stream = resolve_random_state(self.random_state, context)
        found = plan.look(parts, tables, codes, float(self.prior_sd), stream)
        Records.check_rows(records)  # which all stages have read
        if hasattr(X, "check_rows") and not hasattr(records.X, "check_rows"):
            X.check_rows()
        return found

    def _result(
        self, plan: LookPlan, records: Judged, released: list[Look], spent: PrivacySpent
    ) -> Any:
        about: LinearPart = records.about
        deviation = float(self.prior_sd)
        kind = RegressionResult if isinstance(about, RegressionPart) else InferenceResult
        found = [
            kind(look, part, deviation, part.prior(deviation), spent)
            for part, look in zip((about, *about.others), released, strict=True)
        ]
        return ClassResults(found) if about.others else found[0]
