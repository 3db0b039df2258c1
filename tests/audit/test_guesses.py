"""Right guesses in one run: the theorem's optimum, and mechanisms that guess as well as can be."""

import math
from bisect import bisect_left

import mpmath
import numpy as np
import pytest
from scipy.optimize import linprog
from scipy.special import expit, ndtr
from scipy.stats import binom, norm

from skdp.audit.bounds import Guesses, contrast, distance_lower


def most_likely(canaries, made, right, epsilon, delta):
    """Return the largest probability of `right` guesses that the inequalities allow, by an LP."""
    counts = np.arange(made + 1.0)
    rows, limits = [], []
    for c in range(1, made + 1):
        hits = np.where(counts >= c, counts, 0.0) / canaries
        misses = np.where(counts >= c - 1, made - counts, 0.0) / canaries
        rows += [hits - math.exp(epsilon) * misses, math.exp(epsilon) * hits - misses]
        limits += [delta, math.exp(epsilon) - 1.0 + delta]
    gain, total = (counts >= right).astype(float), np.ones((1, made + 1))
    return -linprog(-gain, rows, limits, total, [1.0], method="highs").fun


@pytest.mark.parametrize("delta", [0.0, 0.003])
@pytest.mark.parametrize(("canaries", "made", "right"), [(8, 8, 7), (12, 5, 5), (30, 10, 8)])
def test_the_recursion_is_the_optimum_of_its_inequalities(canaries, made, right, delta):
    for epsilon in (0.1, 1.0, 2.5):
        most = most_likely(canaries, made, right, epsilon, delta)
        curve = np.array([[epsilon, delta]])
        assert Guesses(canaries, made, right, 1.0001 * most).disproves(curve)
        assert not Guesses(canaries, made, right, 0.9999 * most).disproves(curve)


def fewest(disproves, made):
    """Return the fewest right guesses that disprove a claim."""
    return bisect_left(range(made + 1), True, key=disproves)


@pytest.mark.parametrize("failure", [0.05, 1e-3])
@pytest.mark.parametrize("epsilon", [0.5, 2.0])
def test_no_mechanism_is_disproved_more_often_than_stated(epsilon, failure):
    """Independent answers, and any that reveal some canaries, or all, in one run of many."""
    canaries, made, delta = 60, 40, 0.004
    curve = np.array([[epsilon, delta]])
    limit = fewest(lambda k: Guesses(canaries, made, k, failure).disproves(curve), made)
    plain = binom.sf(limit - 1, made, expit(epsilon))
    # All canaries at once, or only those about which a guess is made.
    for revealed in (delta, delta * canaries / made):
        assert (1.0 - revealed) * plain + revealed * (limit <= made) <= failure


def test_revealed_canaries_are_allowed_and_no_more_often():
    canaries, made, delta = 1000, 20, 1e-4
    often = delta * canaries / made
    claim = np.array([[0.0, delta]])
    assert not Guesses(canaries, made, made, 0.9999 * often).disproves(claim)
    assert Guesses(canaries, made, made, 1.02 * often).disproves(claim)


@pytest.mark.parametrize("mu", [0.5, 1.5])
def test_gaussian_claims_withstand_guesses_that_are_all_good_or_all_bad(mu):
    """One draw of the likelihood ratio decides how well all canaries are guessed."""
    made, failure = 200, 0.01
    limit = fewest(lambda k: Guesses(made, made, k, failure).mu_lower() > mu, made)
    nodes = np.linspace(-12.0, 12.0, 4001) + 0.5 * mu
    weights = norm.pdf(nodes, 0.5 * mu) / norm.pdf(nodes, 0.5 * mu).sum()

    def attained(right):
        return float(weights @ binom.sf(right - 1, made, expit(mu * np.abs(nodes))))

    assert attained(limit) <= failure and binom.sf(limit - 1, made, ndtr(0.5 * mu)) <= failure
    # Such a mechanism comes near the bound: this is what it costs to assume nothing.
    assert attained(limit - made // 10) > failure


def binomial_chance(canaries, made, right, epsilon, delta):
    """Bound the chance of so many right guesses by Theorem 5.2 of Steinke et al. (2023)."""
    rate = expit(epsilon)
    steps = np.arange(1, right + 1)
    below = np.cumsum(binom.pmf(right - steps, made, rate)) / steps
    return binom.sf(right - 1, made, rate) + 2.0 * canaries * delta * below.max()


@pytest.mark.parametrize("made", [50, 250, 1000])
def test_bounds_on_epsilon_are_no_worse_than_the_binomial_one(made):
    for right in (math.ceil(0.7 * made), math.ceil(0.95 * made), made):
        found = Guesses(1000, made, right, 0.001).epsilon_lower(1e-5)
        assert binomial_chance(1000, made, right, found + 1e-3, 1e-5) > 0.001


def test_bounds_are_on_the_proven_side():
    guesses = Guesses(500, 125, 121, 1e-3)
    mu, epsilon = guesses.mu_lower(), guesses.epsilon_lower(1e-5)
    assert 0.6 < mu < 0.8 and 1.5 < epsilon < 3.0
    assert guesses.disproves(np.array([[epsilon, 1e-5]]))
    assert not guesses.disproves(np.array([[epsilon * 1.001, 1e-5]]))
    # A curve says more than each of its points.
    points = np.linspace(0.0, 6.0, 25)
    factor = np.exp(points)
    for wanted, share in ((True, 0.97), (False, 1.01)):
        claim = share * mu
        delta = ndtr(claim / 2 - points / claim) - factor * ndtr(-claim / 2 - points / claim)
        assert guesses.disproves(np.column_stack([points, delta])) == wanted
    for hopeless in (Guesses(500, 125, 60, 1e-3), Guesses(500, 125, 0, 1e-3)):
        assert hopeless.mu_lower() == hopeless.epsilon_lower(1e-5) == 0.0


def test_a_contrast_is_the_inverse_of_the_trade_off():
    least = contrast(np.array([[1.0, 0.01], [0.0, 0.3]]))
    assert least(0.005) == 0.0
    assert least(0.2) == pytest.approx((0.2 - 0.01) / math.e)
    assert least(0.99) == pytest.approx(1.0 - 0.01 - math.e * 0.01)


@pytest.mark.parametrize(
    ("sizes", "distance"), [((50, 50), 1.0), ((480, 520), 2.9), ((5000, 5000), 0.3)]
)
def test_a_distance_is_bounded_by_the_non_central_law(sizes, distance):
    rng = np.random.default_rng(0)
    one, other = rng.normal(distance, 1.0, sizes[0]), rng.normal(0.0, 1.0, sizes[1])
    found = distance_lower(one, other, 1e-3)
    degrees, scale = sum(sizes) - 2, math.sqrt(1 / sizes[0] + 1 / sizes[1])
    spread = math.sqrt(((one.size * one.var()) + other.size * other.var()) / degrees)
    statistic = (one.mean() - other.mean()) / (spread * scale)
    width = 1 / math.sqrt(2 * degrees)

    def density(u):
        log = degrees / 2 * mpmath.log(degrees / 2) - mpmath.loggamma(degrees / 2)
        return 2 * mpmath.exp(log + (degrees - 1) * mpmath.log(u) - degrees * u * u / 2)

    tail = mpmath.quad(
        lambda u: density(u) * mpmath.ncdf(found / scale - statistic * u),
        np.clip(1 + width * np.arange(-16.0, 17.0, 2.0), 1e-6, None).tolist(),
    )
    assert 0.999e-3 < float(tail) <= 1e-3


def test_a_distance_is_exceeded_as_seldom_as_stated():
    """Seeded; by luck it would fail once in 1e7."""
    rng = np.random.default_rng(1)
    failures = 0
    for _ in range(400):
        one, other = rng.normal(0.8, 2.0, 60), rng.normal(-0.8, 2.0, 45)
        failures += distance_lower(one, other, 0.05) > 0.8
    assert binom.ppf(1e-7, 400, 0.05) <= failures <= binom.isf(1e-7, 400, 0.05)


def test_groups_without_noise_or_difference():
    assert distance_lower(np.ones(60), np.ones(60), 1e-3) == 0.0
    assert distance_lower(np.zeros(60), np.ones(60), 1e-3) == 0.0
    assert 60.0 < distance_lower(np.ones(60), np.zeros(60), 1e-3) <= 64.0
