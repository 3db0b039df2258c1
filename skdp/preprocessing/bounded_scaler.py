"""Transformers with public bounds, which return rows of a known norm."""

from __future__ import annotations

import copy
import math
from abc import ABC, abstractmethod
from typing import Any, Self

import numpy as np
from scipy import sparse
from sklearn.utils.validation import check_is_fitted

from skdp.base.parameters import (
    Bounding,
    DeclaredParameters,
    check_choice,
    check_real,
    parameter,
    released,
)
from skdp.base.scikit_learn import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from skdp.plans.second_moments import bound_rows, round_towards_zero
from skdp.preprocessing.schema.columns import NumericColumn
from skdp.preprocessing.schema.meanings import Meaning
from skdp.tables.inputs import canonical_rows, note_bound, validate_private_data, validate_rows
from skdp.tables.row_sources import RowSource


class RowTransformer(DeclaredParameters, TransformerMixin, BaseEstimator, ABC):
    """Base of the transformers that treat each row by itself, private ones and others."""

    data_norm_: float = released("float", "Public bound on the norm of an output row.")
    n_features_in_: int = released("int", "Number of features.")
    feature_names_in_: np.ndarray = released(
        "ndarray of shape (n_features,)", "Feature names, if `X` had any."
    )

    _accepts_sparse = False
    _bounds_rows = True  # a fit sets `data_norm_`
    _makes_rows_alone = True  # to the last bit

    def transform(self, X: Any) -> Any:
        """Transform each row by itself, with given or learned numbers.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows; sparse ones only if the class supports them.

        Returns
        -------
        {ndarray, sparse matrix}
            Rows, in float32 if `X` is; sparse ones are CSR. Their norm is at most ``data_norm_`` if
            the class has this attribute. A large table in a file becomes a source, which transforms
            rows as they are read. A Dask array becomes a lazy one.
        """
        check_is_fitted(self)
        rows = self._validate(X, reset=False, look=False)
        if isinstance(rows, RowSource):
            make = sparse.csr_matrix if rows.is_sparse else np.zeros
            few = self._apply(make((1, rows.shape[1]), dtype=rows.dtype))
            # A later fit must not change rows that are read afterwards.
            encode = copy.copy(self)._transform_block
            rows = rows.encoded(encode, few, self._makes_rows_alone)
        else:
            rows = self._apply(rows)
        return note_bound(rows, self.data_norm_) if self._bounds_rows else rows

    @abstractmethod
    def _apply(self, X: Any) -> Any:
        """Transform valid rows, in the same type, and to norm at most ``data_norm_`` if known."""

    def _transform_block(self, block: Any) -> Any:
        """Transform rows of a source that have not been validated before."""
        block = validate_private_data(self, block, reset=False, **self._checks())
        return self._apply(canonical_rows(block))

    def _validate(self, X: Any, **options: Any) -> Any:
        return canonical_rows(validate_rows(self, X, **options, **self._checks()))

    def _checks(self) -> dict[str, Any]:
        accepted = "csr" if self._accepts_sparse else False
        return {"accept_sparse": accepted, "dtype": [np.float64, np.float32]}

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = self._accepts_sparse
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


class BoundedScaler(OneToOneFeatureMixin, RowTransformer):
    """Map each feature from public bounds to [-1, 1], clip it, and bound the row norm.

    Nothing is learned from the rows. Take the bounds from the code book, physiology or the
    measuring device. Scaling by the observed minimum and maximum, as in `MinMaxScaler`, would
    publish the values of two patients per feature.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp.preprocessing import BoundedScaler
    >>> ages_and_pressures = np.array([[50.0, 120.0], [90.0, 400.0]])
    >>> BoundedScaler([0, 60], [100, 240], row_norm=None).fit_transform(ages_and_pressures)
    array([[ 0.        , -0.33333333],
           [ 0.8       ,  1.        ]])
    """

    lower: Any = parameter(
        "float or array-like of shape (n_features,)",
        "Public lower bounds of the features; values beyond the bounds are clipped.",
        default=-1.0,
        kw_only=False,
    )
    upper: Any = parameter(
        "float or array-like of shape (n_features,)",
        "Public upper bounds of the features.",
        default=1.0,
        kw_only=False,
    )
    row_norm: float | None = parameter(
        "float or None",
        """Bound on the Euclidean norm of output rows; set `data_norm` of the private estimator to
        it. All rows are divided by one public constant. None leaves features in [-1, 1], with
        row norm at most ``sqrt(n_features)``.""",
        default=1.0,
    )

    # For the privacy statement and for searches.
    _learns_from_rows = False
    _bounded_by = "row_norm"

    def fit(self, X: Any, y: Any = None) -> Self:
        """Check the bounds against the number of features; no value of `X` is used.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.
        y : None
            Ignored.

        Returns
        -------
        self : BoundedScaler
            The scaler.

        Raises
        ------
        ValueError
            If the bounds do not match the features or are not finite with lower < upper.
        """
        X = self._validate(X, reset=True)
        lower, upper = feature_bounds(self.lower, self.upper, X.shape[1])
        check_real("row_norm", self.row_norm, at_least=1e-50, at_most=1e50, allowed=(None,))
        largest = math.sqrt(X.shape[1])
        if not largest.is_integer():
            largest = math.nextafter(largest, math.inf)
        # Below the quotient of real numbers, whatever is rounded in it.
        shrink = 1.0 if self.row_norm is None else self.row_norm / largest * (1 - 2**-50)
        self._centre = (lower + upper) / 2.0
        self._scale = 2.0 * shrink / (upper - lower)
        self._limit = shrink
        self.data_norm_ = largest if self.row_norm is None else float(self.row_norm)
        return self

    def _meaning_after(self, before: Any) -> Any:
        """Return the meaning of scaled features, given that of the input; None if unknown."""
        if before is not None:
            return before.through(self._centre, self._scale, self._limit)
        count, half = self.n_features_in_, self._limit / self._scale
        names = getattr(self, "feature_names_in_", [f"x{j}" for j in range(count)])
        ends = zip(names, self._centre - half, self._centre + half, strict=True)
        parts = tuple((NumericColumn(str(name), *pair),) for name, *pair in ends)
        return Meaning(parts, scale=self._limit)

    def _as_sklearn(self) -> Any:
        """Return the equivalent scaler of scikit-learn, for tools that do not support this one."""
        from sklearn.preprocessing import MinMaxScaler

        twin = MinMaxScaler(feature_range=(-self._limit, self._limit), clip=True)
        twin.scale_, twin.min_ = self._scale, -self._centre * self._scale
        twin.n_features_in_ = self.n_features_in_
        return twin

    def _apply(self, X: np.ndarray) -> np.ndarray:
        scaled = (X - self._centre) * self._scale
        np.clip(scaled, -self._limit, self._limit, out=scaled)
        return scaled if X.dtype == scaled.dtype else round_towards_zero(scaled, X.dtype)


def feature_bounds(lower: Any, upper: Any, n_features: int) -> tuple[np.ndarray, np.ndarray]:
    """Return one lower and one upper bound per feature, both finite and lower < upper."""
    bounds = []
    for name, given in (("lower", lower), ("upper", upper)):
        values = np.asarray(given, dtype=np.float64)
        if values.ndim > 1 or (values.ndim == 1 and values.shape != (n_features,)):
            raise ValueError(
                f"{name} must be a number or one number for each of the {n_features} "
                f"features, got shape {values.shape}."
            )
        bounds.append(np.broadcast_to(values, (n_features,)))
    lower, upper = bounds
    if not (np.all(np.isfinite(lower)) and np.all(np.isfinite(upper)) and np.all(lower < upper)):
        raise ValueError("lower and upper must be finite, and lower < upper for every feature.")
    return lower, upper


def middle_and_half(lower: np.ndarray, upper: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the middles and half the lengths of intervals, without overflow."""
    return lower / 2.0 + upper / 2.0, np.maximum(upper / 2.0 - lower / 2.0, 5e-324)


def to_unit_interval(X: np.ndarray, lower: np.ndarray, upper: np.ndarray) -> np.ndarray:
    """Clip every feature to its interval and map the interval to [-1, 1]."""
    middle, half = middle_and_half(lower, upper)
    units = np.clip(X, lower, upper, dtype=np.float64)
    units -= middle
    units /= half
    return np.clip(units, -1.0, 1.0, out=units)


class RowNormClipper(OneToOneFeatureMixin, RowTransformer):
    """Shorten rows to a public norm, or scale all rows to it.

    Nothing is learned from the rows. Each row is treated by itself, and no privacy budget is spent.

    See Also
    --------
    BoundedScaler : Bounds every feature, and thereby the row, with a code book.

    Notes
    -----
    Private estimators shorten rows to their `data_norm`. Use the clipper in pipelines with another
    step that needs bounded rows, or to set the norm in one place. Choose the norm without looking
    at the rows: the largest norm of a table belongs to one patient.

    Examples
    --------
    >>> from skdp.preprocessing import RowNormClipper
    >>> RowNormClipper(norm=1.0).fit_transform([[3.0, 4.0], [0.3, 0.4]])
    array([[0.6, 0.8],
           [0.3, 0.4]])
    >>> RowNormClipper(norm=1.0, method="scale").fit_transform([[3.0, 4.0], [0.3, 0.4]])
    array([[0.6, 0.8],
           [0.6, 0.8]])
    """

    norm: float = parameter(
        "float",
        """Largest Euclidean norm of an output row. Set `data_norm` of the private estimator to
        it.""",
        default=1.0,
        kw_only=False,
    )
    method: Bounding = parameter(
        '{"clip", "scale"}',
        """Treatment of rows. ``"clip"`` scales down longer rows and leaves the others unchanged.
        ``"scale"`` gives every row this norm, like `Normalizer`; rows of zeros stay zero.""",
        default="clip",
    )

    # For privacy statements: nothing of the fitted state comes from rows. For searches: the
    # parameter that bounds the output.
    _learns_from_rows = False
    _accepts_sparse = True
    _bounded_by = "norm"

    def fit(self, X: Any, y: Any = None) -> Self:
        """Check the parameters; no value of `X` is used.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows.
        y : None
            Ignored.

        Returns
        -------
        self : RowNormClipper
            The clipper.

        Raises
        ------
        ValueError, TypeError
            If a parameter is out of range.
        """
        check_real("norm", self.norm, at_least=1e-50, at_most=1e50)
        check_choice("method", self.method, ("clip", "scale"))
        self._validate(X, reset=True)
        self._every = self.method == "scale"
        self.data_norm_ = float(self.norm)
        return self

    def _apply(self, X: Any) -> Any:
        return bound_rows(X, self.data_norm_, every=self._every)
