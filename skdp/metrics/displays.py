"""Plots of an evaluation with intervals, and metrics by subgroup with gaps."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from scipy.optimize import isotonic_regression

from skdp.accounting.records import html_table
from skdp.base.parameters import GroupedBy, check_choice
from skdp.metrics.figures import Figure
from skdp.metrics.regression_result import SIZES_OF_ERRORS, PrivateRegressionResult
from skdp.metrics.result import SHARES, Point, PrivateEvaluationResult
from skdp.reporting.drawing import ResultDisplay

# Candidate ends of the axes of calibration curves; the smallest that contains all points is used.
_REACHES = (0.02, 0.05, 0.1, 0.2, 0.5, 1.0)


class EvaluationDisplay(ResultDisplay):
    """Base of plots of a result: a line and a band of intervals."""

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
    """ROC curve of an evaluation, with an interval for the sensitivity at every edge of bins.

    The band is pointwise: each interval has the confidence of the result, all together have less.
    An interval is for the sensitivity at the threshold of its point; the false positive rate is
    uncertain as well. Noisy rates need not decrease with the threshold: the line is the nearest
    curve that does.

    Parameters
    ----------
    result : PrivateEvaluationResult
        Result to plot; with more than two classes, ``result.of(label=...)``.

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
    """Calibration curve of an evaluation: rate of positives by probability, with intervals.

    For regressors it shows the mean target by mean prediction. The band is pointwise: each interval
    by itself has the confidence of the result. Cells with wide intervals are merged with their
    neighbours; use ``result.calibration_curve(largest_width=...)`` for other widths.

    Parameters
    ----------
    result : PrivateEvaluationResult or PrivateRegressionResult
        Result to plot, for a regressor or a model with ``predict_proba``; with more than two
        classes, ``result.of(label=...)``.

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
            slope = self.result.calibration_slope
            label = f"calibration, slope {slope.reason if np.isnan(slope) else repr(slope)}"
        points = self.result.calibration_curve()
        # For a rare outcome, only the corner with points and intervals is shown.
        last = [max(point.x, point.y.interval[1]) for point in points]
        self._reach = next((end for end in _REACHES if last and end >= max(last)), 1.0)
        self._draw_curve(ax, points, {"label": label, "marker": "o"} | style)


class PrivateErrorDisplay(EvaluationDisplay):
    """Histogram of a regressor's errors, target minus prediction, with intervals.

    A row between two tabulated errors counts for both, more for the nearer one. Heights are shares
    of rows per unit of the target, like a density. Each interval is valid by itself.

    Parameters
    ----------
    result : PrivateRegressionResult
        Result to plot.

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


_FIGURES = ("roc_auc", "accuracy", "sensitivity", "specificity", "ppv", "prevalence")


class PrivateMetricFrame:
    """Metrics of each subgroup or class, with the interface of fairlearn's MetricFrame.

    Parameters
    ----------
    result : PrivateEvaluationResult or PrivateRegressionResult
        Result of an evaluation with subgroups, or with more than two classes.
    metrics : sequence of str or None, default=None
        Names of metrics of the result in [0, 1]. For regressors, names of error sizes: mean, median
        and root mean squared. None uses AUC, accuracy, sensitivity, specificity, PPV and
        prevalence, or all error sizes.
    by : {"subgroup", "label"}, default="subgroup"
        Groups to compare: declared subgroups, or classes against all others.

    Attributes
    ----------
    overall : dict
        Metrics of all rows by name. By label they are means over classes (macro averages), with
        the mean of the intervals.
    by_group : dict
        Metrics by name, for each group.

    Notes
    -----
    All values are post-processing of one release. Each interval of `by_group` is valid by itself.
    Intervals of gaps are built from intervals that are valid for all groups at once (Bonferroni),
    so they are valid whichever groups turn out best and worst.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LogisticRegression
    >>> from skdp.metrics import PrivateEvaluation, PrivateMetricFrame
    >>> rng = np.random.default_rng(0)
    >>> X, sex = rng.normal(size=(4000, 2)), rng.choice(["f", "m"], 4000)
    >>> y = (X[:, 0] + np.where(sex == "f", 1, 3) * rng.normal(size=4000) > 0).astype(int)
    >>> model = LogisticRegression().fit(X[:500], y[:500])  # stands for a private fit
    >>> evaluation = PrivateEvaluation(epsilon=1.0, subgroups=["f", "m"])
    >>> result = evaluation.evaluate(model, X[500:], y[500:], subgroups=sex[500:])
    >>> gap = PrivateMetricFrame(result, ["accuracy"]).difference()["accuracy"]
    >>> bool(gap.interval[0] > 0.05)
    True
    """

    def __init__(
        self,
        result: PrivateEvaluationResult | PrivateRegressionResult,
        metrics: Sequence[str] | None = None,
        *,
        by: GroupedBy = "subgroup",
    ) -> None:
        check_choice("by", by, ("subgroup", "label"))
        tables: Any = result.tables
        numbers = isinstance(result, PrivateRegressionResult)
        classes = () if numbers else tuple(tables.classes.tolist())
        groups = tables.subgroups if by == "subgroup" else classes
        if groups is None or (by == "label" and len(groups) <= 2):
            raise ValueError(
                f"the result has no groups by {by!r}: declare subgroups=[...] in the evaluation, "
                "or use by='label' with more than two classes."
            )
        self._parts = {group: result.of(**{by: group}) for group in groups}
        self._metrics = tuple(metrics or (SIZES_OF_ERRORS if numbers else _FIGURES))
        self._most = math.inf if numbers else 1.0  # of a gap
        for name in self._metrics:
            check_choice("metrics", name, SIZES_OF_ERRORS if numbers else SHARES)
        self.by_group: dict[Hashable, dict[str, Figure]] = {
            group: self._of(part) for group, part in self._parts.items()
        }
        self.overall = self._of(result) if by == "subgroup" else self._over_classes()

    def difference(self) -> dict[str, Figure]:
        """Return the difference of the largest and the smallest value of each metric.

        Returns
        -------
        dict
            Differences, at least 0, with intervals, by name.
        """
        return self._gaps("difference", lambda least, most: most - least)

    def ratio(self) -> dict[str, Figure]:
        """Return the ratio of the smallest and the largest value of each metric.

        Returns
        -------
        dict
            Ratios in [0, 1] with intervals, by name.
        """
        return self._gaps("ratio", lambda least, most: least / most if most > 0.0 else 1.0)

    def to_frame(self) -> Any:
        """Return a pandas frame with groups, overall values and largest gaps.

        Returns
        -------
        DataFrame
            One column per metric and "value", "low" or "high".

        Raises
        ------
        ImportError
            If pandas is not installed.
        """
        from pandas import DataFrame, MultiIndex

        rows = self._rows()
        columns = [(name, part) for name in self._metrics for part in ("value", "low", "high")]
        cells = [
            [cell for figure in row.values() for cell in (float(figure), *figure.interval)]
            for _, row in rows
        ]
        return DataFrame(cells, [key for key, _ in rows], MultiIndex.from_tuples(columns))

    def __repr__(self) -> str:
        lines = self._lines()
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        shown = ["  ".join(map(str.ljust, line, widths)).rstrip() for line in lines]
        return "\n".join(["PrivateMetricFrame", *shown])

    def _repr_html_(self) -> str:
        return html_table("Figures by group, with intervals", self._lines())

    def _lines(self) -> list[list[str]]:
        names = ["", *self._metrics]
        return [names, *([str(key), *map(repr, row.values())] for key, row in self._rows())]

    def _rows(self) -> list[tuple[Hashable, dict[str, Figure]]]:
        """Return rows with names; a group may have the same name as one added here."""
        gaps = ("largest difference", self.difference()), ("smallest ratio", self.ratio())
        return [*self.by_group.items(), ("overall", self.overall), *gaps]

    def _of(self, part: PrivateEvaluationResult | PrivateRegressionResult) -> dict[str, Figure]:
        return {name: getattr(part, name) for name in self._metrics}

    def _over_classes(self) -> dict[str, Figure]:
        found = {}
        for name in self._metrics:
            parts = [figures[name] for figures in self.by_group.values()]
            # Classes share rows. Whatever the dependence, the deviation of a mean is at most the
            # mean of the deviations.
            low, high = np.mean([part.interval for part in parts], axis=0)
            found[name] = Figure(float(np.mean(parts)), (low, high), name)
        return found

    def _gaps(self, kind: str, gap: Callable[[float, float], float]) -> dict[str, Figure]:
        each = 1.0 - (1.0 - next(iter(self._parts.values())).confidence) / len(self._parts)
        sure = [self._of(replace(part, confidence=each)) for part in self._parts.values()]
        found = {}
        for name in self._metrics:
            lows, highs = zip(*(figures[name].interval for figures in sure), strict=True)
            ends = gap(min(lows), max(highs)), gap(min(highs), max(lows))
            values = [float(figures[name]) for figures in sure]
            value = math.nan if any(map(math.isnan, values)) else gap(min(values), max(values))
            interval = max(0.0, min(ends)), min(self._most, max(ends))
            found[name] = Figure(value, interval, f"{kind} of {name}")
        return found
