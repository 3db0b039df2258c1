"""Plans are priced as reservations are: by events, never by what is said of them."""

from functools import cache

import pytest

from skdp.accounting import (
    ApproxDPEvent,
    ComposedEvent,
    DiscreteLaplaceEvent,
    GaussianEvent,
    HiddenStateAccountant,
    LaplaceEvent,
    LastIterateEvent,
    OneOfEvent,
    PoissonSampledEvent,
    PureDPEvent,
    RepeatAndSelectEvent,
    RepeatedEvent,
    UniformSampledEvent,
)
from skdp.budget import BudgetAccountant, BudgetExceededError
from skdp.exceptions import UnsupportedEventError
from skdp.mechanisms import analytic_gaussian_sigma
from skdp.reporting import PrivacySpent

PAIRS = ("basic", "approx")
CURRENCIES = (*PAIRS, "mixed", "gdp", "zcdp", "rdp")
RELATIONS = ("add-remove", "replace-one")
RUN = LastIterateEvent(
    PoissonSampledEvent(0.05, GaussianEvent(4.0)),
    40,
    smoothness=0.2,
    strong_convexity=0.01,
    dataset_size=2000,
)
EVENTS = (
    GaussianEvent(6.0),
    LaplaceEvent(8.0),
    PureDPEvent(0.1),
    ApproxDPEvent(0.1, 1e-8),
    DiscreteLaplaceEvent(8.0, 1),
    RepeatedEvent(PoissonSampledEvent(0.02, GaussianEvent(4.0)), 20),
    PoissonSampledEvent(0.02, LaplaceEvent(4.0)),
    UniformSampledEvent(10, 1000, GaussianEvent(4.0)),
    LastIterateEvent(GaussianEvent(10.0), 40, smoothness=0.2, strong_convexity=0.01),
    RUN,
    OneOfEvent((GaussianEvent(8.0), PureDPEvent(0.1))),
    RepeatAndSelectEvent(PureDPEvent(0.05), 4.0, 1.0),
    ComposedEvent((GaussianEvent(8.0), RUN, PureDPEvent(0.05))),
)


def record(event, adjacency, epsilon, delta=1e-6):
    return PrivacySpent(epsilon, delta, adjacency, event, "hidden-state", "a test", (), (), False)


@cache
def known(event, adjacency, delta=1e-6):
    accountant = HiddenStateAccountant(adjacency)
    if not accountant.supports(event):
        return 0.5
    return float(accountant.compose(event).epsilon(delta))


def outcome(charge, item, terms):
    """Return the amounts that are charged, or the error."""
    budget = BudgetAccountant(8.0, 1e-4, **terms)
    try:
        getattr(budget, charge)([item] if charge == "plan" else item)
    except (TypeError, ValueError, BudgetExceededError) as error:
        return error
    return budget.entries()[0]["cost"].values()


@pytest.mark.daily(1)
@pytest.mark.parametrize(
    ("currency", "given", "wanted"),
    [
        pytest.param(currency, *relations, marks=[] if (i + j) % 3 == 0 else pytest.mark.slow)
        for i, currency in enumerate(CURRENCIES)
        for j, relations in enumerate([*((r, r) for r in RELATIONS), RELATIONS])
    ],
)
def test_a_plan_of_one_event_is_a_reservation(currency, given, wanted):
    terms = {"composition": currency, "adjacency": wanted}
    for event in EVENTS:
        honest = known(event, given)
        for stated in (honest, 1e-3 * honest) if currency in PAIRS else (1e-3 * honest,):
            try:
                item = record(event, given, stated)
            except ValueError:  # the event disproves it, and there is no such record
                assert stated < honest
                continue
            reserved, planned = (outcome(charge, item, terms) for charge in ("reserve", "plan"))
            if isinstance(reserved, Exception):
                assert type(planned) is type(reserved)
                if not isinstance(reserved, BudgetExceededError):
                    assert str(planned) == str(reserved)
            else:
                for more, cost in zip(reserved, planned, strict=True):
                    assert cost <= more * (1.0 + 1e-9)


def test_what_is_said_of_an_event_without_a_loss_distribution_must_be_proved():
    truth = HiddenStateAccountant("replace-one").compose(RUN).epsilon(1e-6)
    for currency in ("basic", "approx"):
        budget = BudgetAccountant(8.0, 1e-4, composition=currency)
        with pytest.raises(ValueError, match=r"State a pair|an accountant returns"):
            budget.plan([GaussianEvent(8.0), record(RUN, "replace-one", 0.001)], delta=1e-5)
        budget.plan([record(RUN, "replace-one", float(truth))] * 2)
        assert budget.spent()[0] >= float(truth)
    with pytest.raises(UnsupportedEventError, match="UniformSampledEvent"):
        BudgetAccountant(8.0, 1e-4, adjacency="add-remove").plan(
            [record(UniformSampledEvent(10, 1000, GaussianEvent(4.0)), "add-remove", 0.1)]
        )


def test_plans_of_events_converted_by_their_pair_are_redeemed():
    item = record(OneOfEvent((GaussianEvent(8.0), PureDPEvent(0.1))), "add-remove", 0.6)
    plan = BudgetAccountant(4.0, 1e-4, composition="basic").plan([item])
    plan.reserve(item)
    assert plan.left() == []


def test_typed_numbers_of_a_plan_fill_a_budget_exactly():
    budget = BudgetAccountant(1.0, 1e-5, composition="basic")
    noisy = GaussianEvent(analytic_gaussian_sigma(0.5, 5e-6))
    budget.plan([record(noisy, "replace-one", 0.5, 5e-6)])
    budget.plan([record(noisy, "replace-one", 0.5, 5e-6)])
    assert budget.spent() == (pytest.approx(1.0, rel=1e-9), 1e-5)
    assert budget.spent()[0] <= 1.0
