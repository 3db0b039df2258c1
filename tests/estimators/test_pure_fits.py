"""Fits with delta=0: what they spend, which budgets take them, and who has none."""

import math
import re
import warnings

import numpy as np
import pytest
from covering import pairs
from support import rows

from skdp import (
    DPSGDClassifier,
    GrpuaSVC,
    ObjectivePerturbationLogisticRegression,
    ObjectivePerturbationSVC,
    OperaLogisticRegression,
    OperaSVC,
)
from skdp.accounting import DiscreteLaplaceEvent, NormExponentialEvent, PureDPEvent
from skdp.accounting.privacy_spent import DISCRETE_NOISE, REAL_PURE_NOISE
from skdp.audit import audit_epsilon
from skdp.budget import BudgetAccountant
from skdp.exceptions import BudgetExceededError
from skdp.mechanisms import record_releases
from skdp.model_selection import PrivateGridSearchCV
from skdp.preprocessing import DPStandardScaler
from skdp.reporting import PrivacySpent, privacy_statement
from skdp.testing import check_private_estimator, replay_on_neighbour

OPERA = (OperaLogisticRegression, OperaSVC)
OBJECTIVE = (ObjectivePerturbationLogisticRegression, ObjectivePerturbationSVC)
KINDS = OPERA + OBJECTIVE
ADJACENCIES = ("replace-one", "add-remove")
NAMES = r"delta=0 is offered by ObjectivePerturbationLogistic.*OperaSVC"


@pytest.mark.parametrize(("cls", "epsilon", "n_classes"), pairs(KINDS, [1 / 3, 2.0], [2, 3]))
def test_a_fit_spends_exactly_epsilon_and_no_delta(cls, n_classes, epsilon):
    X, y = rows(60, n_classes=n_classes)
    model = cls(epsilon, 0, data_norm=1.0, classes=range(n_classes))
    planned = model.privacy_plan(*X.shape)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # no delta is too large for so few rows
        spent = model.fit(X, y).privacy_spent_
    assert planned == spent and tuple(spent) == (epsilon, 0.0)
    assert type(spent.event) is (NormExponentialEvent if cls in OPERA else PureDPEvent)
    assert PrivacySpent.from_dict(spent.to_dict()) == spent
    assert spent.epsilon_at(0.0) <= epsilon and spent.delta_at(epsilon) == 0.0
    assert spent.epsilon_at(1e-2) < epsilon
    assert spent.arithmetic == REAL_PURE_NOISE and "docs/proofs/pure.md" in spent.mechanism
    assert "norm-exponential" in str(privacy_statement(model))


@pytest.mark.parametrize("settings", [{}, {"solver": "gd", "alpha": 0.0}])
@pytest.mark.parametrize("cls", OPERA)
def test_output_perturbation_on_a_grid_has_no_delta_in_doubles_either(cls, settings):
    X, y = rows(60, n_classes=3)
    model = cls(0.1, 0.0, data_norm=1.0, classes=range(3), numerics="discrete", **settings)
    with record_releases() as trace:
        spent = model.fit(X, y).privacy_spent_
    grid = 2.0 ** int(re.search(r"2\*\*(-?\d+), rounding", spent.mechanism)[1])
    assert np.all(trace.releases[0].output % grid == 0.0)
    assert tuple(spent) == (0.1, 0.0) and isinstance(spent.event, DiscreteLaplaceEvent)
    assert spent.arithmetic == DISCRETE_NOISE
    BudgetAccountant(0.1, 0.0).reserve(spent)


@pytest.mark.parametrize("cls", KINDS)
@pytest.mark.parametrize("composition", ["auto", "mixed"])
def test_a_ledger_without_a_delta_takes_two_fits_and_no_more(cls, composition):
    X, y = rows(60)
    budget = BudgetAccountant(0.3, 0.0 if composition == "auto" else 1e-6)
    model = cls(0.1, 0.0, data_norm=1.0, classes=[0, 1], accountant=budget)
    model.fit(X, y)
    model.set_params(epsilon=0.2).fit(X, y)
    if composition == "auto":
        assert budget.spent() == (0.3, 0.0)
    with pytest.raises(BudgetExceededError):
        model.fit(X, y)


def test_a_budget_without_a_delta_names_who_needs_none():
    X, y = rows(60)
    budget = BudgetAccountant(1.0, 0.0)
    with pytest.raises(BudgetExceededError, match=NAMES):
        OperaSVC(0.5, 1e-6, data_norm=1.0, accountant=budget).fit(X, y)
    assert budget.spent() == (0.0, 0.0)


@pytest.mark.parametrize(
    "estimator",
    [
        DPSGDClassifier(delta=0.0),
        GrpuaSVC(delta=0.0),
        DPStandardScaler(delta=0),
        PrivateGridSearchCV(OperaSVC(data_norm=1.0), {"alpha": [0.1, 1.0]}, delta=0.0),
        *(cls(delta=wrong) for cls in KINDS for wrong in (False, -1e-9, 1e-300)),
    ],
)
def test_others_say_who_offers_it_before_anything_is_charged(estimator):
    budget = BudgetAccountant(10.0, 1e-3)
    with pytest.raises((ValueError, TypeError), match=NAMES):
        estimator.set_params(accountant=budget).fit(*rows(60))
    assert budget.spent() == (0.0, 0.0)


@pytest.mark.parametrize("cls", OBJECTIVE)
def test_what_a_plan_refuses_is_not_charged(cls):
    budget = BudgetAccountant(10.0, 0.0)
    for settings, match in (({"numerics": "discrete"}, "Opera"), ({"alpha": 1e-7}, "must exceed")):
        with pytest.raises(ValueError, match=match):
            cls(0.1, 0.0, data_norm=1.0, accountant=budget, **settings).fit(*rows(60))
    assert budget.spent() == (0.0, 0.0)


OFFERED = [*((cls, {}) for cls in KINDS), *((cls, {"numerics": "discrete"}) for cls in OPERA)]


@pytest.mark.parametrize(("case", "adjacency", "n_classes"), pairs(OFFERED, ADJACENCIES, [2, 3]))
def test_replay_on_neighbours(case, n_classes, adjacency):
    cls, settings = case
    X, y = rows(60, n_classes=n_classes)
    other = X.copy()
    X[0] = [1.0, 0.0, 0.0, 0.0]
    other[0] = 0.0 if adjacency == "add-remove" else -X[0]
    settings = {**settings, "classes": range(n_classes), "adjacency": adjacency}
    estimator = cls(1.0, 0.0, data_norm=1.0, fit_intercept=False, **settings)
    assert 0.0 < replay_on_neighbour(estimator, X, y, other, y).largest_ratio <= 1.0


@pytest.mark.slow
@pytest.mark.parametrize(("cls", "adjacency"), zip(KINDS, 2 * ADJACENCIES, strict=True))
def test_audits_come_close_to_the_claim_and_do_not_disprove_it(cls, adjacency):
    """With one weight and much penalty there is little that one record cannot attain."""
    X, y = np.ones((8, 1)), np.array([0, 1] * 4)
    other = X.copy()
    other[0] = 0.0 if adjacency == "add-remove" else -1.0
    settings = {"classes": [0, 1], "fit_intercept": False, "alpha": 20.0, "adjacency": adjacency}
    model = cls(2.0, 0.0, data_norm=1.0, **settings)
    model.set_params(**({"max_grad_norm": None} if cls in OBJECTIVE else {}))
    result = audit_epsilon(
        model, X, y, neighbour=(other, y), n_trials=1500, method="clopper-pearson", random_state=0
    )
    assert 0.3 < result.epsilon_lower <= 2.0 and not result.violated


@pytest.mark.parametrize("cls", [OperaSVC, ObjectivePerturbationSVC])
def test_audits_of_transcripts_are_for_gaussian_noise(cls):
    model = cls(2.0, 0.0, data_norm=1.0, classes=[0, 1])
    with pytest.raises(ValueError, match="Gaussian noise"):
        audit_epsilon(model, *rows(20), n_trials=60, release="all")


def test_more_dimensions_take_more_noise_than_gaussian_noise_does():
    def scale(d, delta):
        plan = OperaSVC(1.0, delta, alpha=0.1)._plan_shape((1000, d), 2)
        return plan.sigma * (math.sqrt(plan.model.n_weights + 1.0) if delta == 0.0 else 1.0)

    assert scale(14, 0.0) < scale(14, 1e-6) and scale(20, 0.0) > scale(20, 1e-6)


@pytest.mark.slow
@pytest.mark.parametrize(
    "estimator",
    [*(cls(delta=0.0) for cls in KINDS), *(cls(delta=0.0, numerics="discrete") for cls in OPERA)],
)
def test_what_third_parties_must_pass(estimator):
    check_private_estimator(estimator)
