"""Coefficients with names, and the standard deviation of their privacy noise."""

from __future__ import annotations

from typing import Any

import numpy as np


def coefficient_table(model: Any) -> dict[str, np.ndarray]:
    """Return the coefficients of a fitted linear model by name, with their privacy noise.

    They are released numbers: no row is read and nothing is spent.

    Parameters
    ----------
    model : estimator or Pipeline
        A fitted linear classifier, or a pipeline or search that ends in one.

    Returns
    -------
    dict of ndarray
        Columns of equal length, as ``pandas.DataFrame`` takes them: "name" of the feature, or
        "(intercept)"; "class" whose score it is; "value"; "noise_std", the standard deviation of
        the privacy noise in the value, NaN where it is not public; and "noise_is", "exact",
        "at most" or "unknown".

    Raises
    ------
    TypeError
        If the model has no coefficients.
    NotFittedError
        If it is not fitted.

    Notes
    -----
    Where the noise comes from, and what an upper bound on it is worth, is in
    ``docs/inspection.md``. If a recalibration has multiplied coefficients by a released factor,
    "noise_std" is that of the multiplied noise, given the factor.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp import OperaLogisticRegression
    >>> from skdp.reporting import coefficient_table
    >>> X = np.tile([[0.6, 0.8], [-0.6, 0.8]], (500, 1))
    >>> table = coefficient_table(OperaLogisticRegression(data_norm=1.0).fit(X, X[:, 0] > 0))
    >>> table["name"].tolist(), table["noise_is"].tolist()
    (['x0', 'x1', '(intercept)'], ['exact', 'exact', 'exact'])
    """
    from sklearn.utils.validation import check_is_fitted

    check_is_fitted(model)
    linear, names = _last_of(model, None)
    if not (hasattr(linear, "coef_") and hasattr(linear, "classes_")):
        raise TypeError(f"{type(linear).__name__} is no fitted linear classifier: it has no coef_.")
    values = np.column_stack([np.atleast_2d(linear.coef_), np.atleast_1d(linear.intercept_)])
    outputs, count = values.shape[0], values.shape[1] - 1
    if names is None:
        names = getattr(linear, "feature_names_in_", [f"x{j}" for j in range(count)])
    noise: Any = getattr(linear, "_coef_noise_", None)
    deviations, words = np.full(count + 1, np.nan), "unknown"
    if noise is not None and noise.known:
        deviations, words = np.full(count + 1, noise.deviation), ("at most", "exact")[noise.exact]
        deviations[-1] *= noise.constant
    labels = linear.classes_[1:] if outputs == 1 else linear.classes_
    return {
        "name": np.array([*names, "(intercept)"] * outputs, dtype=object),
        "class": np.repeat(labels, count + 1),
        "value": values.ravel(),
        "noise_std": np.tile(deviations, outputs),
        "noise_is": np.full(values.size, words, dtype=object),
    }


def _last_of(model: Any, names: Any) -> tuple[Any, Any]:
    """Return the last estimator of pipelines and searches, and the names of what it is given."""
    model = getattr(model, "best_estimator_", model)
    if not hasattr(model, "steps"):
        return model, names
    before = model[:-1]
    if len(model.steps) > 1 and hasattr(before, "get_feature_names_out"):
        names = before.get_feature_names_out(names)
    return _last_of(model.steps[-1][1], names)
