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


def in_a_gap(outputs, bits):
    """Tell which outputs near 0 are no SIGMA times the quantile of a multiple of 2**-bits."""
    size = np.abs(outputs)
    around = np.round(ndtr(-size / SIGMA) * 2.0**bits)[:, None] + np.arange(-40.0, 41.0)
    found = (-SIGMA * ndtri(around * 2.0**-bits) == size[:, None]).any(axis=1)
    return size < 0.5, (size < 0.5) & ~found


@pytest.mark.parametrize("kind", RELEASES)
def test_sums_of_doubles_give_themselves_away(kind):
    zero, one = (RELEASES[kind](value) for value in (0.0, 1.0))
    near, fine = too_fine_for_one(zero)
    assert not too_fine_for_one(one)[1].any()
    # Of the outputs of 0 near 0 most prove that they are not of 1, but for those on a grid.
    share = np.mean(fine[near])
    assert share == 0.0 if kind == "discrete" else share > 0.5


@pytest.mark.parametrize(("kind", "bits"), [("naive", 53), ("float", 54)])
def test_samplers_of_doubles_give_themselves_away_by_their_gaps(kind, bits):
    zero, one = (RELEASES[kind](value) for value in (0.0, 1.0))
    assert not in_a_gap(zero, bits)[1].any()
    near, impossible = in_a_gap(one, bits)
    assert np.mean(impossible[near]) > 0.3


def test_on_a_grid_both_values_give_the_same_outputs():
    """Every integer is possible for both, and no digit of it tells one value from the other."""
    zero, one = (RELEASES["discrete"](value) / NOISE.grid for value in (0.0, 1.0))
    for outputs in (zero, one):
        assert np.array_equal(outputs, np.rint(outputs))
        digits = np.bincount((outputs % 32).astype(int), minlength=32)
        assert stats.chisquare(digits).pvalue > 1e-7
    assert math.gcd(*(int(x) for x in zero)) == math.gcd(*(int(x) for x in one)) == 1
