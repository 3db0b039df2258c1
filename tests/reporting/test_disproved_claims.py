"""No record says less than its own event is certified to cost, wherever it is read."""

import copy
import json
import pickle
from dataclasses import replace

import numpy as np
import pytest

from skdp import OperaLogisticRegression
from skdp.accounting import (
    ApproxDPEvent,
    BoundedRangeEvent,
    ComposedEvent,
    DiscreteGaussianEvent,
    DiscreteLaplaceEvent,
    GaussianEvent,
    LaplaceEvent,
    LastIterateEvent,
    ObjectivePerturbationEvent,
    OneOfEvent,
    PLDAccountant,
    PoissonSampledEvent,
    PureDPEvent,
    RepeatedEvent,
    UniformSampledEvent,
)
from skdp.accounting.accountants import accountants
from skdp.budget import BudgetAccountant, LedgerDamagedError
from skdp.budget.entries import record_of
from skdp.reporting import PrivacySpent, model_card, privacy_statement

DELTA = 1e-6
EVENTS = (
    GaussianEvent(1.2),
    LaplaceEvent(2.0),
    DiscreteLaplaceEvent(3.0, 2),
    PureDPEvent(0.7),
    ApproxDPEvent(0.7, 1e-6),
    RepeatedEvent(PoissonSampledEvent(0.01, GaussianEvent(1.1)), 300),
    ComposedEvent((GaussianEvent(8.0), LaplaceEvent(9.0), PureDPEvent(0.05))),
)
RELATIONS = ("replace-one", "add-remove")


def record(event, epsilon, adjacency="replace-one", delta=DELTA, accountant="pld"):
    return PrivacySpent(epsilon, delta, adjacency, event, accountant, "a test", (), (), False)


def pickle_and_back(one):
    return pickle.loads(pickle.dumps(one))


@pytest.mark.parametrize("adjacency", RELATIONS)
@pytest.mark.parametrize("event", EVENTS, ids=lambda event: type(event).__name__)
def test_a_claim_below_the_certified_cost_is_refused_and_one_at_it_is_not(event, adjacency):
    price = PLDAccountant(adjacency).compose(event).epsilon(DELTA)
    assert price.lower > 0.99 * price
    for factor in (1.0, 1.5):
        assert record(event, factor * price, adjacency).epsilon == factor * price
    for factor in (0.99, 0.5, 1e-3, 0.0):
        with pytest.raises(ValueError, match="is not a guarantee for the event"):
            record(event, factor * price.lower, adjacency)


def test_it_is_priced_whoever_is_behind_the_claim_and_under_its_own_relation():
    event = UniformSampledEvent(10, 1000, GaussianEvent(1.0))
    for name, accountant in accountants().items():
        known = accountant("replace-one")
        if known.is_upper_bound and known.is_differential_privacy:
            with pytest.raises(ValueError, match="is not a guarantee for the event"):
                record(RepeatedEvent(event, 50), 0.01, accountant=name)
    one, two = (PLDAccountant(a).compose(EVENTS[5]).epsilon(DELTA) for a in RELATIONS[::-1])
    assert one < 0.8 * two  # a sampled release costs more where rows are replaced
    assert record(EVENTS[5], one, "add-remove").epsilon == one
    with pytest.raises(ValueError, match="'replace-one'"):
        record(EVENTS[5], one, "replace-one")


def test_a_loose_price_of_before_lets_nothing_pass():
    event = RepeatedEvent(PoissonSampledEvent(0.02, GaussianEvent(1.3)), 211)
    PLDAccountant("replace-one", rtol=0.9).compose(event).epsilon(DELTA)
    truth = PLDAccountant("replace-one").compose(event).epsilon(DELTA)
    with pytest.raises(ValueError, match="is not a guarantee for the event"):
        record(event, 0.99 * truth)


def test_pure_claims_are_held_against_their_events():
    assert record(RepeatedEvent(PureDPEvent(0.1), 3), 0.3, delta=0.0).epsilon == 0.3
    for event in (PureDPEvent(0.4), LaplaceEvent(1.0), GaussianEvent(5.0)):
        with pytest.raises(ValueError, match="is not a guarantee for the event"):
            record(event, 0.3, delta=0.0)


@pytest.mark.parametrize("adjacency", RELATIONS)
@pytest.mark.parametrize("event", [EVENTS[0], DiscreteGaussianEvent(5.0), EVENTS[5], EVENTS[6]])
def test_without_a_delta_no_epsilon_is_enough_for_noise_with_gaussian_tails(event, adjacency):
    for epsilon in (1.0, 50.0, 1e6, 1e300):
        with pytest.raises(ValueError, match="is not a guarantee for the event"):
            record(event, epsilon, adjacency, delta=0.0)
    assert record(event, float("inf"), adjacency, delta=0.0).epsilon == float("inf")


@pytest.mark.parametrize(
    "beside",
    [
        LastIterateEvent(GaussianEvent(10.0), 40, smoothness=0.2, strong_convexity=0.01),
        ObjectivePerturbationEvent(4.0, 0.1),
        BoundedRangeEvent(0.5),
        OneOfEvent((GaussianEvent(3.0), LaplaceEvent(4.0))),
    ],
    ids=lambda event: type(event).__name__,
)
def test_a_part_with_an_upper_bound_alone_hides_no_other(beside):
    own = GaussianEvent(1.2)
    price = PLDAccountant("replace-one").compose(own).epsilon(DELTA)
    for event in (ComposedEvent((own, beside)), ComposedEvent((RepeatedEvent(beside, 2), own))):
        with pytest.raises(ValueError, match="is not a guarantee for the event"):
            record(event, 0.99 * price)
        assert record(event, 1.01 * price).epsilon == 1.01 * price


def test_of_events_with_upper_bounds_alone_no_claim_is_refused():
    run = LastIterateEvent(GaussianEvent(10.0), 40, smoothness=0.2, strong_convexity=0.01)
    assert record(run, 0.01, accountant="hidden-state").epsilon == 0.01


def test_whatever_reads_a_record_prices_its_event():
    honest = record(GaussianEvent(1.2), 4.1)
    false = {**honest.to_dict(), "epsilon": 0.01}
    fakes = [
        lambda: PrivacySpent.from_dict(false),
        lambda: PrivacySpent.from_dict(json.loads(json.dumps(false))),
        lambda: replace(honest, epsilon=0.01),
        lambda: replace(honest, event=GaussianEvent(0.1)),
        lambda: honest.__class__.__new__(PrivacySpent).__setstate__(
            {**vars(honest), "delta": 1e-9}
        ),
    ]
    forged = copy.copy(honest)
    vars(forged)["epsilon"] = 0.01
    fakes += [lambda: pickle_and_back(forged), lambda: copy.deepcopy(forged)]
    for fake in fakes:
        with pytest.raises(ValueError, match="is not a guarantee for the event"):
            fake()
    for way in (copy.copy, copy.deepcopy, pickle_and_back):
        assert way(honest) == honest
    assert PrivacySpent.from_dict(json.loads(honest.to_json())) == honest


def test_a_fitted_model_with_a_false_record_is_shown_nowhere():
    model = OperaLogisticRegression(classes=[0, 1]).fit(np.eye(6), [0, 1] * 3)
    privacy_statement(pickle_and_back(model))
    vars(model.privacy_spent_)["epsilon"] = 0.01
    for show in (privacy_statement, model_card, pickle_and_back):
        with pytest.raises(ValueError, match="is not a guarantee for the event"):
            show(model)


@pytest.mark.parametrize("composition", ["basic", "gdp", "mixed", "zcdp"])
@pytest.mark.parametrize("name", [None, "MyEstimator"])
def test_budgets_take_and_repeat_no_such_pair(composition, name):
    budget = BudgetAccountant(8.0, 1e-4, composition=composition)
    with pytest.raises(ValueError, match=r"State a pair|an accountant returns"):
        budget.reserve(GaussianEvent(1.2), epsilon=0.01, delta=DELTA, estimator=name)
    assert budget.spent() == (0.0, 0.0)
    budget.reserve(GaussianEvent(1.2), epsilon=4.1, delta=DELTA, estimator=name)
    row = dict(budget.desk.file.rows()[0])
    units = budget.desk.currency.units
    assert record_of(row, units)["epsilon"] == 4.1
    with pytest.raises(LedgerDamagedError, match="is not a guarantee for the event"):
        record_of({**row, "epsilon": 0.01}, units)
    strange = {**row, "epsilon": 0.01, "event": {"type": "OfAnotherVersion", "noise": 1.0}}
    assert record_of(strange, units)["event"]["noise"] == 1.0


def test_a_record_that_was_pickled_before_records_named_their_maker_says_so():
    model = OperaLogisticRegression(classes=[0, 1]).fit(np.eye(6), [0, 1] * 3)
    for name in ("skdp", "code"):
        del vars(model.privacy_spent_)[name]
    read = pickle_and_back(model)
    assert read.privacy_spent_.skdp == read.privacy_spent_.code == "unknown"
    assert "skdp unknown, code unknown" in str(privacy_statement(read))
