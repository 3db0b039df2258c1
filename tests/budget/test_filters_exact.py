"""Filters add exactly, grant no more than an exact oracle allows, and divide without remainder."""

import math
from decimal import Decimal
from fractions import Fraction

import mpmath as mp
import pytest
from covering import pairs
from exact_profiles import gaussian_delta
from hypothesis import given, settings
from hypothesis import strategies as st

from skdp.accounting import (
    ApproxDPEvent,
    ComposedEvent,
    DiscreteGaussianEvent,
    GaussianEvent,
    LaplaceEvent,
    PLDAccountant,
    PoissonSampledEvent,
    PrivacyValue,
    PureDPEvent,
    RepeatedEvent,
    calibrate_event,
)
from skdp.budget.currencies import COMPOSITIONS, Charge, make_filter
from skdp.exceptions import BudgetExceededError, UnsupportedEventError
from skdp.mechanisms import analytic_gaussian_sigma

NAMES = ("basic", "gdp", "zcdp", "rdp", "approx")
CURVES = ("gdp", "zcdp", "rdp")
STEP = RepeatedEvent(PoissonSampledEvent(0.02, GaussianEvent(3.0)), 50)


def added(spent, cost):
    return tuple(a + b for a, b in zip(spent, cost, strict=True))


def grant_all(budget, charges, spent=None):
    """Return the charges that are granted one after the other, and what is spent."""
    spent, granted = budget.nothing if spent is None else spent, []
    for charge in charges:
        cost = budget.price(charge, spent)
        if budget.fits(spent, cost):
            spent, granted = added(spent, cost), [*granted, charge]
    return granted, spent


def fits(budget, event, *pair, spent=None):
    """Tell whether a release would be granted."""
    spent = budget.nothing if spent is None else spent
    return budget.fits(spent, budget.price(Charge(event, *pair), spent))


def test_numbers_count_as_they_are_typed():
    budget = make_filter("basic", 1.0, 1e-5, "replace-one")
    granted, spent = grant_all(budget, [Charge(ApproxDPEvent(0.01, 1e-7))] * 103)
    assert len(granted) == 100
    assert spent == budget.limits == (1, Fraction(1, 10**5))
    assert budget.guarantee(spent) == (1.0, 1e-5)
    assert budget.remaining(spent) == (0.0, 0.0)
    assert not fits(budget, PureDPEvent(5e-324), spent=spent)
    tenths = make_filter("basic", 0.3, 0.0, "replace-one")
    assert len(grant_all(tenths, [Charge(LaplaceEvent(10.0))] * 4)[0]) == 3


@settings(max_examples=150, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.decimals(0, 2, places=4), st.decimals(0, Decimal("1e-5"), places=9), st.booleans()
        ),
        max_size=30,
    )
)
def test_basic_grants_exactly_what_fits_in_decimals(pairs):
    budget = make_filter("basic", 3.7, 1e-5, "add-remove")
    left, spent = [Decimal("3.7"), Decimal("1e-5")], budget.nothing
    for epsilon, delta, inside in pairs:
        event = ApproxDPEvent(float(epsilon), float(delta))
        charge = Charge(event) if inside else Charge(event, float(epsilon), float(delta))
        cost = budget.price(charge, spent)
        fits = epsilon <= left[0] and delta <= left[1]
        assert budget.fits(spent, cost) == fits
        if fits:
            spent, left = added(spent, cost), [left[0] - epsilon, left[1] - delta]
    assert [limit - amount for limit, amount in zip(budget.limits, spent, strict=True)] == [
        Fraction(str(amount)) for amount in left
    ]


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.floats(0.3, 300.0), min_size=1, max_size=40),
    st.floats(0.05, 8.0),
    st.sampled_from([1e-9, 1e-6, 1e-3]),
    st.sampled_from(["replace-one", "add-remove"]),
)
def test_gaussian_releases_never_exceed_the_exact_curve(multipliers, epsilon, delta, adjacency):
    for name in CURVES:
        budget = make_filter(name, epsilon, delta, adjacency)
        granted, spent = grant_all(budget, [Charge(GaussianEvent(z)) for z in multipliers])
        if not granted:
            continue
        with mp.workdps(40):
            square = mp.fsum(1 / mp.mpf(c.event.noise_multiplier) ** 2 for c in granted)
            truth = gaussian_delta(mp.sqrt(square), epsilon)
            assert truth <= mp.mpf(delta)
            at, failing = budget.guarantee(spent)
            assert gaussian_delta(mp.sqrt(square), at) <= mp.mpf(failing)


@pytest.mark.parametrize("epsilon", [0.01, 1.0, 20.0])
@pytest.mark.parametrize("delta", [1e-10, 1e-5, 0.01])
def test_gaussian_budget_is_as_exact_as_the_split_allows(epsilon, delta):
    budget = make_filter("gdp", epsilon, delta, "replace-one")
    square, slack = budget.limits
    truth = gaussian_delta(mp.sqrt(mp.mpf(square.numerator) / square.denominator), epsilon)
    assert mp.mpf(delta) * (1 - mp.mpf("1e-7")) <= truth + float(slack) <= mp.mpf(delta)


EVENTS = st.one_of(
    st.floats(2.0, 60.0).map(GaussianEvent),
    st.floats(1e-4, 0.4).map(PureDPEvent),  # the oracle is a grid, which holds no subnormals
    st.tuples(st.floats(1e-4, 0.3), st.floats(0.0, 4e-5)).map(lambda pair: ApproxDPEvent(*pair)),
    st.floats(3.0, 50.0).map(LaplaceEvent),
    st.floats(3.0, 50.0).map(DiscreteGaussianEvent),
    st.sampled_from([STEP, RepeatedEvent(PoissonSampledEvent(0.05, GaussianEvent(2.0)), 4)]),
    st.tuples(st.floats(1e-4, 0.2), st.floats(5.0, 60.0)).map(
        lambda pair: ComposedEvent((PureDPEvent(pair[0]), GaussianEvent(pair[1])))
    ),
)


def _delta_of(event, name):
    """A delta for the currencies that need one, where the event knows none by itself."""
    knows = isinstance(event, PureDPEvent | ApproxDPEvent | LaplaceEvent)
    return None if name in CURVES or knows else 1e-5


@pytest.mark.slow
@settings(max_examples=8, deadline=None)
@given(
    st.lists(EVENTS, min_size=1, max_size=6),
    st.floats(0.1, 3.0),
    st.sampled_from(["replace-one", "add-remove"]),
)
def test_mixed_sequences_never_exceed_the_composed_truth(events, epsilon, adjacency):
    delta = 1e-4
    for name in NAMES:
        budget = make_filter(name, epsilon, delta, adjacency)
        shares = [_delta_of(event, name) for event in events]
        charges = [Charge(e, None, d) for e, d in zip(events, shares, strict=True)]
        granted, spent = grant_all(budget, charges)
        accountant = PLDAccountant(adjacency)
        for charge in granted:
            accountant.compose(charge.event)
        # The certified lower bound of the composition of dominating pairs.
        assert accountant.epsilon(delta).lower <= epsilon
        at, failing = budget.guarantee(spent)
        assert at <= epsilon and failing <= delta
        assert accountant.epsilon(failing).lower <= at * (1 + 1e-12)


@pytest.mark.parametrize("name", NAMES)
def test_subnormal_and_huge_costs_count(name):
    budget = make_filter(name, 1.0, 1e-5, "replace-one")
    tiny = PureDPEvent(5e-324)
    cost = budget.price(Charge(tiny), budget.nothing)
    assert cost[0] > 0
    assert not budget.fits(budget.limits, cost)
    assert fits(budget, PureDPEvent(0.0), spent=budget.limits)
    for event in (PureDPEvent(1.7e308), ApproxDPEvent(1e300, 1e-6)):
        assert not fits(budget, event)
    for plan in (ComposedEvent((PureDPEvent(0.05), tiny)), RepeatedEvent(tiny, 3)):
        together = budget.price(Charge(plan), budget.nothing)
        assert budget.fits(budget.nothing, together) and together[0] > 0
    if name in CURVES:
        small = budget.price(Charge(GaussianEvent(1.7e308)), budget.nothing)
        assert 0 < small[0] < Fraction(1, 10**600)
        assert not budget.fits(budget.limits, small)
        assert not fits(budget, GaussianEvent(5e-324))
        # An exact multiple of what is left fits, and nothing on top of it.
        left = (budget.limits[0] - 7 * small[0], Fraction(0))
        assert budget.fits(left, tuple(7 * part for part in small))
        assert not budget.fits(left, tuple(8 * part for part in small))


LIMITS = [(1.0, 1e-5), (0.05, 1e-9), (12.0, 1e-3)]


@pytest.mark.parametrize(
    ("name", "count", "mechanism", "limits"),
    pairs(NAMES, [1, 2, 7, 100], ["gaussian", "any"], LIMITS),
)
def test_allocations_are_granted_and_use_everything_up(name, count, mechanism, limits):
    epsilon, delta = limits
    budget = make_filter(name, epsilon, delta, "replace-one")
    for start in (budget.nothing, tuple(limit / 3 for limit in budget.limits)):
        each = budget.allocate(start, count, mechanism)
        noisy = mechanism == "gaussian"
        event = GaussianEvent(analytic_gaussian_sigma(*each)) if noisy else ApproxDPEvent(*each)
        granted, spent = grant_all(budget, [Charge(event, *each)] * (count + 1), start)
        assert len(granted) == count
        exhausted = [0] if noisy and name in CURVES else [0, 1]
        for unit in exhausted:
            assert 0 <= 1 - spent[unit] / budget.limits[unit] < Fraction(1, 10**6)


@pytest.mark.parametrize("name", NAMES)
def test_a_first_release_may_take_the_whole_budget_as_it_is_stated(name):
    budget = make_filter(name, 1.0, 1e-5, "replace-one")
    assert budget.guarantee(budget.nothing) == (0.0, 0.0)
    assert budget.remaining(budget.nothing) == (1.0, 1e-5)
    for event in (GaussianEvent(analytic_gaussian_sigma(1.0, 1e-5)), ApproxDPEvent(1.0, 1e-5)):
        cost = budget.price(Charge(event, 1.0, 1e-5), budget.nothing)
        assert cost == budget.limits
        assert budget.is_spent(cost) and budget.guarantee(cost) == (1.0, 1e-5)
        # Not once anything else is out.
        little = budget.price(Charge(PureDPEvent(1e-6)), budget.nothing)
        assert not fits(budget, event, 1.0, 1e-5, spent=little)
    if name in CURVES:
        assert not fits(budget, GaussianEvent(analytic_gaussian_sigma(1.0001, 1e-5)))
        # A cheap release that this currency prices badly is refused, not charged with everything.
        for cheap in (PureDPEvent(0.8), ApproxDPEvent(0.5, 5e-6)):
            assert not fits(budget, cheap)


@pytest.mark.parametrize("name", NAMES)
def test_remaining_fits_and_shrinks(name):
    budget = make_filter(name, 2.0, 1e-5, "replace-one")
    spent, before = budget.nothing, 2.0
    for _ in range(6):
        granted, spent = grant_all(budget, [Charge(GaussianEvent(60.0), None, 1e-7)], spent)
        assert granted
        epsilon, delta = budget.remaining(spent)
        assert 0.0 < epsilon < before and 0.0 < delta <= 1e-5
        for own, granted in ((epsilon, True), (1.001 * epsilon, False)):
            noise = GaussianEvent(analytic_gaussian_sigma(own, delta))
            assert fits(budget, noise, own, delta, spent=spent) == granted
        before = epsilon
    assert budget.remaining(budget.limits) == (0.0, 0.0)
    with pytest.raises(BudgetExceededError, match="No budget is left"):
        budget.allocate(budget.limits, 2)


def test_infinite_epsilon_counts_without_limit():
    for name in NAMES:
        budget = make_filter(name, math.inf, 1e-5, "replace-one")
        assert budget.limits[0] is None
        granted, spent = grant_all(budget, [Charge(GaussianEvent(0.5), None, 1e-7)] * 5)
        assert len(granted) == 5
        epsilon, delta = budget.guarantee(spent)
        assert 20.0 < epsilon < math.inf and 0.0 < delta <= 1e-5
        assert budget.remaining(spent) == (math.inf, 1e-5)
        with pytest.raises(ValueError, match="requires a finite budget"):
            budget.allocate(spent, 2)


def test_pure_budgets_take_pure_releases_only():
    budget = make_filter("auto", 1.0, 0.0, "replace-one")
    assert budget.name == "basic"
    granted, spent = grant_all(budget, [Charge(LaplaceEvent(4.0)), Charge(PureDPEvent(0.75))])
    assert len(granted) == 2 and spent == (1, 0)
    assert not fits(budget, GaussianEvent(100.0), 0.01, 1e-3)
    for name in NAMES[1:]:
        with pytest.raises(ValueError, match="needs delta > 0"):
            make_filter(name, 1.0, 0.0, "replace-one")
    assert make_filter("auto", 1.0, 1e-9, "replace-one").name == "mixed"


@pytest.mark.parametrize("name", ["basic", "approx"])
def test_pairs_are_checked_against_the_event(name):
    budget = make_filter(name, 1.0, 1e-5, "replace-one")
    event = GaussianEvent(analytic_gaussian_sigma(0.1, 1e-7))
    square = 1 if name == "basic" else 2
    stated = budget.price(Charge(event, 0.1, 1e-7), budget.nothing)
    assert stated == (Fraction(1, 10) ** square, Fraction(1, 10**7))
    derived = budget.price(Charge(event, None, 1e-7), budget.nothing)
    assert float(derived[0]) == pytest.approx(0.1**square, rel=1e-8)
    derived = budget.price(Charge(event, 0.1), budget.nothing)
    assert float(derived[1]) == pytest.approx(1e-7, rel=1e-8)
    with pytest.raises(ValueError, match=r"only delta=.* is proved"):
        budget.price(Charge(event, 0.09, 1e-7), budget.nothing)
    # Short by rounding: priced by the event.
    rounded = budget.price(Charge(event, 0.1, 0.999e-7), budget.nothing)
    assert float(rounded[1]) == pytest.approx(1e-7, rel=1e-8)
    with pytest.raises(ValueError, match="Set delta of the charge"):
        budget.price(Charge(event), budget.nothing)
    with pytest.raises(ValueError, match="no finite epsilon"):
        budget.price(Charge(ApproxDPEvent(1.0, 0.5), None, 1e-6), budget.nothing)


@settings(max_examples=150, deadline=None)
@given(st.floats(1e-4, 80.0), st.floats(-27.0, -3.5), st.floats(1e-3, 50.0))
def test_calibrated_noise_is_accepted_at_its_own_pair(epsilon, log_delta, sensitivity):
    delta = math.exp(log_delta)
    # As estimators do: noise for the sensitivity, and its multiple back in the event.
    noise = analytic_gaussian_sigma(epsilon, delta, sensitivity)
    event = GaussianEvent(noise / sensitivity)
    budget = make_filter("basic", 100.0, 0.5, "replace-one")
    cost = budget.price(Charge(event, epsilon, delta), budget.nothing)
    assert float(cost[0]) == epsilon and float(cost[1]) == delta


@pytest.mark.parametrize("adjacency", ["replace-one", "add-remove"])
def test_calibrated_runs_are_accepted_at_their_own_pair(adjacency):
    def run(z):
        return RepeatedEvent(PoissonSampledEvent(0.02, GaussianEvent(z)), 200)

    z = calibrate_event(run, 0.7, 1e-6, adjacency=adjacency)
    budget = make_filter("basic", 0.7, 1e-6, adjacency)
    assert budget.price(Charge(run(z), 0.7, 1e-6), budget.nothing) == budget.limits


def test_charges_are_checked():
    event = GaussianEvent(1.0)
    with pytest.raises(TypeError, match="must be an Event"):
        Charge("fit")
    for bad in ({"epsilon": -0.1}, {"epsilon": math.inf}, {"delta": 1.0}, {"delta": math.nan}):
        with pytest.raises(ValueError, match="must be in"):
            Charge(event, **bad)
    with pytest.raises(TypeError, match="real number"):
        Charge(event, epsilon="1")
    with pytest.raises(ValueError, match="not an upper bound"):
        Charge(event, PrivacyValue(1.0, is_upper_bound=False), 1e-6)


def test_filters_are_checked():
    for epsilon in (0.0, -1.0, math.nan, True, "1"):
        with pytest.raises(ValueError, match="epsilon"):
            make_filter("basic", epsilon, 0.0, "replace-one")
    for delta in (-1e-9, 1.0, math.nan, None):
        with pytest.raises((ValueError, TypeError)):
            make_filter("gdp", 1.0, delta, "replace-one")
    with pytest.raises(ValueError, match="adjacency"):
        make_filter("gdp", 1.0, 1e-5, "zero-out")
    with pytest.raises(ValueError, match="composition"):
        make_filter("pld", 1.0, 1e-5, "replace-one")
    assert COMPOSITIONS == ("auto", "mixed", "basic", "gdp", "zcdp", "rdp", "approx")
    budget = make_filter("gdp", 1.0, 1e-5, "replace-one")
    for fits in (0, -1, 1.5, True):
        with pytest.raises(ValueError, match="fits"):
            budget.allocate(budget.nothing, fits)
    with pytest.raises(ValueError, match="mechanism"):
        budget.allocate(budget.nothing, 2, "laplace")


def test_unknown_events_are_refused_by_name():
    from skdp.accounting import UniformSampledEvent

    event = UniformSampledEvent(10, 100, GaussianEvent(2.0))
    for name in CURVES:
        budget = make_filter(name, 1.0, 1e-5, "add-remove")
        with pytest.raises(UnsupportedEventError, match=r"UniformSampledEvent.*'replace-one'"):
            budget.price(Charge(event), budget.nothing)
    with pytest.raises(UnsupportedEventError, match="Add noise"):
        budget = make_filter("gdp", 1.0, 1e-5, "add-remove")
        budget.price(Charge(DiscreteGaussianEvent(1e-5)), budget.nothing)


def test_prices_in_a_currency_are_the_known_ones():
    gdp, zcdp, rdp = (make_filter(name, 3.0, 1e-5, "replace-one") for name in CURVES)
    price = {f.name: lambda e, f=f: f.price(Charge(e), f.nothing) for f in (gdp, zcdp, rdp)}
    assert price["gdp"](GaussianEvent(8.0)) == (Fraction(1, 64), 0)
    assert price["zcdp"](GaussianEvent(8.0)) == (Fraction(1, 128), 0)
    assert float(price["rdp"](GaussianEvent(8.0))[0]) == pytest.approx(rdp.order / 128)
    assert price["gdp"](PoissonSampledEvent(1.0, GaussianEvent(16.0))) == (Fraction(1, 64), 0)
    assert price["gdp"](RepeatedEvent(GaussianEvent(80.0), 100)) == (Fraction(1, 64), 0)
    assert price["zcdp"](DiscreteGaussianEvent(8.0, 3)) == (Fraction(1, 128), 0)
    e = 0.2
    assert float(price["zcdp"](PureDPEvent(e))[0]) == pytest.approx(e * math.tanh(e / 2))
    t = 0.3
    laplace = float(price["zcdp"](LaplaceEvent(1 / t))[0])
    assert laplace == pytest.approx(t + math.expm1(-t), rel=1e-9)
    a = rdp.order
    moment = a / (2 * a - 1) * math.exp((a - 1) * t) + (a - 1) / (2 * a - 1) * math.exp(-a * t)
    exact = math.log(moment) / (a - 1)
    assert float(price["rdp"](LaplaceEvent(1 / t))[0]) == pytest.approx(exact, rel=1e-9)


@settings(max_examples=200, deadline=None)
@given(st.floats(1e-6, 30.0), st.floats(1.001, 1e4))
def test_divergences_of_pure_releases_hold(epsilon, order):
    from skdp.accounting.numerics.renyi_divergences import pure_at_order, pure_rho

    with mp.workdps(60):
        e, a = mp.mpf(epsilon), mp.mpf(order)
        up = 1 / (1 + mp.exp(-e))
        moment = up * mp.exp((a - 1) * e) + (1 - up) * mp.exp((1 - a) * e)
        truth = mp.log(moment) / (a - 1)
        rho = pure_rho(Fraction(epsilon))
        assert truth <= a * mp.mpf(rho.numerator) / rho.denominator
        at_order = pure_at_order(Fraction(epsilon), order)
        found = mp.mpf(at_order.numerator) / at_order.denominator
        assert truth <= found <= truth * (1 + mp.mpf("1e-4")) + mp.mpf("1e-12")


@settings(max_examples=100, deadline=None)
@given(st.floats(1e-6, 50.0), st.floats(1.001, 1e4))
def test_laplace_noise_is_zero_concentrated(shift, order):
    from skdp.accounting.releases.noise import laplace_rho

    with mp.workdps(60):
        t, a = mp.mpf(shift), mp.mpf(order)
        moment = a * mp.exp((a - 1) * t) / (2 * a - 1) + (a - 1) * mp.exp(-a * t) / (2 * a - 1)
        rho = laplace_rho(Fraction(shift))
        assert mp.log(moment) / (a - 1) <= a * mp.mpf(rho.numerator) / rho.denominator
