"""From error counts to bounds: against independent formulas, and at the stated confidence."""

import math

import numpy as np
import pytest
from scipy.stats import beta, binom, norm

from skdp.audit.bounds import Errors, choose_threshold, discriminant, errors_above, rate_upper


@pytest.mark.parametrize("events", [0, 1, 17, 99, 100])
def test_rate_is_that_of_clopper_and_pearson(events):
    bound = float(rate_upper(events, 100, 1e-3))
    wanted = 1.0 if events == 100 else beta.ppf(1 - 1e-3, events + 1, 100 - events)
    assert wanted <= bound <= wanted * (1 + 1e-8)
    if events < 100:
        assert binom.cdf(events, 100, bound) <= 1e-3


def test_exact_errors_of_gaussian_mechanisms_give_their_mu_and_no_more():
    for mu, threshold in ((0.3, 0.1), (2.0, 1.7)):
        errors = Errors(norm.sf(threshold), norm.cdf(threshold - mu))
        assert float(errors.mu_lower()) == pytest.approx(mu, rel=1e-9)


def test_errors_at_the_corner_of_randomised_response_give_its_epsilon_and_delta():
    epsilon, delta = 1.3, 0.02
    rate = (1 - delta) / (1 + math.exp(epsilon))
    errors = Errors(rate, rate)
    assert float(errors.epsilon_lower(delta)) == pytest.approx(epsilon, rel=1e-12)
    assert errors.delta_lower(epsilon) == pytest.approx(delta, rel=1e-12)
    # Either event may be the telling one.
    for pair in ((0.001, 0.6), (0.6, 0.001)):
        assert float(Errors(*pair).epsilon_lower(0.0)) == pytest.approx(math.log(400), rel=1e-12)


def test_errors_that_any_guarantee_allows_give_nothing():
    for rates in ((0.5, 0.5), (1.0, 1.0), (1.0, 1e-9), (0.9, 0.3)):
        errors = Errors(np.array(rates[0]), np.array(rates[1]))
        assert float(errors.mu_lower()) <= 0.0 and float(errors.epsilon_lower(0.01)) <= 0.0
        assert errors.delta_lower(0.5) == 0.0


def test_ties_count_against_the_test():
    errors = errors_above(1.0, np.array([1.0, 2.0]), np.array([0.0, 1.0]), 0.02)
    half = float(rate_upper(1, 2, 0.01))
    assert float(errors.false_negative) == half
    assert float(errors.false_positive) == float(rate_upper(0, 2, 0.01))


@pytest.mark.parametrize("method", ["gaussian-dp", "clopper-pearson"])
def test_threshold_is_near_the_best(method):
    rng = np.random.default_rng(0)
    one, other = rng.standard_normal(5000) + 1.5, rng.standard_normal(5000)
    chosen = choose_threshold(one, other, 1e-3, method, 1e-5)
    errors = errors_above(np.linspace(-3.0, 4.0, 300), one, other, 1e-3)
    bounds = errors.mu_lower() if method == "gaussian-dp" else errors.epsilon_lower(1e-5)
    found = errors_above(chosen, one, other, 1e-3)
    bound = found.mu_lower() if method == "gaussian-dp" else found.epsilon_lower(1e-5)
    assert bound >= (0.98 if method == "gaussian-dp" else 0.9) * bounds.max()


def test_discriminant_is_the_likelihood_ratio_of_correlated_noise():
    rng = np.random.default_rng(0)
    root = rng.standard_normal((3, 3))
    shift = np.array([0.4, -0.2, 0.1])
    noise = rng.standard_normal((2, 20_000, 3)) @ root.T
    found = discriminant(noise[0] + shift, noise[1])
    wanted = np.linalg.solve(root @ root.T, shift)
    assert found @ wanted > 0.99 * np.linalg.norm(found) * np.linalg.norm(wanted)


def test_discriminant_sees_what_has_no_noise():
    rng = np.random.default_rng(0)
    one, other = rng.standard_normal((2, 500, 2))
    # A constant that differs, one that does not, and a combination that is free of noise.
    one = np.column_stack([one, np.full(500, 3.0), np.ones(500)])
    other = np.column_stack([other, np.full(500, 3.5), np.ones(500)])
    direction = discriminant(one, other)
    assert direction[3] == 0.0
    assert (one @ direction).min() > (other @ direction).max()
    shared = rng.standard_normal((2, 500, 1))
    one, other = (np.hstack([part, part + k]) for k, part in enumerate(shared))
    direction = discriminant(one, other)
    assert (one @ direction).min() > (other @ direction).max()
