"""Scattering features: the cascade of the papers, image by image, with nothing learned."""

import itertools
import math
import warnings

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.pipeline import make_pipeline

from skdp import OperaLogisticRegression
from skdp.exceptions import PrivacyWarning
from skdp.preprocessing import RowNormClipper, ScatteringTransform
from skdp.reporting import privacy_statement


def gabor(shape, width, frequency, angle, slant):
    """Sum a Gabor function over the periods of a grid, in the matrix form of the papers."""
    turn = np.array([[math.cos(angle), -math.sin(angle)], [math.sin(angle), math.cos(angle)]])
    form = turn @ np.diag([1.0, slant**2]) @ turn.T / (2.0 * width**2)
    total = np.zeros(shape, complex)
    for shift in np.ndindex(5, 5):
        grid = np.indices(shape).T + (np.array(shift) - 2) * shape
        wave = np.exp(
            -np.einsum("...a,ab,...b", grid, form, grid) + 1j * frequency * grid @ turn[:, 0]
        )
        total += wave.T
    return total * slant / (2.0 * math.pi * width**2)


def band_limited(values, step):
    """Drop what a grid of every `step`-th point cannot hold."""
    keep = [np.abs(np.fft.fftfreq(n) + 0.25 / n) < 0.5 / step for n in values.shape]
    return np.fft.ifft2(np.fft.fft2(values) * np.outer(*keep))


def convolve(values, kernel):
    """Convolve periodically, by the definition."""
    total = np.zeros(values.shape, complex)
    for shift in np.ndindex(values.shape):
        total += values[shift] * np.roll(kernel, shift, axis=(0, 1))
    return total


def slow_scattering(image, n_scales, n_angles):
    """Return the channels of one image from convolutions that are thinned out after the fact."""
    top = 2**n_scales
    sizes = [(n // top + 2) * top for n in image.shape]
    margins = [(size - n) // 2 for n, size in zip(image.shape, sizes, strict=True)]
    around = [(m, size - n - m) for n, m, size in zip(image.shape, margins, sizes, strict=True)]
    padded = np.pad(image, around, "reflect")
    window = gabor(sizes, 0.8 * 2 ** (n_scales - 1), 0.0, 0.0, 1.0)

    def wavelet(scale, turn):
        angle = ((n_angles - 2) // 2 - turn) * math.pi / n_angles
        shape = 0.8 * 2**scale, angle, 4.0 / n_angles
        wave = gabor(sizes, shape[0], 0.75 * math.pi / 2**scale, *shape[1:])
        bell = gabor(sizes, shape[0], 0.0, *shape[1:])
        return wave - bell * wave.sum() / bell.sum()

    def pointwise(values, kernel, step, thin):
        """Convolve on the grid of every `step`-th point, and keep every `thin`-th of all."""
        kernel = band_limited(kernel, step)[::step, ::step] * step**2
        return convolve(values, kernel)[:: thin // step, :: thin // step]

    def mean(values, step):
        return pointwise(values, window, step, top).real[1:-1, 1:-1]

    orders = [[mean(padded, 1)], [], []]
    angles = range(n_angles)
    first = {
        (j, a): abs(pointwise(padded, wavelet(j, a), 1, 2**j))
        for j in range(n_scales)
        for a in angles
    }
    orders[1] = [mean(values, 2**j) for (j, _), values in first.items()]
    for i, j in itertools.combinations(range(n_scales), 2):
        for a, b in np.ndindex(n_angles, n_angles):
            values = abs(pointwise(first[i, a], wavelet(j, b), 2**i, 2**j))
            orders[2].append(mean(values, 2**j))
    return np.array([*orders[0], *orders[1], *orders[2]])


@pytest.mark.parametrize("shape, n_scales, n_angles", [((6, 9), 2, 4), ((8, 8), 3, 2)])
def test_features_are_those_of_slow_convolutions(shape, n_scales, n_angles):
    image = np.random.default_rng(0).random(shape)
    expected = slow_scattering(image, n_scales, n_angles)
    for dtype, tolerance in ((np.float64, 1e-12), (np.float32, 1e-6)):
        row = image.reshape(1, -1).astype(dtype)
        scattering = ScatteringTransform(shape, n_scales=n_scales, n_angles=n_angles).fit(row)
        features = scattering.transform(row)
        assert features.dtype == dtype
        found = features.reshape(scattering.output_shape_)
        np.testing.assert_allclose(found, expected, rtol=0, atol=tolerance)
    first = ScatteringTransform(shape, n_scales=n_scales, n_angles=n_angles, max_order=1)
    found = first.fit_transform(image.reshape(1, -1)).reshape(first.output_shape_)
    np.testing.assert_allclose(found, expected[: len(found)], atol=1e-12)
    assert len(found) == 1 + n_scales * n_angles


def images(n, shape, seed=0):
    return np.random.default_rng(seed).random((n, math.prod(shape)), dtype=np.float32)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_row_is_the_same_to_the_bit_in_any_company(dtype):
    X = images(13, (28, 28)).astype(dtype)
    scattering = ScatteringTransform((28, 28), normalize_groups=27).fit(X[:1])
    together = scattering.transform(X)
    for rows in (slice(0, 1), slice(7, 8), slice(1, None), slice(None, None, -3)):
        np.testing.assert_array_equal(scattering.transform(X[rows]), together[rows])
    odd = np.full((2, 28 * 28), 1e30, dtype)
    np.testing.assert_array_equal(scattering.transform(np.vstack([odd, X]))[2:], together)
    np.testing.assert_array_equal(scattering.transform(np.asfortranarray(X)), together)


def test_colours_are_described_one_after_the_other():
    X = images(3, (8, 8, 3))
    colours = ScatteringTransform((8, 8, 3)).fit(X)
    assert colours.output_shape_ == (3 * 81, 2, 2)
    parts = np.split(colours.transform(X), 3, axis=1)
    for colour, part in enumerate(parts):
        grey = ScatteringTransform((8, 8)).fit_transform(X[:, colour::3])
        np.testing.assert_array_equal(part, grey)


def test_groups_of_channels_have_mean_zero_and_variance_one():
    X = np.vstack([images(3, (12, 8)), np.full((1, 96), 0.3, np.float32)])
    plain = ScatteringTransform((12, 8)).fit(X)
    groups = plain.transform(X).astype(float).reshape(4, 27, -1)
    variance = groups.var(axis=2, keepdims=True)
    expected = (groups - groups.mean(axis=2, keepdims=True)) / np.sqrt(variance + 1e-5)
    found = ScatteringTransform((12, 8), normalize_groups=27).fit_transform(X)
    np.testing.assert_allclose(found.reshape(expected.shape), expected, atol=2e-3)
    assert np.abs(found[3].reshape(27, -1)[1:]).max() < 1e-3  # no edge in a constant image


def test_nothing_is_learned_and_the_statement_says_so():
    X, labels = images(40, (4, 4)), np.arange(40) % 2
    scattering = ScatteringTransform((4, 4), n_angles=4, normalize_groups=5)
    fits = [clone(scattering).fit(rows).__dict__ for rows in (X, X[:1] * 7)]
    np.testing.assert_equal(*fits)
    model = OperaLogisticRegression(delta=0.01)
    pipeline = make_pipeline(scattering, RowNormClipper(method="scale"), model)
    with warnings.catch_warnings():
        warnings.filterwarnings("error", message=".*data_norm")
        pipeline.fit(X, labels)
    with pytest.warns(PrivacyWarning, match="no step of skdp in front is known to bound its rows"):
        make_pipeline(scattering, model).fit(X, labels)
    statement = privacy_statement(pipeline).to_dict()
    assert statement["holds_for_the_whole"]
    assert [part["kind"] for part in statement["parts"]] == [*["data-independent"] * 2, "private"]
    np.testing.assert_allclose(np.linalg.norm(pipeline[:-1].transform(X), axis=1), 1.0, rtol=1e-5)


def test_names_types_and_pixels_that_are_integers():
    pandas = pytest.importorskip("pandas", reason="needs pandas")
    X = (images(2, (4, 8)) * 255).astype(np.uint8)
    scattering = ScatteringTransform((4, 8), max_order=1).fit(X)
    features = scattering.transform(X)
    assert features.dtype == np.float64 and features.shape == (2, 17 * 2)
    np.testing.assert_array_equal(features, scattering.transform(X.astype(np.float64)))
    np.testing.assert_array_equal(features, scattering.transform(X.tolist()))
    frame = scattering.set_output(transform="pandas").transform(pandas.DataFrame(X))
    assert list(frame.columns) == [f"scatteringtransform{i}" for i in range(34)]


@pytest.mark.parametrize(
    "parameters, message",
    [
        ({"image_shape": (4, 9)}, "36 pixels per row, but X has 32 columns"),
        ({"image_shape": 32}, "image_shape must be"),
        ({"image_shape": (4, 8, 1, 1)}, "image_shape must be"),
        ({"image_shape": (4, 0)}, "image_shape must be at least 1"),
        ({"n_scales": 3}, "an image of 4 x 8. Give a smaller n_scales"),
        ({"n_angles": 1}, "n_angles"),
        ({"max_order": 3}, "max_order"),
        ({"normalize_groups": 5}, "must divide the 81 channels, got 5"),
    ],
)
def test_wrong_parameters(parameters, message):
    with pytest.raises(ValueError, match=message):
        ScatteringTransform(**{"image_shape": (4, 8), **parameters}).fit(np.zeros((2, 32)))


def test_wrong_images():
    scattering = ScatteringTransform((4, 8)).fit(np.zeros((2, 32)))
    with pytest.raises(ValueError, match="X has 31 features"):
        scattering.transform(np.zeros((2, 31)))
    with pytest.raises(ValueError, match="0 sample"):
        scattering.transform(np.zeros((0, 32)))
    with pytest.raises(ValueError, match="NaN"):
        scattering.transform(np.full((1, 32), np.nan))
    with pytest.raises(TypeError, match="dense"):
        scattering.transform(sparse.csr_matrix(np.zeros((2, 32))))
