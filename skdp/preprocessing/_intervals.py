"""Intervals of features: checks of bounds, and the map of an interval to [-1, 1]."""

from __future__ import annotations

from typing import Any

import numpy as np


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
