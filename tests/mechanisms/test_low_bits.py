"""Attacks on the last bits of noisy numbers (Mironov 2012; Jin et al. 2022), and what they find.

The attacker knows two values and sees one release. An output that one value alone can give is a
proof, whatever epsilon and delta were claimed: its probability is a lower bound on delta.
"""

import math

import numpy as np
import pytest
from scipy import stats
from scipy.special import ndtr, ndtri

from skdp.mechanisms import GaussianMechanism, RandomStream
from skdp.mechanisms.discrete_gaussian import noise_on_grid

SIGMA = 4.0
TRIALS = 4000


def naive(value):
    """Value plus noise by inversion of 53-bit uniforms, as one would write it."""
    return value + SIGMA * ndtri(np.random.default_rng(0).random(TRIALS))


def of_skdp(grid):
    def release(value):
        stream = RandomStream.from_seed(0)
        mechanism = GaussianMechanism(
            sensitivity=1.0, sigma=SIGMA, stream=stream, label="test", grid=grid
        )
        return mechanism.release(np.full(TRIALS, value))

    return release


NOISE = noise_on_grid(1.0, SIGMA, 1)
RELEASES = {"naive": naive, "float": of_skdp(0.0), "discrete": of_skdp(NOISE.grid)}


def too_fine_for_one(outputs):
    """Tell which outputs below a half are not 1 plus a double: such sums are exact, and coarse."""
    return np.abs(outputs) < 0.5, (np.abs(outputs) < 0.5) & (outputs * 2.0**53 % 1.0 != 0.0)


def not_from_uniforms(outputs):
    """Tell which outputs are no SIGMA times the quantile of a multiple of 2**-53."""
    middle = np.round(ndtr(outputs / SIGMA) * 2.0**53)
    around = middle[:, None] + np.arange(-40.0, 41.0)
    return np.abs(outputs) < 0.5, ~(SIGMA * ndtri(around * 2.0**-53) == outputs[:, None]).any(1)


@pytest.mark.parametrize("kind", RELEASES)
def test_sums_of_doubles_give_themselves_away(kind):
    zero, one = (RELEASES[kind](value) for value in (0.0, 1.0))
    near, fine = too_fine_for_one(zero)
    assert not too_fine_for_one(one)[1].any()
    # Of the outputs of 0 near 0 most prove that they are not of 1, but for those on a grid.
    share = np.mean(fine[near])
    assert share == 0.0 if kind == "discrete" else share > 0.5


def test_a_naive_sampler_gives_itself_away_by_its_gaps():
    zero, one = naive(0.0), naive(1.0)
    assert not not_from_uniforms(zero)[1].any()
    near, impossible = not_from_uniforms(one)
    assert np.mean(impossible[near]) > 0.5


def test_on_a_grid_both_values_give_the_same_outputs():
    """Every integer is possible for both, and no digit of it tells one value from the other."""
    zero, one = (RELEASES["discrete"](value) / NOISE.grid for value in (0.0, 1.0))
    for outputs in (zero, one):
        assert np.array_equal(outputs, np.rint(outputs))
        digits = np.bincount((outputs % 32).astype(int), minlength=32)
        assert stats.chisquare(digits).pvalue > 1e-7
    assert math.gcd(*(int(x) for x in zero)) == math.gcd(*(int(x) for x in one)) == 1
