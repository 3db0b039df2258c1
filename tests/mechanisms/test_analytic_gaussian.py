"""The analytic Gaussian mechanism against mpmath, published values and Algorithm 1."""

import itertools
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
GRID = list(itertools.product(EPSILONS, DELTAS))


def exact_delta(mu, epsilon):
    """The profile itself; each term has a hundred digits, of which few cancel."""
    with mp.workdps(100):
        mu, epsilon = mp.mpf(mu), mp.mpf(epsilon)

        def phi(x):
            return mp.erfc(-x / mp.sqrt(2)) / 2

        return phi(mu / 2 - epsilon / mu) - mp.exp(epsilon) * phi(-mu / 2 - epsilon / mu)


@pytest.mark.parametrize(("epsilon", "delta"), GRID)
def test_sigma_meets_the_target_and_is_within_1e_9_of_the_least(epsilon, delta):
    sigma = analytic_gaussian_sigma(epsilon, delta)
    with mp.workdps(60):
        assert exact_delta(1 / mp.mpf(sigma), epsilon) <= mp.mpf(delta)
        smaller = mp.mpf(sigma) * (1 - mp.mpf("1e-9"))
        assert exact_delta(1 / smaller, epsilon) > mp.mpf(delta)


@pytest.mark.parametrize(("epsilon", "delta"), GRID)
def test_delta_and_epsilon_are_tight_upper_bounds(epsilon, delta):
    sigma = analytic_gaussian_sigma(epsilon, delta)
    with mp.workdps(60):
        mu = 1 / mp.mpf(sigma)
        exact = exact_delta(mu, epsilon)
        assert exact <= analytic_gaussian_delta(sigma, epsilon) <= exact * (1 + mp.mpf("1e-9"))
        found = analytic_gaussian_epsilon(sigma, delta)
        assert exact_delta(mu, found) <= mp.mpf(delta)
        lower = mp.mpf(found) * (1 - mp.mpf("1e-9")) - mp.mpf("1e-12")
        assert lower < 0 or exact_delta(mu, lower) > mp.mpf(delta)


@pytest.mark.parametrize("sigma", [1e-3, 0.05, 1.0, 30.0, 1e4])
@pytest.mark.parametrize("epsilon", [0.0, 1e-9, 1e-4, 0.3, 5.0, 400.0])
def test_delta_off_the_diagonal(sigma, epsilon):
    with mp.workdps(60):
        exact = exact_delta(1 / mp.mpf(sigma), epsilon)
    value = analytic_gaussian_delta(sigma, epsilon)
    if exact < 1e-307:
        assert exact <= value <= 1e-307
    else:
        assert exact <= value <= exact * (1 + mp.mpf("1e-9"))


REFERENCE = {
    1e-3: [276.1288755692, 1724.259033584, 2436.552493749, 4122.629732026],
    0.01: [93.90741983985, 243.7854376757, 306.3503761538, 458.5084974973],
    0.1: [17.40439620303, 30.74956613198, 36.3046904262, 50.20981826302],
    0.5: [4.610127950728, 7.031826675582, 8.057618480725, 10.67389681508],
    1.0: [2.574657018637, 3.730631634816, 4.224678889327, 5.495266157238],
    2.0: [1.44523916093, 1.993812445644, 2.230476271186, 2.844547073496],
    8.0: [0.4800137524801, 0.600229072199, 0.6529353843582, 0.7922370498041],
}


@pytest.mark.parametrize("epsilon", REFERENCE)
def test_sigma_reference_values(epsilon):
    for delta, expected in zip([1e-3, 1e-5, 1e-6, 1e-9], REFERENCE[epsilon], strict=True):
        assert analytic_gaussian_sigma(epsilon, delta) == pytest.approx(expected, rel=1e-10)
        assert analytic_gaussian_sigma(epsilon, delta, sensitivity=3.0) == pytest.approx(
            3.0 * expected, rel=1e-10
        )


def test_epsilon_reference_values():
    table = {
        0.1: [0.1975339732397, 0.3406693646843, 0.3968573776441, 0.5351482315532],
        0.5: [1.352276244803, 1.993091404415, 2.25408465022, 2.909732380764],
        1.0: [3.138670548583, 4.377178095681, 4.886554117462, 6.173935046671],
        2.0: [7.58127992457, 9.997256146434, 10.99715121422, 13.53477221917],
        5.0: [27.17601713438, 33.10373233592, 35.56634371414, 41.83337508055],
    }
    for mu, row in table.items():
        for delta, expected in zip([1e-3, 1e-5, 1e-6, 1e-9], row, strict=True):
            assert analytic_gaussian_epsilon(1 / mu, delta) == pytest.approx(expected, rel=1e-10)


def algorithm_1(epsilon, delta):
    """Balle and Wang (2018), Algorithm 1, written out in mpmath."""
    with mp.workdps(400 if delta < 1e-50 else 60):
        epsilon, delta = mp.mpf(epsilon), mp.mpf(delta)

        def phi(x):
            return mp.erfc(-x / mp.sqrt(2)) / 2

        def b_plus(v):
            return phi(mp.sqrt(epsilon * v)) - mp.exp(epsilon) * phi(-mp.sqrt(epsilon * (v + 2)))

        def b_minus(u):
            return phi(-mp.sqrt(epsilon * u)) - mp.exp(epsilon) * phi(-mp.sqrt(epsilon * (u + 2)))

        def largest(condition):
            low, high = mp.mpf(0), mp.mpf(1)
            while condition(high):
                low, high = high, 2 * high
            for _ in range(120):
                middle = (low + high) / 2
                low, high = (middle, high) if condition(middle) else (low, middle)
            return low

        delta_0 = b_plus(mp.mpf(0))
        if delta >= delta_0:
            v = largest(lambda v: b_plus(v) <= delta)
            alpha = mp.sqrt(1 + v / 2) - mp.sqrt(v / 2)
        else:
            u = largest(lambda u: b_minus(u) > delta)
            alpha = mp.sqrt(1 + u / 2) + mp.sqrt(u / 2)
        return float(alpha / mp.sqrt(2 * epsilon))


@pytest.mark.parametrize("epsilon", [1e-3, 0.1, 1.0, 8.0, 50.0])
@pytest.mark.parametrize(
    "delta", [pytest.param(1e-60, marks=pytest.mark.oracle), 1e-9, 1e-5, 0.05, 0.5, 0.9]
)
def test_algorithm_1_finds_the_same_sigma(epsilon, delta):
    expected = algorithm_1(epsilon, delta)
    assert analytic_gaussian_sigma(epsilon, delta) == pytest.approx(expected, rel=1e-9)


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
