"""Public bounds of features: checked, mapped to [-1, 1], and rows whose norm they bound."""

from __future__ import annotations

import math
from typing import Any, Self

import numpy as np

from skdp.parameters import check_real, parameter
from skdp.plans.row_norms import round_towards_zero
from skdp.preprocessing.row_transformer import RowTransformer
from skdp.sklearn_bases import OneToOneFeatureMixin


class BoundedScaler(OneToOneFeatureMixin, RowTransformer):
    """Map each feature from public bounds to [-1, 1], clip it there, and bound the row norm.

    Nothing is learned from the rows: the bounds come from the codebook, the physiology or the
    measuring device. Scaling by the observed minimum and maximum, as `MinMaxScaler` does, would
    publish two patients' values for every feature.

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
        """Every output row is divided by one public constant so that its Euclidean norm is at
        most this: the `data_norm` to give to the private estimator. None keeps [-1, 1], with
        row norm ``sqrt(n_features)``.""",
        default=1.0,
    )

    # What the privacy statement, and a search, need to know of it.
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

    def _as_sklearn(self) -> Any:
        """Return scikit-learn's scaler that does the same, for tools that know that alone."""
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
    """Return one lower and one upper bound for each feature, both finite and lower < upper."""
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
    """Clip every feature to its interval and map that to [-1, 1]."""
    middle, half = middle_and_half(lower, upper)
    units = np.clip(X, lower, upper, dtype=np.float64)
    units -= middle
    units /= half
    return np.clip(units, -1.0, 1.0, out=units)
