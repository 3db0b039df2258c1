"""Basic and advanced composition of single guarantees, and the printed strong composition."""

import math

import mpmath as mp
import pytest

from skdp.accounting import (
    AdvancedCompositionAccountant,
    ApproxDPEvent,
    BasicCompositionAccountant,
    GaussianEvent,
    GDPAccountant,
    PoissonSampledEvent,
    PureDPEvent,
    UniformSampledEvent,
    composition_noise_multiplier,
)
from skdp.accounting.accountants.stepwise import step_epsilon
from skdp.accounting.numerics import gaussian_profile

STEP = PoissonSampledEvent(0.01, GaussianEvent(4.0))


def printed(mean_term="squared"):
    return AdvancedCompositionAccountant(mean_term=mean_term, split=0.5, subsampling="printed")


@pytest.mark.parametrize(
    ("count", "squared", "original", "paper"),
    [(10_000, 9.3391, 9.3547, 9.34), (40_000, 24.2051, 24.2754, 24.22)],
)
def test_printed_strong_composition(count, squared, original, paper):
    value = printed().compose(STEP, count).epsilon(1e-5)
    assert value == pytest.approx(squared, abs=6e-5)
    assert value == pytest.approx(paper, rel=1e-3)
    assert not value.is_upper_bound and not value.is_guarantee
    assert printed("printed").compose(STEP, count).epsilon(1e-5) == pytest.approx(
        original, abs=6e-5
    )


@pytest.mark.parametrize(
    ("count", "squared", "original"), [(10_000, 26.6, 26.8), (40_000, 83.5, 84.4)]
)
def test_same_recipe_with_the_right_amplification(count, squared, original):
    step_delta = 0.5e-5 / count
    unsampled = math.sqrt(2 * math.log(1.25 * 0.01 / step_delta)) / 4
    step = math.log1p(0.01 * math.expm1(unsampled))
    spread = step * math.sqrt(2 * count * math.log(2e5))
    assert spread + count * step**2 == pytest.approx(squared, abs=0.05)
    assert spread + count * step * math.expm1(step) == pytest.approx(original, abs=0.05)


@pytest.mark.parametrize("count", [10_000, 40_000])
@pytest.mark.parametrize("mean_term", ["squared", "printed", "tanh"])
def test_proved_rule_gives_far_more_than_the_printed_one(count, mean_term):
    proved = AdvancedCompositionAccountant(mean_term=mean_term).compose(STEP, count).epsilon(1e-5)
    assert proved.is_guarantee
    assert proved > 1.5 * printed().compose(STEP, count).epsilon(1e-5)


def test_printed_step_is_no_guarantee_of_the_step():
    """(q eps, q delta) with eps = 1.46: the true delta is hundreds of times q delta."""
    step_delta = 0.5e-9
    claimed = printed()._step_epsilon(STEP, step_delta)
    assert claimed == pytest.approx(0.0146, abs=2e-4)
    with mp.workdps(30):
        q, m, eps = mp.mpf("0.01"), mp.mpf("0.25"), mp.mpf(claimed)
        x = mp.log((mp.exp(eps) - 1 + q) / q) / m + m / 2
        true = (1 - q) * mp.ncdf(-x) + q * mp.ncdf(m - x) - mp.exp(eps) * mp.ncdf(-x)
    assert true > 250 * step_delta
    assert step_epsilon(STEP, "add-remove", step_delta) > 1.5 * claimed


def test_printed_composition_can_lie_below_the_truth():
    event = PoissonSampledEvent(0.01, GaussianEvent(0.5))
    truth = 3.025308  # certified lower bound at one step and delta = 1e-5
    assert printed().compose(event).epsilon(1e-5) < 0.2 * truth
    for accountant in (AdvancedCompositionAccountant(), BasicCompositionAccountant()):
        assert accountant.compose(event).epsilon(1e-5) >= truth


@pytest.mark.parametrize("delta", [1e-12, 1e-6, 1e-3, 0.2])
@pytest.mark.parametrize(("rate", "multiplier"), [(0.01, 0.5), (0.3, 2.0), (0.9, 5.0)])
def test_sampled_step_against_its_exact_profile(rate, multiplier, delta):
    """Add-remove and fixed-size rules are exact, the other one bounds the symmetric pair."""
    inner = GaussianEvent(multiplier)
    with mp.workdps(40):
        q, m = mp.mpf(rate), 1 / mp.mpf(multiplier)

        def removed(eps, shift, q=q):
            log = mp.log(1 + (mp.exp(eps) - 1) / q)
            a = shift / 2 - log / shift
            return q * (mp.ncdf(a) - mp.exp(log) * mp.ncdf(a - shift))

        def symmetric(eps):
            x = mp.asinh(mp.sinh(eps / 2) * mp.exp(m * m / 2) * (1 - q) / q) / m + eps / 2 / m
            up = (1 - q) * mp.ncdf(-x) + q * mp.ncdf(m - x)
            return up - mp.exp(eps) * ((1 - q) * mp.ncdf(-x) + q * mp.ncdf(-m - x))

        value = mp.mpf(step_epsilon(PoissonSampledEvent(rate, inner), "add-remove", delta))
        assert removed(value, m) <= delta
        assert value == 0 or removed(value * (1 - mp.mpf("1e-8")), m) >= delta
        both = mp.mpf(step_epsilon(PoissonSampledEvent(rate, inner), "replace-one", delta))
        assert symmetric(both) <= delta
        assert both >= value
    size = 1000
    fixed = UniformSampledEvent(int(rate * size), size, inner)
    assert step_epsilon(fixed, "replace-one", delta) == pytest.approx(
        step_epsilon(PoissonSampledEvent(rate, GaussianEvent(multiplier / 2)), "add-remove", delta),
        rel=1e-9,
    )


def test_basic_adds_up():
    plan = (
        BasicCompositionAccountant()
        .compose(ApproxDPEvent(0.5, 1e-6), 4)
        .compose(PureDPEvent(0.25), 2)
    )
    assert plan.epsilon(4e-6) == 2.5
    assert plan.epsilon(3.9e-6) == math.inf
    assert plan.delta(2.5) == pytest.approx(4e-6)
    assert plan.delta(2.4) == 1.0
    gaussian = BasicCompositionAccountant().compose(GaussianEvent(5.0), 10)
    gaussian.compose(ApproxDPEvent(0.5, 1e-6))
    each = gaussian_profile.epsilon(0.2, 9e-7)
    assert gaussian.epsilon(1e-5) == pytest.approx(10 * each + 0.5, rel=1e-9)
    assert gaussian.epsilon(1e-6) == math.inf


def test_basic_of_one_gaussian_is_exact():
    for delta in (1e-9, 1e-3):
        exact = GDPAccountant().compose(GaussianEvent(2.0)).epsilon(delta)
        basic = BasicCompositionAccountant().compose(GaussianEvent(2.0)).epsilon(delta)
        assert exact <= basic <= exact * (1 + 1e-9)


@pytest.mark.parametrize(
    ("mean_term", "mean"),
    [
        ("tanh", lambda e: e * math.tanh(e / 2)),
        ("printed", lambda e: e * (math.exp(e) - 1)),
        ("squared", lambda e: e * e),
    ],
)
def test_advanced_theorem(mean_term, mean):
    plan = AdvancedCompositionAccountant(mean_term=mean_term)
    plan.compose(ApproxDPEvent(0.1, 1e-9), 100).compose(PureDPEvent(0.02), 200)
    squares = 100 * 0.01 + 200 * 0.0004
    means = 100 * mean(0.1) + 200 * mean(0.02)
    left = 1e-5 - 1e-7
    wanted = math.sqrt(2 * squares * math.log(1 / left)) + means
    assert plan.epsilon(1e-5) == pytest.approx(wanted, rel=1e-9)
    assert plan.delta(wanted) == pytest.approx(1e-5, rel=1e-6)
    assert plan.epsilon(1e-7 * (1 - 1e-9)) == math.inf


def test_advanced_never_exceeds_basic():
    for count in (1, 3, 1000):
        for delta in (1e-9, 1e-2):
            plans = [
                cls().compose(ApproxDPEvent(0.5, 1e-13), count)
                for cls in (AdvancedCompositionAccountant, BasicCompositionAccountant)
            ]
            assert plans[0].epsilon(delta) <= plans[1].epsilon(delta)


def test_advanced_inverts_the_noise_of_closed_form_composition():
    """Calibrating by hand and accounting for it use one theorem."""
    n, steps = 1000, 1000
    z = composition_noise_multiplier(1.0, 1e-6, 1 / n, steps)
    assert z == pytest.approx(2 * 2.37174, rel=1e-4)
    plan = AdvancedCompositionAccountant("replace-one").compose(
        UniformSampledEvent(1, n, GaussianEvent(z)), steps
    )
    assert plan.epsilon(1e-6) == pytest.approx(1.0, rel=1e-4)
    assert plan.delta(1.0) == pytest.approx(1e-6, rel=1e-2)


def test_best_split_is_no_worse_than_any():
    plan = AdvancedCompositionAccountant().compose(STEP, 1000)
    best = plan.epsilon(1e-5)
    for split in (0.01, 0.3, 0.5, 0.9, 0.999):
        fixed = AdvancedCompositionAccountant(split=split).compose(STEP, 1000)
        assert best <= fixed.epsilon(1e-5) * (1 + 1e-9)
        assert fixed.delta(fixed.epsilon(1e-5)) == pytest.approx(1e-5, rel=1e-6)
        assert plan.delta(2.0) <= fixed.delta(2.0) * (1 + 1e-9)


def test_parameters_are_validated_and_survive():
    for bad in ("half", 0.0, 1.0):
        with pytest.raises(ValueError, match="split must be"):
            AdvancedCompositionAccountant(split=bad)
    with pytest.raises(ValueError, match="mean_term must be"):
        AdvancedCompositionAccountant(mean_term="exact")
    with pytest.raises(ValueError, match="subsampling must be"):
        AdvancedCompositionAccountant(subsampling="q")
    again = AdvancedCompositionAccountant.from_dict(printed().compose(STEP, 10_000).to_dict())
    assert again.epsilon(1e-5) == printed().compose(STEP, 10_000).epsilon(1e-5)
    assert not again.epsilon(1e-5).is_guarantee
