"""Whether a model takes rows one by one: found out on made-up rows before anything is charged."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NoReturn

import numpy as np
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import FunctionTransformer

from skdp.reporting.steps import classify_step
from skdp.row_scores import Probe, Way, probe
from skdp.sklearn_bases import columns_of, responds
from skdp.tables.places import without_rows

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
    claims = claims_of(model)
    shown = without_rows(X)
    found = _probe(model, method, shown)
    if found.mixes:
        _refuse(model, _culprit(_thawed(model), shown))
    if not found.known:
        name = type(_thawed(model)).__name__
        untried = f"taken at your word: what {name} says of a row depends on that row alone, "
        claims += (f"{untried}of which made-up rows told nothing",)
    return found.way, claims


def claims_of(model: Any) -> tuple[str, ...]:
    """Return what is taken for granted of a model's steps, each once, or refuse it for a step."""
    verdicts = [(name, part, classify_step(part)) for name, part in _parts(_thawed(model))]
    for name, part, verdict in verdicts:
        if type(part) is FunctionTransformer and verdict.kind == "leaking":
            _refuse(model, f"step {name!r}, {type(part).__name__},")
    words = (verdict.assumption for *_, verdict in verdicts if verdict.kind == "taken at your word")
    return tuple(dict.fromkeys(words))


def _thawed(model: Any) -> Any:
    return _thawed(model.estimator) if type(model) is FrozenEstimator else model


def _parts(model: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    """Yield a model and all parts that its parameters name, those of frozen ones too."""
    yield name, model
    inside = model.get_params(deep=True) if responds(model, "get_params") else {}
    for key, part in inside.items():
        if type(part) is FrozenEstimator:
            yield from _parts(_thawed(part), f"{name}__{key}" if name else key)
        elif responds(part, "get_params") and not isinstance(part, type):
            yield f"{name}__{key}" if name else key, part


def _probe(model: Any, method: Callable[..., Any], shown: Any) -> Probe:
    return probe(partial(numbers_of, method), shown, columns_of(model))


def _culprit(model: Any, shown: Any) -> str:
    """Return what to call the first step whose output for a row moves with other rows."""
    steps = model.steps[:-1] if isinstance(model, Pipeline) else []
    for end, (name, step) in enumerate(steps, start=1):

        def transform(rows: Any, end: int = end) -> Any:
            found = model[:end].transform(rows)
            return found.toarray() if hasattr(found, "toarray") else found

        if _probe(model, transform, shown).mixes:
            return f"step {name!r}, {type(step).__name__},"
    return type(model).__name__


def _refuse(model: Any, part: str) -> NoReturn:
    name = type(_thawed(model)).__name__
    whose = "" if part == name else f" of {name}"
    raise ValueError(
        f"{part}{whose} makes of a row what depends on other rows, or changes from call to call, "
        f"as made-up rows show. {_WAY_OUT}"
    )
