"""What a budget tells beforehand comes true, and telling it charges nothing."""

import numpy as np
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import BaggingClassifier
from sklearn.model_selection import (
    GridSearchCV,
    KFold,
    LeaveOneGroupOut,
    RandomizedSearchCV,
    cross_val_score,
)
from sklearn.pipeline import make_pipeline
from support import rows

from skdp import ObjectivePerturbationLogisticRegression, OperaLogisticRegression
from skdp.accounting import GaussianEvent, LaplaceEvent, PLDAccountant, PureDPEvent
from skdp.budget import BudgetAccountant, BudgetExceededError, plan_fits
from skdp.preprocessing import BoundedScaler, DPStandardScaler
from skdp.reporting import PrivacySpent

X, Y = rows(60)
SHAPE = {"n_samples": 60, "n_features": 4}
COMPOSITIONS = ["mixed", "basic", "gdp", "zcdp", "rdp", "approx"]


def opera(**parameters):
    return OperaLogisticRegression(**{"epsilon": 0.5, "delta": 1e-7, "data_norm": 1.0} | parameters)


def pipeline(**parameters):
    return make_pipeline(
        DPStandardScaler(epsilon=0.1, delta=1e-7, lower=-1.0, upper=1.0),
        BoundedScaler(-3, 3),
        opera(**parameters),
    )


def grid(estimator, **parameters):
    prefix = "" if hasattr(estimator, "alpha") else "operalogisticregression__"
    return GridSearchCV(estimator, {f"{prefix}alpha": [0.1, 1.0]}, **{"cv": 2} | parameters)


def charged(budget):
    return [(entry["event"], entry["epsilon"], entry["delta"]) for entry in budget.entries()]


def planned(charges):
    return [(each.event.to_dict(), each.epsilon, each.delta) for each in charges]


LARGE = grid(ObjectivePerturbationLogisticRegression(0.5, delta=1e-7, data_norm=1.0), cv=KFold(7))
RANDOM = {"param_distributions": {"epsilon": [0.1, 0.2, 0.3]}, "n_iter": 2, "random_state": 1}


@pytest.mark.parametrize(
    "estimator",
    [
        opera(),
        grid(pipeline(), cv=KFold(3)),
        grid(opera(), refit=False),
        pytest.param(LARGE, marks=pytest.mark.slow),  # splits of two sizes, which matter
        pytest.param(RandomizedSearchCV(opera(), cv=2, **RANDOM), marks=pytest.mark.slow),
    ],
    ids=["fit", "search", "no refit", "two sizes", "random search"],
)
def test_fits_charge_what_was_planned(estimator):
    budget = BudgetAccountant(100.0, 1e-3, composition="basic")
    with budget:
        estimator.fit(X, Y)
    plan = planned(plan_fits(estimator, **SHAPE))
    refitted = getattr(estimator, "refit", False)  # which candidate that is, is open
    assert charged(budget)[: len(plan) - refitted] == plan[: len(plan) - refitted]
    assert len(charged(budget)) == len(plan)


def test_the_price_of_a_refit_is_that_of_the_dearest_candidate():
    search = GridSearchCV(opera(), {"epsilon": [0.5, 0.1]}, cv=2)
    epsilons = [each.epsilon for each in plan_fits(search, **SHAPE)]
    assert epsilons == pytest.approx([0.5, 0.5, 0.1, 0.1, 0.5])
    alike = grid(opera()).set_params(param_grid={"delta": [1e-8, 1e-7]})
    assert plan_fits(alike, **SHAPE)[-1].delta == 1e-7


@pytest.mark.parametrize(
    ("estimator", "shape", "message"),
    [
        (BoundedScaler(-1, 1), {}, "nothing is charged"),
        (BaggingClassifier(opera()), {}, "The number of times that BaggingClassifier"),
        (RandomizedSearchCV(opera(), {"alpha": [1.0, 2.0]}), {}, "random_state"),
        (grid(opera(), cv=iter([])), {}, "iterator"),
        (grid(opera(), cv=61), {}, "splits"),
        (grid(opera()), {"groups": True}, "ids"),
    ],
)
def test_what_is_not_known_beforehand_is_refused(estimator, shape, message):
    with pytest.raises(ValueError, match=message):
        plan_fits(estimator, **SHAPE, **shape)


def test_fitted_parts_are_not_counted_twice():
    scaler = DPStandardScaler(epsilon=0.1, delta=1e-7, lower=-1.0, upper=1.0)
    columns = ColumnTransformer([("scale", scaler, [0, 1])], sparse_threshold=0)
    assert len(plan_fits(columns.fit(X), **SHAPE)) == 1


def test_planning_leaves_random_states_alone():
    state = np.random.RandomState(0)
    search = RandomizedSearchCV(opera(), {"alpha": [1.0, 2.0]}, n_iter=1, random_state=state)
    before = state.get_state()[2]
    plan_fits(search, **SHAPE)
    assert state.get_state()[2] == before


def gaussian(multiplier):
    """Return a release with the pair that some currencies count."""
    epsilon = PLDAccountant().compose(GaussianEvent(multiplier)).epsilon(1e-7)
    event, adjacency = GaussianEvent(multiplier), "replace-one"
    return PrivacySpent(epsilon, 1e-7, adjacency, event, "pld", "noise", (), (), False)


@pytest.mark.parametrize(
    ("composition", "release"),
    [
        ("basic", [gaussian(20.0)]),
        *(pytest.param(name, [gaussian(20.0)], marks=pytest.mark.slow) for name in COMPOSITIONS),
        ("mixed", [gaussian(20.0), PureDPEvent(0.01), LaplaceEvent(9.0)]),
    ],
)
def test_as_many_fits_as_foretold_are_granted_and_no_more(composition, release):
    budget = BudgetAccountant(1.0, 1e-5, composition=composition)
    budget.reserve(PureDPEvent(0.01))
    count = budget.fits(release)
    assert 1 <= count < 1000 and budget.fits(release, at_most=1) == 1
    foretold = budget.check(release, fits=count)
    with pytest.raises(BudgetExceededError, match="charges, and"):
        budget.check(release, fits=count + 1)
    assert len(budget.entries()) == 1
    for _ in range(count):
        for event in release:
            budget.reserve(event)
    assert budget.remaining() == foretold and budget.fits(release) == 0


@pytest.mark.parametrize(
    "composition",
    [
        name if name == "mixed" else pytest.param(name, marks=pytest.mark.slow)
        for name in COMPOSITIONS
    ],
)
def test_epsilons_for_an_estimator_are_granted_and_nearly_the_largest(composition):
    budget = BudgetAccountant(2.0, 1e-5, composition=composition)
    budget.reserve(PureDPEvent(0.05))
    for estimator in (opera(), pipeline()):
        epsilon, delta = budget.allocate(3, estimator, **SHAPE)
        assert delta == 1e-7
        assert budget.fits(estimator, epsilon=epsilon, **SHAPE) >= 3
        assert budget.fits(estimator, epsilon=1.01 * epsilon, **SHAPE) < 3
    assert len(budget.entries()) == 1


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda b: b.check(PureDPEvent(0.1), n_samples=3), TypeError),
        (lambda b: b.allocate(2, n_samples=3), TypeError),
        (lambda b: b.check([]), ValueError),
        (lambda b: b.check(PureDPEvent(0.1), fits=0), ValueError),
        (lambda b: b.fits(PureDPEvent(0.1), at_most=0), ValueError),
        (lambda b: b.allocate(0, opera(), **SHAPE), ValueError),
        (
            lambda b: b.fits(
                grid(opera(), cv=2).set_params(param_grid={"epsilon": [1]}), epsilon=2
            ),
            ValueError,
        ),
        (lambda b: b.allocate(1, opera(delta=1e-3), **SHAPE), BudgetExceededError),
    ],
)
def test_bad_questions(call, error):
    with pytest.raises(error):
        call(BudgetAccountant(1.0, 1e-5, composition="basic"))


@pytest.mark.parametrize("n_jobs", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_a_search_that_a_budget_ends_is_named(n_jobs):
    pytest.importorskip("sklearn.callback")
    budget = BudgetAccountant(1.3, 1e-4, composition="basic")
    model = opera(accountant=budget)
    with (
        pytest.warns(UserWarning),
        pytest.raises(BudgetExceededError, match="2 of its other fits are") as caught,
    ):
        grid(model, n_jobs=n_jobs).fit(X, Y)  # its failed fits count as NaN; the refit raises
    assert caught.value.search == ("GridSearchCV", 2)
    with pytest.raises(BudgetExceededError, match="0 of its other"):  # another search
        grid(model, error_score="raise").fit(X, Y)
    runs = {entry["parameters"]["search"]["run"] for entry in budget.entries()}
    assert len(budget.entries()) == 2 and len(runs) == 1
    with pytest.raises(BudgetExceededError) as caught:
        model.fit(X, Y)
    assert caught.value.search is None


def test_no_number_of_splits_is_named_ahead_of_them_and_parts_of_fits_are_no_fits():
    pytest.importorskip("sklearn.callback")
    budget = BudgetAccountant(0.75, 1e-4, composition="basic")
    search = GridSearchCV(pipeline(), {}, cv=LeaveOneGroupOut(), error_score="raise")
    with budget, pytest.raises(BudgetExceededError, match="1 of its other fits and part") as got:
        search.fit(X, Y, groups=np.arange(len(X)) % 7)
    assert "7" not in str(got.value).split("This was a fit")[1]
    assert all(
        set(entry["parameters"]["search"]) == {"class", "run", "fit"} for entry in budget.entries()
    )


def test_a_search_that_is_planned_cannot_be_ended():
    budget = BudgetAccountant(3.0, 1e-5)
    search = grid(pipeline(), error_score="raise")
    plan = budget.plan(plan_fits(search, **SHAPE), label="search")
    assert plan.accountant.spent()[0] < 5 * 0.6
    with plan:
        search.fit(X, Y)
        with pytest.raises(BudgetExceededError, match="redeemed"):
            cross_val_score(opera(), X, Y, cv=2, error_score="raise")
    assert plan.left() == []
