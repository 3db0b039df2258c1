"""DPPCA: exact Frobenius sensitivity, symmetric noise of the right scale, planted subspaces."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from normal_noise import is_normal
from scipy import sparse
from scipy.optimize import minimize
from sklearn.decomposition import PCA

from skdp.mechanisms import analytic_gaussian_sigma, record_releases
from skdp.plans.second_moments import packed_moments, second_moment_bound, unpack_matrix
from skdp.preprocessing import DPPCA
from skdp.testing import replay_on_neighbour

WEIGHTS = (0.0, 0.1, 0.5, 1.0, 2.0)


def planted(n=4000, d=12, rank=2, noise=0.05, seed=0):
    """Return rows of norm about 0.7 near a random subspace, and an orthonormal basis of it."""
    rng = np.random.default_rng(seed)
    basis = np.linalg.qr(rng.standard_normal((d, rank)))[0].T
    X = rng.standard_normal((n, rank)) * np.linspace(0.5, 0.4, rank) @ basis
    return X + noise * rng.standard_normal((n, d)), basis


def moments(row, weight):
    """Return (x x^T, a x) as one vector of the Frobenius geometry, written out anew."""
    return np.concatenate([np.outer(row, row).ravel(), math.sqrt(weight) * row])


def extreme_rows(d, weight):
    """Return two rows of norm 1 at the angle that is worst: x.y = -a^2 / 2."""
    cosine = -weight / 2.0
    one, other = np.zeros(d), np.zeros(d)
    one[0], other[0], other[1] = 1.0, cosine, math.sqrt(1.0 - cosine**2)
    return one, other


@settings(max_examples=300, deadline=None)
@given(
    pair=st.integers(1, 5).flatmap(
        lambda d: hnp.arrays(np.float64, (2, d), elements=st.floats(-1.0, 1.0))
    ),
    weight=st.sampled_from(WEIGHTS),
)
def test_no_pair_of_rows_exceeds_the_bound(pair, weight):
    pair = pair / np.maximum(1.0, np.linalg.norm(pair, axis=1, keepdims=True))
    bound = second_moment_bound(pair.shape[1], weight)
    one, other = (moments(row, weight) for row in pair)
    assert np.linalg.norm(one - other) <= bound.gap * (1.0 + 1e-12)
    assert np.linalg.norm(one) <= bound.norm * (1.0 + 1e-12)


@pytest.mark.parametrize("weight", WEIGHTS)
@pytest.mark.parametrize("d", [2, 3, 7])
def test_the_bound_is_attained(d, weight):
    bound = second_moment_bound(d, weight)
    one, other = extreme_rows(d, weight)
    gap = np.linalg.norm(moments(one, weight) - moments(other, weight))
    assert gap == pytest.approx(bound.gap, rel=1e-12)
    assert np.linalg.norm(moments(one, weight)) == pytest.approx(bound.norm, rel=1e-12)


@pytest.mark.parametrize("weight", [0.0, 0.5, 2.0])
def test_search_finds_nothing_beyond_the_bound(weight):
    bound = second_moment_bound(3, weight)

    def distance(flat):
        pair = flat.reshape(2, 3)
        pair = pair / np.maximum(1.0, np.linalg.norm(pair, axis=1, keepdims=True))
        return -np.linalg.norm(moments(pair[0], weight) - moments(pair[1], weight))

    rng = np.random.default_rng(0)
    found = max(
        -minimize(distance, rng.standard_normal(6), method="Nelder-Mead").fun for _ in range(12)
    )
    assert bound.gap * (1.0 - 1e-4) <= found <= bound.gap * (1.0 + 1e-9)


@pytest.mark.parametrize(("weight", "gap"), [(0.0, 1.0), (0.5, math.sqrt(2.0)), (2.0, 8.0**0.5)])
def test_a_single_feature(weight, gap):
    x = np.linspace(-1.0, 1.0, 2001)
    points = np.stack([x * x, math.sqrt(weight) * x])
    gaps = np.hypot(*(points[:, :, None] - points[:, None, :]))
    assert second_moment_bound(1, weight).gap == pytest.approx(gap)
    assert gaps.max() == pytest.approx(gap, rel=1e-9)


@pytest.mark.parametrize("weight", [0.0, 0.5])
def test_packing_keeps_distances_and_unpacks(weight):
    rng = np.random.default_rng(0)
    A, B = rng.standard_normal((2, 6, 4))
    packed = [packed_moments(rows, weight) for rows in (A, B)]
    wanted = [sum(moments(row, weight) for row in rows) for rows in (A, B)]
    assert np.linalg.norm(packed[0] - packed[1]) == pytest.approx(
        np.linalg.norm(wanted[0] - wanted[1]), rel=1e-12
    )
    np.testing.assert_allclose(unpack_matrix(packed[0][:10], 4), A.T @ A, atol=1e-12)
    np.testing.assert_allclose(packed_moments(sparse.csr_matrix(A), weight), packed[0], atol=1e-12)


@pytest.mark.parametrize("center", [False, True])
@pytest.mark.parametrize("data_norm", [1.0, 250.0])
def test_replay_attains_the_sensitivity(center, data_norm):
    X = planted()[0] * data_norm
    other = X.copy()
    X[3], other[3] = (1e6 * row for row in extreme_rows(12, 0.5 * center))
    pca = DPPCA(2, center=center, data_norm=data_norm)
    report = replay_on_neighbour(pca, X, None, other, None)
    assert report.largest_ratio == pytest.approx(1.0, abs=1e-9)
    sparse_report = replay_on_neighbour(
        pca, sparse.csr_matrix(X), None, sparse.csr_matrix(other), None
    )
    assert sparse_report.largest_ratio == pytest.approx(1.0, abs=1e-9)


@pytest.mark.parametrize("center", [False, True])
def test_replay_of_random_replacements_and_removals(center):
    rng = np.random.default_rng(1)
    for seed in range(10):
        X = planted(n=60, seed=seed)[0]
        other = X.copy()
        other[3] = rng.standard_normal(12) * 10.0 ** rng.integers(-3, 4)
        replay_on_neighbour(DPPCA(2, center=center), X, None, other, None)
        # Here a row of zeros contributes nothing: it stands for a removed one.
        X[3] *= 1e3
        other[3] = 0.0
        report = replay_on_neighbour(
            DPPCA(2, center=center, adjacency="add-remove"), X, None, other, None
        )
        assert report.largest_ratio == pytest.approx(1.0, abs=1e-9)


@pytest.mark.parametrize(
    ("adjacency", "center", "sensitivity"),
    [
        ("replace-one", False, math.sqrt(2.0)),
        ("add-remove", False, 1.0),
        ("replace-one", True, 5.0 / math.sqrt(8.0)),
        ("add-remove", True, math.sqrt(1.5)),
    ],
)
def test_noise_is_calibrated_to_the_declared_sensitivity(adjacency, center, sensitivity):
    with record_releases() as trace:
        DPPCA(2, 0.7, 1e-5, adjacency=adjacency, center=center).fit(planted()[0])
    (release,) = trace.releases
    assert release.sensitivity == pytest.approx(sensitivity, rel=1e-12)
    assert release.sigma == pytest.approx(analytic_gaussian_sigma(0.7, 1e-5, sensitivity), rel=1e-9)


def test_the_matrix_has_symmetric_noise_of_the_right_scale():
    """Of 180,300 entries: false alarm below 1e-6; a scale 5 % off is noticed."""
    d = 600
    X = np.random.default_rng(0).standard_normal((20, d)) / math.sqrt(d)
    with record_releases() as trace:
        DPPCA(1, 1.0, 1e-6).fit(X)
    (release,) = trace.releases
    noise = unpack_matrix(release.output - release.value, d)
    np.testing.assert_array_equal(noise, noise.T)
    sigma = analytic_gaussian_sigma(1.0, 1e-6, math.sqrt(2.0))
    parts = (
        np.diag(noise) / sigma,
        noise[np.triu_indices(d, 1)] / (sigma / math.sqrt(2.0)),
    )

    assert is_normal(parts[0]) and is_normal(parts[1])
    assert not is_normal(parts[1] * 1.05) and not is_normal(parts[1] / 1.05)
    assert not is_normal(parts[0] * math.sqrt(2.0)) and not is_normal(parts[0] / math.sqrt(2.0))


@pytest.mark.parametrize("center", [False, True])
def test_finds_a_planted_subspace(center):
    """At epsilon = 1 the noise moves the subspace by about 0.02; 0.2 is out of reach."""
    X, basis = planted(n=40_000)
    if center:
        X = X * 0.5 + 0.3 * basis[0]
    pca = DPPCA(2, 1.0, 1e-6, center=center).fit(X)
    cosines = np.linalg.svd(pca.components_ @ basis.T, compute_uv=False)
    assert cosines.min() > math.cos(0.2)
    np.testing.assert_allclose(pca.components_ @ pca.components_.T, np.eye(2), atol=1e-12)
    assert np.all(pca.explained_variance_ > 2.0 * pca.noise_edge_)


def test_little_epsilon_loses_the_subspace():
    X, basis = planted(n=300)
    pca = DPPCA(2, 0.01, 1e-6).fit(X)
    assert pca.noise_edge_ > 5.0
    assert np.linalg.svd(pca.components_ @ basis.T, compute_uv=False).min() < 0.99


@pytest.mark.parametrize("whiten", [False, True])
def test_agrees_with_pca_when_noise_is_negligible(whiten):
    X = planted(noise=0.02)[0]
    X = X[np.linalg.norm(X, axis=1) <= 1.0] + 0.1
    exact = PCA(2, whiten=whiten).fit(X)
    pca = DPPCA(2, 1e9, data_norm=2.0, center=True, whiten=whiten).fit(X)
    signs = np.sign(np.sum(pca.components_ * exact.components_, axis=1))
    np.testing.assert_allclose(pca.components_, exact.components_ * signs[:, None], atol=1e-4)
    np.testing.assert_allclose(pca.mean_, exact.mean_, atol=1e-5)
    np.testing.assert_allclose(pca.explained_variance_, exact.explained_variance_, rtol=1e-3)
    np.testing.assert_allclose(pca.transform(X), exact.transform(X) * signs, atol=1e-2)


def test_signs_are_determined():
    components = DPPCA(epsilon=5.0).fit(planted()[0]).components_
    assert components.shape == (12, 12)
    largest = np.abs(components).argmax(axis=1)
    assert np.all(components[np.arange(12), largest] > 0.0)


def test_projection_passes_the_norm_on():
    X = planted()[0] * 3.0
    pca = DPPCA(3, data_norm=2.0).fit(X)
    assert pca.data_norm_ == 2.0 and pca.mean_ is None
    assert np.linalg.norm(pca.transform(X * 100.0), axis=1).max() <= 2.0 * (1.0 + 1e-12)


def test_sparse_and_dense_rows_give_the_same_answer():
    rng = np.random.default_rng(0)
    X = sparse.csr_array(rng.standard_normal((500, 8)) * (rng.random((500, 8)) < 0.3))
    for container in (sparse.csr_array, sparse.csr_matrix):
        with record_releases() as one:
            DPPCA(2).fit(container(X))
        with record_releases() as other:
            pca = DPPCA(2).fit(X.toarray())
        np.testing.assert_allclose(one.releases[0].value, other.releases[0].value, atol=1e-10)
        np.testing.assert_allclose(pca.transform(container(X)), pca.transform(X.toarray()))


def test_names_of_components():
    pandas = pytest.importorskip("pandas", reason="needs pandas")
    pca = DPPCA(2).set_output(transform="pandas").fit(planted()[0])
    assert pca.get_feature_names_out().tolist() == ["dppca0", "dppca1"]
    assert isinstance(pca.transform(planted()[0]), pandas.DataFrame)
