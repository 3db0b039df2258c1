"""The event of objective perturbation: reference values, and exact profiles never above it."""

import math

import mpmath as mp
import numpy as np
import pytest
from objective_densities import density, grid, hinge, logistic, profile, tight, unit

from skdp.accounting import (
    Event,
    GDPAccountant,
    ObjectivePerturbationEvent,
    PLDAccountant,
)
from skdp.accounting.numerics import gaussian_profile
from skdp.exceptions import UnsupportedEventError

ADJACENCIES = ("add-remove", "replace-one")


def gaussian_delta(epsilon, mu):
    with mp.workdps(40):
        e, m = mp.mpf(epsilon), mp.mpf(mu)
        return float(mp.ncdf(m / 2 - e / m) - mp.exp(e) * mp.ncdf(-m / 2 - e / m))


# Reference values, computed independently with Lam = 5, noise 3, one record's gradient up to 1.


@pytest.mark.parametrize(
    ("slope", "adjacency", "expected"),
    [
        ("known-sign", "add-remove", 0.016784910),
        ("logistic", "add-remove", 0.012418249),
        ("known-sign", "replace-one", 0.120332127),
        ("logistic", "replace-one", 0.108744377),
        ("any-sign", "add-remove", 2 * 0.016784910),
    ],
)
def test_reference_profiles(slope, adjacency, expected):
    event = ObjectivePerturbationEvent(3.0, 1 / 20, slope)
    assert event.profile_bound(0.5, adjacency) == pytest.approx(expected, abs=6e-10)


def test_reference_profile_where_the_gaussian_form_ends():
    event = ObjectivePerturbationEvent(2.0, 0.0)
    assert event.profile_bound(0.05, "replace-one") == pytest.approx(0.375240904, abs=6e-10)


@pytest.mark.parametrize("multiplier", [0.4, 2.0, 30.0])
@pytest.mark.parametrize("curvature", [1e-4, 0.3])
def test_closed_forms_in_high_precision(multiplier, curvature):
    mu, c = 1 / multiplier, math.log1p(curvature)
    for epsilon in (0.7 * c, c + 0.5 * mu * mu, c + 2 * mu, c + 6 * mu):
        e = epsilon - c
        one = ObjectivePerturbationEvent(multiplier, curvature)
        small = 1 - 2 * math.exp(e) * float(mp.ncdf(-mu / 2))
        exact = gaussian_delta(e, mu) if e >= 0 else small
        assert one.profile_bound(epsilon, "add-remove") == pytest.approx(exact, rel=1e-8)
        if e >= mu * mu:
            exact = gaussian_delta(e, 2 * mu)
            assert one.profile_bound(epsilon, "replace-one") == pytest.approx(exact, rel=1e-8)
        other = ObjectivePerturbationEvent(multiplier, curvature, "any-sign")
        for adjacency, m in (("add-remove", mu), ("replace-one", 2 * mu)):
            small = 1 - 2 * math.exp(e) * float(mp.ncdf(-m))
            exact = 2 * gaussian_delta(e, m) if e >= m * m / 2 else small
            bound = other.profile_bound(epsilon, adjacency)
            assert bound == pytest.approx(min(1.0, exact), rel=1e-8)


@pytest.mark.parametrize(
    ("slope", "adjacency", "share"),
    [
        ("known-sign", "replace-one", 0.8),
        ("logistic", "replace-one", 0.8),
        ("any-sign", "add-remove", 0.45),
        ("any-sign", "replace-one", 1.8),
    ],
)
@pytest.mark.parametrize("mu", [26.0, 30.0, 40.0, 100.0])
def test_next_to_no_noise_protects_nothing(slope, adjacency, share, mu):
    """Masses underflow where powers of e are huge: their product must not be taken for large."""
    event = ObjectivePerturbationEvent(1 / mu, 1e-9, slope)
    assert event.profile_bound(share * mu * mu, adjacency) > 0.999


def test_profile_of_many_outputs_is_no_smaller_than_that_of_their_sum():
    """Each of many weights is beyond the largest double."""
    event = ObjectivePerturbationEvent(1000.0, 0.0, outputs=12_000)
    ideal = gaussian_profile.delta(math.sqrt(12_000) / 1000.0, 4.0)
    assert 0.0 < ideal <= event.profile_bound(4.0, "add-remove") <= 1.0


# Exact profiles by quadrature.


FAMILIES = ("logistic", "clipped logistic", "hinge", "clipped hinge", "huber")


def pairs(name, adjacency, d, count):
    """Yield random and adversarial neighbours: the other records pull towards the changed one."""
    rng = np.random.default_rng(sum(map(ord, name + adjacency)) + d)
    for _ in range(count):
        loss, cap, curvature, slope = tight(name, rng)
        penalty = float(10 ** rng.uniform(-0.3, 1.5))
        noise = cap * float(10 ** rng.uniform(-0.3, 1.3))
        row = unit(rng, d)
        others = [
            ((-row if rng.random() < 0.5 else unit(rng, d)) * rng.choice([1.0, 0.4]), loss)
            for _ in range(rng.integers(0, 4))
        ]
        one = [*others, (row, loss)]
        other = others
        if adjacency == "replace-one":
            moved = -row if rng.random() < 0.7 else unit(rng, d)
            other = [*others, (moved, tight("huber", rng)[0] if name == "huber" else loss)]
            if name == "huber":
                curvature = 10.0  # the two records' widths may differ
        event = ObjectivePerturbationEvent(noise / cap, curvature / penalty, slope)
        yield one, other, penalty, noise, event


def check_pairs(name, adjacency, d, count, points, slack):
    closest = 0.0
    for one, other, penalty, noise, event in pairs(name, adjacency, d, count):
        where, weight = grid([*one, *other], penalty, noise, d, points)
        p, q = (density(records, penalty, noise, where) for records in (one, other))
        # Densities of losses with kinks jump, which limits the accuracy of the sums.
        error = max(abs(weight * density_.sum() - 1.0) for density_ in (p, q))
        assert error < 1e-2
        mu = 1 / event.noise_multiplier
        for epsilon in (0.0, 0.3 * mu, mu, mu * mu, 2 * mu, 4 * mu, math.log1p(event.curvature)):
            bound = event.profile_bound(epsilon, adjacency)
            exact = profile(p, q, weight, epsilon)
            assert exact <= bound * (1 + slack + 3 * error) + 1e-3 * slack, (event, epsilon)
            if bound < 0.9:
                closest = max(closest, exact / bound)
    return closest


@pytest.mark.daily(3)
@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("name", FAMILIES)
def test_exact_profiles_on_a_line_never_exceed_the_bound(name, adjacency):
    assert check_pairs(name, adjacency, 1, 60, 20_000, 1e-4) > 0.5


@pytest.mark.oracle
@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("name", FAMILIES)
def test_exact_profiles_in_the_plane_never_exceed_the_bound(name, adjacency):
    check_pairs(name, adjacency, 2, 12, 500, 5e-3)


@pytest.mark.parametrize(
    ("loss", "slope", "curvature", "penalty", "noise", "epsilon"),
    [
        # Far from its kink the hinge is a straight line, and little curvature is possible.
        (hinge(0.5), "known-sign", 1.0, 1e5, 3.0, 0.5),
        (hinge(0.5, 0.3), "known-sign", 1.0, 1e5, 1.0, 0.3),
        # Much noise over the penalty saturates the logistic slope where the loss is large.
        (logistic(), "logistic", 0.25, 20.0, 50.0, 0.1),
        # Clipping at less than a half leaves a straight line around zero.
        (logistic(0.2), "known-sign", 0.16, 1e5, 1.0, 0.2),
    ],
)
def test_some_neighbours_come_within_two_percent(loss, slope, curvature, penalty, noise, epsilon):
    cap = epsilon if epsilon in (0.2, 0.3) else 1.0
    event = ObjectivePerturbationEvent(noise / cap, curvature / penalty, slope)
    row = np.ones(1)
    for adjacency, other in (("add-remove", []), ("replace-one", [(-row, loss)])):
        where, weight = grid([(row, loss)] * 2, penalty, noise, 1, 400_000)
        p, q = (density(r, penalty, noise, where) for r in ([(row, loss)], other))
        exact = profile(p, q, weight, epsilon)
        bound = event.profile_bound(epsilon, adjacency)
        if slope == "logistic" and other:
            continue  # no two opposite rows have steep slopes at the same weight
        assert 0.98 * bound <= exact <= bound * (1 + 1e-6)


@pytest.mark.daily(1)
@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_joint_profiles_of_two_outputs_never_exceed_the_bound(adjacency):
    """One row in two problems with independent noise: the joint density is a product."""
    rng = np.random.default_rng(5)
    closest = 0.0
    for _ in range(12):
        loss, cap, curvature, _ = tight(str(rng.choice(FAMILIES[:4])), rng)
        penalty, noise = float(10 ** rng.uniform(-0.3, 1)), cap * float(10 ** rng.uniform(-0.3, 1))
        event = ObjectivePerturbationEvent(noise / cap, curvature / penalty, outputs=2)
        joint = []
        where, weight = grid([(np.ones(1), loss)] * 4, penalty, noise, 1, 1500)
        for label in (1.0, -1.0):  # one class's positive is the other's negative
            others = [(np.array([-label * s]), loss) for s in rng.choice([1.0, 0.5], 2)]
            one = [*others, (np.array([label]), loss)]
            other = others
            if adjacency == "replace-one":
                other = [*others, (np.array([-label]), loss)]
            joint.append([density(records, penalty, noise, where) for records in (one, other)])
        p, q = (np.outer(joint[0][k], joint[1][k]).ravel() for k in (0, 1))
        mu = math.sqrt(2) / event.noise_multiplier
        for epsilon in (0.0, 0.5 * mu, 2 * mu, 4 * mu):
            bound = event.profile_bound(epsilon, adjacency)
            exact = profile(p, q, weight**2, epsilon)
            assert exact <= bound * (1 + 1e-3) + 1e-7
            closest = max(closest, exact / bound)
    assert closest > 0.3


def convolved(values, kernel_width, step):
    """Return a density on a grid after adding normal noise."""
    half = math.ceil(9 * kernel_width / step)
    offsets = step * np.arange(-half, half + 1)
    kernel = np.exp(-0.5 * (offsets / kernel_width) ** 2)
    return np.convolve(values, kernel / kernel.sum(), mode="same")


@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("name", FAMILIES)
def test_approximate_minima_never_exceed_the_bound(name, adjacency):
    """Errors of the solver that always help to tell the neighbours apart."""
    rng = np.random.default_rng(3)
    for one, other, penalty, noise, exact_event in pairs(name, adjacency, 1, 12):
        spread = float(10 ** rng.uniform(-2, 0)) / exact_event.noise_multiplier
        final = float(rng.uniform(0.05, 0.5)) * noise / penalty
        event = ObjectivePerturbationEvent(
            exact_event.noise_multiplier, exact_event.curvature, exact_event.slope, spread
        )
        where, weight = grid([*one, *other], penalty, noise, 1, 6_000)
        sign = math.copysign(
            1.0,
            where[:, 0]
            @ np.subtract(*(density(records, penalty, noise, where) for records in (one, other))),
        )
        error = sign * 0.5 * spread * final
        p, q = (
            convolved(density(records, penalty, noise, where - shift), final, weight)
            for records, shift in ((one, error), (other, -error))
        )
        mu = 1 / event.noise_multiplier
        for epsilon in (0.0, mu, 2 * mu, 4 * mu):
            bound = event.profile_bound(epsilon, adjacency)
            assert profile(p, q, weight, epsilon) <= bound * (1 + 1e-3) + 1e-7
            assert bound >= exact_event.profile_bound(epsilon, adjacency) * (1 - 1e-9)


# Laws.


def events():
    rng = np.random.default_rng(8)
    for outputs in (1, 1, 1, 1, 2, 3, 10, 60):
        for slope in ("logistic", "known-sign", "any-sign"):
            yield ObjectivePerturbationEvent(
                float(10 ** rng.uniform(-0.7, 2)),
                float(10 ** rng.uniform(-4, 0.5)),
                slope,
                float(rng.choice([0.0, 10 ** rng.uniform(-4, 0)])),
                1 if slope == "any-sign" else outputs,
            )


@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_profile_never_rises_and_stays_in_range(adjacency):
    for event in events():
        scale = event.outputs / event.noise_multiplier**2 + 1 / event.noise_multiplier
        grid_ = np.concatenate([np.linspace(0, 12 * scale, 30), np.geomspace(1e-6, 1e3, 20)])
        values = [event.profile_bound(float(e), adjacency) for e in np.sort(grid_)]
        assert all(0.0 <= v <= 1.0 for v in values)
        assert np.all(np.diff(values) <= 1e-12 * np.array(values[:-1]) + 3e-14), event
        assert event.profile_bound(1e308, adjacency) <= 1e-300
        assert event.profile_bound(math.inf, adjacency) == 0.0


def test_replacing_costs_more_than_removing_and_twice_the_noise_makes_up_for_it():
    for event in events():
        if event.approximation > 0.0:
            continue
        noisier = ObjectivePerturbationEvent(
            2 * event.noise_multiplier, event.curvature, event.slope, 0.0, event.outputs
        )
        for t in (1.0, 3.0, 5.0):
            mu = math.sqrt(event.outputs) / event.noise_multiplier
            epsilon = event.outputs * math.log1p(8 * event.curvature) + t * mu + mu * mu
            removed = event.profile_bound(epsilon, "add-remove")
            assert removed <= event.profile_bound(epsilon, "replace-one") * (1 + 1e-9)
            if event.outputs == 1:
                twice = noisier.profile_bound(epsilon, "replace-one")
                assert twice == pytest.approx(removed, rel=1e-7)


def test_more_outputs_cost_more_but_little_more_than_the_root_of_their_number():
    for outputs in (2, 3, 5, 10):
        for adjacency, factor in zip(ADJACENCIES, (1.0, 2.0), strict=True):
            event = ObjectivePerturbationEvent(20.0, 1e-9, outputs=outputs)
            mu = factor * math.sqrt(outputs) / 20.0
            epsilon = 4.0 * mu
            ideal = gaussian_profile.delta(mu, epsilon)
            wide = gaussian_profile.delta(1.12 * mu, epsilon)
            assert ideal <= event.profile_bound(epsilon, adjacency) <= wide


def test_many_outputs_still_have_a_useful_bound():
    event = ObjectivePerturbationEvent(100.0, 1e-9, outputs=1000)
    assert event.profile_bound(12.0, "add-remove") < 1e-3


def test_round_trip_and_bad_parameters():
    event = ObjectivePerturbationEvent(2, 0.1, "logistic", 0.01, 3)
    assert Event.from_dict(event.to_dict()) == event and hash(event)
    for parameters, message in (
        ((0.0, 0.1), "noise_multiplier"),
        ((1.0, -0.1), "curvature"),
        ((1.0, math.inf), "curvature"),
        ((1.0, 0.1, "falling"), "slope must be one of"),
        ((1.0, 0.1, "logistic", -1.0), "approximation"),
        ((1.0, 0.1, "logistic", 0.0, 0), "outputs"),
        ((1.0, 0.1, "any-sign", 0.0, 2), "known sign"),
    ):
        with pytest.raises(ValueError, match=message):
            ObjectivePerturbationEvent(*parameters)


@pytest.mark.parametrize("rows", [1, None])
@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_composition_is_between_the_gaussian_one_and_basic(adjacency, rows):
    factor = 2.0 if adjacency == "replace-one" else 1.0
    event = ObjectivePerturbationEvent(20.0 * factor, 1e-3, "logistic", rows_per_unit=rows)
    single = PLDAccountant(adjacency).compose(event)
    assert single.delta(0.3) >= event.profile_bound(0.3, adjacency) * (1 - 1e-9)
    assert single.delta(0.3) <= event.profile_bound(0.3, adjacency) * 1.05
    four = PLDAccountant(adjacency).compose(event, 4)
    gaussian = gaussian_profile.epsilon(2 / 20.0, 1e-6)
    assert gaussian * (1 - 1e-6) <= four.epsilon(1e-6) <= gaussian + 4 * math.log1p(1e-3) + 0.02
    with pytest.raises(UnsupportedEventError, match="PLDAccountant"):
        GDPAccountant(adjacency).compose(event)
