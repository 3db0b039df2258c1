"""The private steps of a candidate, and the reserved budget that they may charge."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any

import joblib
from sklearn.base import clone
from sklearn.utils.metadata_routing import get_routing_for_object

from skdp.accounting import ComposedEvent, Event
from skdp.accounting.analysis import costs_no_more, with_noise
from skdp.base.pipelines import (
    containers,
    first_step,
    out_of_reach,
    refuse_named_ids,
    takes_ids,
    walk,
)
from skdp.base.scikit_learn import lacks_a_plan
from skdp.budget.planning import ask_plan
from skdp.exceptions import BudgetExceededError, CalibrationError, SkdpError
from skdp.reporting.steps import classify_step
from skdp.running import around_runs
from skdp.tables.inputs import public_error

# Parameters that the search sets for every private step.
SET_BY_THE_SEARCH = ("epsilon", "delta", "accountant", "random_state", "adjacency")
_REQUIRED = ("epsilon", "delta", "accountant")

# Fits are planned with slightly less noise, so that rounding cannot make real ones cost more.
PLANNING_MARGIN = 1e-9
# Relative epsilon of a private transformer; the final step has 1.
_TRANSFORMER_WEIGHT = 0.25


@dataclass(frozen=True)
class PrivateStep:
    """A private step of a candidate."""

    # Prefix of its parameters, such as ``"clf"`` or ``"prepare__scale"``; empty if it is the
    # candidate itself.
    name: str
    estimator: Any  # a copy to plan with; it is never fitted
    weight: float  # its epsilon in units of the fit's

    @property
    def label(self) -> str:
        """Name of the step in messages."""
        kind = type(self.estimator).__name__
        return f"{kind} (step {self.name!r})" if self.name else kind

    def parameter(self, name: str) -> str:
        """Return the name of one of its parameters in the candidate."""
        return f"{self.name}__{name}" if self.name else name


@dataclass(frozen=True)
class Fit:
    """The charges of one fit of a candidate on a number of rows, by step."""

    events: tuple[Event, ...]
    epsilons: tuple[float, ...]
    delta: float
    plans: tuple[Any, ...]  # records of the steps

    @property
    def guarantee(self) -> tuple[float, float]:
        """The (epsilon, delta) that the fit states, by basic composition of its steps."""
        return math.fsum(p.epsilon for p in self.plans), math.fsum(p.delta for p in self.plans)

    @property
    def event(self) -> Event:
        """The fit as one event."""
        return self.events[0] if len(self.events) == 1 else ComposedEvent(self.events)


def parts_of(estimator: Any) -> Iterator[tuple[str, Any]]:
    """Yield the steps of a candidate and their containers, with names."""
    for name, step, _ in walk(estimator):
        yield name, step
    yield from containers(estimator).items()


def assumptions_of(estimators: Iterable[Any]) -> tuple[str, ...]:
    """Return the assumptions of the verdicts on parts of candidates, each once."""
    parts = (part for estimator in estimators for _, part in parts_of(estimator))
    found = dict.fromkeys(classify_step(part).assumption for part in parts)
    return tuple(text for text in found if text)


def bounds_of_rows(estimator: Any, bound: float | None) -> Iterator[tuple[Any, float | None]]:
    """Yield steps with the public bound on their rows, or None; `bound` is the candidate's."""
    for _, step, ahead in walk(estimator):
        own = getattr(ahead, getattr(ahead, "_bounded_by", ""), None)
        handed = float(own) if isinstance(own, Real) else None
        yield step, bound if ahead is None else handed


def check_first_steps(estimators: Iterable[Any], X: Any) -> None:
    """Check the table with the first steps of candidates, if they learn nothing from rows.

    Their errors would otherwise fail every run, after the charge.
    """
    firsts = {_content(first): first for first in map(first_step, estimators)}
    for first in firsts.values():
        parts = [type(part) for _, part, _ in walk(first) if not isinstance(part, str)]
        own = [part.__module__.startswith("skdp.") for part in parts]
        learns = any(vars(part).get("_learns_from_rows", True) for part in parts)
        if not own or not all(own) or learns:
            continue
        try:
            with around_runs():  # its output may depend on rows
                clone(first).fit(X)
            continue
        except SkdpError:
            raise
        except Exception as error:
            found = public_error(error, X)
        raise found


def _content(step: Any) -> Any:
    """Return a key that identifies a step."""
    try:
        return joblib.hash(step)
    except Exception:  # steps that cannot be pickled
        return id(step)


def private_steps(estimator: Any, weights: dict[str, float] | None) -> tuple[PrivateStep, ...]:
    """Return the private steps of a candidate; refuse it if another step learns from rows.

    `weights` are relative epsilons by name; by default 1 for the final step, else 0.25.
    """
    weights = dict(weights or {})
    steps = []
    for name, part in parts_of(estimator):
        verdict = classify_step(part)
        where = f"Step {name!r} of the estimator" if name else "The estimator"
        if verdict.kind == "leaking":
            raise ValueError(
                f"{where}, {type(part).__name__}, "
                f"{'cannot be planned for' if lacks_a_plan(part) else 'is not private'}: "
                f"{verdict.reason}. "
                f"Remedy: {verdict.remedy}."
            )
        if verdict.kind == "private":
            _check_private(where, part)
            # Only the last step of the outermost pipeline predicts.
            predicts = not hasattr(part, "transform")
            weight = float(weights.pop(name, 1.0 if predicts else _TRANSFORMER_WEIGHT))
            steps.append(PrivateStep(name, clone(part), weight))
    if not steps:
        raise ValueError(
            "The estimator must contain a private step with an epsilon, got none. Use a private "
            "estimator of skdp, directly or as a step of a pipeline."
        )
    if weights:
        raise ValueError(
            f"step_weights must name private steps, got {sorted(weights)}; the private steps are "
            f"{[step.name for step in steps]}."
        )
    return tuple(steps)


def check_units(estimator: Any, steps: tuple[PrivateStep, ...]) -> None:
    """Refuse a candidate with a private step that would not receive the ids."""
    closed = out_of_reach(estimator)
    if closed and any(step.name.startswith(closed) for step in steps):
        raise ValueError(
            "groups= reaches the steps of a ColumnTransformer or FeatureUnion only with metadata "
            "routing: call sklearn.set_config(enable_metadata_routing=True)."
        )
    for step in steps:
        if not takes_ids(step.estimator):
            raise ValueError(
                f"{step.label} would treat each row as a unit, but the search has groups=: its fit "
                "must accept groups and, with metadata routing, request them by "
                "set_fit_request(groups=True)."
            )


def check_no_ids(
    estimator: Any, X: Any, names: Iterable[str], steps: tuple[PrivateStep, ...]
) -> None:
    """Refuse ids for single steps, since the plan protects rows."""
    refuse_named_ids(estimator, X)
    requests = [getattr(get_routing_for_object(step.estimator), "fit", None) for step in steps]
    asked = {getattr(each, "requests", {}).get("groups") for each in requests}
    if any(name.rpartition("__")[2] in {"groups", *asked} for name in names):
        raise TypeError("A private search accepts ids only for all steps, as groups=.")


def _check_private(where: str, part: Any) -> None:
    parameters = part.get_params(deep=False)
    missing = [name for name in _REQUIRED if name not in parameters]
    if missing:
        raise ValueError(
            f"{where}, {type(part).__name__}, cannot get a budget: it has no parameter "
            f"{', '.join(missing)}."
        )
    if parameters["accountant"] is not None:
        raise ValueError(
            f"{where}, {type(part).__name__}, must have accountant=None: pass the accountant to "
            "the search, which charges all fits at once."
        )


def refuse_searched(steps: tuple[PrivateStep, ...], parameters: dict[str, Any]) -> None:
    """Refuse a grid over parameters that the search sets."""
    for step in steps:
        for name in SET_BY_THE_SEARCH:
            if step.parameter(name) in parameters:
                raise ValueError(
                    f"{step.parameter(name)!r} cannot be in the grid: the search sets it to meet "
                    "its epsilon and delta."
                )


def plan_fit(
    steps: tuple[PrivateStep, ...],
    *,
    epsilon: float,
    delta: float,
    adjacency: str,
    shape: tuple[int, int],
    n_classes: int,
    by_unit: bool = False,
) -> Fit:
    """Return the charges of a fit with steps that share an epsilon and a delta.

    Step i gets ``weight_i * epsilon`` and an equal part of delta.
    """
    events, epsilons, plans = [], [], []
    each_delta = delta / len(steps)
    for step in steps:
        step_epsilon = step.weight * epsilon
        set_known(step.estimator, epsilon=step_epsilon, delta=each_delta, adjacency=adjacency)
        planned = _plan_step(step, step_epsilon, shape, n_classes, by_unit)
        if planned.adjacency != adjacency:
            raise ValueError(
                f"{step.label} guarantees privacy only under {planned.adjacency!r}: set "
                f"adjacency={planned.adjacency!r} in the search."
            )
        if by_unit:  # the reserved budget checks it, also if the plan does not depend on it
            planned = replace(planned, unit="group")
        events.append(with_noise(planned.event, 1.0 - PLANNING_MARGIN))
        epsilons.append(step_epsilon)
        plans.append(planned)
    return Fit(tuple(events), tuple(epsilons), each_delta, tuple(plans))


def _plan_step(
    step: PrivateStep, epsilon: float, shape: tuple[int, int], n_classes: int, by_unit: bool
) -> Any:
    public = {"n_samples": shape[0], "n_features": shape[1], "n_classes": n_classes}
    public["groups"] = by_unit
    try:
        return ask_plan(step.estimator, public)
    except CalibrationError:
        raise
    except ValueError as error:
        raise ValueError(
            f"{step.label} cannot be planned with epsilon={epsilon:.6g}, the approximate share of "
            f"one fit in the search: {error}"
        ) from error


def set_known(estimator: Any, **values: Any) -> None:
    """Set the parameters that the estimator has."""
    own = estimator.get_params(deep=False)
    estimator.set_params(**{name: value for name, value in values.items() if name in own})


class Escrow:
    """The reserved budget of one private step in one inner fit: one release."""

    # Used as ``accountant=``. It grants the planned release, or a cheaper one, once, so an inner
    # fit cannot spend more than the search has charged.

    def __init__(self, event: Event, adjacency: str, step: str, unit: str = "row") -> None:
        self.event = event
        self.adjacency = adjacency
        self.step = step
        self.unit = unit
        self._left = [event]  # taken by the first charge of any thread

    def reserve(
        self, event: Event, *, adjacency: str | None = None, unit: str = "row", **_: Any
    ) -> None:
        """Grant the planned release, once."""
        if adjacency not in (None, self.adjacency):
            raise self._refusal(f"under {adjacency!r}, but the search uses {self.adjacency!r}.")
        if unit != self.unit:
            raise self._refusal(
                f"with unit={unit!r}, but the search uses unit={self.unit!r}: its fit must accept "
                "groups= like its plan."
            )
        if not costs_no_more(event, self.event):
            raise self._refusal(
                f"{event!r}, but the search has planned {self.event!r}: its privacy_plan must "
                "return the event that its fit charges."
            )
        try:
            self._left.pop()
        except IndexError:
            raise self._refusal(
                "twice in one fit, but the search has planned one release."
            ) from None

    def _refusal(self, reason: str) -> BudgetExceededError:
        return BudgetExceededError(f"{self.step} requests a charge {reason}")

    def __deepcopy__(self, memo: dict[int, Any]) -> Escrow:
        # A clone in the same fit charges the same release.
        return self
