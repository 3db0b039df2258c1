"""The analytic Gaussian mechanism against mpmath, published values and Algorithm 1."""

import math

import mpmath as mp
import pytest

from skdp.mechanisms import (
    analytic_gaussian_delta,
    analytic_gaussian_epsilon,
    analytic_gaussian_sigma,
    classical_gaussian_sigma,
)

EPSILONS = [1e-9, 1e-6, 1e-3, 0.1, 1.0, 8.0, 100.0, 1000.0]
DELTAS = [1e-300, 1e-100, 1e-20, 1e-9, 1e-5, 1e-2, 0.3, 0.9, 0.99]


def exact_delta(mu, epsilon):
    """The profile itself; each term has a hundred digits, of which few cancel."""
    with mp.workdps(100):
        mu, epsilon = mp.mpf(mu), mp.mpf(epsilon)

        def phi(x):
            return mp.erfc(-x / mp.sqrt(2)) / 2

        return phi(mu / 2 - epsilon / mu) - mp.exp(epsilon) * phi(-mu / 2 - epsilon / mu)


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_sigma_delta_and_epsilon_are_tight_upper_bounds(epsilon):
    """Sigma is within 1e-9 of the least."""
    for delta in DELTAS:
        sigma = analytic_gaussian_sigma(epsilon, delta)
        with mp.workdps(60):
            mu, near = 1 / mp.mpf(sigma), mp.mpf("1e-9")
            exact = exact_delta(mu, epsilon)
            assert exact <= mp.mpf(delta) < exact_delta(mu / (1 - near), epsilon)
            assert exact <= analytic_gaussian_delta(sigma, epsilon) <= exact * (1 + near)
            found = analytic_gaussian_epsilon(sigma, delta)
            assert exact_delta(mu, found) <= mp.mpf(delta)
            lower = mp.mpf(found) * (1 - near) - mp.mpf("1e-12")
            assert lower < 0 or exact_delta(mu, lower) > mp.mpf(delta)


@pytest.mark.parametrize("sigma", [1e-3, 0.05, 1.0, 30.0, 1e4])
def test_delta_off_the_diagonal(sigma):
    for epsilon in (0.0, 1e-9, 1e-4, 0.3, 5.0, 400.0):
        with mp.workdps(60):
            exact = exact_delta(1 / mp.mpf(sigma), epsilon)
        value = analytic_gaussian_delta(sigma, epsilon)
        assert exact <= value <= max(1e-307, exact * (1 + mp.mpf("1e-9")))


def test_classical_sigma():
    assert classical_gaussian_sigma(0.5, 1e-5, 2.0) == pytest.approx(
        2.0 * math.sqrt(2.0 * math.log(1.25e5)) / 0.5, rel=1e-15
    )
    assert classical_gaussian_sigma(0.99, 1e-5) > analytic_gaussian_sigma(0.99, 1e-5)
    for epsilon in (1.0, 1.5, 10.0):
        with pytest.raises(ValueError, match="epsilon < 1 only"):
            classical_gaussian_sigma(epsilon, 1e-5)


@pytest.mark.parametrize("bad", [0.0, -1.0, math.inf, math.nan])
def test_rejected_scales(bad):
    with pytest.raises(ValueError, match="epsilon must be a finite number > 0"):
        analytic_gaussian_sigma(bad, 1e-5)
    with pytest.raises(ValueError, match="sensitivity must be"):
        analytic_gaussian_sigma(1.0, 1e-5, bad)
    with pytest.raises(ValueError, match="sigma must be"):
        analytic_gaussian_epsilon(bad, 1e-5)
    with pytest.raises(ValueError, match="sigma must be"):
        analytic_gaussian_delta(bad, 1.0)
    with pytest.raises(ValueError, match="epsilon must be"):
        classical_gaussian_sigma(bad, 1e-5)


@pytest.mark.parametrize("bad", [0.0, 1.0, -0.1, 2.0, math.nan])
def test_rejected_deltas(bad):
    for call in (
        lambda: analytic_gaussian_sigma(1.0, bad),
        lambda: analytic_gaussian_epsilon(1.0, bad),
        lambda: classical_gaussian_sigma(0.5, bad),
    ):
        with pytest.raises(ValueError, match="delta must lie in the open interval"):
            call()


def test_negative_epsilon_is_rejected_and_overflow_is_reported():
    with pytest.raises(ValueError, match="epsilon must be a finite number >= 0"):
        analytic_gaussian_delta(1.0, -0.1)
    with pytest.raises(ValueError, match="largest float"):
        analytic_gaussian_sigma(1e-9, 1e-300, sensitivity=1e300)
