"""Widths of intervals before a look is paid for, from public numbers.

Units are scaled. Section 9 of ``docs/proofs/inference.md`` derives them.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit, logit, ndtri

Array = NDArray[np.float64]

_NODES = 64
# Directions of less than this share of the largest second moment have no information.
_LEAST_MOMENT = 1e-10


class ExpectedWidths(NamedTuple):
    """Widths that a look is expected to have, for each contrast, in log odds."""

    width: Array  # (k,)
    non_private: Array  # (k,) infinite where rows do not determine the contrast
    prior_share: Array  # (k,) posterior variance over prior variance

    @property
    def ratio(self) -> Array:
        """Width over the width without privacy, (k,)."""
        return self.width / self.non_private


def mean_curvature(prevalence: float, roc_auc: float = 0.75) -> float:
    """Return the mean of p (1 - p) over records, from a prevalence and an area under the curve.

    Log odds are taken as normal within each class, with one variance (the binormal model).
    """
    if not (0.0 < prevalence < 1.0 and 0.5 <= roc_auc < 1.0):
        raise ValueError("`prevalence` must be in (0, 1) and `roc_auc` in [0.5, 1).")
    variance = 2.0 * ndtri(roc_auc) ** 2
    nodes, weights = np.polynomial.hermite_e.hermegauss(_NODES)
    total = 0.0
    for share, side in ((prevalence, 0.5), (1.0 - prevalence, -0.5)):
        chance = expit(logit(prevalence) + side * variance + np.sqrt(variance) * nodes)
        total += share * float(weights @ (chance * (1.0 - chance))) / np.sqrt(2.0 * np.pi)
    return total


def expected_widths(
    second_moments: ArrayLike,
    n_records: float,
    curvature: float,
    *,
    score_noise: float,
    matrix_noise: float,
    fit_noise: float,
    prior_sd: ArrayLike,
    contrasts: ArrayLike,
    level: float = 0.95,
    own_moments: Any = None,
) -> ExpectedWidths:
    """Return the widths of intervals that one look is expected to give, in scaled units."""
    # `second_moments` are means of x x^T over records, `curvature` that of p (1 - p). Noise is that
    # of a `Reading`; `fit_noise` is that of a sum of scores, per coordinate. `own_moments` are
    # those without privacy, if they are others: longer rows count less in the look.
    rows, moments = np.asarray(contrasts), np.asarray(second_moments)
    information = n_records * curvature * 0.5 * (moments + moments.T)
    identity = np.eye(len(moments))
    variances = np.broadcast_to(prior_sd, len(moments)) ** 2.0
    prior = np.diag(1.0 / variances)

    def posterior(noise: Array) -> Any:
        return np.linalg.inv(information @ np.linalg.solve(noise, information) + prior)

    distance = posterior(information + max(fit_noise, 1e-12) ** 2 * identity)
    noise = information + max(score_noise, 1e-12) ** 2 * identity
    noise += 0.5 * matrix_noise**2 * (np.trace(distance) * identity + distance)
    variance = ((rows @ posterior(noise)) * rows).sum(axis=1)

    if own_moments is not None:
        information = n_records * curvature * np.asarray(own_moments)
    values, basis = np.linalg.eigh(information)
    known, squares = values > _LEAST_MOMENT * values[-1], (rows @ basis) ** 2
    own = (squares[:, known] / values[known]).sum(axis=1)
    lost = squares[:, ~known].sum(axis=1) > _LEAST_MOMENT * squares.sum(axis=1)
    both = 2.0 * ndtri(0.5 + 0.5 * level)
    return ExpectedWidths(
        both * np.sqrt(variance),
        np.where(lost, np.inf, both * np.sqrt(own)),
        variance / (rows**2 @ variances),
    )
