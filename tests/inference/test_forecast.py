"""Widths before the look, against closed forms and against looks that are simulated."""

import math

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import expit, logit
from scipy.stats import norm

from skdp.inference._forecast import expected_widths, mean_curvature
from skdp.inference._posterior import Reading, posterior_of

NOISELESS = {"score_noise": 0.0, "matrix_noise": 0.0, "fit_noise": 0.0, "prior_sd": 1e6}


def moments_of(d, spread=1 / 3):
    """Return second moments of an intercept and even columns, scaled to norm 1."""
    return np.diag([1.0] + [spread] * d) / (1.0 + d)


@pytest.mark.parametrize(("prevalence", "auc"), [(0.5, 0.5), (0.03, 0.8), (0.3, 0.95), (0.9, 0.7)])
def test_the_mean_curvature_is_that_of_the_binormal_model(prevalence, auc):
    variance = 2.0 * norm.ppf(auc) ** 2
    total = prevalence * (1 - prevalence)
    if variance > 0:
        total = sum(
            share * quad(lambda m, c=centre: expit(m) * expit(-m)
                         * norm.pdf(m, c, math.sqrt(variance)), centre - 30, centre + 30)[0]
            for share, centre in (
                (prevalence, logit(prevalence) + variance / 2),
                (1 - prevalence, logit(prevalence) - variance / 2),
            )
        )  # fmt: skip
    assert mean_curvature(prevalence, auc) == pytest.approx(total, rel=1e-6)


def test_without_noise_it_is_the_width_without_privacy():
    G = moments_of(4)
    found = expected_widths(G, 2000, 0.2, contrasts=np.eye(5), **NOISELESS)
    wanted = 2 * norm.ppf(0.975) / np.sqrt(2000 * 0.2 * np.diag(G))
    np.testing.assert_allclose(found["width"], wanted, rtol=1e-6)
    np.testing.assert_allclose(found["width"] / found["width_ratio"], wanted, rtol=1e-9)


def test_noise_widens_and_records_narrow():
    G, contrasts = moments_of(6), np.eye(7)

    def told(n, noise, matrix=0.4):
        return expected_widths(
            G, n, 0.2, contrasts=contrasts, score_noise=noise, matrix_noise=matrix * noise,
            fit_noise=noise, prior_sd=2.5 * math.sqrt(7),
        )  # fmt: skip

    assert np.all(told(5000, 2.0)["width_ratio"] < told(5000, 6.0)["width_ratio"])
    assert np.all(told(20_000, 6.0)["width_ratio"] < told(5000, 6.0)["width_ratio"])
    assert np.all(told(5000, 6.0, 0.1)["width_ratio"] < told(5000, 6.0)["width_ratio"])
    lost = told(500, 1e4)
    np.testing.assert_allclose(lost["prior_share"], 1.0, rtol=1e-3)


def test_a_direction_without_information_has_the_prior_only():
    """Levels of a category add up to a constant: their differences are known, their sum is not."""
    G = np.diag([1.0, 1.0, 0.0])
    turn = np.linalg.qr(np.array([[1.0, 1, 1], [0, 1, -1], [2, -1, -1]]).T)[0]
    contrasts = np.array([[1.0, 0, 0], [0, 0, 1.0]]) @ turn.T
    found = expected_widths(turn @ G @ turn.T, 1000, 0.2, contrasts=contrasts, score_noise=1.0,
                            matrix_noise=0.3, fit_noise=1.0, prior_sd=2.0)  # fmt: skip
    assert found["width_ratio"][0] > 0.0 and found["width_ratio"][1] == 0.0
    assert found["prior_share"][0] < 0.1 and found["prior_share"][1] == pytest.approx(1.0, abs=1e-6)


@pytest.mark.parametrize(("n", "d", "s1"), [(20_000, 8, 8.4), (5000, 3, 4.0), (50_000, 12, 12.0)])
def test_forecasts_agree_with_looks(n, d, s1):
    """Within a tenth, where the smallest eigenvalue is four times the edge of the noise."""
    rng = np.random.default_rng(d)
    prior, s2 = 2.5 * math.sqrt(1 + d), s1 / 4.96
    G = moments_of(d)
    H = n * 0.2 * G
    told = expected_widths(G, n, 0.2, score_noise=s1, matrix_noise=s2, fit_noise=1.3 * s1,
                           prior_sd=prior, contrasts=np.eye(d + 1))  # fmt: skip
    measured = []
    for _ in range(10):
        delta = np.sqrt(1 / np.diag(H) + (1.3 * s1 / np.diag(H)) ** 2) * rng.normal(size=d + 1)
        score = H @ delta + np.sqrt(np.diag(H) + s1**2) * rng.normal(size=d + 1)
        full = rng.normal(0.0, s2, (d + 1, d + 1))
        reading = Reading(np.zeros(d + 1), score, s1, H + (full + full.T) / 2, s2)
        found = posterior_of(reading, np.full(d + 1, prior))
        low, high = found.quantiles(np.eye(d + 1), [0.025, 0.975]).T
        measured.append(high - low)
    np.testing.assert_allclose(np.median(measured, axis=0), told["width"], rtol=0.1)


def test_forecasts_count_every_noise():
    """Against the spread of simulated pivots, of 6,000 draws: 6 deviations are 6 %."""
    rng = np.random.default_rng(5)
    d, s1, s2, fit = 4, 20.0, 30.0, 400.0
    A = rng.normal(size=(3 * d, d))
    H = 300.0 * A.T @ A / (3 * d)
    found = expected_widths(H / 1000.0, 1000, 1.0, score_noise=s1, matrix_noise=s2, fit_noise=fit,
                            prior_sd=1e4, contrasts=np.eye(d))  # fmt: skip
    inverse = np.linalg.inv(H)
    size = (6000, d)
    root = np.linalg.cholesky(H)
    delta = (rng.normal(size=size) @ root.T + fit * rng.normal(size=size)) @ inverse
    full = rng.normal(0.0, s2, (*size, d))
    noise = np.einsum("nij,nj->ni", 0.5 * (full + full.transpose(0, 2, 1)), delta)
    pivot = rng.normal(size=size) @ root.T + s1 * rng.normal(size=size) + noise
    spread = (pivot @ inverse).std(axis=0)
    np.testing.assert_allclose(found["width"], 2 * norm.ppf(0.975) * spread, rtol=0.06)


def test_the_width_of_a_clinical_table():
    """20,000 records, 8 columns, epsilon 1, replace-one: at most 1.12 times the width without."""
    mu, n, d = 0.236704, 20_000, 8
    fit, look = mu * math.sqrt(0.4), mu * math.sqrt(0.6)
    s1 = 2 / math.hypot(fit, look)  # both readings of objective perturbation
    G = moments_of(d, spread=1.0)  # binary columns of +-1
    found = expected_widths(G, n, 0.2, score_noise=s1, matrix_noise=2 / look / 4.96,
                            fit_noise=2 / fit, prior_sd=7.5, contrasts=np.eye(d + 1))  # fmt: skip
    assert np.all(found["width_ratio"] < 1.12)
