"""The steps inside pipelines, column transformers and feature unions, in one walk."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from inspect import signature
from typing import Any, NamedTuple

from sklearn import get_config
from sklearn.compose import ColumnTransformer
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.utils.metadata_routing import get_routing_for_object

from skdp.base.scikit_learn import is_private

# Models inside models that are looked into for a schema.
_DEEPEST = 9
_CONTAINERS = (Pipeline, FeatureUnion, ColumnTransformer)


class Step(NamedTuple):
    """A step: the prefix of its parameters, and the step that gives it its rows (None: none)."""

    name: str
    estimator: Any
    ahead: Any


def is_container(estimator: Any) -> bool:
    """Return whether the inner steps are known; a subclass may do other things with the rows."""
    kind = type(estimator)
    # Only the class that says so itself does nothing else.
    return kind in _CONTAINERS or vars(kind).get("_only_checks_tables") is True


def walk(
    estimator: Any,
    name: str = "",
    ahead: Any = None,
    enter: Callable[[Any], bool] = is_container,
) -> Generator[Step, None, Any]:
    """Yield the inner steps of an estimator, or itself if `enter` does not accept it.

    For a fitted column transformer, the fitted parts are yielded as well as their templates. Return
    the step that passes on its rows.
    """
    if not enter(estimator):
        yield Step(name, estimator, ahead)
        return ahead if estimator is None or isinstance(estimator, str) else estimator
    for label, part in _parts(estimator):
        last = yield from walk(part, f"{name}__{label}" if name else label, ahead, enter)
        if isinstance(estimator, Pipeline):
            ahead = last
    return ahead if isinstance(estimator, Pipeline) else estimator


def _parts(estimator: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(estimator, Pipeline):
        yield from estimator.steps
    elif isinstance(estimator, FeatureUnion):
        yield from estimator.transformer_list
    else:
        for label, part, _ in (*estimator.transformers, *getattr(estimator, "transformers_", ())):
            yield label, part
        if not isinstance(estimator.remainder, str):
            yield "remainder", estimator.remainder


def containers(estimator: Any) -> dict[str, Any]:
    """Return the pipelines, column transformers and feature unions of a candidate, by name."""
    if not is_container(estimator):
        return {}
    inside = {"": estimator, **estimator.get_params(deep=True)}
    return {name: part for name, part in inside.items() if is_container(part)}


def first_step(estimator: Any) -> Any:
    """Return the step that receives the original rows."""
    steps = walk(estimator, enter=lambda part: isinstance(part, Pipeline) and is_container(part))
    active = (step.estimator for step in steps if step.estimator not in (None, "passthrough"))
    return next(active, "passthrough")


def behind_others(estimator: Any) -> tuple[str, ...]:
    """Return the prefixes of parameters of steps that receive the output of another step."""
    inside = {"": estimator, **estimator.get_params(deep=True)}
    return tuple(
        f"{step.name}__"
        for name, part in inside.items()
        for step in walk(part, name, enter=lambda part: isinstance(part, Pipeline))
        if step.ahead is not None
    )


def only_parameter(estimator: Any, name: str) -> tuple[str, Any] | None:
    """Return key and value of a parameter of that name, None unless exactly one part has it."""
    inside: Callable[[], dict[str, Any]] = getattr(estimator, "get_params", dict)
    found = [pair for pair in inside().items() if pair[0].rpartition("__")[2] == name]
    return found[0] if len(found) == 1 else None


def is_routed() -> bool:
    """Return whether scikit-learn passes metadata on to the steps that request them."""
    return bool(get_config()["enable_metadata_routing"])


def takes_ids(step: Any) -> bool:
    """Return whether a step's fit takes ids, and receives those that are passed on."""
    takes = "groups" in signature(step.fit).parameters
    if takes and is_routed():
        return bool(get_routing_for_object(step).consumes("fit", {"groups"}))
    return takes


def out_of_reach(estimator: Any) -> tuple[str, ...]:
    """Return the prefixes of steps that fit parameters reach only through metadata routing."""
    others = [
        name for name, part in containers(estimator).items() if not isinstance(part, Pipeline)
    ]
    return () if is_routed() else tuple(f"{name}__" if name else "" for name in others)


def who_needs_ids(estimator: Any) -> Iterator[tuple[str, str]]:
    """Yield the name of each privately fitted step, and the reason if ids do not reach it."""
    closed = out_of_reach(estimator)
    for name, step, _ in walk(estimator):
        if is_private(step):
            reached = takes_ids(step) and not name.startswith(closed)
            yield name, "" if reached else f"step {name!r}, {type(step).__name__}"
        elif type(step) is not FrozenEstimator and hasattr(step, "get_params"):
            inside = step.get_params(deep=True).values()
            if any(is_private(part) and not isinstance(part, type) for part in inside):
                yield name, f"the inner steps of step {name!r}, {type(step).__name__}"


def take_apart(model: Any, X: Any, y: Any, groups: Any) -> tuple[Any, Any, Any]:
    """Return rows, labels and ids, split by the schema of a model if it has one."""
    part = model
    for _ in range(_DEEPEST):
        take = getattr(part, "_take_apart", None)
        if take is not None:
            return tuple(take(X, y, groups))
        if isinstance(part, Pipeline):
            part = next((step for _, step in part.steps if step not in (None, "passthrough")), None)
        held = ("best_estimator_", "estimator_", "estimator")
        part = next((getattr(part, name) for name in held if hasattr(part, name)), part)
    if groups is None:
        refuse_named_ids(model, X)
    return X, y, groups


def named_ids(estimator: Any, X: Any) -> str | None:
    """Return the column of a table that a schema inside an estimator names for ids, if any."""
    lazy = hasattr(type(X), "collect")  # and would be asked for its columns
    names = [] if lazy else list(getattr(X, "column_names", getattr(X, "columns", ())))
    inside = estimator.get_params(deep=True) if hasattr(estimator, "get_params") else {}
    units = [getattr(part, "_unit", None) for part in (estimator, *inside.values())]
    columns = (getattr(unit, "column", None) for unit in units)
    return next((name for name in columns if name is not None and name in names), None)


def refuse_named_ids(estimator: Any, X: Any) -> None:
    """Refuse a table with ids that would be ignored, since each row would then be one record."""
    if (column := named_ids(estimator, X)) is not None:
        raise ValueError(
            f"X has the column {column!r}, which a schema names for ids, but the ids are not used. "
            "Pass them as groups=, or leave the column out if each row is a record."
        )
