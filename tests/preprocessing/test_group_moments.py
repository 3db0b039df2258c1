"""DPStandardScaler by row norm: exact sensitivity of means and energies, right noise, the limit."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from normal_noise import is_normal

from skdp.mechanisms import analytic_gaussian_sigma, record_releases
from skdp.preprocessing import DPStandardScaler
from skdp.preprocessing.dp_standard_scaler import group_moment_bound, group_moment_sums
from skdp.testing import check_private_estimator, replay_on_neighbour

GROUPS = (0, 1, 2, 4)
SENSITIVITY = {"replace-one": 5.0 / math.sqrt(8.0), "add-remove": math.sqrt(1.5)}


def table(n=400, d=4, seed=0):
    rng = np.random.default_rng(seed)
    return rng.standard_normal((n, d)) * np.linspace(0.1, 0.3, d) + np.linspace(-0.2, 0.2, d)


def extreme_pair(n_groups):
    """Return two rows of norm 1, of four features, that are furthest apart."""
    x, y = np.zeros((2, 4))
    if n_groups < 2:
        x[0], y[0] = 1.0, -1.0
        return x, y
    t = math.asin(0.25) / 2.0
    x[0], x[-1] = math.cos(t), math.sin(t)
    y[0], y[-1] = -math.sin(t), -math.cos(t)
    return x, y


def into_ball(rows):
    return rows / np.maximum(1.0, np.linalg.norm(rows, axis=1, keepdims=True))


@settings(max_examples=150, deadline=None)
@given(
    pair=hnp.arrays(np.float64, (2, 4), elements=st.floats(-1.0, 1.0)),
    n_groups=st.sampled_from(GROUPS),
)
def test_no_pair_of_rows_exceeds_the_bound(pair, n_groups):
    bound = group_moment_bound(n_groups, "")
    one, other = (group_moment_sums(row[np.newaxis], n_groups) for row in into_ball(pair))
    assert np.linalg.norm(one - other) <= bound.gap * (1.0 + 1e-12)
    assert np.linalg.norm(one) <= bound.norm * (1.0 + 1e-12)


@pytest.mark.parametrize("n_groups", GROUPS)
def test_the_bound_is_attained(n_groups):
    bound = group_moment_bound(n_groups, "")
    one, other = (group_moment_sums(row[None], n_groups) for row in extreme_pair(n_groups))
    assert np.linalg.norm(one - other) == pytest.approx(bound.gap, rel=1e-12)
    alone = group_moment_sums(np.eye(4)[:1], n_groups)
    assert np.linalg.norm(alone) == pytest.approx(bound.norm, rel=1e-12)


@pytest.mark.parametrize("n_groups", GROUPS)
def test_replay_attains_the_sensitivity(n_groups):
    """Rows beyond the norm are shortened to it before they count."""
    X = table()
    other = X.copy()
    X[7], other[7] = np.multiply(extreme_pair(n_groups), 100.0)
    how = {"n_groups": n_groups} if n_groups else {"with_std": False}
    report = replay_on_neighbour(DPStandardScaler(input_norm=3.0, **how), X, None, other, None)
    assert report.largest_ratio == pytest.approx(1.0, abs=1e-9)


@pytest.mark.parametrize("adjacency", SENSITIVITY)
def test_noise_is_calibrated_to_the_declared_sensitivity(adjacency):
    scaler = DPStandardScaler(0.7, 1e-5, input_norm=3.0, n_groups=2, adjacency=adjacency)
    with record_releases() as trace:
        scaler.fit(table())
    (release,) = trace.releases
    sensitivity = SENSITIVITY[adjacency]
    assert release.sensitivity == pytest.approx(sensitivity, rel=1e-12)
    assert release.sigma == pytest.approx(analytic_gaussian_sigma(0.7, 1e-5, sensitivity), rel=1e-9)


@pytest.mark.parametrize("adjacency", SENSITIVITY)
def test_the_published_mean_has_noise_of_the_right_scale(adjacency):
    """Of 20,000 features: false alarm below 1e-6; a scale 6 % off passes in 1e-10."""
    d, n = 20_000, 50
    X = np.full((n, d), 0.5 / math.sqrt(d))
    scaler = DPStandardScaler(1.0, 1e-6, input_norm=2.0, n_groups=4, adjacency=adjacency).fit(X)
    sigma = analytic_gaussian_sigma(1.0, 1e-6, SENSITIVITY[adjacency])
    errors = (scaler.mean_ - X[0]) / (2.0 * sigma * math.sqrt(2.0) / n)

    assert is_normal(errors)
    assert not is_normal(errors * 1.06) and not is_normal(errors / 1.06)


def test_agrees_with_exact_moments_when_noise_is_negligible():
    X = table()
    exact = X.var(axis=0)
    each = DPStandardScaler(1e9, input_norm=5.0, row_norm=None).fit(X)
    np.testing.assert_allclose(each.mean_, X.mean(axis=0), atol=1e-4)
    np.testing.assert_allclose(each.var_, exact, rtol=5e-3)
    pairs = DPStandardScaler(1e9, input_norm=5.0, row_norm=None, n_groups=2).fit(X)
    np.testing.assert_allclose(pairs.var_, np.repeat(exact.reshape(2, 2).mean(1), 2), rtol=5e-3)
    expected = (X - X.mean(axis=0)) / np.sqrt(pairs.var_)
    np.testing.assert_allclose(pairs.transform(X), expected, atol=2e-2)


def test_checks_of_a_private_estimator():
    check_private_estimator(DPStandardScaler(input_norm=1.0, row_norm=1.0))
