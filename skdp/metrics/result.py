"""What an evaluation returns: released tables, figures that follow, and how both are shown."""

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

# Figures that are single numbers, and which of them are in [0, 1].
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
    """Mixin of figures that are shown by name below a heading."""

    @abstractmethod
    def figures(self) -> dict[str, Figure]:
        """Return figures by name."""

    @abstractmethod
    def _heading(self) -> str:
        """Say of what and for which price they are."""

    def __repr__(self) -> str:
        lines = [f"  {name}: {figure!r}" for name, figure in self.figures().items()]
        return "\n".join([f"{type(self).__name__}: {self._heading()}", *lines])

    def _repr_html_(self) -> str:
        rows = [(name, repr(figure)) for name, figure in self.figures().items()]
        return html_table(self._heading(), rows)


class EvaluationRecord(FiguresRecord):
    """Mixin of an evaluation's result: how it is shown and written down."""

    tables: ScoreTables
    privacy_spent_: PrivacySpent
    confidence: float
    threshold: float
    subgroup: Any
    label: Any

    @abstractmethod
    def of(self, subgroup: Any = None, label: Any = None) -> Self:
        """Return the figures of a part."""

    @abstractmethod
    def at(self, threshold: float) -> Self:
        """Return the figures at a declared threshold."""

    def figures(self) -> dict[str, Figure]:
        """Return all figures of the part and the threshold that this result stands for.

        Returns
        -------
        dict
            Figures by name. Of more than two classes there are two of all, accuracies; ``of`` has
            those of each class against the others.
        """
        names: tuple[str, ...] = _OF_ALL_CLASSES
        if self.label is not None or len(self.tables.classes) == 2:
            names = _OF_ONE_TABLE + (_OF_PROBABILITIES if self.tables.probabilities else ())
        return {name: getattr(self, name) for name in names}

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain, JSON-ready values: counts, and the figures of all parts."""
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
    """Return a label as a plain value, as text where it is none."""
    value = plain(value)
    return value if value is None or isinstance(value, str | int | float) else str(value)


def figure_to_dict(figure: Figure) -> dict[str, Any]:
    """Return a figure as plain values, None for what is not finite; a reason where it has one."""
    numbers = np.array([figure, *figure.interval]).tolist()
    value, low, high = (number if math.isfinite(number) else None for number in numbers)
    found: dict[str, Any] = {"value": value, "interval": [low, high]}
    return found | ({"reason": figure.reason} if figure.reason else {})


class Point(NamedTuple):
    """One point of a curve.

    Parameters
    ----------
    x : float
        Where it lies.
    y : Figure
        How high, with an interval for this point by itself.
    threshold : float
        The score that rows beyond it reach.

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
    """Figures of a model on private rows, each a float with an `interval`.

    All of them follow from `tables`, which were released once: reading them costs nothing more.
    Intervals are for the population that the rows were drawn from: each by itself holds its value
    with probability `confidence`, over the drawing of rows and the noise. Where the counts say
    nothing the interval is all of [0, 1].

    Parameters
    ----------
    tables : ScoreTables
        What was released: noisy counts of scores by label, and public numbers.
    privacy_spent_ : PrivacySpent
        The guarantee, its mechanism and its assumptions.
    confidence : float
        Probability of the intervals; ``dataclasses.replace`` changes it.
    threshold : float
        Declared threshold that figures of predictions are for; see `at`.
    subgroup, label : object or None
        Part of the rows, and class against the others, that figures are for; see `of`.

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
        """Return the figures at another declared threshold.

        Parameters
        ----------
        threshold : float
            One of the thresholds of the evaluation.

        Returns
        -------
        PrivateEvaluationResult
            The same tables, read at that threshold.
        """
        declared = self.tables.thresholds
        if threshold not in declared:
            raise ValueError(f"threshold must be one of the declared {declared}, got {threshold}.")
        return replace(self, threshold=float(threshold))

    def of(self, subgroup: Any = None, label: Any = None) -> Self:
        """Return the figures of a subgroup, or of one of more than two classes against the others.

        Parameters
        ----------
        subgroup : object or None, default=None
            A declared subgroup; None means all rows.
        label : object or None, default=None
            Of more than two classes, the one that counts as positive.

        Returns
        -------
        PrivateEvaluationResult
            The same tables, read for that part.
        """
        found = replace(self, subgroup=subgroup, label=label)
        if label is not None or len(self.tables.classes) == 2:
            self.tables.table(subgroup, label)
        return found

    @property
    def table(self) -> ScoreTable:
        """The table of label by score that figures follow from."""
        return self.tables.table(self.subgroup, self.label)

    @property
    def accuracy(self) -> Figure:
        """Share of rows whose label is predicted."""
        if not self._of_many:
            return self._share("accuracy")
        counts, covariance = self.tables.confusion(self.subgroup)
        right = np.eye(len(counts)).ravel()
        flat = counts.ravel()
        return ratio("accuracy", flat, covariance, right, np.ones_like(flat), self._z)

    @property
    def sensitivity(self) -> Figure:
        """Share of positive rows that are predicted to be (recall)."""
        return self._share("sensitivity")

    @property
    def specificity(self) -> Figure:
        """Share of negative rows that are predicted to be."""
        return self._share("specificity")

    @property
    def ppv(self) -> Figure:
        """Share of rows predicted positive that are (precision)."""
        return self._share("ppv")

    @property
    def npv(self) -> Figure:
        """Share of rows predicted negative that are."""
        return self._share("npv")

    @property
    def prevalence(self) -> Figure:
        """Share of rows that are positive."""
        return self._share("prevalence")

    @property
    def balanced_accuracy(self) -> Figure:
        """Mean of the shares of each class that are predicted."""
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
        """Area under the ROC curve: how often a positive row has the higher score."""
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
        """Mean of labels less mean of probabilities, in [-1, 1]; 0 is right."""
        return figures.calibration_in_the_large(self._probabilities, self._z)

    @property
    def calibration_slope(self) -> Figure:
        """Slope of labels on log odds, by logistic regression: 1 is right, below it is too sure.

        Log odds beyond the outermost edges of bins count as those, and of declared values as 6.
        Edges nearer than 6 leave open how far beyond they lie, up to 6. It is withheld where scores
        take few values that are not declared, or more than a quarter lies beyond.
        """
        return calibration.calibration_slope(self._probabilities, self._z)

    @property
    def expected_calibration_error(self) -> Figure:
        """Mean distance of rates from probabilities over ten cells; its interval is too wide."""
        return calibration.expected_calibration_error(self._probabilities, self._z)

    def calibration_curve(self, *, largest_width: float = 0.2) -> list[Point]:
        """Return the mean probability and the share of positives in at most ten cells.

        The interval is for the share. The mean is known to half a bin, so that scores of few values
        may seem off the diagonal by as much: name them in `score_values`.

        Parameters
        ----------
        largest_width : float, default=0.2
            Largest width of the interval of a share. Neighbouring cells join until all intervals
            are narrower; 1.01 keeps ten cells. The noisy counts alone decide.

        Returns
        -------
        list of Point
            Points from left to right; none where even one cell of all rows is too wide.
        """
        check_real("largest_width", largest_width, above=0.0)
        points = calibration.calibration_curve(self._probabilities, self._z, largest_width)
        return [Point(mean, observed, mean) for mean, observed in points]

    def roc_curve(self) -> list[Point]:
        """Return the rate of false positives and the sensitivity at every edge of bins."""
        return self._curve(lambda first: 1.0 - self._share("specificity", first), "sensitivity")

    def precision_recall_curve(self) -> list[Point]:
        """Return sensitivity (recall) and PPV (precision) at every edge of bins."""
        return self._curve(lambda first: self._share("sensitivity", first), "ppv")

    @property
    def confusion_matrix(self) -> np.ndarray:
        """Noisy counts of label by prediction, as released: not whole, below zero too."""
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
                "the model has decision_function and no predict_proba: its scores are no "
                "probabilities, and have no Brier score or calibration."
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
