"""The search for the dearest affordable parameter: it ends, and what it returns was affordable."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skdp.accounting.calibration.search import Axis, dearest_affordable

NOISE = Axis(cheapest=1e12, dearest=1e-3)
STEPS = Axis(1, 10**15, integer=True)


class Counted:
    """A cost that remembers what was asked."""

    def __init__(self, cost):
        self.cost, self.values = cost, {}

    def __call__(self, parameter):
        self.values[parameter] = self.cost(parameter)
        return self.values[parameter]


@settings(max_examples=300, deadline=None, derandomize=True)
@given(
    log_scale=st.floats(-15, 25),
    power=st.floats(0.05, 30),
    floor=st.floats(0, 0.99),
    steepness=st.floats(0, 3),
    log_target=st.floats(-7, 6),
    log_start=st.floats(-6, 27),
)
def test_smooth_costs_are_met_from_below(log_scale, power, floor, steepness, log_target, log_start):
    target = math.exp(log_target)

    def cost(z):
        u = math.exp(min(power * (log_scale - math.log(z)), 600.0))
        return target * (floor + math.expm1(min(steepness * u, 600.0)) + u)

    counted = Counted(cost)
    z = dearest_affordable(counted, target, NOISE, math.exp(log_start))
    if cost(1e12) > target:
        assert z is None
        return
    assert counted.values[z] <= target
    assert counted.values[z] >= target * (1 - 1e-4) or z == 1e-3
    assert len(counted.values) <= 40


@settings(max_examples=300, deadline=None, derandomize=True)
@given(
    log_steps=st.floats(-1, 30),
    power=st.floats(0.3, 3),
    floor=st.floats(0, 0.99),
    start=st.integers(1, 10**12),
)
def test_the_most_steps_are_found(log_steps, power, floor, start):
    def cost(steps):
        return floor + (1 - floor) * (steps / math.exp(log_steps)) ** power

    counted = Counted(cost)
    steps = dearest_affordable(counted, 1.0, STEPS, start)
    if steps is None:
        assert cost(1) > 1.0
        return
    assert counted.values[steps] <= 1.0
    assert cost(steps + 1) > 1.0 or cost(steps) >= 1 - 1e-4
    assert len(counted.values) <= 40


@pytest.mark.parametrize("height", [0.0, 0.3, 1e-6])
@pytest.mark.parametrize("edge", [1.5, 77.7, 123456.7, 9.9e13])
def test_jumping_costs_end_beside_the_jump(height, edge):
    counted = Counted(lambda steps: height if steps <= edge else math.inf)
    assert dearest_affordable(counted, 1.0, STEPS, 1000) == math.floor(edge)
    z = dearest_affordable(lambda z: height if z >= edge else 2.0, 1.0, NOISE, 3.0)
    if edge < 1e12:
        assert edge <= z <= edge * (1 + 1e-9)
    else:
        assert z is None
    assert len(counted.values) <= 120


@settings(max_examples=200, deadline=None, derandomize=True)
@given(
    size=st.sampled_from([1e-7, 1e-5, 1e-4, 1e-3, 0.3]),
    frequency=st.floats(1, 1e7),
    log_scale=st.floats(-3, 12),
    log_start=st.floats(-3, 12),
    integer=st.booleans(),
)
def test_noise_in_the_cost_neither_breaks_nor_oversteps(
    size, frequency, log_scale, log_start, integer
):
    def cost(parameter):
        x = math.log(parameter) - log_scale
        return math.exp(x + size * math.sin(frequency * x))

    counted = Counted(cost)
    axis = STEPS if integer else Axis(1e-9, 1e9)
    found = dearest_affordable(counted, 1.0, axis, math.exp(log_start))
    if found is None:
        assert counted.values[axis.cheapest] > 1.0
        return
    assert counted.values[found] <= 1.0
    assert len(counted.values) <= 120


def test_no_number_counts_as_too_much():
    z = dearest_affordable(lambda z: 1 / z if z > 1.0 else math.nan, 10.0, NOISE, 0.01)
    assert 1.0 < z < 1.0 + 1e-9


def test_both_ends_are_reached_exactly():
    assert dearest_affordable(lambda z: 0.0, 1.0, NOISE, 5e3) == 1e-3
    assert dearest_affordable(lambda rate: 0.5 * rate, 1.0, Axis(1e-30, 1.0), 1e-7) == 1.0
    assert dearest_affordable(lambda steps: 0.0, 1.0, STEPS, 3) == 10**15
    assert dearest_affordable(lambda z: 2.0, 1.0, NOISE, 1.0) is None
    assert dearest_affordable(lambda z: 1.0 + 1.0 / z, 1.0, NOISE, 1.0) is None


def test_good_guesses_need_few_evaluations():
    for power in (1.0, 1.3, 4.0):
        counted = Counted(lambda z, power=power: z**-power * (1 + 0.1 / z))
        dearest_affordable(counted, 1e-2, NOISE, 1.2 * 100 ** (1 / power))
        assert len(counted.values) <= 5
