"""`PrivateRegressionEvaluation`: how well a public model predicts numbers on private rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import is_classifier

from skdp.choices import Adjacency, Auto
from skdp.dask_tables import collected, trusted
from skdp.estimators.labels import read_numbers
from skdp.inputs import validate_column
from skdp.mechanisms.random_stream import resolve_random_state
from skdp.metrics import error_figures
from skdp.metrics.base import EvaluatesModel
from skdp.metrics.errors import ErrorPlan, ErrorTables
from skdp.metrics.intervals import Figure, quantile
from skdp.metrics.record import FiguresRecord, figure_to_dict
from skdp.metrics.result import Point
from skdp.parameters import check_bounds, check_real
from skdp.pipelines import only_parameter
from skdp.reporting.privacy_spent import PrivacySpent
from skdp.seeding import fit_context
from skdp.units import units_of

_ASSUMPTIONS = (
    "the model is public: what it learned of private rows was paid for by its own fit",
    "the prediction of a row is a function of that row and the model alone",
    "target_bounds, largest_error and all parameters are public",
)
_RELEASED = ("noisy sums and counts of errors and targets", "all figures that follow from them")


class PrivateRegressionEvaluation(EvaluatesModel):
    """How well a public regressor predicts private rows: figures with intervals, one charge.

    Sums of errors and targets, and a table of errors by prediction, are released once, with noise.
    The coefficient of determination, errors and calibration follow from them and cost nothing more.

    Parameters
    ----------
    epsilon : float, default=1.0
        Privacy parameter in nats, positive.
    delta : float, default=1e-6
        Failure probability, in (0, 1), well below 1/n.
    target_bounds : tuple of float or None, default=None
        Public bounds (low, high) of the target, to which targets and predictions are clipped. None
        takes those of the model.
    largest_error : float or None, default=None
        Public size of an error, in the target's unit, beyond which errors count as it: the noise of
        their mean is proportional to it, that of squared ones to its square. None is the distance
        of the bounds, which no error exceeds.
    n_bins : int or "auto", default="auto"
        Number of bins of predictions, at least 10, of equal width between the bounds; ``"auto"``
        takes 10 to 44 by n and the noise.
    adjacency : {"add-remove", "replace-one"} or None, default=None
        Which tables are neighbours: one has a row more, the number n that figures are divided by
        being public and unchanged, or one row is another. None takes the relation that the budget
        counts in, and add-remove where nothing is charged.
    accountant : BudgetAccountant or None, default=None
        Budget to charge; None takes that of the ``with`` block around the call.
    random_state : int, RandomState, RandomStream or None, default=None
        None draws noise from the operating system. A seed is for tests: the guarantee does not hold
        against whoever knows it.
    verbose : int, default=0
        Whether to print what is spent.

    See Also
    --------
    PrivateEvaluation : The same for classifiers.

    Notes
    -----
    The L2 sensitivity of the five sums is ``sqrt(45/32)``, or 2 under replace-one, and that of the
    table 1, or the root of 2, of a person with several rows as well:
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
    >>> X = rng.normal(size=(9000, 2))
    >>> y = np.clip(5 + X[:, 0] + 0.5 * rng.normal(size=9000), 0, 10)
    >>> public_model = LinearRegression().fit(X[:500], y[:500])  # stands for a private fit
    >>> evaluation = PrivateRegressionEvaluation(
    ...     epsilon=1.0, target_bounds=(0, 10), largest_error=3.0
    ... )
    >>> result = evaluation.evaluate(public_model, X[500:], y[500:])
    >>> low, high = result.r2.interval
    >>> bool(0.7 < low < result.r2 < high < 0.9)  # in truth 0.8
    True
    """

    def __init__(
        self,
        epsilon: float = 1.0,
        delta: float = 1e-6,
        *,
        target_bounds: Any = None,
        largest_error: float | None = None,
        n_bins: int | Auto = "auto",
        adjacency: Adjacency | None = None,
        accountant: Any = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.target_bounds = target_bounds
        self.largest_error = largest_error
        self.n_bins = n_bins
        self.adjacency = adjacency
        self.accountant = accountant
        self.random_state = random_state
        self.verbose = verbose

    def evaluate(
        self, model: Any, X: Any, y: Any, *, groups: Any = None
    ) -> PrivateRegressionResult:
        """Charge the budget, predict the rows, and release.

        Parameters
        ----------
        model : fitted regressor
            With `predict`. It is public: fitted privately, or on other rows.
        X : array, frame or sparse matrix of shape (n_samples, n_features)
            The private rows, as the model takes them.
        y : array of shape (n_samples,)
            Their targets, finite numbers.
        groups : array of shape (n_samples,) or None, default=None
            The id of the person that each row belongs to. Then persons are protected, with all
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
        self._check_shared()
        if not hasattr(model, "predict") or (
            hasattr(model, "__sklearn_tags__") and is_classifier(model)
        ):
            raise TypeError(
                f"{type(model).__name__} predicts no numbers: give a fitted regressor, or a "
                "classifier to PrivateEvaluation."
            )
        self._check_model(model, X)
        bounds, largest = self._scale(model)
        y, groups = collected(y), collected(groups)
        truth = read_numbers(validate_column(y))
        self._check_lengths(X, truth, "X, y and groups", groups)
        units = None if groups is None else units_of(groups)
        n = truth.size if units is None else units.n_units
        self._warn_of_delta(n)
        plan = ErrorPlan.build(
            *(self.epsilon, self.delta, self._find_relation(), n),
            bounds=bounds,
            largest_error=largest,
            n_bins=self.n_bins,
        )
        spent = self._spent(plan, (*_ASSUMPTIONS, *trusted(X)), _RELEASED, units is not None)
        self._charge(spent)
        predicted = self._ask(model.predict, X, (truth.size, 1))[:, 0]
        used = [truth, predicted] + ([] if units is None else [units.codes])
        stream = resolve_random_state(self.random_state, fit_context(self, *used))
        tables = plan.release(plan.count(truth, predicted, units), stream)
        return PrivateRegressionResult(tables, spent, 0.95)

    def _scale(self, model: Any) -> tuple[tuple[float, float], float]:
        """Return the bounds of the target, and the largest error."""
        given = self.target_bounds
        if given is None:
            given = (only_parameter(model, "target_bounds") or ("", None))[1]
        low, high = check_bounds("target_bounds", given)
        if self.largest_error is None:
            return (low, high), high - low
        # Where it is a smaller share, squares of it are lost beside the noise of targets.
        share = check_real("largest_error", self.largest_error) / (high - low)
        check_real("largest_error / (high - low)", share, at_least=1e-3, at_most=1.0)
        return (low, high), float(self.largest_error)


@dataclass(frozen=True, eq=False, repr=False)
class PrivateRegressionResult(FiguresRecord):
    """Figures of a regressor on private rows, each a float with an `interval`.

    All of them follow from `tables`, which were released once: reading them costs nothing more.
    Intervals are for the population that the rows were drawn from: each by itself holds its value
    with probability `confidence`, over the drawing of rows and the noise. Errors are those of
    targets and predictions within the bounds, and larger ones than `largest_error` count as that.

    Parameters
    ----------
    tables : ErrorTables
        What was released: noisy sums and counts, and public numbers.
    privacy_spent_ : PrivacySpent
        The guarantee, its mechanism and its assumptions.
    confidence : float
        Probability of the intervals; ``dataclasses.replace`` changes it.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.dummy import DummyRegressor
    >>> from skdp.metrics import PrivateRegressionEvaluation
    >>> X, y = np.zeros((5000, 1)), np.random.default_rng(0).uniform(0, 1, 5000)
    >>> model = DummyRegressor().fit(X[:500], y[:500])  # stands for a private fit
    >>> result = PrivateRegressionEvaluation(target_bounds=(0, 1)).evaluate(model, X, y)
    >>> bool(abs(result.mean_absolute_error - 0.25) < 0.02)
    True
    >>> sorted(result.figures())
    ['mean_absolute_error', 'mean_error', 'r2', 'root_mean_squared_error']
    """

    tables: ErrorTables
    privacy_spent_: PrivacySpent
    confidence: float

    @property
    def r2(self) -> Figure:
        """Coefficient of determination: the share of the targets' variance that is explained."""
        return error_figures.r2(self.tables, self._z)

    @property
    def mean_absolute_error(self) -> Figure:
        """Mean size of errors, in the target's unit."""
        return error_figures.mean_absolute_error(self.tables, self._z)

    @property
    def root_mean_squared_error(self) -> Figure:
        """Root of the mean squared error, in the target's unit."""
        return error_figures.root_mean_squared_error(self.tables, self._z)

    @property
    def mean_error(self) -> Figure:
        """Mean of target less prediction: calibration in the large, 0 is right."""
        return error_figures.mean_error(self.tables, self._z)

    def calibration_curve(self) -> list[Point]:
        """Return mean prediction and mean target of cells of predictions, a tenth of rows each.

        Cells are whole bins, chosen by the released counts. The distance of y from x is what the
        interval holds; x itself is known to half a bin, and `threshold` is the least prediction.
        """
        points = error_figures.calibration_curve(self.tables, self._z)
        return [Point(*point) for point in points]

    def figures(self) -> dict[str, Figure]:
        """Return all figures that are single numbers.

        Returns
        -------
        dict
            Figures by name.
        """
        names = ("r2", "mean_absolute_error", "root_mean_squared_error", "mean_error")
        return {name: getattr(self, name) for name in names}

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain, JSON-ready values: sums, counts and figures."""
        tables = self.tables
        return {
            "n": tables.n,
            "target_bounds": list(tables.bounds),
            "largest_error": tables.largest_error,
            "confidence": self.confidence,
            "sums": tables.sums.tolist(),
            "counts": tables.counts.tolist(),
            "figures": {name: figure_to_dict(found) for name, found in self.figures().items()},
            "calibration_curve": [
                {"x": point.x, "y": figure_to_dict(point.y), "threshold": point.threshold}
                for point in self.calibration_curve()
            ],
            "privacy_spent": self.privacy_spent_.to_dict(),
        }

    @property
    def _z(self) -> float:
        return quantile(self.confidence)

    def _heading(self) -> str:
        tables = self.tables
        return (
            f"n = {tables.n}, targets within {np.array(tables.bounds).tolist()}, errors to "
            f"{tables.largest_error:g}, {100.0 * self.confidence:g} % intervals, "
            f"{self.privacy_spent_!r}"
        )
