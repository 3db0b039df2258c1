"""The budget: exact sums, refusals before anything is charged, one budget for all copies."""

import copy
import math
import pickle
import threading
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

from skdp import OperaLogisticRegression
from skdp.accounting import (
    ApproxDPEvent,
    ComposedEvent,
    GaussianEvent,
    LaplaceEvent,
    ObjectivePerturbationEvent,
    PLDAccountant,
    PoissonSampledEvent,
    PureDPEvent,
)
from skdp.budget import BudgetAccountant, BudgetEntry, BudgetExceededError, LedgerError
from skdp.mechanisms import analytic_gaussian_epsilon
from skdp.reporting import PrivacySpent


def basic(epsilon=1.0, delta=1e-5, **options):
    return BudgetAccountant(epsilon, delta, composition="basic", **options)


def charge(budget, epsilon=0.1, delta=1e-6, **options):
    return budget.reserve(ApproxDPEvent(epsilon, delta), label="test", **options)


def test_ten_tenths_fit_exactly_and_no_more():
    budget = basic()
    for _ in range(10):
        charge(budget)
    assert budget.spent() == (1.0, 1e-5)
    for tiny in (1e-9, 5e-324):
        with pytest.raises(BudgetExceededError, match="Nothing was charged"):
            budget.reserve(PureDPEvent(tiny))
    assert len(budget.entries()) == 10
    assert budget.remaining() == (0.0, 0.0)


def test_a_refusal_says_what_was_asked_what_is_left_and_what_fits():
    budget = basic()
    charge(budget, 0.25, 1e-6)
    with pytest.raises(BudgetExceededError) as caught:
        charge(budget, 2.0, 0.0)
    error = caught.value
    assert error.requested == (2.0, 0.0)
    assert error.remaining == (0.75, 9e-6) and error.fits == (0.75, 0.0)
    assert vars(pickle.loads(pickle.dumps(error))) == vars(error)  # it comes back from workers
    assert str(error) == (
        "test requests (epsilon=2, delta=0), which exceeds the remaining budget: it needs 2 of "
        "epsilon (0.75 left). Spent: (epsilon=0.25, delta=1e-06) of (epsilon=1, delta=1e-05), "
        "composition 'basic'. The largest release that still fits is (epsilon=0.75, delta=0). "
        "Nothing was charged and no row was read."
    )
    budget.reserve(ApproxDPEvent(*error.fits))
    with pytest.raises(BudgetExceededError, match="No release of this kind fits") as caught:
        charge(budget)
    assert caught.value.fits is None and caught.value.remaining == (0.0, 0.0)


def test_check_raises_what_reserve_would_and_charges_nothing():
    budget = basic()
    budget.check(PureDPEvent(1.0))
    with pytest.raises(BudgetExceededError):
        budget.check(PureDPEvent(1.5))
    with pytest.raises(ValueError, match="delta="):
        budget.check(GaussianEvent(3.0))
    assert budget.entries() == [] and budget.spent() == (0.0, 0.0)


def test_epsilon_is_computed_from_the_event_where_delta_is_given():
    budget = basic(10.0, 1e-4)
    entry = budget.reserve(GaussianEvent(2.0), delta=1e-5)
    exact = analytic_gaussian_epsilon(2.0, 1e-5)
    assert exact <= entry.epsilon <= exact * (1 + 1e-6)
    assert budget.reserve(LaplaceEvent(4.0), delta=0.0).epsilon == pytest.approx(0.25)
    with pytest.raises(ValueError, match="adds up epsilon and delta, and GaussianEvent"):
        budget.reserve(GaussianEvent(2.0))
    with pytest.raises(ValueError, match="without delta"):
        budget.reserve(GaussianEvent(2.0), epsilon=1.0)


def test_other_relations_are_converted_where_that_is_sound():
    budget = BudgetAccountant(3.0, 1e-5)
    entry = budget.reserve(GaussianEvent(8.0), adjacency="add-remove")
    assert float(entry.cost["mu squared"]) == pytest.approx(1 / 16)
    assert entry.adjacency == "add-remove" and entry.event == GaussianEvent(8.0)
    plain = basic(10.0, 1e-4)
    entry = plain.reserve(ApproxDPEvent(0.5, 1e-6), adjacency="add-remove")
    assert float(entry.cost["epsilon"]) == pytest.approx(1.0)
    assert float(entry.cost["delta"]) == pytest.approx((1 + math.exp(0.5)) * 1e-6)
    unbounded = BudgetAccountant(3.0, 1e-5, adjacency="add-remove")
    with pytest.raises(ValueError, match="add-remove"):
        unbounded.reserve(GaussianEvent(8.0), adjacency="replace-one")
    with pytest.raises(ValueError, match="adjacency must be"):
        unbounded.reserve(GaussianEvent(8.0), adjacency="zero-out")


def test_privacy_plans_bring_their_numbers():
    plan = PrivacySpent(
        0.5, 1e-6, "replace-one", GaussianEvent(9.0), "pld", "a test", (), (), seeded=True
    )
    entry = basic().reserve(plan, label="planned")
    assert (entry.epsilon, entry.delta, entry.seeded) == (0.5, 1e-6, True)


@pytest.mark.parametrize("composition", ["mixed", "gdp", "zcdp", "rdp", "basic", "approx"])
def test_privacy_plans_bring_their_relation(composition):
    """Under the budget's own relation the same numbers would cost half."""
    plan = PrivacySpent(
        0.2, 1e-7, "add-remove", ApproxDPEvent(0.2, 1e-7), "pld", "a test", (), (), False
    )
    by_record, by_plan, by_hand = (
        BudgetAccountant(3.0, 1e-5, composition=composition) for _ in "abc"
    )
    entry = by_record.reserve(plan)
    assert entry.adjacency == "add-remove"
    by_plan.plan([plan])
    by_hand.reserve(plan.event, epsilon=0.2, delta=1e-7, adjacency="add-remove")
    assert by_record.spent() == by_hand.spent()
    assert by_plan.spent() == pytest.approx(by_hand.spent(), rel=1e-9)
    alone = BudgetAccountant(3.0, 1e-5, composition=composition)
    alone.reserve(plan.event)
    assert by_record.coordinates() != alone.coordinates() and by_record.spent() > alone.spent()


def test_entries_are_complete_and_ready_for_pandas():
    budget = basic()
    model = OperaLogisticRegression(epsilon=0.5, random_state=7, alpha=0.1)
    entry = budget.reserve(ApproxDPEvent(0.5, 1e-6), estimator=model, label="a fit", seeded=True)
    assert isinstance(entry, BudgetEntry) and entry.estimator == "OperaLogisticRegression"
    assert entry.parameters["alpha"] == 0.1
    assert not {"random_state", "accountant", "verbose"} & entry.parameters.keys()
    table = pd.DataFrame(budget.entries())
    assert table.loc[0, "label"] == "a fit" and bool(table.loc[0, "seeded"])
    assert table.loc[0, "cost"] == {"epsilon": 0.5, "delta": 1e-6}
    assert budget.entries() == [entry.to_dict()]
    assert pd.Timestamp(entry.time).tzinfo is not None


def test_the_total_is_a_record_that_holds_under_adaptive_choices():
    budget = BudgetAccountant(3.0, 1e-5, name="study", composition="gdp")
    assert tuple(budget.total) == (0.0, 0.0) and budget.total.event == ComposedEvent(())
    budget.reserve(GaussianEvent(4.0))
    budget.reserve(GaussianEvent(3.0), seeded=True)
    total = budget.total
    assert tuple(total) == budget.spent() and total.seeded
    mu = math.sqrt(1 / 16 + 1 / 9)
    for delta in (1e-5, 1e-7, 1e-3):
        exact = analytic_gaussian_epsilon(1 / mu, delta)
        assert exact <= total.epsilon_at(delta) <= exact * (1 + 1e-6)
    budget.reserve(PoissonSampledEvent(0.05, GaussianEvent(3.0)), label="sampled")
    total = budget.total
    square, slack = (float(x) for x in budget.desk.file.state().spent)
    from skdp.accounting.numerics import gaussian_profile

    for epsilon in (0.0, 0.5, 1.0, 2.0, 4.0):
        filtered = slack + gaussian_profile.delta(math.sqrt(square), epsilon)
        assert filtered * (1 - 1e-9) <= total.delta_at(epsilon)
        if epsilon < total.epsilon:
            assert total.delta_at(epsilon) <= filtered * 1.2


@pytest.mark.parametrize("composition", ["basic", "approx", "zcdp", "rdp", "gdp", "mixed"])
def test_totals_never_compose_naturally(composition):
    """The total is what the filter grants, and not the composition of what happened to be run."""
    whole, event = BudgetAccountant(1.0, 1e-5, composition=composition), ApproxDPEvent(1.0, 1e-5)
    whole.reserve(event)  # which takes everything, and has its pair
    assert tuple(whole.total) == whole.spent() == (1.0, 1e-5)
    truth = PLDAccountant(adjacency="replace-one").compose(event)
    for epsilon in (0.0, 0.25, 0.5, 1.0):
        assert whole.total.delta_at(epsilon) >= truth.delta(epsilon).lower
    budget = BudgetAccountant(5.0, 1e-5, composition=composition)
    for _ in range(3):
        budget.reserve(ApproxDPEvent(0.1, 1e-8))
    total = budget.total
    assert tuple(total) == budget.spent()
    assert total.epsilon_at(total.delta) <= total.epsilon
    composed = PLDAccountant(adjacency="replace-one").compose(total.event)
    assert composed.epsilon(total.delta) <= total.epsilon * (1 + 1e-4)
    assert "3 entries" in total.mechanism and composition in total.mechanism
    assert ApproxDPEvent(0.1, 1e-8) != total.event


def test_copies_are_the_same_budget():
    budget = basic()
    for other in (copy.copy(budget), copy.deepcopy(budget)):
        assert other is budget
    estimator = OperaLogisticRegression(accountant=budget)
    assert clone(estimator).accountant is budget


def test_threads_never_overspend():
    budget = basic(1.0, 1e-3)
    refused = []

    def spend():
        for _ in range(20):
            try:
                charge(budget, epsilon=0.01)
            except BudgetExceededError:
                refused.append(1)

    threads = [threading.Thread(target=spend) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(budget.entries()) == 100 and len(refused) == 60
    assert budget.verify().entries == 100


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"epsilon": 0.0, "delta": 1e-6}, "epsilon"),
        ({"epsilon": float("nan"), "delta": 1e-6}, "epsilon"),
        ({"epsilon": True, "delta": 1e-6}, "epsilon"),
        ({"epsilon": 1.0, "delta": 1.0}, "delta"),
        ({"epsilon": 1.0, "delta": 0.0, "composition": "gdp"}, "delta"),
        ({"epsilon": 1.0, "delta": 0.0, "composition": "any"}, "composition"),
        ({"epsilon": 1.0, "delta": 0.0, "adjacency": "any"}, "adjacency"),
        ({"epsilon": 1.0, "delta": 0.0, "name": 3}, "name"),
        ({"epsilon": 1.0, "delta": 0.0, "ledger": ":memory:"}, "ledger"),
        ({"epsilon": 1.0, "delta": 0.0, "ledger": ""}, "ledger"),
    ],
)
def test_bad_budgets(arguments, message):
    with pytest.raises(ValueError, match=message):
        BudgetAccountant(**arguments)


def test_budgets_and_plans_say_what_is_spent_and_left():
    budget = basic(name="study")
    charge(budget)
    assert "spent epsilon=0.1" in repr(budget) and "1 charges" in repr(budget)
    assert "name='study'" in repr(budget)
    assert "<caption>Privacy budget</caption>" in budget._repr_html_()
    assert str(budget.ledger) in budget._repr_html_()
    budget.ledger.unlink()
    assert "LedgerMissingError" in repr(budget) and "LedgerMissing" in budget._repr_html_()
    budget = basic(name="study")
    plan = budget.plan([PureDPEvent(0.125)] * 2, label="<two> counts")
    plan.reserve(PureDPEvent(0.125))
    assert "'<two> counts', 1 of 2 events left" in repr(plan)
    assert "&lt;two&gt; counts" in plan._repr_html_() and "2 planned, 1 left" in plan._repr_html_()
    budget.ledger.unlink()
    assert "LedgerMissingError" in repr(plan) and "LedgerMissing" in plan._repr_html_()


def test_plans_of_before_a_parameter_of_events_are_redeemed(monkeypatch):
    def of_before(event):
        return {k: v for k, v in event.to_dict().items() if k != "opposite"}

    budget, event = BudgetAccountant(3.0, 1e-3), ObjectivePerturbationEvent(20.0, 0.05, "any-sign")
    with monkeypatch.context() as then:
        then.setattr("skdp.budget.accountant.write_event", of_before)
        plan = budget.plan([event, PureDPEvent(0.125)])
    with pytest.raises(BudgetExceededError, match="none of this kind"):
        plan.reserve(replace(event, opposite=0.5))
    plan.reserve(event)
    assert plan.left() == [PureDPEvent(0.125)]


def test_budgets_without_limit_are_marked():
    mark = "nothing is guaranteed"
    endless, limited = BudgetAccountant(math.inf, 1e-6), BudgetAccountant(1.0, 1e-6)
    for shown in (repr, BudgetAccountant._repr_html_, lambda budget: budget.total.mechanism):
        assert mark in shown(endless) and mark not in shown(limited)


@pytest.mark.parametrize("wrong", [{"epsilon": -1.0}, {"delta": -1e-9}, {"epsilon": math.nan}])
def test_charges_are_never_refunds(wrong):
    budget = basic()
    numbers = {"epsilon": 0.1, "delta": 1e-6, **wrong}
    with pytest.raises(ValueError, match="finite epsilon >= 0"):
        budget.reserve(GaussianEvent(1.0), **numbers)
    with pytest.raises(ValueError, match="finite epsilon >= 0"):
        budget.reserve(GaussianEvent(1.0), epsilon=np.inf, delta=0.0)
    with pytest.raises(TypeError, match="event must be"):
        budget.reserve(0.1)
    assert budget.spent() == (0.0, 0.0)


def test_totals_cannot_be_raised():
    budget = basic()
    for name in ("epsilon", "delta", "adjacency", "composition", "name", "ledger"):
        with pytest.raises(AttributeError):
            setattr(budget, name, 1e-3)


def test_the_temporary_ledger_goes_with_its_last_reference():
    budget = basic()
    other, path = copy.copy(budget), budget.ledger
    del budget
    assert path.exists()
    charge(other)
    del other
    assert not path.exists()
    assert list(path.parent.glob(f"{path.name}*")) == []


def test_folders_that_are_not_there_are_named(tmp_path):
    with pytest.raises(LedgerError, match=r"folder .*nowhere"):
        basic(ledger=tmp_path / "nowhere" / "ledger.sqlite")


@pytest.mark.parametrize("composition", ["gdp", "zcdp", "rdp", "basic", "approx"])
def test_a_pair_that_a_release_does_not_have_is_not_recorded(composition):
    budget = BudgetAccountant(3.0, 1e-5, composition=composition)
    for act in (budget.reserve, budget.check):
        with pytest.raises(ValueError, match=r"State a pair|an accountant returns"):
            act(GaussianEvent(50.0), epsilon=1e-4, delta=1e-9)
    assert budget.entries() == []
    budget.reserve(GaussianEvent(50.0), epsilon=0.12, delta=1e-9)
    assert budget.entries()[0]["epsilon"] == 0.12


def test_what_is_spent_is_never_said_to_be_less():
    budget = BudgetAccountant(1.0, 0.5, composition="basic")
    budget.reserve(ApproxDPEvent(0.1, 0.1))
    budget.reserve(ApproxDPEvent(1e-20, 1e-20))
    assert min(budget.spent()) > 0.1
