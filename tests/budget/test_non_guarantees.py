"""What is no guarantee is refused wherever a guarantee is asked for."""

import pytest

from skdp.accounting import (
    AdvancedCompositionAccountant,
    BayesianAccountant,
    GaussianEvent,
    GDPAccountant,
    GenericAccountant,
    PLDAccountant,
    PoissonSampledEvent,
    PrivacyValue,
    calibrate_noise_multiplier,
    calibrate_steps,
)
from skdp.budget import BudgetAccountant
from skdp.reporting import PrivacySpent

STEP = PoissonSampledEvent(0.01, GaussianEvent(4.0))
ESTIMATES = [
    GenericAccountant(subsampling="printed"),
    AdvancedCompositionAccountant(subsampling="printed"),
    GDPAccountant(subsampling="clt"),
]


def reserve(budget, epsilon, delta=1e-5):
    budget.reserve(STEP, adjacency="add-remove", epsilon=epsilon, delta=delta, label="a fit")


def spent(epsilon, delta=1e-5, accountant="pld"):
    return PrivacySpent(epsilon, delta, "add-remove", STEP, accountant, "a test", (), (), False)


@pytest.mark.parametrize("accountant", ESTIMATES, ids=lambda a: type(a).__name__)
def test_estimates_are_not_charged(accountant):
    plan = type(accountant).from_dict(accountant.to_dict()).compose(STEP)
    budget = BudgetAccountant(100.0, 1e-2, adjacency="add-remove")
    with pytest.raises(ValueError, match=r"epsilon=.* not an upper bound.*PLDAccountant"):
        reserve(budget, plan.epsilon(1e-5))
    with pytest.raises(ValueError, match=r"delta=.* not an upper bound"):
        reserve(budget, 1.0, plan.delta(1.0))
    with pytest.raises(ValueError, match="not an upper bound"):
        spent(plan.epsilon(1e-5))
    assert budget.entries() == []


def test_diagnostics_are_not_charged():
    plan = BayesianAccountant().observe(STEP, [0.1, 0.2, 0.3])
    budget = BudgetAccountant(100.0, 1e-2, adjacency="add-remove")
    with pytest.raises(ValueError, match=r"not about differential privacy.*on the given data"):
        reserve(budget, plan.epsilon(1e-5))
    with pytest.raises(ValueError, match="not about differential privacy"):
        spent(plan.epsilon(1e-5))
    with pytest.raises(ValueError, match="accountant='bayesian' does not return guarantees"):
        spent(1.0, accountant="bayesian")
    assert budget.entries() == []


def test_guarantees_and_plain_numbers_are_charged():
    budget = BudgetAccountant(100.0, 1e-2, adjacency="add-remove")
    plan = PLDAccountant().compose(STEP)
    reserve(budget, plan.epsilon(1e-5))
    reserve(budget, 0.5)
    reserve(budget, PrivacyValue(0.5))
    assert len(budget.entries()) == 3
    assert tuple(spent(plan.epsilon(1e-5))) == (plan.epsilon(1e-5), 1e-5)


class PrintedByDefault(GenericAccountant):
    name = "printed-by-default"

    def __init__(self, adjacency="add-remove"):
        super().__init__(adjacency, subsampling="printed")


@pytest.mark.parametrize(
    ("accountant", "message"),
    [("bayesian", "not differential"), (PrintedByDefault, "not return upper bounds")],
)
def test_nothing_is_calibrated_to_them(accountant, message):
    with pytest.raises(ValueError, match=message):
        calibrate_noise_multiplier(1.0, 1e-5, 0.01, 100, accountant=accountant)
    with pytest.raises(ValueError, match=message):
        calibrate_steps(1.0, 1e-5, 4.0, 0.01, accountant=accountant)
