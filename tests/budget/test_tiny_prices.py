"""Whatever reveals anything costs something, however small; what reveals nothing is free."""

import math
from itertools import pairwise

import pytest

from skdp.accounting import (
    ApproxDPEvent,
    ComposedEvent,
    DiscreteGaussianEvent,
    DiscreteLaplaceEvent,
    GaussianEvent,
    LaplaceEvent,
    LastIterateEvent,
    OneOfEvent,
    PoissonSampledEvent,
    PureDPEvent,
    RepeatAndSelectEvent,
    RepeatedEvent,
    UniformSampledEvent,
)
from skdp.budget.currencies import Charge, make_filter

TINY = (
    PoissonSampledEvent(1e-170, LaplaceEvent(1.0)),
    PoissonSampledEvent(1e-300, LaplaceEvent(1e30)),
    PoissonSampledEvent(1e-170, GaussianEvent(1.0)),
    PoissonSampledEvent(1e-300, GaussianEvent(1e200)),
    UniformSampledEvent(1, 10**400, GaussianEvent(1.0)),
    GaussianEvent(1e300),
    LaplaceEvent(1e300),
    PureDPEvent(math.ulp(0.0)),
    ApproxDPEvent(0.0, 1e-300),
    DiscreteGaussianEvent(1e200, 1),
    DiscreteLaplaceEvent(1e300, 1),
    LastIterateEvent(GaussianEvent(1e300), 3, smoothness=0.2, strong_convexity=0.1),
    RepeatAndSelectEvent(PureDPEvent(1e-300), 4.0, 1.0),
    OneOfEvent((PureDPEvent(1e-300), GaussianEvent(1e300))),
)
NOTHING = (
    ComposedEvent(()),
    RepeatedEvent(GaussianEvent(1.0), 0),
    PureDPEvent(0.0),
    ApproxDPEvent(0.0, 0.0),
    PoissonSampledEvent(0.0, GaussianEvent(1.0)),
    PoissonSampledEvent(0.0, LaplaceEvent(1.0)),
    OneOfEvent((PureDPEvent(0.0), PoissonSampledEvent(0.0, GaussianEvent(1.0)))),
)
PAIRS = ("basic", "approx")
EVERY = pytest.mark.parametrize("currency", [*PAIRS, "gdp", "zcdp", "rdp"])


def price(currency, event, adjacency="replace-one", **pair):
    budget = make_filter(currency, 1.0, 1e-5, adjacency)
    try:
        return budget.price(Charge(event, **pair), budget.nothing), budget
    except (TypeError, ValueError):  # no bound under this relation, or no pair
        return None, budget


@pytest.mark.daily(2)
@EVERY
@pytest.mark.parametrize("adjacency", ["replace-one", "add-remove"])
def test_what_reveals_anything_has_a_price(currency, adjacency):
    for event in TINY:
        for pair in ({}, {"epsilon": 0.0, "delta": 0.0}) if currency in PAIRS else ({},):
            cost, _ = price(currency, event, adjacency, **pair)
            assert cost is None or any(cost), event


@EVERY
def test_what_reveals_nothing_is_free(currency):
    for event in NOTHING:
        pair = {"epsilon": 0.0, "delta": 0.0} if currency in PAIRS else {}
        cost, _ = price(currency, event, **pair)
        assert cost is not None and not any(cost), event


@EVERY
def test_no_number_of_tiny_releases_is_free(currency):
    for event, power in ((TINY[0], 345), (TINY[1], 700)):
        cost, budget = price(currency, RepeatedEvent(event, 10**power))
        assert cost is None or not budget.fits(budget.nothing, cost)


@EVERY
@pytest.mark.parametrize("event", [*TINY[:2], GaussianEvent(50.0), PureDPEvent(1e-3)])
def test_more_of_the_same_costs_no_less(currency, event):
    pair = {"delta": 1e-6} if currency in PAIRS else {}
    costs = [price(currency, RepeatedEvent(event, n), **pair)[0] for n in (1, 2, 10, 100)]
    assert None not in costs
    assert all(one[0] <= more[0] for one, more in pairwise(costs))
