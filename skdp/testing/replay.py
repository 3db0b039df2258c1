"""Replay a fit on a neighbouring table, and compare what went into each release."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone

from skdp.mechanisms.trace import ReleaseTrace, TracedRelease
from skdp.testing.frozen import FrozenStream, fit_frozen


@dataclass(frozen=True)
class ReplayReport:
    """How far the un-noised values of two neighbouring data sets are apart.

    Parameters
    ----------
    distances : ndarray of shape (n_releases,)
        Distance of the values of each release, in the norm of its mechanism: Euclidean for
        Gaussian noise.
    sensitivities : ndarray of shape (n_releases,)
        The declared sensitivities.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp.testing import ReplayReport
    >>> ReplayReport(distances=np.array([0.3]), sensitivities=np.array([0.5])).largest_ratio
    0.6
    """

    distances: np.ndarray
    sensitivities: np.ndarray

    @property
    def largest_ratio(self) -> float:
        """Largest distance over its declared sensitivity; at most 1 for a sound estimator."""
        return float(np.max(self.distances / self.sensitivities))


def replay_on_neighbour(
    estimator: Any,
    X: Any,
    y: Any,
    X_neighbour: Any,
    y_neighbour: Any,
    *,
    seed: int = 0,
    rounding: float = 1e-9,
) -> ReplayReport:
    """Run a fit, replay it on neighbouring data, and compare what went into each release.

    Both runs draw the same lots, and the second one's mechanisms return what they returned in
    the first, so that the runs see the same iterates. Then every un-noised value may move by at
    most the declared sensitivity, and the sequence of releases must be the same.

    Parameters
    ----------
    estimator : private estimator
        Cloned, not changed. Give it ``classes=``, so that both runs know the same labels.
    X, y : array-like
        A data set.
    X_neighbour, y_neighbour : array-like
        A neighbour. Under add-remove it lacks a row, or has one more, if nothing that is declared
        rests on the number of rows. Where that is public a row of zeros stands for a row that is
        gone, with ``fit_intercept=False``: it contributes nothing.
    seed : int, default=0
        Seed of the shared randomness.
    rounding : float, default=1e-9
        Relative excess over the sensitivity that is put down to rounding.

    Raises
    ------
    AssertionError
        If the number of releases, their labels, shapes, declared sensitivities or noise differ,
        or if a distance exceeds its sensitivity.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp import OperaLogisticRegression
    >>> from skdp.testing import replay_on_neighbour
    >>> X, y = np.linspace(-1.0, 1.0, 20)[:, None], np.arange(20) // 10
    >>> neighbour = X.copy()
    >>> neighbour[0] = 1.0  # one row is replaced
    >>> classifier = OperaLogisticRegression(epsilon=1.0, delta=1e-6, data_norm=1.0, classes=[0, 1])
    >>> 0.0 < replay_on_neighbour(classifier, X, y, neighbour, y).largest_ratio <= 1.0
    True
    """
    recorded = _fit(estimator, X, y, seed, None)
    replayed = _fit(estimator, X_neighbour, y_neighbour, seed, recorded)
    return compare_releases(recorded.releases, replayed.releases, rounding)


def _fit(estimator: Any, X: Any, y: Any, seed: int, replayed: ReleaseTrace | None) -> ReleaseTrace:
    model = clone(estimator)
    if "random_state" in model.get_params(deep=False):
        # Unlike frozen entropy this is the same in every process.
        model.set_params(random_state=FrozenStream.from_seed(seed))
    return fit_frozen(model, X, y, seed=seed, replayed=replayed).trace


def compare_releases(
    recorded: Sequence[TracedRelease], replayed: Sequence[TracedRelease], rounding: float = 1e-9
) -> ReplayReport:
    """Compare what went into each release of a fit and of its replay on a neighbour."""
    if len(recorded) != len(replayed):
        raise AssertionError(
            f"{len(recorded)} releases on one data set, {len(replayed)} on the other: the control "
            "flow depends on private rows."
        )
    distances, sensitivities = [], []
    for number, (one, other) in enumerate(zip(recorded, replayed, strict=True)):
        declared, again = (
            (r.label, r.value.shape, r.value.dtype, r.sensitivity, r.sigma, r.norm)
            for r in (one, other)
        )
        if declared != again:
            raise AssertionError(
                f"Release {number} is declared differently on the neighbour: {declared}, {again}. "
                "Label, shape, type, sensitivity and scale may depend on public numbers alone."
            )
        distance = float(np.linalg.norm((one.value - other.value).ravel(), one.norm))
        # Written so that a distance that is no number fails too.
        if not distance <= one.sensitivity * (1.0 + rounding):
            raise AssertionError(
                f"Release {number} ({one.label}) moved by {distance:.6g}, more than its declared "
                f"sensitivity {one.sensitivity:.6g}."
            )
        distances.append(distance)
        sensitivities.append(one.sensitivity)
    return ReplayReport(np.array(distances), np.array(sensitivities))
