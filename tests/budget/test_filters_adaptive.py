"""Filters hold against the best adaptive adversary; what is not a filter does not."""

import math

import pytest
from adaptive_trees import (
    randomised_response,
    rounded_gaussian,
    rounded_laplace,
    rounded_sampled_gaussian,
    worst_case,
)

from skdp.accounting import PLDAccountant
from skdp.accounting.numerics import gaussian_profile
from skdp.budget.currencies import Charge, make_filter

CUTS = (0.2, 1.1)
LIBRARIES = {
    "pure and failing": [
        randomised_response(0.3),
        randomised_response(0.1, 0.002),
        randomised_response(0.0, 0.0024),
    ],
    "failing more often": [
        randomised_response(0.3),
        randomised_response(0.1, 0.004),
        randomised_response(0.0, 0.01),
    ],
    "gaussian and pure": [
        rounded_gaussian(3.0, (0.15, 1.2)),
        rounded_gaussian(6.0, (0.1,)),
        randomised_response(0.25),
    ],
    "sampled": [
        rounded_sampled_gaussian(0.3, 1.0, CUTS),
        randomised_response(0.2, 0.002),
        rounded_laplace(4.0, (0.0, 0.25)),
    ],
}
ROUNDING = 1e-12


def grant_of(budget, limits=None):
    """Grant what the filter does, within its own limits or smaller ones."""
    limits = budget.limits if limits is None else limits

    def grant(spent, mechanism):
        # Pairs for the currencies that need one: attained by the event itself.
        delta = {"basic": 0.01, "approx": 0.01}.get(budget.name)
        known = getattr(mechanism.event, "epsilon", None)
        charge = Charge(mechanism.event, None, None if known is not None else delta)
        cost = budget.price(charge, spent)
        after = tuple(a + b for a, b in zip(spent, cost, strict=True))
        fits = budget.fits(spent, cost)
        return after if fits and all(a <= b for a, b in zip(after, limits, strict=True)) else None

    return grant


def worst(budget, library, epsilon, depth, grant=None):
    """Return the delta at epsilon of the adversary's best choices among what is granted."""
    grant = grant or grant_of(budget)
    return worst_case(grant, budget.nothing, library, math.exp(epsilon), depth=depth)


NAMES = ["basic", "gdp", "zcdp", "rdp", "approx", "mixed"]


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("name", NAMES)
def test_no_adaptive_strategy_exceeds_the_budget(name, library):
    budget = make_filter(name, 0.7, 0.05, "add-remove")
    assert worst(budget, LIBRARIES[library], 0.7, depth=5) <= 0.05 + ROUNDING


def test_the_adversary_is_strong_enough_to_notice():
    budget, library = make_filter("basic", 0.7, 0.05, "add-remove"), LIBRARIES["failing more often"]
    assert worst(budget, library, 0.7, depth=5) > 0.97 * 0.05
    budget.boxes = (tuple(limit * 11 / 10 for limit in budget.limits),)
    assert worst(budget, library, 0.7, depth=6) > 0.05


@pytest.mark.parametrize("epsilon", [0.0, 0.2, 0.5, 1.0])
def test_gaussian_curve_holds_at_every_epsilon(epsilon):
    budget = make_filter("gdp", 0.9, 0.05, "add-remove")
    mu, slack = math.sqrt(budget.limits[0]), float(budget.limits[1])
    allowed = gaussian_profile.delta(mu, epsilon) + slack
    grant = grant_of(budget)

    def without_all(spent, mechanism):
        """The first charge of all may take the whole budget, at the budget's own epsilon only."""
        after = grant(spent, mechanism)
        return None if after == budget.limits else after

    for library in LIBRARIES.values():
        assert worst(budget, library, epsilon, 4, without_all) <= allowed + ROUNDING


@pytest.mark.parametrize("name", NAMES)
def test_what_was_granted_before_any_amount_was_exceeded_has_its_guarantee(name):
    budget = make_filter(name, 1.5, 0.05, "add-remove")
    spent = budget.nothing
    for mechanism in LIBRARIES["pure and failing"][:2]:
        cost = budget.price(Charge(mechanism.event), spent)
        spent = tuple(a + b for a, b in zip(spent, cost, strict=True))
    epsilon, delta = budget.guarantee(spent)
    assert 0.0 < epsilon <= 1.5 and 0.0 < delta <= 0.05
    library, within = LIBRARIES["pure and failing"], grant_of(budget, spent)
    assert worst(budget, library, epsilon, 4, within) <= delta + ROUNDING


def test_stopping_by_privacy_loss_distributions_is_not_a_filter():
    """What fits by joint composition of the list so far: each list is fine, choosing is not."""
    epsilon = 0.5
    first = randomised_response(0.5)
    flat, steep = randomised_response(0.0, 0.05), randomised_response(0.35)

    def composed(*mechanisms):
        accountant = PLDAccountant()
        for mechanism in mechanisms:
            accountant.compose(mechanism.event)
        return accountant.delta(epsilon).upper

    delta = max(composed(first, flat), composed(first, steep))

    def natural(spent, mechanism):
        chosen = (*spent, mechanism)
        return chosen if composed(*chosen) <= delta else None

    found = worst_case(natural, (), [first, flat, steep], math.exp(epsilon), depth=2)
    assert found > 1.05 * delta
    for name in NAMES:
        budget = make_filter(name, epsilon, delta, "add-remove")
        assert worst(budget, [first, flat, steep], epsilon, depth=4) <= delta + ROUNDING
