"""Searches end on the proven side, and exact numbers are rounded up."""

import math
from fractions import Fraction

import pytest

from skdp.accounting import BasicCompositionAccountant, LaplaceEvent, PLDAccountant
from skdp.accounting.numerics.arithmetic import float_up, narrow_bracket, smallest_delta
from skdp.accounting.pld.grid_bounds import find_crossing


@pytest.mark.parametrize(
    ("function", "low", "high"),
    [
        (lambda x: 1.0 - x, 0.0, 3.0),
        (lambda x: math.exp(-x) - 1e-7, 0.0, 100.0),
        (lambda x: 1.0 if x < math.pi else 0.0, 0.0, 4.0),
        (lambda x: math.inf if x < 1e5 else -math.inf, 0.0, 1e9),
        (lambda x: 2.0 - x * x, 1.0, 2.0),
    ],
)
@pytest.mark.parametrize("rtol", [1e-15, 1e-6])
def test_both_ends_are_on_their_side(function, low, high, rtol):
    below, above = narrow_bracket(function, low, high, rtol)
    assert function(below) > 0.0 >= function(above)
    assert 0.0 < above - below <= 2.0 * max(rtol, 1e-15) * above


@pytest.mark.parametrize(
    ("search", "place"),
    [(narrow_bracket, 1.0), (narrow_bracket, 1.3)]
    + [(find_crossing, place) for place in (0.0, 1.0, 1.3, 2.0)],
)
def test_what_is_no_number_is_on_no_side(search, place):
    """A bound that became NaN, at an end, first or midway, must not pass for one that holds."""
    ends = (2.0, 4.0, 1e-9) if search is find_crossing else (0.5, 2.5)

    def excess(x):
        return math.nan if abs(x - place) <= 0.5 else 1.0 - x

    with pytest.raises(FloatingPointError, match="not a number"):
        search(excess, *ends)


def test_the_smallest_delta_was_evaluated():
    seen = {}

    def epsilon_at(delta):
        seen[delta] = -math.log(delta) / 3.0
        return seen[delta]

    delta = smallest_delta(epsilon_at, 2.0)
    assert seen[delta] <= 2.0 and delta == pytest.approx(math.exp(-6.0), rel=1e-10)
    assert smallest_delta(lambda delta: 5.0, 2.0) == 1.0


@pytest.mark.parametrize("noise", [3.0, 49.0, 0.7, 2.0, 1e10 / 7.0])
def test_pure_losses_are_rounded_up(noise):
    least = 1 / Fraction(noise)
    assert Fraction(float_up(least)) >= least > Fraction(math.nextafter(float_up(least), 0.0))
    for accountant in (PLDAccountant, BasicCompositionAccountant):
        spent = accountant().compose(LaplaceEvent(noise)).epsilon(0.0)
        assert Fraction(spent.upper) >= least and spent.upper <= float(least) * (1.0 + 1e-11)
