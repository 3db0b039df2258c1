"""The budget: exact sums, refusals before anything is charged, one budget for all copies."""

import copy
import os
import pickle
import threading

import numpy as np
import pytest
from sklearn.base import clone
from support import rows

from skdp import OperaLogisticRegression
from skdp.accounting import ApproxDPEvent, GaussianEvent, PoissonSampledEvent, RepeatedEvent
from skdp.budget import BudgetAccountant, BudgetExceededError
from skdp.exceptions import UnsupportedEventError
from skdp.mechanisms import analytic_gaussian_epsilon


def charge(budget, epsilon=0.1, delta=1e-6, event=None, adjacency="replace-one"):
    budget.reserve(
        event or ApproxDPEvent(abs(epsilon), abs(delta)),
        adjacency=adjacency,
        epsilon=epsilon,
        delta=delta,
        label="test",
    )


def test_ten_tenths_fit_exactly_and_no_more():
    budget = BudgetAccountant(1.0, 1e-5)
    for _ in range(10):
        charge(budget)
    assert budget.spent() == (1.0, pytest.approx(1e-5))
    with pytest.raises(BudgetExceededError, match="nothing was charged"):
        charge(budget, epsilon=1e-9, delta=0.0)
    assert len(budget.entries()) == 10
    assert budget.remaining() == (0.0, pytest.approx(0.0, abs=1e-20))


def test_delta_counts_as_well():
    budget = BudgetAccountant(10.0, 1.5e-6)
    charge(budget)
    with pytest.raises(BudgetExceededError):
        charge(budget)


def test_gdp_composition_adds_squares():
    budget = BudgetAccountant(2.0, 1e-6, composition="gdp")
    for count in range(1, 5):
        charge(budget, event=GaussianEvent(10.0))
        exact = analytic_gaussian_epsilon(10.0 / np.sqrt(count), 1e-6)
        assert budget.spent()[0] == pytest.approx(exact, rel=1e-9)
    assert budget.remaining()[1] == 1e-6
    with pytest.raises(BudgetExceededError):
        charge(budget, event=GaussianEvent(1.0))
    sampled = RepeatedEvent(PoissonSampledEvent(0.1, GaussianEvent(5.0)), 3)
    with pytest.raises(UnsupportedEventError):
        charge(budget, event=sampled)
    assert len(budget.entries()) == 4


def test_copies_are_the_same_budget():
    budget = BudgetAccountant(1.0, 1e-5)
    for other in (copy.copy(budget), copy.deepcopy(budget)):
        assert other is budget
    estimator = OperaLogisticRegression(accountant=budget)
    assert clone(estimator).accountant is budget


def test_other_processes_cannot_charge_a_stray_copy():
    budget = BudgetAccountant(1.0, 1e-5)
    charge(budget)
    stray = pickle.loads(pickle.dumps(budget))
    assert stray.spent() == budget.spent()
    with pytest.raises(BudgetExceededError, match="copy from another process"):
        charge(stray)


def test_fitted_models_with_a_budget_can_be_stored():
    X, y = rows()
    model = OperaLogisticRegression(accountant=BudgetAccountant(1.0, 1e-5)).fit(X, y)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict(X), model.predict(X))


def test_threads_never_overspend():
    budget = BudgetAccountant(1.0, 1e-3)
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


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"epsilon": 0.0, "delta": 1e-6}, "epsilon"),
        ({"epsilon": 1.0, "delta": 1.0}, "delta"),
        ({"epsilon": 1.0, "delta": 0.0, "composition": "gdp"}, "delta > 0"),
        ({"epsilon": 1.0, "delta": 0.0, "composition": "rdp"}, "composition"),
        ({"epsilon": 1.0, "delta": 0.0, "adjacency": "any"}, "adjacency"),
    ],
)
def test_bad_budgets(arguments, message):
    with pytest.raises(ValueError, match=message):
        BudgetAccountant(**arguments)


def test_repr_says_what_is_spent():
    budget = BudgetAccountant(1.0, 1e-5)
    charge(budget)
    assert "spent epsilon=0.1" in repr(budget) and "1 charges" in repr(budget)


@pytest.mark.parametrize("wrong", [{"epsilon": -1.0}, {"delta": -1e-9}])
def test_charges_are_never_refunds(wrong):
    budget = BudgetAccountant(1.0, 1e-5)
    with pytest.raises(ValueError, match="never refunded"):
        charge(budget, **wrong)
    with pytest.raises(ValueError, match="never refunded"):
        charge(budget, epsilon=np.inf, event=GaussianEvent(1.0))
    assert budget.spent() == (0.0, 0.0)


def test_totals_cannot_be_raised():
    budget = BudgetAccountant(1.0, 1e-5)
    for name in ("epsilon", "delta", "adjacency", "composition"):
        with pytest.raises(AttributeError):
            setattr(budget, name, 1e-3)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs os.fork")
def test_forked_processes_cannot_charge():
    budget = BudgetAccountant(1.0, 1e-5)
    child = os.fork()
    if child == 0:
        try:
            charge(budget)
        except BudgetExceededError:
            os._exit(0)
        os._exit(1)
    assert os.waitpid(child, 0)[1] == 0
