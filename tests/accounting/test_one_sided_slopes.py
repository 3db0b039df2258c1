"""Objective perturbation of losses of numbers: reference noise, and exact profiles below it."""

import math
from itertools import product

import numpy as np
import pytest
from objective_densities import density, grid, huber, profile
from scipy.optimize import brentq

from skdp.accounting import Event, ObjectivePerturbationEvent
from skdp.accounting.numerics import gaussian_profile

ADJACENCIES = ("add-remove", "replace-one")


def least_noise(curvature, opposite, adjacency, epsilon, delta, slope="any-sign"):
    def excess(noise):
        event = ObjectivePerturbationEvent(noise, curvature, slope, opposite=opposite)
        return math.log(event.profile_bound(epsilon, adjacency) / delta)

    return brentq(excess, 1.0, 100.0, xtol=1e-10)


# Worked out independently of the library, for a largest slope of 1 (of the quantile .9).
REFERENCES = [
    (1 / 10, 1.0, "add-remove", 1.0, 1e-6, 4.792484),
    (1 / 10, 1.0, "replace-one", 1.0, 1e-6, 9.584969),
    (1 / 30, 1.0, "add-remove", 0.1, 1e-3, 27.252389),
    (1 / 30, 1.0, "replace-one", 0.1, 1e-3, 54.504777),
    (0.0, 1.0, "add-remove", 1.0, 1e-6, 4.365155),
    (0.0, 1.0, "replace-one", 1.0, 1e-6, 8.730310),
    (0.0, 1 / 9, "add-remove", 1.0, 1e-6, 3.802211 / 0.9),
    (0.0, 0.0, "replace-one", 1.0, 1e-6, 8.449358),
]


@pytest.mark.parametrize(
    ("curvature", "opposite", "adjacency", "eps", "delta", "noise"), REFERENCES
)
def test_reference_noise(curvature, opposite, adjacency, eps, delta, noise):
    found = least_noise(curvature, opposite, adjacency, eps, delta)
    assert found == pytest.approx(noise, abs=6e-7)


def test_a_known_sign_costs_what_the_table_says():
    assert least_noise(0.1, 1.0, "add-remove", 1.0, 1e-6, "known-sign") == pytest.approx(
        4.636403, abs=6e-7
    )
    assert least_noise(0.1, 1.0, "replace-one", 1.0, 1e-6, "known-sign") == pytest.approx(
        9.272806, abs=6e-7
    )
    # The width is paid for: a constant one costs as much as a known sign.
    assert least_noise(0.1, 0.0, "add-remove", 1.0, 1e-6) == pytest.approx(4.636403, abs=6e-7)


@pytest.mark.parametrize("opposite", [0.0, 0.3, 0.5, 0.8, 1.0])
def test_no_pair_of_ranges_and_directions_exceeds_the_closed_form(opposite):
    """The sums over corners in the proofs, over many ranges of slopes and angles of rows."""
    rng = np.random.default_rng(int(10 * opposite))
    for _ in range(8):
        mu = 10 ** rng.uniform(-2.0, 0.5)
        epsilon = 2.0 * mu * math.sqrt(1.0 + mu * mu) * 1.0001 * 10 ** rng.uniform(0.0, 1.0)
        event = ObjectivePerturbationEvent(1.0 / mu, 0.0, "any-sign", opposite=opposite)
        alone, replaced = (event.profile_bound(epsilon, adjacency) for adjacency in ADJACENCIES)

        def sums(lengths):
            return sum(gaussian_profile.delta(mu * length, epsilon) for length in lengths)  # noqa: B023

        ends = [(0.0, 0.0), (1.0, 0.0), (1.0, opposite), (opposite, 1.0)]
        inner = rng.uniform(0.0, 1.0, (3, 2))
        ranges = [*ends, *inner[inner.sum(axis=1) <= 1.0 + opposite]]
        assert max(map(sums, ranges)) <= alone * (1.0 + 1e-9)
        for (p, q), (r, s), rho in product(ranges, ranges, (-1.0, 0.0, 0.7, 1.0)):
            squares = (
                p * p + r * r - 2.0 * p * r * rho,
                q * q + s * s - 2.0 * q * s * rho,
                p * p + s * s + 2.0 * p * s * rho,
                q * q + r * r + 2.0 * q * r * rho,
            )
            total = sums(math.sqrt(max(0.0, square)) for square in squares)
            if opposite < 1.0:
                assert total <= replaced * (1.0 + 1e-9)


def quantile(target, width, tau):
    return (
        lambda t: np.clip((t - target) / width, -0.5, 0.5) + 0.5 - tau,
        lambda t: np.where(np.abs(t - target) < 0.5 * width, 1.0 / width, 0.0),
    )


def clipped_square(target):
    return (
        lambda t: np.clip(t, -1.0, 1.0) - target,
        lambda t: np.where(np.abs(t) < 1.0, 1.0, 0.0),
    )


def poisson(target):
    return (
        lambda t: np.exp(np.minimum(t, np.log(2.0))) - (1.0 + target),
        lambda t: np.where(t < np.log(2.0), np.exp(np.minimum(t, 1.0)), 0.0),
    )


LINE = np.ones_like, np.zeros_like


def draw(name, rng):
    """Return a loss of a random target, and largest slope, curvature and share of the opposite."""
    target = float(rng.choice([-1.0, 1.0, rng.uniform(-1.0, 1.0)]))
    if name == "quantile":
        return lambda y: quantile(y, 0.3, 0.8), target, 0.8, 1.0 / 0.3, 0.25
    if name == "clipped square":
        return clipped_square, target, 2.0, 1.0, 0.0
    if name == "poisson":
        return poisson, target, 2.0, 2.0, 0.0
    return lambda y: huber(y, 0.5), target, 1.0, 2.0, 1.0


def largest_share(name, adjacency, count, points, seed):
    """Hold exact profiles of random neighbours against the bound; return the largest quotient."""
    rng = np.random.default_rng(seed)
    closest = 0.0
    for number in range(count):
        make, target, slope, curvature, opposite = draw(name, rng)
        penalty = float(10 ** rng.uniform(0.0, 2.0))
        noise = slope * float(10 ** rng.uniform(-0.3, 0.9))
        others = [
            (np.array([rng.choice([-1.0, 0.5])]), make(draw(name, rng)[1]))
            for _ in range(rng.integers(0, 3))
        ]
        if number % 2:  # the others pull the minimiser to where the loss is a line
            penalty = float(10 ** rng.uniform(2.0, 3.0))
            noise = penalty * float(10 ** rng.uniform(-2.0, -0.5))
            pull = np.array([rng.choice([-1.0, 1.0]) * penalty * rng.uniform(1.0, 6.0)])
            others = [(pull, LINE)]
        one = [*others, (np.ones(1), make(target))]
        other = others
        if adjacency == "replace-one":
            moved = np.array([rng.choice([-1.0, 1.0])]), make(draw(name, rng)[1])
            other = [*others, moved]
        event = ObjectivePerturbationEvent(
            noise / slope, curvature / penalty, "any-sign", opposite=opposite
        )
        where, weight = grid([*one, *other], penalty, noise, 1, points)
        p, q = (density(records, penalty, noise, where) for records in (one, other))
        error = max(abs(weight * each.sum() - 1.0) for each in (p, q))
        assert error < 1e-2
        mu, c = slope / noise, math.log1p(curvature / penalty)
        for epsilon in (c, c + 0.5 * mu * mu, c + mu, c + 2 * mu * math.hypot(1, mu), c + 4 * mu):
            bound = event.profile_bound(epsilon, adjacency)
            exact = profile(p, q, weight, epsilon)
            assert exact <= bound * (1.0 + 1e-4 + 3.0 * error) + 1e-7, (event, epsilon)
            if bound < 0.9:
                closest = max(closest, exact / bound)
    return closest


LOSSES = ("huber", "quantile", "clipped square", "poisson")
# Signs that cancel leave half of a Huber loss's bound idle; squares and counts cannot pull to both
# sides at once.
CLOSE = {"huber": 0.4, "quantile": 0.6, "clipped square": 0.25, "poisson": 0.25}


@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("name", LOSSES)
def test_exact_profiles_never_exceed_the_bound(name, adjacency):
    assert largest_share(name, adjacency, 16, 4_000, 1) > 0.2


@pytest.mark.slow
@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("name", LOSSES)
def test_many_exact_profiles_never_exceed_the_bound(name, adjacency):
    share = largest_share(name, adjacency, 250, 20_000, 2)
    print(f"{name}, {adjacency}: {share:.3f}")
    assert share > (CLOSE[name] if adjacency == "replace-one" or name == "huber" else 0.9)


def test_profiles_fall_with_epsilon_and_rise_with_the_opposite():
    rng = np.random.default_rng(3)
    for adjacency in ADJACENCIES:
        for spread in (0.0, 0.01, 0.3):
            noise, curvature = 10 ** rng.uniform(-0.5, 1.5), 10 ** rng.uniform(-3, 0)
            table = []
            for opposite in (0.0, 0.2, 0.5, 0.9, 1.0):
                event = ObjectivePerturbationEvent(
                    noise, curvature, "any-sign", spread / noise, opposite=opposite
                )
                assert Event.from_dict(event.to_dict()) == event
                bounds = [event.profile_bound(e, adjacency) for e in np.linspace(0, 12 / noise, 60)]
                assert (np.diff(bounds) <= 1e-15).all() and 0.0 <= bounds[-1]
                table.append(bounds)
            assert (np.diff(table, axis=0) >= -1e-12).all()
            # Any sign is the default, and of several rows the law of any sign holds.
            assert event == ObjectivePerturbationEvent(noise, curvature, "any-sign", spread / noise)


def test_units_of_several_rows_pay_for_any_sign():
    one = ObjectivePerturbationEvent(5.0, 0.1, "any-sign", rows_per_unit=None, opposite=0.0)
    other = ObjectivePerturbationEvent(5.0, 0.1, "any-sign", rows_per_unit=None)
    for adjacency in ADJACENCIES:
        assert one.profile_bound(1.0, adjacency) == other.profile_bound(1.0, adjacency)


@pytest.mark.parametrize("slope", ["known-sign", "logistic"])
def test_the_opposite_is_of_slopes_of_any_sign(slope):
    with pytest.raises(ValueError, match=r"opposite=0.5 requires slope='any-sign'"):
        ObjectivePerturbationEvent(1.0, 0.1, slope, opposite=0.5)
    for opposite in (-0.1, 1.1, math.nan):
        with pytest.raises(ValueError, match="opposite must lie in"):
            ObjectivePerturbationEvent(1.0, 0.1, "any-sign", opposite=opposite)
