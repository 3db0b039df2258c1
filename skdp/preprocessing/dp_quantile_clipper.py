"""Find bounds of features by private quantiles, and scale by them."""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np
from sklearn.base import OneToOneFeatureMixin

from skdp.choices import Adjacency
from skdp.mechanisms.contribution import ROUND_UP, ContributionBound
from skdp.mechanisms.gaussian import GaussianMechanism
from skdp.mechanisms.random_stream import RandomStream
from skdp.parameters import check_real
from skdp.plans.noisy_sums import NoisySums
from skdp.plans.row_norms import row_blocks, share_number
from skdp.preprocessing._intervals import feature_bounds, to_unit_interval
from skdp.preprocessing._private_transformer import PrivateTransformer
from skdp.tables.records import Records

# A quantile is looked for at least this many standard deviations of a noisy count away from the
# ends: a threshold beyond all values is then mistaken with a probability of 3e-5.
_DEVIATIONS = 4.0


def histogram_bound(n_features: int) -> ContributionBound:
    """Return the sensitivity of centred histograms with three cells for every feature.

    One record's vector has norm ``sqrt(2/3)``, and two differ by ``sqrt(2)``, for every feature.
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
    """Count rows below, between and above two thresholds, less a third of the rows.

    A value equal to a threshold lies below it; one record adds 1 to its cell, less 1/3 to all
    three, or shares this out among its rows.
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

    For users who know no bounds: only a very wide public range is needed. All quantiles of all
    features are located together by bisection with noisy counts. Worth its epsilon only where no
    code book, physiology or measuring device gives bounds: `BoundedScaler` spends nothing.

    Parameters
    ----------
    epsilon : float, default=1.0
        Privacy parameter of one fit, positive.
    delta : float, default=1e-6
        Privacy parameter of one fit, in (0, 1); keep it well below 1/n.
    quantiles : tuple of two floats, default=(0.02, 0.98)
        Levels of the bounds. Levels that the noise would drown are moved inwards, by public
        numbers alone, to four standard deviations of a noisy count, at most to the quartiles.
    lower, upper : float or array-like of shape (n_features,), default=-1e12 and 1e12
        Public range in which the quantiles are looked for. Its width costs little: the number of
        noisy counts grows with the logarithm of the logarithm of it.
    smallest : float, default=1e-6
        Public magnitude below which values need not be told apart.
    resolution : float, default=1e-3
        Relative precision to which a quantile is located; below `smallest`, relative to that.
    adjacency : {"replace-one", "add-remove"}, default="replace-one"
        Neighbouring tables: one row replaced, or one added or removed. What is removed contributes
        nothing, while n stays public.
    row_norm : float or None, default=1.0
        As in `BoundedScaler`: every output row is divided by one public constant so that its
        Euclidean norm is at most this. None keeps [-1, 1], with row norm ``sqrt(n_features)``.
    accountant : BudgetAccountant or None, default=None
        Budget to charge before rows are used. None charges that of the ``with`` block in which it
        is made or fitted; without one the fit is not counted, or refused where `set_config`
        requires a budget.
    random_state : int, RandomState or None, default=None
        None draws all randomness from a cryptographic stream keyed by the operating system. A seed
        is for tests: the guarantee does not hold against whoever knows it.

    Attributes
    ----------
    lower_, upper_ : ndarray of shape (n_features,)
        Private quantiles; ``lower_ < upper_``.
    quantiles_ : tuple of two floats
        The levels that were looked for, from public numbers.
    data_norm_ : float
        Public bound on the norm of an output row.
    privacy_spent_ : PrivacySpent
        The guarantee, its mechanism and its assumptions.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features,)
        Feature names, if `X` had any.

    See Also
    --------
    BoundedScaler : Scales by public bounds and spends nothing.
    DPStandardScaler : Private mean and variance; takes [-1, 1] as bounds after this one.

    Notes
    -----
    Thresholds are halved on the scale of ``asinh(x / smallest)``, logarithmic far from zero and
    linear near it. Each of the T steps releases a histogram with three cells for every feature;
    the steps are one event, T Gaussian releases that may depend on earlier ones. A quantile ends
    up between two thresholds; the bound is the outer one. Every noisy count is off by a normal
    error whose standard deviation grows with ``sqrt(T n_features) / epsilon`` and not with the
    range. Proofs: :ref:`Theorems 4 and 5 of private preprocessing <private-preprocessing-4>`.

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

    _released = ("lower_", "upper_", "quantiles_", "data_norm_")
    _bounded_by = "row_norm"

    def __init__(
        self,
        epsilon: float = 1.0,
        delta: float = 1e-6,
        *,
        quantiles: tuple[float, float] = (0.02, 0.98),
        lower: Any = -1e12,
        upper: Any = 1e12,
        smallest: float = 1e-6,
        resolution: float = 1e-3,
        adjacency: Adjacency = "replace-one",
        row_norm: float | None = 1.0,
        accountant: Any = None,
        random_state: Any = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.quantiles = quantiles
        self.lower = lower
        self.upper = upper
        self.smallest = smallest
        self.resolution = resolution
        self.adjacency = adjacency
        self.row_norm = row_norm
        self.accountant = accountant
        self.random_state = random_state

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
            raise ValueError("lower and upper must lie within -1e100 and 1e100.")
        return np.arcsinh(lower / self.smallest), np.arcsinh(upper / self.smallest)

    def _build_plan(self, n_samples: int, n_features: int) -> NoisySums:
        low, high = self._range(n_features)
        steps = max(1, math.ceil(math.log2(float((high - low).max()) / self.resolution)))
        bound = histogram_bound(n_features)
        plan = NoisySums.calibrate(bound, self.adjacency, self.epsilon, self.delta, steps)
        if self._margin(plan, n_samples) > 0.25:
            warnings.warn(
                f"With n={n_samples} rows or units, epsilon={self.epsilon:g} is too little to tell "
                "even quartiles from noise: the bounds will be arbitrary. Raise epsilon, narrow "
                "lower= and upper=, or use public bounds with BoundedScaler.",
                UserWarning,
                stacklevel=5,
            )
        return plan

    def _theorem(self) -> str:
        return "bisection for quantiles by noisy histograms, three cells for every feature"

    def _margin(self, plan: NoisySums, n_samples: int) -> float:
        """Return how far from 0 and 1 a level must stay for noise not to drown it."""
        return _DEVIATIONS * plan.sigma * math.sqrt(2.0 / 3.0) / n_samples

    def _learn(self, records: Records, plan: NoisySums, stream: RandomStream) -> None:
        X = records.X
        margin = min(self._margin(plan, records.n_rows), 0.25)
        first, last = (min(max(level, margin), 1.0 - margin) for level in self.quantiles)
        self.quantiles_ = first, last
        mechanism = plan.mechanism(stream, "histogram")
        steps = self.quantiles_, self.smallest, plan.releases
        low, high = _bisect(records, self._range(X.shape[1]), *steps, mechanism)
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
    mechanism: GaussianMechanism,
) -> tuple[np.ndarray, np.ndarray]:
    """Locate two quantiles of every feature with one noisy histogram a step.

    Only the histograms depend on rows, and each is released before it is used. Returned are the
    outer ends of the intervals that hold the two, on the scale of ``asinh(x / smallest)``.
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
