"""Figures of a regressor from released sums and tables, each with an interval: post-processing."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from itertools import pairwise

import numpy as np
from scipy.special import ndtr, ndtri

from skdp.metrics.errors import NODES, ErrorPart
from skdp.metrics.intervals import Figure, Interval, not_ruled_out

# Unexplained shares of variance beyond which an interval has no end.
_LARGEST_SHARE = 100.0
_CELLS = 10
# Sizes of errors, each a node, and how finely a median is looked for between two of them.
_SIZES = NODES[NODES.size // 2 :]
_STEPS = 256
# Density at the largest error, in parts of that at half of it.
_FALL = 0.25
_NUMBER = np.eye(6)[5]


def _noise(
    part: ErrorPart, fixed: np.ndarray, moving: np.ndarray = -_NUMBER
) -> Callable[[float], float]:
    """Return the variance of the noise of sums weighted by ``fixed + a * moving``, given a."""
    return lambda a: float((fixed + a * moving) @ part.covariance @ (fixed + a * moving))


def mean(
    name: str,
    weights: list[float],
    sampling: Callable[[float], float],
    part: ErrorPart,
    z: float,
    least: float = 0.0,
) -> Figure:
    """Return the mean over rows of weighted sums in parts of the largest error, in its unit."""
    fixed = np.pad(np.array(weights), (0, 6 - len(weights)))
    total, noise = float(fixed @ part.sums), _noise(part, fixed)
    ends = not_ruled_out(
        lambda a: total - part.sums[5] * a, lambda a: sampling(a) + noise(a), z, (least, 1.0)
    )
    known = part.sums[5] > 0.0
    value = float(np.clip(total / part.n, least, 1.0)) if known else math.nan
    low, high = (part.largest_error * a for a in ends)
    return Figure(part.largest_error * value, (low, high), name)


def mean_absolute_error(part: ErrorPart, z: float) -> Figure:
    """Return the mean size of errors."""
    up, down, squares = part.sums[:3]
    sampling = max(float(squares - (up + down) ** 2 / part.n), 0.0)
    return mean("mean_absolute_error", [1.0, 1.0], lambda _: sampling, part, z)


def mean_error(part: ErrorPart, z: float) -> Figure:
    """Return the mean of target less prediction."""
    up, down, squares = part.sums[:3]
    sampling = max(float(squares - (up - down) ** 2 / part.n), 0.0)
    return mean("mean_error", [1.0, -1.0], lambda _: sampling, part, z, -1.0)


def root_mean_squared_error(part: ErrorPart, z: float) -> Figure:
    """Return the root of the mean squared error."""
    square = max(float(part.sums[2]) / part.n, 0.0)
    fourth = _fourth_moments(part)[0] / part.reach**4 / part.n
    # The share of fourth powers in squares is that of the table: with the mean square a it would
    # be the Bernoulli variance a (1 - a) if all errors were the largest one or none.
    share = float(np.clip(fourth / square, square, 1.0)) if square > 0.0 else 1.0

    def sampling(a: float) -> float:
        return part.n * a * (share - a)

    found = mean("", [0.0, 0.0, 1.0], sampling, part, z)
    value, low, high = (
        math.sqrt(part.largest_error * end) for end in (float(found), *found.interval)
    )
    return Figure(value, (low, high), "root_mean_squared_error")


def median_absolute_error(part: ErrorPart, z: float) -> Figure:
    """Return the median size of errors, whose interval holds whatever their law."""
    middle = NODES.size // 2
    by_node = part.counts.sum(axis=0)
    by_size = by_node[middle:] + np.append(0.0, by_node[:middle][::-1])
    variances = part.node_variance * np.where(_SIZES > 0.0, 2.0, 1.0)
    sizes, below, surely = _shares_below()
    at = int(np.argmax(np.append((below @ by_size)[:-1] - 0.5 * by_size.sum(), math.inf) >= 0.0))
    # Two sums can rule a size out on either side, each with half the probability. Of rows that
    # weigh much some z^2 may be there and not be counted.
    each = -float(ndtri(0.5 * ndtr(-z)))
    reach = each * np.sqrt(surely**2 @ (np.maximum(by_size, 0.0) + z**2 + variances))
    kept = np.append(np.flatnonzero((surely @ by_size <= reach).all(axis=0)), at)
    ends = sizes[max(kept.min() - 1, 0)], sizes[min(kept.max() + 1, sizes.size - 1)]
    value, low, high = (part.largest_error * float(size) for size in (sizes[at], *ends))
    return Figure(value, (low, high), "median_absolute_error")


@cache
def _shares_below() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return sizes of errors, weights on counts by node that say how many are smaller, and bounds.

    A density that is a line between nodes gives each the area of its product with the node's hat.
    """
    gaps = np.diff(_SIZES)
    hats = np.diag(np.append(gaps, 0.0) + np.append(0.0, gaps)) / 3.0
    hats += (np.diag(gaps, 1) + np.diag(gaps, -1)) / 6.0
    steps = np.arange(_STEPS) / _STEPS
    sizes = np.append((_SIZES[:-1, None] + gaps[:, None] * steps).ravel(), 1.0)
    heights = np.stack([np.interp(sizes, _SIZES, hat) for hat in np.eye(_SIZES.size)], axis=1)
    areas = 0.5 * np.diff(sizes)[:, None] * (heights[1:] + heights[:-1])
    # What is counted at the largest error beyond the density there are errors that were cut.
    falls = np.vstack([np.eye(_SIZES.size - 1), _FALL * np.eye(_SIZES.size - 1)[-1]])
    below = np.vstack([np.zeros(_SIZES.size), np.cumsum(areas, axis=0)]) @ falls
    weights = np.pad(below @ np.linalg.inv(hats[:-1] @ falls), ((0, 0), (0, 1)))
    weights[-1] = 1.0
    return sizes, weights, _bounds_of_shares(steps)


def _bounds_of_shares(steps: np.ndarray) -> np.ndarray:
    """Return weights on counts by node that are above 0 on average only for sizes not the median.

    Lines between nodes are below the rows that are smaller, less a half, or those that are larger.
    """
    node = np.arange(_SIZES.size)
    gap = np.append(np.repeat(node[:-1], steps.size), node[-1])[:, None]
    part = np.append(np.tile(steps, node.size - 1), 0.0)[:, None]
    past = np.divide(1.0 - part, part, out=np.zeros_like(part), where=part > 0.0)
    smaller = [
        node < gap,
        np.where(part > 0.0, (node <= gap) - past * (node == gap + 1), node < gap),
    ]
    larger = [node > gap + 1, (node > gap) - part / (1.0 - part) * (node == gap)]
    return np.stack([*smaller, *larger]) - 0.5


def r2(part: ErrorPart, z: float) -> Figure:
    """Return the share of the targets' variance that predictions explain, by Fieller's sets."""
    n, (_, _, squares, first, second, _) = part.n, part.sums.tolist()
    errors, middle, of_first = part.reach**2 * squares, first / n, part.covariance[3, 3]
    spread = second - (first**2 - of_first) / n
    moments = _fourth_moments(part)
    noise = _noise(
        part,
        part.reach**2 * np.eye(6)[2],
        np.array([0.0, 0.0, 0.0, 2.0 * middle, -1.0, -(middle**2)]),
    )

    def variance(share: float) -> float:
        sampling = moments[0] - 2.0 * share * moments[1] + share**2 * moments[2]
        return sampling + noise(share) + 2.0 * (share * of_first / n) ** 2

    low, high = not_ruled_out(
        lambda share: errors - share * spread, variance, z, (0.0, _LARGEST_SHARE)
    )
    value = min(1.0, 1.0 - errors / spread) if spread > 0.0 else math.nan
    return Figure(value, (1.0 - high if high < _LARGEST_SHARE else -math.inf, 1.0 - low), "r2")


def _fourth_moments(part: ErrorPart) -> tuple[float, float, float]:
    """Return sums of e^4, e^2 d^2 and d^4, with errors e and targets d from their mean.

    They are the table's, within what second moments leave possible; of e^4 as much more as its
    noise may hide.
    """
    n, (_, _, squares, first, second, _) = part.n, part.sums.tolist()
    middle = float(np.clip(first / n, -1.0, 1.0))
    errors = part.reach**2 * max(squares, 0.0)
    spread = max(second - first**2 / n, 0.0)
    e = part.reach * NODES
    d = np.clip(part.centres[:, None] + e, -1.0, 1.0) - middle
    whole = part.counts
    hidden = 0.5 * math.sqrt(part.node_variance * (e**8).sum())
    fourth = _within((whole @ e**4).sum() + hidden, errors**2 / n, part.reach**2 * errors)
    other = _within((whole * d**4).sum(), spread**2 / n, (1.0 + abs(middle)) ** 2 * spread)
    cross = _within((whole * e**2 * d**2).sum(), 0.0, math.sqrt(fourth * other))
    return fourth, cross, other


def _within(value: float, low: float, high: float) -> float:
    return float(np.clip(value, low, max(low, high)))


def error_histogram(part: ErrorPart, z: float) -> list[tuple[float, Figure, float]]:
    """Return nodes, and the shares of rows that are counted at them, shared out between two."""

    def share(count: float) -> Figure:
        ends = not_ruled_out(lambda a: count - part.n * a, variance, z)
        return Figure(float(np.clip(count / part.n, 0.0, 1.0)), ends, "share of rows")

    def variance(a: float) -> float:
        return part.n * a * (1.0 - a) + part.node_variance + a**2 * float(part.covariance[5, 5])

    nodes, counts = (part.largest_error * NODES).tolist(), part.counts.sum(axis=0).tolist()
    return [(node, share(count), node) for node, count in zip(nodes, counts, strict=True)]


def calibration_curve(part: ErrorPart, z: float) -> list[tuple[float, Figure, float]]:
    """Return mean prediction, mean target and least prediction of cells of about a tenth each."""
    low, high = part.bounds
    half, count = 0.5 * (high - low), len(part.counts)
    reached = np.maximum.accumulate(np.cumsum(part.counts.sum(axis=1)))
    cuts = np.searchsorted(reached, part.n * np.arange(1, _CELLS) / _CELLS, side="left") + 1
    cuts = np.unique(np.concatenate([[0], cuts[cuts < count], [count]]))
    points = []
    for first, last in pairwise(cuts.tolist()):
        inside = part.counts[first:last]
        by_bin, by_node = np.maximum(inside.sum(axis=1), 0.0), inside.sum(axis=0)
        centres = part.centres[first:last]
        known = by_bin.sum() > 0.0
        at = float(by_bin @ centres / by_bin.sum()) if known else float(centres.mean())
        gap, ends = _mean_error_within(by_node, (last - first) * part.count_variance, z)
        middle, least = low + half * (at + 1.0), low + (high - low) * first / count
        to_y = [middle + part.largest_error * error for error in (gap, *ends)]
        points.append((middle, Figure(to_y[0], (to_y[1], to_y[2]), "observed"), least))
    return points


def _mean_error_within(counts: np.ndarray, noise: float, z: float) -> tuple[float, Interval]:
    """Return the mean of `NODES` by counts whose noise has a variance, and its interval."""
    kept, total = np.maximum(counts, 0.0), float(counts.sum())

    def variance(a: float) -> float:
        return float((kept + noise) @ (NODES - a) ** 2)

    ends = not_ruled_out(lambda a: float(counts @ (NODES - a)), variance, z, (-1.0, 1.0))
    value = float(np.clip(counts @ NODES / total, -1.0, 1.0)) if total > 0.0 else math.nan
    return value, ends
