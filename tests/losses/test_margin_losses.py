"""Values and derivatives of the margin losses against mpmath and closed forms."""

import mpmath as mp
import numpy as np
import pytest

from skdp.losses import LogisticLoss, SmoothedHingeLoss

MARGINS = np.concatenate(
    [np.linspace(-40, 40, 161), [-1e4, 1e4, -800, 800, -708.5, 708.5, 0.0, 1e-9, -1e-300]]
)


def logistic(m):
    return mp.log1p(mp.exp(-mp.mpf(m)))


def hinge(width):
    h = mp.mpf(width)

    def value(m):
        gap = 1 - mp.mpf(m)
        if abs(gap) > h:
            return max(gap, mp.mpf(0))
        return gap**2 / (4 * h) + gap / 2 + h / 4

    return value


CASES = [
    (LogisticLoss(), logistic),
    *((SmoothedHingeLoss(h), hinge(h)) for h in (0.01, 0.25, 0.3, 0.5, 1.0, 3.0)),
]
cases = pytest.mark.parametrize(("loss", "exact"), CASES, ids=[repr(loss) for loss, _ in CASES])


@cases
def test_values_match_multiprecision(loss, exact):
    with mp.workdps(50):
        expected = np.array([float(exact(m)) for m in MARGINS])
    np.testing.assert_allclose(loss.value(MARGINS), expected, rtol=2e-15, atol=1e-300)


@cases
def test_derivatives_match_multiprecision_differentiation(loss, exact):
    # Kinks of the second derivative are left out: a difference quotient is undefined there.
    gap = loss.second_derivative(MARGINS + 1e-6) - loss.second_derivative(MARGINS - 1e-6)
    smooth = MARGINS[np.abs(gap) <= 1e-4 * loss.curvature]
    assert smooth.size > 0.97 * MARGINS.size
    with mp.workdps(50):
        first = np.array([float(mp.diff(exact, mp.mpf(m), 1, h=mp.mpf(10) ** -18)) for m in smooth])
        second = np.array(
            [float(mp.diff(exact, mp.mpf(m), 2, h=mp.mpf(10) ** -12)) for m in smooth]
        )
    np.testing.assert_allclose(loss.derivative(smooth), first, rtol=1e-12, atol=1e-17)
    np.testing.assert_allclose(loss.second_derivative(smooth), second, rtol=1e-9, atol=1e-12)


def test_logistic_derivatives_have_full_relative_accuracy_in_both_tails():
    with mp.workdps(50):
        tails = [mp.exp(-mp.mpf(m)) / (1 + mp.exp(-mp.mpf(m))) for m in MARGINS]
        first = np.array([float(-p) for p in tails])
        second = np.array([float(p * (1 - p)) for p in tails])
    loss = LogisticLoss()
    np.testing.assert_allclose(loss.derivative(MARGINS), first, rtol=2e-15, atol=1e-300)
    np.testing.assert_allclose(loss.second_derivative(MARGINS), second, rtol=2e-15, atol=1e-300)


@pytest.mark.parametrize("width", [0.0, -1.0, np.inf, np.nan])
def test_half_width_must_be_positive_and_finite(width):
    with pytest.raises(ValueError, match="half_width"):
        SmoothedHingeLoss(width)


@cases
def test_facts_hold_in_high_precision(loss, exact):
    step = mp.mpf(10) ** -15
    with mp.workdps(60):
        slopes, curvatures = [], []
        for m in np.concatenate([np.linspace(-30, 30, 301), np.linspace(0.5, 1.5, 201)]):
            at = mp.mpf(float(m))
            left, middle, right = (exact(at + k * step) for k in (-1, 0, 1))
            slopes.append((right - left) / (2 * step))
            curvatures.append((left - 2 * middle + right) / step**2)
        # Of a loss whose derivative is Lipschitz, difference quotients obey the same bounds.
        rounding = 1 + mp.mpf(2) ** -50
        assert max(map(abs, slopes)) <= mp.mpf(loss.largest_slope)
        assert max(map(abs, slopes)) >= mp.mpf(loss.largest_slope) * (1 - mp.mpf(10) ** -9)
        assert all(slope * loss.slope_sign >= 0 for slope in slopes)
        assert loss.convex == (min(curvatures) >= -(mp.mpf(10) ** -25))
        assert max(curvatures) <= mp.mpf(loss.curvature) * rounding
        assert max(curvatures) >= mp.mpf(loss.curvature) * (1 - mp.mpf(10) ** -9)
