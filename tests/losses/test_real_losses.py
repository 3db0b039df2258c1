"""Losses of numbers: values, slopes and constants against formulas in high precision."""

import mpmath as mp
import numpy as np
import pytest

import skdp.losses as skdp_losses
from skdp.losses import ClippedSquaredLoss, HuberLoss, PoissonLoss, PseudoHuberLoss, QuantileLoss
from skdp.losses.base import evaluate
from skdp.losses.wrapped import WeightedLoss
from skdp.models import LinearModel

# Multiples of 1/64, so that residuals and kinks at them are exact in doubles.
SCORES = np.concatenate([np.arange(-160, 161, 10) / 64.0, [-600.0, -40.0, 40.0, 600.0]])
TARGETS = np.array([-1.0, -0.5, 0.0, 0.25, 1.0])


def huber(h):
    return lambda t, y: (t - y) ** 2 / 2 if abs(t - y) <= h else h * (abs(t - y) - mp.mpf(h) / 2)


def pseudo_huber(h):
    return lambda t, y: mp.mpf(h) ** 2 * (mp.sqrt(1 + ((t - y) / mp.mpf(h)) ** 2) - 1)


def clipped_square(t, y):
    inner = min(max(t, -1), 1)
    return (inner - y) ** 2 / 2 + (inner - y) * (t - inner)


def quantile(h, tau):
    """The pinball loss, averaged over a window of targets, less its minimum."""

    def pinball(t, y):
        def primitive(r):  # of the loss of the residual r = t - y
            return (1 - mp.mpf(tau)) * r**2 / 2 if r > 0 else -mp.mpf(tau) * r**2 / 2

        half = mp.mpf(h) / 2
        return (primitive(t - y + half) - primitive(t - y - half)) / mp.mpf(h)

    least = pinball(mp.mpf(h) * (mp.mpf(tau) - mp.mpf(1) / 2), 0)
    return lambda t, y: pinball(t, y) - least


def poisson(t, y):
    count, top = 1 + y, mp.log(2)
    value = mp.exp(t) if t <= top else 2 + 2 * (t - top)
    return value - count * t + (count * mp.log(count) - count if count > 0 else 0)


CASES = [
    *((HuberLoss(h), huber(h)) for h in (0.125, 0.5, 4.0)),
    *((PseudoHuberLoss(h), pseudo_huber(h)) for h in (0.125, 1.0)),
    (ClippedSquaredLoss(), clipped_square),
    *((QuantileLoss(h, tau), quantile(h, tau)) for h, tau in ((0.125, 0.75), (2.0, 0.125))),
    (PoissonLoss(), poisson),
]
losses = pytest.mark.parametrize(("loss", "exact"), CASES, ids=[repr(loss) for loss, _ in CASES])


@losses
def test_values_and_derivatives_in_high_precision(loss, exact):
    t, y = (grid.ravel() for grid in np.meshgrid(SCORES, TARGETS))
    step = mp.mpf(10) ** -20
    with mp.workdps(70):
        points = [(mp.mpf(a), mp.mpf(b)) for a, b in zip(t, y, strict=True)]
        table = [[exact(a + k * step, b) for k in (-1, 0, 1)] for a, b in points]
        values = np.array([float(row[1]) for row in table])
        slopes = np.array([float((row[2] - row[0]) / (2 * step)) for row in table])
        bends = np.array([float((row[2] - 2 * row[1] + row[0]) / step**2) for row in table])
    assert (values > -1e-60).all()
    size = 1e-15 * (1.0 + np.abs(t))
    np.testing.assert_array_less(np.abs(evaluate(loss, 0, t, y) - values), 8.0 * size + 1e-300)
    np.testing.assert_allclose(evaluate(loss, 1, t, y), slopes, rtol=1e-14, atol=4e-15)
    # At a kink of the slope either side's value is a generalised second derivative.
    found, smooth = evaluate(loss, 2, t, y), np.abs(bends - 0.5 * loss.curvature) > 1e-9
    np.testing.assert_allclose(found[smooth], bends[smooth], rtol=1e-12, atol=1e-15)


@losses
def test_constants_are_attained_and_never_exceeded(loss, exact):
    t, y = np.meshgrid(np.linspace(-8.0, 8.0, 2001), np.linspace(-1.0, 1.0, 21))
    slopes, bends = evaluate(loss, 1, t, y), evaluate(loss, 2, t, y)
    rounding = 1.0 + 1e-15
    largest = np.abs(slopes).max()
    assert 0.99 * loss.largest_slope <= largest <= loss.largest_slope * rounding
    assert 0.99 * loss.curvature <= bends.max() <= loss.curvature * rounding
    assert (np.diff(slopes, axis=1) >= -1e-15).all() and loss.convex
    assert (np.diff(slopes, axis=1) / np.diff(t, axis=1) <= loss.curvature * (1.0 + 1e-9)).all()
    # One target's slopes, to both sides of 0: what `opposite` is about.
    width = np.maximum(slopes.max(axis=1), 0.0) - np.minimum(slopes.min(axis=1), 0.0)
    most = (1.0 + loss.opposite) * loss.largest_slope
    assert 0.99 * most <= width.max() <= most * rounding
    tight = 0.75 if isinstance(loss, PseudoHuberLoss) else 0.99  # below the Huber loss's slope
    assert tight * loss.product_bound() <= (-slopes * t).max() <= loss.product_bound()
    assert loss.lipschitz(2.0) == 2.0 * loss.largest_slope
    assert loss.smoothness(2.0) == 4.0 * loss.curvature
    weighted = WeightedLoss(loss, 3.0)
    assert (weighted.slope_law, weighted.opposite) == ("any-sign", loss.opposite)
    assert weighted.largest_target == 1.0 and weighted.lipschitz(1.0) >= 3.0 * loss.largest_slope


def test_targets_are_clipped_before_they_meet_constants():
    """Whatever an estimator hands in: a slope of squares beyond [-1, 1] would exceed its bound."""
    for loss in (ClippedSquaredLoss(), PoissonLoss(), WeightedLoss(ClippedSquaredLoss(), 2.0)):
        model = LinearModel(loss.unweighted, 2, 1, 1, 0.0, heaviest=loss.heaviest)
        (problem,) = model.bind(np.ones((2, 1)), np.array([-9.0, 1e300]))
        assert problem.rows.targets.tolist() == [-1.0, 1.0]
        assert loss.largest_target == 1.0


def test_narrow_losses_are_reached_from_wide_ones():
    wider = QuantileLoss(0.5, 0.2).smoother_losses()
    assert wider == (QuantileLoss(2.0, 0.2), QuantileLoss(1.0, 0.2))
    assert HuberLoss(2.0).smoother_losses() == ()


@pytest.mark.parametrize("make", [HuberLoss, PseudoHuberLoss, QuantileLoss])
@pytest.mark.parametrize("width", [0.0, -1.0, np.inf, np.nan])
def test_widths_are_positive_numbers(make, width):
    with pytest.raises(ValueError, match="width must be a positive"):
        make(width)


def test_quantiles_lie_between_0_and_1():
    for level in (0.0, 1.0, np.nan):
        with pytest.raises(ValueError, match="quantile must lie"):
            QuantileLoss(0.1, level)


@pytest.mark.parametrize("weights", [None, 0.0, 0.3, 50.0])
@pytest.mark.parametrize("norm", [0.1, 1.0, 7.0])
def test_two_records_are_stated_to_be_no_nearer_than_one_and_none(norm, weights):
    """Theorem 1 of units takes a null record for one of many."""
    losses = [
        *(skdp_losses.LogisticLoss(), skdp_losses.SmoothedHingeLoss(half_width=0.5)),
        *(skdp_losses.SmoothedHingeLoss(half_width=3.0), skdp_losses.SoftmaxLoss(4)),
        *(skdp_losses.HuberLoss(0.3), skdp_losses.PseudoHuberLoss(0.3)),
        *(skdp_losses.ClippedSquaredLoss(), skdp_losses.QuantileLoss(0.2, 0.9)),
        *(skdp_losses.PoissonLoss(), skdp_losses.ClippedLoss(skdp_losses.LogisticLoss(), 0.3)),
    ]
    for loss in losses:
        assert loss.gradient_gap(norm, weights) >= loss.zero_out_gap(norm, weights)
