"""Result of an evaluation: released tables, metrics computed from them, and their display."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Self

import numpy as np

from skdp.accounting.privacy_spent import PrivacySpent
from skdp.accounting.records import JsonRecord, html_table
from skdp.base.parameters import check_real, plain
from skdp.metrics import calibration, figures
from skdp.metrics.figures import FEW_VALUES, Figure, average, quantile, ratio
from skdp.metrics.release import ScoreTables
from skdp.plans.scores import ScoreTable

# Metrics that are single numbers, and those in [0, 1].
_OF_ALL_CLASSES = ("accuracy", "balanced_accuracy")
_OF_ONE_TABLE = (
    *_OF_ALL_CLASSES,
    *("sensitivity", "specificity", "ppv", "npv", "prevalence", "roc_auc", "average_precision"),
)
_OF_PROBABILITIES = (
    *("brier_score", "calibration_in_the_large", "calibration_slope"),
    "expected_calibration_error",
)
FIGURES = _OF_ONE_TABLE + _OF_PROBABILITIES
SHARES = (*_OF_ONE_TABLE, "brier_score", "expected_calibration_error")


class FiguresRecord(JsonRecord):
    """Mixin of results that show metrics by name below a heading."""

    @abstractmethod
    def figures(self) -> dict[str, Figure]:
        """Return metrics by name."""

    @abstractmethod
    def _heading(self) -> str:
        """Return a heading with the subject and the privacy cost."""

    def __repr__(self) -> str:
        lines = [f"  {name}: {figure!r}" for name, figure in self.figures().items()]
        return "\n".join([f"{type(self).__name__}: {self._heading()}", *lines])

    def _repr_html_(self) -> str:
        rows = [(name, repr(figure)) for name, figure in self.figures().items()]
        return html_table(self._heading(), rows)


class EvaluationRecord(FiguresRecord):
    """Mixin that displays and exports the result of an evaluation."""

    tables: ScoreTables
    privacy_spent_: PrivacySpent
    confidence: float
    threshold: float
    subgroup: Any
    label: Any

    @abstractmethod
    def of(self, subgroup: Any = None, label: Any = None) -> Self:
        """Return the metrics of a part."""

    @abstractmethod
    def at(self, threshold: float) -> Self:
        """Return the metrics at a declared threshold."""

    def figures(self) -> dict[str, Figure]:
        """Return all metrics of this result's part and threshold.

        Returns
        -------
        dict
            Metrics by name. With more than two classes, these are the two accuracies of all
            classes; ``of`` has the metrics of each class against the others.
        """
        names: tuple[str, ...] = _OF_ALL_CLASSES
        if self.label is not None or len(self.tables.classes) == 2:
            names = _OF_ONE_TABLE + (_OF_PROBABILITIES if self.tables.probabilities else ())
        return {name: getattr(self, name) for name in names}

    def to_dict(self) -> dict[str, Any]:
        """Return counts and the metrics of all parts as plain, JSON-ready values."""
        tables, classes = self.tables, self.tables.classes.tolist()
        edges = [bins.edges.tolist() for bins in tables.bins]
        parts = [
            self.of(subgroup, label).at(threshold)
            for subgroup in (None, *(tables.subgroups or ()))
            for label in (None, *(classes if len(classes) > 2 else ()))
            for threshold in tables.thresholds
        ]
        return {
            "n": tables.n,
            "classes": [plain_label(label) for label in classes],
            "confidence": self.confidence,
            "edges": edges if len(edges) > 1 else edges[0],
            "counts": tables.counts.tolist(),
            "figures": [
                {
                    **{name: plain_label(getattr(part, name)) for name in ("subgroup", "label")},
                    "threshold": part.threshold,
                    **{name: figure_to_dict(figure) for name, figure in part.figures().items()},
                }
                for part in parts
            ],
            "privacy_spent": self.privacy_spent_.to_dict(),
        }

    def _heading(self) -> str:
        of = [f"{name} {getattr(self, name)!r}" for name in ("subgroup", "label")]
        parts = "".join(f"{text}, " for text in of if not text.endswith(" None"))
        one_table = self.label is not None or len(self.tables.classes) == 2
        if one_table and self.tables.table(self.subgroup, self.label).concentrated:
            parts = f"{FEW_VALUES}; {parts}"
        return (
            f"{parts}n = {self.tables.n}, threshold {self.threshold:g}, "
            f"{100.0 * self.confidence:g} % intervals, {self.privacy_spent_!r}"
        )


def plain_label(value: Any) -> Any:
    """Return a label as a plain value, or else as text."""
    value = plain(value)
    return value if value is None or isinstance(value, str | int | float) else str(value)


def figure_to_dict(figure: Figure) -> dict[str, Any]:
    """Return value, interval and any reason of a metric; values that are not finite become None."""
    numbers = np.array([figure, *figure.interval]).tolist()
    value, low, high = (number if math.isfinite(number) else None for number in numbers)
    found: dict[str, Any] = {"value": value, "interval": [low, high]}
    return found | ({"reason": figure.reason} if figure.reason else {})


class Point(NamedTuple):
    """Point of a curve.

    Parameters
    ----------
    x : float
        Horizontal coordinate.
    y : Figure
        Vertical coordinate, with an interval that is valid for this point by itself.
    threshold : float
        Score threshold at the point: rows beyond it have at least this score.

    Examples
    --------
    >>> from skdp.metrics import Figure, Point
    >>> point = Point(x=0.1, y=Figure(0.6, (0.55, 0.65), "sensitivity"), threshold=0.5)
    >>> point.x, point.y.interval
    (0.1, (0.55, 0.65))
    """

    x: float
    y: Figure
    threshold: float


@dataclass(frozen=True, eq=False, repr=False)
class PrivateEvaluationResult(EvaluationRecord):
    """Metrics of a classifier on private rows, each a float with an `interval`.

    All metrics are computed from `tables`, which were released once: reading them is free. Each
    interval by itself contains the value of the population with probability `confidence`, over the
    sampling of rows and the noise. Where noise hides the counts, the interval is all of [0, 1].

    Parameters
    ----------
    tables : ScoreTables
        Released noisy counts of scores by label, and public numbers.
    privacy_spent_ : PrivacySpent
        Guarantee, mechanism and assumptions.
    confidence : float
        Coverage probability of the intervals; change it with ``dataclasses.replace``.
    threshold : float
        Declared threshold of the metrics of predictions; see `at`.
    subgroup, label : object or None
        Subgroup of the metrics, and class against the others; see `of`.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LogisticRegression
    >>> from skdp.metrics import PrivateEvaluation
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(4000, 2))
    >>> y = (X[:, 0] + rng.normal(size=4000) > 0).astype(int)
    >>> public_model = LogisticRegression().fit(X[:500], y[:500])  # stands for a private fit
    >>> result = PrivateEvaluation(epsilon=1.0, thresholds=(0.5, 0.8)).evaluate(public_model, X, y)
    >>> result.at(0.8).specificity > result.specificity  # read from what was released already
    True
    """

    tables: ScoreTables
    privacy_spent_: PrivacySpent
    confidence: float
    threshold: float
    subgroup: Any = None
    label: Any = None

    def at(self, threshold: float) -> Self:
        """Return the metrics at another declared threshold.

        Parameters
        ----------
        threshold : float
            One of the thresholds of the evaluation.

        Returns
        -------
        PrivateEvaluationResult
            Result with the metrics at that threshold.
        """
        declared = self.tables.thresholds
        if threshold not in declared:
            raise ValueError(f"threshold must be one of the declared {declared}, got {threshold}.")
        return replace(self, threshold=float(threshold))

    def of(self, subgroup: Any = None, label: Any = None) -> Self:
        """Return the metrics of a subgroup, or of one class against the others.

        Parameters
        ----------
        subgroup : object or None, default=None
            Declared subgroup; None means all rows.
        label : object or None, default=None
            Class that counts as positive, with more than two classes. With two classes use None.

        Returns
        -------
        PrivateEvaluationResult
            Result with the metrics of that part.
        """
        found = replace(self, subgroup=subgroup, label=label)
        if label is not None or len(self.tables.classes) == 2:
            self.tables.table(subgroup, label)
        return found

    @property
    def table(self) -> ScoreTable:
        """Table of labels by scores behind the metrics."""
        return self.tables.table(self.subgroup, self.label)

    @property
    def accuracy(self) -> Figure:
        """Share of rows with a correct prediction."""
        if not self._of_many:
            return self._share("accuracy")
        counts, covariance = self.tables.confusion(self.subgroup)
        right = np.eye(len(counts)).ravel()
        flat = counts.ravel()
        return ratio("accuracy", flat, covariance, right, np.ones_like(flat), self._z)

    @property
    def sensitivity(self) -> Figure:
        """Share of positive rows that are predicted positive (recall)."""
        return self._share("sensitivity")

    @property
    def specificity(self) -> Figure:
        """Share of negative rows that are predicted negative."""
        return self._share("specificity")

    @property
    def ppv(self) -> Figure:
        """Share of rows predicted positive that are positive (precision)."""
        return self._share("ppv")

    @property
    def npv(self) -> Figure:
        """Share of rows predicted negative that are negative."""
        return self._share("npv")

    @property
    def prevalence(self) -> Figure:
        """Share of rows that are positive."""
        return self._share("prevalence")

    @property
    def balanced_accuracy(self) -> Figure:
        """Mean over classes of the share of rows with a correct prediction."""
        if not self._of_many:
            return average("balanced_accuracy", [self.sensitivity, self.specificity])
        counts, covariance = self.tables.confusion(self.subgroup)
        recalls = []
        for row in np.eye(len(counts)):
            own, within = np.outer(row, row).ravel(), np.outer(row, np.ones_like(row)).ravel()
            recalls.append(ratio("recall", counts.ravel(), covariance, own, within, self._z))
        return average("balanced_accuracy", recalls)

    @property
    def roc_auc(self) -> Figure:
        """Area under the ROC curve: probability that a positive row has the higher score."""
        return figures.auc(self.table, self._z)

    @property
    def average_precision(self) -> Figure:
        """Area under the precision-recall curve."""
        return figures.average_precision(self.table, self._z)

    @property
    def brier_score(self) -> Figure:
        """Mean squared distance of probabilities from labels."""
        return figures.brier_score(self._probabilities, self._z)

    @property
    def calibration_in_the_large(self) -> Figure:
        """Mean of labels minus mean of probabilities, in [-1, 1]; 0 is best."""
        return figures.calibration_in_the_large(self._probabilities, self._z)

    @property
    def calibration_slope(self) -> Figure:
        """Slope of labels on log odds, by logistic regression; 1 is best, less is overconfident.

        Log odds beyond the outermost edges of bins count as the edge (for declared values: as 6).
        If an edge is nearer than 6, the interval allows for scores up to 6. The slope is withheld
        if scores take few undeclared values, or if more than a quarter lies beyond such an edge.
        """
        return calibration.calibration_slope(self._probabilities, self._z)

    @property
    def expected_calibration_error(self) -> Figure:
        """Mean distance of rates from probabilities in ten cells, with a wide interval."""
        return calibration.expected_calibration_error(self._probabilities, self._z)

    def calibration_curve(self, *, largest_width: float = 0.2) -> list[Point]:
        """Return the mean probability and the share of positives in at most ten cells.

        The interval is for the share. The mean is accurate to half a bin. Scores with few values
        may therefore seem that far from the diagonal: declare them in `score_values`.

        Parameters
        ----------
        largest_width : float, default=0.2
            Largest width of the interval of a share. Neighbouring cells are merged until all
            intervals are narrower, based only on the noisy counts. 1.01 preserves ten cells.

        Returns
        -------
        list of Point
            Points from left to right; empty if the interval of all rows together is too wide.
        """
        check_real("largest_width", largest_width, above=0.0)
        points = calibration.calibration_curve(self._probabilities, self._z, largest_width)
        return [Point(mean, observed, mean) for mean, observed in points]

    def roc_curve(self) -> list[Point]:
        """Return the false-positive rate and the sensitivity at every edge of bins."""
        return self._curve(lambda first: 1.0 - self._share("specificity", first), "sensitivity")

    def precision_recall_curve(self) -> list[Point]:
        """Return sensitivity (recall) and PPV (precision) at every edge of bins."""
        return self._curve(lambda first: self._share("sensitivity", first), "ppv")

    @property
    def confusion_matrix(self) -> np.ndarray:
        """Noisy counts of labels by predictions; they may be fractions or negative."""
        if self._of_many:
            return self.tables.confusion(self.subgroup)[0]
        counts, first = self.table.counts, self._first
        return np.stack([counts[:, :first].sum(axis=1), counts[:, first:].sum(axis=1)], axis=1)

    @property
    def _of_many(self) -> bool:
        return self.label is None and len(self.tables.classes) > 2

    @property
    def _z(self) -> float:
        return quantile(self.confidence)

    @property
    def _first(self) -> int:
        bins = self.table.bins
        return bins.first_positive[bins.thresholds.index(self.threshold)]

    @property
    def _probabilities(self) -> ScoreTable:
        if not self.tables.probabilities:
            raise ValueError(
                "the model has decision_function but not predict_proba: its scores are no "
                "probabilities, and Brier score and calibration are not available."
            )
        return self.table

    def _share(self, name: str, first: int | None = None) -> Figure:
        return figures.share(name, self.table, self._first if first is None else first, self._z)

    def _curve(self, across: Any, up: str) -> list[Point]:
        lower = self.table.bins.lower_ends
        return [
            Point(float(across(first)), self._share(up, first), float(lower[first]))
            for first in range(self.table.bins.count - 1, -1, -1)
        ]
