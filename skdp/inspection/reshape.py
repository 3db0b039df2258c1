"""Monotone or smoothed functions, by post-processing of coefficients."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import nnls
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import Pipeline

from skdp.base.parameters import check_real
from skdp.base.scikit_learn import responds
from skdp.inspection.additive import (
    AdditiveModel,
    Part,
    other_cells,
    public_grids,
    read_additive,
)
from skdp.plans.coefficient_noise import CoefficientNoise

Array = NDArray[np.float64]

_UNORDERED = ("categorical", "cyclic", "interaction")
_DIRECTIONS = ("increasing", "decreasing")
# Relative to the largest: below, numbers are rounding errors.
_SMALLEST = 1e-9


def reshape_functions(model: Any, changes: Mapping[str, str | float]) -> Any:
    """Return a model with monotone or smoothed functions of some columns.

    No row is read and no budget is spent.

    Parameters
    ----------
    model : Pipeline
        As for `shape_functions`. It is not changed.
    changes : dict
        Change by column name. "increasing" or "decreasing" applies to the score of ``classes_[1]``
        for two classes, else to that of every class. A number smooths by means over near values,
        weighted by a normal density of this deviation in the column's unit or in levels. The result
        is the nearest function of the column's encoding, in mean square under the uniform law on
        the public range or list.

    Returns
    -------
    Pipeline
        Fitted pipeline with the same steps and the same privacy record.

    Raises
    ------
    TypeError
        As for `shape_functions`.
    KeyError, ValueError
        If a name is not a column, or names categories or an interaction, which have no order.

    Notes
    -----
    Functions are made monotone on the public grid, which contains every cut: between its points,
    steps, cells and lines are monotone too. Missing and unknown cells keep their scores if they
    have a separate feature; others stay in the middle of their column's encoding. The returned
    model has no bands: use those of the original model.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp import OperaLogisticRegression
    >>> from skdp.inspection import reshape_functions, shape_functions
    >>> from skdp.preprocessing import LabelColumn, NumericColumn, TableSchema
    >>> schema = TableSchema(
    ...     [NumericColumn("age", 0, 100, cuts=[40, 60])], label=LabelColumn("ill", [0, 1])
    ... )
    >>> ages = np.random.default_rng(0).uniform(0, 100, (4000, 1))
    >>> model = schema.pipeline(OperaLogisticRegression(epsilon=1.0), positions=True)
    >>> model = model.fit(ages, (ages[:, 0] > 60).astype(int))
    >>> rising = reshape_functions(model, {"age": "increasing"})
    >>> age = shape_functions(rising)["age"]
    >>> bool((np.diff(age.values[:, 0]) >= -1e-9).all())
    True
    """
    found = read_additive(model)
    coef, intercept = found.coef.copy(), found.intercept.copy()
    for name, change in changes.items():
        part = found[name]
        if change not in _DIRECTIONS:
            check_real(f"changes[{name!r}]", change, above=0.0, allowed=_DIRECTIONS)
        coef[:, part.places], shift = _follow(found, part, change)
        intercept += shift
    named = ", ".join(f"{name!r} ({change})" for name, change in changes.items())
    noise = CoefficientNoise(
        f"functions were changed afterwards, {named}: see the bands of the original model",
        afterwards=f"{found.noise.afterwards}; afterwards functions were changed, {named}, by "
        "public numbers only: post-processing, which reads no row and spends no budget",
    )
    return _with_weights(
        model,
        coef_=coef.reshape(np.shape(found.linear.coef_)),
        intercept_=intercept.reshape(np.shape(found.linear.intercept_))[()],
        _coef_noise_=noise,
    )


def _with_weights(model: Any, **new: Any) -> Any:
    """Return a shallow copy of a model with a changed linear part."""
    model = copy.copy(model)
    if isinstance(model, Pipeline):
        name, last = model.steps[-1]
        model.steps = [*model.steps[:-1], (name, _with_weights(last, **new))]
    elif type(model) is FrozenEstimator:
        model.estimator = _with_weights(model.estimator, **new)
    elif responds(model, "best_estimator_"):
        model.best_estimator_ = _with_weights(model.best_estimator_, **new)
    else:
        vars(model).update(new)
    return model


def _follow(model: AdditiveModel, part: Part, change: str | float) -> tuple[Any, Any]:
    """Return the coefficients of a changed function, and the shift of the intercept."""
    coef = model.coef[:, part.places]
    if part.kind in _UNORDERED:
        raise ValueError(f"column {part.name!r} must have ordered values, got kind {part.kind!r}.")
    ((grid, weights),) = public_grids(part.columns)
    places = (grid if part.kind == "numeric" else np.arange(grid.size)).astype(np.float64)
    rows = model.features(part, grid)
    varies = np.ptp(rows, axis=0) > 0.0
    basis = np.column_stack([rows * varies, np.ones(grid.size)])
    # In these coordinates distances are those of functions under the law.
    left, sizes, right = np.linalg.svd(np.sqrt(weights)[:, None] * basis, full_matrices=False)
    kept = sizes > _SMALLEST * sizes[0]
    left, back = left[:, kept], right[kept].T / sizes[kept]
    now = (coef @ rows.T * np.sqrt(weights)) @ left
    if isinstance(change, str):
        rises = np.diff(basis, axis=0) @ back * (1.0 if change == "increasing" else -1.0)
        moves = np.array([_least_move(rises, each) for each in now])
    else:
        nearness = weights * np.exp(-0.5 * ((places[:, None] - places) / change) ** 2)
        smooth = (nearness / nearness.sum(axis=1, keepdims=True)) @ rows @ coef.T
        moves = (smooth.T * np.sqrt(weights)) @ left - now
    moves = moves @ back.T
    moves, shift = moves[:, :-1], moves[:, -1]
    # Cells without a value keep their scores if they have a feature of their own.
    others = [model.features(part, cell) for cell in other_cells(part.columns).values()]
    own = [row for row in others if (row - rows[0])[:, ~varies].any()]
    if own:
        cells = np.vstack(own)
        wanted = -(moves @ cells.T + shift[:, None])
        flags = wanted @ np.linalg.pinv((cells - rows[0]) * ~varies).T
        moves, shift = moves + flags, shift - flags @ rows[0]
    return coef + moves, shift


def _least_move(rises: Array, now: Array) -> Array:
    """Return the shortest move of a point at which ``rises @ point`` becomes non-negative.

    Lawson and Hanson (1974), chapter 23, section 4.
    """
    size = np.linalg.norm(rises, axis=1)
    rises = rises[size > _SMALLEST * size.max()] / size[size > _SMALLEST * size.max(), None]
    table = np.vstack([rises.T, -rises @ now])
    aim = np.r_[np.zeros(now.size), 1.0]
    residual = table @ nnls(table, aim)[0] - aim
    return -residual[:-1] / residual[-1]
