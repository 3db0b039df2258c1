"""Samples of releases of which only the profile is known: docs/proofs/sampled_releases.md."""

import math
import warnings
from dataclasses import dataclass, replace
from functools import reduce

import mpmath
import numpy as np
import pytest
from covering import pairs
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy.stats import binom

from skdp.accounting import (
    ApproxDPEvent,
    BasicCompositionAccountant,
    ComposedEvent,
    DiscreteGaussianEvent,
    DiscreteLaplaceEvent,
    GaussianEvent,
    HiddenStateAccountant,
    LaplaceEvent,
    LastIterateEvent,
    ObjectivePerturbationEvent,
    OneOfEvent,
    PLDAccountant,
    PoissonSampledEvent,
    ProfileEvent,
    PureDPEvent,
    RDPAccountant,
    RepeatAndSelectEvent,
    RepeatedEvent,
    UniformSampledEvent,
    calibrate_event,
)
from skdp.accounting.accountants import resolve_accountant
from skdp.accounting.numerics import gaussian_profile
from skdp.accounting.numerics.arithmetic import log_mixture
from skdp.accounting.pld.pairs.profile import hull_atoms
from skdp.accounting.releases.noise import largest_loss
from skdp.accounting.releases.samples import _added, _removed, _replaced
from skdp.budget import BudgetAccountant
from skdp.budget.request import convert_adjacency
from skdp.exceptions import UnsupportedEventError

ADJACENCIES = ("add-remove", "replace-one")


def delta(event, epsilon, adjacency, count=1):
    return PLDAccountant(adjacency).compose(event, count).delta(epsilon)


def once(event):
    """The same release, of which only the profile is used if it is sampled."""
    return RepeatedEvent(event, 1)


@dataclass(frozen=True)
class FiniteEvent(ProfileEvent):
    """Finitely many outcomes, without a record and with one of several."""

    without: tuple[float, ...]
    records: tuple[tuple[float, ...], ...]

    def profile_bound(self, epsilon, adjacency):
        rows = [np.array(row) for row in self.records]
        without = np.array(self.without)
        if adjacency == "add-remove":
            pairs = [pair for row in rows for pair in ((row, without), (without, row))]
        else:
            pairs = [(row, other) for row in rows for other in rows]
        return max(hockey_stick(one, other, math.exp(epsilon)) for one, other in pairs)


# Differences of floats near 1 are off by so much.
_ULPS = 1e-15


def hockey_stick(one, other, factor):
    return float(np.sum(np.maximum(one - factor * other, 0.0)))


@st.composite
def finite_events(draw):
    size = draw(st.integers(2, 4))

    def law():
        # Outcomes of probability zero too, and of very different sizes.
        weights = [draw(st.sampled_from([0.0, 1e-6, 0.1])) + draw(st.floats(0.0, 1.0)) ** 3]
        weights += [draw(st.floats(0.0, 1.0)) ** 3 for _ in range(size - 1)]
        total = sum(weights)
        return tuple(w / total for w in weights) if total > 1e-3 else (1.0 / size,) * size

    return FiniteEvent(law(), (law(), law()))


@settings(max_examples=60, deadline=None)
@given(finite_events(), st.floats(1e-3, 1.0), st.lists(st.floats(0.0, 4.0), min_size=3, max_size=3))
def test_no_finite_mechanism_reveals_more(event, rate, epsilons):
    without = np.array(event.without)
    one, other = ((1.0 - rate) * without + rate * np.array(row) for row in event.records)
    poisson = PoissonSampledEvent(rate, event)
    for epsilon in (0.0, *epsilons):
        factor = math.exp(epsilon)
        known = delta(poisson, epsilon, "add-remove")
        for pair in ((one, without), (without, one), (other, without), (without, other)):
            assert hockey_stick(*pair, factor) <= known * (1.0 + 1e-12) + _ULPS
        replaced = delta(poisson, epsilon, "replace-one")
        for pair in ((one, other), (other, one)):
            assert hockey_stick(*pair, factor) <= replaced * (1.0 + 1e-12) + _ULPS


@settings(max_examples=20, deadline=None)
@given(finite_events(), st.floats(1e-3, 1.0), st.integers(2, 4), st.floats(0.0, 3.0))
def test_compositions_of_finite_mechanisms_reveal_no_more(event, rate, count, epsilon):
    without = np.array(event.without)
    one, other = ((1.0 - rate) * without + rate * np.array(row) for row in event.records)
    poisson = PoissonSampledEvent(rate, event)

    def power(law):
        return reduce(np.multiply.outer, [law] * count)

    for adjacency, neighbours in (
        ("add-remove", [(one, without), (without, other)]),
        ("replace-one", [(one, other), (other, one)]),
    ):
        bound = delta(poisson, epsilon, adjacency, count)
        assert bound.lower == 0.0
        for first, second in neighbours:
            exact = hockey_stick(power(first), power(second), math.exp(epsilon))
            assert exact <= bound * (1.0 + 1e-12)


@settings(max_examples=30, deadline=None)
@given(finite_events(), st.integers(1, 5), st.integers(0, 5), st.floats(0.0, 3.0))
def test_no_finite_mechanism_on_a_fixed_size_reveals_more(event, size, more, epsilon):
    """Given the rest of the batch: another record in the place of the replaced one, or either."""
    rate = size / (size + more)
    rest, one, other = (np.array(law) for law in (event.without, *event.records))
    three = FiniteEvent((), (event.without, *event.records))
    bound = delta(UniformSampledEvent(size, size + more, three), epsilon, "replace-one")
    pair = ((1.0 - rate) * rest + rate * one, (1.0 - rate) * rest + rate * other)
    assert hockey_stick(*pair, math.exp(epsilon)) <= bound * (1.0 + 1e-12) + _ULPS


def formula(price, rate, epsilon):
    """Theorem 3, by brute force over k."""
    g = math.exp(epsilon)
    a = (1.0 - g) * (1.0 - rate) / rate

    def total(k):
        return price(g * k - a) + g * (k - 1.0 + price(k))

    low, high = 0.0, 100.0  # convex in k
    for _ in range(200):
        one, other = low + (high - low) / 3.0, high - (high - low) / 3.0
        low, high = (low, other) if total(one) < total(other) else (one, high)
    return rate * total(low)


def symmetric(profile):
    """Price of the ratio from a symmetric profile of y = e^epsilon >= 1."""

    def price(k):
        if k <= 0.0:
            return 1.0 - k
        return profile(k) if k >= 1.0 else 1.0 - k + k * profile(1.0 / k)

    return price


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.floats(0.02, 4.0), min_size=1, max_size=6, unique=True),
    st.lists(st.floats(0.05, 0.95), min_size=6, max_size=6),
    st.sampled_from([0.0, 1e-3, 0.2]),
    st.floats(1e-3, 1.0),
    st.floats(-3.0, 3.0),
)
@example(losses=[2.0], shares=[0.5] * 6, floor=0.2, rate=1.0, epsilon=0.0)
@example(losses=[2.0], shares=[0.5] * 6, floor=0.2, rate=1.0, epsilon=-2.5)
def test_lists_have_the_closed_formulas(losses, shares, floor, rate, epsilon):
    """Theorems 1 and 2 are attained by the lists that they are turned into."""
    epsilons = np.sort(np.array(losses))
    values = np.maximum(floor, np.cumprod(shares[: len(losses)]))
    values[-1] = floor
    inner = hull_atoms(epsilons, values)
    g = math.exp(epsilon)

    def price(k):
        if k < 0.0:
            return 1.0 - k
        ratios = 1.0 - k * np.exp(-inner.losses)
        return float(inner.masses @ np.maximum(ratios, 0.0)) + inner.infinite

    def divergence(atoms):
        ratios = np.maximum(1.0 - g * np.exp(-atoms.losses), 0.0)
        return float(atoms.masses @ ratios) + atoms.infinite

    removed = rate * price((g - 1.0 + rate) / rate)
    k = (1.0 - g + g * rate) / (g * rate)
    added = g * rate * (k - 1.0 + price(k)) if k > 0.0 else 0.0
    close = {"rel": 1e-9, "abs": 1e-8 * max(g, 1.0)}  # masses are raised by 1e-9 of themselves
    assert divergence(_removed(inner, rate)) == pytest.approx(removed, **close)
    assert divergence(_added(inner, rate)) == pytest.approx(added, **close)
    replaced = divergence(_replaced(inner, rate))
    assert replaced == pytest.approx(formula(price, rate, epsilon), **close)


PROFILES = [
    (PureDPEvent(1.5), lambda y: max(0.0, (math.exp(1.5) - y) / (1.0 + math.exp(1.5)))),
    (GaussianEvent(1.0), lambda y: gaussian_profile.delta(1.0, math.log(y))),
    (LaplaceEvent(0.5), lambda y: max(0.0, 1.0 - math.exp(0.5 * (math.log(y) - 2.0)))),
]


@pytest.mark.parametrize(
    ("case", "rate", "epsilon"), pairs(PROFILES, [1e-3, 0.1, 0.7, 1.0], [0.0, 0.05, 0.5])
)
def test_one_release_has_the_closed_formula(case, rate, epsilon):
    event, profile = case
    found = delta(PoissonSampledEvent(rate, once(event)), epsilon, "replace-one")
    assert found == pytest.approx(formula(symmetric(profile), rate, epsilon), rel=3e-5)


@pytest.mark.parametrize(
    ("event", "rate", "epsilon", "expected"),
    [
        (once(LaplaceEvent(1.0)), 0.1, 0.05, 0.044140506),
        (once(LaplaceEvent(0.5)), 0.01, 0.01, 0.006086513),
        (LaplaceEvent(1.0), 0.1, 0.05, 0.044140506),
        (once(GaussianEvent(1.0)), 0.02, 0.0, 0.013653789843),
        (ApproxDPEvent(1.0, 1e-3), 0.1, 0.05, 0.050383140),
        (PureDPEvent(2.0), 0.01, 0.01, 0.007458997),
    ],
)
def test_reference_values(event, rate, epsilon, expected):
    found = delta(PoissonSampledEvent(rate, event), epsilon, "replace-one")
    assert expected - 1e-9 <= found <= expected * (1.0 + 1e-5)


@pytest.mark.parametrize(
    ("noise", "adjacency", "count"),
    pairs([GaussianEvent(1.0), LaplaceEvent(1.0)], ADJACENCIES, [1, 200]),
)
def test_it_is_close_to_what_exact_pairs_say(noise, adjacency, count):
    exact = PLDAccountant(adjacency).compose(PoissonSampledEvent(0.02, noise), count)
    bound = PLDAccountant(adjacency).compose(PoissonSampledEvent(0.02, once(noise)), count)
    found, known = bound.epsilon(1e-5), exact.epsilon(1e-5)
    assert known.lower * (1.0 - 1e-12) <= found <= known * (1.0 + 1e-3)


def test_long_compositions_of_pure_releases():
    rate, epsilon, count = 0.01, 1.0, 1000
    event = PoissonSampledEvent(rate, PureDPEvent(epsilon))
    up = 1.0 / (1.0 + math.exp(-epsilon))
    k = np.arange(count + 1)
    mixed = binom.pmf(k, count, (1.0 - rate) * (1.0 - up) + rate * up)
    plain = binom.pmf(k, count, 1.0 - up)
    for target in (0.1, 0.5, 1.3):
        exact = hockey_stick(mixed, plain, math.exp(target))
        found = delta(event, target, "add-remove", count)
        assert exact * (1.0 - 1e-9) <= found <= exact * (1.0 + 1e-3)


@pytest.mark.parametrize("kind", ["gaussian", "laplace"])
def test_discrete_noise_agrees_with_dp_accounting(kind):
    peer = pytest.importorskip(
        "dp_accounting.pld.privacy_loss_distribution", reason="needs dp-accounting"
    )
    event, theirs, parameter = {
        "gaussian": (DiscreteGaussianEvent(1.5, 2), peer.from_discrete_gaussian_mechanism, 3.0),
        "laplace": (DiscreteLaplaceEvent(1.5, 2), peer.from_discrete_laplace_mechanism, 1.0 / 3.0),
    }[kind]
    low, high = (
        theirs(parameter, 2, pessimistic_estimate=above, sampling_prob=0.05).self_compose(50)
        for above in (False, True)
    )
    for epsilon in (0.1, 0.5):
        found = delta(PoissonSampledEvent(0.05, event), epsilon, "add-remove", 50)
        assert low.get_delta_for_epsilon(epsilon) <= found <= high.get_delta_for_epsilon(epsilon)


def test_fixed_size_samples_have_the_symmetric_pair():
    # A shift of 1 when a record is replaced: two contributions of 1/2 of the noise each.
    event = UniformSampledEvent(1, 10, once(GaussianEvent(2.0)))
    assert delta(event, 0.1, "replace-one") == pytest.approx(0.0184719306881, rel=1e-5)
    assert delta(event, 0.1, "replace-one", 2) == pytest.approx(0.036050156115, rel=1e-3)
    exact = PLDAccountant("replace-one").compose(UniformSampledEvent(1, 10, GaussianEvent(2.0)), 50)
    bound = PLDAccountant("replace-one").compose(event, 50)
    assert exact.epsilon(1e-6).lower <= bound.epsilon(1e-6) <= exact.epsilon(1e-6) * (1.0 + 1e-3)


def test_fixed_size_samples_of_stated_pairs_are_amplified():
    event = UniformSampledEvent(20, 1000, PureDPEvent(1.0))
    amplified = math.log1p(0.02 * math.expm1(1.0))
    assert PLDAccountant("replace-one").compose(event).epsilon(0.0) == pytest.approx(amplified)
    doubled = UniformSampledEvent(20, 1000, LaplaceEvent(2.0))  # 2 / 2 if a record is replaced
    assert PLDAccountant("replace-one").compose(doubled).epsilon(0.0) == pytest.approx(amplified)
    assert delta(doubled, 0.0, "replace-one") == pytest.approx(0.02 * -math.expm1(-0.5), rel=1e-6)
    whole = UniformSampledEvent(7, 7, DiscreteLaplaceEvent(2.0, 3))
    other = DiscreteLaplaceEvent(1.0, 6)
    assert delta(whole, 0.3, "replace-one") == pytest.approx(
        delta(other, 0.3, "replace-one"), rel=1e-6
    )


@pytest.mark.parametrize("rate", [1e-300, 1e-20, 0.3, 1.0 - 2.0**-53, 1.0])
@pytest.mark.parametrize("epsilon", [0.0, 1e-20, 1.0, 500.0])
def test_largest_losses_of_pure_releases(rate, epsilon):
    event = PoissonSampledEvent(rate, PureDPEvent(epsilon))
    removed = BasicCompositionAccountant("add-remove").compose(event).epsilon(0.0)
    replaced = BasicCompositionAccountant("replace-one").compose(event).epsilon(0.0)
    assert 0.0 <= removed <= replaced <= 2.0 * epsilon
    assert (removed > 0.0) == (epsilon * rate > 0.0)
    if epsilon == 1.0 and rate == 0.3:
        assert removed == pytest.approx(math.log(0.7 + 0.3 * math.e))
        assert replaced == pytest.approx(removed - math.log(0.7 + 0.3 / math.e))


LAST = LastIterateEvent(GaussianEvent(20.0), 500, 0.8, strong_convexity=0.05)


@dataclass(frozen=True)
class ReplacedOnly(ProfileEvent):
    """A release of which nothing is known if a record is removed."""

    def profile_bound(self, epsilon, adjacency):
        return gaussian_profile.delta(1.0, epsilon)

    def supports_adjacency(self, adjacency):
        return adjacency == "replace-one"


@pytest.mark.parametrize(
    "inner",
    [
        LAST,
        RepeatedEvent(LAST, 2),
        OneOfEvent((PureDPEvent(1.0), LAST)),
        RepeatAndSelectEvent(LAST, 2.0, 1.0),
    ],
)
@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_samples_of_last_iterates_are_refused(inner, adjacency):
    for event in (PoissonSampledEvent(0.1, inner), UniformSampledEvent(1, 10, inner)):
        for accountant in (PLDAccountant, HiddenStateAccountant):
            with pytest.raises(UnsupportedEventError, match="SampledEvent"):
                accountant(adjacency).compose(event)


def test_what_is_not_proved_is_refused():
    for adjacency in ADJACENCIES:
        with pytest.raises(UnsupportedEventError, match="ReplacedOnly"):
            PLDAccountant(adjacency).compose(PoissonSampledEvent(0.1, ReplacedOnly()))
        assert not PLDAccountant(adjacency).supports(
            PoissonSampledEvent(0.1, UniformSampledEvent(1, 10, PureDPEvent(1.0)))
        )
    assert PLDAccountant("replace-one").supports(UniformSampledEvent(1, 10, ReplacedOnly()))
    with pytest.raises(UnsupportedEventError, match=r"UniformSampledEvent.*add-remove"):
        PLDAccountant("add-remove").compose(UniformSampledEvent(1, 10, PureDPEvent(1.0)))
    assert not RDPAccountant().supports(PoissonSampledEvent(0.1, PureDPEvent(1.0)))


SAMPLES = [
    PoissonSampledEvent(0.05, PureDPEvent(0.5)),
    PoissonSampledEvent(0.05, ApproxDPEvent(0.5, 1e-9)),
    PoissonSampledEvent(0.05, ComposedEvent((GaussianEvent(3.0), LaplaceEvent(3.0)))),
    PoissonSampledEvent(0.05, DiscreteGaussianEvent(3.0, 2)),
    PoissonSampledEvent(0.05, ObjectivePerturbationEvent(5.0, curvature=0.05)),
]


@pytest.mark.daily(1)
@pytest.mark.parametrize("event", SAMPLES)
def test_a_budget_takes_them_and_converts_them(event):
    for adjacency in ADJACENCIES:
        budget = BudgetAccountant(5.0, 1e-4, adjacency=adjacency)
        budget.reserve(RepeatedEvent(event, 3), label="samples")
    assert convert_adjacency(event, "add-remove", "replace-one") == event
    # What is known without sampling is never less.
    for adjacency in ADJACENCIES:
        whole = PLDAccountant(adjacency).compose(replace(event, sample_rate=1.0)).epsilon(1e-5)
        assert PLDAccountant(adjacency).compose(event).epsilon(1e-5) < whole


def test_converted_samples_of_last_iterates_need_a_guarantee():
    with pytest.raises(ValueError, match="cannot be converted"):
        convert_adjacency(PoissonSampledEvent(0.1, LAST), "add-remove", "replace-one", delta=1e-6)


@pytest.mark.daily(1)
@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_noise_of_samples_of_integers_is_calibrated(adjacency):
    def steps(noise):
        return RepeatedEvent(PoissonSampledEvent(0.02, DiscreteGaussianEvent(noise)), 100)

    found = calibrate_event(steps, 1.0, 1e-5, accountant="pld", adjacency=adjacency)
    cost = PLDAccountant(adjacency).compose(steps(found)).epsilon(1e-5)
    assert 0.99 <= cost <= 1.0


@pytest.mark.daily(22)
@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("rate", [0.0, 1e-300, 1e-9, 0.5, 1.0])
@pytest.mark.parametrize(
    "inner",
    [
        ComposedEvent(()),
        PureDPEvent(0.0),
        PureDPEvent(1e-200),
        PureDPEvent(1e4),
        ApproxDPEvent(0.0, 1.0),
        once(GaussianEvent(1e-200)),
        once(GaussianEvent(1e200)),
        DiscreteGaussianEvent(1e-9),
        PoissonSampledEvent(0.5, PureDPEvent(1.0)),
    ],
)
def test_legal_samples_never_raise(inner, rate, adjacency):
    accountant = PLDAccountant(adjacency).compose(PoissonSampledEvent(rate, inner), 3)
    for target in (0.0, 1e-9, 0.3):
        assert accountant.epsilon(target) >= 0.0
    assert 0.0 <= accountant.delta(1.0) <= accountant.delta(0.0) <= 1.0
    alone = PLDAccountant("add-remove").compose(inner, 3).delta(0.0)
    assert rate < 1.0 or accountant.delta(0.0) >= alone * (1.0 - 1e-9)


@settings(max_examples=200, deadline=None)
@given(st.floats(1e-3, 5.0), st.floats(0.0, 1.0), st.floats(0.0, 1.0))
def test_laplace_noise_on_a_second_coordinate(shift, share, place):
    """The two cases in the notes of `LaplaceEvent`."""
    second = share * shift
    epsilon = place * (shift + second)

    def profile(x):
        return max(0.0, 1.0 - math.exp(0.5 * (x - shift))) if x <= shift else 0.0

    assert -shift <= epsilon - second + 1e-12
    up = 1.0 / (1.0 + math.exp(-second))
    value = up * profile(epsilon - second) + (1.0 - up) * profile(epsilon + second)
    assert value <= -math.expm1(0.5 * (epsilon - shift - second)) + 1e-12


@pytest.mark.parametrize("rate", [1e-100, 1e-17, 1e-3, 0.5, 0.9, 1.0 - 1e-9, 1.0 - 1e-15, 1.0])
def test_largest_losses_are_never_rounded_down(rate):
    losses = np.array([1e-9, 0.3, 0.7, 5.0, 33.0, 37.0, 100.0, 299.9, 300.1])
    with mpmath.workdps(300):
        one = mpmath.mpf(rate)
        up, down = (
            [mpmath.log(1 - one + one * mpmath.exp(x)) for x in s * losses] for s in (1, -1)
        )
        for sign, exact in ((1, up), (-1, down)):
            found = log_mixture(rate, sign * losses)
            assert found == pytest.approx(np.array(exact, dtype=float), rel=1e-13, abs=1e-320)
        for loss, high, low in zip(losses, up, down, strict=True):
            for kind, exact in (("poisson-add-remove", high), ("poisson-replace-one", high - low)):
                found = mpmath.mpf(largest_loss(kind, rate, float(loss)))
                assert found >= exact * (1 - mpmath.mpf(10) ** -250)
                assert found <= exact * (1 + 1e-12) + 1e-320


@pytest.mark.parametrize("inner", [PureDPEvent(33.0), LaplaceEvent(1 / 33)])
def test_rates_next_to_one_keep_their_largest_losses(inner):
    event, epsilon = PoissonSampledEvent(1 - 1e-15, inner), 65.80503251
    truth = 6.578e-4 if isinstance(inner, PureDPEvent) else 3.289e-4
    assert truth <= delta(event, epsilon, "replace-one") <= 1.01 * truth
    assert PLDAccountant("replace-one").compose(event).epsilon(0.0) == pytest.approx(
        65.805690, abs=2e-6
    )


def test_sums_of_guarantees_are_rounded_up():
    plan = PLDAccountant().compose(PureDPEvent(0.1), 10).compose(PureDPEvent(1e-30))
    assert plan.epsilon(0.0) > 1.0
    assert 0.0 < plan.delta(1.0) < 1e-15
    assert PLDAccountant().compose(PureDPEvent(0.5), 3).epsilon(0.0) == 1.5


@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_samples_of_everybody_without_finite_losses(adjacency):
    event = PoissonSampledEvent(1.0, ApproxDPEvent(0.0, 1e-6))
    most = 1e-6 if adjacency == "add-remove" else 2e-6
    assert 1e-6 <= delta(event, 0.0, adjacency) <= most * (1.0 + 1e-6)


def test_samples_of_data_sets_beyond_floats_are_not_free():
    event = UniformSampledEvent(1, 10**400, LaplaceEvent(1.0))
    for name in ("pld", "basic"):
        assert resolve_accountant(name)("replace-one").compose(event).epsilon(0.0) > 0.0
    assert delta(event, 0.0, "replace-one") > 0.0


def test_nested_samples_of_fixed_size_must_exist():
    inner = UniformSampledEvent(50, 10**6, GaussianEvent(0.2))
    for nested in (inner, OneOfEvent((RepeatedEvent(inner, 2), PureDPEvent(1.0)))):
        for name in ("pld", "basic", "generic"):
            accountant = resolve_accountant(name)("replace-one")
            assert not accountant.supports(UniformSampledEvent(10, 100, nested))
        exists = UniformSampledEvent(10**6, 10**7, UniformSampledEvent(10**6, 10**6, nested))
        assert PLDAccountant("replace-one").supports(exists)


def test_rounded_lists_of_losses_are_no_contradiction():
    parts = (
        PoissonSampledEvent(1.0, ApproxDPEvent(0.001, 0.3)),
        PoissonSampledEvent(0.965092161911281, ApproxDPEvent(8.0, 0.3)),
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        lower, upper = delta(ComposedEvent(parts), 1e-6, "add-remove")
    assert lower == 0.0
    assert 1.0 - 0.7 * (1.0 - 0.3 * 0.965) < upper <= 1.0
