"""Clipped losses: convex, once differentiable, with the constants they publish."""

import numpy as np
import pytest
from covering import pairs

from skdp.losses import ClippedLoss, LogisticLoss, SmoothedHingeLoss

BASES = [LogisticLoss(), SmoothedHingeLoss(0.1), SmoothedHingeLoss(0.5), SmoothedHingeLoss(2.0)]
bases = pytest.mark.parametrize("base", BASES, ids=repr)
MARGINS = np.linspace(-12.0, 12.0, 4801)


@pytest.mark.parametrize(
    ("base", "clip", "norm"), pairs(BASES, [0.01, 0.5, 0.9, 3.0], [0.3, 1.0, 1.2])
)
def test_values_have_the_clipped_slope(base, clip, norm):
    loss = ClippedLoss(base, clip)
    norms = np.full_like(MARGINS, norm)
    values = loss.values_of_rows(MARGINS, norms)
    slopes = np.diff(values) / np.diff(MARGINS)
    middle = 0.5 * (MARGINS[1:] + MARGINS[:-1])
    expected = np.maximum(base.derivative(middle), -clip / norm)
    np.testing.assert_allclose(slopes, expected, atol=0.003 * max(1.0, 2.0 * base.curvature))
    assert np.max(np.abs(slopes)) * norm <= loss.lipschitz(norm) * (1 + 1e-9)
    assert np.all(np.diff(slopes) >= -1e-9), "not convex"
    curvature = loss.curvature_of_rows(MARGINS, norms)
    assert np.max(curvature) * norm**2 <= loss.smoothness(norm) * (1 + 1e-12)
    steep = np.abs(base.derivative(MARGINS)) * norm > clip
    assert np.all(curvature[steep] == 0.0)


@bases
@pytest.mark.parametrize("clip", [0.01, 0.6, 1.1, 5.0])
def test_constants_hold_for_all_shorter_rows_and_are_attained(base, clip):
    loss, bound = ClippedLoss(base, clip), 1.3
    norms = np.linspace(0.01, bound, 60)
    largest = [
        (r * r * loss.curvature_of_rows(MARGINS, np.full_like(MARGINS, r))).max() for r in norms
    ]
    assert max(largest) <= loss.smoothness(bound) * (1 + 1e-12)
    assert max(largest) >= 0.97 * loss.smoothness(bound)
    assert loss.lipschitz(bound) == min(clip, bound)


@bases
def test_a_clip_beyond_every_gradient_changes_nothing(base):
    loss = ClippedLoss(base, 2.0)
    norms = np.full_like(MARGINS, 1.5)
    np.testing.assert_allclose(loss.values_of_rows(MARGINS, norms), base.value(MARGINS), rtol=1e-12)
    assert loss.smoothness(1.5) == base.smoothness(1.5)
    assert loss.minimiser_norm_bound(1.5, 0.1) == base.minimiser_norm_bound(1.5, 0.1)


@bases
def test_margins_of_slopes_invert_the_derivative(base):
    slopes = np.array([1e-6, 0.1, 0.5, 0.99])
    np.testing.assert_allclose(-base.derivative(base.margin_of_slope(slopes)), slopes, rtol=1e-9)


@bases
def test_minimisers_never_exceed_the_published_norm(base):
    """One record alone pulls as far as any table can."""
    from skdp.solvers import RegularisedObjective, Rows, minimise

    for clip in (0.05, 0.5):
        loss = ClippedLoss(base, clip)
        for penalty in (1e-3, 0.1):
            rows = Rows.from_matrix(np.ones((1, 1)), np.ones(1, np.int8), 1.0)
            found = minimise(RegularisedObjective(rows, loss, penalty), 1e-9)
            assert abs(found[0]) <= loss.minimiser_norm_bound(1.0, penalty)


@pytest.mark.parametrize("clip", [0.0, -1.0, np.inf, np.nan])
def test_clip_must_be_positive_and_finite(clip):
    with pytest.raises(ValueError, match="clip"):
        ClippedLoss(LogisticLoss(), clip)
