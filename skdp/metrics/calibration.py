"""Calibration slope, error and curve of one table of scores by label."""

from __future__ import annotations

import math

import numpy as np
from scipy.optimize import brentq
from scipy.special import expit, logit, ndtr

from skdp.metrics.figures import FEW_VALUES, Figure, Interval, narrow_points, not_ruled_out, ratio
from skdp.plans.scores import PARTS, ScoreBins, ScoreTable

# Log odds beyond which the slope treats scores as equal, and the largest slope searched.
_LARGEST_LOGIT, _LARGEST_SLOPE = 6.0, 32.0
# Reason for a wide slope, and the share of such scores above which it is withheld.
_FAR, _MOST_BEYOND = "scores lie beyond the outermost edges of bins", 0.25
# Cells of the calibration curve and its error, each of consecutive bins.
_CELLS = 10


def calibration_slope(table: ScoreTable, z: float) -> Figure:
    """Return the slope of labels on log odds of scores, by an inverted score test."""
    interval = (-math.inf, math.inf)
    if table.concentrated:  # the place of a value within its bin decides
        return Figure(math.nan, interval, "calibration_slope", f"withheld: {FEW_VALUES}")
    inside, beyond = _places_beyond(table)
    early = np.abs(inside) < _LARGEST_LOGIT  # elsewhere the slope is of log odds cut at the edges
    if table.counts[:, [0, -1]].sum(axis=0) @ early > _MOST_BEYOND * table.counts.sum():
        return Figure(math.nan, interval, "calibration_slope", f"withheld: {_FAR}")
    value, interval = _slope(_SlopeScore(table, inside), z)
    if beyond == inside or math.isnan(value):
        return Figure(value, interval, "calibration_slope")
    other, ends = _slope(_SlopeScore(table, beyond), z)
    found = [*interval, *ends, *(() if math.isnan(other) else (other,))]
    return Figure(value, (min(found), max(found)), "calibration_slope", _FAR)


def _places_beyond(table: ScoreTable) -> tuple[Interval, Interval]:
    """Return the least and largest log odds at the edges, and as far as scores may lie beyond.

    Bins of narrow scores end early; counts beyond that noise explains are ignored.
    """
    if table.bins.atoms is not None:
        return (-_LARGEST_LOGIT, _LARGEST_LOGIT), (-_LARGEST_LOGIT, _LARGEST_LOGIT)
    low, high = logit(table.bins.edges[[0, -1]]).tolist()
    size, counts = table.bins.count, table.counts.sum(axis=0)
    noise = table.covariance.reshape(2, size, 2, size).sum(axis=(0, 2))
    some = counts > 2.0 * np.sqrt(np.diag(noise))
    far = min(low, -_LARGEST_LOGIT), max(high, _LARGEST_LOGIT)
    return (low, high), (far[0] if some[0] else low, far[1] if some[-1] else high)


def _slope(score: _SlopeScore, z: float) -> tuple[float, Interval]:
    """Return a slope and its interval; NaN if no slope is within the search range."""
    value = _crossing(score, 0.0, 1.0, 0.0)
    if math.isinf(value):
        return math.nan, (-math.inf, math.inf)
    interval = _crossing(score, z, value, -1.0), _crossing(score, -z, value, 1.0)
    return (math.nan if np.isinf(interval).all() else value), interval


class _SlopeScore:
    """Standardised score of a slope, with the best intercept for it."""

    def __init__(self, table: ScoreTable, ends: Interval) -> None:
        middle = np.clip(table.bins.parts.mean(axis=0), 1e-9, 1.0 - 1e-9)
        if table.bins.atoms is None:  # all cells of the outermost bins lie at the ends
            middle[:PARTS], middle[-PARTS:] = 0.0, 1.0
        # Steeper slopes than this are not searched; narrow scores may have steep ones.
        self.largest = _LARGEST_SLOPE * max(1.0, 1.0 / table.bins.scale)
        self._odds = np.clip(logit(middle), *ends) - table.bins.centre
        self._table, self._spread = table, table.bins.spreads[0]
        self._every = self._spread @ table.counts.sum(axis=0)
        self._positives = float(table.counts[1].sum())

    def __call__(self, slope: float) -> float:
        risk = expit(self._intercept(slope) + slope * self._odds)
        weight = self._every * risk * (1.0 - risk)
        total = weight.sum()
        centred = self._odds - (weight @ self._odds / total if total > 0.0 else 0.0)
        parts = np.stack([-centred * risk, centred * (1.0 - risk)])
        direction = (parts @ self._spread).ravel()
        squares = (parts**2 @ self._spread).ravel()
        counts, covariance = self._table.counts.ravel(), self._table.covariance
        variance = squares @ np.maximum(counts, 0.0) + direction @ covariance @ direction
        # Where all scores are one, so are all slopes.
        return float(direction @ counts / math.sqrt(variance)) if variance > 1e-9 else 0.0

    def _intercept(self, slope: float) -> float:
        """Return the intercept that makes the expected number of positives equal the observed."""
        low, high, at = -60.0, 60.0, 0.0
        for _ in range(60):
            risk = expit(at + slope * self._odds)
            excess = self._every @ risk - self._positives
            low, high = (low, at) if excess > 0.0 else (at, high)
            steepness = self._every @ (risk * (1.0 - risk))
            step = at - excess / steepness if steepness > 1e-200 else math.nan
            new = step if low < step < high else 0.5 * (low + high)
            if abs(new - at) < 1e-9:
                break
            at = new
        return at


def _crossing(score: _SlopeScore, level: float, start: float, side: float) -> float:
    """Return the slope at which the decreasing score crosses a level, on one side of a start.

    With `side` 0 both sides are searched. Infinite if there is none within the search range.
    """
    here = score(start) - level
    side = side or (1.0 if here > 0.0 else -1.0)
    step, at = 0.25, start
    while abs(at) < score.largest:
        before, at, step = at, at + side * step, 2.0 * step
        if (score(at) - level > 0.0) != (here > 0.0):
            return float(brentq(lambda slope: score(slope) - level, before, at, xtol=1e-4))
    return side * math.inf


def expected_calibration_error(table: ScoreTable, z: float) -> Figure:
    """Return the mean distance of label rates from scores over ten cells of bins.

    The sum of sizes of noisy numbers is biased upwards. The bias is known if the numbers are 0 and
    smaller otherwise, so the coverage of the interval is above nominal.
    """
    middle, spread = table.bins.parts.mean(axis=0), table.bins.spreads[0]
    residual = np.concatenate([-middle @ spread, (1.0 - middle) @ spread])
    squares = np.concatenate([middle**2 @ spread, (1.0 - middle) ** 2 @ spread])
    cells = np.tile(calibration_cells(table.bins).astype(float), 2)
    counts, total = table.counts.ravel(), table.counts.sum()
    direction = cells * residual
    covariance = direction @ table.covariance @ direction.T
    covariance += np.diag(cells @ (np.maximum(counts, 0.0) * squares))
    gaps, deviations = direction @ counts, np.sqrt(np.maximum(np.diag(covariance), 1e-12))
    if total <= 0.0:
        return Figure(math.nan, (0.0, 1.0), "expected_calibration_error")
    sizes, reach = np.abs(gaps).sum(), z * math.sqrt(np.abs(covariance).sum())
    value = np.sqrt(np.maximum(gaps**2 - deviations**2, 0.0)).sum()
    noise = deviations.sum()
    low = sizes - reach - math.sqrt(2.0 / math.pi) * noise
    high = _largest_sum((sizes + reach) / noise) * noise
    # The place of scores within their part of a bin is unknown: up to half its length off,
    ends, every = table.bins.parts, table.counts.sum(axis=0)
    apart = 0.5 * (ends[1] - ends[0]) @ np.maximum(spread @ every, 0.0)
    if table.bins.atoms is None:  # and in a spike anywhere in the bin
        means, (middles, halves) = middle @ spread, table.bins.middles
        apart += ((halves + np.abs(middles - means)) * np.maximum(every, 0.0))[table.spikes].sum()
    shown = min(1.0, float(value / total))
    interval = max(0.0, min(shown, (low - apart) / total)), min(1.0, (high + apart) / total)
    return Figure(shown, (interval[0], max(shown, interval[1])), "expected_calibration_error")


def _largest_sum(observed: float) -> float:
    """Return the m for which the folded normal N(m, 1) has the observed mean.

    Means of folded normals are convex in m, so a sum of sizes is largest if all m are equal.
    """

    def mean(m: float) -> float:
        return math.sqrt(2.0 / math.pi) * math.exp(-0.5 * m * m) + m * (2.0 * float(ndtr(m)) - 1.0)

    if observed <= mean(0.0):
        return 0.0
    return float(brentq(lambda m: mean(m) - observed, 0.0, observed + 1.0))


def calibration_cells(bins: ScoreBins) -> np.ndarray:
    """Return a matrix of 0 and 1 that assigns bins to ten cells."""
    count = bins.count
    cells = np.arange(count) * min(_CELLS, count) // count
    return np.arange(cells[-1] + 1)[:, None] == cells


def calibration_curve(
    table: ScoreTable, z: float, largest_width: float
) -> list[tuple[float, Figure]]:
    """Return mean score and share of positives of at most ten cells with narrow intervals."""
    cells, rows = calibration_cells(table.bins), table.counts.sum(axis=0)
    edges = [*cells.argmax(axis=1).tolist(), table.bins.count]
    means = table.bins.parts.mean(axis=0) @ table.bins.spreads[0]

    def point(first: int, last: int) -> tuple[float, Figure]:
        cell = np.zeros_like(rows)
        cell[first:last] = 1.0
        return _calibration_point(table, cell, means, z)

    return narrow_points(edges, point, rows, largest_width)


def _calibration_point(
    table: ScoreTable, cell: np.ndarray, means: np.ndarray, z: float
) -> tuple[float, Figure]:
    """Return the mean score and the share of positives of a cell, given as 0 and 1 per bin.

    The interval covers the share, and its distance from the mean score as far as noise moves it,
    but not the unknown place of scores within their bins.
    """
    counts, covariance = table.counts.ravel(), table.covariance
    within, inside = np.tile(cell, 2), np.concatenate([np.zeros_like(cell), cell])
    observed = ratio("observed", counts, covariance, inside, within, z)
    scores = np.tile(cell * means, 2)
    # Negative counts stay: otherwise noise would pull the mean towards empty bins.
    rows, (low, high) = float(within @ counts), means[cell > 0][[0, -1]]
    mean = float(np.clip(scores @ counts / rows, low, high)) if rows > 0.0 else 0.5 * (low + high)
    gaps, kept = inside - scores, np.maximum(counts, 0.0)

    def variance(a: float) -> float:
        direction = gaps - a * within
        return float(kept @ direction**2 + direction @ covariance @ direction)

    ends = not_ruled_out(lambda a: float((gaps - a * within) @ counts), variance, z, (-1.0, 1.0))
    interval = np.array([observed.interval, mean + np.array(ends)]).clip(0.0, 1.0)
    return mean, Figure(float(observed), (interval.min(), interval.max()), "observed")
