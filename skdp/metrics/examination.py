"""Whether a model takes rows one by one: found out on made-up rows before anything is charged."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import FunctionTransformer

from skdp.dask_tables import is_of_dask
from skdp.reporting.steps import classify_step
from skdp.row_scores import Probe, Way, probe

_WAY_OUT = (
    "An evaluation needs scores of which each is a function of one row and the model. Take a step "
    "that learned what it needs in its fit, as StandardScaler does, or a function that treats each "
    "row by itself."
)


def numbers_of(method: Callable[..., Any], rows: Any) -> np.ndarray:
    """Return what a model says of rows as finite numbers, at least one column of them.

    One row's score may overflow, which no error must tell: NaN counts as 0.
    """
    found = np.asarray(method(rows), dtype=np.float64)
    return np.nan_to_num(found.reshape(len(found), -1))


def examine_model(model: Any, method: Callable[..., Any], X: Any) -> tuple[Way, tuple[str, ...]]:
    """Return how to ask a model, and what is taken for granted of it, or refuse it.

    Refused are models whose answer for a row moves with other rows. Of `X` no row is looked at.
    """
    verdicts = {name: classify_step(part) for name, part in _parts(model)}
    for name, part in _parts(model):
        if type(part) is FunctionTransformer and verdicts[name].kind == "leaking":
            _refuse(model, f"step {name!r}, {type(part).__name__},")
    shown = X._meta if is_of_dask(X) else X
    found = _probe(model, method, shown)
    if found.mixes:
        _refuse(model, _culprit(model, shown))
    words = [each.assumption for each in verdicts.values() if each.kind == "taken at your word"]
    if not found.known:
        words.append(
            f"taken at your word: what {type(model).__name__} says of a row depends on that row "
            "alone; it could not be tried on made-up rows"
        )
    return found.way, tuple(dict.fromkeys(words))


def _parts(model: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    """Yield a model and all parts that its parameters name, those of frozen ones too."""
    yield name, model
    inside = model.get_params(deep=True) if hasattr(model, "get_params") else {}
    for key, part in inside.items():
        if hasattr(part, "get_params") and not isinstance(part, type):
            label = f"{name}__{key}" if name else key
            frozen = type(part) is FrozenEstimator or type(model) is FrozenEstimator
            yield from _parts(part, label) if frozen else [(label, part)]


def _probe(model: Any, method: Callable[..., Any], shown: Any) -> Probe:
    return probe(partial(numbers_of, method), shown, getattr(model, "n_features_in_", None))


def _culprit(model: Any, shown: Any) -> str:
    """Return what to call the first step whose output for a row moves with other rows."""
    while type(model) is FrozenEstimator:
        model = model.estimator
    if isinstance(model, Pipeline):
        for end, (name, step) in enumerate(model.steps[:-1], start=1):
            if _probe(
                model, lambda rows, end=end: _dense(model[:end].transform(rows)), shown
            ).mixes:
                return f"step {name!r}, {type(step).__name__},"
    return type(model).__name__


def _dense(rows: Any) -> Any:
    return rows.toarray() if hasattr(rows, "toarray") else rows


def _refuse(model: Any, part: str) -> None:
    whose = "" if part == type(model).__name__ else f" of {type(model).__name__}"
    raise ValueError(
        f"{part}{whose} makes of a row what depends on other rows, or changes from call to call, "
        f"as made-up rows show. {_WAY_OUT}"
    )
