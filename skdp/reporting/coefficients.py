"""Coefficients with names, the standard deviation of their privacy noise, and intervals."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import ndtri

from skdp.base.parameters import check_real
from skdp.base.scikit_learn import fitted_model, responds


def coefficient_table(model: Any) -> dict[str, np.ndarray]:
    """Return the coefficients of a fitted linear model by name, with their privacy noise.

    They are released numbers: no row is read and nothing is spent.

    Parameters
    ----------
    model : estimator or Pipeline
        A fitted linear classifier or regressor, or a pipeline or search that ends in one.

    Returns
    -------
    dict of ndarray
        Columns of equal length, as ``pandas.DataFrame`` takes them: "name" of the feature, or
        "(intercept)"; "class" whose score it is, of classifiers; "value"; "noise_std", the standard
        deviation of the privacy noise in the value, NaN where it is not public; and "noise_is",
        "exact", "at most", "about" (to first order) or "unknown".

    Raises
    ------
    TypeError
        If the model has no coefficients.

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
    linear, names = _linear_end(model)
    values = np.column_stack([np.atleast_2d(linear.coef_), np.atleast_1d(linear.intercept_)])
    outputs, count = values.shape[0], values.shape[1] - 1
    noise: Any = linear._coef_noise_ if responds(linear, "_coef_noise_") else None
    deviations, words = np.full(count + 1, np.nan), "unknown"
    if noise is not None and noise.known:
        deviations, words = np.full(count + 1, noise.deviation), ("at most", "exact")[noise.exact]
        deviations[-1] *= noise.constant
    elif responds(linear, "_standard_errors"):
        deviations, words = linear._standard_errors(of_noise=True), "about"
    table = {"name": np.array([*names, "(intercept)"] * outputs, dtype=object)}
    if responds(linear, "classes_"):
        labels = linear.classes_[1:] if outputs == 1 else linear.classes_
        table["class"] = np.repeat(labels, count + 1)
    return table | {
        "value": values.ravel(),
        "noise_std": np.tile(deviations, outputs),
        "noise_is": np.full(values.size, words, dtype=object),
    }


def coefficient_intervals(model: Any, level: float = 0.95) -> dict[str, np.ndarray]:
    """Return confidence intervals of coefficients that count sampling and privacy noise.

    They follow from released numbers: no row is read and nothing is spent.

    Parameters
    ----------
    model : PrivateRidge or Pipeline
        A fitted `PrivateRidge` without penalty, or a pipeline or search that ends in one.
    level : float, default=0.95
        Coverage of each interval, in (0, 1).

    Returns
    -------
    dict of ndarray
        Columns of equal length, as ``pandas.DataFrame`` takes them: "name", "value", "std_error",
        "low" and "high". All but the first two are NaN where coefficients are not estimable: the
        least eigenvalue of the noisy second moments is below what noise alone would show.

    Raises
    ------
    TypeError
        If the model is of another kind.
    ValueError
        If it has a penalty, which biases coefficients, or for a bad level.

    Notes
    -----
    Errors are taken to have one variance and rows to be short of `data_norm`, targets within their
    bounds: what is clipped biases coefficients. Derivation and limits are in
    ``docs/proofs/moment_regression.md``, coverage in ``docs/regression.md``.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp import PrivateRidge
    >>> from skdp.reporting import coefficient_intervals
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-0.7, 0.7, size=(20_000, 2))
    >>> y = 2.0 * X[:, 0] + rng.normal(0.0, 0.3, 20_000)
    >>> model = PrivateRidge(target_bounds=(-3.0, 3.0), data_norm=1.0).fit(X, y)
    >>> found = coefficient_intervals(model, level=0.999)
    >>> found["name"].tolist(), bool(found["low"][0] < 2.0 < found["high"][0])
    (['x0', 'x1', '(intercept)'], True)
    """
    level = check_real("level", level, above=0.0, below=1.0)
    linear, names = _linear_end(model)
    if not responds(linear, "_standard_errors"):
        raise TypeError(
            f"{type(linear).__name__} has released no second moments: PrivateRidge has "
            "intervals; coefficient_table gives the privacy noise of others."
        )
    if linear._penalised:
        raise ValueError(
            "A penalty biases coefficients, so that intervals around them would not cover: take "
            "model.variant(alpha=0.0), which costs nothing."
        )
    value = np.append(linear.coef_, linear.intercept_)
    errors = linear._standard_errors()
    reach = float(ndtri(0.5 + level / 2.0)) * errors
    return {
        "name": np.array([*names, "(intercept)"], dtype=object),
        "value": value,
        "std_error": errors,
        "low": value - reach,
        "high": value + reach,
    }


def _linear_end(model: Any) -> tuple[Any, Any]:
    """Return the linear model that a fitted model ends in, and names of its features."""
    from sklearn.utils.validation import check_is_fitted

    check_is_fitted(model)
    linear, names = _last_of(model, None)
    if not responds(linear, "coef_"):
        raise TypeError(f"{type(linear).__name__} is no fitted linear model: it has no coef_.")
    if names is None:
        count = np.atleast_2d(linear.coef_).shape[1]
        names = getattr(linear, "feature_names_in_", [f"x{j}" for j in range(count)])
    return linear, names


def _last_of(model: Any, names: Any) -> tuple[Any, Any]:
    """Return the last estimator of pipelines and searches, and the names of what it is given."""
    model = fitted_model(model)
    if not responds(model, "steps"):
        return model, names
    before = model[:-1]
    if len(model.steps) > 1 and responds(before, "get_feature_names_out"):
        names = before.get_feature_names_out(names)
    return _last_of(model.steps[-1][1], names)
