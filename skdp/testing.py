"""Checks of private estimators that their users and their authors can run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from sklearn.base import clone

from skdp.mechanisms.random_stream import RandomStream
from skdp.mechanisms.trace import ReleaseTrace, record_releases


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
    """

    distances: np.ndarray
    sensitivities: np.ndarray

    @property
    def largest_ratio(self) -> float:
        """Largest distance over its declared sensitivity; at most 1 for a sound estimator."""
        return float(np.max(self.distances / self.sensitivities))


class FrozenStream(RandomStream):
    """A seeded stream that forgets the table and the parameters it is used with.

    Build one with ``FrozenStream.from_seed(seed)``. Fits that are given one each have the same
    noise whatever they are fitted on, which is good for comparing them in tests, and never for a
    release.
    """

    __slots__ = ()

    def bound_to(self, context: bytes) -> Self:
        """Return the stream itself."""
        return self


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
        A neighbour of equal size. Under add-remove, a removed row is stood for by one that
        contributes nothing: a row of zeros, with ``fit_intercept=False``.
    seed : int, default=0
        Seed of the shared randomness.
    rounding : float, default=1e-9
        Relative excess over the sensitivity that is put down to rounding.

    Returns
    -------
    ReplayReport
        Distances and declared sensitivities, release by release.

    Raises
    ------
    AssertionError
        If the number of releases, their labels, shapes, declared sensitivities or noise differ,
        or if a distance exceeds its sensitivity.
    """
    recorded = _record(estimator, X, y, seed, None)
    replayed = _record(estimator, X_neighbour, y_neighbour, seed, recorded)
    if len(recorded.releases) != len(replayed.releases):
        raise AssertionError(
            f"{len(recorded.releases)} releases on one data set, {len(replayed.releases)} on the "
            "other: the control flow depends on private rows."
        )
    distances, sensitivities = [], []
    for number, (one, other) in enumerate(zip(recorded.releases, replayed.releases, strict=True)):
        declared = (one.label, one.value.shape, one.sensitivity, one.sigma, one.norm)
        if declared != (other.label, other.value.shape, other.sensitivity, other.sigma, other.norm):
            raise AssertionError(f"Release {number} is declared differently on the neighbour.")
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


def _record(
    estimator: Any, X: Any, y: Any, seed: int, replayed: ReleaseTrace | None
) -> ReleaseTrace:
    run = clone(estimator).set_params(random_state=FrozenStream.from_seed(seed))
    with record_releases(replayed) as trace:
        run.fit(X, y)
    return trace
