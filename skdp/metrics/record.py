"""An evaluation's figures as text, as tables in notebooks and as plain values."""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import Any, Self

import numpy as np

from skdp.metrics.figures import FEW_VALUES
from skdp.metrics.intervals import Figure
from skdp.metrics.release import ScoreTables
from skdp.parameters import plain
from skdp.reporting.privacy_spent import PrivacySpent
from skdp.reporting.records import JsonRecord, html_table

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
