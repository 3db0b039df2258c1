"""Figures by subgroup or by class, and the gaps between them."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from skdp.choices import GroupedBy
from skdp.metrics.intervals import Figure
from skdp.metrics.record import SHARES
from skdp.metrics.regression_result import SIZES_OF_ERRORS, PrivateRegressionResult
from skdp.metrics.result import PrivateEvaluationResult
from skdp.parameters import check_choice

_FIGURES = ("accuracy", "sensitivity", "specificity", "ppv", "prevalence")


class PrivateMetricFrame:
    """Figures of each subgroup, or of each of several classes; named as fairlearn's MetricFrame.

    Parameters
    ----------
    result : PrivateEvaluationResult or PrivateRegressionResult
        Of an evaluation with subgroups, or of more than two classes.
    metrics : sequence of str or None, default=None
        Names of figures in [0, 1] of the result, by default accuracy, sensitivity, specificity, PPV
        and prevalence; or of sizes of errors, by default all: mean, median, and root mean squared.
    by : {"subgroup", "label"}, default="subgroup"
        What the groups are: declared subgroups, or classes against all others.

    Attributes
    ----------
    overall : dict
        Figures of all rows by name; by label, means over classes (macro averages), whose interval
        is the mean of theirs.
    by_group : dict
        For each group, its figures by name; ``pandas.DataFrame(frame.by_group).T`` is a table.

    Notes
    -----
    All of it is post-processing of one release. Intervals of `by_group` hold each by itself; those
    of gaps are made of intervals that hold for all groups at once (Bonferroni), and so hold
    whichever groups turn out to be the best and the worst.

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
                f"the result has no groups by {by!r}: declare subgroups=[...] of the evaluation, "
                "or take by='label' for more than two classes."
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
        """Return the largest figure less the smallest, by name.

        Returns
        -------
        dict
            Figures of at least 0 with intervals.

        Examples
        --------
        >>> import numpy as np
        >>> from sklearn.dummy import DummyClassifier
        >>> from skdp.metrics import PrivateEvaluation, PrivateMetricFrame
        >>> X, sex = np.zeros((4000, 1)), np.repeat(["f", "m"], 2000)
        >>> y = (np.arange(4000) % np.where(sex == "f", 2, 4) == 0).astype(int)
        >>> model = DummyClassifier(strategy="constant", constant=0).fit(X, y)
        >>> result = PrivateEvaluation(subgroups=["f", "m"]).evaluate(model, X, y, subgroups=sex)
        >>> gap = PrivateMetricFrame(result, ["accuracy"]).difference()["accuracy"]
        >>> bool(0.2 < gap < 0.3)  # in truth 1/4
        True
        """
        return self._gaps("difference", lambda least, most: most - least)

    def ratio(self) -> dict[str, Figure]:
        """Return the smallest figure as a share of the largest, by name.

        Returns
        -------
        dict
            Figures in [0, 1] with intervals.
        """
        return self._gaps("ratio", lambda least, most: least / most if most > 0.0 else 1.0)

    def __repr__(self) -> str:
        lines = [f"  {group}: {figures!r}" for group, figures in self.by_group.items()]
        return "\n".join([f"PrivateMetricFrame, overall: {self.overall!r}", *lines])

    def _of(self, part: PrivateEvaluationResult | PrivateRegressionResult) -> dict[str, Figure]:
        return {name: getattr(part, name) for name in self._metrics}

    def _over_classes(self) -> dict[str, Figure]:
        found = {}
        for name in self._metrics:
            parts = [figures[name] for figures in self.by_group.values()]
            # Classes share their rows: whatever the dependence, deviations of a mean are at most
            # the mean of the deviations.
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
