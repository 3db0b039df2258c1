"""Charges of an estimator, a pipeline or an ordinary search, computed without data."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import (
    GridSearchCV,
    ParameterGrid,
    ParameterSampler,
    RandomizedSearchCV,
    check_cv,
)

from skdp.accounting import Event
from skdp.accounting.analysis import costs_no_more, with_noise
from skdp.accounting.privacy_spent import PrivacySpent
from skdp.base.pipelines import Step, is_container, walk
from skdp.base.scikit_learn import ADD_A_PLAN, is_private, lacks_a_plan

_SEARCHES = (GridSearchCV, RandomizedSearchCV)
_ROUNDING = 1.0 + 1e-12  # of noise: no more than calibration rounds


def plan_fits(
    estimator: Any, n_samples: int, n_features: int, n_classes: int = 2, groups: bool = False
) -> list[PrivacySpent]:
    """Return the charges of one call of ``estimator.fit``, without data.

    Parameters
    ----------
    estimator : estimator
        Private estimator, transformer or search, or a pipeline, column transformer or feature
        union with such steps. Also a `GridSearchCV` or `RandomizedSearchCV` over one of these,
        which fits every candidate on every split and refits the best one. The privacy cost of a
        pipeline's private steps must not depend on the number of columns from earlier steps; that
        of skdp's steps does not.
    n_samples : int
        Number of rows, or of ids if `groups` is True.
    n_features : int
        Number of columns.
    n_classes : int, default=2
        Number of labels.
    groups : bool, default=False
        Whether `fit` will receive ``groups=``; not supported for ordinary searches.

    Returns
    -------
    list of PrivacySpent
        Charges in the order of a single process. The last one is the refit of a search, assumed to
        be that of the candidate with the largest stated epsilon, then delta. `check`, `fits` and
        `allocate` of a budget use the refit that leaves the smallest budget. Split sizes assume
        equal numbers of rows per label. If the cost of a fit depends on its number of rows, as with
        objective perturbation, other splits may cost slightly more or less.

    Raises
    ------
    ValueError
        For invalid parameters, as in `fit`, and if the number or the privacy cost of the fits is
        not known. The message names an alternative.

    Examples
    --------
    >>> from sklearn.model_selection import GridSearchCV
    >>> from skdp import OperaLogisticRegression
    >>> from skdp.budget import plan_fits
    >>> model = OperaLogisticRegression(epsilon=0.5, delta=1e-6)
    >>> search = GridSearchCV(model, {"alpha": [0.01, 0.1, 1.0]}, cv=3)
    >>> len(plan_fits(search, n_samples=600, n_features=8))  # 3 candidates, 3 splits, one refit
    10
    """
    fits, refits = plan_refits(estimator, n_samples, n_features, n_classes, groups)
    return fits + max(refits, key=_stated, default=[])


def plan_refits(
    estimator: Any, n_samples: int, n_features: int, n_classes: int = 2, groups: bool = False
) -> tuple[list[PrivacySpent], list[list[PrivacySpent]]]:
    """Return charges as `plan_fits` does, and separately those of each possible refit."""
    public = {"n_features": n_features, "n_classes": n_classes, "groups": groups}
    if type(estimator) in _SEARCHES:
        return _plan_search(estimator, n_samples, public)
    return _plan_fit(estimator, {**public, "n_samples": n_samples}), []


def find_epsilon(estimator: Any) -> str:
    """Return the name of the parameter with the epsilon of the last private step."""
    searched = type(estimator) in _SEARCHES
    steps = _private_steps(estimator.estimator if searched else estimator)
    parts = ["estimator"] * searched + [steps[-1].name, "epsilon"]
    name = "__".join(part for part in parts if part)
    if searched and any(name in {f"estimator__{key}" for key in p} for p in _points(estimator)):
        raise ValueError(f"{name!r} cannot be set, since the search tries several values of it.")
    return name


def set_epsilon(estimator: Any, epsilon: float) -> Any:
    """Return a copy of an estimator with another epsilon in its last private step."""
    return clone(estimator).set_params(**{find_epsilon(estimator): epsilon})


def _plan_search(
    search: Any, n_samples: int, public: dict[str, Any]
) -> tuple[list[PrivacySpent], list[list[PrivacySpent]]]:
    if public["groups"]:
        raise ValueError(
            f"The splits of {type(search).__name__} depend on the ids: plan one fit with "
            "plan_fits(search.estimator, ...), and set the number of fits with fits=."
        )
    sizes = _train_sizes(search.cv, n_samples, public["n_classes"])
    fits: list[PrivacySpent] = []
    refits: dict[str, list[PrivacySpent]] = {}
    for point in _points(search):
        candidate = clone(search.estimator).set_params(**clone(point, safe=False))
        by_size = {n: _plan_fit(candidate, {**public, "n_samples": n}) for n in {*sizes, n_samples}}
        for size in sizes:
            fits += by_size[size]
        whole = by_size[n_samples]
        refits[repr([(each.event, each.epsilon, each.delta) for each in whole])] = whole
    return fits, list(refits.values()) if search.refit is not False else []


def _stated(charges: list[PrivacySpent]) -> tuple[float, float]:
    """Return the stated total of charges, to compare candidates."""
    epsilon = sum(charge.epsilon for charge in charges)  # alike up to rounding in calibration
    return float(f"{epsilon:.9g}"), sum(charge.delta for charge in charges)


def _points(search: Any) -> Iterable[dict[str, Any]]:
    """Return the parameters of all candidates."""
    if type(search) is GridSearchCV:
        return ParameterGrid(search.param_grid)
    if search.random_state is None:
        raise ValueError(
            "RandomizedSearchCV draws different candidates at each fit: set random_state= to plan "
            "for the candidates that it will draw."
        )
    state = copy.deepcopy(search.random_state)
    return ParameterSampler(search.param_distributions, search.n_iter, random_state=state)


def _train_sizes(cv: Any, n_samples: int, n_classes: int) -> list[int]:
    """Return the numbers of rows that the splits train on."""
    if isinstance(cv, Iterator):
        raise ValueError("cv= is an iterator, which can be read only once: pass a list of splits.")
    labels = np.arange(n_samples) % n_classes
    splitter = check_cv(copy.deepcopy(cv), labels, classifier=True)
    try:
        return [len(train) for train, _ in splitter.split(np.zeros((n_samples, 1)), labels)]
    except ValueError as error:
        raise ValueError(
            f"The splits of cv={cv!r} are not known without data ({error}): plan one fit with "
            "plan_fits(search.estimator, ...), and set the number of fits with fits=."
        ) from error


def _plan_fit(estimator: Any, public: dict[str, Any]) -> list[PrivacySpent]:
    return [_plan_step(step, public) for step in _private_steps(estimator)]


def _private_steps(estimator: Any) -> list[Step]:
    # A fitted column transformer would show its fitted parts as well.
    steps = list(walk(clone(estimator) if is_container(estimator) else estimator))
    found = [step for step in steps if is_private(step.estimator)]
    for step in steps:
        if step in found or not hasattr(step.estimator, "get_params"):
            continue
        for part in step.estimator.get_params(deep=True).values():
            if is_private(part) and not isinstance(part, type):
                raise ValueError(
                    f"The number of times that {type(step.estimator).__name__} fits its "
                    f"{type(part).__name__} is not known: plan one of these fits, and set their "
                    "number with fits=."
                )
        if lacks_a_plan(step.estimator):
            name = type(step.estimator).__name__
            raise ValueError(
                f"{name} has no method privacy_plan to compute its privacy cost: {ADD_A_PLAN}."
            )
    if not found:
        raise ValueError(f"{type(estimator).__name__} has no private step, so nothing is charged.")
    return found


def _plan_step(step: Step, public: dict[str, Any]) -> PrivacySpent:
    planned = ask_plan(step.estimator, public)
    if step.name:  # of a container, which may change the columns
        wider = ask_plan(step.estimator, {**public, "n_features": 2 * public["n_features"] + 3})
        if not _same_price(planned.event, wider.event):
            raise ValueError(
                f"The privacy cost of step {step.name!r} depends on its number of columns, which"
                " is known only after earlier steps have run: use the privacy_plan of that step."
            )
    return planned


def _same_price(one: Event, other: Event) -> bool:
    # Noise that is calibrated for other columns may differ in its last digit.
    return one == other or (
        costs_no_more(with_noise(one, _ROUNDING), other)
        and costs_no_more(with_noise(other, _ROUNDING), one)
    )


def ask_plan(estimator: Any, public: dict[str, Any]) -> PrivacySpent:
    """Return the `privacy_plan` of an estimator, with the public numbers that it accepts."""
    known = inspect.signature(estimator.privacy_plan).parameters
    planned: PrivacySpent = estimator.privacy_plan(**{k: public[k] for k in public if k in known})
    return planned
