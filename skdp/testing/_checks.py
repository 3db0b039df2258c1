"""The checks of `check_private_estimator`; each raises with the fault and a remedy."""

from __future__ import annotations

import math
import pickle
import re
from dataclasses import replace
from inspect import signature
from typing import Any
from unittest import SkipTest

import numpy as np
from scipy import stats
from sklearn.base import clone

from skdp.accounting import GaussianEvent, LaplaceEvent
from skdp.accounting.accountants import resolve_accountant
from skdp.accounting.events.base import leaf_counts
from skdp.accounting.privacy_spent import DISCRETE_NOISE
from skdp.base.pipelines import is_container, walk
from skdp.exceptions import BudgetExceededError
from skdp.mechanisms.discrete import LARGEST_STEP
from skdp.mechanisms.trace import ReleaseTrace, TracedRelease
from skdp.testing._case import Case, NotingBudget, Replay, noises, parameters_called, records
from skdp.testing.laws import check_noise
from skdp.testing.replay import Run, compare_releases, differences

# This number of values with scale above 1 repeats with probability below 1e-10.
_FEWEST_INTEGERS = 20
# Digits that errors must not quote.
_SECRET, _QUOTED = 86753.0625, "8[_,]?6[_,]?753"


def _insist(right: Any, what: str) -> None:
    if not right:
        raise AssertionError(what)


def check_the_budget_is_charged_once_and_in_full(case: Case) -> None:
    """One charge per record, for its event or one that costs at least as much."""
    spent, charges = records(case.run.fitted), case.budget.charges
    _insist(spent, "fit leaves no privacy_spent_. Set it to the PrivacySpent that was charged.")
    _insist(
        len(charges) == len(spent),
        f"The budget was charged {len(charges)} times for {len(spent)} private fits. Call "
        "charge_fit(self, spent), or accountant.reserve(...), once per fit.",
    )
    for record, (event, details) in zip(spent, charges, strict=True):
        told, own = details.get("adjacency"), record.adjacency
        _insist(told in (None, own), f"The charge is for {told}, but the record is for {own}.")
        price = _price(record, record.event)
        enough = event == record.event or _price(record, event) >= price * (1.0 - 1e-9)
        _insist(enough, "The charge costs less than privacy_spent_ states. Charge the same event.")
        _insist(
            record.epsilon >= price.lower * (1.0 - 1e-9),
            f"privacy_spent_ claims epsilon={record.epsilon:.6g}, but at its delta its event costs "
            f"at least {price.lower:.6g}. Compute the claim with a privacy accountant.",
        )


def _price(record: Any, event: Any) -> Any:
    accountant = resolve_accountant(record.accountant)(adjacency=record.adjacency)
    return accountant.compose(event).epsilon(record.delta)


def check_the_plan_is_what_the_fit_charges(case: Case) -> None:
    """Compare the plan, from public numbers only, with the charge of the fit."""
    fitted = case.run.fitted
    by_itself = hasattr(fitted, "privacy_spent_")
    steps = [case.prepare()] if by_itself else [step.estimator for step in walk(fitted)]
    steps = [step for step in steps if by_itself or hasattr(step, "privacy_spent_")]
    for step, spent in zip(steps, records(fitted), strict=True):
        name = type(step).__name__
        _insist(
            callable(getattr(step, "privacy_plan", None)),
            f"{name} has no method privacy_plan, which searches and forecasts need to predict its "
            "charge. Add privacy_plan(n_samples, n_features), which returns the PrivacySpent.",
        )
        columns = case.X.shape[1] if by_itself else step.n_features_in_
        public = {"n_samples": len(case.X), "n_features": columns, "groups": False}
        labels = 2 if case.y is None else len(set(np.asarray(case.y).tolist()))
        asked, public = signature(step.privacy_plan).parameters, {"n_classes": labels, **public}
        more = [key for key, own in asked.items() if own.default is own.empty and key not in public]
        _insist(not more, f"privacy_plan of {name} requires {more}, which searches do not provide.")
        try:
            plan = step.privacy_plan(**{name: public[name] for name in public if name in asked})
        except (TypeError, ValueError) as error:
            raise SkipTest(f"{name} cannot plan from the shape of a table only: {error}") from error
        one, other = ((each.epsilon, each.delta, each.adjacency) for each in (plan, spent))
        _insist(
            one[2] == other[2] and np.allclose(one[:2], other[:2], rtol=1e-9, atol=0.0),
            f"privacy_plan of {name} returns (epsilon, delta, adjacency) = {one}, but fit charges "
            f"{other}. Charge the result of privacy_plan in fit.",
        )
        prices = [_price(spent, each.event) for each in (plan, spent)]
        _insist(
            plan.event == spent.event or np.allclose(prices[0], prices[1], rtol=1e-6),
            f"privacy_plan of {name} names another event than the fit charges: {plan.event!r} "
            f"instead of {spent.event!r}. Charge the result of privacy_plan in fit.",
        )


def check_the_charge_comes_before_the_rows(case: Case) -> None:
    """No release before the charge; rows exchanged during the charge are the ones used."""
    table = case.far_X.copy()
    budget = NotingBudget(then=lambda: np.copyto(table, case.X))
    found = case.fit(case.prepare(budget), table, case.y).trace.releases
    expected, before = case.run.trace.releases, budget.releases_before
    timely = before and before[0] == 0 and before[-1] <= max(len(found) - 1, 0)
    _insist(
        timely,
        "A release was made before its charge. Charge first: a refusal must end the fit in time.",
    )
    same = len(expected) == len(found) and all(
        np.allclose(one.value, other.value, rtol=1e-9, atol=1e-9 * one.sigma)
        for one, other in zip(expected, found, strict=True)
    )
    _insist(
        same or is_container(case.estimator),  # a container copies columns for its parts
        "Rows were used or copied before the charge. Charge right after the checks of parameters "
        "and shapes, before all work with rows.",
    )


def check_a_refused_charge_ends_the_fit(case: Case) -> None:
    """Refuse the charge; the estimator must keep nothing from the rows."""
    runs = []
    for X in (case.X, case.far_X):
        model = case.prepare(NotingBudget(refuses=True))
        run = case.fit(model, X, case.y, expected=(BudgetExceededError,))
        _insist(run.error, "fit went on although the budget refused. Do not catch the refusal.")
        runs.append(run)
    found = differences(runs[0]._replace(error=None), runs[1]._replace(error=None))
    _insist(
        not found, f"A refused fit reveals information about the rows: {found[:3]}. Charge first."
    )


def check_releases_move_by_no_more_than_they_declare(case: Case) -> None:
    """Replay on neighbours, release by release."""
    _insist(
        case.run.trace.releases,
        "No release was seen. Use skdp.mechanisms, or report releases with trace.note_release.",
    )
    for replay in case.replays:
        try:
            for error in replay.errors:
                if isinstance(error, RuntimeError):  # more releases than were recorded
                    raise AssertionError(str(error))
            if not any(replay.errors):  # another check covers other errors
                _compare(replay)
        except AssertionError as error:
            raise AssertionError(
                f"With {replay.name}: {error} Bound the contribution of one row, whatever its "
                "values, and declare this bound for this adjacency."
            ) from None


def _compare(replay: Replay) -> None:
    one, other = replay.one.trace.releases, replay.other.trace.releases
    if replay.gone is None:
        compare_releases(one, other)
        return
    gone = replay.gone.trace.releases
    if not replay.n_is_public:
        compare_releases(other, gone)
        return
    if len(one) != len(other):
        compare_releases(one, other)
    zeros: Any = None
    for number, (null, full) in enumerate(zip(one, other, strict=True)):
        without = gone[number : number + 1]
        fault, same = _fault(null, full), _declared(null) == _declared(full)
        # Zeros may represent the row; or the release is the same without it, in units of the
        # declared sensitivity if that depends on n.
        if fault is None or (same and _fault(full, *without) is None):
            continue
        if same and _fault(full, *(_rescaled(each, full) for each in without)) is None:
            continue
        zeros = zeros or replay.zeros().trace.releases  # type: ignore[misc]
        add = number < len(zeros) and not np.array_equal(null.value, zeros[number].value)
        # Zeros that contribute are one row removed, one row added: twice as far.
        twice = [replace(each, sensitivity=2.0 * each.sensitivity) for each in (null, full)]
        if number == 0 or not (same and add) or _fault(*twice):
            raise fault


def _declared(release: TracedRelease) -> tuple[Any, ...]:
    return release.value.shape, release.sensitivity, release.sigma, release.norm


def _rescaled(release: TracedRelease, other: TracedRelease) -> TracedRelease:
    """Return a release rescaled to the sensitivity of another, for sums over n."""
    factor = other.sensitivity / release.sensitivity
    sigma = release.sigma * factor
    if np.isclose(sigma, other.sigma, rtol=1e-9, atol=0.0):
        sigma = other.sigma
    return replace(
        release, value=factor * release.value, sensitivity=other.sensitivity, sigma=sigma
    )


def _fault(one: TracedRelease, *others: TracedRelease) -> AssertionError | None:
    """Return the fault of a release as that of a neighbour."""
    try:
        compare_releases([one], others)
    except AssertionError as error:
        return error
    return None


def check_nothing_tells_neighbours_apart(case: Case) -> None:
    """Compare everything reachable from fits with equal releases, and their output."""
    again = case.fit(case.prepare(NotingBudget()), case.X, case.y)
    found = differences(vars(case.run.fitted), vars(again.fitted))
    _insist(
        not found,
        "Two fits of one table differ under frozen noise. Draw all random numbers from "
        f"skdp.mechanisms.resolve_random_state(self.random_state). See {found[:3]}.",
    )
    for replay in case.replays:
        name, one, other = replay[:3]
        if replay.gone is not None and not replay.n_is_public:
            one = replay.gone
        for error in filter(None, replay.errors):
            raise AssertionError(
                f"With {name}, fit raised {type(error).__name__}: no value of a row may decide an "
                "error. Clip rows, and refuse only non-finite values."
            )
        found = differences(one.fitted, other.fitted)
        _insist(
            not found,
            f"With {name}, the fitted object distinguishes the tables: {found[:3]}. Store only "
            "values from releases, parameters and shapes.",
        )
        _insist(
            one.said == other.said,
            f"With {name}, fit prints, logs or warns differently: {one.said}, {other.said}. Let "
            "output depend only on public numbers.",
        )


def check_noise_is_fresh_and_as_declared(case: Case) -> None:
    """Test the law of each mechanism's noise, and its privacy cost against the charge."""
    _insist_on_fresh(case, case.traces, "twice in fits without a seed")
    for (label, norm), noise in noises(case.traces).items():
        law = stats.norm() if norm == 2.0 else stats.laplace()
        try:
            check_noise(noise, law)
        except AssertionError as error:
            root = math.sqrt(np.mean(noise**2) / law.var())
            raise AssertionError(
                f"The noise of {label!r} is about {root:.3g} times the declared scale, or has "
                f"another law. {error} Declare the scale used, and draw it with skdp.mechanisms."
            ) from None
    _insist_on_paid_noise(case)


def _insist_on_paid_noise(case: Case) -> None:
    """Compare the declared noise with the charge, for Gaussian and Laplace noise."""
    leaves: list[tuple[Any, int]] = []
    for record in records(case.run.fitted):
        leaves += leaf_counts(record.event).items()
    priced: dict[Any, Any] = {GaussianEvent: (2.0, 2), LaplaceEvent: (1.0, 1)}
    if not leaves or not all(type(event) in priced for event, _ in leaves):
        return
    for kind, (norm, power) in priced.items():
        charged = sum(k / e.noise_multiplier**power for e, k in leaves if type(e) is kind)
        releases = [each for each in case.run.trace.releases if each.norm == norm]
        made = sum((each.sensitivity / each.sigma) ** power for each in releases)
        _insist(
            made <= charged * (1.0 + 1e-9),
            f"With their declared noise the releases cost {made ** (1 / power):.6g}, the charge as "
            f"{kind.__name__} is {charged ** (1 / power):.6g}. Draw more noise, or charge more.",
        )


def _step_of_noise(case: Case) -> float:
    """Return the largest grid of discrete noise, in units of its scale; else 0."""
    discrete = (r.arithmetic == DISCRETE_NOISE for r in records(case.run.fitted))
    return LARGEST_STEP if any(discrete) else 0.0


def _insist_on_fresh(case: Case, traces: list[ReleaseTrace], when: str) -> None:
    why = (
        f"had the same noise {when}: a difference would cancel it. Use a new stream every time, "
        "with resolve_random_state(self.random_state, context) and spawn(label)."
    )
    # Small integers are equal by chance, but not all those of two fits.
    wholes = [
        np.concatenate([[], *(_noise(each) for each in trace.releases if _of_integers(each))])
        for trace in traces
    ]
    long = [whole.tobytes() for whole in wholes if whole.size >= _FEWEST_INTEGERS]
    _insist(len(set(long)) == len(long), f"All releases of integers {why}")
    step = _step_of_noise(case)
    found = noises(traces, _of_integers)
    labels: dict[Any, Any] = dict(found)
    if not step:  # for all labels together: two releases of a fit may share one stream
        for norm in {norm for _, norm in found}:
            parts = [noise for (_, own), noise in found.items() if own == norm]
            labels["a release", norm] = np.concatenate(parts)
    for (label, _), noise in labels.items():
        # Densities of absolute values are at most 1: two of n numbers are closer than this with
        # probability at most 1e-8. On a grid, at most this number are equal by chance.
        gaps = np.diff(np.sort(np.abs(noise)))
        ties = stats.poisson.isf(1e-9, step * noise.size**2) if step else 0.0
        _insist(np.count_nonzero(gaps <= 1e-8 / noise.size**2) <= ties, f"{label!r} {why}")


def _noise(release: TracedRelease) -> np.ndarray:
    return (release.output - release.value).ravel()


def _of_integers(release: TracedRelease) -> bool:
    numbers = np.concatenate([release.value.ravel(), release.output.ravel()])
    return release.sigma > 1.0 and bool((numbers == np.rint(numbers)).all())


def check_seeds_are_reported_and_bound_to_the_table(case: Case) -> None:
    """Fit with a seed, which must repeat its fit and share no noise with others."""
    if not parameters_called(case.estimator, "random_state"):
        raise SkipTest("The estimator has no parameter random_state.")
    runs: list[Run] = []
    for X in (case.X, case.X, case.far_X):
        budget = NotingBudget()
        # The check's seed differs: only the estimator's seed repeats.
        runs.append(case.fit(case.prepare(budget, random_state=3), X, case.y, seed=len(runs)))
        told = [record.seeded for record in records(runs[-1].fitted)]
        told += [details.get("seeded", False) for _, details in budget.charges]
        _insist(told and all(told), "A seed is not reported. Set seeded= in record and charge.")
    outputs = [[release.output for release in run.trace.releases] for run in runs]
    _insist(
        not differences(outputs[0], outputs[1]),
        "A seed does not repeat its fit. Draw all randomness from it.",
    )
    _insist_on_fresh(case, [run.trace for run in runs[1:]], "on two tables, with one seed")
    unseeded = records(case.run.fitted)
    _insist(not any(r.seeded for r in unseeded), "A fit without a seed reports a seed.")


def check_clones_and_pickles_keep_the_budget(case: Case) -> None:
    """Clones and pickles must keep parameters, budget and record."""
    names = parameters_called(case.estimator, "accountant")
    _insist(names, "The estimator has no parameter accountant, which is needed to charge a budget.")
    budget = NotingBudget()
    model = case.prepare(budget)
    for way, name in ((clone, "cloned"), (_pickled, "pickled")):
        copy = way(model)
        lost = [key for key in names if copy.get_params()[key] is not budget]
        _insist(
            not lost, f"A {name} estimator loses its budget ({lost}). Store parameters as given."
        )
        found = differences(model.get_params(deep=False), copy.get_params(deep=False))
        _insist(not found, f"A {name} estimator differs in {found[:3]}. Store parameters as given.")
        case.fit(copy, case.X, case.y)
        _insist(budget.charges, f"A {name} estimator does not charge its budget when it is fitted.")
        budget.charges.clear()
    kept = records(_pickled(case.run.fitted))
    _insist(kept == records(case.run.fitted), "A pickle of the fitted object loses privacy_spent_.")


def _pickled(model: Any) -> Any:
    try:
        return pickle.loads(pickle.dumps(model))
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        raise SkipTest(f"The estimator cannot be pickled: {error}") from error


def check_errors_quote_no_value(case: Case) -> None:
    """Provoke errors with known numbers and labels, which messages must not quote."""
    X, n = np.full(np.shape(case.X), _SECRET), len(case.X)
    gap, endless = X.copy(), X.copy()
    gap[1:2, 0], endless[1:2, 0] = np.nan, np.inf
    rows = (gap, endless, X.ravel(), X[:, :0], np.where(X > 0, f"x{_SECRET}", ""))
    tables = [(each, case.y) for each in rows]
    if case.y is not None:
        labels = np.full(n, int(_SECRET))
        tables += [(X, each) for each in (labels, labels[:-1], X, X[:, 0], labels.astype(str))]
    # Containers leave some checks to their parts.
    composed = any(hasattr(value, "fit") for value in case.estimator.get_params().values())
    for table in tables:
        budget = NotingBudget()
        error: Any = case.fit(case.prepare(budget), *table, expected=(Exception,)).error
        _insist(
            error is None or not budget.charges or composed,
            f"{type(error).__name__} came after the charge. Check parameters and shapes first.",
        )
        while error is not None:
            _insist(
                not re.search(_QUOTED, str(error)),
                "An error quotes a value of the table. Describe the fault without it, and end "
                "chains of exceptions that quote it.",
            )
            error = error.__cause__ or error.__context__


CHECKS = (
    check_the_budget_is_charged_once_and_in_full,
    check_the_plan_is_what_the_fit_charges,
    check_the_charge_comes_before_the_rows,
    check_a_refused_charge_ends_the_fit,
    check_releases_move_by_no_more_than_they_declare,
    check_nothing_tells_neighbours_apart,
    check_noise_is_fresh_and_as_declared,
    check_seeds_are_reported_and_bound_to_the_table,
    check_clones_and_pickles_keep_the_budget,
    check_errors_quote_no_value,
)
