"""DPStandardScaler: exact sensitivity of joint moments, right noise, the limit without noise."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from normal_noise import is_normal
from scipy.optimize import minimize_scalar
from sklearn.preprocessing import StandardScaler

from skdp.mechanisms import analytic_gaussian_sigma, record_releases
from skdp.preprocessing import BoundedScaler, DPStandardScaler
from skdp.preprocessing.dp_standard_scaler import _SQUARE_WEIGHTS, moment_bound, moment_sums
from skdp.testing import replay_on_neighbour

CRITICAL = math.sqrt((11.0 + 5.0 * math.sqrt(5.0)) / 8.0)
WEIGHTS = (1.0, 1.2, math.sqrt(2.0), 1.5, 1.665, 1.8, 2.5, 6.0)


def contribution(u, weight):
    """Return (u, w (u^2 - c)) for an array of u, written out anew."""
    if weight == 0.0:
        return np.stack([u, 0.0 * u])
    return np.stack([u, weight * (u * u - 0.5 - 0.5 / weight**2)])


def table(n=400, d=3, seed=0):
    rng = np.random.default_rng(seed)
    return rng.standard_normal((n, d)) * np.linspace(0.5, 2.0, d) + np.linspace(-1.0, 1.0, d)


@pytest.mark.parametrize("weight", [0.0, *WEIGHTS])
def test_sensitivity_is_the_largest_there_is(weight):
    """All pairs on a fine grid that holds the extreme points to 1e-6."""
    u = np.linspace(-1.0, 1.0, 2001)
    points = contribution(u, weight)
    bound = moment_bound(1, weight)
    gaps = np.hypot(*(points[:, :, None] - points[:, None, :]))
    assert bound.gap * (1.0 - 1e-6) <= gaps.max() <= bound.gap * (1.0 + 1e-12)
    norms = np.hypot(*points)
    assert norms.max() == pytest.approx(bound.norm, rel=1e-12)


@settings(max_examples=300, deadline=None)
@given(
    pair=st.integers(1, 4).flatmap(
        lambda d: hnp.arrays(np.float64, (2, d), elements=st.floats(-1.0, 1.0))
    ),
    weight=st.sampled_from([0.0, *WEIGHTS]),
)
def test_no_pair_of_rows_exceeds_the_bound(pair, weight):
    bound = moment_bound(pair.shape[1], weight)
    one, other = (moment_sums(row[None], weight) for row in pair)
    assert np.linalg.norm(one - other) <= bound.gap * (1.0 + 1e-12)
    assert np.linalg.norm(one) <= bound.norm * (1.0 + 1e-12)


def test_squares_are_free_up_to_the_critical_weight_only():
    assert moment_bound(1, CRITICAL * (1.0 - 1e-9)).gap == pytest.approx(2.0, rel=1e-13)
    assert moment_bound(1, CRITICAL * (1.0 + 1e-3)).gap > 2.0002
    s = 3.0 - math.sqrt(5.0)  # where the distance of (1, 1 - s) reaches 2
    points = contribution(np.array([1.0, s - 1.0]), CRITICAL)
    assert np.linalg.norm(points[:, 0] - points[:, 1]) == pytest.approx(2.0, rel=1e-14)
    assert _SQUARE_WEIGHTS["replace-one"] < CRITICAL


@pytest.mark.parametrize("adjacency", ["replace-one", "add-remove"])
def test_weights_make_the_least_total_noise(adjacency):
    def total(weight):
        return moment_bound(1, weight).sensitivity(adjacency) ** 2 * (1.0 + weight**-2)

    best = minimize_scalar(total, bounds=(1.0, 5.0), method="bounded", options={"xatol": 1e-9})
    assert total(_SQUARE_WEIGHTS[adjacency]) <= best.fun * (1.0 + 2e-4)


@pytest.mark.parametrize(("with_mean", "with_std"), [(True, True), (True, False), (False, True)])
@pytest.mark.parametrize("d", [1, 5])
def test_replay_attains_the_sensitivity(d, with_mean, with_std):
    X = table(d=d)
    other = X.copy()
    X[7], other[7] = 100.0, -100.0
    scaler = DPStandardScaler(lower=-3.0, upper=5.0, with_mean=with_mean, with_std=with_std)
    report = replay_on_neighbour(scaler, X, None, other, None)
    assert report.largest_ratio == pytest.approx(1.0, abs=1e-9)


def test_replay_of_random_replacements():
    rng = np.random.default_rng(1)
    for seed in range(20):
        X = table(seed=seed)
        other = X.copy()
        other[3] = rng.standard_normal(3) * 10.0 ** rng.integers(-3, 4)
        replay_on_neighbour(DPStandardScaler(lower=-3.0, upper=5.0), X, None, other, None)


@pytest.mark.parametrize("extreme", [0.0, 1.0])
def test_a_null_record_attains_the_sensitivity_of_add_remove(extreme):
    """The sums are over records: leaving one out is what a null record does."""
    units = np.random.default_rng(0).uniform(-1.0, 1.0, (9, 4))
    units[2] = extreme
    weight = _SQUARE_WEIGHTS["add-remove"]
    moved = np.linalg.norm(moment_sums(units, weight) - moment_sums(np.delete(units, 2, 0), weight))
    assert moved == pytest.approx(moment_bound(4, weight).norm, rel=1e-12)


@pytest.mark.parametrize("adjacency", ["replace-one", "add-remove"])
def test_noise_is_calibrated_to_the_declared_sensitivity(adjacency):
    sensitivity = {"replace-one": 2.0, "add-remove": 3.0 / math.sqrt(8.0)}[adjacency] * math.sqrt(3)
    scaler = DPStandardScaler(0.7, 1e-5, adjacency=adjacency)
    with record_releases() as trace:
        scaler.fit(table())
    (release,) = trace.releases
    assert release.sensitivity == pytest.approx(sensitivity, rel=1e-12)
    assert release.sigma == pytest.approx(analytic_gaussian_sigma(0.7, 1e-5, sensitivity), rel=1e-9)


@pytest.mark.parametrize("adjacency", ["replace-one", "add-remove"])
def test_the_published_mean_has_noise_of_the_right_scale(adjacency):
    """Of 20,000 features: false alarm below 1e-6; a scale 6 % off passes in 1e-10."""
    d, n = 20_000, 50
    X = np.full((n, d), 0.3)
    scaler = DPStandardScaler(1e4, 1e-6, lower=-1.0, upper=1.0, adjacency=adjacency).fit(X)
    sensitivity = {"replace-one": 2.0, "add-remove": 3.0 / math.sqrt(8.0)}[adjacency] * math.sqrt(d)
    sigma = analytic_gaussian_sigma(1e4, 1e-6, sensitivity) / n
    errors = (scaler.mean_ - 0.3) / sigma
    assert np.abs(scaler.mean_).max() < 1.0  # nothing was clipped

    assert is_normal(errors)
    assert not is_normal(errors * 1.06) and not is_normal(errors / 1.06)


def test_agrees_with_standard_scaler_when_noise_is_negligible():
    X = table()
    scaler = DPStandardScaler(1e7, lower=-9.0, upper=9.0, row_norm=None).fit(X)
    exact = StandardScaler().fit(X)
    np.testing.assert_allclose(scaler.mean_, exact.mean_, atol=1e-3)
    np.testing.assert_allclose(scaler.scale_, exact.scale_, rtol=2e-3)
    np.testing.assert_allclose(scaler.transform(X), exact.transform(X), atol=1e-2)
    only_std = DPStandardScaler(1e7, lower=-9.0, upper=9.0, row_norm=None, with_mean=False)
    np.testing.assert_allclose(
        only_std.fit_transform(X), StandardScaler(with_mean=False).fit_transform(X), atol=1e-2
    )
    only_mean = DPStandardScaler(1e7, lower=-9.0, upper=9.0, with_std=False).fit(X)
    assert only_mean.scale_ is None and only_mean.var_ is None
    np.testing.assert_allclose(
        only_mean.transform(X), StandardScaler(with_std=False).fit_transform(X), atol=1e-2
    )


def test_variance_is_never_less_than_its_noise_and_never_more_than_the_bounds_allow():
    X = np.full((40, 200), 0.5)
    scaler = DPStandardScaler(0.1, 1e-6).fit(X)
    assert np.all(scaler.var_ > 0.0) and np.all(scaler.var_ <= 1.0)
    precise = DPStandardScaler(1e5, 1e-6).fit(X)
    noise = analytic_gaussian_sigma(1e5, 1e-6, 2.0 * math.sqrt(200)) / 40
    assert np.all(precise.var_ >= noise * math.sqrt(1 / 1.665**2 + 0.2))


def test_an_outlier_counts_as_the_bound():
    X = table()
    wild = X.copy()
    X[0], wild[0] = 5.0, 1e300
    one, other = (DPStandardScaler(1e7, lower=-3.0, upper=5.0).fit(rows) for rows in (X, wild))
    np.testing.assert_allclose(one.mean_, other.mean_, atol=1e-2)
    np.testing.assert_allclose(other.transform(wild)[0], one.transform(X)[0], rtol=1e-2)


def test_public_bounds_that_fit_need_no_private_scaler():
    """At epsilon = 1 and wide bounds the private scaler spreads the values; public ones do not."""
    X = table(n=5000, d=2)
    public = BoundedScaler(-1000.0, 1000.0, row_norm=None).fit_transform(X)
    private = DPStandardScaler(1.0, 1e-6, lower=-1000.0, upper=1000.0).fit_transform(X)
    assert private.std() > 5.0 * public.std()
