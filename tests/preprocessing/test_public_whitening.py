"""Whitening by public photographs: channels are uncorrelated there, and no row is looked at."""

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline

from skdp.preprocessing import PublicPatches, RowNormClipper, ScatteringTransform
from skdp.preprocessing.images import base
from skdp.reporting import privacy_statement

pytest.importorskip("PIL", reason="the photographs need Pillow")

FEATURES = {
    "scattering": ScatteringTransform((16, 12, 3), n_scales=1, n_angles=2, whiten=True),
    "patches": PublicPatches((16, 12, 3), n_filters=6, patch_size=3, whiten=True),
}


@pytest.fixture(autouse=True)
def few_public_crops(monkeypatch):
    monkeypatch.setattr(base, "_CROPS", 40)
    monkeypatch.setattr("skdp.preprocessing.images.patches._PATCHES", 400)


def images(n, seed=0):
    return np.random.default_rng(seed).random((n, 16 * 12 * 3), dtype=np.float32)


def channels(features, X):
    return features.transform(X).reshape(len(X), features.output_shape_[0], -1)


def covariance(maps):
    table = np.moveaxis(maps, 1, 0).reshape(maps.shape[1], -1)
    return table.mean(axis=1), np.cov(table, bias=True)


@pytest.mark.parametrize("name", FEATURES)
def test_channels_of_public_crops_are_uncorrelated(name):
    features, crops = FEATURES[name].fit(images(1)), base.draw_crops(16, 12, 3)
    plain = type(features)(**features.get_params() | {"whiten": False}).fit(images(1))
    _, before = covariance(channels(plain, crops))
    means, after = covariance(channels(features, crops))
    values, vectors = np.linalg.eigh(before)
    expected = vectors * (values / (values + 0.05 * values.mean() + 1e-12)) @ vectors.T
    np.testing.assert_allclose(means, 0.0, atol=1e-9)
    np.testing.assert_allclose(after, expected, atol=1e-7)
    # Of any image, differences of features are mapped by one matrix.
    X = images(4).astype(float)
    mapped = [np.diff(channels(each, X), axis=0) for each in (plain, features)]
    matrix = vectors / np.sqrt(values + 0.05 * values.mean() + 1e-12) @ vectors.T
    np.testing.assert_allclose(matrix @ mapped[0], mapped[1], atol=1e-7)


@pytest.mark.parametrize("name", FEATURES)
def test_rows_shape_neither_the_fit_nor_each_other(name):
    features, X = FEATURES[name].fit(images(1)), images(9, 1)
    together = features.transform(X)
    np.testing.assert_array_equal(features.fit(100.0 * X).transform(X), together)
    for rows in (slice(0, 1), slice(None, None, -2)):
        np.testing.assert_array_equal(features.transform(X[rows]), together[rows])
    assert together.dtype == np.float32
    np.testing.assert_allclose(together, features.transform(X.astype(float)), atol=1e-2)
    steps = make_pipeline(features, RowNormClipper(method="scale")).fit(X)
    parts = privacy_statement(steps).to_dict()["parts"]
    assert [part["kind"] for part in parts] == ["data-independent"] * 2


def test_crops_have_the_size_of_images_at_the_scales_that_hold_them():
    assert base.draw_crops(5, 7, 1).shape == (2 * 3 * 40, 35)
    assert base.draw_crops(300, 20, 3).shape == (2 * 1 * 40, 300 * 20 * 3)
    assert base.draw_crops(5, 7, 1).std() > 0.1


@pytest.mark.parametrize(
    "shape, whiten, message",
    [
        ((8, 8), "yes", "whiten must be one of"),
        ((8, 8, 2), True, "1 or 3 colours, got 2"),
        ((430, 8), True, "smaller images than 430 x 8"),
    ],
)
def test_wrong_parameters(shape, whiten, message):
    features = ScatteringTransform(shape, n_angles=2, whiten=whiten)
    with pytest.raises(ValueError, match=message):
        features.fit(np.zeros((1, np.prod(shape))))
