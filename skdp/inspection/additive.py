"""A fitted pipeline as a sum of functions of single columns, and their public grids."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import is_regressor
from sklearn.compose import ColumnTransformer
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from skdp.base.scikit_learn import fitted_model, responds
from skdp.plans.coefficient_noise import CoefficientNoise
from skdp.preprocessing import (
    BoundedScaler,
    DateColumn,
    Interaction,
    NumericColumn,
    RowNormClipper,
    SchemaEncoder,
)
from skdp.preprocessing.schema.base import FeatureColumn, as_numbers
from skdp.preprocessing.schema.columns import coarsen
from skdp.preprocessing.schema.meanings import label_words

Array = NDArray[np.float64]

_UNKNOWN_NOISE = CoefficientNoise(
    "the model is not one of skdp, or was chosen among several by a score that depends on its noise"
)
# Methods that return scores; those of a private regressor before clipping to its bounds.
_SCORES = ("decision_function", "_score_rows", "predict")
# Number of public rows at which scores are compared with those of coefficients; tolerance.
_TRIED, _CLOSE = 3, 1e-8
# Evenly spaced numbers on a grid, in addition to cuts; fewer if several grids are crossed.
_EVENLY, _EVENLY_CROSSED = 101, 25


@dataclass(frozen=True)
class Part:
    """A declared column, a part of one, or an interaction, with the places of its features."""

    columns: tuple[FeatureColumn, ...]
    places: slice

    @property
    def name(self) -> str:
        """Name of the column, or names joined by a star."""
        return " * ".join(column.name for column in self.columns)

    @property
    def kind(self) -> str:
        """Kind of the column; "numeric" for all numeric columns."""
        if len(self.columns) > 1:
            return "interaction"
        numeric = isinstance(self.columns[0], NumericColumn)
        return NumericColumn.kind if numeric else self.columns[0].kind

    def encode(self, cells: Any) -> Array:
        """Return the features of cells, with one row per combination for several columns."""
        if len(self.columns) == 1:
            kept = None if hasattr(cells, "dtype") else object
            return self.columns[0].encode(np.asarray(cells, dtype=kept))
        return Interaction(self.columns).encode(*np.asarray(cells, dtype=object).T)


@dataclass(frozen=True)
class AdditiveModel:
    """A linear model of features that each depend on one column."""

    parts: tuple[Part, ...]
    steps: tuple[Any, ...]  # between encoder and model; each treats every feature separately
    linear: Any
    label: Any = None  # of the schema

    @property
    def target(self) -> str:
        """Description of the scores, such as "log odds of died = 1"."""
        name = label_words(self.label)
        if is_regressor(self.linear):
            target = name or "the prediction"
            known = responds(self.linear, "_words_of_score")
            return str(self.linear._words_of_score(target)) if known else target
        classes = self.linear.classes_
        kind = "log odds" if responds(self.linear, "predict_proba") else "score"
        if len(classes) == 2:
            return f"{kind} of {name or 'class'} = {classes[-1]}"
        return f"{kind} of each class" + (f" of {name}" if name else "")

    @property
    def coef(self) -> Array:
        """Coefficients of shape (n_outputs, n_features)."""
        return np.atleast_2d(np.asarray(self.linear.coef_, dtype=np.float64))

    @property
    def intercept(self) -> Array:
        """Intercepts of shape (n_outputs,)."""
        return np.atleast_1d(np.asarray(self.linear.intercept_, dtype=np.float64))

    @property
    def noise(self) -> CoefficientNoise:
        """The known law of the privacy noise in the coefficients."""
        return self.linear._coef_noise_ if responds(self.linear, "_coef_noise_") else _UNKNOWN_NOISE

    def features(self, part: Part, cells: Any) -> Array:
        """Return the part's features of cells, as used by the linear model."""
        block = part.encode(cells)
        rows = np.zeros((len(block), self.parts[-1].places.stop))
        rows[:, part.places] = block
        for step in self.steps:
            rows = step._apply(rows)
        return rows[:, part.places]

    def __getitem__(self, name: str) -> Part:
        parts = {part.name: part for part in self.parts}
        if name not in parts:
            raise KeyError(f"{name!r} is not a column of the model; its columns are {list(parts)}.")
        return parts[name]


def read_additive(model: Any) -> AdditiveModel:
    """Return a fitted pipeline as an additive model, or refuse it by name."""
    check_is_fitted(model)
    all_steps = _steps_of(model)
    encoders = _encoders_of(all_steps[0])
    parts = tuple(_parts_of(encoders))
    between, linear = all_steps[1:-1], all_steps[-1]
    bound = math.hypot(*(encoder.data_norm_ for encoder in encoders))
    for step in between:
        _refuse_mixing(step, bound)
        bound = step.data_norm_
    _refuse_others(linear, parts[-1].places.stop if parts else 0)
    # A clipper that changes no row is omitted, and with it the rounding of its norms.
    steps = tuple(step for step in between if not isinstance(step, RowNormClipper))
    return AdditiveModel(parts, steps, linear, _label_of(model))


def _label_of(model: Any) -> Any:
    """Return the label of the pipeline's schema, if there is one."""
    while type(model) is FrozenEstimator:
        model = model.estimator
    model = fitted_model(model)
    if responds(model, "schema"):
        return getattr(model.schema, "label", None)
    return _label_of(model.steps[-1][1]) if isinstance(model, Pipeline) else None


def _steps_of(model: Any) -> list[Any]:
    """Return the fitted steps of a pipeline, including those of a search's best estimator."""
    while type(model) is FrozenEstimator:
        model = model.estimator
    model = fitted_model(model)
    if not isinstance(model, Pipeline):
        return [model]
    own = [step for _, step in model.steps[:-1] if step not in (None, "passthrough")]
    return [*own, *_steps_of(model.steps[-1][1])]


def _encoders_of(first: Any) -> list[SchemaEncoder]:
    found: list[Any] = [("", first, [])]
    if isinstance(first, ColumnTransformer):
        if first.transformer_weights:
            raise TypeError("transformer_weights must be None: use the weights of columns instead.")
        found = [group for group in first.transformers_ if group[1] != "drop"]
    for _, encoder, columns in found:
        if not isinstance(encoder, SchemaEncoder):
            raise TypeError(
                f"columns {list(columns)} must be declared in a schema, but are encoded by "
                f"{type(encoder).__name__}: use schema.pipeline(linear private model)."
            )
    return [encoder for _, encoder, _ in found]


def _parts_of(encoders: list[SchemaEncoder]) -> Iterator[Part]:
    stop = 0
    for encoder in encoders:
        if encoder.product:
            start, stop = stop, stop + len(encoder.get_feature_names_out())
            yield Part(tuple(encoder.columns), slice(start, stop))
            continue
        for column in (piece for own in encoder.columns for piece in own.pieces()):
            start, stop = stop, stop + len(column.feature_names())
            yield Part((column,), slice(start, stop))


def _refuse_mixing(step: Any, bound: float) -> None:
    """Refuse a step that mixes features."""
    if isinstance(step, BoundedScaler):
        return
    if not isinstance(step, RowNormClipper):
        raise TypeError(
            f"features after {type(step).__name__} may depend on several columns, so the score is "
            "not a sum of functions of one column: omit the step."
        )
    if step.method != "clip" or step.data_norm_ < bound * (1.0 - 1e-12):
        raise TypeError(
            f"RowNormClipper(norm={step.norm:g}, method={step.method!r}) divides rows by their "
            "norm, which depends on all columns: the score is not a sum of functions of one "
            f"column. Use a norm of at least {bound:.6g}, which no row exceeds, or omit the step: "
            "the estimator's data_norm clips only in the fit."
        )


def _refuse_others(linear: Any, n_features: int) -> None:
    """Refuse a model with scores that are not coefficients times features, by public rows."""
    score = next((getattr(linear, name) for name in _SCORES if responds(linear, name)), None)
    if responds(linear, "coef_") and score is not None:
        rows = np.cos(np.arange(_TRIED * n_features)).reshape(_TRIED, n_features)
        wanted = rows @ np.atleast_2d(linear.coef_).T + linear.intercept_
        found = np.asarray(score(rows)).reshape(wanted.shape)
        if np.allclose(found, wanted, rtol=_CLOSE, atol=_CLOSE):
            return
    raise TypeError(
        f"the scores of {type(linear).__name__} are not coef_ times features plus intercept_, so "
        "they are not a sum of functions of one column. Fit a linear private classifier or "
        "regressor; networks and votes are not supported."
    )


def public_grids(columns: Sequence[FeatureColumn]) -> list[tuple[NDArray[Any], Array]]:
    """Return the grid of each column, and the weights of the uniform law."""
    count = _EVENLY
    if len(columns) > 1:  # an interaction uses only cells
        count, columns = _EVENLY_CROSSED, [coarsen(column) for column in columns]
    return [_grid(column, count) for column in columns]


def cross(grids: Sequence[tuple[NDArray[Any], Array]]) -> tuple[NDArray[Any], Array]:
    """Return all combinations of cells, one per row, and their weights."""
    if len(grids) == 1:
        return grids[0]
    rows = list(itertools.product(*(cells.tolist() for cells, _ in grids)))
    weights = functools.reduce(np.multiply.outer, [weights for _, weights in grids])
    return np.array(rows, dtype=object), np.ravel(weights)


def _grid(column: FeatureColumn, count: int) -> tuple[NDArray[Any], Array]:
    """Return cells from the declared range or list, and weights.

    Numeric grids contain each cut and the largest number below it. Weights are those of the
    trapezoidal rule, which is exact for steps and lines.
    """
    if not isinstance(column, NumericColumn):
        values = list(column.listed() or ())
        if isinstance(column, DateColumn):
            values = column.spaced(count)
        grid = np.fromiter(values, dtype=object, count=len(values))
        return grid, np.full(grid.size, 1.0 / grid.size)
    cuts = np.array([*column.thresholds, *(column.spikes or ())], dtype=np.float64)
    cuts.sort()
    lower, upper = _range_of(column, cuts)
    places = [*np.linspace(lower, upper, count), *cuts, *np.nextafter(cuts, -np.inf)]
    if {"scaled", "waves"} & set(column.parts):  # these may bend anywhere on their scale
        places += column.spaced(count)
    grid = np.unique(places)
    grid = grid[~np.isnan(as_numbers(grid, column.missing_codes))]
    gaps = np.diff(grid)
    weights = np.concatenate([gaps, [0.0]]) + np.concatenate([[0.0], gaps])
    return grid, weights / weights.sum()


def _range_of(column: NumericColumn, cuts: Array) -> tuple[float, float]:
    """Return the declared bounds, or the range of cuts extended by half a mean gap."""
    if column.lower is not None and column.upper is not None:
        ends = [column.lower, column.upper, *cuts]
        return min(ends), max(ends)
    gap = float(np.ptp(cuts)) / (cuts.size - 1) if cuts.size > 1 else max(1.0, abs(cuts[0]))
    return float(cuts[0] - gap / 2.0), float(cuts[-1] + gap / 2.0)


def other_cells(columns: Sequence[FeatureColumn]) -> dict[str, NDArray[Any]]:
    """Return one missing and one unknown cell, if the column allows them."""
    if len(columns) > 1:
        return {}
    column = columns[0]
    numeric = isinstance(column, NumericColumn)
    cells: dict[str, Any] = {"missing": np.nan if numeric else None, "unknown": object()}
    policies = {name: getattr(column, name, "refuse") for name in cells}
    return {
        name: np.array([cell], dtype=np.float64 if numeric else object)
        for name, cell in cells.items()
        if policies[name] in ("ignore", "indicator")
    }
