"""Principal components of a private second-moment matrix."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy.linalg import eigh
from sklearn.utils.extmath import safe_sparse_dot

from skdp.base.parameters import (
    DeclaredParameters,
    check_choice,
    check_integer,
    check_real,
    parameter,
    released,
)
from skdp.base.scikit_learn import ClassNamePrefixFeaturesOutMixin
from skdp.mechanisms.random_stream import RandomStream
from skdp.mechanisms.release import Release
from skdp.plans.second_moments import (
    bound_rows,
    packed_moments,
    refuse_wide,
    row_blocks,
    second_moment_bound,
    unpack_matrix,
)
from skdp.preprocessing._private_transformer import PrivateTransformer
from skdp.tables.inputs import resolve_data_norm
from skdp.tables.records import Records

# With centring a record contributes (x / sqrt(2), x x^T) for rows of norm at most 1: near the
# weight that disturbs the leading eigenvectors of the covariance least.
_SQUARED_MEAN_WEIGHT = 0.5


class Components(DeclaredParameters):
    """The number of components, which comes before the parameters of all private fits."""

    n_components: int | None = parameter(
        "int or None",
        "Number of components. None uses the number of features.",
        default=None,
        kw_only=False,
    )


class DPPCA(ClassNamePrefixFeaturesOutMixin, PrivateTransformer, Components):
    """Project rows on the leading eigenvectors of a private second-moment matrix.

    Rows are shortened to a public norm, and the sum of their outer products is released once with
    symmetric Gaussian noise. Use it if a few directions contain most of the rows' length and the
    estimator's noise grows with the number of features.

    See Also
    --------
    RowNormClipper : Bounds the rows of a table.

    Notes
    -----
    In units of ``data_norm**2`` the matrix has Frobenius sensitivity ``sqrt(2)`` under replace-one
    (attained by orthogonal rows) and 1 under add-remove. With `center`, the pair of matrix and sum
    has ``5 / sqrt(8)`` and ``sqrt(3 / 2)``. The noise has variance sigma^2 on the diagonal and
    sigma^2 / 2 off it, and its distribution does not depend on the axes. Proof: :ref:`Theorem 3 of
    private preprocessing <private-preprocessing-3>`.

    References
    ----------
    Dwork, Talwar, Thakurta & Zhang (2014), "Analyze Gauss", Algorithm 1. Abadi et al. (2016),
    "Deep Learning with Differential Privacy", section 4. Balle & Wang (2018), Theorem 8.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp.preprocessing import DPPCA
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((5000, 1)) * [0.3, 0.4, 0.0] + 0.01 * rng.standard_normal((5000, 3))
    >>> pca = DPPCA(1, epsilon=1.0, data_norm=1.0).fit(X)
    >>> bool(pca.components_[0] @ [0.6, 0.8, 0.0] > 0.99)
    True
    """

    data_norm: float | None = parameter(
        "float or None",
        """Public bound on the Euclidean norm of a row. `fit` and `transform` scale longer rows down
        to it. None uses 1.0, and `fit` warns unless the rows come from a step of skdp that bounds
        their norm by 1.0.""",
        default=None,
    )
    center: bool = parameter(
        "bool",
        """Whether to release the mean row together with the matrix and remove it; this adds a
        quarter more noise under replace-one. False computes directions from the origin, for rows
        that are already centred by a public centre or `DPStandardScaler`.""",
        default=False,
    )
    whiten: bool = parameter(
        "bool",
        """Whether to divide each component by its private root mean square. The bound
        ``data_norm_`` grows accordingly.""",
        default=False,
    )
    components_: np.ndarray = released(
        "ndarray of shape (n_components, n_features)",
        """Private orthonormal directions, the strongest first. The entry of largest modulus in
        each is positive.""",
    )
    explained_variance_: np.ndarray = released(
        "ndarray of shape (n_components,)",
        "Private mean squares along them (variances, with `center`), not below zero.",
    )
    noise_edge_: float = released(
        "float",
        """Approximate largest value in ``explained_variance_`` of pure noise, from public numbers.
        Components below it are mostly noise.""",
    )
    mean_: np.ndarray | None = released(
        "ndarray of shape (n_features,) or None",
        "Private mean of the shortened rows; None without `center`.",
    )
    data_norm_: float = released(
        "float",
        "Bound on the norm of an output row; `data_norm` without `center` and `whiten`.",
    )

    _accepts_sparse = True
    _makes_rows_alone = False  # products of matrices round by their shapes
    _released = ("components_", "explained_variance_", "mean_", "noise_edge_", "data_norm_")

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_integer("n_components", self.n_components, at_least=1, allowed=(None,))
        check_real(
            "data_norm",
            self.data_norm,
            at_least=1e-50,
            at_most=1e50,
            allowed=(None,),
            remedy="It is a public bound on the Euclidean norm of a row, independent of the data.",
        )
        check_choice("center", self.center, (True, False))
        check_choice("whiten", self.whiten, (True, False))

    @property
    def _row_bound(self) -> float:
        return resolve_data_norm(self.data_norm)

    @property
    def _bounded_by(self) -> str:
        return "" if self.center or self.whiten else "_row_bound"

    def _mean_weight(self) -> float:
        return _SQUARED_MEAN_WEIGHT if self.center else 0.0

    def _build_plan(self, n_samples: int, n_features: int) -> Release:
        if self.n_components is not None and self.n_components > n_features:
            raise ValueError(
                f"n_components={self.n_components} exceeds the number of features, {n_features}."
            )
        refuse_wide(n_features)
        reason = f"rows are clipped to the public norm data_norm={self._row_bound:g}"
        bound = second_moment_bound(n_features, self._mean_weight(), reason)
        release = Release.bounded("second moments", bound, self._relation)
        return release.least(self.epsilon, self.delta)

    def _theorem(self) -> str:
        return "symmetric noise on the sum of outer products of rows" + (
            ", released with the sum of rows" if self.center else ""
        )

    def _learn(self, records: Records, release: Release, stream: RandomStream) -> None:
        X, n_samples, n_features = records.X, records.n_rows, records.n_features
        self._radius = self._row_bound
        weight = self._mean_weight()
        size = n_features * (n_features + 1) // 2
        sums = np.zeros(size + (n_features if self.center else 0))
        for block, shares in row_blocks(X, records.row_weight):
            sums += packed_moments(self._unit_rows(block), weight, shares)
        noisy = release.mechanism(stream).release(sums) / n_samples
        # From here on only released and public numbers.
        noise = release.sigma / n_samples
        moments = unpack_matrix(noisy[:size], n_features)
        self.mean_ = None
        if self.center:
            mean = noisy[size:] / math.sqrt(weight)
            # The noise of the mean adds its variance in every direction, on average.
            moments += noise**2 / weight * np.eye(n_features) - np.outer(mean, mean)
            self.mean_ = mean * self._row_bound
        self._set_directions(moments, noise)

    def _unit_rows(self, X: Any) -> Any:
        return bound_rows(X.astype(np.float64), self._row_bound) / self._row_bound

    def _set_directions(self, moments: np.ndarray, noise: float) -> None:
        n_features = moments.shape[0]
        kept = n_features if self.n_components is None else int(self.n_components)
        values, vectors = eigh(moments, subset_by_index=(n_features - kept, n_features - 1))
        components = np.ascontiguousarray(vectors.T[::-1])
        values = values[::-1]
        largest = np.abs(components).argmax(axis=1)
        components *= np.sign(components[np.arange(kept), largest])[:, np.newaxis]
        self.components_ = components
        self.explained_variance_ = np.maximum(values, 0.0) * self._row_bound**2
        # The spectrum of a symmetric Gaussian matrix ends here (Wigner's semicircle).
        edge = noise * math.sqrt(2.0 * n_features)
        self.noise_edge_ = edge * self._row_bound**2
        self._divisors = np.ones(kept)
        if self.whiten:
            self._divisors = np.sqrt(np.maximum(values, edge)) * self._row_bound
        shift = np.zeros(kept) if self.mean_ is None else components @ self.mean_
        self.data_norm_ = float(
            self._row_bound / self._divisors.min() + np.linalg.norm(shift / self._divisors)
        )

    def _map(self, X: Any) -> np.ndarray:
        rows = bound_rows(X, self._radius)
        scores = safe_sparse_dot(rows, self.components_.T, dense_output=True)
        if self.mean_ is not None:
            scores = scores - self.components_ @ self.mean_
        return scores / self._divisors

    @property
    def _n_features_out(self) -> int:
        return int(self.components_.shape[0])
