"""What every accountant must do, whichever bound it computes."""

import itertools
import json
import math
from dataclasses import dataclass
from typing import ClassVar

import pytest

from skdp.accounting import (
    AdvancedCompositionAccountant,
    ApproxDPEvent,
    BasicCompositionAccountant,
    BayesianAccountant,
    ComposedEvent,
    Event,
    GaussianEvent,
    GDPAccountant,
    GenericAccountant,
    HiddenStateAccountant,
    LastIterateEvent,
    MomentsAccountant,
    OptimalCompositionAccountant,
    PLDAccountant,
    PoissonSampledEvent,
    PrivacyValue,
    PureDPEvent,
    RDPAccountant,
    RenyiEvent,
    RepeatedEvent,
    UniformSampledEvent,
)
from skdp.accounting.accountants import accountants, resolve_accountant
from skdp.accounting.distributions import Gamma
from skdp.exceptions import UnsupportedEventError


@dataclass(frozen=True)
class UnheardOfEvent(Event):
    """An event no accountant knows."""

    strength: float = 1.0


SAMPLED = [PoissonSampledEvent(0.1, GaussianEvent(2.0)), GaussianEvent(1.5)]
UNIFORM = [UniformSampledEvent(3, 20, GaussianEvent(4.0))]
KNOWN = [PureDPEvent(0.3)]
OUTCOME = RenyiEvent(Gamma(2.5, 0.9), Gamma(2.5, 1.0))


class AccountantContract:
    """Laws for one class; ``events`` are what it supports under each adjacency."""

    cls: ClassVar[type]
    events: ClassVar[dict[str, list[Event]]] = {
        "add-remove": SAMPLED + KNOWN,
        "replace-one": SAMPLED + UNIFORM + KNOWN,
    }

    @pytest.fixture(params=["add-remove", "replace-one"])
    def adjacency(self, request):
        return request.param

    def make(self, adjacency, *events):
        accountant = self.cls(adjacency)
        for event in events:
            accountant.compose(event)
        return accountant

    def test_nothing_costs_nothing(self, adjacency):
        for accountant in (
            self.cls(adjacency),
            self.cls(adjacency).compose(ComposedEvent(())),
            self.cls(adjacency).compose(GaussianEvent(1.0), count=0),
            self.cls(adjacency).compose(RepeatedEvent(GaussianEvent(1.0), 0)),
        ):
            assert accountant.epsilon(1e-5) == 0.0
            assert accountant.epsilon(0.0) == 0.0
            assert accountant.delta(0.0) == 0.0
            assert accountant.event == ComposedEvent(())

    def test_unsampled_sample_costs_nothing(self, adjacency):
        accountant = self.make(adjacency, PoissonSampledEvent(0.0, GaussianEvent(0.1)))
        assert accountant.epsilon(1e-9) == 0.0
        assert accountant.delta(0.0) == 0.0

    def test_unsupported_is_named_and_changes_nothing(self, adjacency):
        accountant = self.make(adjacency, GaussianEvent(2.0))
        before = accountant.to_dict()
        bad = ComposedEvent((GaussianEvent(1.0), RepeatedEvent(UnheardOfEvent(3.0), 4)))
        assert not accountant.supports(bad)
        with pytest.raises(UnsupportedEventError, match=r"UnheardOfEvent\(strength=3.0\)"):
            accountant.compose(bad)
        assert accountant.to_dict() == before

    def test_who_knows_samples_of_compositions(self, adjacency):
        nested = PoissonSampledEvent(0.1, RepeatedEvent(GaussianEvent(1.0), 2))
        known = self.cls in (PLDAccountant, HiddenStateAccountant)
        assert self.cls(adjacency).supports(nested) == known

    def test_fixed_size_sampling_needs_replace_one(self):
        event = UniformSampledEvent(1, 10, GaussianEvent(1.0))
        with pytest.raises(UnsupportedEventError, match=r"UniformSampledEvent.*add-remove"):
            self.cls("add-remove").compose(event)

    def test_compose_returns_self_and_merges(self, adjacency):
        event = GaussianEvent(2.0)
        accountant = self.cls(adjacency)
        assert accountant.compose(event).compose(event, count=2) is accountant
        assert accountant.event == ComposedEvent((RepeatedEvent(event, 3),))
        assert accountant.adjacency == adjacency

    def test_order_and_nesting_do_not_matter(self, adjacency):
        events = self.events[adjacency]
        one = self.make(adjacency, *events, *events)
        two = self.make(adjacency, RepeatedEvent(ComposedEvent(tuple(reversed(events))), 2))
        assert one.epsilon(1e-5) == pytest.approx(two.epsilon(1e-5), rel=1e-9)

    @pytest.mark.daily(1)
    def test_monotone_in_delta_epsilon_and_count(self, adjacency):
        for event in self.events[adjacency]:
            accountant = self.make(adjacency, event)
            epsilons = [accountant.epsilon(delta) for delta in (1e-12, 1e-8, 1e-5, 1e-2, 0.9)]
            assert epsilons == sorted(epsilons, reverse=True)
            deltas = [accountant.delta(epsilon) for epsilon in (0.0, 0.01, 0.5, 2.0, 10.0)]
            assert deltas == sorted(deltas, reverse=True)
            # Numerical accountants may err by 1e-4 in either of two neighbouring evaluations.
            grown = [self.cls(adjacency).compose(event, n).epsilon(1e-5) for n in (1, 2, 5, 40)]
            assert all(a <= b * (1 + 1e-4) for a, b in itertools.pairwise(grown))

    def test_epsilon_and_delta_agree(self, adjacency):
        accountant = self.make(adjacency, *self.events[adjacency])
        for delta in (1e-9, 1e-4, 1e-2):
            epsilon = accountant.epsilon(delta)
            assert accountant.delta(epsilon) == pytest.approx(delta, rel=0.01)
            assert accountant.delta(epsilon * 1.02) < delta

    def test_never_below_gaussian_part(self, adjacency):
        gaussian = GDPAccountant(adjacency).compose(GaussianEvent(1.5)).epsilon(1e-6)
        assert self.make(adjacency, *self.events[adjacency]).epsilon(1e-6) >= gaussian * (1 - 1e-9)

    def test_round_trip_through_json(self, adjacency):
        accountant = self.make(adjacency, *self.events[adjacency])
        again = self.cls.from_dict(json.loads(json.dumps(accountant.to_dict())))
        assert again.event == accountant.event
        assert again.adjacency == adjacency
        assert again.epsilon(1e-5) == accountant.epsilon(1e-5)
        with pytest.raises(ValueError, match="another-kind"):
            self.cls.from_dict({**accountant.to_dict(), "type": "another-kind"})

    def test_queries_leave_no_trace(self, adjacency):
        accountant = self.make(adjacency, *self.events[adjacency])
        before = accountant.to_dict()
        first = (accountant.epsilon(1e-5), accountant.delta(1.0))
        assert (accountant.epsilon(1e-5), accountant.delta(1.0)) == first
        assert accountant.to_dict() == before
        assert all(isinstance(value, PrivacyValue) for value in first)

    def test_gaussian_without_delta_is_infinite(self, adjacency):
        assert self.make(adjacency, GaussianEvent(1.0)).epsilon(0.0) == math.inf

    @pytest.mark.parametrize("delta", [-1e-9, 1.0, math.nan])
    def test_delta_is_validated(self, adjacency, delta):
        with pytest.raises(ValueError, match="delta must lie in"):
            self.cls(adjacency).epsilon(delta)

    @pytest.mark.parametrize("epsilon", [-1e-9, math.nan])
    def test_epsilon_is_validated(self, adjacency, epsilon):
        with pytest.raises(ValueError, match="epsilon must be >= 0"):
            self.cls(adjacency).delta(epsilon)

    def test_arguments_of_compose_are_validated(self, adjacency):
        with pytest.raises(TypeError, match="must be an Event"):
            self.cls(adjacency).compose("gaussian")
        with pytest.raises(ValueError, match="count"):
            self.cls(adjacency).compose(GaussianEvent(1.0), count=-1)

    def test_adjacency_is_validated(self):
        with pytest.raises(ValueError, match="adjacency must be one of"):
            self.cls("zero-out")


class TestGDPAccountant(AccountantContract):
    cls = GDPAccountant
    events: ClassVar = {
        "add-remove": [GaussianEvent(1.5), PoissonSampledEvent(1.0, GaussianEvent(3.0))],
        "replace-one": [GaussianEvent(1.5), UniformSampledEvent(4, 4, GaussianEvent(5.0))],
    }

    def test_it_is_exact_on_both_sides(self, adjacency):
        accountant = self.make(adjacency, GaussianEvent(2.0), GaussianEvent(3.0))
        for lower, upper in (accountant.epsilon(1e-6), accountant.delta(1.0)):
            assert 0.0 < lower <= upper <= lower * (1.0 + 1e-9)

    def test_sampled_is_refused(self):
        assert not GDPAccountant().supports(PoissonSampledEvent(0.5, GaussianEvent(1.0)))
        assert not GDPAccountant().supports(PureDPEvent(1.0))

    def test_full_batches_count_the_moved_contribution(self):
        inner = GaussianEvent(2.0)
        for event in (PoissonSampledEvent(1.0, inner), UniformSampledEvent(7, 7, inner)):
            assert GDPAccountant("replace-one").compose(event).mu == 1.0
        assert GDPAccountant("add-remove").compose(PoissonSampledEvent(1.0, inner)).mu == 0.5


class TestRDPAccountant(AccountantContract):
    cls = RDPAccountant

    def test_epsilon_and_delta_agree(self, adjacency):
        # The conversions differ in each direction, so only the order of size is shared.
        accountant = self.make(adjacency, *self.events[adjacency])
        for delta in (1e-9, 1e-4):
            assert accountant.delta(accountant.epsilon(delta)) == pytest.approx(delta, rel=0.5)


FULL_RUN = LastIterateEvent(GaussianEvent(20.0), 500, 0.8, strong_convexity=0.05)
POISSON_RUN = LastIterateEvent(
    PoissonSampledEvent(0.1, GaussianEvent(3.0)), 900, 0.4, diameter=2.0, dataset_size=500
)
UNIFORM_RUN = LastIterateEvent(
    UniformSampledEvent(3, 20, GaussianEvent(9.0)), 400, 1.0, strong_convexity=0.1
)


@pytest.mark.slow
class TestHiddenStateAccountant(AccountantContract):
    cls = HiddenStateAccountant
    events: ClassVar = {
        "add-remove": [FULL_RUN, POISSON_RUN, *SAMPLED],
        "replace-one": [FULL_RUN, POISSON_RUN, UNIFORM_RUN, *SAMPLED],
    }

    def test_order_and_nesting_do_not_matter(self, adjacency):
        # The windows of several runs are improved one after the other.
        events = self.events[adjacency]
        one = self.make(adjacency, *events, *events)
        two = self.make(adjacency, RepeatedEvent(ComposedEvent(tuple(reversed(events))), 2))
        assert one.epsilon(1e-5) == pytest.approx(two.epsilon(1e-5), rel=1e-2)

    def test_epsilon_and_delta_agree(self, adjacency):
        # Windows are chosen for a delta or for an epsilon; either choice is a valid bound.
        accountant = self.make(adjacency, *self.events[adjacency])
        for delta in (1e-9, 1e-4, 1e-2):
            assert accountant.delta(accountant.epsilon(delta)) == pytest.approx(delta, rel=0.1)


class TestMomentsAccountant(AccountantContract):
    cls = MomentsAccountant


class TestGenericAccountant(AccountantContract):
    cls = GenericAccountant
    events: ClassVar = {
        "add-remove": [*SAMPLED, *KNOWN, OUTCOME],
        "replace-one": [*SAMPLED, *UNIFORM, OUTCOME],
    }


class TestBayesianAccountant(AccountantContract):
    """Without observations, which carry no guarantee that laws could be about."""

    cls = BayesianAccountant
    events: ClassVar = {"add-remove": SAMPLED + KNOWN, "replace-one": SAMPLED + UNIFORM}


class TestBasicCompositionAccountant(AccountantContract):
    cls = BasicCompositionAccountant


class TestAdvancedCompositionAccountant(AccountantContract):
    cls = AdvancedCompositionAccountant


class TestOptimalCompositionAccountant(AccountantContract):
    cls = OptimalCompositionAccountant


class TestPLDAccountant(AccountantContract):
    cls = PLDAccountant


@pytest.mark.parametrize("cls", [PLDAccountant, RDPAccountant])
def test_failure_probabilities_set_a_floor(cls):
    accountant = cls().compose(ApproxDPEvent(0.1, 1e-4), count=10).compose(GaussianEvent(3.0))
    failure = 1.0 - (1.0 - 1e-4) ** 10
    assert accountant.epsilon(0.9 * failure) == math.inf
    assert math.isfinite(accountant.epsilon(1.5 * failure))
    assert accountant.delta(50.0) == pytest.approx(failure, rel=1e-3)
    assert accountant.delta(math.inf) == pytest.approx(failure, rel=1e-9)
    assert cls().compose(ApproxDPEvent(0.1, 1.0)).epsilon(0.5) == math.inf
    assert cls().compose(ApproxDPEvent(0.1, 1.0)).delta(3.0) == 1.0


@pytest.mark.parametrize("cls", [PLDAccountant, RDPAccountant])
def test_pure_dp_composes_no_worse_than_basic(cls):
    accountant = cls().compose(PureDPEvent(0.2), count=5)
    assert accountant.epsilon(0.0) == pytest.approx(1.0)
    assert accountant.epsilon(1e-12) <= 1.0 + 1e-12
    assert accountant.delta(1.0) <= 1e-15  # five times the float 0.2 is more than 1
    assert accountant.delta(1.0 + 1e-15) == 0.0


def test_every_accountant_keeps_the_contract_and_has_a_name():
    tested = {cls.cls for cls in AccountantContract.__subclasses__()}
    assert set(accountants().values()) == tested
    for name, cls in accountants().items():
        assert resolve_accountant(name) is cls is resolve_accountant(cls)
    for bad in ("gauss", None, int):
        with pytest.raises(ValueError, match="accountant must be one of"):
            resolve_accountant(bad)
