"""A look in stages: each is at weights that earlier ones have corrected, and all are combined.

The information changes between the weights of a fit and the true ones. Section 8 of
``docs/proofs/inference.md`` derives the weights of the next stage, at which this change cancels to
first order, and the noise that stands for the rest of it. All stages cost as much as one look.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from skdp.inference._posterior import Reading as Reading
from skdp.inference._posterior import posterior_of as posterior_of

Array = NDArray[np.float64]

# Shares of the squared mu of the look.
STAGES = (0.1, 0.2, 0.7)
# Change of the score over its linear one, per root mean square change of log odds.
_CURVED, _ROUNDS = 0.25, 2
# Above this multiple of its noise, a reading does not count.
_MOST_NOISE = 1e12
_FARTHEST = 1e30


def combine_readings(readings: Sequence[Reading]) -> Reading:
    """Return means of readings by their precision, at the mean of their weights.

    Weights are averaged like scores: each score is linear in the distance from its own weights.
    """
    theta, _ = _mean((each.theta, each.score_noise) for each in readings)
    score, deviation = _mean((each.score, each.score_noise) for each in readings)
    assert theta is not None and score is not None
    information = _mean((each.information, each.matrix_noise) for each in readings)
    squares = _mean((each.squares, each.squares_noise) for each in readings)
    return Reading(theta, score, deviation, *information, *squares)


def count_remainders(readings: Sequence[Reading], prior_sd: Array) -> list[Reading]:
    """Return readings with more noise, by the nonlinear part of the way to the estimates."""
    found = list(readings)
    for _ in range(_ROUNDS):
        combined = combine_readings(found)
        law = posterior_of(combined, prior_sd)
        known = np.maximum(law.eigenvalues, 0.0)
        # Rows have norm at most 1: the trace is at most the sum of p (1 - p).
        total = max(float(known.sum()), combined.matrix_noise)
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
    own = [each.score_noise for each in first if each.information is not None]
    score_share = _precisions([before.score_noise, second_noise])[0][1]
    matrix_share = _precisions([_precisions(own)[1], second_noise])[0][1]
    corrected = posterior_of(before, prior_sd).coefficients.mean
    return before.theta + stage_step(score_share, matrix_share) * (corrected - before.theta)


def stage_step(score_share: float, matrix_share: float) -> float:
    """Return the part of the way to corrected weights at which the second stage is.

    Shares are those of the second stage in the combined score and in the combined information.
    """
    share = max(matrix_share, 0.5)
    return 1.0 / (share + math.sqrt(share**2 - score_share * (2.0 * share - 1.0)))


def _precisions(deviations: Sequence[float]) -> tuple[Array, float]:
    """Return shares proportional to precisions, and the deviation of the mean, without overflow."""
    noise = np.maximum(deviations, 1e-300)
    parts = (noise.min() / noise) ** 2
    return parts / parts.sum(), float(noise.min() / math.sqrt(parts.sum()))


def _mean(parts: Iterable[tuple[Array | None, float]]) -> tuple[Array | None, float]:
    """Return the mean by precision of the arrays that were released, and its noise."""
    kept = [(array, noise) for array, noise in parts if array is not None]
    if not kept:
        return None, math.inf
    shares, deviation = _precisions([noise for _, noise in kept])
    return np.tensordot(shares, [array for array, _ in kept], 1), deviation
