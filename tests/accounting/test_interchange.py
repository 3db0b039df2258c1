"""Events of dp-accounting mean what ours do: by both libraries' accountants, and there and back."""

from fractions import Fraction

import attr
import numpy as np
import pytest
from dp_accounting import NeighboringRelation, dp_event
from dp_accounting.pld import PLDAccountant as TheirPLD
from dp_accounting.rdp import RdpAccountant as TheirRDP
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import norm

from skdp.accounting import (
    ApproxDPEvent,
    ComposedEvent,
    DiscreteLaplaceEvent,
    Event,
    GaussianEvent,
    LaplaceEvent,
    PLDAccountant,
    PoissonSampledEvent,
    PureDPEvent,
    RDPAccountant,
    RenyiEvent,
    RepeatAndSelectEvent,
    RepeatedEvent,
    UniformSampledEvent,
)
from skdp.accounting.distributions import Laplace, Normal
from skdp.exceptions import PrivacyWarning, UnsupportedEventError

RELATIONS = {
    "add-remove": NeighboringRelation.ADD_OR_REMOVE_ONE,
    "replace-one": NeighboringRelation.REPLACE_ONE,
}
GAUSSIAN = dp_event.GaussianDpEvent(4.0)
PRICED = [
    ("add-remove", GAUSSIAN),
    ("replace-one", GAUSSIAN),
    ("add-remove", dp_event.LaplaceDpEvent(3.0)),
    ("add-remove", dp_event.DiscreteLaplaceDpEvent(0.3, 2)),
    ("add-remove", dp_event.PoissonSampledDpEvent(0.1, dp_event.LaplaceDpEvent(3.0))),
    ("add-remove", dp_event.PoissonSampledDpEvent(0.1, GAUSSIAN)),
    ("replace-one", dp_event.PoissonSampledDpEvent(0.1, GAUSSIAN)),
]


@pytest.mark.parametrize(("adjacency", "theirs"), PRICED, ids=str)
def test_both_accountants_agree(adjacency, theirs):
    plan = dp_event.ComposedDpEvent([dp_event.SelfComposedDpEvent(theirs, 3), GAUSSIAN])
    expected = TheirPLD(RELATIONS[adjacency], 1e-3).compose(plan).get_epsilon(1e-5)
    ours = PLDAccountant(adjacency).compose(Event.from_dp_event(plan, adjacency))
    assert ours.epsilon(1e-5) == pytest.approx(expected, rel=3e-3)


LOTS = UniformSampledEvent(10, 100, GaussianEvent(1.0))


@pytest.mark.parametrize("event", [LOTS, RepeatedEvent(ComposedEvent((LOTS,)), 50)], ids=repr)
def test_lots_of_a_fixed_size_are_not_priced_elsewhere_in_silence(event):
    with pytest.warns(PrivacyWarning, match="No other accountant there supports samples"):
        theirs = event.to_dp_event("replace-one")
    accountant = TheirRDP(neighboring_relation=RELATIONS["replace-one"]).compose(theirs)
    own = PLDAccountant("replace-one").compose(event).epsilon(1e-5)
    assert accountant.get_epsilon(1e-5) < 0.5 * own.lower, "what is warned of"


@pytest.mark.parametrize("event", [GaussianEvent(1.0), LaplaceEvent(2.0)], ids=repr)
def test_bare_noise_names_the_accountant_that_is_right(event, recwarn):
    event.to_dp_event("add-remove")
    PoissonSampledEvent(0.1, event).to_dp_event("replace-one")
    assert not recwarn.list
    with pytest.warns(PrivacyWarning, match="or their PLDAccountant") as caught:
        theirs = event.to_dp_event("replace-one")
    assert caught[0].filename == __file__
    accountant = TheirRDP(neighboring_relation=RELATIONS["replace-one"]).compose(theirs)
    own = PLDAccountant("replace-one").compose(event).epsilon(1e-5)
    assert accountant.get_epsilon(1e-5) < 0.8 * own.lower


def test_zcdp_is_read_as_its_divergences():
    event = Event.from_dp_event(dp_event.ZCDpEvent(0.3), "add-remove")
    assert event.log_moment(3.0) / 2.0 == pytest.approx(3.0 * 0.3)
    assert event.log_moment(3.0) / 2.0 >= 3.0 * 0.3


def noise(sensitivities):
    multipliers = st.floats(0.01, 100.0)
    return st.one_of(
        st.builds(GaussianEvent, multipliers),
        st.builds(LaplaceEvent, multipliers),
        st.builds(DiscreteLaplaceEvent, multipliers, sensitivities),
    )


def events(adjacency):
    rates = st.floats(0.0, 1.0)
    inner = noise(st.integers(1, 5))
    samples = [st.builds(PoissonSampledEvent, rates, inner)]
    if adjacency == "replace-one":
        samples.append(st.builds(UniformSampledEvent, st.just(3), st.integers(3, 9), inner))
    bare = noise(st.integers(1, 5).map(lambda number: 2 * number))
    renyi = st.builds(
        lambda mean: RenyiEvent(Normal(0.0, 1.0), Normal(mean, 1.0)), st.floats(0.01, 9.0)
    )
    return st.recursive(
        st.one_of(bare, renyi, *samples),
        lambda inside: st.one_of(
            st.builds(RepeatedEvent, inside, st.integers(0, 9)),
            st.builds(ComposedEvent, st.lists(inside, max_size=3)),
            st.builds(RepeatAndSelectEvent, inside, st.just(5.0), st.just(0.0)),
        ),
        max_leaves=4,
    )


@pytest.mark.filterwarnings("ignore:Under REPLACE_ONE")
@settings(max_examples=25, deadline=None)
@given(st.data(), st.sampled_from(sorted(RELATIONS)))
def test_there_and_back(data, adjacency):
    event = data.draw(events(adjacency))
    again = Event.from_dp_event(event.to_dp_event(adjacency), adjacency)
    numbers, kept = list(plain(again.to_dict())), list(plain(event.to_dict()))
    assert len(numbers) == len(kept)
    for found, wanted in zip(numbers, kept, strict=True):
        assert found == (wanted if isinstance(wanted, str) else pytest.approx(wanted, rel=1e-14))


def plain(value):
    if isinstance(value, dict):
        value = [value[key] for key in sorted(value)]
    if not isinstance(value, list):
        yield value
        return
    for part in value:
        yield from plain(part)


@given(st.floats(1e-3, 1e3), st.integers(1, 9))
@settings(max_examples=60, deadline=None)
def test_rounding_never_lowers_the_cost(parameter, sensitivity):
    theirs = dp_event.DiscreteLaplaceDpEvent(parameter, sensitivity)
    event = Event.from_dp_event(theirs, "add-remove")
    assert 1 / Fraction(event.noise_multiplier) >= Fraction(parameter) * sensitivity
    assert event.to_dp_event("add-remove").noise_parameter >= parameter


@pytest.mark.parametrize(
    ("adjacency", "theirs"),
    [
        ("add-remove", dp_event.NonPrivateDpEvent()),
        ("add-remove", dp_event.SingleEpochTreeAggregationDpEvent(1.0, 5)),
        ("add-remove", dp_event.SampledWithReplacementDpEvent(9, 3, GAUSSIAN)),
        ("add-remove", dp_event.SampledWithoutReplacementDpEvent(9, 3, GAUSSIAN)),
        ("add-remove", dp_event.ZCDpEvent(0.1, 0.2)),
        ("add-remove", dp_event.PoissonSampledDpEvent(0.1, dp_event.ZCDpEvent(0.1))),
        ("add-remove", dp_event.ComposedDpEvent([GAUSSIAN, dp_event.UnsupportedDpEvent()])),
        ("add-remove", GaussianEvent(1.0)),
    ],
    ids=str,
)
def test_what_has_no_counterpart_is_refused(adjacency, theirs):
    with pytest.raises(UnsupportedEventError, match="no exact counterpart"):
        Event.from_dp_event(theirs, adjacency)


@pytest.mark.parametrize(
    ("adjacency", "event"),
    [
        ("replace-one", DiscreteLaplaceEvent(1.0, 3)),
        ("add-remove", UniformSampledEvent(3, 9, GaussianEvent(1.0))),
        ("add-remove", RenyiEvent(Laplace(0.0, 1.0), Laplace(1.0, 1.0))),
        ("add-remove", RenyiEvent(Normal(0.0, 1.0), Normal(1.0, 2.0))),
        ("add-remove", RepeatAndSelectEvent(GaussianEvent(1.0), 5.0, -0.5)),
        ("add-remove", ApproxDPEvent(1.0, 1e-6)),
    ],
    ids=str,
)
def test_what_they_cannot_say_is_refused(adjacency, event):
    with pytest.raises(UnsupportedEventError, match="no exact counterpart"):
        event.to_dp_event(adjacency)


def test_stated_guarantees_where_dp_accounting_has_them(monkeypatch):
    kind = attr.make_class("EpsilonDeltaDpEvent", ["epsilon", "delta"], frozen=True)
    monkeypatch.setattr(dp_event, "EpsilonDeltaDpEvent", kind, raising=False)
    for event in (ApproxDPEvent(1.0, 1e-6), PureDPEvent(0.5)):
        assert Event.from_dp_event(event.to_dp_event("replace-one"), "replace-one") == event
    with pytest.raises(UnsupportedEventError, match="different adjacency relations"):
        PoissonSampledEvent(0.1, PureDPEvent(1.0)).to_dp_event("replace-one")


def test_relations_are_named():
    with pytest.raises(ValueError, match="adjacency"):
        Event.from_dp_event(GAUSSIAN, "REPLACE_ONE")


def test_trade_off_is_below_the_truth_and_near_it():
    alphas = np.array([[0.0, 0.01, 0.3], [0.5, 0.9, 1.0]])
    exact = norm.cdf(norm.ppf(1 - alphas) - 1.0)
    found = PLDAccountant().compose(GaussianEvent(1.0)).trade_off(alphas)
    assert (found <= exact).all() and (exact - found).max() < 1e-3
    loose = RDPAccountant().compose(GaussianEvent(1.0)).trade_off(alphas)
    assert (loose <= found + 1e-12).all() and loose[0, 2] > 0.1
    with pytest.raises(ValueError, match="alphas"):
        PLDAccountant().trade_off([1.5])


def test_no_trade_off_without_a_guarantee():
    from skdp.accounting import BayesianAccountant

    with pytest.raises(ValueError, match="does not return upper bounds"):
        BayesianAccountant().trade_off([0.5])
