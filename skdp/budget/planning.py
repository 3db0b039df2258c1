"""What the fits of an estimator, a pipeline or an ordinary search will charge, without data."""

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
    """Return what one call of ``estimator.fit`` would charge, charge by charge, without data.

    Parameters
    ----------
    estimator : estimator
        A private estimator, transformer or search; a pipeline, column transformer or feature union
        with such steps; or a `GridSearchCV` or `RandomizedSearchCV` over one of these, which fits
        every candidate on every split, and the best once more. Private steps of a pipeline must not
        change their price with the number of columns that earlier steps hand on; those of skdp do
        not.
    n_samples : int
        Number of rows, or of ids with `groups`.
    n_features : int
        Number of columns.
    n_classes : int, default=2
        Number of labels.
    groups : bool, default=False
        Whether `fit` will be given ``groups=``; not of ordinary searches.

    Returns
    -------
    list of PrivacySpent
        In the order in which one process would charge them. The refit of a search, last, is taken
        to be of the candidate that states the largest epsilon, and of these the largest delta. A
        budget's `check`, `fits` and `allocate` take the one that leaves them least. Splits have the
        sizes that `cv` gives as many rows of each label: where the price of a fit depends on its
        number of rows, as by objective perturbation, other splits may cost a little more or less.

    Raises
    ------
    ValueError
        For bad parameters, as `fit` does; and where the number or the price of fits is not known,
        with what to do.

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
    """Return charges as `plan_fits` does, and apart from them those of each possible refit."""
    public = {"n_features": n_features, "n_classes": n_classes, "groups": groups}
    if type(estimator) in _SEARCHES:
        return _plan_search(estimator, n_samples, public)
    return _plan_fit(estimator, {**public, "n_samples": n_samples}), []


def find_epsilon(estimator: Any) -> str:
    """Return the name of the parameter that is the epsilon of the last private step."""
    searched = type(estimator) in _SEARCHES
    steps = _private_steps(estimator.estimator if searched else estimator)
    parts = ["estimator"] * searched + [steps[-1].name, "epsilon"]
    name = "__".join(part for part in parts if part)
    if searched and any(name in {f"estimator__{key}" for key in p} for p in _points(estimator)):
        raise ValueError(f"The search tries several values of {name!r}: which one to set is open.")
    return name


def set_epsilon(estimator: Any, epsilon: float) -> Any:
    """Return a copy of an estimator of which the last private step has another epsilon."""
    return clone(estimator).set_params(**{find_epsilon(estimator): epsilon})


def _plan_search(
    search: Any, n_samples: int, public: dict[str, Any]
) -> tuple[list[PrivacySpent], list[list[PrivacySpent]]]:
    if public["groups"]:
        raise ValueError(
            f"How {type(search).__name__} divides ids among splits depends on the ids: plan one "
            "fit by plan_fits(search.estimator, ...), and count the fits by fits=."
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
    """Return what charges state together, to compare candidates by."""
    epsilon = sum(charge.epsilon for charge in charges)  # alike but for what calibration rounds
    return float(f"{epsilon:.9g}"), sum(charge.delta for charge in charges)


def _points(search: Any) -> Iterable[dict[str, Any]]:
    """Return the parameters of all candidates."""
    if type(search) is GridSearchCV:
        return ParameterGrid(search.param_grid)
    if search.random_state is None:
        raise ValueError(
            "RandomizedSearchCV draws other candidates at each fit: give it random_state=, and "
            "those that it will draw can be planned for."
        )
    state = copy.deepcopy(search.random_state)
    return ParameterSampler(search.param_distributions, search.n_iter, random_state=state)


def _train_sizes(cv: Any, n_samples: int, n_classes: int) -> list[int]:
    """Return the numbers of rows that the splits train on."""
    if isinstance(cv, Iterator):
        raise ValueError("cv= is an iterator, which can be read once: give a list of splits.")
    labels = np.arange(n_samples) % n_classes
    splitter = check_cv(copy.deepcopy(cv), labels, classifier=True)
    try:
        return [len(train) for train, _ in splitter.split(np.zeros((n_samples, 1)), labels)]
    except ValueError as error:
        raise ValueError(
            f"The splits of cv={cv!r} are not known without data ({error}): plan one fit by "
            "plan_fits(search.estimator, ...), and count the fits by fits=."
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
                    f"How often {type(step.estimator).__name__} fits its {type(part).__name__} is "
                    "not known here: plan one of these fits, and count them by fits=."
                )
        if lacks_a_plan(step.estimator):
            name = type(step.estimator).__name__
            raise ValueError(f"{name} has no method privacy_plan to ask for a price: {ADD_A_PLAN}.")
    if not found:
        raise ValueError(f"{type(estimator).__name__} has no private step: nothing is charged.")
    return found


def _plan_step(step: Step, public: dict[str, Any]) -> PrivacySpent:
    planned = ask_plan(step.estimator, public)
    if step.name:  # of a container, which may hand on other columns than it was given
        wider = ask_plan(step.estimator, {**public, "n_features": 2 * public["n_features"] + 3})
        if not _same_price(planned.event, wider.event):
            raise ValueError(
                f"The price of step {step.name!r} depends on its number of columns, which is not "
                "known before the steps ahead of it have run: give its own privacy_plan."
            )
    return planned


def _same_price(one: Event, other: Event) -> bool:
    # Noise that is calibrated for other columns may differ in its last digit.
    return one == other or (
        costs_no_more(with_noise(one, _ROUNDING), other)
        and costs_no_more(with_noise(other, _ROUNDING), one)
    )


def ask_plan(estimator: Any, public: dict[str, Any]) -> PrivacySpent:
    """Return the `privacy_plan` of an estimator, which may not ask for all public numbers."""
    known = inspect.signature(estimator.privacy_plan).parameters
    planned: PrivacySpent = estimator.privacy_plan(**{k: public[k] for k in public if k in known})
    return planned
