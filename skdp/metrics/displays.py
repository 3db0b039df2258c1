"""Pictures of an evaluation, with bands."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.optimize import isotonic_regression

from skdp.metrics.regression_result import PrivateRegressionResult
from skdp.metrics.result import Point, PrivateEvaluationResult
from skdp.reporting.drawing import ResultDisplay


class EvaluationDisplay(ResultDisplay):
    """Base of pictures of a result of the right kind: a line, and a band of intervals."""

    result: Any
    _reference: str
    _monotone = False
    _kinds: tuple[type, ...] = (PrivateEvaluationResult,)
    _diagonal: tuple[float, float] = (0.0, 1.0)

    def __init__(self, result: Any) -> None:
        if not isinstance(result, self._kinds):
            wanted = " or ".join(kind.__name__ for kind in self._kinds)
            raise TypeError(
                f"{type(self).__name__} shows a {wanted}, got a {type(result).__name__}."
            )
        super().__init__(result)

    def _draw_curve(self, ax: Any, points: Sequence[Point], style: dict[str, Any]) -> None:
        shown = [point for point in points if np.isfinite(point[:2]).all()]
        across, up = np.array([point[:2] for point in shown]).reshape(-1, 2).T
        ends = np.array([point.y.interval for point in shown]).reshape(-1, 2).T
        if self._monotone:
            across, up = (isotonic_regression(rates).x for rates in (across, up))
        (self.line_,) = ax.plot(across, up, **style)
        words = f"{100.0 * self.result.confidence:g} % intervals, of each point by itself"
        look = {"color": self.line_.get_color(), "alpha": 0.2, "lw": 0}
        self.band_ = ax.fill_between(across, *ends, **look, label=words)
        ax.plot(*[self._diagonal] * 2, color="grey", linestyle=":", label=self._reference)


class PrivateRocCurveDisplay(EvaluationDisplay):
    """ROC curve of an evaluation, with the intervals of the sensitivity at every edge of bins.

    The band is pointwise: each interval holds by itself with the confidence of the result, all of
    them together with less; it is for the sensitivity at the threshold of the point, whose false
    positive rate is uncertain as well. Noisy rates need not fall with the threshold: the line is
    the nearest that does.

    Parameters
    ----------
    result : PrivateEvaluationResult
        What is shown; of more than two classes, ``result.of(label=...)``.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
        Of the last plot.
    line_ : matplotlib Line2D
        The curve.
    band_ : matplotlib collection
        The band.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LogisticRegression
    >>> from skdp.metrics import PrivateEvaluation, PrivateRocCurveDisplay
    >>> X = np.random.default_rng(0).normal(size=(4000, 2))
    >>> y = (X[:, 0] > 0).astype(int)
    >>> public_model = LogisticRegression().fit(X[:500], y[:500])  # stands for a private fit
    >>> result = PrivateEvaluation(epsilon=1.0).evaluate(public_model, X[500:], y[500:])
    >>> display = PrivateRocCurveDisplay.from_result(result)
    >>> display.ax_.get_ylabel()
    'sensitivity'
    """

    _axes = ("false-positive rate", "sensitivity")
    _reference = "guessing"
    _monotone = True

    def _draw(self, ax: Any, style: dict[str, Any]) -> None:
        label = f"ROC curve, AUC {self.result.roc_auc!r}"
        self._draw_curve(ax, self.result.roc_curve(), {"label": label} | style)


class PrivateCalibrationDisplay(EvaluationDisplay):
    """Calibration curve of an evaluation: rates of positives by probability, with intervals.

    Of regressors it shows mean targets by mean predictions. The band is pointwise: each interval
    holds by itself with the confidence of the result.

    Parameters
    ----------
    result : PrivateEvaluationResult or PrivateRegressionResult
        What is shown, of a regressor or a model with ``predict_proba``; of more than two classes,
        ``result.of(label=...)``.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
        Of the last plot.
    line_ : matplotlib Line2D
        The curve.
    band_ : matplotlib collection
        The band.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LogisticRegression
    >>> from skdp.metrics import PrivateCalibrationDisplay, PrivateEvaluation
    >>> X = np.random.default_rng(0).normal(size=(4000, 2))
    >>> y = (X[:, 0] > 0).astype(int)
    >>> public_model = LogisticRegression().fit(X[:500], y[:500])  # stands for a private fit
    >>> result = PrivateEvaluation(epsilon=1.0).evaluate(public_model, X[500:], y[500:])
    >>> display = PrivateCalibrationDisplay.from_result(result)
    >>> display.ax_.get_ylabel()
    'share of positives'
    """

    _axes = ("mean probability", "share of positives")
    _kinds = (PrivateEvaluationResult, PrivateRegressionResult)
    _reference = "perfectly calibrated"

    def __init__(self, result: PrivateEvaluationResult | PrivateRegressionResult) -> None:
        super().__init__(result)
        if isinstance(result, PrivateRegressionResult):
            self._axes, self._on_unit_square = ("mean prediction", "mean target"), False
            self._diagonal = result.tables.bounds

    def _draw(self, ax: Any, style: dict[str, Any]) -> None:
        if isinstance(self.result, PrivateRegressionResult):
            label = f"calibration, R2 {self.result.r2!r}"
        else:
            label = f"calibration, slope {self.result.calibration_slope!r}"
        points = self.result.calibration_curve()
        self._draw_curve(ax, points, {"label": label, "marker": "o"} | style)


class PrivateErrorDisplay(EvaluationDisplay):
    """Histogram of a regressor's errors, target less prediction, with intervals.

    A row between two tabulated errors counts for both of them, for the nearer more. Heights are
    shares of rows per unit of the target, as of a density; each interval holds by itself.

    Parameters
    ----------
    result : PrivateRegressionResult
        What is shown.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
        Of the last plot.
    line_ : matplotlib Line2D
        The histogram.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.dummy import DummyRegressor
    >>> from skdp.metrics import PrivateErrorDisplay, PrivateRegressionEvaluation
    >>> X, y = np.zeros((5000, 1)), np.random.default_rng(0).uniform(0, 1, 5000)
    >>> model = DummyRegressor().fit(X[:500], y[:500])  # stands for a private fit
    >>> result = PrivateRegressionEvaluation(target_bounds=(0, 1)).evaluate(model, X, y)
    >>> PrivateErrorDisplay.from_result(result).ax_.get_xlabel()
    'target less prediction'
    """

    _axes = ("target less prediction", "share of rows per unit")
    _kinds = (PrivateRegressionResult,)
    _on_unit_square = False

    def _draw(self, ax: Any, style: dict[str, Any]) -> None:
        points = self.result.error_histogram()
        across, up = np.array([point[:2] for point in points]).T
        reach = np.abs(np.array([point.y.interval for point in points]).T - up)
        gaps = np.diff(across)
        widths = 0.5 * (np.append(gaps, 0.0) + np.append(0.0, gaps))
        words = f"{100.0 * self.result.confidence:g} % intervals, of each point by itself"
        look = {"marker": "o", "capsize": 2.0, "label": words} | style
        self.line_, *_ = ax.errorbar(across, up / widths, reach / widths, **look)
