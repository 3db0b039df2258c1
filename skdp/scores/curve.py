"""What a noisy table of scores says of log odds and of thresholds, shrunk where noise dominates."""

from __future__ import annotations

import numpy as np
from scipy.optimize import least_squares
from scipy.special import expit, logit

from skdp.scores.bins import ScoreTable

# Where a probability of 0 or 1 lies: log odds of 27.6.
_LEAST = 1e-12
# A bin counts by n / (n + this many deviations of its noise).
_CAUTION = 3.0


def log_odds(probabilities: np.ndarray) -> np.ndarray:
    """Return log odds, finite at 0 and 1 too."""
    return logit(np.clip(probabilities, _LEAST, 1.0 - _LEAST))


def fit_logistic(table: ScoreTable, with_intercept: bool = True) -> tuple[float, float]:
    """Return intercept and positive slope of a logistic regression of labels on log odds of scores.

    Without noise they solve its equations, up to where scores lie within bins. Equations are
    weighted by the inverse of their covariance, of noise and sampling, with one pseudo-observation
    of the identity: standard deviation 1 of the intercept and of the logarithm of the slope.
    """
    places, spread = _places(table)
    negatives, positives = table.counts @ spread.T
    counts, noise = _totals(table), np.sqrt(np.diag(table.covariance)[: table.bins.count])
    # Of bins that hold little but noise neighbours say so too.
    near = np.convolve(np.pad(counts, 1, mode="edge"), np.full(3, 1.0 / 3.0), mode="valid")
    weights = np.repeat(near / (near + _CAUTION * noise), places.size // counts.size)
    moments = np.stack([weights, weights * places])
    start = expit(places)
    by_count = np.hstack([-(moments * start) @ spread, (moments * (1.0 - start)) @ spread])
    rows = np.maximum(spread @ counts, 0.0) + 1.0 / places.size
    variance = (moments * (rows * start * (1.0 - start))) @ moments.T
    root = np.linalg.cholesky(variance + by_count @ table.covariance @ by_count.T)
    scales = np.array([float(with_intercept), 1.0])

    def residuals(free: np.ndarray) -> np.ndarray:
        intercept, slope = scales * free
        curve = expit(intercept + np.exp(slope) * places)
        equations = moments @ (positives * (1.0 - curve) - negatives * curve)
        return np.concatenate([np.linalg.solve(root, equations), free])

    intercept, slope = scales * least_squares(residuals, np.zeros(2), bounds=(-20.0, 20.0)).x
    return float(intercept), float(np.exp(slope))


def smoothed(table: ScoreTable) -> np.ndarray:
    """Return counts drawn towards those of the logistic curve by what noise explains of the gap.

    Shrinkage is by the positive part of James and Stein: without noise counts stay as they are.
    """
    places, spread = _places(table)
    intercept, slope = fit_logistic(table)
    curve = expit(intercept + slope * places)
    rows = np.maximum(spread @ _totals(table), 0.0)
    rows *= max(table.counts.sum(), 1.0) / rows.sum()
    modelled = np.stack([rows * (1.0 - curve), rows * curve])
    modelled = modelled.reshape(2, table.bins.count, -1).sum(axis=2)
    excess = table.counts - modelled
    explained = np.trace(table.covariance) / max(float((excess**2).sum()), _LEAST)
    return modelled + max(0.0, 1.0 - explained) * excess


def best_bin(counts: np.ndarray, metric: str, costs: tuple[float, float]) -> int:
    """Return the first bin to call positive; nothing is divided by a count that may be below 1."""
    negatives, positives = np.maximum(counts.sum(axis=1), 1.0)
    below = np.cumsum(counts[:, :-1], axis=1)
    false = np.clip(negatives - below[0], 0.0, negatives)
    missed = np.clip(below[1], 0.0, positives)
    if metric == "youden":
        loss = false / negatives + missed / positives
    elif metric == "f1":
        loss = (false + missed) / (2.0 * positives - missed + false)
    else:
        loss = costs[0] * false + costs[1] * missed
    return int(np.argmin(loss)) + 1


def _places(table: ScoreTable) -> tuple[np.ndarray, np.ndarray]:
    """Return the log odds of the cells of bins, and the matrix that shares counts out."""
    low, high = table.bins.parts
    return log_odds(0.5 * (low + high)), table.bins.spreads[0]


def _totals(table: ScoreTable) -> np.ndarray:
    """Return rows a bin, with one more shared out among all: there is something everywhere."""
    return np.maximum(table.counts.sum(axis=0), 0.0) + 1.0 / table.bins.count
