"""Metrics of a regressor from released sums and tables, with intervals; all post-processing."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache

import numpy as np
from scipy.special import ndtr, ndtri

from skdp.metrics.errors import ErrorPart
from skdp.metrics.figures import Figure, Interval, narrow_points, not_ruled_out

# Unexplained shares of variance beyond which an interval has no end.
_LARGEST_SHARE = 100.0
_CELLS = 10
# How finely a median is looked for between two tabulated errors.
_STEPS = 256
# Density at the largest error, as a share of the density at half of it.
_FALL = 0.25
# Rows with the largest error that the sample may lack by chance.
_MISSED = 1.0
_UP, _DOWN, _SQUARE, _, _, _NUMBER, _CUT, _CUT_SQUARE = np.eye(8)
Estimate = tuple[float, Interval]


def _noise(
    part: ErrorPart, fixed: np.ndarray, moving: np.ndarray = -_NUMBER
) -> Callable[[float], float]:
    """Return the variance of the noise of sums weighted by ``fixed + a * moving``, given a."""
    fixed, moving = fixed[: part.sums.size], moving[: part.sums.size]
    return lambda a: float((fixed + a * moving) @ part.covariance @ (fixed + a * moving))


def _at_least(part: ErrorPart, z: float, estimate: Callable[[bool, float], Estimate]) -> Estimate:
    """Return an estimate that is at least the one of cut errors, if errors may be cut.

    Each of the two lower ends has half of the error probability.
    """
    value, (low, high) = estimate(False, z)
    if part.nodes[-1] > 1.0:
        each = -float(ndtri(0.5 * ndtr(-z)))
        of_cut, ends = estimate(True, each)
        low, value = max(estimate(False, each)[1][0], ends[0]), max(value, of_cut)
        high = max(high, ends[1])
    return value, (low, high)


def _mean(
    part: ErrorPart,
    z: float,
    weights: np.ndarray,
    sampling: Callable[[float], float],
    unit: float,
    least: float = 0.0,
) -> Estimate:
    """Return the mean over rows of weighted sums, at most 1 each, in a unit."""
    weights, rows = weights[: part.sums.size], float(part.sums[5])
    total, noise = float(weights @ part.sums), _noise(part, weights)
    ends = not_ruled_out(
        lambda a: total - rows * a, lambda a: sampling(a) + noise(a) + _MISSED, z, (least, 1.0)
    )
    value = float(np.clip(total / rows, least, 1.0)) if rows > 0.0 else math.nan
    return unit * value, (unit * ends[0], unit * ends[1])


def mean_absolute_error(part: ErrorPart, z: float) -> Figure:
    """Return the mean absolute error."""

    def estimate(cut: bool, z: float) -> Estimate:
        weights, squares = (_CUT, _CUT_SQUARE) if cut else (_UP + _DOWN, _SQUARE)
        size, square = (float(each[: part.sums.size] @ part.sums) for each in (weights, squares))
        sampling = max(square - size**2 / part.n, 0.0)
        unit = part.largest_error if cut else part.most
        return _mean(part, z, weights, lambda _: sampling, unit)

    return _shown("mean_absolute_error", *_at_least(part, z, estimate))


def mean_error(part: ErrorPart, z: float) -> Figure:
    """Return the mean of target minus prediction."""
    up, down, squares = part.sums[:3]
    sampling = max(float(squares - (up - down) ** 2 / part.n), 0.0)
    found = _mean(part, z, _UP - _DOWN, lambda _: sampling, part.most, -1.0)
    return _shown("mean_error", *found)


def root_mean_squared_error(part: ErrorPart, z: float) -> Figure:
    """Return the root of the mean squared error."""

    def estimate(cut: bool, z: float) -> Estimate:
        weights = _CUT_SQUARE if cut else _SQUARE
        square = max(float(weights[: part.sums.size] @ part.sums) / part.n, 0.0)
        unit = part.largest_error if cut else part.most
        fourth = _fourth_moments(part, cut)[0] * (0.5 * part.most / unit) ** 4 / part.n
        # The share of fourth powers in squares is that of the table: with the mean square a it
        # would be the Bernoulli variance a (1 - a) if all errors were the largest one or none.
        share = float(np.clip(fourth / square, square, 1.0)) if square > 0.0 else 1.0
        return _mean(part, z, weights, lambda a: part.n * a * (share - a), unit**2)

    value, (low, high) = _at_least(part, z, estimate)
    ends = math.sqrt(low), math.sqrt(high)
    return _shown("root_mean_squared_error", math.sqrt(value), ends)


def _shown(
    name: str, value: float, ends: Interval, hidden: str = "how many rows there are"
) -> Figure:
    return Figure(value, ends, name, f"noise hides {hidden}" if math.isnan(value) else "")


def median_absolute_error(part: ErrorPart, z: float) -> Figure:
    """Return the median absolute error; its interval is valid for any law of errors."""
    middle = part.nodes.size // 2
    by_node = part.counts.sum(axis=0)
    by_size = by_node[middle:] + np.append(0.0, by_node[:middle][::-1])
    tabulated = part.nodes[middle:]
    variances = part.node_variance * np.where(tabulated > 0.0, 2.0, 1.0)
    sizes, below, surely = _shares_below(tuple(tabulated.tolist()))
    at = int(np.argmax(np.append((below @ by_size)[:-1] - 0.5 * by_size.sum(), math.inf) >= 0.0))
    # Two sums can rule a size out on either side, each with half the probability. Of rows that
    # weigh much some z^2 may be there and not be counted.
    each = -float(ndtri(0.5 * ndtr(-z)))
    reach = each * np.sqrt(surely**2 @ (np.maximum(by_size, 0.0) + z**2 + variances))
    kept = np.append(np.flatnonzero((surely @ by_size <= reach).all(axis=0)), at)
    ends = sizes[max(kept.min() - 1, 0)], sizes[min(kept.max() + 1, sizes.size - 1)]
    value, low, high = (part.largest_error * float(size) for size in (sizes[at], *ends))
    return Figure(value, (low, high), "median_absolute_error")


@lru_cache(16)
def _shares_below(tabulated: tuple[float, ...]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return error sizes, weights on counts by node for the number of smaller errors, and bounds.

    With a piecewise linear density, each node has the area of its product with the node's hat.
    """
    nodes = np.array(tabulated)
    gaps = np.diff(nodes)
    hats = np.diag(np.append(gaps, 0.0) + np.append(0.0, gaps)) / 3.0
    hats += (np.diag(gaps, 1) + np.diag(gaps, -1)) / 6.0
    steps = np.arange(_STEPS) / _STEPS
    sizes = np.append((nodes[:-1, None] + gaps[:, None] * steps).ravel(), nodes[-1])
    heights = np.stack([np.interp(sizes, nodes, hat) for hat in np.eye(nodes.size)], axis=1)
    areas = 0.5 * np.diff(sizes)[:, None] * (heights[1:] + heights[:-1])
    # Counts at the largest error in excess of the density there are cut errors.
    falls = np.vstack([np.eye(nodes.size - 1), _FALL * np.eye(nodes.size - 1)[-1]])
    below = np.vstack([np.zeros(nodes.size), np.cumsum(areas, axis=0)]) @ falls
    weights = np.pad(below @ np.linalg.inv(hats[:-1] @ falls), ((0, 0), (0, 1)))
    weights[-1] = 1.0
    return sizes, weights, _bounds_of_shares(nodes.size, steps)


def _bounds_of_shares(count: int, steps: np.ndarray) -> np.ndarray:
    """Return weights on counts by node with a positive mean only for sizes other than the median.

    Lines between nodes are below the number of smaller rows minus a half, or of larger rows.
    """
    node = np.arange(count)
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
    """Return the explained share of the variance of the targets, with Fieller's sets."""
    share, (low, high) = _at_least(part, z, lambda cut, z: _unexplained(part, cut, z))
    return Figure(
        1.0 - share, (1.0 - high if high < _LARGEST_SHARE else -math.inf, 1.0 - low), "r2"
    )


def _unexplained(part: ErrorPart, cut: bool, z: float) -> Estimate:
    """Return the share of the variance of the targets in errors, or in cut errors."""
    n, (first, second) = part.n, part.sums[3:5].tolist()
    middle, of_first = first / n, part.covariance[3, 3]
    spread = second - (first**2 - of_first) / n
    weights = _reach(part, cut) ** 2 * (_CUT_SQUARE if cut else _SQUARE)
    errors, moments = float(weights[: part.sums.size] @ part.sums), _fourth_moments(part, cut)
    moving = np.array([0.0, 0.0, 0.0, 2.0 * middle, -1.0, -(middle**2), 0.0, 0.0])
    noise = _noise(part, weights, moving)

    def variance(share: float) -> float:
        sampling = moments[0] - 2.0 * share * moments[1] + share**2 * moments[2]
        return sampling + noise(share) + 2.0 * (share * of_first / n) ** 2

    ends = not_ruled_out(lambda share: errors - share * spread, variance, z, (0.0, _LARGEST_SHARE))
    return (max(errors / spread, 0.0) if spread > 0.0 else math.nan), ends


def _reach(part: ErrorPart, cut: bool) -> float:
    """Return the largest error, or the size at which errors are cut, on the scale of v."""
    return 2.0 * (part.largest_error / part.most if cut else 1.0)


def _fourth_moments(part: ErrorPart, cut: bool) -> tuple[float, float, float]:
    """Return sums of e^4, e^2 d^2 and d^4, with errors e and targets d from their mean.

    They come from the table, within the limits that second moments allow. The sum of e^4 is raised
    by the amount that its noise may hide.
    """
    n, (first, second) = part.n, part.sums[3:5].tolist()
    middle, reach = float(np.clip(first / n, -1.0, 1.0)), _reach(part, cut)
    errors = reach**2 * max(float(part.sums[7 if cut else 2]), 0.0)
    spread = max(second - first**2 / n, 0.0)
    e = 2.0 * part.nodes / part.nodes[-1]
    d = np.clip(part.centres[:, None] + e, -1.0, 1.0) - middle
    e = np.clip(e, -reach, reach)
    whole = part.counts
    hidden = 0.5 * math.sqrt(part.node_variance * (e**8).sum())
    fourth = _within((whole @ e**4).sum() + hidden, errors**2 / n, reach**2 * errors)
    other = _within((whole * d**4).sum(), spread**2 / n, (1.0 + abs(middle)) ** 2 * spread)
    cross = _within((whole * e**2 * d**2).sum(), 0.0, math.sqrt(fourth * other))
    return fourth, cross, other


def _within(value: float, low: float, high: float) -> float:
    return float(np.clip(value, low, max(low, high)))


def error_histogram(part: ErrorPart, z: float) -> list[tuple[float, Figure, float]]:
    """Return nodes and the shares of rows counted at them; each row is split between two."""

    def share(node: int) -> Figure:
        weights = np.zeros((1, *part.counts.shape))
        weights[0, :, node] = 1.0
        (count,), covariance = part.joint(weights)
        noise = covariance[np.ix_([-1, 5], [-1, 5])]

        def variance(a: float) -> float:
            of_noise = noise[0, 0] - 2.0 * a * noise[0, 1] + a**2 * noise[1, 1]
            return float(part.n * a * (1.0 - a) + of_noise)

        ends = not_ruled_out(lambda a: count - part.n * a, variance, z)
        return Figure(float(np.clip(count / part.n, 0.0, 1.0)), ends, "share of rows")

    nodes = (part.largest_error * part.nodes).tolist()
    return [(node, share(at), node) for at, node in enumerate(nodes)]


def calibration_curve(
    part: ErrorPart, z: float, largest_width: float
) -> list[tuple[float, Figure, float]]:
    """Return mean prediction, mean target and least prediction of cells of about a tenth each.

    Cells are merged until each interval is narrower than `largest_width` of the target's range.
    """
    low, high = part.bounds
    half, count, rows = 0.5 * (high - low), len(part.counts), part.counts.sum(axis=1)
    reached = np.maximum.accumulate(np.cumsum(rows))
    cuts = np.searchsorted(reached, part.n * np.arange(1, _CELLS) / _CELLS, side="left") + 1
    cuts = np.unique(np.concatenate([[0], cuts[cuts < count], [count]]))

    def point(first: int, last: int) -> tuple[float, Figure, float]:
        by_bin, centres = np.maximum(rows[first:last], 0.0), part.centres[first:last]
        known = by_bin.sum() > 0.0
        at = float(by_bin @ centres / by_bin.sum()) if known else float(centres.mean())
        gap, ends = _mean_error_within(part, slice(first, last), z)
        middle, least = low + half * (at + 1.0), low + (high - low) * first / count
        to_y = [middle + part.largest_error * error for error in (gap, *ends)]
        return middle, Figure(to_y[0], (to_y[1], to_y[2]), "observed"), least

    return narrow_points(cuts.tolist(), point, rows, largest_width * (high - low))


def _possible(part: ErrorPart) -> np.ndarray:
    """Return a mask of shape (n_bins, n_nodes) of errors that the bounds allow."""
    edges, places = np.linspace(-1.0, 1.0, len(part.counts) + 1), part.nodes / part.nodes[-1]
    # A row between two nodes counts at both: the node before is one that it passed.
    before = np.append(places[1:], 1.0), np.append(-1.0, places[:-1])
    down, up = (2.0 * each for each in before)
    below = (places >= 0.0) | (down > -1.0 - edges[1:, None])
    return below & ((places <= 0.0) | (up < 1.0 - edges[:-1, None]))


def _mean_error_within(part: ErrorPart, cell: slice, z: float) -> tuple[float, Interval]:
    """Return the mean of errors with predictions in a cell of bins, and its interval."""
    counts = part.counts[cell].sum(axis=0)
    weights = np.zeros((2, *part.counts.shape))
    # Errors that the bounds exclude there have counts of pure noise.
    possible = _possible(part)[cell]
    weights[:, cell] = np.stack([part.nodes, np.ones_like(part.nodes)])[:, None] * possible
    (total, rows), covariance = part.joint(weights)
    noise, kept = covariance[-2:, -2:], np.maximum(counts, 0.0)

    def variance(a: float) -> float:
        of_noise = noise[0, 0] - 2.0 * a * noise[0, 1] + a**2 * noise[1, 1]
        return float(kept @ (part.nodes - a) ** 2 + of_noise)

    limits = float(part.nodes[0]), float(part.nodes[-1])
    ends = not_ruled_out(lambda a: float(total - a * rows), variance, z, limits)
    return (float(np.clip(total / rows, *limits)) if rows > 0.0 else math.nan), ends
