"""From Renyi divergences to (epsilon, delta): without cancellation, and rounded outwards."""

import math
from fractions import Fraction

import mpmath
import pytest

from skdp.accounting import GaussianEvent, RDPAccountant
from skdp.accounting.numerics.renyi_divergences import conversion, sum_up
from skdp.budget.currencies import make_filter
from skdp.budget.currencies._renyi import allow_divergence, best_order, zcdp_epsilon
from skdp.budget.currencies._renyi import conversion as epsilon_conversion

SCALES = (1e-300, 1e-12, 1e-6, 0.3, 1.0, 17.0, 1e6, 1e12, 1e16, 1e100, 1e250)


def log_delta(scale, divergence, epsilon):
    """Return the logarithm of what a divergence of an order implies, to 60 digits or more."""
    with mpmath.workdps(700):
        scale = mpmath.mpf(scale)
        order = 1 + scale
        value = scale * (mpmath.mpf(divergence) - mpmath.mpf(epsilon))
        return value + scale * mpmath.log(scale / order) - mpmath.log(order)


@pytest.mark.parametrize("scale", SCALES)
def test_the_conversion_is_accurate_at_every_order(scale):
    assert conversion(scale) == pytest.approx(float(log_delta(scale, 0, 0)), rel=1e-15)


@pytest.mark.parametrize("delta", [0.5, 1e-2, 1e-5, 1e-15, 1e-300])
@pytest.mark.parametrize("order", [1.0 + 2.0**-40, 1.001, 2.0, 50.3, 1e6, 1e12, 1e15])
def test_epsilons_and_divergences_imply_delta(order, delta):
    scale = order - 1.0
    if (added := epsilon_conversion(order, delta)) > 0.0:
        assert log_delta(scale, 0, added) <= mpmath.log(mpmath.mpf(delta))
    for epsilon in (1e-12, 1e-8, 1e-4, 1.0, 30.0):
        if (divergence := allow_divergence(epsilon, delta, order)) > 0.0:
            assert log_delta(scale, divergence, epsilon) <= mpmath.log(mpmath.mpf(delta))


@pytest.mark.parametrize("epsilon", [1e-12, 1e-10, 1e-7, 1e-4, 0.1, 1.0, 10.0, 500.0])
@pytest.mark.parametrize("delta", [1e-3, 1e-5, 1e-12])
def test_limits_of_budgets_imply_delta(epsilon, delta):
    order, divergence = best_order(epsilon, delta)
    assert log_delta(order - 1.0, divergence, epsilon) <= mpmath.log(mpmath.mpf(delta))
    rho = math.nextafter(divergence / order, 0.0)
    assert zcdp_epsilon(rho, delta) <= epsilon * (1.0 + 1e-6)
    budget = make_filter("rdp", epsilon, delta, "replace-one")
    for share in (1, Fraction(1, 3), Fraction(1, 10**9)):
        spent = budget.limits[0] * share
        promised = budget._guarantee((spent, Fraction(0)))[0]
        exact = mpmath.mpf(spent.numerator) / spent.denominator
        implied = log_delta(budget.order - 1.0, exact, promised)
        assert implied <= mpmath.log(mpmath.mpf(budget._curve))


@pytest.mark.parametrize("epsilon", [1e-9, 1e-3, 1.0])
def test_accountants_promise_no_less_than_exact_arithmetic(epsilon):
    """At one order, for Gaussian noise: whatever the accountant minimises over is rounded up."""
    accountant = RDPAccountant().compose(GaussianEvent(3.0 / epsilon))
    for moment in (1e-3, 0.7, 12.0, 1e4):
        exact = log_delta(moment, (1 + mpmath.mpf(moment)) / 18 * mpmath.mpf(epsilon) ** 2, epsilon)
        log_moment = accountant.log_moment(moment + 1.0)
        assert sum_up(log_moment, conversion(moment), -moment * epsilon) >= exact


def test_sums_are_rounded_up():
    assert sum_up(0.1, 0.2, -0.3) > 0.0
    assert math.isinf(sum_up(math.inf, -1.0))
