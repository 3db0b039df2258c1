"""DPQuantileClipper: exact sensitivity of its histograms, right noise, quantiles to the grid."""

import math
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from normal_noise import is_normal

from skdp.mechanisms import analytic_gaussian_sigma, record_releases
from skdp.preprocessing import DPQuantileClipper
from skdp.preprocessing.dp_quantile_clipper import centred_histogram, histogram_bound
from skdp.testing import replay_on_neighbour


def table(n=2000, d=3, seed=0):
    rng = np.random.default_rng(seed)
    return rng.lognormal(3.0, 1.0, (n, d)) * np.array([1.0, -1e4, 1e-3])[:d]


def test_histograms_count_and_are_centred():
    X = np.array([[1.0], [2.0], [2.0], [3.0], [4.0]])
    cells = centred_histogram(X, np.array([[2.0], [3.0]]))
    np.testing.assert_allclose(cells[:, 0], np.array([3.0, 1.0, 1.0]) - 5.0 / 3.0)


@settings(max_examples=200, deadline=None)
@given(
    d=st.integers(1, 5),
    seed=st.integers(0, 2**32 - 1),
    same=st.booleans(),
)
def test_no_pair_of_rows_exceeds_the_bound(d, seed, same):
    rng = np.random.default_rng(seed)
    thresholds = np.sort(rng.standard_normal((2, d)), axis=0)
    if same:
        thresholds[1] = thresholds[0]
    one, other = (centred_histogram(rng.standard_normal((1, d)) * 2, thresholds) for _ in range(2))
    bound = histogram_bound(d)
    assert np.linalg.norm(one - other) <= bound.gap * (1.0 + 1e-12)
    assert np.linalg.norm(one) == pytest.approx(bound.norm, rel=1e-12)


@pytest.mark.parametrize("d", [1, 3])
def test_replay_attains_the_sensitivity(d):
    X = table(d=d)
    other = X.copy()
    X[5], other[5] = 1e13, -1e13
    report = replay_on_neighbour(DPQuantileClipper(), X, None, other, None)
    np.testing.assert_allclose(report.distances / report.sensitivities, 1.0, atol=1e-9)
    assert report.distances.size == 17


def test_replay_of_random_replacements():
    rng = np.random.default_rng(1)
    for seed in range(20):
        X = table(seed=seed, n=200)
        other = X.copy()
        other[3] = rng.standard_normal(3) * 10.0 ** rng.integers(-6, 9)
        replay_on_neighbour(DPQuantileClipper(30.0), X, None, other, None, seed=seed)


def test_a_null_record_moves_a_histogram_by_its_norm():
    X, thresholds = table(n=9), np.array([[10.0, -1e5, 0.01], [30.0, -1e4, 0.03]])
    moved = centred_histogram(X, thresholds) - centred_histogram(X[1:], thresholds)
    assert np.linalg.norm(moved) == pytest.approx(histogram_bound(3).norm, rel=1e-12)


@pytest.mark.parametrize("adjacency", ["replace-one", "add-remove"])
def test_all_steps_together_cost_what_was_asked(adjacency):
    dp_accounting = pytest.importorskip("dp_accounting", reason="needs dp-accounting")
    from dp_accounting.pld import PLDAccountant as TheirAccountant

    clipper = DPQuantileClipper(0.8, 1e-5, adjacency=adjacency)
    with record_releases() as trace:
        clipper.fit(table())
    sensitivity = {"replace-one": math.sqrt(6.0), "add-remove": math.sqrt(2.0)}[adjacency]
    multipliers = {r.sigma / r.sensitivity for r in trace.releases}
    assert len(multipliers) == 1 and len(trace.releases) == 17
    assert all(r.sensitivity == pytest.approx(sensitivity) for r in trace.releases)
    theirs = TheirAccountant().compose(
        dp_accounting.GaussianDpEvent(multipliers.pop()), len(trace.releases)
    )
    assert theirs.get_epsilon(1e-5) == pytest.approx(0.8, rel=2e-3)
    epsilon, delta = clipper.privacy_spent_
    assert 0.8 * (1 - 1e-8) <= epsilon <= 0.8 and delta == 1e-5
    assert clipper.privacy_spent_.epsilon_at(1e-5) == pytest.approx(epsilon, rel=1e-14)


def test_noise_has_the_right_scale():
    """Of 17 x 3 x 400 numbers: false alarm below 1e-6; a scale 6 % off passes in 1e-10."""
    X = np.random.default_rng(0).standard_normal((50, 400))
    with warnings.catch_warnings(), record_releases() as trace:
        warnings.simplefilter("ignore")
        DPQuantileClipper(1.0, 1e-6).fit(X)
    sigma = analytic_gaussian_sigma(1.0, 1e-6, math.sqrt(17 * 800))
    errors = np.concatenate([(r.output - r.value).ravel() for r in trace.releases]) / sigma

    assert is_normal(errors)
    assert not is_normal(errors * 1.06) and not is_normal(errors / 1.06)


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    scale=st.integers(-5, 9),
    shift=st.sampled_from([0.0, 1.0, -30.0]),
    levels=st.sampled_from([(0.02, 0.98), (0.0, 1.0), (0.25, 0.75), (0.5, 0.9)]),
)
def test_quantiles_to_the_grid_when_noise_is_negligible(seed, scale, shift, levels):
    rng = np.random.default_rng(seed)
    X = (rng.standard_normal((400, 2)) + shift) * 10.0**scale
    clipper = DPQuantileClipper(1e7, quantiles=levels).fit(X)
    for quantile, level in zip((clipper.lower_, clipper.upper_), levels, strict=True):
        near = np.abs(quantile) * 2e-3 + 2e-9
        # One row is 500 standard deviations of a noisy count.
        assert np.all(np.sum(X <= quantile - near, axis=0) <= level * 400 + 1)
        assert np.all(np.sum(X <= quantile + near, axis=0) >= level * 400 - 1)


def test_rank_errors_are_those_of_the_noise():
    """At epsilon = 1: within 6 deviations of a count, of which 17 decide (false alarm < 1e-6)."""
    X = np.random.default_rng(0).lognormal(8.0, 2.0, (20_000, 4))
    clipper = DPQuantileClipper(1.0, 1e-6, quantiles=(0.1, 0.9)).fit(X)
    deviation = analytic_gaussian_sigma(1.0, 1e-6, math.sqrt(17 * 8)) * math.sqrt(2.0 / 3.0)
    grid = 20_000 * 0.002  # a relative step of 1e-3 in a lognormal of width 2
    for quantile, level in ((clipper.lower_, 0.1), (clipper.upper_, 0.9)):
        rank = np.sum(X <= quantile, axis=0)
        assert np.all(np.abs(rank - level * 20_000) < 6.0 * deviation + grid)


def test_levels_move_away_from_the_noise():
    X = table(n=20_000)
    assert DPQuantileClipper(1e6).fit(X).quantiles_ == (0.02, 0.98)
    first, last = DPQuantileClipper(1.0, quantiles=(0.0, 1.0)).fit(X).quantiles_
    margin = 4 * analytic_gaussian_sigma(1.0, 1e-6, math.sqrt(17 * 6)) * math.sqrt(2 / 3) / 20_000
    assert first == pytest.approx(margin) and last == pytest.approx(1 - margin)
    # Levels that the noise leaves alone stay, wherever they are.
    for levels in ((0.9, 0.95), (0.05, 0.1)):
        assert DPQuantileClipper(1e6, quantiles=levels).fit(X).quantiles_ == levels
    # Not one sided by accident: extreme levels at one end stay ordered.
    for levels in ((0.97, 0.99), (0.01, 0.03)):
        first, last = DPQuantileClipper(0.3, quantiles=levels).fit(X).quantiles_
        assert first <= last


def test_too_little_epsilon_is_said_before_anything_is_spent():
    class Refuses:
        def reserve(self, *args, **kwargs):
            raise AssertionError("charged")

    clipper = DPQuantileClipper(0.01, accountant=Refuses())
    with warnings.catch_warnings(), pytest.raises(UserWarning, match="too small"):
        warnings.simplefilter("error")
        clipper.fit(table(n=300))


@pytest.mark.parametrize("epsilon", [0.01, 1.0, 1e6])
def test_columns_with_one_value_or_few(epsilon):
    """Capital gains: nearly all zero. Bounds are ordered and finite, and hold the value."""
    X = np.zeros((3000, 3))
    X[:60, 1] = 1e4
    X[:, 2] = np.arange(3000) % 2
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        clipper = DPQuantileClipper(epsilon, row_norm=None).fit(X)
    assert np.all(clipper.lower_ < clipper.upper_)
    assert np.all(np.isfinite(clipper.transform(X)))
    if epsilon == 1e6:
        assert np.all(clipper.lower_ <= 0.0) and clipper.upper_[2] >= 1.0
        out = clipper.transform(X)[:, 2]
        np.testing.assert_allclose([out[0], out[1]], [-1.0, 1.0], atol=0.01)


def test_a_narrow_public_range_takes_fewer_steps_and_is_kept():
    X = np.random.default_rng(0).normal(50.0, 10.0, (5000, 1))
    clipper = DPQuantileClipper(1.0, lower=0.0, upper=60.0, quantiles=(0.0, 1.0)).fit(X)
    assert 0.0 <= clipper.lower_[0] < clipper.upper_[0] <= 60.0
    assert clipper.privacy_spent_.event.count < 17
