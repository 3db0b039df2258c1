"""The contract of cards: what has none is refused by name, and answers agree with each other."""

import itertools
import json
import math
from dataclasses import dataclass, field
from itertools import pairwise

import pytest

from skdp.accounting import (
    ApproxDPEvent,
    BoundedRangeEvent,
    ComposedEvent,
    DiscreteGaussianEvent,
    DiscreteLaplaceEvent,
    Event,
    GaussianEvent,
    HiddenStateAccountant,
    LaplaceEvent,
    LastIterateEvent,
    NormExponentialEvent,
    ObjectivePerturbationEvent,
    OneOfEvent,
    PLDAccountant,
    PoissonSampledEvent,
    ProfileEvent,
    PureDPEvent,
    RandomAllocationEvent,
    RDPAccountant,
    RenyiEvent,
    RepeatAndSelectEvent,
    RepeatedEvent,
    UniformSampledEvent,
)
from skdp.accounting.accountants import accountants
from skdp.accounting.analysis import _CARDS, ADJACENCIES, Analysis, Domination, analysis_of
from skdp.accounting.distributions import Laplace
from skdp.accounting.numerics import gaussian_profile
from skdp.accounting.numerics.arithmetic import float_up
from skdp.budget.currencies import COMPOSITIONS, Charge, make_filter
from skdp.exceptions import UnsupportedEventError


@dataclass(frozen=True)
class UnknownEvent(Event):
    scale: float = 1.0


@dataclass(frozen=True)
class HeavierGaussianEvent(GaussianEvent):
    """Means something else than its base, and forgets to say so."""


@dataclass(frozen=True)
class MoreOftenEvent(RepeatedEvent):
    """As above."""


@dataclass(frozen=True)
class RarerSampleEvent(PoissonSampledEvent):
    """As above."""


@dataclass(frozen=True)
class OtherObjectiveEvent(ObjectivePerturbationEvent):
    """As above: the bound is its base's."""


class ForgetfulEvent(OtherObjectiveEvent):
    """A bound of its own, but equal to whatever has the fields of its base."""

    def __init__(self, factor):
        super().__init__(3.0, 0.1)
        object.__setattr__(self, "factor", factor)

    def profile_bound(self, epsilon, adjacency):
        return min(1.0, self.factor * super().profile_bound(epsilon, adjacency))


@dataclass(frozen=True)
class NonsenseEvent(ProfileEvent):
    """Answers with what is no probability and no loss."""

    value: float

    def profile_bound(self, epsilon, adjacency):
        return self.value

    def supports_adjacency(self, adjacency):
        return True

    def largest_loss(self, adjacency):
        return self.value


@dataclass(frozen=True)
class PartlyComparedEvent(ProfileEvent):
    """Equal to others with another bound, and would be merged with them."""

    bound: float = field(default=1.0, compare=False)

    def profile_bound(self, epsilon, adjacency):
        return self.bound

    def supports_adjacency(self, adjacency):
        return True


STRANGERS = [
    UnknownEvent(),
    HeavierGaussianEvent(2.0),
    MoreOftenEvent(GaussianEvent(2.0), 3),
    RarerSampleEvent(0.1, GaussianEvent(2.0)),
    OtherObjectiveEvent(3.0, 0.1),
    ForgetfulEvent(1e4),
    PartlyComparedEvent(0.5),
    *(
        wrap(HeavierGaussianEvent(2.0))
        for wrap in (
            lambda inner: PoissonSampledEvent(0.1, inner),
            lambda inner: UniformSampledEvent(1, 10, inner),
            lambda inner: OneOfEvent((GaussianEvent(1.0), inner)),
            lambda inner: RepeatAndSelectEvent(inner, 3.0, 1.0),
            lambda inner: LastIterateEvent(inner, 10, 0.25),
        )
    ),
]


@pytest.mark.parametrize("cls", accountants().values())
def test_what_has_no_card_is_refused_by_name(cls):
    for event, adjacency in itertools.product(STRANGERS, ADJACENCIES):
        assert not cls(adjacency).supports(event), event
        with pytest.raises(UnsupportedEventError, match=type(event).__name__):
            cls(adjacency).compose(ComposedEvent((GaussianEvent(1.0), event)))


@pytest.mark.parametrize("composition", sorted({*COMPOSITIONS} - {"auto"}))
def test_what_has_no_card_is_refused_by_budgets(composition):
    for event, adjacency in itertools.product(STRANGERS, ADJACENCIES):
        budget = make_filter(composition, 10.0, 1e-4, adjacency)
        with pytest.raises(UnsupportedEventError):
            budget.price(Charge(event, 1.0, 1e-6), budget.nothing)
        with pytest.raises((UnsupportedEventError, ValueError)):  # some ask for numbers first
            budget.price(Charge(event, None, None), budget.nothing)


@pytest.mark.parametrize("value", [math.nan, -1.0])
def test_answers_that_are_no_numbers_promise_nothing(value):
    accountant = PLDAccountant("replace-one").compose(NonsenseEvent(value))
    assert accountant.delta(0.5) == 1.0 and accountant.epsilon(1e-3) == math.inf


STEP = PoissonSampledEvent(0.05, GaussianEvent(2.0))
EXAMPLES = [
    GaussianEvent(2.0),
    LaplaceEvent(3.0),
    NormExponentialEvent(1.5),
    DiscreteGaussianEvent(1.5, 2),
    DiscreteLaplaceEvent(2.0, 3),
    STEP,
    PoissonSampledEvent(1.0, GaussianEvent(3.0)),
    PoissonSampledEvent(0.0, LaplaceEvent(3.0)),
    PoissonSampledEvent(0.1, LaplaceEvent(1.0)),
    PoissonSampledEvent(0.1, PureDPEvent(1.0)),
    UniformSampledEvent(1, 20, GaussianEvent(2.0)),
    UniformSampledEvent(1, 20, LaplaceEvent(2.0)),
    RandomAllocationEvent(20, GaussianEvent(2.0)),
    PureDPEvent(0.7),
    BoundedRangeEvent(0.7),
    ApproxDPEvent(0.7, 1e-5),
    ObjectivePerturbationEvent(3.0, 0.05),
    ObjectivePerturbationEvent(3.0, 0.05, "any-sign", opposite=0.2),
    OneOfEvent((PureDPEvent(0.5), RepeatedEvent(LaplaceEvent(8.0), 3))),
    OneOfEvent((GaussianEvent(2.0), GaussianEvent(4.0))),
    RepeatAndSelectEvent(PureDPEvent(0.2), 5.0, 1.0),
    RenyiEvent(Laplace(0.0, 1.0), Laplace(1.0, 1.0)),
    LastIterateEvent(GaussianEvent(20.0), 50, 0.25, 0.01),
    LastIterateEvent(STEP, 50, 0.25, 0.01, dataset_size=1000),
]
CASES = [
    pytest.param(event, adjacency, id=f"{event!r}, {adjacency}")
    for event in EXAMPLES
    for adjacency in ADJACENCIES
]


WRITTEN = [
    *EXAMPLES,
    PureDPEvent(0.0),
    RepeatedEvent(STEP, 7),
    ComposedEvent((STEP, RepeatedEvent(ComposedEvent([PureDPEvent(1.0)]), 2))),
    ComposedEvent(()),
    RepeatAndSelectEvent(PureDPEvent(0.5), 10, math.inf),
    LastIterateEvent(GaussianEvent(2.0), 7, 0.5, diameter=3.0, batches=4),
    LastIterateEvent(UniformSampledEvent(1, 20, GaussianEvent(2.0)), 7, 0.5, 0.02),
]


@pytest.mark.parametrize("event", WRITTEN, ids=repr)
def test_events_are_values_and_survive_strict_json(event):
    again = Event.from_dict(json.loads(json.dumps(event.to_dict(), allow_nan=False)))
    assert again == event and hash(again) == hash(event)
    assert repr(event).startswith(type(event).__name__)
    with pytest.raises(AttributeError):
        event.noise_multiplier = 2.0


def test_every_card_has_an_example():
    kinds = {type(event) for event in EXAMPLES}
    assert set(_CARDS) == kinds - {ObjectivePerturbationEvent} | {ProfileEvent}


@pytest.mark.parametrize(("event", "adjacency"), CASES)
def test_answers_agree(event, adjacency):
    card, whole = analysis_of(event, adjacency), PLDAccountant(adjacency)
    mu, stated, moments = card.mu(), card.stated(), card.log_moments()
    assert whole.supports(event) == (mu is not None or card.pairs() is not None)
    if whole.supports(event):
        lower = whole.compose(event).delta
        if stated is not None:
            assert lower(float_up(stated.epsilon)).upper <= float(stated.delta) * (1 + 1e-9)
        if mu is not None:
            assert lower(0.3).upper <= gaussian_profile.delta(mu, 0.3) * (1 + 1e-9)
        if card.mu_squared() is not None:
            square = math.sqrt(card.mu_squared())
            assert lower(0.3).upper <= gaussian_profile.delta(square, 0.3) * (1 + 1e-9)
        if moments is not None and moments.finite:
            assert lower(0.3).lower <= RDPAccountant(adjacency).compose(event).delta(0.3)
    if moments is not None:
        values = [moments.of(order) for order in (1.5, 2.0, 4.0, 7.5)]
        assert all(0.0 <= a <= b * (1 + 1e-9) for a, b in pairwise(values))


@pytest.mark.parametrize("event", EXAMPLES, ids=repr)
def test_two_records_cost_no_less_than_one(event):
    two = analysis_of(event, "add-remove").of_two()
    if two is None:
        return
    one, both = HiddenStateAccountant("add-remove"), HiddenStateAccountant("replace-one")
    assert both.compose(two).delta(0.3) >= one.compose(event).delta(0.3).lower * (1 - 1e-9)


@dataclass(frozen=True)
class HiddenNoiseEvent(Event):
    """Costs no more than another release, and nothing else is proved of it."""

    other: Event


@pytest.fixture
def hidden_noise(monkeypatch):
    class HiddenNoise(Analysis):
        def dominated_by(self):
            return Domination(self.event.other)

    monkeypatch.setitem(_CARDS, HiddenNoiseEvent, HiddenNoise)
    analysis_of.cache_clear()
    yield HiddenNoiseEvent
    analysis_of.cache_clear()


DOMINATING = [
    GaussianEvent(2.0),
    LaplaceEvent(3.0),
    STEP,
    PureDPEvent(0.7),
    ApproxDPEvent(0.7, 1e-6),
]


@pytest.mark.parametrize("other", DOMINATING, ids=repr)
@pytest.mark.parametrize("cls", accountants().values())
def test_accountants_take_what_a_release_dominates(cls, other, hidden_noise):
    for adjacency in ADJACENCIES:
        event, delta = hidden_noise(other), 1e-4
        assert cls(adjacency).supports(event) == cls(adjacency).supports(other)
        if cls(adjacency).supports(other):
            own, known = (cls(adjacency).compose(each, 3).epsilon(delta) for each in (event, other))
            assert own.upper == pytest.approx(known.upper, rel=1e-9)
            assert own.lower == 0.0, "the release may cost less than what dominates it"


@pytest.mark.parametrize("composition", sorted({*COMPOSITIONS} - {"auto"}))
def test_budgets_take_what_a_release_dominates(composition, hidden_noise):
    budget = make_filter(composition, 10.0, 1e-4, "add-remove")
    own, known = (
        budget.price(Charge(event, 1.0, 1e-6), budget.nothing)
        for event in (hidden_noise(GaussianEvent(5.0)), GaussianEvent(5.0))
    )
    assert own == known


def test_compositions_that_dominate_are_left_to_one_accountant(hidden_noise):
    event = hidden_noise(RepeatedEvent(GaussianEvent(5.0), 2))
    assert HiddenStateAccountant().compose(event).epsilon(1e-5) > 0.0
    assert not any(
        cls().supports(event) for cls in accountants().values() if cls is not HiddenStateAccountant
    )


@pytest.mark.parametrize(("event", "adjacency"), CASES)
def test_what_dominates_costs_no_less(event, adjacency):
    known = analysis_of(event, adjacency).dominated_by()
    if known is None or not HiddenStateAccountant(adjacency).supports(event):
        return
    least = HiddenStateAccountant(adjacency).compose(event).delta(0.5)
    assert PLDAccountant(adjacency).compose(known.event).delta(0.5) >= least * (1 - 1e-9)
