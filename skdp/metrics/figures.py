"""Figures of one table of scores by label, each with an interval; all of it is post-processing.

Intervals are for the population that the rows were drawn from: they count sampling and noise. A
table of two labels is written flat, label 0 first.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from skdp.metrics.intervals import Figure, Interval, not_ruled_out, ratio, widened
from skdp.scores.bins import ScoreTable

# What is counted inside what, from label and prediction.
_SHARES: dict[str, Callable[[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]] = {
    "accuracy": lambda y, p: (y == p, y | ~y),
    "sensitivity": lambda y, p: (y & p, y),
    "specificity": lambda y, p: (~y & ~p, ~y),
    "ppv": lambda y, p: (y & p, p),
    "npv": lambda y, p: (~y & ~p, ~p),
    "prevalence": lambda y, p: (y, y | ~y),
}


def share(name: str, table: ScoreTable, first: int, z: float) -> Figure:
    """Return a share of rows, with the first bin that is positive at a threshold."""
    label = np.repeat([False, True], table.bins.count)
    predicted = np.tile(np.arange(table.bins.count) >= first, 2)
    inside, within = _SHARES[name](label, predicted)
    flat = table.counts.ravel()
    return ratio(name, flat, table.covariance, inside.astype(float), within.astype(float), z)


def auc(table: ScoreTable, z: float) -> Figure:
    """Return the area under the ROC curve: bilinear in counts, with an unbiased variance (T4)."""
    figure = widened("roc_auc", table.bins, lambda spread: _auc(table, spread, z))
    if table.bins.atoms is not None:
        return figure
    # How scores lie in the outermost bins nobody knows: they may win all there, or lose all.
    negatives, positives = np.maximum(table.counts, 0.0)
    pairs = max(float(negatives.sum() * positives.sum()), 1.0)
    slack = 0.5 * float(negatives[[0, -1]] @ positives[[0, -1]]) / pairs
    low, high = figure.interval
    return Figure(float(figure), (max(0.0, low - slack), min(1.0, high + slack)), "roc_auc")


def _auc(table: ScoreTable, spread: np.ndarray, z: float) -> tuple[float, Interval]:
    order = np.tri(len(spread), k=-1) + 0.5 * np.eye(len(spread))
    test = AreaTest(table, spread.T @ order @ spread)
    negatives, positives = np.maximum(table.counts, 0.0)
    pseudo = negatives / max(negatives.sum(), 1.0), positives / max(positives.sum(), 1.0)

    def variance(a: float) -> float:
        # One pseudo-row a class, placed like the other class: nothing is ever quite perfect.
        above, below = test.against(a)
        return test.variance(a) + float(pseudo[0] @ above**2 + pseudo[1] @ below**2)

    interval = not_ruled_out(test.statistic, variance, z, least=test.least_variance())
    slope = test.statistic(0.0) - test.statistic(1.0)
    informed = slope > 0.0 and table.counts.sum(axis=1).min() > 0.0
    value = test.statistic(0.0) / slope if informed else math.nan
    return float(np.clip(value, 0.0, 1.0)), interval


class AreaTest:
    """The test that an area under the ROC curve is a, by how often positives win less a."""

    def __init__(self, table: ScoreTable, kernel: np.ndarray) -> None:
        self._negatives, self._positives = table.counts
        self._kernel, half = kernel, len(kernel)
        self._noise0 = table.covariance[:half, :half]
        self._shared = table.covariance[half:, :half]
        self._noise1 = table.covariance[half:, half:]

    def statistic(self, a: float) -> float:
        """Return wins less a; its mean is 0 if a is the area."""
        wins = self._kernel - a
        return float(self._positives @ wins @ self._negatives - (wins * self._shared).sum())

    def against(self, a: float) -> tuple[np.ndarray, np.ndarray]:
        """Return wins less a of one positive, and over one negative, in each bin."""
        wins = self._kernel - a
        return wins @ self._negatives, self._positives @ wins

    def variance(self, a: float) -> float:
        """Return an unbiased estimate of the statistic's variance if a is the area."""
        above, below = self.against(a)
        spread1 = self._noise1 + np.diag(self._positives)
        spread0 = self._noise0 + np.diag(self._negatives)
        twice = _trace(spread1, self._kernel - a, spread0)
        both = 2.0 * above @ self._shared @ below
        return float(above @ spread1 @ above + below @ spread0 @ below + both) - twice

    def least_variance(self) -> float:
        """Return what noise alone adds, whatever the counts."""
        return _trace(self._noise1, self._kernel - 0.5, self._noise0)


def _trace(one: np.ndarray, wins: np.ndarray, other: np.ndarray) -> float:
    return float(((one @ wins) * (wins @ other)).sum())


def average_precision(table: ScoreTable, z: float) -> Figure:
    """Return the area under the precision-recall curve, by the delta method."""
    return widened(
        "average_precision", table.bins, lambda spread: _average_precision(table, spread, z)
    )


def _average_precision(table: ScoreTable, spread: np.ndarray, z: float) -> tuple[float, Interval]:
    """Mean precision over positives; at the top, where counts are few, that of all of the top."""
    size, cells = len(spread), table.bins.count
    # Rows of a cell lie above half of the others in it, on average, but atoms are ties.
    above = np.tri(size).T - (0.0 if table.bins.atoms is not None else 0.5) * np.eye(size)
    above = above @ spread
    negatives, positives = table.counts
    own = spread @ positives
    both = np.hstack([above, above])
    deviation = np.sqrt(np.maximum(((both @ table.covariance) * both).sum(axis=1), 0.0))
    every = above @ (negatives + positives)
    few = every < 4.0 * deviation + 4.0
    first = size - 1 if not few.any() else int(np.flatnonzero(few).min()) - 1
    total = positives.sum()
    if first < 0 or total <= 0.0:
        return math.nan, (0.0, 1.0)
    above[first:], every = above[first], np.where(np.arange(size) >= first, every[first], every)
    precision = (above @ positives) / every
    # There it may rise from that mean up to 1, for as many positives as noise allows.
    top = np.concatenate([np.zeros(cells), spread[first + 1 :].sum(axis=0)])
    share = float(top @ table.counts.ravel()) / total
    reach = z * math.sqrt(max(0.0, top @ table.covariance @ top)) / total
    rise = max(0.0, 1.0 - precision[first])
    value = float(own @ precision / total)
    # Gradients by positives and by negatives of the sum of own * precision.
    weights = own / every
    by_negative = -(weights * precision) @ above
    by_positive = precision @ spread + weights @ above + by_negative
    gradient = np.concatenate([by_negative, by_positive])
    positive = np.repeat([0.0, 1.0], cells)
    counts = np.maximum(table.counts.ravel(), 0.0)

    def variance(a: float) -> float:
        direction = gradient - a * positive
        return (
            float(direction**2 @ counts + direction @ table.covariance @ direction) + (1 - a) ** 2
        )

    low, high = not_ruled_out(lambda a: (value - a) * total, variance, z)
    shown = float(np.clip(value + 0.5 * rise * max(share, 0.0), 0.0, 1.0))
    return shown, (min(low, shown), max(shown, high + rise * min(1.0, share + reach)))


def mean_of_cells(
    name: str, table: ScoreTable, costs: Callable[..., np.ndarray], z: float, limits: Interval
) -> Figure:
    """Return the mean of costs that are given for label and score."""

    def figure(spread: np.ndarray) -> tuple[float, Interval]:
        cost, square = (
            np.concatenate([moment(label) @ spread for label in (0, 1)])
            for moment in (
                lambda label: _moment(table, lambda p: costs(label, p)),
                lambda label: _moment(table, lambda p: costs(label, p) ** 2),
            )
        )
        counts, total = table.counts.ravel(), table.counts.sum()
        kept = np.maximum(counts, 0.0)

        def variance(a: float) -> float:
            direction = cost - a
            sampling = kept @ (square - 2.0 * a * cost + a**2)
            return float(sampling + direction @ table.covariance @ direction)

        interval = not_ruled_out(lambda a: float((cost - a) @ counts), variance, z, limits)
        value = float(cost @ counts) / total if total > 0.0 else math.nan
        return float(np.clip(value, *limits)), interval

    return widened(name, table.bins, figure, limits)


def _moment(table: ScoreTable, function: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
    """Return means of a square polynomial over cells (Simpson's rule is exact for cubes)."""
    low, high = table.bins.parts
    return (function(low) + 4.0 * function(0.5 * (low + high)) + function(high)) / 6.0


def brier_score(table: ScoreTable, z: float) -> Figure:
    """Return the mean squared distance of scores from labels."""
    return mean_of_cells("brier_score", table, lambda y, p: (y - p) ** 2, z, (0.0, 1.0))


def calibration_in_the_large(table: ScoreTable, z: float) -> Figure:
    """Return the mean of label less score."""
    limits = (-1.0, 1.0)
    return mean_of_cells("calibration_in_the_large", table, lambda y, p: y - p, z, limits)
