"""Figures of a regressor from released sums and table, each with an interval: post-processing."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np

from skdp.metrics.errors import NODES, ErrorTables
from skdp.metrics.intervals import Figure, not_ruled_out

# Unexplained shares of variance beyond which an interval has no end.
_LARGEST_SHARE = 100.0
_CELLS = 10


def mean(
    name: str, total: float, variance: float, tables: ErrorTables, z: float, least: float = 0.0
) -> Figure:
    """Return a mean over rows, in units of the target, from a sum in parts of the largest error."""
    n = tables.n
    ends = not_ruled_out(lambda a: total - n * a, lambda a: variance, z, (least, 1.0))
    value, low, high = (tables.largest_error * a for a in (np.clip(total / n, least, 1.0), *ends))
    return Figure(float(value), (low, high), name)


def mean_absolute_error(tables: ErrorTables, z: float) -> Figure:
    """Return the mean size of errors."""
    up, down, squares = tables.sums[:3]
    noise = float((tables.sum_noise[:2] ** 2).sum())
    sampling = max(float(squares - (up + down) ** 2 / tables.n), 0.0)
    return mean("mean_absolute_error", float(up + down), sampling + noise, tables, z)


def mean_error(tables: ErrorTables, z: float) -> Figure:
    """Return the mean of target less prediction."""
    up, down, squares = tables.sums[:3]
    noise = float((tables.sum_noise[:2] ** 2).sum())
    sampling = max(float(squares - (up - down) ** 2 / tables.n), 0.0)
    return mean("mean_error", float(up - down), sampling + noise, tables, z, -1.0)


def root_mean_squared_error(tables: ErrorTables, z: float) -> Figure:
    """Return the root of the mean squared error."""
    squares, noise = float(tables.sums[2]), float(tables.sum_noise[2])
    fourth = _fourth_moments(tables)[0] / tables.reach**4
    sampling = max(fourth - squares**2 / tables.n, 0.0)
    square = mean("", squares, sampling + noise**2, tables, z)
    value, low, high = (
        math.sqrt(tables.largest_error * part) for part in (float(square), *square.interval)
    )
    return Figure(value, (low, high), "root_mean_squared_error")


def r2(tables: ErrorTables, z: float) -> Figure:
    """Return the share of the targets' variance that predictions explain, by Fieller's sets."""
    n, (_, _, squares, first, second) = tables.n, tables.sums.tolist()
    _, _, noise, noise1, noise2 = tables.sum_noise.tolist()
    errors, middle = tables.reach**2 * squares, first / n
    spread = second - (first**2 - noise1**2) / n
    moments = _fourth_moments(tables)
    noises = (
        tables.reach**4 * noise**2,
        noise2**2 + (2.0 * middle * noise1) ** 2 + 2.0 * noise1**4 / n**2,
    )

    def variance(share: float) -> float:
        sampling = moments[0] - 2.0 * share * moments[1] + share**2 * moments[2]
        return sampling + noises[0] + share**2 * noises[1]

    low, high = not_ruled_out(
        lambda share: errors - share * spread, variance, z, (0.0, _LARGEST_SHARE)
    )
    value = min(1.0, 1.0 - errors / spread) if spread > 0.0 else math.nan
    return Figure(value, (1.0 - high if high < _LARGEST_SHARE else -math.inf, 1.0 - low), "r2")


def _fourth_moments(tables: ErrorTables) -> tuple[float, float, float]:
    """Return sums of e^4, e^2 d^2 and d^4, with errors e and targets d from their mean.

    They are the table's, within what second moments leave possible.
    """
    n, (_, _, squares, first, second) = tables.n, tables.sums.tolist()
    middle = float(np.clip(first / n, -1.0, 1.0))
    errors = tables.reach**2 * max(squares, 0.0)
    spread = max(second - first**2 / n, 0.0)
    e = tables.reach * NODES
    d = np.clip(tables.centres[:, None] + e, -1.0, 1.0) - middle
    whole = tables.counts
    fourth = _within((whole @ e**4).sum(), errors**2 / n, tables.reach**2 * errors)
    other = _within((whole * d**4).sum(), spread**2 / n, (1.0 + abs(middle)) ** 2 * spread)
    cross = _within((whole * e**2 * d**2).sum(), 0.0, math.sqrt(fourth * other))
    return fourth, cross, other


def _within(value: float, low: float, high: float) -> float:
    return float(np.clip(value, low, max(low, high)))


def calibration_curve(tables: ErrorTables, z: float) -> list[tuple[float, Figure, float]]:
    """Return mean prediction, mean target and least prediction of cells of about a tenth each."""
    low, high = tables.bounds
    half, count = 0.5 * (high - low), len(tables.counts)
    reached = np.maximum.accumulate(np.cumsum(tables.counts.sum(axis=1)))
    cuts = np.searchsorted(reached, tables.n * np.arange(1, _CELLS) / _CELLS, side="left") + 1
    cuts = np.unique(np.concatenate([[0], cuts[cuts < count], [count]]))
    points = []
    for first, last in pairwise(cuts.tolist()):
        inside = tables.counts[first:last]
        by_bin, by_node = np.maximum(inside.sum(axis=1), 0.0), inside.sum(axis=0)
        centres = tables.centres[first:last]
        known = by_bin.sum() > 0.0
        at = float(by_bin @ centres / by_bin.sum()) if known else float(centres.mean())
        gap, ends = _mean_error_within(by_node, (last - first) * tables.count_noise**2, z)
        middle, least = low + half * (at + 1.0), low + (high - low) * first / count
        to_y = [middle + tables.largest_error * part for part in (gap, *ends)]
        points.append((middle, Figure(to_y[0], (to_y[1], to_y[2]), "observed"), least))
    return points


def _mean_error_within(
    counts: np.ndarray, noise: float, z: float
) -> tuple[float, tuple[float, float]]:
    """Return the mean of `NODES` by counts whose noise has a variance, and its interval."""
    kept, total = np.maximum(counts, 0.0), float(counts.sum())

    def variance(a: float) -> float:
        return float((kept + noise) @ (NODES - a) ** 2)

    ends = not_ruled_out(lambda a: float(counts @ (NODES - a)), variance, z, (-1.0, 1.0))
    value = float(np.clip(counts @ NODES / total, -1.0, 1.0)) if total > 0.0 else math.nan
    return value, ends
