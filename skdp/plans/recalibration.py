"""Releases that accompany a fit: label counts, and the table that recalibrates probabilities.

Every bound on a record is that of the fit without weights, whatever the counts (Theorem 2 of
``docs/proofs/class_weights.md``).

The table is counted with the released weights, so that the two compose. An intercept and a slope of
log odds are estimated from it. Proofs: Theorems 1 to 3 of ``docs/proofs/recalibration.md``.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from scipy.special import expit

from skdp.accounting.numerics import gaussian_profile
from skdp.mechanisms.analytic_gaussian import analytic_gaussian_sigma
from skdp.mechanisms.contribution import Adjacency
from skdp.mechanisms.random_stream import RandomStream
from skdp.mechanisms.release import Release
from skdp.models import network_scores
from skdp.plans.defaults import PublicNumbers
from skdp.plans.protocol import cost, leave_room
from skdp.plans.scores import ScoreBins, ScoreTable, fit_logistic
from skdp.tables.records import Records
from skdp.tables.row_scores import ask_rows, probe
from skdp.tables.row_sources import map_rows

LABEL_COUNTS, SCORES_BY_LABEL = "label counts", "scores by label"

# What the count may cost: a share of the square of mu, or of epsilon without a delta.
_SHARE, _PURE_SHARE = 0.02, 0.05
# What the rows of one id count together, in exact numbers.
_UNIT = 2.0**22


@dataclass(frozen=True)
class LabelCounts(Release):
    """Number of records per label, counted before a fit to weight its rows."""

    most: float = 1.0  # what all rows of one id count together

    def weigh(self, records: Records, model: Any, stream: RandomStream) -> Records:
        """Return records in which rare labels count more, by noisy counts."""
        weights, targets = records.row_weight, records.targets
        parts = None if weights is None else weights / self.most
        counts = count_labels(targets, max(2, model.n_outputs), parts)
        noisy = self.make(counts, stream.spawn(LABEL_COUNTS).spawn("noise"))
        return records.weigh(label_weights(noisy, self.sigma)[targets])


def label_counts(
    epsilon: float, delta: float, adjacency: Adjacency, n_classes: int, most: float = 1.0
) -> LabelCounts:
    """Return the release of the number of records per label, for a small share of the target."""
    counts = replace(LabelCounts.shares(LABEL_COUNTS, adjacency, 0), most=most)
    if adjacency == "add-remove":  # of exact sums, with nothing to be rounded up
        counts = replace(counts, l2=1.0)
    if delta == 0.0:
        return counts.without_delta(_PURE_SHARE * epsilon, n_classes, discrete=True)
    multiplier = analytic_gaussian_sigma(epsilon, delta) / math.sqrt(_SHARE)
    return counts.on_grid(multiplier, n_classes)


def count_labels(codes: np.ndarray, n_classes: int, shares: np.ndarray | None) -> np.ndarray:
    """Count records by label; rows of one id count their shares, which are summed exactly."""
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


@dataclass(frozen=True)
class ScoresByLabel(Release):
    """Table of scores by label, counted after a fit with its released weights."""

    most: float = 1.0  # what all rows of one id count together
    with_intercept: bool = True

    def tell(
        self, weights: np.ndarray, records: Records, model: Any, stream: RandomStream
    ) -> tuple[float, float]:
        """Return the intercept and the slope that recalibrate scores of the weights."""
        X, row_weight, unpacked = records.X, records.row_weight, model.unpack(weights)
        if "network" in model.facts:
            rest = dict(zip(("coefs", "intercepts"), unpacked, strict=True))
            score = _alone(partial(network_scores, **rest, activation=model.activation), X)
        else:
            coef, intercept = unpacked
            score = partial(score_rows, coef=coef, intercept=intercept)
        if row_weight is not None and model.by_unit:
            row_weight = row_weight / self.most  # what a unit counts is at most 1 in the table
        if model.class_weights is not None:  # probabilities are to be of the weighted table
            share = np.array(model.class_weights) / max(model.class_weights)
            row_weight = share[records.targets] * (1.0 if row_weight is None else row_weight)
        with np.errstate(all="ignore"):  # a warning of a huge row would tell of it, un-noised
            tables = map_rows(partial(_count, score), X, records.targets, row_weight)
        table = np.sum(tables, axis=0)  # of exact counts
        with_intercept = self.with_intercept and model.n_outputs == 1
        return release_line(table, self, stream.spawn("scores"), with_intercept)


def table_of_scores(adjacency: Adjacency, mu: float) -> ScoresByLabel:
    """Return the release of a table of scores by label that costs mu; a record adds at most 1."""
    return ScoresByLabel.shares(SCORES_BY_LABEL, adjacency, 0).on_grid(1.0 / mu, 2 * BINS.count)


def plan_with_table(
    build: Callable[[PublicNumbers], Any],
    numbers: PublicNumbers,
    epsilon: float | None,
    share: float = SHARE,
    **counted: Any,
) -> Any:
    """Return the plan that releases a table after its own, and meets the target epsilon with it.

    Without a target the plan does not change, and the table adds to its cost. `counted` specifies
    how rows count in it.
    """
    if epsilon is None:
        plan = build(numbers)
        mu = gaussian_profile.mu(cost(plan, numbers.delta), numbers.delta)
        table = table_of_scores(numbers.adjacency, mu * math.sqrt(share / (1.0 - share)))
        return replace(plan, after=(replace(table, **counted),))
    mu = gaussian_profile.mu(epsilon, numbers.delta)
    table = table_of_scores(numbers.adjacency, mu * math.sqrt(share))
    return leave_room(build, numbers, after=(replace(table, **counted),))


def _alone(score: Any, X: Any) -> Any:
    """Return a function that scores each row separately, equal to the last bit."""
    return partial(ask_rows, score, way=probe(score, X).way)


def _count(score: Any, X: Any, targets: np.ndarray, weights: np.ndarray | None) -> np.ndarray:
    return count_scores(score(X), targets, weights)


def score_rows(X: Any, coef: np.ndarray, intercept: np.ndarray) -> np.ndarray:
    """Return scores that are functions of their rows only, to the last bit."""
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

    With several classes, a row counts if its class has one of the two largest scores. The later of
    the two classes is then the label 1, and the score is its lead. A row of equal scores carries no
    information on their scale; a row of zeros without an intercept counts as no row.
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
    """Release a table, and return the intercept and the positive slope estimated from it."""
    counts = release.make(table, stream)
    covariance = release.sigma**2 * np.eye(table.size)
    return fit_logistic(ScoreTable(counts, covariance, BINS), with_intercept)
