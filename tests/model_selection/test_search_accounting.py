"""What a whole search costs: recomputed independently, near its target, charged once."""

import dataclasses
import math

import numpy as np
import pytest
from mpmath import mp, mpf
from search_toys import NoisyCentre, NoisyCount, Tally
from sklearn.model_selection import KFold, StratifiedKFold
from sklearn.pipeline import make_pipeline
from support import rows

from skdp import DPSGDClassifier, GrpuaLogisticRegression, OperaLogisticRegression
from skdp.accounting import (
    ApproxDPEvent,
    ComposedEvent,
    GaussianEvent,
    OneOfEvent,
    PLDAccountant,
    PureDPEvent,
    RepeatAndSelectEvent,
)
from skdp.accounting.analysis import costs_no_more
from skdp.accounting.events import leaf_counts
from skdp.exceptions import BudgetExceededError, CalibrationError
from skdp.mechanisms import analytic_gaussian_epsilon
from skdp.mechanisms.trace import record_releases
from skdp.model_selection import PrivateGridSearchCV
from skdp.model_selection._steps import Escrow

GRID = {"alpha": [0.01, 0.1, 1.0]}
METHODS = ("random-stopping", "holdout", "cv")
TABLE = (1000, 5)


def search_for(method="random-stopping", **options):
    return PrivateGridSearchCV(OperaLogisticRegression(), GRID, method=method, **options)


def gaussian_delta(epsilon, mu):
    """Return the exact profile of a Gaussian mechanism, for any real epsilon."""
    epsilon, mu = mpf(epsilon), mpf(mu)
    upper = mp.ncdf(-epsilon / mu + mu / 2)
    return upper - mp.exp(epsilon) * mp.ncdf(-epsilon / mu - mu / 2)


def delta_with_response(epsilon, mu, response):
    """Return the profile of a Gaussian mechanism composed with randomised response."""
    likely = 1 / (1 + mp.exp(-mpf(response)))
    return likely * gaussian_delta(epsilon - response, mu) + (1 - likely) * gaussian_delta(
        epsilon + response, mu
    )


def multipliers(event):
    return {
        leaf.noise_multiplier: count
        for leaf, count in leaf_counts(event).items()
        if isinstance(leaf, GaussianEvent)
    }


def mu_of(event):
    return math.sqrt(sum(count / z**2 for z, count in multipliers(event).items()))


OPTIONS = ({}, {"noisy_scores": True}, {"epsilon": 0.2}, {"epsilon": 6.0})


@pytest.mark.daily(1)
@pytest.mark.parametrize(
    ("method", "adjacency", "options"),
    # Each method under both relations, and with every option under one of them.
    [
        pytest.param(method, adjacency, one, marks=[] if (i + j + k) % 2 else pytest.mark.slow)
        for i, method in enumerate(METHODS)
        for j, adjacency in enumerate(["replace-one", "add-remove"])
        for k, one in enumerate(OPTIONS)
    ],
)
def test_the_whole_meets_its_target_closely(method, adjacency, options):
    search = search_for(method, adjacency=adjacency, **options)
    spent = search.privacy_plan(*TABLE)
    accountant = PLDAccountant(adjacency).compose(spent.event)
    assert spent.epsilon <= search.epsilon and spent.delta == search.delta
    assert accountant.delta(search.epsilon) <= search.delta
    assert 0.997 * search.epsilon < accountant.epsilon(search.delta) <= search.epsilon
    assert spent.adjacency == adjacency


KINDS = (
    DPSGDClassifier(batch_size=100, max_iter=60),
    GrpuaLogisticRegression(),
    make_pipeline(NoisyCentre(), NoisyCount()),
)


@pytest.mark.parametrize(
    ("method", "estimator"),
    [
        pytest.param(method, one, marks=[] if (i + j) % 2 else pytest.mark.slow)
        for i, method in enumerate(METHODS)
        for j, one in enumerate(KINDS)
    ],
)
def test_every_kind_of_estimator_meets_the_target(method, estimator):
    name = "alpha" if hasattr(estimator, "alpha") else "noisycount__threshold"
    search = PrivateGridSearchCV(estimator, {name: [0.1, 0.2]}, method=method, cv=3)
    spent = search.privacy_plan(*TABLE)
    achieved = PLDAccountant("replace-one").compose(spent.event).epsilon(search.delta)
    assert 0.997 * search.epsilon < achieved <= search.epsilon


def test_holdout_is_the_larger_of_training_and_choosing():
    spent = search_for("holdout").privacy_plan(*TABLE)
    assert isinstance(spent.event, OneOfEvent)
    trained, chosen = spent.event.events
    # A record that is scored on may cost as much as one that is trained on.
    assert chosen == PureDPEvent(1.0)
    assert sum(multipliers(trained).values()) == 3
    assert 0.99e-6 < gaussian_delta(1.0, mu_of(trained)) <= 1e-6


@pytest.mark.parametrize("refit", [False, True])
def test_fixed_runs_compose_exactly(refit):
    event = search_for("fixed", expected_candidates=7, refit=refit).privacy_plan(*TABLE).event
    assert isinstance(event, OneOfEvent)
    # Whether a record is trained on or scored, the refit comes on top.
    (trained, *refits), (scored, *others) = (
        part.events if refit else (part,) for part in event.events
    )
    assert refits == others and len(refits) == refit
    assert sum(multipliers(trained).values()) == 7
    costs = [math.hypot(mu_of(part), *map(mu_of, refits)) for part in (trained, scored)]
    deltas = [gaussian_delta(1.0, cost) for cost in costs]
    assert max(deltas) <= 1e-6 and deltas[0] > 0.97e-6


@pytest.mark.slow
def test_fixed_runs_of_candidates_of_different_price():
    grid, options = {"batch_size": [20, 400]}, {"method": "fixed", "expected_candidates": 5}
    search = PrivateGridSearchCV(DPSGDClassifier(max_iter=10), grid, **options)
    trained, _ = search.privacy_plan(*TABLE).event.events
    # In turn: three runs of the first candidate, two of the second.
    assert sorted(leaf_counts(trained).values()) == [20, 30]


def test_holdout_with_noisy_scores_is_one_fixed_run_of_each_candidate():
    fixed, holdout = (search_for(name, noisy_scores=True) for name in ("fixed", "holdout"))
    assert fixed.privacy_plan(*TABLE).event == holdout.privacy_plan(*TABLE).event


def test_holdout_with_a_refit_adds_it_to_both():
    search = search_for("holdout", refit=True, refit_share=0.5)
    (trained, refit), (chosen, again) = (
        part.events for part in search.privacy_plan(*TABLE).event.events
    )
    assert refit == again
    total = math.hypot(mu_of(trained), mu_of(refit))
    assert gaussian_delta(1.0, total) <= 1e-6
    assert delta_with_response(1.0, mu_of(refit), chosen.epsilon) <= 1e-6
    # About half of what is spent goes to the refit.
    assert mu_of(refit) ** 2 / total**2 == pytest.approx(0.5, abs=0.05)


@pytest.mark.parametrize("cv", [2, 5, KFold(4)])
def test_cross_validation_counts_trainings_choice_and_refit(cv):
    folds = cv if isinstance(cv, int) else cv.n_splits
    compared, refit = search_for("cv", cv=cv).privacy_plan(*TABLE).event.events
    trained, chosen = compared.events
    assert sum(leaf_counts(trained).values()) == 3 * (folds - 1)
    assert chosen.epsilon == pytest.approx(0.1)
    delta = delta_with_response(1.0, math.hypot(mu_of(trained), mu_of(refit)), chosen.epsilon)
    assert 0.97e-6 < delta <= 1e-6


def test_random_stopping_hides_training_and_score_in_one_run():
    event = search_for(expected_candidates=7, stopping_shape=1.0).privacy_plan(*TABLE).event
    assert isinstance(event, RepeatAndSelectEvent)
    assert (event.mean, event.shape) == (7.0, 1.0)
    # Not their composition: a record is trained on or scored on.
    zs = multipliers(ComposedEvent(getattr(event.event, "events", (event.event,))))
    assert np.ptp(list(zs)) < 3e-9 * max(zs)


def test_a_refit_chosen_afterwards_is_covered_whichever_it_is():
    """Profiles that cross must not be replaced by the largest of their compositions."""
    search = PrivateGridSearchCV(
        DPSGDClassifier(max_iter=50), {"batch_size": [20, 400]}, method="cv", cv=2
    )
    event = search.privacy_plan(*TABLE).event
    refit = event.events[-1]
    assert isinstance(refit, ApproxDPEvent) and refit.delta <= search.delta / 2
    alike = search_for("cv", cv=2).privacy_plan(*TABLE)
    assert isinstance(alike.event.events[-1], GaussianEvent)


@pytest.mark.slow
def test_folds_of_different_size_are_told_apart():
    """Under add-remove a record's training parts depend on its fold."""
    model = DPSGDClassifier(batch_size=20, max_iter=10)
    options = {"method": "cv", "cv": 3, "adjacency": "add-remove", "random_state": 0}
    search = PrivateGridSearchCV(model, {"alpha": [0.1]}, **options)
    folds = search.privacy_plan(101, 3).event
    # Sizes are drawn: two of three may be alike.
    assert isinstance(folds, OneOfEvent) and len(folds.events) >= 2
    trainings = [fold.events[0].events[0] for fold in folds.events]
    assert all(sum(leaf_counts(event).values()) == 20 for event in trainings)


def test_fits_of_cross_validation_are_calibrated_to_their_own_size():
    """Sensitivities follow the n of the training part, never that of the table."""
    X, y = rows(90)
    search = PrivateGridSearchCV(
        OperaLogisticRegression(), {"alpha": [0.1]}, method="cv", cv=3, random_state=0
    )
    with record_releases() as trace:
        search.fit(X, y)
    *folds, choice, refit = trace.releases
    assert choice.label == "permute_and_flip" and len(folds) == 3

    def alone(n):
        with record_releases() as trace:
            OperaLogisticRegression(alpha=0.1).fit(X[:n], y[:n])
        return trace.releases[0].sensitivity

    for fold in folds:
        assert fold.sensitivity == pytest.approx(alone(60), rel=1e-3)
        assert fold.sensitivity > 1.4 * alone(90)
    assert refit.sensitivity == pytest.approx(alone(90), rel=1e-3)


def test_charged_once_and_before_rows_are_used(tmp_path):
    X, y = rows(60)
    tally = Tally()
    search = PrivateGridSearchCV(
        NoisyCount(), {"threshold": [0.0, 0.1]}, method="cv", cv=2, accountant=tally
    ).fit(X, y)
    assert [event for event, _ in tally.charges] == [search.privacy_spent_.event]
    details = tally.charges[0][1]
    assert (details["epsilon"], details["delta"]) == tuple(search.privacy_spent_)
    before = NoisyCount.fits
    search.set_params(accountant=Tally(BudgetExceededError("no")))
    with pytest.raises(BudgetExceededError):
        search.fit(X, y)
    assert NoisyCount.fits == before


@pytest.mark.parametrize(
    ("parameters", "words"), [({"charged": 0.5}, "search has planned"), ({"charges": 2}, "twice")]
)
def test_inner_fits_cannot_spend_what_was_not_planned(parameters, words):
    X, y = rows(60)
    tally = Tally()
    search = PrivateGridSearchCV(
        NoisyCount(**parameters), {"threshold": [0.0]}, method="holdout", accountant=tally
    )
    with pytest.raises(BudgetExceededError, match=words):
        search.fit(X, y)
    assert len(tally.charges) == 1  # never refunded


def test_inner_fits_may_spend_less():
    X, y = rows(60)
    PrivateGridSearchCV(NoisyCount(charged=2.0), {"threshold": [0.0]}, method="holdout").fit(X, y)


def test_escrow_refuses_another_relation():
    escrow = Escrow(GaussianEvent(1.0), "replace-one", "step")
    with pytest.raises(BudgetExceededError, match="add-remove"):
        escrow.reserve(GaussianEvent(1.0), adjacency="add-remove")
    escrow.reserve(GaussianEvent(1.0))


def test_costs_no_more_never_trades_one_kind_for_another():
    from skdp.accounting import LaplaceEvent, PoissonSampledEvent, RepeatedEvent

    plan = RepeatedEvent(PoissonSampledEvent(0.1, GaussianEvent(2.0)), 10)
    less = RepeatedEvent(PoissonSampledEvent(0.05, GaussianEvent(2.5)), 9)
    more = RepeatedEvent(PoissonSampledEvent(0.1, GaussianEvent(2.5)), 11)
    assert costs_no_more(less, plan) and not costs_no_more(more, plan)
    assert not costs_no_more(LaplaceEvent(100.0), GaussianEvent(1.0))
    assert costs_no_more(ApproxDPEvent(0.5, 1e-7), ApproxDPEvent(1.0, 1e-6))
    assert not costs_no_more(ApproxDPEvent(0.5, 1e-5), ApproxDPEvent(1.0, 1e-6))


@pytest.mark.parametrize("cv", [StratifiedKFold(3), [([0, 1], [2])], 1, True])
def test_folds_that_may_see_the_rows_are_refused(cv):
    with pytest.raises(ValueError, match="cv"):
        search_for("cv", cv=cv).fit(*rows(60))


class Costly(NoisyCount):
    """Costs the same whatever epsilon it is given."""

    multiplier = 0.5

    def _spent(self, charged):
        own = analytic_gaussian_epsilon(self.multiplier, self.delta)
        event = GaussianEvent(self.multiplier)
        return dataclasses.replace(super()._spent(charged), event=event, epsilon=own)


def test_what_no_inner_epsilon_makes_affordable_is_refused():
    search = PrivateGridSearchCV(Costly(), {"threshold": [0.0, 1.0]}, method="holdout")
    with pytest.raises(CalibrationError, match="fewer candidates"):
        search.privacy_plan(1000, 5)


@pytest.mark.parametrize("adjacency", ["replace-one", "add-remove"])
def test_few_candidates_are_run_in_turn_and_many_at_random(adjacency):
    def plan(method, count, **options):
        grid = {"alpha": [0.1 * (k + 1) for k in range(count)]}
        given = {"method": method, "adjacency": adjacency, "random_state": 0, **options}
        search = PrivateGridSearchCV(OperaLogisticRegression(), grid, **given)
        return search.privacy_plan(*TABLE).mechanism

    assert PrivateGridSearchCV(OperaLogisticRegression(), {}).method == "auto"
    assert plan("auto", 3) == plan("fixed", 3) != plan("random-stopping", 3)
    assert plan("auto", 4) == plan("random-stopping", 4)
    more = {"expected_candidates": 5.5}
    assert plan("auto", 2, **more) == plan("random-stopping", 2, **more)
    assert plan("auto", 2, refit=True) == plan("fixed", 2, refit=True)
