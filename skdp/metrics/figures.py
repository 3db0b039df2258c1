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

# Why intervals reach as far as the unknown order of scores within bins allows.
FEW_VALUES = "scores take few values: name them in score_values="

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
    # Within spikes nobody knows the order of scores: positives may win all there, or lose all.
    negatives, positives = np.maximum(table.counts, 0.0)
    pairs = max(float(negatives.sum() * positives.sum()), 1.0)
    slack = 0.5 * float(negatives[table.spikes] @ positives[table.spikes]) / pairs
    low, high = figure.interval
    ends = max(0.0, low - slack), min(1.0, high + slack)
    return Figure(float(figure), ends, "roc_auc", reason_of(table))


def reason_of(table: ScoreTable) -> str:
    """Return what is to be said of figures that read the order of scores within bins."""
    return FEW_VALUES if table.concentrated else ""


def _auc(table: ScoreTable, spread: np.ndarray, z: float) -> tuple[float, Interval]:
    order = np.tri(len(spread), k=-1) + 0.5 * np.eye(len(spread))
    test = AreaTest(table, spread.T @ order @ spread)
    negatives, positives = np.maximum(table.counts, 0.0)
    pseudo = negatives / max(negatives.sum(), 1.0), positives / max(positives.sum(), 1.0)

    def variance(a: float) -> float:
        # One pseudo-row a class, placed like the other class: nothing is ever quite perfect.
        above, below = test.against(a)
        return test.variance(a) + float(pseudo[0] @ above**2 + pseudo[1] @ below**2)

    def of_rare(a: float) -> float:
        # Were the area a, so many rows would be on the wrong side as that takes.
        return variance(a) + test.rare(a, pseudo)

    ends = not_ruled_out(test.statistic, variance, z, least=test.least_variance())
    others = not_ruled_out(test.statistic, of_rare, z)
    interval = min(ends[0], others[0]), max(ends[1], others[1])
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

    def rare(self, a: float, pseudo: tuple[np.ndarray, np.ndarray]) -> float:
        """Return what sampling would add to `variance` if losses were as many as a says.

        A loss is how often a row is on the wrong side of those of the other class. Its squares add
        up to as large a part of the sum as they do among rows and one pseudo-row of each class.
        """
        added = 0.0
        sides = (
            (self._kernel, self._negatives, self._positives, pseudo[0]),
            (self._kernel.T, self._positives, self._negatives, pseudo[1]),
        )
        for wins, others, own, one in sides:
            every, rows = max(float(others.sum()), 1.0), np.maximum(own, 0.0)
            losses = np.clip(1.0 - wins @ others / every, 0.0, 1.0)
            part = float(((rows + one) @ losses**2) / max(float((rows + one) @ losses), 1e-12))
            expected = rows.sum() * ((1.0 - a) * part - (1.0 - a) ** 2)
            added += every**2 * (expected - float(rows @ (1.0 - losses - a) ** 2))
        return added

    def least_variance(self) -> float:
        """Return what noise alone adds, whatever the counts."""
        return _trace(self._noise1, self._kernel - 0.5, self._noise0)


def _trace(one: np.ndarray, wins: np.ndarray, other: np.ndarray) -> float:
    return float(((one @ wins) * (wins @ other)).sum())


def average_precision(table: ScoreTable, z: float) -> Figure:
    """Return the area under the precision-recall curve, by the delta method."""
    bins, name = table.bins, "average_precision"
    figure = widened(name, bins, lambda spread: _average_precision(table, spread, spread, z))
    if math.isnan(figure) or not table.spikes.any():
        return figure
    # Within spikes positives may be the first of all, or the last.
    upper, lower = bins.ordered(table.spikes)
    best, worst = (_average_precision(table, *pair, z) for pair in ((lower, upper), (upper, lower)))
    lows, highs = zip(figure.interval, best[1], worst[1], strict=True)
    return Figure(float(figure), (min(lows), min(1.0, max(highs))), name, reason_of(table))


def _average_precision(
    table: ScoreTable, of_negatives: np.ndarray, of_positives: np.ndarray, z: float
) -> tuple[float, Interval]:
    """Mean precision over positives; at the top, where counts are few, that of all of the top."""
    size, cells = len(of_positives), table.bins.count
    # Rows of a cell lie above half of the others in it, on average, but atoms are ties.
    order = np.tri(size).T - (0.0 if table.bins.atoms is not None else 0.5) * np.eye(size)
    above = [order @ of_negatives, order @ of_positives]
    negatives, positives = table.counts
    own = of_positives @ positives
    both = np.hstack(above)
    deviation = np.sqrt(np.maximum(((both @ table.covariance) * both).sum(axis=1), 0.0))
    every = above[0] @ negatives + above[1] @ positives
    few = every < 4.0 * deviation + 4.0
    first = size - 1 if not few.any() else int(np.flatnonzero(few).min()) - 1
    total = positives.sum()
    if first < 0 or total <= 0.0:
        return math.nan, (0.0, 1.0)
    for part in above:
        part[first:] = part[first]
    every = np.where(np.arange(size) >= first, every[first], every)
    precision = (above[1] @ positives) / every
    # There it may rise from that mean up to 1, for as many positives as noise allows.
    top = np.concatenate([np.zeros(cells), of_positives[first + 1 :].sum(axis=0)])
    share = float(top @ table.counts.ravel()) / total
    reach = z * math.sqrt(max(0.0, top @ table.covariance @ top)) / total
    rise = max(0.0, 1.0 - precision[first])
    value = float(own @ precision / total)
    # Gradients by positives and by negatives of the sum of own * precision.
    weights = own / every
    by_negative = -(weights * precision) @ above[0]
    by_positive = precision @ of_positives + (weights * (1.0 - precision)) @ above[1]
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
    name: str,
    table: ScoreTable,
    costs: Callable[..., np.ndarray],
    known: tuple[np.ndarray, float, float] | None,
    z: float,
    limits: Interval,
) -> Figure:
    """Return the mean of costs that are given for label and score.

    What is `known` are costs of the middles of bins, and what offsets within bins add to their sum,
    with the variance of its noise; else the density within bins tells.
    """

    def figure(spread: np.ndarray) -> tuple[float, Interval]:
        moments = (
            np.concatenate([_moment(table, costs, label, power) @ spread for label in (0, 1)])
            for power in (1, 2)
        )
        cost, square = moments
        offset, variance_of_offset = 0.0, 0.0
        if known is not None:
            cost, offset, variance_of_offset = known
        counts, total = table.counts.ravel(), table.counts.sum()
        kept = np.maximum(counts, 0.0)

        def variance(a: float) -> float:
            direction = cost - a
            # One pseudo-row of the largest cost: rows that cost much may be missing by chance.
            sampling = kept @ (square - 2.0 * a * cost + a**2) + 1.0
            noise = direction @ table.covariance @ direction + variance_of_offset
            return float(sampling + noise)

        interval = not_ruled_out(lambda a: float((cost - a) @ counts) + offset, variance, z, limits)
        value = (float(cost @ counts) + offset) / total if total > 0.0 else math.nan
        return float(np.clip(value, *limits)), interval

    return widened(name, table.bins, figure, limits)


def _moment(
    table: ScoreTable, costs: Callable[..., np.ndarray], label: int, power: int
) -> np.ndarray:
    """Return means over cells of a power of costs (Simpson's rule is exact for cubes)."""
    low, high = table.bins.parts
    ends = (costs(label, at) ** power for at in (low, 0.5 * (low + high), high))
    first, middle, last = ends
    return (first + 4.0 * middle + last) / 6.0


def brier_score(table: ScoreTable, z: float) -> Figure:
    """Return the mean squared distance of scores from labels."""
    known = None
    if table.offsets is not None and table.offset_variances is not None:
        middle, half = table.bins.middles
        at_middles = np.concatenate([middle**2 + half**2, (1.0 - middle) ** 2 + half**2])
        known = at_middles, float(table.offsets[1]), float(table.offset_variances[1])
    return mean_of_cells("brier_score", table, lambda y, p: (y - p) ** 2, known, z, (0.0, 1.0))


def calibration_in_the_large(table: ScoreTable, z: float) -> Figure:
    """Return the mean of label less score."""
    known = None
    if table.offsets is not None and table.offset_variances is not None:
        middle, _ = table.bins.middles
        at_middles = np.concatenate([-middle, 1.0 - middle])
        known = at_middles, -float(table.offsets[0]), float(table.offset_variances[0])
    name, limits = "calibration_in_the_large", (-1.0, 1.0)
    return mean_of_cells(name, table, lambda y, p: y - p, known, z, limits)
