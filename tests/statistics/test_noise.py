"""What noise costs and how far it reaches, against closed forms and sums over the integers."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skdp.accounting import PLDAccountant, RDPAccountant
from skdp.mechanisms.release import Release
from skdp.statistics.noise import UNIT, plan_noise


def tail(kind, scale, width):
    """Return the probability that the noise exceeds a width in size."""
    reach = np.arange(1, 60_000, dtype=float)
    sizes = reach / scale if kind == "laplace" else 0.5 * (reach / scale) ** 2
    weights = np.exp(-sizes)
    return 2.0 * weights[width:].sum() / (1.0 + 2.0 * weights.sum())


@pytest.mark.parametrize("failure", [0.3, 0.05, 1e-6])
@pytest.mark.parametrize("scale", [0.2, 1.0, 3.7, 120.0])
def test_half_widths_are_exceeded_as_seldom_as_they_say(scale, failure):
    count = Release.number("count", 1)
    laplace, gaussian = count.laplace(scale), count.gaussian(scale)
    width = laplace.half_width(failure)
    assert tail("laplace", scale, width) <= failure * (1 + 1e-9)
    assert width == 0 or tail("laplace", scale, width - 1) > failure * (1 - 1e-9)
    width = gaussian.half_width(failure)
    assert tail("gaussian", scale, width) <= failure
    assert width <= 2 or tail("gaussian", scale, width - 2) > failure
    for noise in (laplace, gaussian):
        many = noise.half_width(failure, 50)
        assert 1.0 - (1.0 - tail(noise.law, scale, many)) ** 50 <= failure * (1 + 1e-9)


@pytest.mark.parametrize("adjacency", ["add-remove", "replace-one"])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.3])
def test_pure_epsilon_is_exact(adjacency, epsilon):
    releases = [Release.shares("a", adjacency), Release.shares("b", adjacency, UNIT)]
    releases.append(Release.number("c", 7, 9))
    plan = plan_noise(releases, epsilon, 0.0, adjacency, "auto", 0.05)
    # P(x) / P(x') = e^(distance / scale), added up over the releases without rounding.
    cost = sum(Fraction(noise.l1) / noise.scale for noise in plan.releases)
    assert Fraction(epsilon) * (1 - Fraction(1, 10**14)) <= cost <= Fraction(epsilon)
    assert float(PLDAccountant(adjacency).compose(plan.event).epsilon(0.0)) <= epsilon * (1 + 1e-9)


@pytest.mark.parametrize("adjacency", ["add-remove", "replace-one"])
@pytest.mark.parametrize("mechanism", ["laplace", "gaussian"])
def test_the_plan_keeps_its_target(adjacency, mechanism):
    releases = [Release.shares("a", adjacency)] * 3 + [Release.shares("b", adjacency, UNIT)] * 2
    plan = plan_noise(releases, 1.0, 1e-6, adjacency, mechanism, 0.05)
    spent = PLDAccountant(adjacency).compose(plan.event).epsilon(1e-6)
    assert 0.999 < spent.upper <= 1.0
    assert RDPAccountant(adjacency).compose(plan.event).epsilon(1e-6) < 1.5
    assert len({noise.people for noise in plan.releases}) <= 2


def test_the_better_mechanism_is_taken():
    """One table for the sizes of arms and one a column; the guide has these numbers of columns."""
    for adjacency, columns in (("add-remove", 8), ("replace-one", 4)):
        release = Release.shares("a", adjacency)
        few, many = (
            plan_noise([release] * (count + 1), 1.0, 1e-6, adjacency, "auto", 0.05)
            for count in (columns - 1, columns)
        )
        assert few.releases[0].law == "laplace" and many.releases[0].law == "gaussian"


@settings(max_examples=40, deadline=None)
@given(st.floats(1e-6, 1e6), st.integers(1, 2000))
def test_the_multiplier_is_never_rounded_down(people, change):
    noise = Release.number("x", change).laplace(Fraction(people))
    assert noise.scale >= Fraction(people)
    assert noise.scale == Fraction(noise.event.noise_multiplier) * change
    assert math.isclose(noise.people, people)
