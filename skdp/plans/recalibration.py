"""Releases beside a fit's own: label counts, and the table that sets probabilities right.

Every bound on a record is then that of the fit without weights, whatever has been counted
(Theorem 2 of ``docs/proofs/class_weights.md``).

The table is counted with the weights that are released already, so that the two compose. An
intercept and a slope of log odds are read off it. Proofs: Theorems 1 to 3 of
``docs/proofs/recalibration.md``.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from scipy.special import expit

from skdp.accounting.numerics import gaussian_profile
from skdp.mechanisms.analytic_gaussian import analytic_gaussian_sigma
from skdp.mechanisms.contribution import Adjacency
from skdp.mechanisms.random_stream import RandomStream
from skdp.mechanisms.release import Release
from skdp.plans.defaults import PublicNumbers
from skdp.plans.protocol import cost, leave_room
from skdp.plans.scores import ScoreBins, ScoreTable, fit_logistic

LABEL_COUNTS, SCORES_BY_LABEL = "label counts", "scores by label"

# What the count may cost: a share of the square of mu, or of epsilon without a delta.
_SHARE, _PURE_SHARE = 0.02, 0.05
# What the rows of one id count together, in exact numbers.
_UNIT = 2.0**22


def label_counts(epsilon: float, delta: float, adjacency: Adjacency, n_classes: int) -> Release:
    """Return the release of how many records each label has, for a small share of the target."""
    counts = Release.shares(LABEL_COUNTS, adjacency, 0)
    if adjacency == "add-remove":  # of exact sums, with nothing to be rounded up
        counts = replace(counts, l2=1.0)
    if delta == 0.0:
        return counts.without_delta(_PURE_SHARE * epsilon, n_classes, discrete=True)
    multiplier = analytic_gaussian_sigma(epsilon, delta) / math.sqrt(_SHARE)
    return counts.on_grid(multiplier, n_classes)


def count_labels(codes: np.ndarray, n_classes: int, shares: np.ndarray | None) -> np.ndarray:
    """Count records by label; rows of one id count their shares, of which sums are exact."""
    if shares is None:
        return np.bincount(codes, minlength=n_classes).astype(np.float64)
    whole = np.floor(shares * _UNIT)
    return np.bincount(codes, whole, minlength=n_classes) / _UNIT


def label_weights(counts: np.ndarray, noise: float) -> np.ndarray:
    """Return weights as 1 over noisy counts, the largest 1; a count is at least its noise."""
    counts = np.maximum(counts, max(1.0, noise))
    return counts.min() / counts


BINS = ScoreBins.make(12, (0.5,))
# The table's part of the square of mu.
SHARE = 0.05
# The signal-to-noise ratio from which the table is worth its part.
ENOUGH_SIGNAL = 300.0
# Rows that are scored at once.
_BLOCK = 4096


def table_of_scores(adjacency: Adjacency, mu: float) -> Release:
    """Return the release of a table of scores by label that costs mu; a record adds at most 1."""
    return Release.shares(SCORES_BY_LABEL, adjacency, 0).on_grid(1.0 / mu, 2 * BINS.count)


def plan_with_table(
    build: Callable[[PublicNumbers], Any],
    numbers: PublicNumbers,
    epsilon: float | None,
    share: float = SHARE,
) -> Any:
    """Return the plan that releases a table after its own, and meets the target epsilon with it.

    Without a target the plan stays as it is, and the table comes on top.
    """
    if epsilon is None:
        plan = build(numbers)
        mu = gaussian_profile.mu(cost(plan, numbers.delta), numbers.delta)
        table = table_of_scores(numbers.adjacency, mu * math.sqrt(share / (1.0 - share)))
        return replace(plan, after=(table,))
    mu = gaussian_profile.mu(epsilon, numbers.delta)
    table = table_of_scores(numbers.adjacency, mu * math.sqrt(share))
    return leave_room(build, numbers, after=(table,))


def score_rows(X: Any, coef: np.ndarray, intercept: np.ndarray) -> np.ndarray:
    """Return scores of which each is a function of its row alone, to the last bit."""
    if not isinstance(X, np.ndarray):  # sparse products go row by row
        return np.asarray(X @ coef.T) + intercept
    # Those of dense matrices round by a row's place; sums along an axis in memory do not.
    scores = np.empty((X.shape[0], coef.shape[0]))
    memory = np.empty((min(_BLOCK, X.shape[0]), X.shape[1]))
    for start in range(0, X.shape[0], _BLOCK):
        for k, weights in enumerate(coef):
            block = slice(start, start + _BLOCK)
            products = np.multiply(X[block], weights, out=memory[: len(X[block])])
            scores[block, k] = np.add.reduce(products, axis=1)
    return scores + intercept


def count_scores(scores: np.ndarray, codes: np.ndarray, weights: np.ndarray | None) -> np.ndarray:
    """Return a table of label (0, 1) by bin of the score.

    Of several classes a row counts if it is of one of the two with the largest scores: then the
    later one is the label 1, and the score is how much it is ahead. A row of equal scores says
    nothing of their scale, and a row of zeros without an intercept is as good as none.
    """
    if scores.shape[1] == 1:
        margins, labels, counted = scores[:, 0], codes == 1, True
    else:
        first, second = np.sort(np.argpartition(-scores, 1, axis=1)[:, :2], axis=1).T
        rows = np.arange(codes.size)
        margins = scores[rows, second] - scores[rows, first]
        labels, counted = codes == second, (codes == first) | (codes == second)
    kept = counted & (margins != 0.0)
    cells = labels[kept] * BINS.count + BINS.places(expit(margins[kept]))
    # Whole numbers of a small unit, rounded down: sums are exact, and of a record at most 1.
    share = None if weights is None else np.floor(weights[kept] * _UNIT) / _UNIT
    return np.bincount(cells, share, 2 * BINS.count).reshape(2, -1).astype(np.float64)


def release_line(
    table: np.ndarray, release: Release, stream: RandomStream, with_intercept: bool
) -> tuple[float, float]:
    """Release a table, and return the intercept and the positive slope that it tells."""
    counts = release.make(table, stream)
    covariance = release.sigma**2 * np.eye(table.size)
    return fit_logistic(ScoreTable(counts, covariance, BINS), with_intercept)
