"""`PrivateRegressionEvaluation`: performance of a public regressor on private rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
from scipy.special import ndtri
from sklearn.base import is_classifier

from skdp.accounting.privacy_spent import PrivacySpent
from skdp.base.parameters import check_bounds, check_integer, check_real, parameter
from skdp.base.pipelines import is_container, only_parameter
from skdp.base.scikit_learn import responds
from skdp.budget.charging import ChargesBudget
from skdp.estimators.labels import read_numbers
from skdp.fitting import FitProgress
from skdp.mechanisms.random_stream import resolve_random_state
from skdp.metrics.base import EvaluatesModel, HasSubgroups, Judged, ask_model
from skdp.metrics.errors import ErrorPlan, ErrorTables
from skdp.metrics.regression_result import PrivateRegressionResult
from skdp.statistics.noise import UNIT
from skdp.tables.records import fit_context

# Made-up rows of expected widths: number of predictions, and of errors for each.
_GUESSES = 200


class PrivateRegressionEvaluation(HasSubgroups, EvaluatesModel):
    """Performance of a public regressor on private rows, with intervals and one charge.

    Sums of errors and targets, and a table of errors by prediction, are released once, with noise.
    The coefficient of determination, error sizes and calibration follow without further cost.

    See Also
    --------
    PrivateEvaluation : The same for classifiers.

    Notes
    -----
    Under add-remove, the L2 sensitivity of the sums is ``sqrt(45/32)``, or ``sqrt(2)`` with
    subgroups, and that of each table is 1. Sums of cut errors add 1/8 to the square of the former.
    Under replace-one these numbers are 2, ``sqrt(2)`` and 1/2. They are the same for a patient with
    several rows: :ref:`Theorem 5 of evaluation <evaluation-5>`. Intervals cover sampling and noise.

    References
    ----------
    Canonne, Kamath & Steinke (2020), "The discrete Gaussian for differential privacy".
    Fieller (1954), "Some problems in interval estimation".

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LinearRegression
    >>> from skdp.metrics import PrivateRegressionEvaluation
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(40_000, 2))
    >>> y = np.clip(5 + X[:, 0] + 0.5 * rng.normal(size=40_000), 0, 10)
    >>> public_model = LinearRegression().fit(X[:500], y[:500])  # stands for a private fit
    >>> evaluation = PrivateRegressionEvaluation(
    ...     epsilon=1.0, target_bounds=(0, 10), largest_error=3.0
    ... )
    >>> result = evaluation.evaluate(public_model, X[500:], y[500:])
    >>> low, high = result.r2.interval
    >>> bool(0.7 < low <= result.r2 <= high < 0.9)  # in truth 0.8
    True
    """

    _added_texts: ClassVar[dict[str, str]] = {
        "n_bins": "Bins are those of predictions, of equal width between the bounds."
    }

    target_bounds: Any = parameter(
        "tuple of float or None",
        """Public bounds (low, high) of the target. Targets and predictions are clipped to them.
        None uses the bounds of the model, also of the last step of a pipeline or of the estimator
        of a private search. Bounds inside other containers, such as
        ``TransformedTargetRegressor``, are refused: they belong to another scale.""",
        default=None,
    )
    largest_error: float | None = parameter(
        "float or None",
        """Public size that few errors exceed, in the unit of the target. Sums of errors cut at it
        have less noise and give lower bounds on error sizes. The metrics themselves are for uncut
        errors: a wrong size only makes intervals wider. None uses the distance of the bounds, which
        no error exceeds.""",
        default=None,
    )

    _assumptions = (
        "the model is public: its fit was charged for the private rows that it learned from",
        "the prediction for a row is a function only of that row and the model",
        "target_bounds, largest_error, the list of subgroups and all parameters are public",
    )
    _released = ("noisy sums and counts of errors and targets", "all metrics computed from them")

    def evaluate(
        self, model: Any, X: Any, y: Any = None, *, subgroups: Any = None, groups: Any = None
    ) -> PrivateRegressionResult:
        """Charge the budget, predict the rows, and release all metrics.

        Parameters
        ----------
        model : fitted regressor
            Public model with `predict`: fitted privately, or on other rows.
        X : array, frame or sparse matrix of shape (n_samples, n_features)
            Private rows, in the format of the model. For a pipeline of a schema, also the complete
            table.
        y : array of shape (n_samples,) or None, default=None
            Targets, finite numbers. None uses the label column of the table, for a pipeline of a
            schema.
        subgroups : array of shape (n_samples,) or None, default=None
            Subgroup of each row; required if the evaluation declares subgroups.
        groups : array of shape (n_samples,) or None, default=None
            Patient id of each row. Each patient is then protected with all rows, metrics are
            computed from means over patients, and n is the number of patients. None uses the id
            column of the table if it has one, for a pipeline of a schema.

        Returns
        -------
        PrivateRegressionResult
            All metrics with intervals.

        Raises
        ------
        ValueError, TypeError
            For invalid parameters or input, before the charge. Also after the charge, if the model
            fails on the rows or does not predict one number per row. NaN counts as 0.
        BudgetExceededError
            If the charge exceeds the remaining budget; the rows are not used.
        """
        found: PrivateRegressionResult = self._release(
            X, y, {"model": model, "subgroups": subgroups, "groups": groups}
        )
        return found

    def expected_widths(
        self, n: int, r2: float = 0.5, *, deviation: float | None = None
    ) -> dict[str, float]:
        """Return the expected widths of intervals, from public numbers and without a charge.

        Parameters
        ----------
        n : int
            Number of rows, or of patients if `evaluate` will have ``groups=``.
        r2 : float, default=0.5
            Assumed coefficient of determination, in (0, 1).
        deviation : float or None, default=None
            Assumed standard deviation of targets, in their unit. None uses a sixth of the distance
            of the bounds.

        Returns
        -------
        dict
            Widths of 95 % intervals by name of the metric, for normal predictions and errors in the
            middle of `target_bounds`, which must be declared.

        Examples
        --------
        >>> from skdp.metrics import PrivateRegressionEvaluation
        >>> evaluation = PrivateRegressionEvaluation(target_bounds=(0, 30), largest_error=10)
        >>> bool(evaluation.expected_widths(n=20_000)["mean_absolute_error"] < 0.2)
        True
        """
        self._check_parameters()
        n = check_integer("n", n, at_least=1)
        check_real("r2", r2, above=0.0, below=1.0)
        about = self._scale(None)
        bounds, plan = about[0], self._plan_about(n, about)
        wide = (bounds[1] - bounds[0]) / 6.0
        if deviation is not None:
            wide = check_real("deviation", deviation, above=0.0)
        normal = ndtri((np.arange(_GUESSES) + 0.5) / _GUESSES) * wide
        said = np.repeat(0.5 * (bounds[0] + bounds[1]) + r2**0.5 * normal, _GUESSES)
        truth = said + np.tile((1.0 - r2) ** 0.5 * normal, _GUESSES)
        names = self.subgroups or (None,)
        members = np.zeros(truth.size, dtype=np.int64)
        exact = plan.count(truth, said, None, members)
        # Subgroups are alike: each has its share of the first one's sums and counts.
        shares = (part[:1] * (n / truth.size / len(names) / UNIT) for part in exact)
        tables = plan.assemble(*(np.repeat(part, len(names), axis=0) for part in shares))
        figures = self._result(plan, None, tables, self._account(plan)).figures()
        return {name: figure.width for name, figure in figures.items()}

    def _about(self, model: Any) -> tuple[Any, Callable[..., Any]]:
        """Return the bounds of the target with the largest error, and the method to predict."""
        if not responds(model, "predict") or (
            responds(model, "__sklearn_tags__") and is_classifier(model)
        ):
            raise TypeError(
                f"{type(model).__name__} does not predict numbers: pass a fitted regressor, or use "
                "PrivateEvaluation for a classifier."
            )
        return self._scale(model), model.predict

    def _encode(self, truth: np.ndarray, about: Any) -> np.ndarray:
        return read_numbers(truth)

    def _plan_about(self, n_rows: int, about: Any) -> ErrorPlan:
        bounds, largest = about
        return ErrorPlan.build(
            *(self.epsilon, self.delta, self._relation, n_rows),
            bounds=bounds,
            largest_error=largest,
            n_bins=self.n_bins,
            subgroups=None if self.subgroups is None else tuple(self.subgroups),
        )

    def _use_rows(self, plan: ErrorPlan, records: Judged, progress: FitProgress) -> ErrorTables:
        predicted, units = ask_model(records, 1)[:, 0], records.units
        truth, members = records.targets, records.members
        used = [truth, predicted, members] + ([] if units is None else [units.codes])
        inferred = plan.event, plan.adjacency, plan.bounds, plan.largest_error
        context = fit_context(self, *used, inferred=inferred)
        stream = resolve_random_state(self.random_state, context)
        return plan.release(plan.count(truth, predicted, units, members), stream)

    def _result(
        self, plan: ErrorPlan, records: Any, released: ErrorTables, spent: PrivacySpent
    ) -> PrivateRegressionResult:
        return PrivateRegressionResult(released, spent, 0.95)

    def _scale(self, model: Any) -> tuple[tuple[float, float], float]:
        """Return the bounds of the target, and the largest error."""
        given = self.target_bounds
        if given is None:
            given = _bounds_of(model)
        low, high = check_bounds("target_bounds", given)
        if self.largest_error is None:
            return (low, high), high - low
        # With a smaller share it is no help for squares, and tables grow.
        share = check_real("largest_error", self.largest_error) / (high - low)
        check_real("largest_error / (high - low)", share, at_least=1e-3, at_most=1.0)
        return (low, high), float(self.largest_error)


def _bounds_of(model: Any) -> Any:
    """Return the bounds that a model declares, unless its container may transform targets."""
    key, found = only_parameter(model, "target_bounds") or ("", None)
    holder = model
    for name in key.split("__")[:-1]:
        if not (is_container(holder) or isinstance(holder, ChargesBudget)):
            raise ValueError(
                f"declare target_bounds: {type(holder).__name__} may fit its model to targets on "
                "another scale, and the bounds inside are for that scale."
            )
        holder = holder.get_params(deep=True)[name]
    return found
