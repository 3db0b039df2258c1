"""Standardise features by a private mean and a private variance."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from skdp.base.parameters import (
    Adjacency,
    Auto,
    check_choice,
    check_integer,
    check_real,
    parameter,
    released,
)
from skdp.base.scikit_learn import OneToOneFeatureMixin
from skdp.mechanisms.additive import AdditiveMechanism
from skdp.mechanisms.contribution import ROUND_UP, ContributionBound
from skdp.mechanisms.random_stream import RandomStream
from skdp.mechanisms.release import Release
from skdp.plans.second_moments import (
    bound_rows,
    row_blocks,
    second_moment_bound,
    share_number,
    share_rows,
)
from skdp.preprocessing._private_transformer import PrivateTransformer
from skdp.preprocessing.bounded_scaler import feature_bounds, middle_and_half, to_unit_interval
from skdp.tables.records import Records

# A record contributes (e, a x): its energies |x_g|^2, one for each group g, and its row.
_SQUARED_MEAN_WEIGHT = 0.5
_MEAN_WEIGHT = math.sqrt(_SQUARED_MEAN_WEIGHT)


def group_moment_bound(n_groups: int, reason: str) -> ContributionBound:
    """Return the sensitivity of :func:`group_moment_sums`; with 0 groups only rows are summed."""
    if n_groups == 0:
        return ContributionBound(ROUND_UP, 2.0 * ROUND_UP, reason)
    # No pair of rows is further apart than two pairs of an outer product and its row can be.
    return second_moment_bound(n_groups, _SQUARED_MEAN_WEIGHT, reason)


def group_moment_sums(
    units: np.ndarray, n_groups: int, shares: np.ndarray | None = None
) -> np.ndarray:
    """Return the sums of energies and of rows, as one vector, over rows of norm at most 1."""
    shared = share_rows(units, shares)
    total = shared.sum(axis=0)
    if n_groups == 0:
        return total
    squares = np.einsum("ij,ij->j", shared, units)
    return np.concatenate([squares.reshape(n_groups, -1).sum(axis=1), _MEAN_WEIGHT * total])


def group_statistics(
    noisy: np.ndarray, noise: float, n_groups: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return the mean row and the variance of each group from noisy means of sums.

    `noise` is the standard deviation in each; no variance is smaller than its own noise.
    """
    if n_groups == 0:
        return noisy, np.empty(0)
    mean, noise_of_mean = noisy[n_groups:] / _MEAN_WEIGHT, noise / _MEAN_WEIGHT
    size = mean.size // n_groups
    # The energy of a noisy mean is too large by that of its noise, on average.
    excess = size * noise_of_mean**2
    of_mean = np.maximum((mean**2).reshape(n_groups, size).sum(axis=1) - excess, 0.0)
    floor = np.sqrt(noise**2 + 4.0 * of_mean * noise_of_mean**2 + 2.0 * excess**2 / size)
    return mean, np.maximum(noisy[:n_groups] - of_mean, floor) / size


# Weight w of the squares in the pair (u, w (u^2 - c)), c = (1 + 1/w^2) / 2, u in [-1, 1]. Both
# minimise the noise of the two moments together. Under replace-one the pairs then lie no further
# apart than the u alone (which holds up to w^2 = (11 + 5 sqrt(5)) / 8): squares come for free.
_SQUARE_WEIGHTS: dict[Adjacency, float] = {"replace-one": 1.665, "add-remove": math.sqrt(2.0)}


def moment_bound(n_features: int, weight: float) -> ContributionBound:
    """Return the sensitivity of joint sums of features and weighted squares, weight 0 or >= 1.

    One record contributes ``(u_j, w (u_j^2 - c))`` for every feature j, with ``u_j`` in [-1, 1] and
    ``c = (1 + 1/w^2) / 2``. With w = 0 it contributes only ``u_j``. Norm and diameter are attained.
    """
    norm, gap = 1.0, 2.0
    if weight > 0.0:
        norm = (weight + 1.0 / weight) / 2.0
        if weight * weight > 2.0:
            # Beyond, pairs with u + v = s > 0 have a local maximum of their distance.
            s = (1.0 + math.sqrt(1.0 - 2.0 / (weight * weight))) / 2.0
            gap = max(gap, (2.0 - s) * math.hypot(1.0, weight * s))
    root = math.sqrt(n_features) * ROUND_UP
    return ContributionBound(
        norm * root, gap * root, "every feature is clipped to its public bounds lower= and upper="
    )


def moment_sums(units: np.ndarray, weight: float, shares: np.ndarray | None = None) -> np.ndarray:
    """Return the sums of :func:`moment_bound` over rows in [-1, 1], one per line."""
    shared = share_rows(units, shares)
    first = shared.sum(axis=0)
    if weight == 0.0:
        return first[np.newaxis]
    centre = (1.0 + 1.0 / (weight * weight)) / 2.0
    second = np.einsum("ij,ij->j", shared, units) - share_number(units, shares) * centre
    return np.stack([first, weight * second])


class DPStandardScaler(OneToOneFeatureMixin, PrivateTransformer):
    """Standardise features with a private mean and a private variance.

    Rows are clipped to public bounds. The sums of all features and of their squares are released
    together, once, with Gaussian noise. Use it if the public bounds are much wider than the values;
    for tight bounds, `BoundedScaler` spends nothing. With a public bound on the norm of rows
    instead, the noise does not grow with the number of features. Use this for long rows, such as
    features of images.

    See Also
    --------
    BoundedScaler : Scales with public bounds and spends nothing.
    DPQuantileClipper : Finds bounds privately when none are known.

    Notes
    -----
    L2 sensitivities of the joint sums, for values mapped to [-1, 1] and d features, or in units of
    `input_norm`:

    - features and squares, with bounds: ``2 sqrt(d)`` under replace-one, ``3 sqrt(d / 8)`` under
      add-remove;
    - rows and squares of groups, with `input_norm`: ``5 / sqrt(8)`` and ``sqrt(3 / 2)``;
    - rows, with `input_norm` and ``with_std=False``: 2 and 1.

    Under replace-one, the sums of the features without squares have the same sensitivity ``2
    sqrt(d)``. Proofs: :ref:`Theorem 2 of private preprocessing <private-preprocessing-2>` and, with
    `input_norm`, :ref:`Theorem 6 <private-preprocessing-6>`.

    References
    ----------
    Balle & Wang (2018), "Improving the Gaussian Mechanism for Differential Privacy", Theorem 8.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp.preprocessing import DPStandardScaler
    >>> ages = np.random.default_rng(0).normal(50.0, 10.0, (5000, 1))
    >>> scaler = DPStandardScaler(epsilon=1.0, lower=0.0, upper=120.0).fit(ages)
    >>> bool(abs(scaler.mean_[0] - 50.0) < 1.5)
    True
    >>> epsilon, delta = scaler.privacy_spent_
    """

    lower: Any = parameter(
        "float or array-like of shape (n_features,)",
        """Public lower bounds of the features; values beyond the bounds are clipped. The noise
        grows with the distance between the bounds. Not allowed with `input_norm`.""",
        default=-1.0,
    )
    upper: Any = parameter(
        "float or array-like of shape (n_features,)",
        "Public upper bounds of the features; values beyond them are clipped.",
        default=1.0,
    )
    with_mean: bool = parameter("bool", "Whether to remove the mean.", default=True)
    with_std: bool = parameter("bool", "Whether to scale to unit variance.", default=True)
    row_norm: float | Auto | None = parameter(
        'float, "auto" or None',
        """Largest norm of output rows; longer rows are scaled down to it. Set `data_norm` of the
        private estimator to it. ``"auto"`` is ``sqrt(n_features)``, the root mean square of the
        norm of standardised rows, or None if `with_std` is False. None shortens no row;
        ``data_norm_`` then follows from the bounds and the released numbers, and can be large.""",
        default="auto",
    )
    input_norm: float | None = parameter(
        "float or None",
        """Public bound on the Euclidean norm of a row, instead of `lower` and `upper`. Longer
        rows are scaled down to it. None uses `lower` and `upper`.""",
        default=None,
    )
    n_groups: int | None = parameter(
        "int or None",
        """Number of groups of adjacent features that share one variance, such as the channels of
        images; a divisor of the number of features. It needs `input_norm`: a variance pooled from
        more features is then more accurate. None makes no groups.""",
        default=None,
    )
    mean_: np.ndarray = released(
        "ndarray of shape (n_features,)",
        "Private means of the clipped features or shortened rows.",
    )
    var_: np.ndarray | None = released(
        "ndarray of shape (n_features,) or None",
        """Private variances, no smaller than their own noise, equal within a group; None if
        `with_std` is False.""",
    )
    scale_: np.ndarray | None = released(
        "ndarray of shape (n_features,) or None", "Square roots of ``var_``."
    )
    data_norm_: float = released(
        "float", "Bound on the norm of an output row, from public and released numbers."
    )

    _released = ("mean_", "var_", "scale_", "data_norm_")
    _bounded_by = "row_norm"

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_choice("with_mean", self.with_mean, (True, False))
        check_choice("with_std", self.with_std, (True, False))
        if not (self.with_mean or self.with_std):
            raise ValueError(
                "with_mean=False and with_std=False leave nothing to learn: use BoundedScaler or "
                "RowNormClipper, which spend no privacy."
            )
        check_real("row_norm", self.row_norm, at_least=1e-50, at_most=1e50, allowed=("auto", None))
        check_real("input_norm", self.input_norm, at_least=1e-50, at_most=1e50, allowed=(None,))
        check_integer("n_groups", self.n_groups, at_least=1, allowed=(None,))
        if self.input_norm is None:
            if self.n_groups is not None:
                raise ValueError("n_groups needs input_norm=, a public bound on the norm of rows.")
        elif not (np.array_equal(self.lower, -1.0) and np.array_equal(self.upper, 1.0)):
            raise ValueError("Give either input_norm= or lower= and upper=: one bound on the rows.")

    def _weight(self) -> float:
        return _SQUARE_WEIGHTS[self._relation] if self.with_std else 0.0

    def _count_groups(self, n_features: int) -> int:
        """Return the number of variances to estimate from rows of bounded norm."""
        if not self.with_std:
            return 0
        n_groups = n_features if self.n_groups is None else int(self.n_groups)
        if n_features % n_groups:
            raise ValueError(f"n_groups={n_groups} does not divide the {n_features} features.")
        return n_groups

    def _build_plan(self, n_samples: int, n_features: int) -> Release:
        if self.input_norm is None:
            feature_bounds(self.lower, self.upper, n_features)
            bound = moment_bound(n_features, self._weight())
        else:
            reason = f"rows are clipped to the public norm input_norm={self.input_norm:g}"
            bound = group_moment_bound(self._count_groups(n_features), reason)
        release = Release.bounded("moments", bound, self._relation)
        return release.least(self.epsilon, self.delta)

    def _theorem(self) -> str:
        return "sums of all features" + (" and of their squares" if self.with_std else "")

    def _learn(self, records: Records, release: Release, stream: RandomStream) -> None:
        self._centres = self.with_mean
        self._radius: Any = self.input_norm
        learn = self._learn_bounded_features if self._radius is None else self._learn_bounded_rows
        self.mean_, scale = learn(records, release.mechanism(stream))
        self.scale_ = scale if self.with_std else None
        self.var_ = scale**2 if self.with_std else None
        self.data_norm_ = self._largest_norm(records.n_features)

    def _learn_bounded_features(
        self, records: Records, mechanism: AdditiveMechanism
    ) -> tuple[np.ndarray, np.ndarray]:
        n_samples, n_features = records.n_rows, records.n_features
        self._bounds = lower, upper = feature_bounds(self.lower, self.upper, n_features)
        weight = self._weight()
        sums = np.zeros((2 if self.with_std else 1, n_features))
        for block, shares in row_blocks(records.X, records.row_weight):
            sums += moment_sums(to_unit_interval(block, lower, upper), weight, shares)
        noisy = mechanism.release(sums) / n_samples
        # From here on only released and public numbers.
        middle, half = middle_and_half(lower, upper)
        mean = middle + half * np.clip(noisy[0], -1.0, 1.0)
        if not self.with_std:
            return mean, half
        return mean, half * np.sqrt(_variances(noisy, float(mechanism.sigma) / n_samples, weight))

    def _learn_bounded_rows(
        self, records: Records, mechanism: AdditiveMechanism
    ) -> tuple[np.ndarray, np.ndarray]:
        n_samples, n_features = records.n_rows, records.n_features
        radius = float(self._radius)
        n_groups = self._count_groups(n_features)
        sums = np.zeros(n_groups + n_features)
        for block, shares in row_blocks(records.X, records.row_weight):
            units = bound_rows(block.astype(np.float64), radius) / radius
            sums += group_moment_sums(units, n_groups, shares)
        noisy = mechanism.release(sums) / n_samples
        # From here on only released and public numbers.
        mean, variances = group_statistics(noisy, float(mechanism.sigma) / n_samples, n_groups)
        spread = np.repeat(np.sqrt(variances), n_features // max(n_groups, 1))
        return radius * mean, radius * spread

    def _largest_norm(self, n_features: int) -> float:
        """Return a bound on the norm of output rows, from public and released numbers."""
        if self.row_norm == "auto" and self.with_std:
            return math.sqrt(n_features)
        if self.row_norm not in ("auto", None):
            return float(self.row_norm)
        if self._radius is None:
            corners = self._standardise(np.stack(self._bounds))
            largest = float(np.linalg.norm(np.abs(corners).max(axis=0)))
        else:
            shift = np.linalg.norm(self.mean_) if self._centres else 0.0
            least = 1.0 if self.scale_ is None else self.scale_.min()
            largest = float((self._radius + shift) / least)
        return largest * (1.0 + n_features * np.finfo(np.float64).eps)

    def _standardise(self, X: np.ndarray) -> np.ndarray:
        if self._centres:
            X = X - self.mean_
        return X if self.scale_ is None else X / self.scale_

    def _map(self, X: np.ndarray) -> np.ndarray:
        if self._radius is None:
            return self._standardise(np.clip(X, *self._bounds, dtype=np.float64))
        return self._standardise(bound_rows(X, float(self._radius)))


def _variances(noisy: np.ndarray, noise: float, weight: float) -> np.ndarray:
    """Return the variances, in (0, 1], from noisy means of ``u`` and ``w (u^2 - c)``.

    No variance is smaller than its own noise, with standard deviation `noise`.
    """
    mean, second = noisy
    centre = (1.0 + 1.0 / (weight * weight)) / 2.0
    # The square of a noisy mean is too large by the variance of its noise, on average.
    variance = second / weight + centre - mean**2 + noise**2
    mean = np.clip(mean, -1.0, 1.0)
    floor = noise * np.sqrt(1.0 / (weight * weight) + 4.0 * mean**2)
    # Values in [-1, 1] of this mean have no larger variance than 1 - mean^2.
    return np.minimum(np.maximum(np.minimum(variance, 1.0 - mean**2), floor), 1.0)
