"""Figures of one table of scores by label, each with an interval; all of it is post-processing.

Intervals are for the population that the rows were drawn from: they count sampling and noise. A
table of two labels is written flat, label 0 first.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from skdp.metrics.intervals import Figure, Interval, not_ruled_out, ratio, widened
from skdp.metrics.release import ScoreTable

# What is counted inside what, from label and prediction.
_SHARES: dict[str, Callable[[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]] = {
    "accuracy": lambda y, p: (y == p, y | ~y),
    "sensitivity": lambda y, p: (y & p, y),
    "specificity": lambda y, p: (~y & ~p, ~y),
    "ppv": lambda y, p: (y & p, p),
    "npv": lambda y, p: (~y & ~p, ~p),
    "prevalence": lambda y, p: (y, y | ~y),
    "predicted_prevalence": lambda y, p: (p, y | ~y),
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
    return widened("roc_auc", table.bins, lambda spread: _auc(table, spread, z))


def _auc(table: ScoreTable, spread: np.ndarray, z: float) -> tuple[float, Interval]:
    size = len(spread)
    order = np.tri(size, k=-1) + 0.5 * np.eye(size)
    kernel = spread.T @ order @ spread
    negatives, positives = table.counts
    s00, s01, s11 = _blocks(table.covariance)
    n0, n1 = negatives.sum(), positives.sum()
    flat = np.ones_like(kernel)
    spread1, spread0 = s11 + np.diag(positives), s00 + np.diag(negatives)
    # One pseudo-row a class, placed like the other class: nothing is ever quite perfect.
    pseudo1 = np.maximum(negatives, 0.0) / max(np.maximum(negatives, 0.0).sum(), 1.0)
    pseudo0 = np.maximum(positives, 0.0) / max(np.maximum(positives, 0.0).sum(), 1.0)

    def statistic(a: float) -> float:
        against = kernel - a * flat
        return float(positives @ against @ negatives - (against * s01.T).sum())

    def variance(a: float) -> float:
        against = kernel - a * flat
        above, below = against @ negatives, against.T @ positives
        doubled = ((spread1 @ against) * (against @ spread0)).sum()
        return float(
            above @ spread1 @ above
            + below @ spread0 @ below
            + 2.0 * above @ s01.T @ below
            - doubled
            + pseudo1 @ above**2
            + pseudo0 @ below**2
        )

    half = kernel - 0.5 * flat
    least = float(((s11 @ half) * (half @ s00)).sum())
    interval = not_ruled_out(statistic, variance, z, least=least)
    slope = statistic(0.0) - statistic(1.0)
    value = statistic(0.0) / slope if slope > 0.0 and min(n0, n1) > 0.0 else math.nan
    return float(np.clip(value, 0.0, 1.0)), interval


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
    deviation = np.sqrt(np.maximum(np.einsum("ij,jk,ik->i", both, table.covariance, both), 1e-12))
    every = above @ (negatives + positives)
    few = every < 4.0 * deviation + 4.0
    first = size - 1 if not few.any() else int(np.flatnonzero(few).min()) - 1
    total = positives.sum()
    if first < 0 or total <= 0.0:
        return math.nan, (0.0, 1.0)
    above[first:], every = above[first], np.where(np.arange(size) >= first, every[first], every)
    precision = (above @ positives) / every
    # There it may rise from that mean up to 1.
    missed = max(0.0, own[first + 1 :].sum() / total) * max(0.0, 1.0 - precision[first])
    value = float(own @ precision / total)
    # Gradients by positives and by negatives of the sum of own * precision.
    weights = own / every
    by_negative = -(weights * precision) @ above
    by_positive = precision @ spread + weights @ above + by_negative
    gradient = np.concatenate([by_negative, by_positive])
    positive = np.concatenate([np.zeros(cells), np.ones(cells)])
    counts = np.maximum(table.counts.ravel(), 0.0)

    def variance(a: float) -> float:
        direction = gradient - a * positive
        return (
            float(direction**2 @ counts + direction @ table.covariance @ direction) + (1 - a) ** 2
        )

    interval = not_ruled_out(lambda a: (value - a) * total, variance, z)
    low, high = interval
    return float(np.clip(value + 0.5 * missed, 0.0, 1.0)), (low, high + missed)


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


def _blocks(covariance: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    half = len(covariance) // 2
    return covariance[:half, :half], covariance[:half, half:], covariance[half:, half:]
