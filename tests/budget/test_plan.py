"""Plans: joint cost, each event once, nothing that was not committed."""

import copy
import pickle

import pytest
from sklearn.base import clone
from support import rows

from skdp import OperaLogisticRegression
from skdp.accounting import (
    ApproxDPEvent,
    ComposedEvent,
    GaussianEvent,
    LaplaceEvent,
    PLDAccountant,
    PoissonSampledEvent,
    PureDPEvent,
    RepeatedEvent,
)
from skdp.budget import BudgetAccountant, BudgetExceededError

STEPS = RepeatedEvent(PoissonSampledEvent(0.02, GaussianEvent(2.0)), 100)


def test_joint_accounting_is_cheaper_than_the_sum():
    budget = BudgetAccountant(20.0, 1e-4, composition="basic")
    budget.plan([STEPS] * 5, delta=1e-5)
    joint = budget.spent()
    direct = PLDAccountant(adjacency="replace-one").compose(STEPS, count=5).epsilon(1e-5)
    assert joint == (pytest.approx(direct, rel=1e-6), 1e-5) and joint[0] >= direct
    for _ in range(5):
        budget.reserve(STEPS, delta=2e-6)
    assert budget.spent()[0] - joint[0] > 1.5 * joint[0]


def test_each_event_is_redeemed_once_in_any_order():
    budget = BudgetAccountant(3.0, 1e-5)
    plan = budget.plan([GaussianEvent(8.0), LaplaceEvent(4.0), GaussianEvent(8.0)], label="study")
    spent = budget.spent()
    assert plan.left() == [GaussianEvent(8.0), LaplaceEvent(4.0), GaussianEvent(8.0)]
    entry = plan.reserve(LaplaceEvent(4.0), label="first")
    assert entry.kind == "planned" and entry.plan == plan.index == 1
    assert not any(entry.cost.values())
    plan.reserve(GaussianEvent(8.0))
    assert plan.left() == [GaussianEvent(8.0)]
    with pytest.raises(BudgetExceededError, match=r"'study'.*all 1 of this kind are redeemed"):
        plan.reserve(LaplaceEvent(4.0))
    with pytest.raises(BudgetExceededError, match="none of this kind"):
        plan.reserve(GaussianEvent(8.5))
    plan.reserve(GaussianEvent(8.0))
    assert plan.left() == [] and budget.spent() == spent
    assert [entry["kind"] for entry in budget.entries()] == ["plan"] + ["planned"] * 3
    assert budget.verify().entries == 4
    assert isinstance(budget.total.released, tuple) and "first" in budget.total.released


def test_events_under_the_other_relation_are_planned_and_redeemed():
    budget = BudgetAccountant(3.0, 1e-5)
    plan = budget.plan([GaussianEvent(8.0)], adjacency="add-remove")
    assert plan.left() == [GaussianEvent(4.0)]
    plan.reserve(GaussianEvent(8.0), adjacency="add-remove")
    assert plan.left() == []


def test_plans_that_do_not_fit_are_refused_as_a_whole():
    budget = BudgetAccountant(1.0, 0.0)
    with pytest.raises(BudgetExceededError):
        budget.plan([PureDPEvent(0.3)] * 4)
    assert budget.entries() == []
    budget.plan([PureDPEvent(0.25)] * 4)
    assert budget.spent() == (1.0, 0.0)


def test_bad_plans():
    budget = BudgetAccountant(1.0, 1e-5, composition="basic")
    with pytest.raises(ValueError, match="at least one event"):
        budget.plan([])
    with pytest.raises(TypeError, match="an Event or a PrivacySpent"):
        budget.plan([0.5])
    with pytest.raises(ValueError, match="delta is required"):
        budget.plan([GaussianEvent(8.0)])
    budget.reserve(PureDPEvent(0.1))
    for index in (0, 2, 7):
        with pytest.raises(ValueError, match="index"):
            budget.redeem(index)
    with pytest.raises(ValueError, match="not a plan"):
        budget.redeem(1)


def test_deltas_are_added_up_where_all_events_name_theirs():
    budget = BudgetAccountant(2.0, 1e-5, composition="basic")
    budget.plan([ApproxDPEvent(0.25, 1e-6), PureDPEvent(0.25)])
    epsilon, delta = budget.spent()
    assert delta == pytest.approx(1e-6) and epsilon <= 0.5 * (1 + 1e-6)


def test_estimators_redeem_their_privacy_plan():
    X, y = rows()
    budget = BudgetAccountant(3.0, 1e-4)
    model = OperaLogisticRegression(epsilon=0.5, delta=1e-6)
    committed = [model.privacy_plan(*X.shape)] * 2
    plan = budget.plan(committed, label="two fits")
    for seed in range(2):
        clone(model).set_params(accountant=plan, random_state=seed).fit(X, y)
    assert plan.left() == []
    with pytest.raises(BudgetExceededError):
        clone(model).set_params(accountant=plan).fit(X, y)
    records = budget.entries()
    assert [record["kind"] for record in records] == ["plan", "planned", "planned"]
    assert records[1]["estimator"] == "OperaLogisticRegression"
    assert records[1]["epsilon"] == pytest.approx(0.5)


def test_copies_and_pickles_are_the_same_plan():
    budget = BudgetAccountant(1.0, 0.0)
    plan = budget.plan([PureDPEvent(0.25)] * 2)
    assert copy.copy(plan) is plan is copy.deepcopy(plan)
    again = pickle.loads(pickle.dumps(plan))
    again.reserve(PureDPEvent(0.25))
    assert plan.left() == again.left() == [PureDPEvent(0.25)]
    assert again.accountant.ledger == budget.ledger and "BudgetPlan(entry 1" in repr(plan)


def test_plans_are_events_of_their_own_in_the_ledger():
    budget = BudgetAccountant(2.0, 1e-5)
    plan = budget.plan([LaplaceEvent(4.0)] * 2)
    entry = budget.entries()[plan.index - 1]
    assert entry["event"] == ComposedEvent((LaplaceEvent(4.0),) * 2).to_dict()


@pytest.mark.parametrize("currency", ["mixed", "gdp", "zcdp", "rdp", "basic", "approx"])
def test_a_plan_counts_in_all_that_a_budget_says_before_it_is_redeemed(currency):
    planned, reserved = (BudgetAccountant(1.0, 1e-5, composition=currency) for _ in range(2))
    event = ApproxDPEvent(0.2, 1e-7)

    def told(budget):
        sums = [amount for pair in budget.coordinates().values() for amount in pair]
        shares = [*budget.allocate(3), *budget.allocate(3, mechanism="any")]
        return [*budget.spent(), *budget.remaining(), *budget.total, *shares, *sums]

    fresh = told(planned)
    plan = planned.plan([event])
    reserved.reserve(event)
    assert told(planned) == pytest.approx(told(reserved), rel=1e-9, abs=0.0)
    assert told(planned) != pytest.approx(fresh, rel=1e-3)
    before = told(planned)
    plan.reserve(event)
    assert told(planned) == before
