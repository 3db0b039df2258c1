"""Public photographs: patches as a slow loop has them, whitening, and no row is looked at."""

import math

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline

from skdp.preprocessing import PublicPatches, RowNormClipper, ScatteringTransform
from skdp.preprocessing.images import base
from skdp.reporting import privacy_statement

pytest.importorskip("PIL", reason="the photographs need Pillow")
SMALL = {"n_filters": 8, "patch_size": 3}
SHAPE = (16, 12, 3)
WHITE = {
    "scattering": ScatteringTransform(SHAPE, n_scales=1, n_angles=2, whiten=True),
    "patches": PublicPatches(SHAPE, n_filters=6, patch_size=3, whiten=True),
}


@pytest.fixture(autouse=True)
def few_public_crops_and_patches(monkeypatch):
    monkeypatch.setattr(base, "_CROPS", 40)
    monkeypatch.setattr("skdp.preprocessing.images.patches._PATCHES", 400)


def images(n, shape, seed=0):
    return np.random.default_rng(seed).random((n, math.prod(shape)), dtype=np.float32)


def slow_features(image, filters, size, grid):
    """Match patch by patch, and average over the fields that patches start in."""
    height, width = (n - size + 1 for n in image.shape[:2])
    sums, counts = np.zeros((2, filters.shape[1], grid, grid)), np.zeros((grid, grid))
    for y, x in np.ndindex(height, width):
        patch = image[y : y + size, x : x + size].transpose(2, 0, 1).ravel()
        patch = (patch - patch.mean()) / math.sqrt(patch.var() + 10 / 255**2)
        field = y * grid // height, x * grid // width
        for sign, matched in zip((1, -1), sums, strict=True):
            matched[:, *field] += np.maximum(sign * patch @ filters - 0.25, 0)
        counts[field] += 1
    return (sums / counts).reshape(-1, grid, grid)


@pytest.mark.parametrize("shape, grid", [((8, 10, 3), 2), ((7, 9), 3)])
def test_features_are_those_of_a_loop_over_patches(shape, grid):
    X = images(3, shape)
    for dtype, tolerance in ((np.float64, 1e-12), (np.float32, 1e-5)):
        patches = PublicPatches(shape, grid_size=grid, **SMALL).fit(X[:1])
        found = patches.transform(X.astype(dtype))
        assert found.dtype == dtype
        for row, pixels in zip(found, X.astype(float), strict=True):
            image = np.atleast_3d(pixels.reshape(shape))
            expected = slow_features(image, patches.filters_, 3, grid)
            np.testing.assert_allclose(row.reshape(patches.output_shape_), expected, atol=tolerance)


def test_filters_match_public_patches_and_are_the_same_in_every_fit():
    one, two = (PublicPatches((8, 8, 3), **SMALL).fit(images(n, (8, 8, 3), n)) for n in (1, 5))
    np.testing.assert_array_equal(one.filters_, two.filters_)
    assert one.filters_.shape == (27, 8)
    # Patches have mean 0, whose direction whitening leaves to its ridge alone.
    norms = np.linalg.norm(one.filters_, axis=0)
    assert np.all(norms > 0.3) and np.all(norms <= 0.1**-0.5)
    overlap = one.filters_.T @ one.filters_ / np.outer(norms, norms)
    assert np.abs(overlap - np.eye(8)).max() < 0.99


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_row_is_the_same_to_the_bit_in_any_company(dtype):
    X = images(13, (32, 32, 3)).astype(dtype)
    patches = PublicPatches((32, 32, 3), n_filters=20, normalize_groups=4).fit(X[:1])
    together = patches.transform(X)
    for rows in (slice(0, 1), slice(7, 8), slice(1, None), slice(None, None, -3)):
        np.testing.assert_array_equal(patches.transform(X[rows]), together[rows])
    odd = np.full((2, X.shape[1]), 1e30, dtype)
    np.testing.assert_array_equal(patches.transform(np.vstack([odd, X]))[2:], together)
    groups = together.reshape(13, 4, -1).astype(float)
    np.testing.assert_allclose(groups.mean(axis=2), 0.0, atol=1e-6)
    np.testing.assert_allclose(groups.std(axis=2), 1.0, atol=1e-3)


def channels(features, X):
    return features.transform(X).reshape(len(X), features.output_shape_[0], -1)


def covariance(maps):
    table = np.moveaxis(maps, 1, 0).reshape(maps.shape[1], -1)
    return table.mean(axis=1), np.cov(table, bias=True)


@pytest.mark.parametrize("name", WHITE)
def test_channels_of_public_crops_are_uncorrelated(name):
    features, crops = WHITE[name].fit(images(1, SHAPE)), base.draw_crops(*SHAPE)
    plain = type(features)(**features.get_params() | {"whiten": False}).fit(images(1, SHAPE))
    _, before = covariance(channels(plain, crops))
    means, after = covariance(channels(features, crops))
    values, vectors = np.linalg.eigh(before)
    expected = vectors * (values / (values + 0.05 * values.mean() + 1e-12)) @ vectors.T
    np.testing.assert_allclose(means, 0.0, atol=1e-9)
    np.testing.assert_allclose(after, expected, atol=1e-7)
    # Of any image, differences of features are mapped by one matrix.
    X = images(4, SHAPE).astype(float)
    mapped = [np.diff(channels(each, X), axis=0) for each in (plain, features)]
    matrix = vectors / np.sqrt(values + 0.05 * values.mean() + 1e-12) @ vectors.T
    np.testing.assert_allclose(matrix @ mapped[0], mapped[1], atol=1e-7)


@pytest.mark.parametrize("name", WHITE)
def test_rows_shape_neither_the_fit_nor_each_other(name):
    features, X = WHITE[name].fit(images(1, SHAPE)), images(9, SHAPE, 1)
    together = features.transform(X)
    np.testing.assert_array_equal(features.fit(100.0 * X).transform(X), together)
    for rows in (slice(0, 1), slice(None, None, -2)):
        np.testing.assert_array_equal(features.transform(X[rows]), together[rows])
    assert together.dtype == np.float32
    np.testing.assert_allclose(together, features.transform(X.astype(float)), atol=1e-2)
    steps = make_pipeline(features, RowNormClipper(method="scale")).fit(X)
    parts = privacy_statement(steps).to_dict()["parts"]
    assert [part["kind"] for part in parts] == ["data-independent"] * 2
    np.testing.assert_allclose(np.linalg.norm(steps.transform(X), axis=1), 1.0, rtol=1e-5)
    names = steps[0].get_feature_names_out()
    assert names[-1] == f"{type(features).__name__.lower()}{together.shape[1] - 1}"


def test_crops_have_the_size_of_images_at_the_scales_that_hold_them():
    assert base.draw_crops(5, 7, 1).shape == (2 * 3 * 40, 35)
    assert base.draw_crops(300, 20, 3).shape == (2 * 1 * 40, 300 * 20 * 3)
    assert base.draw_crops(5, 7, 1).std() > 0.1


@pytest.mark.parametrize(
    "parameters, message",
    [
        ({"image_shape": (4, 4, 2)}, "1 or 3 colours, got 2"),
        ({"patch_size": 4}, "1 x 5 patches, too few for patch_size=4 and grid_size=2"),
        ({"patch_size": 1}, "patch_size"),
        ({"grid_size": 0}, "grid_size"),
        ({"n_filters": 0}, "n_filters"),
        ({"normalize_groups": 7}, "must divide the 16 channels"),
        ({"whiten": "yes"}, "whiten must be one of"),
        ({"whiten": True, "image_shape": (430, 8)}, "images smaller than 430 x 8"),
    ],
)
def test_wrong_parameters(parameters, message):
    patches = PublicPatches(**{"image_shape": (4, 8), **SMALL, **parameters})
    with pytest.raises(ValueError, match=message):
        patches.fit(np.zeros((2, math.prod(patches.image_shape))))


def test_whitening_knows_photographs_of_one_or_three_colours():
    with pytest.raises(ValueError, match="1 or 3 colours, got 2"):
        ScatteringTransform((8, 8, 2), n_angles=2, whiten=True).fit(np.zeros((1, 128)))
