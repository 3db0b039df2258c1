"""Wrong inputs to accounting: the message says what is wrong, and who can help."""

import math

import pytest

from skdp.accounting import (
    Accountant,
    BayesianAccountant,
    Event,
    GaussianEvent,
    GDPAccountant,
    LastIterateEvent,
    PLDAccountant,
    PoissonSampledEvent,
    PrivacyValue,
    PureDPEvent,
    RDPAccountant,
    RenyiEvent,
    UniformSampledEvent,
    calibrate_event,
    group_delta,
    group_epsilon,
    group_privacy,
    renyi_divergence,
)
from skdp.accounting.accountants import accountants
from skdp.accounting.distributions import Normal
from skdp.exceptions import UnsupportedEventError

GAUSSIAN = GaussianEvent(1.0)
SAMPLED = PoissonSampledEvent(0.01, GAUSSIAN)
FIXED_SIZE = UniformSampledEvent(1, 100, GAUSSIAN)
LAST_ITERATE = LastIterateEvent(SAMPLED, 100, 1.0, dataset_size=1000)
PLAN = PLDAccountant().compose(GAUSSIAN)


@pytest.mark.parametrize(
    ("accountant", "event", "advice"),
    [
        (PLDAccountant(), RenyiEvent(Normal(0, 1), Normal(1, 2)), "GenericAccountant has one."),
        (PLDAccountant(), LAST_ITERATE, "HiddenStateAccountant has one."),
        (PLDAccountant(), FIXED_SIZE, "PLDAccountant has one under 'replace-one'."),
        (RDPAccountant(), FIXED_SIZE, "RDPAccountant has one under 'replace-one'."),
        (GDPAccountant(), SAMPLED, "PLDAccountant has one."),
        (PLDAccountant(), PoissonSampledEvent(0.1, LAST_ITERATE), "compose an ApproxDPEvent"),
        (RDPAccountant(), PoissonSampledEvent(0.1, PureDPEvent(1.0)), "PLDAccountant has one."),
    ],
)
def test_refusal_names_who_has_a_bound(accountant, event, advice):
    with pytest.raises(UnsupportedEventError) as refused:
        accountant.compose(event)
    assert advice in str(refused.value)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: PLAN.epsilon("1e-5"), TypeError, "delta must be a real number, got '1e-5'"),
        (lambda: PLAN.epsilon([1e-5]), TypeError, "delta must be a real number"),
        (lambda: PLAN.delta(None), TypeError, "epsilon must be a real number, got None"),
        (lambda: PLAN.compose("x"), TypeError, "PLDAccountant.compose: event must be an Event"),
        (lambda: PLAN.compose(GAUSSIAN, 1.5), ValueError, "compose: count must be an integer"),
        (lambda: PLDAccountant(rtol="a"), TypeError, "rtol must be a real number"),
        (lambda: group_privacy("1", 1e-6, 2), TypeError, "epsilon must be a real number"),
        (lambda: group_epsilon(PLDAccountant, 1e-6, 2), TypeError, "must be an Accountant with"),
        (lambda: group_delta(1.0, 1.0, 2), TypeError, "must be an Accountant with"),
        (lambda: calibrate_event(GAUSSIAN, 1.0, 1e-5), TypeError, "make_event must be a function"),
        (
            lambda: calibrate_event(GaussianEvent, 1.0, 1e-5, bracket=3),
            TypeError,
            "bracket must hold two numbers",
        ),
        (lambda: renyi_divergence(Normal(0, 1), Normal(1, 1), "x"), TypeError, "order must be"),
        (lambda: BayesianAccountant(moments=3), TypeError, "moments must be a sequence"),
        (lambda: PrivacyValue(1.0, 2.0), ValueError, "lower must be at most upper=1.0"),
        (lambda: PrivacyValue(math.nan), ValueError, "lower must be at most"),
        (lambda: Event.from_dict("x"), TypeError, "needs the output of to_dict"),
        (
            lambda: Event.from_dict({"type": "GaussianEvent", "sigma": 1.0}),
            ValueError,
            "parameters \\['noise_multiplier'\\], got \\['sigma'\\]",
        ),
        (lambda: PLDAccountant.from_dict({"type": "pld"}), ValueError, "lack \\['adjacency'"),
        (lambda: PLDAccountant.from_dict("x"), TypeError, "needs the output of to_dict"),
        (lambda: Accountant.from_dict({"type": "x"}), ValueError, "accountant must be one of"),
    ],
)
def test_message_says_what_is_wrong(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_unreadable_distances_are_not_quoted():
    with pytest.raises(ValueError, match="squared_distances") as refused:
        BayesianAccountant().observe(SAMPLED, [1.0, "7.31 mg"])
    assert "7.31" not in str(refused.value)
    assert refused.value.__suppress_context__


@pytest.mark.parametrize("kind", accountants().values(), ids=list(accountants()))
def test_the_base_class_reads_any_accountant(kind):
    accountant = kind("replace-one").compose(GAUSSIAN, 3)
    again = Accountant.from_dict(accountant.to_dict())
    assert type(again) is kind
    assert again.to_dict() == accountant.to_dict()
