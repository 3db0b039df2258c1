"""Find bounds of features by private quantiles, and scale with them."""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np

from skdp.base.parameters import check_real, parameter, released
from skdp.base.scikit_learn import OneToOneFeatureMixin
from skdp.mechanisms.additive import AdditiveMechanism
from skdp.mechanisms.contribution import ROUND_UP, ContributionBound
from skdp.mechanisms.random_stream import RandomStream
from skdp.mechanisms.release import Release
from skdp.plans.second_moments import row_blocks, share_number
from skdp.preprocessing._private_transformer import PrivateTransformer
from skdp.preprocessing.bounded_scaler import feature_bounds, to_unit_interval
from skdp.running import frames_to_the_user
from skdp.tables.records import Records

# Levels are at least this many standard deviations of a noisy count away from 0 and 1: a
# threshold beyond all values is then mistaken with a probability of 3e-5.
_DEVIATIONS = 4.0


def histogram_bound(n_features: int) -> ContributionBound:
    """Return the sensitivity of centred histograms with three cells for every feature.

    The vector of a record has norm ``sqrt(2/3)`` per feature, and two differ by ``sqrt(2)``.
    """
    root = math.sqrt(n_features) * ROUND_UP
    return ContributionBound(
        math.sqrt(2.0 / 3.0) * root,
        math.sqrt(2.0) * root,
        "every record falls into one of three cells of every feature",
    )


def centred_histogram(
    X: np.ndarray, thresholds: np.ndarray, shares: np.ndarray | None = None
) -> np.ndarray:
    """Count rows below, between and above two thresholds, minus a third of the rows.

    A value equal to a threshold is below it. A record adds 1 to its cell, minus 1/3 to all three,
    or divides this among its rows.
    """
    counts = np.zeros((3, X.shape[1]))
    # Rounded thresholds that changed places would count a row twice.
    first, second = thresholds[0], np.maximum(thresholds[0], thresholds[1])
    for block, parts in row_blocks(X, shares):
        counts[0] += _count(block <= first, parts)
        counts[2] += _count(block > second, parts)
    number = share_number(X, shares)
    counts[1] = number - counts[0] - counts[2]
    return counts - number / 3.0


def _count(found: np.ndarray, shares: np.ndarray | None) -> np.ndarray:
    return np.count_nonzero(found, axis=0) if shares is None else shares @ found


class DPQuantileClipper(OneToOneFeatureMixin, PrivateTransformer):
    """Find two private quantiles of every feature, clip to them and scale to [-1, 1].

    Use it if no code book, physiology or measuring device gives bounds; it needs only a very wide
    public range. With public bounds, `BoundedScaler` spends nothing. All quantiles of all features
    are located together by bisection with noisy counts.

    See Also
    --------
    BoundedScaler : Scales with public bounds and spends nothing.
    DPStandardScaler : Private mean and variance; takes [-1, 1] as bounds after this one.

    Notes
    -----
    Intervals are halved on the scale of ``asinh(x / smallest)``, which is logarithmic far from zero
    and linear near it. Each of the T steps releases a histogram with three cells for every feature.
    The steps are one event, T Gaussian releases that may depend on earlier ones. A quantile ends up
    between two thresholds; the bound is the outer one. Every noisy count has a normal error. Its
    standard deviation grows with ``sqrt(T n_features) / epsilon`` and not with the range. Proofs:
    :ref:`Theorems 4 and 5 of private preprocessing <private-preprocessing-4>`.

    References
    ----------
    Smith (2011), "Privacy-preserving statistical estimation with optimal convergence rates", and
    Kaplan, Schnapp & Stemmer (2022), "Differentially private approximate quantiles", solve the
    same problem with the exponential mechanism. Dong, Roth & Su (2022), Theorem 3.2 (composition).

    Examples
    --------
    >>> import numpy as np
    >>> from skdp.preprocessing import DPQuantileClipper
    >>> incomes = np.random.default_rng(0).lognormal(10.0, 0.5, (20000, 1))
    >>> clipper = DPQuantileClipper(epsilon=1.0, quantiles=(0.05, 0.95)).fit(incomes)
    >>> bool(0.9 < clipper.upper_[0] / np.quantile(incomes, 0.95) < 1.1)
    True
    """

    quantiles: tuple[float, float] = parameter(
        "tuple of two floats",
        """Levels of the bounds. Levels that the noise would hide are moved inwards, to four
        standard deviations of a noisy count, at most to the quartiles. This uses only public
        numbers.""",
        default=(0.02, 0.98),
    )
    lower: Any = parameter(
        "float or array-like of shape (n_features,)",
        """Lower ends of the public range that is searched for quantiles. A wide range costs
        little: the number of noisy counts grows with the logarithm of the logarithm of its
        width.""",
        default=-1e12,
    )
    upper: Any = parameter(
        "float or array-like of shape (n_features,)",
        "Upper ends of the public range.",
        default=1e12,
    )
    smallest: float = parameter(
        "float", "Public magnitude below which values are not distinguished.", default=1e-6
    )
    resolution: float = parameter(
        "float",
        """Relative precision of a quantile; below `smallest`, relative to `smallest`.""",
        default=1e-3,
    )
    row_norm: float | None = parameter(
        "float or None",
        """Bound on the Euclidean norm of output rows, as in `BoundedScaler`. All rows are divided
        by one public constant. None leaves features in [-1, 1], with row norm at most
        ``sqrt(n_features)``.""",
        default=1.0,
    )
    lower_: np.ndarray = released(
        "ndarray of shape (n_features,)", "Private lower quantiles, below ``upper_``."
    )
    upper_: np.ndarray = released("ndarray of shape (n_features,)", "Private upper quantiles.")
    quantiles_: tuple[float, float] = released(
        "tuple of two floats", "The levels in use, from public numbers."
    )

    _released = ("lower_", "upper_", "quantiles_", "data_norm_")
    _bounded_by = "row_norm"

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if not isinstance(self.quantiles, tuple | list) or len(self.quantiles) != 2:
            raise ValueError(f"quantiles must be two levels, got {self.quantiles!r}.")
        for level in self.quantiles:
            check_real("quantiles", level, at_least=0.0, at_most=1.0)
        if not self.quantiles[0] < self.quantiles[1]:
            raise ValueError(f"quantiles must increase, got {self.quantiles!r}.")
        check_real("smallest", self.smallest, at_least=1e-50, at_most=1e50)
        check_real("resolution", self.resolution, at_least=1e-6, at_most=1.0)
        check_real("row_norm", self.row_norm, at_least=1e-50, at_most=1e50, allowed=(None,))

    def _range(self, n_features: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the ends of the public range on the scale of the bisection."""
        lower, upper = feature_bounds(self.lower, self.upper, n_features)
        if max(np.abs(lower).max(), np.abs(upper).max()) > 1e100:
            raise ValueError("lower and upper must be within -1e100 and 1e100.")
        return np.arcsinh(lower / self.smallest), np.arcsinh(upper / self.smallest)

    def _build_plan(self, n_samples: int, n_features: int) -> Release:
        low, high = self._range(n_features)
        steps = max(1, math.ceil(math.log2(float((high - low).max()) / self.resolution)))
        bound = histogram_bound(n_features)
        release = Release.bounded("histogram", bound, self._relation, steps)
        release = release.least(self.epsilon, self.delta)
        if self._margin(release, n_samples) > 0.25:
            warnings.warn(
                f"With n={n_samples} rows or units, epsilon={self.epsilon:g} is too small to "
                "distinguish even quartiles from noise, and the bounds will be arbitrary. Increase "
                "epsilon, narrow lower= and upper=, or use public bounds with BoundedScaler.",
                UserWarning,
                stacklevel=frames_to_the_user(),
            )
        return release

    def _theorem(self) -> str:
        return "bisection for quantiles by noisy histograms, three cells for every feature"

    def _margin(self, release: Release, n_samples: int) -> float:
        """Return the distance from 0 and 1 that a level needs to stand out from noise."""
        return _DEVIATIONS * release.sigma * math.sqrt(2.0 / 3.0) / n_samples

    def _learn(self, records: Records, release: Release, stream: RandomStream) -> None:
        X = records.X
        margin = min(self._margin(release, records.n_rows), 0.25)
        first, last = (min(max(level, margin), 1.0 - margin) for level in self.quantiles)
        self.quantiles_ = first, last
        steps = self.quantiles_, self.smallest, release.times
        low, high = _bisect(records, self._range(X.shape[1]), *steps, release.mechanism(stream))
        lower, upper = feature_bounds(self.lower, self.upper, X.shape[1])
        self.lower_ = np.maximum(self.smallest * np.sinh(low), lower)
        self.upper_ = np.minimum(self.smallest * np.sinh(high), upper)
        self.data_norm_ = math.sqrt(X.shape[1]) if self.row_norm is None else float(self.row_norm)

    def _map(self, X: np.ndarray) -> np.ndarray:
        limit = self.data_norm_ / math.sqrt(X.shape[1])
        return to_unit_interval(X, self.lower_, self.upper_) * limit


def _bisect(
    records: Records,
    limits: tuple[np.ndarray, np.ndarray],
    levels: tuple[float, float],
    smallest: float,
    steps: int,
    mechanism: AdditiveMechanism,
) -> tuple[np.ndarray, np.ndarray]:
    """Locate two quantiles of every feature with one noisy histogram per step.

    Only the histograms depend on rows, and each is released before it is used. The result is the
    outer ends of the two intervals, on the scale of ``asinh(x / smallest)``.
    """
    n_samples = records.n_rows
    low, high = (np.stack([limit, limit]) for limit in limits)
    wanted = n_samples * np.array(levels)[:, np.newaxis]
    for _ in range(steps):
        middle = (low + high) / 2.0
        cells = centred_histogram(records.X, smallest * np.sinh(middle), records.row_weight)
        noisy = mechanism.release(cells)
        # The three counts are known to add up to n.
        counts = noisy - noisy.mean(axis=0) + n_samples / 3.0
        below = np.stack([counts[0], n_samples - counts[2]])
        # One threshold has one count: so the intervals of the two quantiles never change places.
        below = np.where(middle[0] == middle[1], below.mean(axis=0), below)
        low = np.where(below < wanted, middle, low)
        high = np.where(below < wanted, high, middle)
    return low[0], high[1]
