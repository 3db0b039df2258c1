"""Scores that are sums over rows, with a bounded influence of each row."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from sklearn.base import is_regressor

from skdp.base.parameters import ResponseMethod, check_bounds
from skdp.base.pipelines import only_parameter
from skdp.base.scikit_learn import columns_of, responds
from skdp.estimators.labels import encode_labels
from skdp.tables.row_scores import Way, ask_rows, probe

# Sums of 2**31 rows are exact.
_UNIT = 2.0**22
_RESPONSES = ("predict", "predict_proba", "decision_function")

_NOT_A_SUM = {
    "balanced_accuracy": "divides by the private number of rows of each class",
    "f1": "is a ratio of private counts",
    "precision": "divides by the private number of predicted positives",
    "recall": "divides by the private number of positives",
    "jaccard": "is a ratio of private counts",
    "roc_auc": "ranks rows against each other",
    "average_precision": "ranks rows against each other",
    "neg_log_loss": "is unbounded: one row can change it without limit",
    "matthews_corrcoef": "is a ratio of private counts",
    "r2": "divides by the private spread of the targets (neg_mean_squared_error puts candidates in "
    "the same order)",
    "explained_variance": "divides by the private spread of the targets",
    "neg_root": "is the root of a sum, which one row can change by more than its share "
    "(neg_mean_squared_error puts candidates in the same order)",
    "neg_median": "is a middle of ranked errors",
    "max_error": "is the error of a single row",
    "neg_mean_absolute_percentage": "divides by single targets, which may be 0",
    "d2_": "is a ratio of private sums",
}


@dataclass(frozen=True)
class RowScorer:
    """Score that is a sum of one bounded value per row.

    Replacing, adding or removing one row changes the sum of values scaled to [0, 1] by at most 1.
    Create one with :func:`make_row_scorer`.

    Parameters
    ----------
    name : str
        Name of the score.
    function : callable
        ``function(y_true, response)`` returns one value per row.
    response_method : {"predict", "predict_proba", "decision_function"}
        Method of the estimator that returns the response.
    lower, upper : float
        Bounds of a row's value. Values beyond them are clipped.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.dummy import DummyClassifier
    >>> from skdp.model_selection import make_row_scorer
    >>> scorer = make_row_scorer(lambda y_true, predicted: y_true == predicted)
    >>> X, y = np.zeros((4, 1)), np.array([0, 1, 1, 1])
    >>> always = DummyClassifier(strategy="constant", constant=1).fit(X, y)
    >>> scorer.values(always, X, y), scorer.total(always, X, y)
    (array([0., 1., 1., 1.]), 3.0)
    """

    name: str
    function: Callable[[Any, Any], Any]
    response_method: str
    lower: float
    upper: float

    def __post_init__(self) -> None:
        if not (self.lower < self.upper and math.isfinite(self.upper - self.lower)):
            raise ValueError(
                "lower and upper must be finite with lower < upper, got "
                f"{self.lower}, {self.upper}."
            )
        if self.response_method not in _RESPONSES:
            raise ValueError(
                f"response_method must be one of {_RESPONSES}, got {self.response_method!r}."
            )

    def total(self, estimator: Any, X: Any, y: Any, shares: Any = None) -> float:
        """Return the sum over rows of the values scaled to [0, 1], with sensitivity 1.

        Parameters
        ----------
        estimator : estimator
            A fitted model.
        X : array-like
            Rows.
        y : array-like
            Labels.
        shares : ndarray of shape (n_samples,) or None, default=None
            Weight of each row, such as 1/k for one of the k rows of a unit. None means 1.
        """
        return self._total_by(self._way(estimator, X), estimator, X, y, shares)

    def _total_by(self, way: Way, estimator: Any, X: Any, y: Any, shares: Any = None) -> float:
        """Return `total` for a model that is evaluated in a given way."""
        values = self._values(way, estimator, X, y)
        values = (values - self.lower) / (self.upper - self.lower)
        # Rounded down to multiples of a small unit: their sum is exact, at most 1 per unit.
        steps = np.floor((values if shares is None else values * shares) * _UNIT)
        return float(np.sum(steps) / _UNIT)

    def undo_scale(self, mean: Any) -> Any:
        """Return the score of a mean of values scaled to [0, 1]."""
        return self.lower + (self.upper - self.lower) * mean

    def values(self, estimator: Any, X: Any, y: Any) -> np.ndarray:
        """Return each row's value, clipped to the bounds."""
        return self._values(self._way(estimator, X), estimator, X, y)

    def _way(self, estimator: Any, X: Any) -> Way:
        """Return the way to evaluate a model on tables like this one."""
        # Labels hide the effect of rounding on scores.
        names = ("decision_function", "predict_proba")
        shown = next((name for name in names if responds(estimator, name)), self.response_method)
        width = columns_of(estimator)
        return probe(getattr(estimator, shown), X, width).way

    def _values(self, way: Way, estimator: Any, X: Any, y: Any) -> np.ndarray:
        truth = np.asarray(y)
        if self.function is _half_squared_distance:
            truth = encode_labels(truth, estimator.classes_)[1]
        values = ask_rows(partial(self._of_block, estimator), X, truth, way=way)
        # Values that are not a number count as the worst, so each row keeps its bound.
        return np.clip(np.nan_to_num(values, nan=self.lower), self.lower, self.upper)

    def _of_block(self, estimator: Any, X: Any, truth: np.ndarray) -> np.ndarray:
        response = getattr(estimator, self.response_method)(X)
        values = np.asarray(self.function(truth, response), dtype=np.float64)
        if values.shape != (len(truth),):
            raise ValueError(
                f"scoring={self.name!r} must return one value for each of the rows, got an array "
                f"of {values.ndim} dimensions."
            )
        return values


def _is_equal(y_true: Any, predicted: Any) -> np.ndarray:
    return np.asarray(y_true) == np.asarray(predicted)


def _half_squared_distance(codes: np.ndarray, probabilities: np.ndarray) -> np.ndarray:
    distances = np.array(probabilities, dtype=np.float64)
    distances[np.arange(len(codes)), codes] -= 1.0
    return -0.5 * np.sum(distances**2, axis=1)


_KNOWN = {
    "accuracy": RowScorer("accuracy", _is_equal, "predict", 0.0, 1.0),
    "neg_brier_score": RowScorer(
        "neg_brier_score", _half_squared_distance, "predict_proba", -1.0, 0.0
    ),
}


@dataclass(frozen=True)
class _NegativeError:
    """Negative power of the error, with targets and predictions clipped to public bounds."""

    bounds: tuple[float, float]
    power: int

    def __call__(self, y_true: Any, predicted: Any) -> np.ndarray:
        truth, guess = (
            np.clip(np.asarray(numbers, dtype=np.float64), *self.bounds)
            for numbers in (y_true, predicted)
        )
        return -(np.abs(truth - guess) ** self.power)


_POWERS = {"neg_mean_absolute_error": 1, "neg_mean_squared_error": 2}


def _score_of_errors(name: str, regressor: Any) -> RowScorer:
    """Return a score of errors with bounds from the regressor's `target_bounds`."""
    found = only_parameter(regressor, "target_bounds")
    if found is None:
        raise ValueError(
            f"scoring={name!r} requires exactly one target_bounds in {type(regressor).__name__}. "
            "Otherwise set the bounds of a custom score with make_row_scorer."
        )
    key, bounds = found
    low, high = check_bounds(key, bounds)
    worst = -math.prod([high - low] * _POWERS[name])
    if not -math.inf < worst < 0.0:
        raise ValueError(
            f"{key} must not be too close or too far apart for floats, got {bounds!r}."
        )
    function = _NegativeError((low, high), _POWERS[name])
    return RowScorer(name, function, "predict", worst, 0.0)


def make_row_scorer(
    function: Callable[[Any, Any], Any],
    *,
    lower: float = 0.0,
    upper: float = 1.0,
    response_method: ResponseMethod = "predict",
) -> RowScorer:
    """Return a score from a function that evaluates each row separately.

    Parameters
    ----------
    function : callable
        ``function(y_true, response)`` returns an array with one value per row; larger is better. A
        row's value must depend only on that row and the model. This is assumed, not checked, and
        the guarantee depends on it.
    lower, upper : float, default=0.0 and 1.0
        Public bounds of a row's value. Values beyond them are clipped. Narrow bounds need less
        noise.
    response_method : {"predict", "predict_proba", "decision_function"}, default="predict"
        Method of the model that returns the response.

    Returns
    -------
    RowScorer
        Score to pass to a private search as ``scoring=``.

    Examples
    --------
    A missed case is five times as bad as a false alarm:

    >>> import numpy as np
    >>> from skdp.model_selection import make_row_scorer
    >>> def cost(y_true, predicted):
    ...     return -np.where(y_true == predicted, 0, np.where(y_true == 1, 5, 1))
    >>> make_row_scorer(cost, lower=-5, upper=0).upper
    0.0

    Errors of a length of stay count at most five days. The noise is a sixth of that for bounds of
    0 to 30 days:

    >>> def error(y_true, predicted):
    ...     return -np.abs(y_true - predicted)
    >>> make_row_scorer(error, lower=-5, upper=0).lower
    -5.0
    """
    name = getattr(function, "__name__", type(function).__name__)
    return RowScorer(name, function, response_method, float(lower), float(upper))


def resolve_scoring(scoring: Any, estimator: Any = None) -> RowScorer:
    """Return the requested score for an estimator, or refuse it with the reason."""
    if type(scoring) is RowScorer:  # a subclass may sum as it likes
        return scoring
    numeric = estimator is not None and is_regressor(estimator)
    known, other = (_POWERS, _KNOWN) if numeric else (_KNOWN, _POWERS)
    if isinstance(scoring, str) and scoring == "auto":
        scoring = next(iter(known))
    if isinstance(scoring, str) and scoring in known:
        return _score_of_errors(scoring, estimator) if numeric else _KNOWN[scoring]
    reason = "is not known to be a sum over rows"
    if isinstance(scoring, str) and scoring in other:
        raise ValueError(
            f"scoring={scoring!r} is for {'classifiers' if numeric else 'regressors'} only: use "
            f"{', '.join(map(repr, sorted(known)))} for this estimator."
        )
    if isinstance(scoring, str):
        family = next((known for known in _NOT_A_SUM if scoring.startswith(known)), None)
        reason = _NOT_A_SUM[family] if family else reason
    shown = scoring if isinstance(scoring, str) else type(scoring).__name__
    raise ValueError(
        f"scoring={shown!r} {reason}, so the influence of one row has no bound. Use "
        f"{', '.join(map(repr, sorted(known)))}, or a score of single rows by make_row_scorer."
    )


def refuse_other_score(scoring: Any, template: Any, candidate: Any) -> None:
    """Refuse a candidate with another score than the template."""
    alike = is_regressor(candidate) == is_regressor(template)
    if not alike or resolve_scoring(scoring, candidate) != resolve_scoring(scoring, template):
        raise ValueError(
            "All candidates must have the same target_bounds and predict the same kind of target, "
            "since scores are compared. Use those of the estimator, or a score with fixed bounds "
            "by make_row_scorer."
        )
