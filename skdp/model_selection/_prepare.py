"""Candidates made ready for one fit, and fitted models made ready for release."""

from __future__ import annotations

from typing import Any

from sklearn.base import clone

from skdp.model_selection._escrow import Escrow
from skdp.model_selection._steps import Fit, PrivateStep, parts_of, set_known
from skdp.pipelines import containers, walk
from skdp.reporting.steps import is_private


def prepare_fit(
    estimator: Any, steps: tuple[PrivateStep, ...], fit: Fit, adjacency: str, classes: Any
) -> Any:
    """Return a copy of a candidate that can be fitted once, on what the search has paid for.

    Steps that were told no `classes`, which they would read from their part of the rows, are told
    these. The steps' random states are still to be set.
    """
    copy = clone(estimator)
    for container in containers(copy).values():
        # A cache on disk would hold private rows; workers of workers would copy the escrow.
        set_known(container, memory=None, n_jobs=None, verbose=False)
    own = copy.get_params(deep=True)
    for step, event, epsilon, plan in zip(steps, fit.events, fit.epsilons, fit.plans, strict=True):
        wanted = {
            "epsilon": epsilon,
            "delta": fit.delta,
            "adjacency": adjacency,
            "accountant": Escrow(event, adjacency, step.label, plan.unit),
            "verbose": 0,
        }
        given = step.estimator.get_params(deep=False)
        if given.get("classes", ...) is None:
            wanted["classes"] = classes
        if given.get("data_norm", ...) is None:
            wanted["data_norm"] = 1.0  # the search has warned already
        named = {step.parameter(name): value for name, value in wanted.items()}
        copy.set_params(**{key: value for key, value in named.items() if key in own})
    for _, part in parts_of(copy):
        # Their number and order would tell which candidates were tried.
        if hasattr(part, "set_callbacks"):
            part.set_callbacks()
    return copy


def set_streams(estimator: Any, steps: tuple[PrivateStep, ...], stream: Any) -> None:
    """Give each private step a stream of random numbers of its own."""
    own = estimator.get_params(deep=True)
    for step in steps:
        if step.parameter("random_state") in own:
            child = stream.spawn(step.name)
            estimator.set_params(**{step.parameter("random_state"): child})


def strip_secrets(estimator: Any) -> Any:
    """Take from a fitted model what could redo its noise, and the spent escrow."""
    for _, part, _ in walk(estimator):
        if is_private(part):
            set_known(part, accountant=None, random_state=None)
    return estimator


def restore_parameters(estimator: Any, template: Any, spent: Any, *, refitted: bool) -> Any:
    """Give a fitted model its own parameters back, and have it say what it really cost.

    Of one model out of a search, the price is that of the whole search.
    """
    originals = {step.name: step.estimator for step in walk(template)}
    for name, part, _ in walk(estimator):
        if not is_private(part):
            continue
        own = originals[name].get_params(deep=False)
        changed = ("accountant", "random_state", "classes", "data_norm", "verbose")
        set_known(part, **{key: own[key] for key in changed if key in own})
        if not refitted:  # chosen by its score, in which the noise has had a say
            vars(part).pop("_coef_noise_", None)
        if hasattr(part, "privacy_spent_"):
            part.privacy_spent_ = spent
            # The statement counts a record that several steps share in this way once.
            part._shares_record_of_search = True
    return estimator
