"""Releases known by a bound on their profile, and choices between releases."""

import json
import math
from dataclasses import dataclass
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skdp.accounting import (
    ApproxDPEvent,
    BasicCompositionAccountant,
    ComposedEvent,
    Event,
    GaussianEvent,
    GDPAccountant,
    HiddenStateAccountant,
    LaplaceEvent,
    OneOfEvent,
    PLDAccountant,
    PoissonSampledEvent,
    ProfileEvent,
    PureDPEvent,
    RDPAccountant,
    RepeatedEvent,
    UniformSampledEvent,
)
from skdp.accounting.numerics import gaussian_profile
from skdp.accounting.pld.composed_bounds import choices_of
from skdp.accounting.pld.pairs.profile import ProfilePair, hull_atoms
from skdp.exceptions import UnsupportedEventError


@dataclass(frozen=True)
class GaussianByProfile(ProfileEvent):
    """A Gaussian release of which only the profile is told."""

    mu: float

    def profile_bound(self, epsilon, adjacency):
        return gaussian_profile.delta(self.mu, epsilon)


@dataclass(frozen=True)
class SteppedEvent(ProfileEvent):
    """A clumsy bound: it jumps, is flat in places, is one at first, and has a floor."""

    floor: float = 0.0

    def profile_bound(self, epsilon, adjacency):
        if epsilon < 0.5:
            return 1.0
        return max(self.floor, min(1.0, 10.0 ** -math.floor(4.0 * epsilon)))

    def supports_adjacency(self, adjacency):
        return adjacency == "replace-one"


@dataclass(frozen=True)
class PureByProfile(ProfileEvent):
    """Randomised response by its profile."""

    epsilon: float

    def profile_bound(self, epsilon, adjacency):
        if epsilon >= self.epsilon:
            return 0.0
        return -math.expm1(epsilon - self.epsilon) / (1.0 + math.exp(-self.epsilon))

    def largest_loss(self, adjacency):
        return self.epsilon


@pytest.mark.daily(5)
@pytest.mark.parametrize("mu", [0.01, 0.25, 1.0, 5.0])
@pytest.mark.parametrize(("count", "rtol"), [(1, 1e-9), (2, 1e-4), (10, 1e-4), (200, 2e-3)])
def test_a_known_profile_costs_what_it_should(mu, count, rtol):
    accountant = PLDAccountant().compose(GaussianByProfile(mu), count)
    exact = GDPAccountant().compose(GaussianEvent(1.0 / mu), count)
    for delta in (1e-3, 1e-6, 1e-10):
        epsilon = accountant.epsilon(delta)
        assert exact.epsilon(delta) * (1.0 - 1e-9) <= epsilon <= exact.epsilon(delta) * (1.0 + rtol)
        assert epsilon.lower == 0.0
        assert exact.delta(epsilon) <= accountant.delta(epsilon) * (1.0 + 1e-9)


def test_it_composes_with_everything_else():
    others = (
        RepeatedEvent(PoissonSampledEvent(0.01, GaussianEvent(1.0)), 1000),
        PureDPEvent(0.5),
        LaplaceEvent(3.0),
        GaussianEvent(2.0),
    )
    known = PLDAccountant().compose(ComposedEvent((*others, GaussianEvent(1.0))), 1)
    bounded = PLDAccountant().compose(ComposedEvent((*others, GaussianByProfile(1.0))), 1)
    for delta in (1e-3, 1e-6):
        assert known.epsilon(delta).lower <= bounded.epsilon(delta)
        assert bounded.epsilon(delta) == pytest.approx(known.epsilon(delta), rel=1e-4)


def test_pure_profiles():
    bounded = PLDAccountant().compose(PureByProfile(0.4), 5)
    known = PLDAccountant().compose(PureDPEvent(0.4), 5)
    assert bounded.epsilon(0.0) == known.epsilon(0.0) == pytest.approx(2.0)
    for delta in (1e-9, 1e-3):
        assert bounded.epsilon(delta) == pytest.approx(known.epsilon(delta), rel=1e-4)
    assert bounded.delta(2.0) <= 1e-15  # five times the float 0.4 is more than 2
    assert bounded.delta(2.0 + 1e-15) == 0.0
    basic = BasicCompositionAccountant().compose(PureByProfile(0.4), 5)
    assert basic.epsilon(0.0) == known.epsilon(0.0)


def exact_divergence(atoms, y):
    """Hockey-stick divergence of atoms as they stand, in exact arithmetic up to e^loss."""
    with mpmath.workdps(40):
        total = mpmath.mpf(atoms.infinite)
        for loss, mass in zip(atoms.losses.tolist(), atoms.masses.tolist(), strict=True):
            total += max(mpmath.mpf(0), mpmath.mpf(mass) * (1 - y * mpmath.exp(-mpmath.mpf(loss))))
        return total


@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_atoms_dominate_every_profile_below_the_bounds(data):
    # A profile: of randomised responses in any proportion, hence convex and symmetric.
    count = data.draw(st.integers(1, 4))
    scale = 10.0 ** data.draw(st.floats(-8.0, 2.0))
    parts = [
        (data.draw(st.floats(1e-3, 1.0)), scale * data.draw(st.floats(0.01, 3.0)))
        for _ in range(count)
    ]
    failure = data.draw(st.sampled_from([0.0, 1e-20, 1e-3]))
    with mpmath.workdps(40):  # rounded to doubles, shares could add up to more than 1
        total = mpmath.fsum(weight for weight, _ in parts)

    def profile(y):
        """At any y, by symmetry below 1."""
        if y < 1:
            return 1 - y + y * profile(1 / y)
        value = mpmath.mpf(failure)
        for weight, loss in parts:
            share = (1 - mpmath.mpf(failure)) * weight / total
            value += share * max(0, mpmath.exp(loss) - y) / (1 + mpmath.exp(loss))
        return value

    size = data.draw(st.integers(2, 12))
    nodes = np.unique([scale * data.draw(st.floats(0.0, 4.0)) for _ in range(size)])
    with mpmath.workdps(40):
        values = np.array(
            [math.nextafter(float(profile(mpmath.exp(e))), 2.0) for e in nodes.tolist()]
        )
        atoms = hull_atoms(nodes, values)
        assert atoms.infinite + atoms.masses.sum() >= 1.0
        tests = [data.draw(st.floats(0.0, 6.0)) * scale for _ in range(3)] + nodes.tolist()[:4]
        for epsilon in tests:
            for y in (mpmath.exp(epsilon), mpmath.exp(-epsilon)):
                assert exact_divergence(atoms, y) >= profile(y)


def test_atoms_are_no_larger_than_needed():
    pair = ProfilePair(lambda epsilon: gaussian_profile.delta(1.0, epsilon))
    atoms = pair._atoms
    for epsilon in (0.0, 0.5, 2.0, 5.0):
        value = float(exact_divergence(atoms, mpmath.exp(epsilon)))
        assert value == pytest.approx(gaussian_profile.delta(1.0, epsilon), rel=2e-4)
    assert atoms.masses.sum() == pytest.approx(1.0, abs=1e-8)


def test_clumsy_bounds():
    accountant = PLDAccountant("replace-one").compose(SteppedEvent())
    assert accountant.epsilon(1e-6) == pytest.approx(1.5, rel=1e-9)
    twice = PLDAccountant("replace-one").compose(SteppedEvent(), 2)
    assert 1.5 < twice.epsilon(1e-6) < 3.5
    # Doubled by the failures of either release.
    floored = PLDAccountant("replace-one").compose(SteppedEvent(1e-7), 2)
    assert floored.epsilon(1.9e-7) == math.inf
    assert math.isfinite(floored.epsilon(2.2e-7))
    assert floored.delta(math.inf) == pytest.approx(2e-7, rel=1e-6)
    assert floored.delta(1e3) == pytest.approx(2e-7, rel=1e-6)


def test_no_promise_at_all():
    @dataclass(frozen=True)
    class RevealingEvent(ProfileEvent):
        def profile_bound(self, epsilon, adjacency):
            return 1.0

    accountant = PLDAccountant().compose(RevealingEvent()).compose(GaussianEvent(1.0))
    assert accountant.epsilon(0.5) == math.inf
    assert accountant.delta(3.0) == 1.0


def test_nothing_revealed():
    accountant = PLDAccountant().compose(PureByProfile(0.0), 7)
    assert accountant.epsilon(1e-9) == 0.0
    assert accountant.compose(GaussianEvent(1.0)).epsilon(1e-6) == GDPAccountant().compose(
        GaussianEvent(1.0)
    ).epsilon(1e-6)


def test_support_is_by_adjacency_and_refusals_name_the_event():
    assert PLDAccountant("replace-one").supports(SteppedEvent())
    with pytest.raises(UnsupportedEventError, match=r"SteppedEvent.*under 'replace-one'"):
        PLDAccountant("add-remove").compose(SteppedEvent())
    for cls in (RDPAccountant, GDPAccountant, BasicCompositionAccountant):
        with pytest.raises(UnsupportedEventError, match=r"GaussianByProfile.*PLDAccountant has"):
            cls().compose(GaussianByProfile(1.0))
    assert HiddenStateAccountant().supports(GaussianByProfile(1.0))
    with pytest.raises(TypeError):
        ProfileEvent()


# Choices


def cost(event, delta=1e-6, cls=PLDAccountant, adjacency="replace-one"):
    return float(cls(adjacency).compose(event).epsilon(delta))


@pytest.mark.parametrize(
    ("cls", "rtol"),
    # Renyi divergences are compared order by order, where either part may be the larger one.
    [(PLDAccountant, 1e-3), (HiddenStateAccountant, 1e-3), (RDPAccountant, 0.1)],
)
def test_a_choice_costs_its_dearest_part(cls, rtol):
    training = RepeatedEvent(GaussianEvent(3.0), 8)
    for selection in (PureDPEvent(0.5), PureDPEvent(9.0)):
        parts = cost(training, cls=cls), cost(selection, cls=cls)
        both = cost(OneOfEvent((training, selection)), cls=cls)
        assert max(parts) * (1.0 - 1e-9) <= both <= max(parts) * (1.0 + rtol)
        assert both < cost(ComposedEvent((training, selection)), cls=cls)


def response(epsilon, delta):
    """Return the profile of randomised response that fails with probability delta."""
    truth = 1.0 / (1.0 + math.exp(-epsilon))

    def profile(at):
        if at < 0.0:
            return 1.0 - math.exp(at) + math.exp(at) * profile(-at)
        return delta + (1.0 - delta) * max(0.0, truth - math.exp(at) * (1.0 - truth))

    return profile


@pytest.mark.parametrize("first", [0.1, 0.2, 0.4])
def test_a_choice_may_depend_on_what_was_released_before(first):
    """Whoever assigns the parts once the first loss is known gains by it, exactly as bounded."""
    choice = OneOfEvent((PureDPEvent(0.5), ApproxDPEvent(0.0, 0.1)))
    profiles = response(0.5, 0.0), response(0.0, 0.1)
    plan = PLDAccountant("replace-one").compose(ComposedEvent((PureDPEvent(first), choice)))
    up = 1.0 / (1.0 + math.exp(-first))
    gained = []
    for epsilon in (0.05, 0.196, 0.3, 0.45):
        truth = up * max(h(epsilon - first) for h in profiles)
        truth += (1.0 - up) * max(h(epsilon + first) for h in profiles)
        assert truth <= float(plan.delta(epsilon)) <= truth * (1.0 + 1e-3)
        fixed = max(up * h(epsilon - first) + (1.0 - up) * h(epsilon + first) for h in profiles)
        gained.append(truth / fixed)
    assert max(gained) > 1.05


def test_one_assignment_may_decide_about_several_releases():
    one, other, later = GaussianEvent(2.0), LaplaceEvent(2.0), PureDPEvent(0.5)
    parts = [ComposedEvent((part, later)) for part in (one, other)]
    dearest = max(cost(part) for part in parts)
    assert dearest <= cost(OneOfEvent(tuple(parts))) <= dearest * (1.0 + 1e-9)
    assert dearest <= cost(ComposedEvent((OneOfEvent((one, other)), later)))


@pytest.mark.parametrize("count", [2, 5])
def test_choices_in_a_composition_cost_no_less_than_any_combination(count):
    one, other = GaussianEvent(2.0), LaplaceEvent(2.0)
    combined = [
        cost(ComposedEvent((RepeatedEvent(one, k), RepeatedEvent(other, count - k))))
        for k in range(count + 1)
    ]
    found = cost(RepeatedEvent(OneOfEvent((one, other)), count))
    assert max(combined) * (1.0 - 1e-9) <= found <= max(combined) * 1.01


def test_several_choices_are_bounded_by_the_largest_profile():
    one, other = GaussianEvent(2.0), LaplaceEvent(2.0)
    many = RepeatedEvent(OneOfEvent((one, other, LaplaceEvent(1.9))), 30)
    assert len(choices_of({many.event: 30}, "replace-one")) == 1
    dearest = max(cost(RepeatedEvent(part, 30)) for part in many.event.events)
    assert dearest * (1.0 - 1e-3) <= cost(many) <= 1.3 * dearest
    nested = OneOfEvent((OneOfEvent((one, other)), PureDPEvent(0.1)))
    assert cost(nested) == pytest.approx(max(cost(one), cost(other)), rel=1e-3)
    assert cost(ComposedEvent((OneOfEvent((one, other)), PureDPEvent(0.0)))) == pytest.approx(
        max(cost(one), cost(other)), rel=1e-3
    )


def test_dominated_parts_are_left_out():
    events = [GaussianEvent(2.0 + k) for k in range(40)] + [PureDPEvent(0.1 * k) for k in range(40)]
    assert len(choices_of({OneOfEvent(events): 1}, "replace-one")) == 2
    step = PoissonSampledEvent(0.1, GaussianEvent(1.0))
    folds = [RepeatedEvent(step, k) for k in (10, 20, 20, 5)]
    assert choices_of({OneOfEvent(folds): 1}, "add-remove") == [{step: 20}]


def test_lower_bounds_and_pure_guarantees_of_choices():
    choice = OneOfEvent((PureDPEvent(0.5), ComposedEvent((PureDPEvent(0.2), PureDPEvent(0.4)))))
    accountant = BasicCompositionAccountant().compose(choice, 2)
    assert accountant.epsilon(0.0) == pytest.approx(1.2)
    assert PLDAccountant().compose(choice).epsilon(1e-6).lower == 0.0
    with_failure = OneOfEvent((PureDPEvent(0.5), ApproxDPEvent(0.1, 1e-7)))
    for cls in (PLDAccountant, RDPAccountant, BasicCompositionAccountant):
        assert cls().compose(with_failure).epsilon(1e-8) == math.inf
        assert cls().compose(with_failure).epsilon(1e-6) <= 0.5 * (1 + 1e-9)
        assert cls().compose(with_failure).delta(5.0) == pytest.approx(1e-7, rel=1e-6)


def test_choices_of_directed_releases_take_either_direction():
    step = PoissonSampledEvent(0.1, GaussianEvent(1.0))
    choice = OneOfEvent((RepeatedEvent(step, 20), GaussianEvent(9.0)))
    assert cost(choice, adjacency="add-remove") == pytest.approx(
        cost(RepeatedEvent(step, 20), adjacency="add-remove"), rel=1e-9
    )


def test_choices_check_and_keep_their_parts():
    choice = OneOfEvent([GaussianEvent(1.0), RepeatedEvent(PureDPEvent(0.5), 3)])
    assert Event.from_dict(json.loads(json.dumps(choice.to_dict()))) == choice
    assert not PLDAccountant("add-remove").supports(
        OneOfEvent((UniformSampledEvent(1, 9, GaussianEvent(1.0)),))
    )
    with pytest.raises(ValueError, match="at least one"):
        OneOfEvent(())
    with pytest.raises(TypeError, match="must be a sequence"):
        OneOfEvent(GaussianEvent(1.0))
    with pytest.raises(TypeError, match="must be an Event"):
        OneOfEvent((1.0,))


def test_parts_of_a_split_by_enumeration():
    """Two records, one in each part; randomised response on each, the second one adaptively."""
    strengths = (Fraction(3, 4), {0: Fraction(2, 3), 1: Fraction(4, 5)})

    def output(first, second):
        law = {}
        for a in (0, 1):
            for b in (0, 1):
                keep = strengths[1][a]
                chance = strengths[0] if a == first else 1 - strengths[0]
                law[a, b] = chance * (keep if b == second else 1 - keep)
        return law

    largest = max(
        max(output(1 - x, y)[key] / p, output(x, 1 - y)[key] / p)
        for x in (0, 1)
        for y in (0, 1)
        for key, p in output(x, y).items()
    )
    choice = OneOfEvent((PureDPEvent(math.log(3)), PureDPEvent(math.log(4))))
    assert math.log(largest) == pytest.approx(cost(choice, delta=0.0))
