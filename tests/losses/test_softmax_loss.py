"""The softmax loss against mpmath."""

import mpmath as mp
import numpy as np
import pytest

from skdp.losses import SoftmaxLoss

rng = np.random.default_rng(0)
SCORES = np.concatenate(
    [
        rng.normal(size=(20, 4)) * rng.choice([0.1, 1, 30], (20, 1)),
        [[1e4, -1e4, 0, 0], [-1e4, 1e4, 1e4, 3], [0, 0, 0, 0], [800, 0, 0, 0]],
    ]
)
CODES = np.concatenate([rng.integers(0, 4, 20), [0, 0, 3, 0]])


def exact(scores, code):
    with mp.workdps(50):
        powers = [mp.exp(mp.mpf(s) - mp.mpf(scores[code])) for s in scores]
        total = mp.fsum(powers)
        others = mp.fsum(p for k, p in enumerate(powers) if k != code)
        slopes = [float(p / total) for p in powers]
        slopes[code] = float(-others / total)
        return float(mp.log1p(others)), slopes


def test_values_and_gradients_match_multiprecision():
    pairs = [exact(s, c) for s, c in zip(SCORES, CODES, strict=True)]
    loss = SoftmaxLoss(4)
    values, slopes = loss.value(SCORES, CODES), loss.gradient(SCORES, CODES)
    np.testing.assert_allclose(values, [p[0] for p in pairs], rtol=5e-15, atol=1e-300)
    np.testing.assert_allclose(slopes, [p[1] for p in pairs], rtol=3e-14, atol=1e-300)


def test_inputs_are_left_alone_and_bad_class_counts_refused():
    before = SCORES.copy()
    SoftmaxLoss(4).gradient(SCORES, CODES)
    np.testing.assert_array_equal(SCORES, before)
    with pytest.raises(ValueError, match="n_classes"):
        SoftmaxLoss(1)
