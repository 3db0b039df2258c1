"""Moments of single losses off the real axis, against balls that hold them."""

import math

import numpy as np
import pytest
from ball_moments import gaussian_moment, precision
from flint import acb, arb

from skdp.accounting.numerics.arithmetic import gauss_legendre
from skdp.accounting.pld.composed_transforms import ComposedLoss, find_saddle
from skdp.accounting.pld.gaussian_transforms import GaussianMixtureLoss, tilted_nodes, transform
from skdp.accounting.pld.inversion import Inversion
from skdp.accounting.pld.inversion_bounds import Effort, bound_delta, invert_delta
from skdp.accounting.pld.mixture_transforms import (
    AdditionMixture,
    PoissonReplacementMixture,
    RemovalMixture,
    UniformReplacementMixture,
    log_decay,
)
from skdp.accounting.pld.pairs.gaussian import gaussian_pair

MIXTURES = {
    "remove": RemovalMixture,
    "add": AdditionMixture,
    "poisson-replace-one": PoissonReplacementMixture,
    "uniform-replace-one": UniformReplacementMixture,
}
KINDS = tuple(MIXTURES)
CASES = [  # rate, mu, theta, frequency
    (0.01, 0.25, 10.0, 30.0),
    (1e-3, 1.6, 2.0, 20.0),
    (0.1, 0.2, 20.0, 5.0),
    (1e-7, 1e-4, 1e3, 1e4),
    (0.5, 0.1, 3.0, 50.0),
    (0.3, 2.0, 0.5, 9.0),
    (1e-4, 0.5, 30.0, 100.0),
]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("rate", "mu", "theta", "frequency"), CASES)
@pytest.mark.parametrize("cut", [None, 4.5])
def test_moments_are_within_their_errors(kind, rate, mu, theta, frequency, cut):
    if cut is not None and kind == "add":
        pytest.skip("losses that are bounded are never cut off")
    mixture = MIXTURES[kind](rate, mu, math.inf if cut is None else cut)
    nodes = tilted_nodes(mixture, theta, frequency, 60.0)
    frequencies = np.array([0.0, frequency])
    values, errors = transform(nodes, frequencies)
    with precision(160):
        for value, error, u in zip(values, errors, frequencies, strict=True):
            exact = gaussian_moment(kind, rate, mu, complex(theta, u), cut).log()
            off, size = acb(value) - exact, abs(exact)  # balls: bounds hold in all of them
            assert abs(off) <= arb(error)
            assert off.real.rad() <= 1e-3 * error
            # Small against the size of the loss, though that may be far below a unit roundoff.
            least = 1e-9 * size + 1e-11 * abs(complex(theta, u)) * rate * mu
            assert error <= least + (1e-7 if size > 5.0 else 0.0)


@pytest.mark.daily(1)
@pytest.mark.parametrize("kind", KINDS)
def test_many_frequencies_at_once_are_as_good(kind):
    nodes = tilted_nodes(MIXTURES[kind](1e-3, 0.8), 4.0, 3000.0, 60.0)
    frequencies = np.linspace(0.0, 3000.0, 30_001)
    assert len(frequencies) * len(nodes.losses) > 1_000_000
    values, errors = transform(nodes, frequencies)
    some = [0, 7, 1234, 17_001, 30_000]
    few, few_errors = transform(nodes, frequencies[some])
    for k, value, error in zip(some, few, few_errors, strict=True):
        assert abs(np.exp(values[k]) - np.exp(value)) <= 2.0 * (errors[k] + error)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("rate", "mu", "theta", "frequency"), CASES)
def test_decay_bounds_all_larger_frequencies(kind, rate, mu, theta, frequency):
    mixture = MIXTURES[kind](rate, mu)
    nodes = tilted_nodes(mixture, theta, 0.0, 60.0)
    square = float(np.dot(nodes.weights, nodes.losses**2))
    if not math.isfinite(square):
        pytest.skip("moments out of reach")
    unit = 1.0 / math.sqrt(square / (1.0 + nodes.excess))
    checked = 0
    for share in (0.03, 0.3, 2.0):
        bound = log_decay(mixture, theta, share * unit)
        assert -20.0 <= bound <= 0.0
        later = unit * share * np.array([0.0, 1.0, 1.1, 2.0, 3.7])
        values, errors = transform(tilted_nodes(mixture, theta, later[-1], 60.0), later)
        if np.any(np.isinf(errors)):
            break  # no truth to compare with at such frequencies
        checked += 1
        assert np.all(values[1:].real - values[0].real <= bound + 1e-12)
    assert checked > 0


def test_decay_is_not_vacuous():
    # The near-Gaussian loss of little sampling falls as e^(-u^2 variance / 2).
    mixture = RemovalMixture(0.01, 0.25)
    loss = GaussianMixtureLoss(mixture)
    variance = loss.cumulants(10.0)[2]
    frequency = 1.0 / math.sqrt(variance)
    assert log_decay(mixture, 10.0, frequency) < -0.4
    assert log_decay(mixture, 10.0, 1e-3 * frequency) == pytest.approx(-0.5e-6, rel=0.1)


def test_out_of_reach_is_said():
    loss = GaussianMixtureLoss(RemovalMixture(0.5, 30.0))
    values, errors = loss.log_transform(np.array([1e4 + 0j, 1e4 + 1j]))
    assert np.all(np.isinf(errors))
    assert np.all(np.isinf(values.real))
    assert loss.cumulants(1e4)[0] == math.inf


def test_panels_are_rounded_correctly():
    # Even moments of high order rest on the outermost weights, which usual formulas lose.
    points, weights = gauss_legendre(36)
    for k in (0, 2, 36, 70):
        exact = 2.0 / (k + 1)
        assert abs(math.fsum(weights * points**k) - exact) <= 70 * 2.0**-53 * exact


@pytest.mark.parametrize("theta", [100.0, 1e3])
def test_decay_where_the_tilted_density_lies_far_to_the_left(theta):
    # The tilt of bounded losses drives the density beyond where an untilted one would end.
    mixture = AdditionMixture(0.3, 1.0)
    unit = 1.0 / math.sqrt(GaussianMixtureLoss(mixture).cumulants(theta)[2])
    for share in (0.1, 1.0, 3.0):
        bound = log_decay(mixture, theta, share * unit)
        later = np.array([0.0, 1.0, 1.2, 2.0]) * share * unit
        values, errors = transform(tilted_nodes(mixture, theta, later[-1], 60.0), later)
        assert np.all(np.isfinite(errors))
        assert np.all(values[1:].real - values[0].real - errors[1:] - errors[0] <= bound)
        assert bound < 0.8 * (values[1].real - values[0].real)


def test_upper_bounds_are_positive_where_delta_underflows():
    lower, upper = invert_delta([(gaussian_pair("remove", 0.5, 0.1), 100)], 0.0, 60.0, 1e-3)
    assert lower == 0.0 < upper


@pytest.mark.parametrize("kind", ["remove", "poisson-replace-one", "uniform-replace-one"])
def test_what_is_cut_off_counts_against_us(kind):
    pair, count = gaussian_pair(kind, 0.05, 1.0), 50
    whole = bound_delta(ComposedLoss([(pair.transforms(0.0)[0], count)]), 1.5, 1e-6, Effort())
    # So much is cut off that it shows: about a fiftieth of the losses that matter.
    cut = ComposedLoss([(pair.transforms(0.02 * whole[1] / count)[0], count)])
    lower, upper = bound_delta(cut, 1.5, 1e-6, Effort())
    assert lower < whole[0] <= whole[1] <= upper
    assert upper - cut.outside[1] < whole[0]  # without it, the bound would be too low
    assert cut.outside[1] < 0.05 * whole[1]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("neglected", [0.9, 0.3, 0.01])
def test_short_sums_are_still_bounds(kind, neglected):
    """Aliases and the sum's tail are counted where they are not small."""
    loss = ComposedLoss([(gaussian_pair(kind, 0.02, 0.8).transforms(0.0)[0], 3000)])
    for epsilon in (1.0, 3.0):
        truth = bound_delta(loss, epsilon, 1e-6, Effort())
        saddle = find_saddle(loss, epsilon=epsilon)
        for eta in (0.3 / saddle.theta, 0.01 / saddle.theta):
            short = Inversion(loss, saddle, eta, math.log(neglected))
            lower, upper = short.delta_bounds(epsilon)
            assert lower <= truth[0] <= truth[1] <= upper


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("reach", [0.5, 1.0, 1.5, 2.5])
def test_sums_that_end_early_are_still_bounds(kind, reach, monkeypatch):
    loss = ComposedLoss([(gaussian_pair(kind, 0.02, 0.8).transforms(0.0)[0], 3000)])
    epsilon = 2.0
    truth = bound_delta(loss, epsilon, 1e-6, Effort())
    saddle = find_saddle(loss, epsilon=epsilon)
    eta = 0.1 / saddle.theta

    def end(self, log_fall):
        frequency = reach / saddle.deviation
        fall = loss.log_decay(saddle.theta, frequency) - 0.5 * (eta * frequency) ** 2
        return frequency, fall

    monkeypatch.setattr(Inversion, "_choose_end", end)
    lower, upper = Inversion(loss, saddle, eta, math.log(1e-3)).delta_bounds(epsilon)
    assert lower <= truth[0] <= truth[1] <= upper
    if kind == "remove" and reach > 2.0:
        assert upper - lower < 0.5 * truth[1]  # and such as are of use
