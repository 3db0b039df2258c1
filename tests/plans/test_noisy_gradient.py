"""Noisy-gradient plans: the noise, the event and the schedules agree with closed forms."""

import itertools
import math

import numpy as np
import pytest
from scipy import stats

from skdp.accounting import GaussianEvent, PLDAccountant, PoissonSampledEvent, UniformSampledEvent
from skdp.losses import LogisticLoss, OneVsRestLoss, SmoothedHingeLoss, SoftmaxLoss
from skdp.mechanisms import RandomStream, analytic_gaussian_sigma
from skdp.models import LinearModel
from skdp.plans.defaults import PublicNumbers
from skdp.plans.dpsgd import build_dpsgd
from skdp.plans.gradient_perturbation import (
    build_gradient_perturbation,
    lipschitz_contribution,
)
from skdp.plans.noisy_gradient import (
    DPSGDChoices,
    GradientPerturbationChoices,
    LearningRateSchedule,
    Lots,
)

S = 0.5
B = math.sqrt(1 + S**2)


def make_model(loss=None, n=1000, d=3):
    loss = LogisticLoss() if loss is None else loss
    return LinearModel(loss, n, d, getattr(loss, "n_outputs", 1), S)


def public(n=1000, epsilon=1.0, delta=1e-6, adjacency="replace-one"):
    return PublicNumbers(n, 3, 2, epsilon, delta, adjacency)


def gradient_plan(model, numbers, **choices):
    chosen = {
        "penalty": None,
        "batch_size": None,
        "max_iter": None,
        "step_sizes": "constant",
        "initial_step": None,
        "radius": None,
        "average": True,
        "sampling": "poisson",
        "calibration": "pld",
    } | choices
    return build_gradient_perturbation(model, numbers, GradientPerturbationChoices(**chosen))


def dpsgd_plan(model, numbers, **choices):
    chosen = {
        "penalty": None,
        "noise_multiplier": None,
        "max_grad_norm": None,
        "batch_size": None,
        "max_iter": None,
        "solver": "sgd",
        "momentum": None,
        "beta_1": 0.9,
        "beta_2": 0.999,
        "learning_rate": "constant",
        "initial_step": None,
        "final_share": 0.1,
        "decay_share": 0.5,
        "average": True,
    } | choices
    return build_dpsgd(model, numbers, DPSGDChoices(**chosen))


@pytest.mark.parametrize(
    ("loss", "norm"),
    [
        (LogisticLoss(), B),
        (SmoothedHingeLoss(half_width=0.5), B),
        (SoftmaxLoss(4), math.sqrt(2) * B),
        (OneVsRestLoss(SmoothedHingeLoss(half_width=0.5), 4), 2 * B),
    ],
)
def test_gradient_bounds(loss, norm):
    bound = lipschitz_contribution(make_model(loss))
    assert bound.sensitivity("add-remove") == pytest.approx(norm, rel=1e-9)
    assert bound.sensitivity("replace-one") == pytest.approx(2 * norm, rel=1e-9)


@pytest.mark.parametrize(("adjacency", "factor"), [("replace-one", 2.0), ("add-remove", 1.0)])
@pytest.mark.parametrize("steps", [1, 37])
def test_full_batches_compose_exactly(adjacency, factor, steps):
    """T Gaussian releases amount to one whose sensitivity is sqrt(T) times as large."""
    plan = gradient_plan(make_model(), public(adjacency=adjacency), max_iter=steps)
    exact = analytic_gaussian_sigma(1.0, 1e-6, factor * B * math.sqrt(steps))
    assert exact * (1 - 1e-9) <= plan.sigma <= exact * (1 + 2e-4)
    assert plan.lots.sampling == "full"
    clipped = dpsgd_plan(
        make_model(), public(adjacency=adjacency), max_iter=steps, max_grad_norm=0.25
    )
    exact = analytic_gaussian_sigma(1.0, 1e-6, factor * 0.25 * math.sqrt(steps))
    assert exact * (1 - 1e-9) <= clipped.sigma <= exact * (1 + 2e-4)


# Noise over twice the gradient bound, for uniform subsets of one row under replace-one, from
# an independent connect-the-dots composition of the symmetric pair; and the route of advanced
# composition with the best split. Columns: n, steps, epsilon, delta, composed, closed form.
REPAIRED_NOISE = [
    (1000, 1000, 0.1, 1e-3, 0.96809, 4.25493),
    (1000, 10_000, 1.0, 1e-3, 0.67706, 2.72894),
]


@pytest.mark.parametrize(("n", "steps", "epsilon", "delta", "composed", "closed"), REPAIRED_NOISE)
def test_repaired_noise_of_single_row_lots(n, steps, epsilon, delta, composed, closed):
    arguments = {"batch_size": 1, "max_iter": steps, "sampling": "uniform"}
    numbers = public(n, epsilon, delta)
    plan = gradient_plan(make_model(n=n), numbers, **arguments)
    assert 0.999 * composed <= plan.sigma / (2 * B) <= 1.002 * composed
    paper = gradient_plan(make_model(n=n), numbers, calibration="composition", **arguments)
    assert paper.sigma / (2 * B) == pytest.approx(closed, rel=1e-3)


def test_events_say_what_runs():
    numbers = public(adjacency="replace-one")
    full = gradient_plan(make_model(), numbers)
    assert isinstance(full.event.event, GaussianEvent) and full.event.count == full.steps
    assert full.event.event.noise_multiplier == pytest.approx(full.sigma / (2 * B))
    poisson = gradient_plan(make_model(), numbers, batch_size=50)
    assert isinstance(poisson.event.event, PoissonSampledEvent)
    assert poisson.event.event.sample_rate == 50 / 1000
    assert poisson.event.event.event.noise_multiplier == pytest.approx(poisson.sigma / B)
    uniform = gradient_plan(make_model(), numbers, batch_size=50, sampling="uniform")
    assert isinstance(uniform.event.event, UniformSampledEvent)
    assert (uniform.event.event.batch_size, uniform.event.event.dataset_size) == (50, 1000)
    for plan in (full, poisson, uniform):
        epsilon = PLDAccountant("replace-one").compose(plan.event).epsilon(1e-6)
        assert 0.999 <= epsilon <= 1.0
        assert plan.rule.divisor == plan.lots.size


@pytest.mark.parametrize("size", [1, 20, 75, 149])
@pytest.mark.parametrize("sampling", ["poisson", "uniform", "allocation", "full"])
def test_the_lots_that_are_drawn_have_the_law_that_is_accounted(sampling, size):
    """False alarms are rarer than 1e-7; half or twice the rate, or a fixed size, is far off."""
    n, draws = 150, 1200
    lots = Lots(
        sampling, n, n / max(2, round(n / size)) if sampling == "allocation" else float(size)
    )
    draws -= draws % lots.epoch
    event = lots.run_event(1.0, 2.0, draws).event
    sampler = lots.sampler(RandomStream.from_seed(size))
    if sampling == "full":
        assert sampler is None and isinstance(event, GaussianEvent)
        return
    indices, ends = sampler.draw(draws)
    drawn = [indices[start:end] for start, end in itertools.pairwise(ends)]
    assert len(drawn) == draws and all(np.unique(lot).size == lot.size for lot in drawn)
    sizes, times = np.diff(ends), np.bincount(indices, minlength=n)
    if sampling == "allocation":
        for k in range(0, draws, event.lots):  # each row once in each epoch, in any of its lots
            assert np.sort(np.concatenate(drawn[k : k + event.lots])).tolist() == list(range(n))
        rate = 1.0 / event.lots
    elif sampling == "uniform":
        assert event.dataset_size == n and (sizes == event.batch_size).all()
        rate = event.batch_size / n
    else:
        rate = event.sample_rate
        low, high = stats.binom.ppf([1e-12, 1.0 - 1e-12], n, rate)
        assert low <= sizes.min() and sizes.max() <= high
        spread = np.sum((sizes - n * rate) ** 2)
        if rate < 1.0:  # of a fixed size it is 0; of binomial ones their variance, nearly
            assert abs(spread / draws / (n * rate * (1.0 - rate)) - 1.0) < 0.5
    if rate < 1.0:
        low, high = stats.binom.ppf([1e-10, 1.0 - 1e-10], draws, rate)
        assert low <= times.min() and times.max() <= high


def test_composition_route_is_sound_and_needs_more_noise():
    for adjacency in ("replace-one", "add-remove"):
        for sizes in ({"batch_size": 50}, {}):
            paper, best = (
                gradient_plan(
                    make_model(),
                    public(adjacency=adjacency),
                    max_iter=200,
                    calibration=calibration,
                    **sizes,
                )
                for calibration in ("composition", "pld")
            )
            assert paper.sigma > 1.5 * best.sigma
            assert PLDAccountant(adjacency).compose(paper.event).epsilon(1e-6) < 1.0


def test_schedules():
    assert LearningRateSchedule("constant", 2.0).rates(5, 3).tolist() == [2.0] * 3
    assert LearningRateSchedule("inverse", 2.0).rates(1, 2) == pytest.approx([1.0, 2 / 3])
    assert LearningRateSchedule("inverse", 2.0, cap=0.5).rates(0, 5) == pytest.approx(
        [0.5, 0.5, 0.5, 0.5, 0.4]
    )
    assert LearningRateSchedule("inverse-sqrt", 3.0).rates(3, 1) == pytest.approx([1.5])
    linear = LearningRateSchedule("linear", 1.0, final=0.2, decay_steps=4)
    assert linear.rates(0, 6) == pytest.approx([1.0, 0.8, 0.6, 0.4, 0.2, 0.2])
    cosine = LearningRateSchedule("cosine", 1.0, final=0.2, decay_steps=3)
    assert cosine.rates(0, 5) == pytest.approx([1.0, 0.8, 0.4, 0.2, 0.2])
    for schedule in (linear, cosine):
        np.testing.assert_allclose(
            np.concatenate([schedule.rates(0, 2), schedule.rates(2, 4)]), schedule.rates(0, 6)
        )
    plan = dpsgd_plan(make_model(), public(), learning_rate="cosine", max_iter=50)
    first, *_, last = plan.schedule.rates(0, 50)
    assert (
        last == pytest.approx(0.1 * first)
        and plan.event == dpsgd_plan(make_model(), public(), max_iter=50).event
    )


@pytest.mark.parametrize("steps", [1, 2, 97, 10**6])
def test_an_exponential_average_is_as_old_and_as_steady_as_that_of_the_tail(steps):
    build = {"max_iter": steps, "noise_multiplier": 1.0}
    tail, ema = (dpsgd_plan(make_model(), public(), average=a, **build) for a in (True, "ema"))
    assert tail.event == ema.event
    ages = np.arange(steps)[::-1]
    # In one piece or in two, and weights that vanish are left out.
    split = steps // 3
    weights = np.concatenate(
        [ema.averaging_weights(0, split), ema.averaging_weights(split, steps - split)]
    )
    assert weights[-1] == 1.0 and np.isfinite(weights).all() and (weights >= 0.0).all()
    for measure in (
        lambda w: np.sum(w * ages) / np.sum(w),
        lambda w: np.sum(w**2) / np.sum(w) ** 2,
    ):
        expected = measure(tail.averaging_weights(0, steps))
        # Of the weights 0.04 % are missing: those of iterates before the first.
        assert measure(weights) == pytest.approx(expected, rel=6e-3, abs=1e-12)


def test_convex_schedules_have_the_theory_constants():
    model, numbers = make_model(), public()
    strong = gradient_plan(model, numbers, step_sizes="strongly-convex", penalty=0.25)
    assert strong.schedule.rates(9, 1)[0] == pytest.approx(1 / (0.25 * 10))
    assert strong.rule.momentum == 0.0
    convex = gradient_plan(model, numbers, step_sizes="convex", penalty=0.0, radius=3.0)
    second_moment = B**2 + model.n_weights * (convex.sigma / 1000) ** 2
    assert convex.schedule.rates(24, 1)[0] == pytest.approx(3.0 / math.sqrt(25 * second_moment))
    assert convex.rule.radius == 3.0


def test_defaults_use_public_numbers_sensibly():
    small, large = (
        dpsgd_plan(make_model(n=n), public(n, adjacency="add-remove")) for n in (300, 10**7)
    )
    assert small.lots.sampling == "full" and large.lots.sampling == "poisson"
    assert large.lots.size * large.steps <= 2.1e7 and large.lots.size >= 1024
    assert small.clip < large.clip <= B * (1 + 1e-9)
    tight, loose = (
        dpsgd_plan(make_model(), public(epsilon=e, adjacency="add-remove")) for e in (0.1, 10.0)
    )
    assert tight.schedule.initial < loose.schedule.initial
    assert 0 < small.average_from < small.steps
