"""Attacks on the last bits of noisy numbers (Mironov 2012; Jin et al. 2022), and what they find.

The attacker knows two values and sees one release. An output that one value alone can give is a
proof, whatever epsilon and delta were claimed: its probability is a lower bound on delta.
"""

import math

import numpy as np
import pytest
from scipy import stats
from scipy.special import ndtri

from skdp.mechanisms import GaussianMechanism, RandomStream
from skdp.mechanisms._ziggurat import ziggurat
from skdp.mechanisms.release import Release

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
        return mechanism.release(np.broadcast_to(value, np.shape(value) or TRIALS))

    return release


NOISE = Release("x", 1.0).on_grid(SIGMA, 1)
RELEASES = {"naive": naive, "float": of_skdp(0.0), "discrete": of_skdp(NOISE.grid)}


def too_fine_for_one(outputs):
    """Tell which outputs below a half are not 1 plus a double: such sums are exact, and coarse."""
    return np.abs(outputs) < 0.5, (np.abs(outputs) < 0.5) & (outputs * 2.0**53 % 1.0 != 0.0)


def in_a_gap_of_layers(outputs, reach):
    """Tell which outputs near 0 are no SIGMA times a place in the middle of a layer's cells."""
    near = np.abs(outputs) < reach
    size, found = np.abs(outputs[near]) / SIGMA, False
    for width in ziggurat().widths:
        places = np.maximum(np.floor(size / width) + np.arange(-2.0, 3.0)[:, None], 0.0) + 0.5
        found |= (places * width == size).any(axis=0)
    impossible = np.zeros(outputs.shape, dtype=bool)
    impossible[near] = ~found
    return near, impossible


@pytest.mark.parametrize("kind", RELEASES)
def test_sums_of_doubles_give_themselves_away(kind):
    zero, one = (RELEASES[kind](value) for value in (0.0, 1.0))
    near, fine = too_fine_for_one(zero)
    assert not too_fine_for_one(one)[1].any()
    # Of the outputs of 0 near 0 most prove that they are not of 1, but for those on a grid.
    share = np.mean(fine[near])
    assert share == 0.0 if kind == "discrete" else share > 0.5


def test_the_layers_of_a_ziggurat_leave_gaps_very_near_zero_only():
    """Of 256 grids nearly every double is a member of one."""
    near, impossible = in_a_gap_of_layers(of_skdp(0.0)(np.zeros(100 * TRIALS)), 0.5)
    assert not impossible.any()
    outputs = of_skdp(0.0)(np.ones(100 * TRIALS))
    near, impossible = in_a_gap_of_layers(outputs, 0.5)
    assert 0.0 < np.mean(impossible[near]) < 0.02
    near, impossible = in_a_gap_of_layers(outputs, 0.005)
    assert np.mean(impossible[near]) > 0.2


def test_on_a_grid_both_values_give_the_same_outputs():
    """Every integer is possible for both, and no digit of it tells one value from the other."""
    zero, one = (RELEASES["discrete"](value) / NOISE.grid for value in (0.0, 1.0))
    for outputs in (zero, one):
        assert np.array_equal(outputs, np.rint(outputs))
        digits = np.bincount((outputs % 32).astype(int), minlength=32)
        assert stats.chisquare(digits).pvalue > 1e-7
    assert math.gcd(*(int(x) for x in zero)) == math.gcd(*(int(x) for x in one)) == 1
