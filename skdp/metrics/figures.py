"""Metrics of one table of scores by label, each with an interval.

Intervals are for the population of the rows: they cover sampling and noise. A table of two labels
is flattened, label 0 first.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from scipy.special import ndtri

from skdp.plans.scores import ScoreBins, ScoreTable

Interval = tuple[float, float]
# Reason for a metric without a value.
_HIDDEN = "withheld: noise hides it"


class Figure(float):
    """Number with an interval for its value in the population.

    Parameters
    ----------
    value : float
        Value of the metric; NaN if it is withheld.
    interval : tuple of two floats
        Values that sampling and noise do not exclude.
    name : str
        Name of the metric.
    reason : str, default=""
        Reason why the value is withheld, or why the interval is wider than noise and sampling
        require.

    Examples
    --------
    >>> from skdp.metrics import Figure
    >>> accuracy = Figure(0.83, interval=(0.81, 0.85), name="accuracy")
    >>> accuracy, accuracy > 0.8
    (0.83 [0.81, 0.85], True)
    """

    name: str
    interval: Interval
    reason: str = ""

    def __new__(cls, value: float, interval: Interval, name: str, reason: str = "") -> Figure:
        """Create the float with its interval."""
        figure = super().__new__(cls, value)
        figure.name, figure.interval = name, (float(interval[0]), float(interval[1]))
        figure.reason = reason or (_HIDDEN if math.isnan(value) else "")
        return figure

    def __getnewargs__(self) -> tuple[float, Interval, str, str]:  # type: ignore[override]
        return float(self), self.interval, self.name, self.reason

    def __repr__(self) -> str:
        low, high = self.interval
        because = f" ({self.reason})" if self.reason else ""
        return f"{float(self):.4g} [{low:.4g}, {high:.4g}]{because}"

    @property
    def width(self) -> float:
        """Width of the interval."""
        return self.interval[1] - self.interval[0]


def quantile(confidence: float) -> float:
    """Return the half width of a two-sided interval in standard deviations."""
    return float(ndtri(0.5 + 0.5 * confidence))


def not_ruled_out(
    statistic: Callable[[float], float],
    variance: Callable[[float], float],
    z: float,
    limits: Interval = (0.0, 1.0),
    least: float = 0.0,
) -> Interval:
    """Return the hull of the root and of the set ``statistic^2 <= z^2 max(variance, least)``.

    The statistic is a decreasing line, and the variance a parabola: three points determine each.
    A set or a root beyond the limits is cut there (Fieller).
    """
    low, high = limits
    points = np.array([low, 0.5 * (low + high), high])
    line = np.array([statistic(point) for point in points])
    parabola = np.array([variance(point) for point in points])
    fall = line[0] - line[2]
    if not fall > 0.0:  # noise leaves nothing to divide by
        return limits
    # The root is consistent with the statistic for any variance: the set is never empty.
    ends = [low + float(np.clip(line[0] / fall, 0.0, 1.0)) * (high - low)]
    for spread in (parabola, np.full(3, least)) if least > 0.0 else (parabola,):
        ends += _where_negative(line**2 - z**2 * spread, low, high)
    return min(ends), max(ends)


def _where_negative(values: np.ndarray, low: float, high: float) -> list[float]:
    """Return the ends of the set where a parabola, given at both ends and halfway, is at most 0."""
    at_low, middle, at_high = values.tolist()
    second = 2.0 * (at_low - 2.0 * middle + at_high)
    first = at_high - at_low - second
    root = first**2 - 4.0 * second * at_low
    found = [0.0] * (at_low <= 0.0) + [1.0] * (at_high <= 0.0)
    if root >= 0.0:
        # The form without cancellation.
        half = -0.5 * (first + math.copysign(math.sqrt(root), first))
        pairs = ((half, second), (at_low, half))
        found += [up / down for up, down in pairs if 0.0 <= up * down <= down * down > 0.0]
    return [low + place * (high - low) for place in found]


def ratio(
    name: str,
    counts: np.ndarray,
    covariance: np.ndarray,
    inside: np.ndarray,
    within: np.ndarray,
    z: float,
) -> Figure:
    """Return the share of some counts in others, with the interval of Wilson and Fieller.

    Both are weights on the flat counts; those of `inside` are 0 or 1.
    """
    x, y = float(inside @ counts), float(within @ counts)
    noise = np.stack([inside, within]) @ covariance @ np.stack([inside, within]).T

    def variance(a: float) -> float:
        sampling = max(y, 0.0) * a * (1.0 - a)
        return sampling + noise[0, 0] - 2.0 * a * noise[0, 1] + a**2 * noise[1, 1]

    value = float(np.clip(x / y, 0.0, 1.0)) if y > 0.0 else math.nan
    return Figure(value, not_ruled_out(lambda a: x - a * y, variance, z), name)


def narrow_points(
    edges: Sequence[int],
    point: Callable[[int, int], tuple[Any, ...]],
    rows: np.ndarray,
    largest_width: float,
) -> list[tuple[Any, ...]]:
    """Return a point for each cell of bins between edges; its second part is a `Figure`.

    The cell with the widest interval is merged with its smaller neighbour until all are narrow. The
    list is empty if all rows together are too few.
    """
    ends = list(edges)
    points = [point(*pair) for pair in pairwise(ends)]
    while points:
        widths = [found[1].width for found in points]
        at = int(np.argmax(widths))
        if widths[at] < largest_width:
            break
        sides = [side for side in (at - 1, at + 1) if 0 <= side < len(points)]
        if not sides:
            return []
        other = min(sides, key=lambda side: float(rows[ends[side] : ends[side + 1]].sum()))
        first = min(at, other)
        del ends[first + 1]
        points[first : first + 2] = [point(ends[first], ends[first + 1])]
    return points


def average(name: str, parts: Sequence[Figure]) -> Figure:
    """Return the mean of independent metrics; squares of the half widths add up."""
    value = float(np.mean(parts))
    if math.isnan(value):
        return Figure(value, (0.0, 1.0), name)
    ends = np.array([part.interval for part in parts])
    reach = np.abs(np.array(parts)[:, None] - ends)
    # An end at a limit was cut there, and is less informative than it seems.
    cut = ((ends == 0.0) | (ends == 1.0)).any(axis=0)
    reach = np.where(cut, reach.sum(axis=0), np.linalg.norm(reach, axis=0)) / len(parts)
    return Figure(value, (max(0.0, value - reach[0]), min(1.0, value + reach[1])), name)


def widened(
    name: str,
    bins: ScoreBins,
    figure: Callable[[np.ndarray], tuple[float, Interval]],
    limits: Interval = (0.0, 1.0),
) -> Figure:
    """Return a metric with an interval that covers half of the effect of slopes within bins."""
    (value, (low, high)), (flat, _) = map(figure, bins.spreads)
    slack = 0.5 * abs(value - flat) if math.isfinite(value + flat) else 0.0
    return Figure(value, (max(limits[0], low - slack), min(limits[1], high + slack)), name)


# Reason for intervals that allow for any order of scores within bins.
FEW_VALUES = "scores take few values: declare them as score_values="

# Rows counted in the numerator and in the denominator, from label and prediction.
_SHARES: dict[str, Callable[[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]] = {
    "accuracy": lambda y, p: (y == p, y | ~y),
    "sensitivity": lambda y, p: (y & p, y),
    "specificity": lambda y, p: (~y & ~p, ~y),
    "ppv": lambda y, p: (y & p, p),
    "npv": lambda y, p: (~y & ~p, ~p),
    "prevalence": lambda y, p: (y, y | ~y),
}


def share(name: str, table: ScoreTable, first: int, z: float) -> Figure:
    """Return a share of rows; `first` is the first positive bin at a threshold."""
    label = np.repeat([False, True], table.bins.count)
    predicted = np.tile(np.arange(table.bins.count) >= first, 2)
    inside, within = _SHARES[name](label, predicted)
    flat = table.counts.ravel()
    return ratio(name, flat, table.covariance, inside.astype(float), within.astype(float), z)


def auc(table: ScoreTable, z: float) -> Figure:
    """Return the area under the ROC curve: bilinear in counts, with an unbiased variance (T4)."""
    figure = widened("roc_auc", table.bins, lambda spread: _auc(table, spread, z))
    # The order of scores within spikes is unknown: positives may win all there, or lose all.
    negatives, positives = np.maximum(table.counts, 0.0)
    pairs = max(float(negatives.sum() * positives.sum()), 1.0)
    slack = 0.5 * float(negatives[table.spikes] @ positives[table.spikes]) / pairs
    low, high = figure.interval
    ends = max(0.0, low - slack), min(1.0, high + slack)
    return Figure(float(figure), ends, "roc_auc", reason_of(table))


def reason_of(table: ScoreTable) -> str:
    """Return the reason attached to metrics that depend on the order of scores within bins."""
    return FEW_VALUES if table.concentrated else ""


def _auc(table: ScoreTable, spread: np.ndarray, z: float) -> tuple[float, Interval]:
    order = np.tri(len(spread), k=-1) + 0.5 * np.eye(len(spread))
    test = AreaTest(table, spread.T @ order @ spread)
    negatives, positives = np.maximum(table.counts, 0.0)
    pseudo = negatives / max(negatives.sum(), 1.0), positives / max(positives.sum(), 1.0)

    def variance(a: float) -> float:
        # One pseudo-row per class, placed like the other class, since no classifier is perfect.
        above, below = test.against(a)
        return test.variance(a) + float(pseudo[0] @ above**2 + pseudo[1] @ below**2)

    def of_rare(a: float) -> float:
        # If the area were a, the corresponding number of rows would be on the wrong side.
        return variance(a) + test.rare(a, pseudo)

    ends = not_ruled_out(test.statistic, variance, z, least=test.least_variance())
    others = not_ruled_out(test.statistic, of_rare, z)
    interval = min(ends[0], others[0]), max(ends[1], others[1])
    slope = test.statistic(0.0) - test.statistic(1.0)
    informed = slope > 0.0 and table.counts.sum(axis=1).min() > 0.0
    value = test.statistic(0.0) / slope if informed else math.nan
    return float(np.clip(value, 0.0, 1.0)), interval


class AreaTest:
    """Test that the area under the ROC curve is a, by the frequency of positive wins minus a."""

    def __init__(self, table: ScoreTable, kernel: np.ndarray) -> None:
        self._negatives, self._positives = table.counts
        self._kernel, half = kernel, len(kernel)
        self._noise0 = table.covariance[:half, :half]
        self._shared = table.covariance[half:, :half]
        self._noise1 = table.covariance[half:, half:]

    def statistic(self, a: float) -> float:
        """Return wins minus a; its mean is 0 if a is the area."""
        wins = self._kernel - a
        return float(self._positives @ wins @ self._negatives - (wins * self._shared).sum())

    def against(self, a: float) -> tuple[np.ndarray, np.ndarray]:
        """Return wins minus a of one positive, and over one negative, in each bin."""
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
        """Return the sampling variance in addition to `variance` if a implies the mean loss.

        The loss of a row is the share of rows of the other class on its wrong side. The ratio of
        squared to plain losses is estimated from the rows and one pseudo-row per class.
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
        """Return the contribution of noise only, for any counts."""
        return _trace(self._noise1, self._kernel - 0.5, self._noise0)


def _trace(one: np.ndarray, wins: np.ndarray, other: np.ndarray) -> float:
    return float(((one @ wins) * (wins @ other)).sum())


def average_precision(table: ScoreTable, z: float) -> Figure:
    """Return the area under the precision-recall curve, by the delta method."""
    bins, name = table.bins, "average_precision"
    figure = widened(name, bins, lambda spread: _average_precision(table, spread, spread, z))
    if math.isnan(figure) or not table.spikes.any():
        return figure
    # Within spikes, positives may come first or last.
    upper, lower = bins.ordered(table.spikes)
    best, worst = (_average_precision(table, *pair, z) for pair in ((lower, upper), (upper, lower)))
    lows, highs = zip(figure.interval, best[1], worst[1], strict=True)
    return Figure(float(figure), (min(lows), min(1.0, max(highs))), name, reason_of(table))


def _average_precision(
    table: ScoreTable, of_negatives: np.ndarray, of_positives: np.ndarray, z: float
) -> tuple[float, Interval]:
    """Return mean precision over positives; at the top, where counts are few, of the entire top."""
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
    # There it may rise from that mean up to 1, for the positives that noise allows.
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
    """Return the mean of costs, a function of label and score.

    `known` has the costs at the middles of bins, the contribution of offsets within bins to the
    sum, and the variance of its noise. None uses the density within bins.
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
            # One pseudo-row of the largest cost: costly rows may be missing by chance.
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
    """Return the mean of label minus score."""
    known = None
    if table.offsets is not None and table.offset_variances is not None:
        middle, _ = table.bins.middles
        at_middles = np.concatenate([-middle, 1.0 - middle])
        known = at_middles, -float(table.offsets[0]), float(table.offset_variances[0])
    name, limits = "calibration_in_the_large", (-1.0, 1.0)
    return mean_of_cells(name, table, lambda y, p: y - p, known, z, limits)
