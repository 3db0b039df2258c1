"""Discrete Laplace noise of rational scale, and discrete Gaussian noise: the exact laws."""

from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from skdp.mechanisms import RandomStream
from skdp.mechanisms.discrete import discrete_gaussians, discrete_laplaces

# A right sampler fails with less than this probability; seeds are fixed besides.
FALSE_ALARM = 1e-7
DRAWS = 6000


def laplace(scale):
    x = np.arange(-60, 61)
    return x, np.exp(-np.abs(x) / scale)


def gaussian(scale):
    x = np.arange(-60, 61)
    return x, np.exp(-0.5 * (x / scale) ** 2)


def p_value(draws, law, scale):
    x, weights = law(float(scale))
    expected = DRAWS * weights / weights.sum()
    likely = expected > 8.0
    observed = np.array([np.sum(draws == value) for value in x[likely]])
    rest = DRAWS - observed.sum(), DRAWS - expected[likely].sum()
    if rest[1] > 1e-9:
        observed, likely_expected = np.append(observed, rest[0]), expected[likely]
        expected = np.append(likely_expected, rest[1])
    else:
        expected = expected[likely] * observed.sum() / expected[likely].sum()
    return stats.chisquare(observed, expected).pvalue


@pytest.mark.parametrize("scale", [Fraction(1, 3), 1, Fraction(5, 3), Fraction(2.7)])
@pytest.mark.parametrize(
    ("draw", "law"), [(discrete_laplaces, laplace), (discrete_gaussians, gaussian)]
)
def test_the_law_is_exact_and_no_other(draw, law, scale):
    draws = np.array(draw(RandomStream.from_seed(0), scale, DRAWS))
    assert p_value(draws, law, scale) > FALSE_ALARM
    assert p_value(draws, law, 1.5 * scale) < FALSE_ALARM


def test_large_rational_scales_are_continuous_laplace():
    scale = Fraction(2**50 + 1, 3)
    draws = np.array(discrete_laplaces(RandomStream.from_seed(1), scale, 2000), dtype=float)
    assert stats.kstest(draws / float(scale), "laplace").pvalue > FALSE_ALARM
    assert stats.kstest(draws / float(scale) / 1.5, "laplace").pvalue < FALSE_ALARM
    # All digits are drawn: the last ones are uniform.
    low = np.array([int(value) % 8 for value in draws if abs(value) < 2**53])
    assert stats.chisquare(np.bincount(low, minlength=8)).pvalue > FALSE_ALARM
