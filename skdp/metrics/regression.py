"""`PrivateRegressionEvaluation`: how well a public model predicts numbers on private rows."""

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

# Made-up rows of expected widths: so many predictions, and as many errors of each.
_GUESSES = 200


class PrivateRegressionEvaluation(HasSubgroups, EvaluatesModel):
    """How well a public regressor predicts private rows: figures with intervals, one charge.

    Sums of errors and targets, and a table of errors by prediction, are released once, with noise.
    The coefficient of determination, errors and calibration follow from them and cost nothing more.

    See Also
    --------
    PrivateEvaluation : The same for classifiers.

    Notes
    -----
    The L2 sensitivity of the sums is ``sqrt(45/32)``, with subgroups the root of 2, or 2 under
    replace-one. Sums of cut errors add 1/8 to its square, or 1/2 under replace-one. That of each
    table is 1, or the root of 2. It is the same of a person with several rows:
    :ref:`Theorem 5 of evaluation <evaluation-5>`. Intervals count sampling and noise.

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
        """Public bounds (low, high) of the target, to which targets and predictions are clipped.
        None takes those of the model, which may be the last step of a pipeline or what a private
        search fits; of others, as ``TransformedTargetRegressor``, they are refused: their scale is
        theirs.""",
        default=None,
    )
    largest_error: float | None = parameter(
        "float or None",
        """Public size, in the target's unit, that few errors exceed. Sums of errors cut at it have
        less noise: they say what sizes of errors are at least. No figure is of cut errors, and a
        wrong size costs width alone. None is the distance of the bounds, which no error
        exceeds.""",
        default=None,
    )

    _assumptions = (
        "the model is public: what it learned of private rows was paid for by its own fit",
        "the prediction of a row is a function of that row and the model alone",
        "target_bounds, largest_error, the list of subgroups and all parameters are public",
    )
    _released = ("noisy sums and counts of errors and targets", "all figures that follow from them")

    def evaluate(
        self, model: Any, X: Any, y: Any = None, *, subgroups: Any = None, groups: Any = None
    ) -> PrivateRegressionResult:
        """Charge the budget, predict the rows, and release.

        Parameters
        ----------
        model : fitted regressor
            With `predict`. It is public: fitted privately, or on other rows.
        X : array, frame or sparse matrix of shape (n_samples, n_features)
            The private rows, as the model takes them; for a pipeline of a schema also a table with
            other columns of that.
        y : array of shape (n_samples,) or None, default=None
            Their targets, finite numbers. None takes the column of the label, for a pipeline of a
            schema.
        subgroups : array of shape (n_samples,) or None, default=None
            The subgroup of each row, where the evaluation declares subgroups.
        groups : array of shape (n_samples,) or None, default=None
            The id of the person that each row belongs to; None takes the column of ids, for a
            pipeline of a schema, where the table has it. Then persons are protected, with all
            their rows, figures are of means over persons, and n is the number of persons.

        Returns
        -------
        PrivateRegressionResult
            All figures.

        Raises
        ------
        ValueError, TypeError
            For bad parameters or input, before anything is charged; and if the model fails on the
            rows or predicts other than one number for each, after the charge. NaN counts as 0.
        BudgetExceededError
            If the budget cannot take the charge; the rows are not used then.
        """
        found: PrivateRegressionResult = self._release(
            X, y, {"model": model, "subgroups": subgroups, "groups": groups}
        )
        return found

    def expected_widths(
        self, n: int, r2: float = 0.5, *, deviation: float | None = None
    ) -> dict[str, float]:
        """Return how wide intervals will be, from public numbers, before anything is spent.

        Parameters
        ----------
        n : int
            Number of rows (of persons, where `evaluate` will be given groups).
        r2 : float, default=0.5
            A guess of the coefficient of determination, in (0, 1).
        deviation : float or None, default=None
            A guess of the standard deviation of targets, in their unit; None is a sixth of the
            distance of the bounds.

        Returns
        -------
        dict
            The widths of 95 % intervals by the names of figures, for normal predictions and errors
            in the middle of `target_bounds`, which the evaluation has to declare.

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
        """Return the bounds of the target and the largest error, and what gives predictions."""
        if not responds(model, "predict") or (
            responds(model, "__sklearn_tags__") and is_classifier(model)
        ):
            raise TypeError(
                f"{type(model).__name__} predicts no numbers: give a fitted regressor, or a "
                "classifier to PrivateEvaluation."
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
        # Where it is a smaller share, it says nothing of squares, and tables grow.
        share = check_real("largest_error", self.largest_error) / (high - low)
        check_real("largest_error / (high - low)", share, at_least=1e-3, at_most=1.0)
        return (low, high), float(self.largest_error)


def _bounds_of(model: Any) -> Any:
    """Return the bounds that a model declares, unless what holds it may transform targets."""
    key, found = only_parameter(model, "target_bounds") or ("", None)
    holder = model
    for name in key.split("__")[:-1]:
        if not (is_container(holder) or isinstance(holder, ChargesBudget)):
            raise ValueError(
                f"declare target_bounds: {type(holder).__name__} may fit its model to targets on "
                "another scale, which the bounds inside are for."
            )
        holder = holder.get_params(deep=True)[name]
    return found
