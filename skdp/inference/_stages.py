"""A look in stages: each is at weights that earlier ones have corrected, and all are combined.

The information changes between the weights of a fit and the true ones. Section 8 of
``docs/proofs/inference.md`` derives the weights of the next stage, at which this change cancels to
first order, and the noise that stands for the rest of it. All stages cost as much as one look.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from skdp.inference._posterior import LookPosterior, look_posterior

Array = NDArray[np.float64]

# Shares of the squared mu of the look.
STAGES = (0.1, 0.2, 0.7)
# Change of the score over its linear one, per root mean square change of log odds.
_CURVED, _ROUNDS = 0.25, 2
# Above this multiple of its noise, a reading does not count.
_MOST_NOISE = 1e12
_FARTHEST = 1e30


@dataclass(frozen=True)
class Reading:
    """Released sums at weights, in scaled units, and the noise of each.

    A reading of the score only, such as that of objective perturbation, has no information.
    """

    theta: Array  # (d,)
    score: Array  # (d,)
    score_noise: float
    information: Array | None = None  # (d, d)
    matrix_noise: float = math.inf
    squares: Array | None = None  # (d, d) sum of products of scores, for the sandwich
    squares_noise: float = math.inf


def combine_readings(readings: Sequence[Reading]) -> Reading:
    """Return means of readings by their precision, at the mean of their weights.

    Weights are averaged like scores: each score is linear in the distance from its own weights.
    """
    parts = _shares([each.score_noise for each in readings])
    theta = sum(part * each.theta for part, each in zip(parts, readings, strict=True))
    score = sum(part * each.score for part, each in zip(parts, readings, strict=True))
    information, noise = _mean([(r.information, r.matrix_noise) for r in readings])
    squares, spread = _mean([(r.squares, r.squares_noise) for r in readings])
    deviation = _combined([each.score_noise for each in readings])
    return Reading(
        np.asarray(theta), np.asarray(score), deviation, information, noise, squares, spread
    )


def count_remainders(readings: Sequence[Reading], prior_sd: Array) -> list[Reading]:
    """Return readings whose noise has grown by what is not linear on the way to the estimates."""
    found = list(readings)
    for _ in range(_ROUNDS):
        law = posterior_of(combine_readings(found), prior_sd)
        known = np.maximum(law.eigenvalues, 0.0)
        # Rows have norm at most 1: the trace is at most the sum of p (1 - p).
        total = max(float(known.sum()), law.matrix_noise)
        for place, each in enumerate(readings):
            way = np.clip(law.basis.T @ (law.centre - each.theta), -_FARTHEST, _FARTHEST)
            linear = known * way
            remainder = _CURVED * math.sqrt(way @ linear / total) * float(np.linalg.norm(linear))
            least = max(each.score_noise, _FARTHEST**-1)
            factor = min(math.hypot(1.0, remainder / least), _MOST_NOISE)
            found[place] = replace(
                each,
                score_noise=factor * each.score_noise,
                matrix_noise=factor * each.matrix_noise,
                squares_noise=factor * each.squares_noise,
            )
    return found


def second_weights(first: Sequence[Reading], second_noise: float, prior_sd: Array) -> Array:
    """Return the weights of the next stage.

    `first` has the stages so far and, where there is one, the reading of the fit. `second_noise` is
    the noise of the next stage's score.
    """
    first = count_remainders(first, prior_sd)
    before = combine_readings(first)
    score_share = _shares([before.score_noise, second_noise])[1]
    own = [each.score_noise for each in first if each.information is not None]
    matrix_share = _shares([_combined(own), second_noise])[1]
    found = posterior_of(before, prior_sd)
    return before.theta + stage_step(score_share, matrix_share) * (found.mean - before.theta)


def stage_step(score_share: float, matrix_share: float) -> float:
    """Return the part of the way to corrected weights at which the second stage is.

    Shares are those of the second stage in the combined score and in the combined information.
    """
    share = max(matrix_share, 0.5)
    return 1.0 / (share + math.sqrt(share**2 - score_share * (2.0 * share - 1.0)))


def posterior_of(reading: Reading, prior_sd: Array) -> LookPosterior:
    """Return the posterior of the coefficients given a combined reading."""
    if reading.information is None:
        raise ValueError("A posterior needs a reading of the information.")
    return look_posterior(
        reading.theta,
        reading.score,
        reading.information,
        reading.score_noise,
        reading.matrix_noise,
        prior_sd,
        reading.squares,
        0.0 if reading.squares is None else reading.squares_noise,
    )


def _combined(deviations: Sequence[float]) -> float:
    """Return the deviation of a mean by precision, without overflow."""
    least = max(min(deviations), 1e-300)
    return least / math.sqrt(sum((least / max(each, least)) ** 2 for each in deviations))


def _shares(deviations: Sequence[float]) -> list[float]:
    """Return shares that are proportional to precisions."""
    least = max(min(deviations), 1e-300)
    parts = [(least / max(each, least)) ** 2 for each in deviations]
    return [part / sum(parts) for part in parts]


def _mean(parts: Sequence[tuple[Array | None, float]]) -> tuple[Array | None, float]:
    """Return the mean by precision of the matrices that were released, and its noise."""
    kept = [(matrix, noise) for matrix, noise in parts if matrix is not None]
    if not kept:
        return None, math.inf
    noises = [noise for _, noise in kept]
    shares = _shares(noises)
    mean = sum(share * matrix for share, (matrix, _) in zip(shares, kept, strict=True))
    return np.asarray(mean), _combined(noises)
