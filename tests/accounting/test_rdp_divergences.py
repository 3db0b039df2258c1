"""Renyi divergences of sampled Gaussians against mpmath and reference values."""

import math

import mpmath as mp
import pytest

from skdp.accounting import (
    GaussianEvent,
    PoissonSampledEvent,
    PureDPEvent,
    RDPAccountant,
    UniformSampledEvent,
    dpsgd_epsilon,
)
from skdp.accounting.releases import sampled_gaussian as _renyi

CASES = [(0.01, 0.25), (0.5, 1.7), (1e-6, 2.0)]
ORDERS = [1.01, 2.0, 7.3, 16.0]


def normal(x, mean):
    return mp.npdf(x, mean, 1)


def quad(integrand, low, high):
    points = [low + (high - low) * mp.mpf(k) / 20 for k in range(21)]
    return mp.quad(integrand, points)


def close_and_above(value, exact):
    """Upper bounds within 1e-9 relative, 1e-12 absolute."""
    assert mp.mpf(value) >= exact - mp.mpf("1e-15")
    assert value <= float(exact) * (1 + 1e-9) + 1e-11


@pytest.mark.oracle
@pytest.mark.parametrize(("rate", "mu"), CASES)
def test_poisson_add_remove_divergence(rate, mu):
    with mp.workdps(20):
        q, m = mp.mpf(rate), mp.mpf(mu)
        for order in ORDERS:
            a = mp.mpf(order)
            exact = mp.log(
                quad(
                    lambda x, a=a: normal(x, 0) * (1 - q + q * mp.exp(m * x - m**2 / 2)) ** a,
                    mp.mpf(-14),
                    a * m + 14,
                )
            )
            close_and_above(_renyi.log_moment_add_remove(rate, mu, order), exact)
            if order == int(order):
                close_and_above(_renyi.log_moment_integer(rate, mu, int(order)), exact)


@pytest.mark.oracle
@pytest.mark.parametrize(("rate", "mu"), CASES)
def test_poisson_replace_one_divergence(rate, mu):
    with mp.workdps(20):
        q, m = mp.mpf(rate), mp.mpf(mu)
        for order in ORDERS:
            a = mp.mpf(order)

            def integrand(x, a=a):
                up = 1 - q + q * mp.exp(m * x - m**2 / 2)
                down = 1 - q + q * mp.exp(-m * x - m**2 / 2)
                return normal(x, 0) * up**a * down ** (1 - a)

            exact = mp.log(quad(integrand, -m - 14, (2 * a - 1) * m + 14))
            close_and_above(_renyi.log_moment_replace_one(rate, mu, order), exact)


@pytest.mark.oracle
@pytest.mark.parametrize(("rate", "mu"), CASES)
def test_uniform_replace_one_divergence(rate, mu):
    with mp.workdps(20):
        p, m = mp.mpf(rate), mp.mpf(mu)
        for order in ORDERS:
            a = mp.mpf(order)

            def integrand(x, a=a):
                ratio = 1 - p + p * mp.exp(m * x - m**2 / 2)
                return normal(x, 0) * (ratio**a + ratio ** (1 - a))

            moved = quad(integrand, m / 2, a * m + 14)
            exact = mp.log(moved + (1 - p) * (1 - 2 * mp.ncdf(-m / 2)))
            close_and_above(_renyi.log_moment_uniform(rate, mu, order), exact)


@pytest.mark.parametrize(
    ("q", "sigma", "order", "expected"),
    [
        (0.01, 4, 2, 6.449425094199e-6),
        (0.01, 4, 20, 6.52631295728e-5),
        (0.01, 1, 2, 0.0001718134220745),
        (0.01, 1, 8, 0.000893643907606),
        (0.01, 1, 2.5, 0.0002175753322819),
        (0.1, 2, 1.5, 0.00209893459571),
        (0.1, 2, 16, 0.04529183908362),
        (0.001, 0.7, 4, 1.404204865212e-5),
    ],
)
def test_poisson_reference_values(q, sigma, order, expected):
    accountant = RDPAccountant().compose(PoissonSampledEvent(q, GaussianEvent(sigma)))
    assert accountant.log_moment(order) / (order - 1) == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize(
    ("b", "n", "mu", "order", "expected"),
    [
        (1, 100, 0.5, 2, 3.907912468372e-5),
        (1, 100, 2, 2, 0.006787471167638),
        (1, 100, 0.5, 16, 0.0003140221373426),
        (1, 1000, 1, 8, 1.165396959002e-5),
    ],
)
def test_uniform_reference_values(b, n, mu, order, expected):
    event = UniformSampledEvent(b, n, GaussianEvent(2 / mu))
    accountant = RDPAccountant("replace-one").compose(event)
    assert accountant.log_moment(order) / (order - 1) == pytest.approx(expected, rel=1e-6)


def test_gaussian_and_randomised_response_divergences():
    gaussian = RDPAccountant().compose(GaussianEvent(2.0), count=3)
    assert gaussian.log_moment(5.0) == pytest.approx(3 * 0.5 * 5 * 4 / 4)
    for eps in (1e-3, 0.5, 3.0, 40.0):
        p, q = 1 / (1 + math.exp(-eps)), 1 / (1 + math.exp(eps))
        for order in (1.1, 2.0, 9.0):
            with mp.workdps(40):
                exact = mp.log(
                    mp.mpf(p) ** order * mp.mpf(q) ** (1 - order)
                    + mp.mpf(q) ** order * mp.mpf(p) ** (1 - order)
                )
            value = RDPAccountant().compose(PureDPEvent(eps)).log_moment(order)
            assert value == pytest.approx(float(exact), rel=1e-9, abs=1e-12)
            assert value <= (order - 1) * min(eps, 0.5 * order * eps * eps) * (1 + 1e-9)
    with pytest.raises(ValueError, match="order must exceed 1"):
        gaussian.log_moment(1.0)


def test_printed_numbers_of_the_moments_accountant_setting():
    """q = 0.01, sigma = 4, delta = 1e-5: 1.26 and 2.55 become these with a better conversion."""
    for steps, expected in ((10_000, 1.03538486), (40_000, 2.20972688)):
        assert dpsgd_epsilon(4.0, 0.01, steps, 1e-5, accountant="rdp") == pytest.approx(
            expected, rel=1e-4
        )


def test_extreme_orders_do_not_overflow():
    for function in (
        _renyi.log_moment_add_remove,
        _renyi.log_moment_replace_one,
        _renyi.log_moment_uniform,
    ):
        for rate, mu, order in ((1e-9, 1e-6, 1.001), (0.5, 1e4, 60.0), (0.999, 1e-3, 1e5)):
            assert function(rate, mu, order) >= -1e-12
