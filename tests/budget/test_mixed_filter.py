"""Two coordinates, one for Gaussian releases and one for stated pairs: what they hold and cost."""

import contextlib
import json
import math
import random
from decimal import Decimal
from fractions import Fraction

import mpmath as mp
import numpy as np
import pytest
from adaptive_trees import (
    randomised_response,
    rounded_gaussian,
    rounded_laplace,
    rounded_sampled_gaussian,
    worst_case,
)
from covering import pairs
from exact_profiles import gaussian_delta

from skdp.accounting import (
    ApproxDPEvent,
    ComposedEvent,
    DiscreteGaussianEvent,
    DiscreteLaplaceEvent,
    GaussianEvent,
    GenericAccountant,
    LaplaceEvent,
    LastIterateEvent,
    ObjectivePerturbationEvent,
    OneOfEvent,
    PLDAccountant,
    PoissonSampledEvent,
    PureDPEvent,
    RenyiEvent,
    RepeatAndSelectEvent,
    RepeatedEvent,
    UniformSampledEvent,
)
from skdp.accounting.distributions import Normal
from skdp.accounting.numerics import gaussian_profile
from skdp.budget import BudgetAccountant, BudgetExceededError
from skdp.budget.currencies import Charge, make_filter
from skdp.budget.currencies.mixed import box_delta, box_epsilon, largest_mu
from skdp.budget.ledger.files import FilePlace
from skdp.budget.ledger.store import Ledger
from skdp.budget.request import convert_adjacency
from skdp.exceptions import LedgerMismatchError, UnsupportedEventError
from skdp.mechanisms import analytic_gaussian_epsilon, analytic_gaussian_sigma
from skdp.reporting import PrivacySpent


def exact_delta(epsilon, mu, stated):
    """The profile of N(mu^2/2, mu^2) plus or minus an independent ``stated``."""
    up = 1 / (1 + mp.exp(-mp.mpf(stated)))

    def curve(x):  # also below 0, by symmetry
        x = mp.mpf(x)
        return gaussian_delta(mu, x) if x >= 0 else 1 - mp.exp(x) * (1 - gaussian_delta(mu, -x))

    return up * curve(mp.mpf(epsilon) - stated) + (1 - up) * curve(mp.mpf(epsilon) + stated)


def spend(budget, charges, spent=None):
    """Return what is spent after all charges, each of which is granted."""
    spent = budget.nothing if spent is None else spent
    for charge in charges:
        cost = budget.price(charge, spent)
        assert budget.fits(spent, cost), charge
        spent = tuple(a + b for a, b in zip(spent, cost, strict=True))
    return spent


LIMITS = [(1.0, 1e-5), (0.05, 1e-9), (12.0, 1e-3)]


def gaussian(epsilon, delta=1e-6):
    return Charge(GaussianEvent(analytic_gaussian_sigma(epsilon, delta)), epsilon, delta)


@pytest.mark.parametrize(
    "mu, stated, failure, delta, epsilon",
    [
        (0.25, 0.5, 0.0, 1e-6, 1.534260787),
        (0.5, 1.0, 5e-7, 1e-6, 3.294580974),
        (1.0, 1.0, 0.0, 1e-5, 5.303466736),
    ],
)
def test_the_closed_formula_has_its_known_values(mu, stated, failure, delta, epsilon):
    # These are for entries that fail or else keep below the curves.
    curve = (delta - failure) / (1 - failure)
    assert box_epsilon(mu, Fraction(stated), curve) == pytest.approx(epsilon, rel=1e-9)
    # Without that assumption a little less is left for the curve.
    assert box_epsilon(mu, Fraction(stated), delta - failure) >= epsilon * (1 - 1e-9)
    assert box_delta(Fraction(2), 0.5, Fraction(1)) == pytest.approx(0.00499283409244, rel=1e-10)


def test_rounding_is_against_the_budget():
    draw = random.Random(1)
    with mp.workdps(40):
        for _ in range(100):
            stated = Fraction(draw.choice([0.0, 10 ** draw.uniform(-6, 1.3)]))
            room, delta = Fraction(10 ** draw.uniform(-4, 1.5)), 10 ** draw.uniform(-14, -1.5)
            mu = largest_mu(stated + room, stated, delta)
            e, total = mp.mpf(float(stated)), mp.mpf(float(stated)) + mp.mpf(float(room))
            truth = exact_delta(total, mu, e)
            assert mp.mpf(delta) * (1 - mp.mpf("1e-6")) <= truth <= mp.mpf(delta)
            assert truth <= box_delta(stated + room, mu, stated) <= truth * (1 + mp.mpf("1e-8"))
            at = box_epsilon(mu, stated, delta)
            assert exact_delta(mp.mpf(at), mu, e) <= mp.mpf(delta)
            assert at <= float(total) * (1 + 1e-8)


def test_extreme_budgets_are_made_at_once():
    draw = random.Random(0)
    for _ in range(150):
        epsilon, delta = 10 ** draw.uniform(-8, 6), 10 ** draw.uniform(-300, -0.01)
        stated = draw.choice([None, 0.0, epsilon * draw.random(), epsilon])
        budget = make_filter("mixed", epsilon, delta, "replace-one", stated)
        spent = budget.price(Charge(GaussianEvent(10 ** draw.uniform(-3, 8))), budget.nothing)
        assert budget.guarantee(spent)[0] >= 0.0
        for mechanism in ("gaussian", "any"):
            assert 0.0 <= budget.allocate(budget.nothing, 3, mechanism)[0] < math.inf


@pytest.mark.parametrize("stated", [None, 0.0, 0.7, 3.0])
@pytest.mark.parametrize("delta", [1e-9, 1e-5, 0.01])
def test_boxes_share_delta(stated, delta):
    budget = make_filter("mixed", 3.0, delta, "replace-one", stated)
    assert len(budget.boxes) == (7 if stated is None else 1)
    with mp.workdps(40):
        failure = mp.mpf(budget.limits[2].numerator) / budget.limits[2].denominator
        used = failure + sum(
            exact_delta(3, mp.sqrt(mp.mpf(float(square))), float(most))
            for square, most, _ in budget.boxes
            if square > 0
        )
    assert used <= mp.mpf(delta)
    if stated != 3.0:  # where nothing is left for Gaussian releases
        assert used >= 0.999 * delta


def test_a_plan_of_a_search_and_fits_leaves_as_much_as_its_parts():
    searching = RepeatAndSelectEvent(GaussianEvent(6.1), 10.0, 1.0)
    search = PrivacySpent(1.0, 1e-6, "replace-one", searching, "pld", "a search", (), (), False)
    fit = gaussian(0.5)
    for fits, left in ((0, 12), (3, 9)):
        plan, one_by_one = (BudgetAccountant(3.0, 1e-5) for _ in range(2))
        plan.plan([search] + [fit.event] * fits)
        for item in [search] + [fit.event] * fits:
            one_by_one.reserve(item)
        assert plan.spent() == one_by_one.spent()
        assert fits or plan.spent()[0] == 1.0
        for _ in range(left):
            plan.reserve(fit.event)
        with pytest.raises(BudgetExceededError):
            plan.reserve(fit.event)


def test_pairs_of_a_plan_are_still_accounted_for_jointly():
    charge = Charge(LaplaceEvent(5.0), 0.2, 1.7e-7)
    budget = make_filter("mixed", 3.0, 1e-5, "replace-one")
    joint = Charge(ComposedEvent((charge.event,) * 14), parts=(charge,) * 14)
    square, epsilon, failure = budget.price(joint, budget.nothing)
    assert square == 0 and epsilon < 0.99 * 14 * 0.2 and failure < 14 * 1.7e-7


LIBRARY = [
    rounded_gaussian(3.0, (-0.6, 0.15, 1.2)),
    rounded_gaussian(1.6, (0.3,)),
    randomised_response(0.25),
    randomised_response(0.6, 0.002),
    rounded_laplace(2.0, (0.0, 0.5)),
]


def admitted(budget):
    """Admit what the filter does, but for a first release that takes the whole budget."""

    def grant(spent, mechanism):
        cost = budget.price(Charge(mechanism.event), spent)
        after = tuple(a + b for a, b in zip(spent, cost, strict=True))
        whole = cost == budget.limits and not any(spent)
        return after if budget.fits(spent, cost) and not whole else None

    return grant


@pytest.mark.parametrize("stated", [None, 0.4])
@pytest.mark.parametrize("epsilon", [0.9, 1.3])
def test_trees_of_both_kinds_keep_below_the_budget(epsilon, stated):
    budget = make_filter("mixed", epsilon, 0.05, "add-remove", stated)
    found = worst_case(admitted(budget), budget.nothing, LIBRARY, math.exp(epsilon), depth=3)
    assert 0.002 < found <= 0.05


@pytest.mark.daily(5)
@pytest.mark.parametrize("seed", range(12))
def test_random_trees_keep_below_the_budget_and_below_what_is_spent(seed):
    draw = random.Random(seed)
    library = [
        rounded_gaussian(draw.uniform(1.0, 5.0), sorted(draw.gauss(0.3, 1) for _ in range(2))),
        rounded_gaussian(draw.uniform(2.0, 9.0), sorted(draw.gauss(0.1, 1) for _ in range(2))),
        randomised_response(draw.uniform(0.05, 1.0)),
        randomised_response(draw.uniform(0.05, 1.0), draw.uniform(0.0, 0.006)),
        rounded_sampled_gaussian(draw.uniform(0.05, 0.5), draw.uniform(0.8, 3), (0.2, 1.1)),
    ]
    epsilon, delta = draw.uniform(0.5, 2.0), 10 ** draw.uniform(-2.5, -1.0)
    stated = draw.choice([None, draw.uniform(0.1, 0.9) * epsilon])
    budget = make_filter("mixed", epsilon, delta, "add-remove", stated)
    grant = admitted(budget)
    assert worst_case(grant, budget.nothing, library, math.exp(epsilon), depth=3) <= delta
    # Within amounts that are fixed in advance, here those of some path, at every epsilon.
    spent = budget.nothing
    for mechanism in (library[1], library[2], library[3]):
        spent = grant(spent, mechanism) or spent
    square, most, failure = (float(x) for x in spent)

    def within(before, mechanism):
        after = grant(before, mechanism)
        fits = after and all(a <= b for a, b in zip(after, spent, strict=True))
        return after if fits else None

    for at in np.linspace(0.0, 2.5, 6):
        bound = float(exact_delta(at, math.sqrt(square), most)) if square else 0.0
        if not square:
            bound = -math.expm1(at - most) / (1 + math.exp(-most)) if at < most else 0.0
        truth = worst_case(within, budget.nothing, library, math.exp(at), depth=3)
        assert truth <= failure + bound + 1e-12


WINDOW = RepeatedEvent(PoissonSampledEvent(0.02, GaussianEvent(2.0)), 50)
KINDS = {
    "gaussian": (lambda u: GaussianEvent(1.5 + 8 * u), "any"),
    "discrete gaussian": (lambda u: DiscreteGaussianEvent(2.0 + 8 * u, 3), "any"),
    "poisson": (lambda u: PoissonSampledEvent(0.3 * u + 0.01, GaussianEvent(0.5 + u)), "any"),
    "uniform": (lambda u: UniformSampledEvent(9, 300, GaussianEvent(0.8 + u)), "replace-one"),
    "laplace": (lambda u: LaplaceEvent(1.0 + 20 * u), "any"),
    "sampled laplace": (lambda u: PoissonSampledEvent(0.1 + 0.5 * u, LaplaceEvent(1.0)), "any"),
    "discrete laplace": (lambda u: DiscreteLaplaceEvent(1.0 + 20 * u), "any"),
    "pure": (lambda u: PureDPEvent(0.01 + 1.5 * u), "any"),
    "approximate": (lambda u: ApproxDPEvent(0.01 + u, 1e-6 * u), "any"),
    "renyi": (lambda u: RenyiEvent(Normal(0.0, 3 + u), Normal(1.0, 3 + u)), "any"),
    "selection": (lambda u: RepeatAndSelectEvent(GaussianEvent(6 + 9 * u), 8.0, 1.0), "any"),
    "one of several": (lambda u: OneOfEvent((GaussianEvent(3 + u), PureDPEvent(0.3))), "any"),
    "last iterate": (
        lambda u: LastIterateEvent(GaussianEvent(9 + 9 * u), 40, 0.25, strong_convexity=0.01),
        "replace-one",
    ),
    "objective": (lambda u: ObjectivePerturbationEvent(5 + 5 * u, 0.05), "any"),
    "objective, approximated": (
        lambda u: ObjectivePerturbationEvent(6 + 5 * u, 0.1, "any-sign", 0.01),
        "any",
    ),
    "composed": (lambda u: ComposedEvent((GaussianEvent(4 + u), GaussianEvent(9.0))), "any"),
}


@pytest.mark.daily(7)
@pytest.mark.parametrize("adjacency", ["replace-one", "add-remove"])
@pytest.mark.parametrize("kind", KINDS)
def test_every_entry_keeps_below_its_price(kind, adjacency):
    """By certified lower bounds on the larger of both directions, at 200 epsilons."""
    make, relation = KINDS[kind]
    if relation not in ("any", adjacency):
        pytest.skip("nothing is proved under this relation")
    event = make(random.Random(f"{kind} {adjacency}").random())
    budget = make_filter("mixed", 6.0, 1e-4, adjacency)
    try:
        truth = PLDAccountant(adjacency).compose(event)
        pair = truth.epsilon(1e-6)
    except UnsupportedEventError:
        truth = GenericAccountant(adjacency).compose(event)
        pair = truth.epsilon(1e-6)
    for charge in (Charge(event), Charge(event, float(pair), 1e-6)):
        for spent in (budget.nothing, budget.boxes[2]):  # where only stated pairs have room
            square, most, failure = (float(x) for x in budget.price(charge, spent))
            for epsilon in np.linspace(0.0, 7.0, 200 if spent is budget.nothing else 20):
                curve = exact_delta(epsilon, math.sqrt(square), most) if square else 0.0
                if not square and epsilon < most:
                    curve = -math.expm1(epsilon - most) / (1 + math.exp(-most))
                bound = failure + (1 - failure) * float(curve)
                assert truth.delta(epsilon).lower <= bound * (1 + 1e-9)


def test_where_releases_are_booked():
    budget = make_filter("mixed", 3.0, 1e-5, "replace-one")
    start = budget.nothing

    def price(event, spent=start, *pair):
        return tuple(float(x) for x in budget.price(Charge(event, *pair), spent))

    assert price(GaussianEvent(8.0)) == (1 / 64, 0.0, 0.0)
    square, most, failure = price(WINDOW)
    assert square > 0.0 == most and failure <= 2.5e-6 / 16
    assert price(PureDPEvent(1.0)) == (0.0, 1.0, 0.0)
    assert price(ApproxDPEvent(0.5, 1e-6)) == (0.0, 0.5, 1e-6)
    small = price(PureDPEvent(0.01))
    assert small == (pytest.approx(math.pi / 2 * 1e-4, rel=1e-4), 0.0, 0.0)
    # Where one coordinate is full, the other takes what it can.
    full = budget.boxes[0]
    assert not budget.fits(full, budget.price(Charge(PureDPEvent(0.01)), full))
    some = (Fraction(0), Fraction(1), Fraction(0))
    assert price(PureDPEvent(0.01), some)[0] > 0
    stated = (budget.boxes[1][0], Fraction(1, 4), Fraction(0))
    assert price(PureDPEvent(0.01), stated) == (0.0, 0.01, 0.0)
    assert price(gaussian(0.2).event, stated, 0.2, 1e-6) == (0.0, 0.2, 1e-6)
    # A plan of both kinds takes from both.
    both = price(ComposedEvent((GaussianEvent(8.0), PureDPEvent(1.0))))
    assert both == (1 / 64, 1.0, 0.0)


@pytest.mark.parametrize(
    ("fits", "mechanism", "limits", "stated"),
    pairs([1, 2, 7, 40], ["gaussian", "any"], LIMITS, [False, True]),
)
def test_allocations_are_granted(fits, mechanism, limits, stated):
    epsilon, delta = limits
    budget = make_filter("mixed", epsilon, delta, "replace-one", epsilon / 3 if stated else None)
    some = tuple(amount / 4 for amount in budget.boxes[len(budget.boxes) // 2])
    for spent in (budget.nothing, some, (Fraction(0), budget.limits[1] / 2, Fraction(0))):
        each = budget.allocate(spent, fits, mechanism)
        one = gaussian(*each) if mechanism == "gaussian" else Charge(ApproxDPEvent(*each), *each)
        spent = spend(budget, [one] * fits, spent)
        assert budget.guarantee(spent)[0] <= epsilon and budget.guarantee(spent)[1] <= delta


def test_a_first_release_may_take_everything():
    for stated in (None, 0.5):
        budget = make_filter("mixed", 1.0, 1e-5, "replace-one", stated)
        spent = spend(budget, [gaussian(1.0, 1e-5)])
        assert budget.is_spent(spent) and budget.guarantee(spent) == (1.0, 1e-5)
        assert budget.remaining(spent) == (0.0, 0.0)
        for event in (PureDPEvent(1e-9), GaussianEvent(1e6), ApproxDPEvent(0.0, 1e-9)):
            assert not budget.fits(spent, budget.price(Charge(event), spent))
        assert budget.fits(spent, budget.price(Charge(PureDPEvent(0.0)), spent))


def test_budgets_without_limit_count_both():
    budget = make_filter("mixed", math.inf, 1e-5, "replace-one")
    spent = spend(budget, [gaussian(3.0), Charge(PureDPEvent(4.0)), Charge(GaussianEvent(0.5))])
    assert spent[0] > 4 and spent[1] == 4
    epsilon, delta = budget.guarantee(spent)
    exact = analytic_gaussian_epsilon(1 / math.sqrt(spent[0]), 1e-5)
    assert exact < epsilon < exact + 5 and delta <= 1e-5


def test_charges_of_the_other_relation_count_as_groups_of_two():
    for event in (GaussianEvent(8.0), PureDPEvent(0.4), ApproxDPEvent(0.4, 1e-7), WINDOW):
        budget = BudgetAccountant(3.0, 1e-5)
        converted = convert_adjacency(event, "add-remove", "replace-one")
        entry = budget.reserve(event, adjacency="add-remove")
        currency = make_filter("mixed", 3.0, 1e-5, "replace-one")
        price = currency.price(Charge(converted), currency.nothing)
        assert tuple(entry.cost.values()) == price
    budget = BudgetAccountant(3.0, 1e-5, adjacency="add-remove")
    with pytest.raises(ValueError, match="does not cover adding"):
        budget.reserve(GaussianEvent(8.0), adjacency="replace-one")


def test_ledgers_say_both_coordinates(tmp_path):
    budget = BudgetAccountant(3.0, 1e-5, ledger=tmp_path / "a.sqlite", stated_epsilon=1.5)
    assert budget.composition == "mixed"
    budget.reserve(ApproxDPEvent(1.0, 1e-6), label="search")
    entry = budget.reserve(GaussianEvent(8.0), label="fit")
    assert entry.cost == {"mu squared": Fraction(1, 64), "epsilon": 0, "delta": 0}
    sums = budget.coordinates()
    assert sums["epsilon"] == (1.0, 1.5) and sums["delta"] == (1e-6, 2.5e-6)
    assert sums["mu squared"][0] == 1 / 64 < sums["mu squared"][1]
    for words in (
        "<th>sum of mu squared</th><td>0.015625<",
        "<th>sum of epsilon</th><td>1<",
        "largest of any kind",
    ):
        assert words in budget._repr_html_()
    again = BudgetAccountant(3.0, 1e-5, ledger=tmp_path / "a.sqlite")
    assert again.coordinates() == sums
    with pytest.raises(LedgerMismatchError, match=r"stated_epsilon=1\.5 and not 1\.0"):
        BudgetAccountant(3.0, 1e-5, ledger=tmp_path / "a.sqlite", stated_epsilon=1.0)
    with pytest.raises(BudgetExceededError, match=r"0\.6 of epsilon \(0\.5 left\)"):
        budget.reserve(PureDPEvent(0.6))
    total = budget.total
    assert tuple(total) == budget.spent()
    with mp.workdps(30):
        for epsilon in (0.0, 0.7, 1.0, 1.5, 2.5):
            truth = exact_delta(epsilon, 1 / mp.mpf(8), 1)
            assert total.delta_at(epsilon) >= 1e-6 + (1 - 1e-6) * truth
    for bad in (-0.1, 3.5, math.nan, True, "1"):
        with pytest.raises(ValueError, match="stated_epsilon"):
            BudgetAccountant(3.0, 1e-5, stated_epsilon=bad)
    with pytest.raises(ValueError, match="composition='mixed', got 'gdp'"):
        BudgetAccountant(3.0, 1e-5, composition="gdp", stated_epsilon=1.0)


def test_ledgers_keep_the_currency_that_they_were_made_with(tmp_path):
    path = tmp_path / "old.sqlite"
    budget = BudgetAccountant(3.0, 1e-5, ledger=path, composition="gdp")
    # As it was written before there were two coordinates.
    old = "format created skdp name epsilon delta adjacency composition units limits".split()
    terms = {name: budget.desk.file.genesis[name] for name in old}
    path.unlink()
    Ledger.create(FilePlace(path), terms)
    for again in (BudgetAccountant(3.0, 1e-5, ledger=path), BudgetAccountant.open(path)):
        assert again.composition == "gdp"
        entry = again.reserve(GaussianEvent(32.0))
        assert entry.cost == {"mu squared": Fraction(1, 1024), "slack": 0}
    with pytest.raises(LedgerMismatchError, match="composition='gdp' and not 'mixed'"):
        BudgetAccountant(3.0, 1e-5, ledger=path, composition="mixed")


def test_limits_of_the_creation_count(tmp_path):
    path = tmp_path / "a.sqlite"
    budget = BudgetAccountant(3.0, 1e-5, ledger=path)
    terms = json.loads(json.dumps(budget.desk.file.genesis))
    terms = {k: v for k, v in terms.items() if k not in ("index", "previous")}
    largest = Fraction(terms["boxes"][0][0])
    for factor in (1 - Fraction(1, 10**12), 2):
        path.unlink()
        terms["boxes"][0][0] = str(largest * factor)
        Ledger.create(FilePlace(path), terms)
        again = BudgetAccountant.open(path)
        if factor < 1:
            assert str(again.desk.currency.boxes[0][0]) == terms["boxes"][0][0]
    with pytest.raises(LedgerMismatchError, match="counts in other units or limits"):
        BudgetAccountant.open(path).spent()


@pytest.mark.parametrize("name", ["mixed", "gdp", "zcdp", "rdp", "approx"])
def test_epsilons_that_no_curve_reaches_are_refused_by_name(name):
    for epsilon in (1e21, np.float64(1e100), 1e308, 10**60, Fraction(10**300)):
        with pytest.raises(ValueError, match=f"composition='{name}' needs epsilon <= 1e.20"):
            BudgetAccountant(epsilon, 1e-5, composition=name)
    for epsilon in (5e-324, 1e-300, 1e20, 10**19, Fraction(1, 3), np.float32(1.5), math.inf):
        budget = BudgetAccountant(epsilon, 1e-5, composition=name)
        assert budget.remaining()[0] == float(epsilon)
        for mechanism in ("gaussian", "any") if epsilon < math.inf else ():
            with contextlib.suppress(BudgetExceededError):
                assert 0.0 <= budget.allocate(3, mechanism)[0] < math.inf
    for delta in (1e-310, Fraction(1, 10**6), np.float32(1e-5), 1 - 2**-53):
        budget = BudgetAccountant(1.0, delta, composition=name)
        assert budget.delta == float(delta) and budget.spent() == (0.0, 0.0)
    with pytest.raises(ValueError, match="needs a larger delta"):
        BudgetAccountant(1.0, 5e-324, composition=name)


@pytest.mark.parametrize("name", ["auto", "basic", "mixed"])
def test_what_no_float_holds_is_no_total(name):
    for bad in (10**400, Fraction(10**400), "1", True, None, math.nan, -1, 0, 1j, Decimal(1)):
        with pytest.raises(ValueError, match="epsilon must be a positive number"):
            BudgetAccountant(bad, 1e-5, composition=name)
        if bad != 0:
            with pytest.raises(ValueError, match=r"delta must be a number in \[0, 1\)"):
                BudgetAccountant(1.0, bad, composition=name)
    with pytest.raises(ValueError, match="stated_epsilon must be between"):
        BudgetAccountant(1.0, 1e-5, stated_epsilon=10**400)


def test_totals_beyond_floats_are_none():
    budget = BudgetAccountant(1000.0, 1e-5)
    budget.reserve(ApproxDPEvent(0.5, 1e-8))
    budget.reserve(GaussianEvent(0.05))
    assert budget.total is None or budget.spent()[0] < math.inf


@pytest.mark.parametrize("epsilon", [1.0, math.inf])
@pytest.mark.parametrize("part", [ApproxDPEvent(0.1, 0.6), ApproxDPEvent(0.1, 0.3)])
def test_a_plan_whose_deltas_add_up_to_certainty_is_refused(epsilon, part):
    budget = BudgetAccountant(epsilon, 1e-5)
    with pytest.raises(BudgetExceededError):
        budget.plan([part] * 4)
    assert budget.entries() == []


def test_what_a_study_of_one_kind_loses():
    """Gaussian fits only, in epsilon at the same delta; stated epsilons only; both."""
    for epsilon, delta in ((0.5, 1e-6), (1.0, 1e-5), (3.0, 1e-5), (3.0, 1e-6), (10.0, 1e-5)):
        mixed, gdp, fixed = (
            make_filter(name, epsilon, delta, "replace-one", *more)
            for name, *more in (("mixed",), ("gdp",), ("mixed", epsilon / 3))
        )
        curve = delta - float(gdp.limits[1])

        def epsilon_of(square, curve=curve):
            return gaussian_profile.epsilon(math.sqrt(square), curve)

        lost = 1 - epsilon_of(mixed.boxes[0][0]) / epsilon
        third = math.sqrt(mixed.boxes[2][0] / fixed.boxes[0][0])
        alone = 1 - epsilon_of(fixed.boxes[0][0]) / epsilon
        assert 0.02 < lost < 0.05 < 0.25 < alone
        assert 0.85 < third < 1.0
        # Pure releases lose nothing, except that the smallest ones are booked as Gaussian.
        share = epsilon / 8
        spent = spend(mixed, [Charge(PureDPEvent(share))] * 8)
        assert mixed.guarantee(spent) == (epsilon, 0.0) or mixed.is_spent(spent)


def test_a_search_and_fits_under_one_budget():
    """A search of epsilon 1, then as many Gaussian fits of 0.5 as there is room for, of 3."""
    search = Charge(RepeatAndSelectEvent(GaussianEvent(6.1), 10.0, 1.0), 1.0, 1e-6)
    found = {}
    for name in ("gdp", "basic", "mixed"):
        budget = make_filter(name, 3.0, 1e-5, "replace-one")
        spent = spend(budget, [search])
        first, fits = budget.guarantee(spent)[0], 0
        while budget.fits(spent, cost := budget.price(gaussian(0.5), spent)):
            spent = tuple(a + b for a, b in zip(spent, cost, strict=True))
            fits += 1
        found[name] = first, fits
    assert found["mixed"][0] == found["basic"][0] == 1.0
    assert found["gdp"][0] > 2.5
    assert found["mixed"][1] > 2 * max(found["gdp"][1], found["basic"][1])
