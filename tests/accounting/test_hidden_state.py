"""Last-iterate bounds: reference numbers, exact laws in one dimension, limits and conditions."""

import itertools
import math
import time

import mpmath
import numpy as np
import pytest
from covering import pairs
from scipy.optimize import minimize
from scipy.special import expit, ndtr
from scipy.stats import binom

from skdp.accounting import (
    ComposedEvent,
    GaussianEvent,
    GDPAccountant,
    HiddenStateAccountant,
    LastIterateEvent,
    PLDAccountant,
    PoissonSampledEvent,
    RDPAccountant,
    RepeatedEvent,
    UniformSampledEvent,
    calibrate_event,
)
from skdp.accounting.numerics import gaussian_profile
from skdp.accounting.numerics.counts import largest_likely_batch, oversize_probability


def full_run(n, sigma, m, M, eta, steps, gap=2.0, diameter=None):
    """Noisy descent on n records with noise sigma on the mean gradient."""
    return LastIterateEvent.from_units(
        GaussianEvent(n * sigma / gap),
        steps,
        step_size=eta,
        smoothness=M,
        strong_convexity=m,
        diameter=diameter,
        noise=sigma,
    )


def mu_of(run):
    return GDPAccountant().compose(run).mu


# Gaussian-DP parameters and epsilons at delta = 1e-5, by mpmath, gradients at most 2 apart.
STRONGLY_CONVEX = [
    ((1000, 0.01, 0.001, 0.251, 1.0, 100), 1.99916657642, 9.99212500),
    ((1000, 0.01, 0.001, 0.251, 1.0, 10_000), 8.9416316299, 77.29526014),
    ((1000, 0.01, 0.001, 0.251, 1.0, 10**6), 8.94203556245, None),
    ((30_000, 0.001, 0.001, 0.251, 2 / 0.252, 10**6), 1.05619863452, 4.66379062),
    ((100, 0.05, 0.1, 0.35, 4.0, 1000), 0.8, 3.38693319),
    ((10, 1.0, 0.5, 0.5, 0.3, 10), 0.575357361536, None),
    ((10, 1.0, 0.5, 0.5, 0.3, 1000), 0.702376916857, None),
    ((100, 0.2, 0.01, 0.01, 0.5, 10**6), 1.99749843554, None),
]


@pytest.mark.parametrize(("arguments", "mu", "epsilon"), STRONGLY_CONVEX)
def test_reference_numbers_of_full_batches(arguments, mu, epsilon):
    run = full_run(*arguments)
    assert mu_of(run) == pytest.approx(mu, rel=1e-11)
    if epsilon is not None:
        assert HiddenStateAccountant().compose(run).epsilon(1e-5) == pytest.approx(
            epsilon, rel=2e-9
        )


CYCLIC = [
    (0.9999, 50, 0.9924913969),
    (0.9999, 100, 1.2353387985),
    (0.9999, 200, 1.5929736510),
    (0.9998, 50, 0.9888585280),
    (0.9998, 100, 1.2174539170),
    (0.9998, 200, 1.5061239791),
]


@pytest.mark.parametrize(("factor", "epochs", "mu"), CYCLIC)
def test_reference_numbers_of_cyclic_batches(factor, epochs, mu):
    run = LastIterateEvent(
        GaussianEvent(1.5), 40 * epochs, 0.5, strong_convexity=1 - factor, batches=40
    )
    assert mu_of(run) == pytest.approx(mu, rel=2e-10)
    # A round that was begun counts as a whole one, for the records it has reached.
    longer = LastIterateEvent(
        GaussianEvent(1.5), 40 * epochs + 1, 0.5, strong_convexity=1 - factor, batches=40
    )
    assert mu_of(run) < mu_of(longer) <= math.sqrt(epochs + 1) / 1.5


def test_convex_cyclic_batches():
    run = LastIterateEvent(GaussianEvent(3.0), 20 * 50, 1.0, batches=20)
    assert mu_of(run) == pytest.approx(math.sqrt(1 + 49 / 20) / 3, rel=1e-11)


# Exact laws: a quadratic objective in one dimension keeps everything Gaussian.


@pytest.mark.parametrize(
    ("curvature", "eta", "steps", "shift"),
    [(0.5, 0.3, 10, 0.2), (0.01, 0.5, 10**6, 0.1), (1e-9, 1.0, 10**10, 1e-4), (1.0, 1.0, 7, 0.5)],
)
def test_exact_for_quadratics(curvature, eta, steps, shift):
    """The means drift apart by a geometric sum, the noise is another one."""
    with mpmath.workdps(40):
        c = 1 - mpmath.mpf(eta) * mpmath.mpf(curvature)

        def geometric(x):
            return (1 - x**steps) / (1 - x)

        exact = float(mpmath.mpf(shift) * geometric(c) / mpmath.sqrt(geometric(c**2)))
    run = LastIterateEvent(GaussianEvent(1 / shift), steps, eta * curvature, eta * curvature)
    assert exact <= mu_of(run) <= exact * (1 + 1e-10)


def test_steps_beyond_the_curvature_are_loose_but_bounded():
    """With 1 - eta m = -0.7 the exact value is far below the bound, which knows |c| only."""
    run = LastIterateEvent(GaussianEvent(5.0), 1000, 1.7, 1.7)
    assert mu_of(run) == pytest.approx(0.4760952, rel=1e-7)
    powers = (-0.7) ** np.arange(200)
    exact = 0.2 * powers.sum() / math.sqrt((powers**2).sum())
    assert exact == pytest.approx(0.0840168, rel=1e-6)


@pytest.mark.parametrize(
    ("factor", "batches", "epochs"), [(0.9, 4, 12), (0.99, 20, 30), (0.5, 2, 9)]
)
def test_cyclic_quadratics(factor, batches, epochs):
    """The record's batch comes last in each round, which is the worst place."""
    steps = batches * epochs
    hit = factor ** (batches * np.arange(epochs))
    exact = 0.5 * hit.sum() / math.sqrt((factor ** (2 * np.arange(steps))).sum())
    run = LastIterateEvent(GaussianEvent(2.0), steps, 0.9, 1 - factor, batches=batches)
    assert exact <= mu_of(run) <= 0.5 * math.sqrt(epochs)
    for after in range(1, batches):
        other = 0.5 * (factor**after * hit).sum()
        other /= math.sqrt((factor ** (2 * np.arange(steps))).sum())
        assert other < mu_of(run)


def test_no_allowed_shifts_do_better_and_some_do_as_well():
    """Formula against a numerical minimisation of the theorem's sum of squares."""
    gap, shift, diameter = 0.15, 0.3, 1.1
    c = 1 - gap
    for steps in (1, 2, 5, 9):
        best = math.inf
        for window in range(1, steps + 1):
            start = 0.0 if window == steps else diameter

            def left(a, start=start):
                z = [start]
                for spent in a:
                    z.append(c * z[-1] + shift - spent)
                return np.array(z[1:])

            found = minimize(
                lambda a: float(a @ a),
                np.linspace(0.5, 1.5, window) * shift,
                bounds=[(0.0, None)] * window,
                constraints=[
                    {"type": "ineq", "fun": lambda a, left=left: np.append(left(a)[:-1], 1.0)},
                    {"type": "eq", "fun": lambda a, left=left: left(a)[-1]},
                ],
                method="SLSQP",
                options={"ftol": 1e-14, "maxiter": 500},
            )
            assert found.success
            best = min(best, math.sqrt(found.fun))
        run = LastIterateEvent(GaussianEvent(1 / shift), steps, 0.5, gap, diameter=diameter)
        assert mu_of(run) == pytest.approx(best, rel=1e-6)


# Exact laws on an interval: the distribution of the projected iterate, propagated on a grid.


def last_iterate_law(gradients, batches, eta, noise, width, steps, cells=600):
    """Law of the iterate on a grid of [-width/2, width/2] with an atom at either end.

    ``batches`` lists (probability, members, divisor); iterates start at zero.
    """
    edges = np.linspace(-width / 2, width / 2, cells + 1)
    points = np.concatenate([[-width / 2], (edges[1:] + edges[:-1]) / 2, [width / 2]])
    kernel = np.zeros((cells + 2, cells + 2))
    for probability, members, divisor in batches:
        total = sum((gradients[i](points) for i in members), np.zeros_like(points))
        means = points - eta / divisor * total
        below = ndtr((edges[None, :] - means[:, None]) / (eta * noise))
        kernel += probability * np.hstack([below[:, :1], np.diff(below), 1 - below[:, -1:]])
    law = np.zeros(cells + 2)
    law[cells // 2] = law[cells // 2 + 1] = 0.5
    for _ in range(steps):
        law = law @ kernel
    return law


def linear(slope):
    return lambda x: np.full_like(x, slope)


def logistic(row):
    return lambda x: -row * expit(-row * x)


def divergence(p, q, epsilon):
    return max(
        np.maximum(p - math.exp(epsilon) * q, 0.0).sum(),
        np.maximum(q - math.exp(epsilon) * p, 0.0).sum(),
    )


def neighbours(kind, n):
    """Return gradients of two tables that differ in the last record; those of 1-D rows +-1."""
    make = {"linear": linear, "logistic": logistic}[kind]
    common = [make((-1.0) ** i) for i in range(n - 1)]
    return [*common, make(1.0)], [*common, make(-1.0)]


def test_projected_linear_reference():
    one, other = neighbours("linear", 5)
    batches = [(1.0, range(5), 5)]
    p, q = (last_iterate_law(g, batches, 0.2, 0.5, 1.0, 80) for g in (one, other))
    assert divergence(p, q, 0.0) == pytest.approx(0.977194, abs=2e-5)
    run = full_run(5, 0.5, 0.0, 0.0, 0.2, 80, diameter=1.0)
    assert GDPAccountant().compose(run).delta(0.0) == pytest.approx(0.995330, abs=5e-7)
    composed = GDPAccountant().compose(full_run(5, 0.5, 0.0, 0.0, 0.2, 80))
    assert composed.delta(0.0) == pytest.approx(0.999653, abs=5e-7)


def test_windows_are_whole_steps():
    """At a window of D / s = 1/4 steps the bound would be below the truth."""
    p, q = (last_iterate_law([linear(s)], [(1.0, [0], 1)], 1.0, 1.0, 1.0, 50) for s in (2, -2))
    truth = divergence(p, q, 0.0)
    assert truth == pytest.approx(0.98690, abs=2e-5)
    run = LastIterateEvent(GaussianEvent(0.25), 50, 0.0, diameter=1.0)
    assert math.erf(math.sqrt(2.0)) == pytest.approx(0.95450, abs=1e-5)  # the real window's value
    assert truth <= GDPAccountant().compose(run).delta(0.0) <= 0.98760


@pytest.mark.parametrize("kind", ["linear", "logistic"])
@pytest.mark.parametrize(
    ("n", "eta", "noise", "width", "steps"),
    [
        (3, 0.5, 1.0, 1.0, 60),
        (4, 0.3, 0.4, 0.5, 40),
        (5, 1.0, 0.3, 2.0, 100),
        (2, 0.1, 2.0, 3.0, 30),
    ],
)
def test_never_below_exact_laws_of_full_batches(kind, n, eta, noise, width, steps):
    one, other = neighbours(kind, n)
    p, q = (
        last_iterate_law(g, [(1.0, range(n), n)], eta, noise, width, steps) for g in (one, other)
    )
    # Logistic gradients on rows of opposite sign differ by exactly 1 everywhere.
    gap, smoothness = (2.0, 0.0) if kind == "linear" else (1.0, 0.25)
    run = full_run(n, noise, 0.0, smoothness, eta, steps, gap=gap, diameter=width)
    accountant = HiddenStateAccountant("replace-one").compose(run)
    for epsilon in (0.0, 0.2, 0.5, 1.0, 2.0, 4.0):
        assert divergence(p, q, epsilon) <= accountant.delta(epsilon) + 2e-5


def sampled_case(sampling, n, b):
    records = range(n)
    if sampling == "uniform":
        sets = list(itertools.combinations(records, b))
        return [(1 / len(sets), members, b) for members in sets]
    rate = b / n
    return [
        (rate ** len(members) * (1 - rate) ** (n - len(members)), members, b)
        for k in range(n + 1)
        for members in itertools.combinations(records, k)
    ]


@pytest.mark.oracle
@pytest.mark.parametrize(
    ("kind", "way", "run"),
    pairs(
        ["linear", "logistic"],
        [("uniform", "replace-one"), ("poisson", "replace-one"), ("poisson", "add-remove")],
        [(4, 1, 0.5, 1.0, 0.8, 80), (5, 2, 0.4, 0.5, 0.4, 60), (6, 1, 1.0, 2.0, 1.0, 200)],
    ),
)
def test_never_below_exact_laws_of_sampled_batches(kind, way, run):
    (sampling, adjacency), (n, b, eta, noise, width, steps) = way, run
    one, other = neighbours(kind, n)
    if adjacency == "add-remove":
        other = [*other[:-1], linear(0.0)]
    batches = sampled_case(sampling, n, b)
    p, q = (last_iterate_law(g, batches, eta, noise, width, steps, 300) for g in (one, other))
    inner = GaussianEvent(b * noise)
    poisson = sampling == "poisson"
    step = PoissonSampledEvent(b / n, inner) if poisson else UniformSampledEvent(b, n, inner)
    run = LastIterateEvent.from_units(
        step,
        steps,
        step_size=eta,
        smoothness=0.25 if kind == "logistic" else 0.0,
        diameter=width,
        noise=noise,
        dataset_size=n if poisson else None,
    )
    accountant = HiddenStateAccountant(adjacency).compose(run)
    plain = PLDAccountant(adjacency).compose(step, steps)
    epsilons = (0.0, 0.3, 1.0)
    for epsilon in epsilons:
        assert divergence(p, q, epsilon) <= accountant.delta(epsilon) + 5e-5
    assert any(accountant.delta(e) < 0.9 * plain.delta(e) for e in epsilons)


# Noisy descent on sampled batches: what the numbers must be near, and never above.


@pytest.mark.parametrize(
    ("sampling", "n", "b", "noise", "steps", "mu", "composed"),
    [
        ("poisson", 1000, 32, 0.1, 10**5, 1.79, 6.33),
        ("uniform", 1000, 32, 0.1, 10**5, 2.59, 8.50),
        ("poisson", 30_000, 256, 0.02, 10**6, 1.63, 3.33),
        ("uniform", 30_000, 256, 0.02, 10**6, 2.32, 3.96),
    ],
)
def test_sampled_runs_have_about_their_gaussian_limit(sampling, n, b, noise, steps, mu, composed):
    """The central limit at theta = 1/2; skdp chooses theta and has exact tails."""
    inner, poisson = GaussianEvent(b * noise), sampling == "poisson"
    step = PoissonSampledEvent(b / n, inner) if poisson else UniformSampledEvent(b, n, inner)
    run = LastIterateEvent.from_units(
        step,
        steps,
        step_size=0.5,
        smoothness=0.25,
        diameter=2.0,
        noise=noise,
        dataset_size=n if poisson else None,
    )
    epsilon = HiddenStateAccountant("replace-one").compose(run).epsilon(1e-5)
    assert gaussian_profile.mu(epsilon, 1e-5) == pytest.approx(mu, rel=0.02)
    plain = PLDAccountant("replace-one").compose(step, steps).epsilon(1e-5)
    assert gaussian_profile.mu(plain, 1e-5) == pytest.approx(composed, rel=0.03)


def sampled_run(steps=2000, z=4.0, b=20, n=1000, poisson=True, **more):
    inner = GaussianEvent(z)
    settings = {"smoothness": 0.5, "strong_convexity": 0.02, "diameter": 3.0} | more
    if poisson:
        return LastIterateEvent(
            PoissonSampledEvent(b / n, inner), steps, dataset_size=n, **settings
        )
    return LastIterateEvent(UniformSampledEvent(b, n, inner), steps, **settings)


@pytest.mark.daily(1)
@pytest.mark.parametrize("adjacency", ["add-remove", "replace-one"])
def test_never_above_composition(adjacency):
    for run in (
        sampled_run(steps=3),
        sampled_run(steps=1),
        sampled_run(diameter=None, strong_convexity=0.0, steps=50),
        sampled_run(smoothness=1.9999, strong_convexity=0.0, b=2),
        LastIterateEvent(GaussianEvent(10.0), 30, 0.5, diameter=1e6),
        LastIterateEvent(GaussianEvent(10.0), 30, 2.0, strong_convexity=1.0),
    ):
        plain = PLDAccountant(adjacency).compose(run.step, run.steps)
        hidden = HiddenStateAccountant(adjacency).compose(run)
        for delta in (1e-9, 1e-5, 0.01):
            assert hidden.epsilon(delta) <= plain.epsilon(delta) * (1 + 1e-9)
        assert hidden.delta(0.05) <= plain.delta(0.05) * (1 + 1e-9)


def test_the_window_is_paid_with_the_antiparallel_pair():
    """Uniform batches pay more than Poisson ones: their reference record may be opposite."""
    poisson, uniform = (
        HiddenStateAccountant("replace-one").compose(sampled_run(poisson=p)).epsilon(1e-6)
        for p in (True, False)
    )
    one_sided = HiddenStateAccountant("add-remove").compose(sampled_run()).epsilon(1e-6)
    assert one_sided < 0.75 * poisson and poisson < 0.75 * uniform


def test_large_poisson_batches_are_paid_for():
    """The step 2/M would expand on batches above their expected size: no gain is claimed."""
    safe, bold = (
        sampled_run(smoothness=s, strong_convexity=0.0, b=100, steps=20_000) for s in (0.8, 1.99)
    )
    plain = PLDAccountant("replace-one").compose(safe.step, safe.steps).epsilon(1e-6)
    assert HiddenStateAccountant("replace-one").compose(safe).epsilon(1e-6) < 0.5 * plain
    assert HiddenStateAccountant("replace-one").compose(bold).epsilon(1e-6) == plain
    # In between, the chance of a large batch is part of delta.
    risky = sampled_run(smoothness=1.15, strong_convexity=0.0, b=100, steps=20_000)
    failure = oversize_probability(173, 1000, 0.1, 20_000)
    assert 1e-8 < failure < 1e-5
    accountant = HiddenStateAccountant("replace-one").compose(risky)
    assert accountant.epsilon(0.9 * failure) > accountant.epsilon(2.0 * failure) * 1.5
    assert accountant.delta(10.0) >= failure


@pytest.mark.parametrize(
    ("n", "p", "steps"), [(1000, 0.032, 10**5), (50, 0.5, 10), (10**6, 1e-5, 10**6)]
)
def test_oversize_probability_is_chernoffs(n, p, steps):
    for failure in (1e-2, 1e-8, 1e-14):
        most = largest_likely_batch(failure, n, p, steps)
        assert steps * binom.sf(most, n, p) <= failure
        if most < n:
            assert oversize_probability(most, n, p, steps) <= failure
            assert oversize_probability(most - 1, n, p, steps) > failure
            exact = steps * binom.sf(most, n, p)
            assert exact <= oversize_probability(most, n, p, steps) <= 100 * exact
    assert oversize_probability(n, n, p, steps) == 0.0
    assert oversize_probability(0, n, p, steps) == 1.0


@pytest.mark.parametrize(
    ("n", "p", "most", "steps"),
    [
        (5_674_906_778, 3.29658021397467e-6, 19_730, 1000),
        (715_520, 2.399779856921047e-10, 0, 1000),
        (400, 0.3, 160, 50),
    ],
)
def test_oversize_probability_is_rounded_up_at_tiny_rates(n, p, most, steps):
    with mpmath.workdps(50):
        rate, share = mpmath.mpf(p), mpmath.mpf(most + 1) / n
        other = (1 - share) * mpmath.log((1 - share) / (1 - rate))
        exact = steps * mpmath.exp(-n * (share * mpmath.log(share / rate) + other))
        assert exact <= oversize_probability(most, n, p, steps) <= exact * 1.000001


# Laws.


def epsilon_of(run, adjacency="replace-one", delta=1e-6):
    return HiddenStateAccountant(adjacency).compose(run).epsilon(delta)


def test_monotone_in_everything():
    def full(**more):
        settings = {"steps": 300, "smoothness": 0.5, "strong_convexity": 0.01, "diameter": 2.0}
        settings |= more
        return mu_of(LastIterateEvent(GaussianEvent(settings.pop("z", 8.0)), **settings))

    for name, values in (
        ("steps", (1, 2, 10, 100, 10**4, 10**10)),
        ("diameter", (0.01, 0.1, 1.0, 10.0, 1e6)),
        ("z", (80.0, 8.0, 1.0, 0.1)),
        ("strong_convexity", (0.3, 0.1, 1e-3, 1e-9, 0.0)),
    ):
        costs = [full(**{name: value}) for value in values]
        assert costs == sorted(costs)
    assert full(diameter=None) >= full()
    for name, values in (
        ("steps", (1, 10, 100, 1000, 10**6)),
        ("diameter", (0.1, 1.0, 10.0)),
        ("z", (20.0, 4.0, 1.0)),
        ("strong_convexity", (0.2, 0.02, 0.0)),
    ):
        costs = [epsilon_of(sampled_run(**{name: value})) for value in values]
        assert all(a <= b * (1 + 0.01) for a, b in itertools.pairwise(costs))


def test_limits_of_many_steps():
    """Noise pays for so many steps and no more, and 1e10 of them take no time."""
    start = time.process_time()
    strong = LastIterateEvent(GaussianEvent(9.0), 10**10, 0.3, 2e-4)
    assert mu_of(strong) == pytest.approx(math.sqrt((2 - 2e-4) / 2e-4) / 9, rel=1e-11)
    convex = LastIterateEvent(GaussianEvent(9.0), 10**10, 0.3, diameter=50.0)
    assert mu_of(convex) == pytest.approx((50 + 450 / 9) / math.sqrt(450), rel=1e-11)
    assert mu_of(LastIterateEvent(GaussianEvent(9e4), 10**10, 2.0)) == pytest.approx(1e5 / 9e4)
    assert time.process_time() - start < 1.0
    sampled = [epsilon_of(sampled_run(steps=t)) for t in (10**5, 10**10)]
    assert sampled[0] == pytest.approx(sampled[1], rel=0.01)


def test_falling_steps_gain_nothing():
    """With step 1/(m t) the last iterate of a quadratic is the mean of all noisy gradients."""
    steps = 500
    weights, c = np.zeros(steps), 1.0
    for t in range(steps, 0, -1):
        weights[t - 1] = c / t
        c *= 1 - 1 / t
    np.testing.assert_allclose(weights, 1 / steps)
    assert weights.sum() / math.sqrt((weights**2).sum()) == pytest.approx(math.sqrt(steps))


def test_runs_compose_exactly():
    one = LastIterateEvent(GaussianEvent(20.0), 500, 0.5, 0.01)
    other = LastIterateEvent(GaussianEvent(30.0), 2000, 0.5, diameter=4.0)
    plan = ComposedEvent((RepeatedEvent(one, 3), other, GaussianEvent(2.0)))
    mu = math.sqrt(3 * mu_of(one) ** 2 + mu_of(other) ** 2 + 0.25)
    assert mu_of(plan) == pytest.approx(mu)
    for cls in (HiddenStateAccountant, GDPAccountant, PLDAccountant):
        assert cls().compose(plan).epsilon(1e-6) == pytest.approx(
            gaussian_profile.epsilon(mu, 1e-6), rel=1e-9
        )
    assert RDPAccountant().compose(plan).epsilon(1e-6) >= gaussian_profile.epsilon(mu, 1e-6)
    sampled = sampled_run()
    both = HiddenStateAccountant("replace-one").compose(sampled, 2).compose(one)
    basic = 2 * epsilon_of(sampled) + epsilon_of(one)
    assert max(epsilon_of(sampled, delta=3e-6), epsilon_of(one, delta=3e-6)) < both.epsilon(3e-6)
    assert both.epsilon(3e-6) < basic
    assert not PLDAccountant().supports(sampled) and not GDPAccountant().supports(sampled)


def test_full_samples_are_full_batches():
    for step, shift in (
        (PoissonSampledEvent(1.0, GaussianEvent(8.0)), 0.25),
        (UniformSampledEvent(50, 50, GaussianEvent(8.0)), 0.25),
    ):
        size = 50 if isinstance(step, PoissonSampledEvent) else None
        run = LastIterateEvent(step, 100, 0.5, 0.1, dataset_size=size)
        plain = LastIterateEvent(GaussianEvent(1 / shift), 100, 0.5, 0.1)
        assert epsilon_of(run) == pytest.approx(epsilon_of(plain), rel=1e-12)
    nobody = LastIterateEvent(PoissonSampledEvent(0.0, GaussianEvent(1.0)), 5, 0.5, dataset_size=9)
    assert epsilon_of(nobody) == 0.0


def test_lower_bounds_are_claimed_for_plain_events_only():
    run = HiddenStateAccountant("replace-one").compose(sampled_run())
    assert run.epsilon(1e-6).lower == 0.0 and run.delta(0.5).lower == 0.0
    assert run.epsilon(1e-6).is_guarantee


def test_calibration_meets_its_target():
    for make in (
        lambda z: LastIterateEvent(GaussianEvent(z), 10**6, 1.0, 1e-3),
        lambda z: sampled_run(z=z, diameter=None),
    ):
        z = calibrate_event(
            make, 1.0, 1e-6, adjacency="replace-one", accountant=HiddenStateAccountant
        )
        assert 0.995 <= epsilon_of(make(z)) <= 1.0


# The event.


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"steps": 0}, ValueError, "steps must be an integer >= 1"),
        ({"smoothness": 2.0001}, ValueError, r"must lie in \[0, 2\].*reduce the step"),
        ({"smoothness": -0.1}, ValueError, "smoothness"),
        ({"smoothness": math.nan}, ValueError, "smoothness"),
        ({"smoothness": "0.5"}, TypeError, "real number"),
        ({"strong_convexity": 0.6}, ValueError, "strong_convexity must lie in"),
        ({"strong_convexity": -1e-9}, ValueError, "strong_convexity"),
        ({"diameter": 0.0}, ValueError, "diameter must be a finite number > 0"),
        ({"diameter": math.inf}, ValueError, "None without projection"),
        ({"batches": 0}, ValueError, "batches"),
        ({"dataset_size": 10}, ValueError, "for Poisson batches only"),
        ({"step": RepeatedEvent(GaussianEvent(1.0), 2)}, ValueError, "step must be a Gaussian"),
        ({"step": "gaussian"}, TypeError, "step must be an Event"),
        ({"step": PoissonSampledEvent(0.1, GaussianEvent(1.0))}, ValueError, "dataset_size must"),
        (
            {"step": UniformSampledEvent(1, 9, GaussianEvent(1.0)), "batches": 3},
            ValueError,
            "fixed round",
        ),
    ],
)
def test_events_are_validated(change, error, message):
    settings = {"step": GaussianEvent(1.0), "steps": 10, "smoothness": 0.5} | change
    with pytest.raises(error, match=message):
        LastIterateEvent(**settings)


def test_units_are_validated():
    with pytest.raises(ValueError, match="step_size"):
        LastIterateEvent.from_units(GaussianEvent(1.0), 5, step_size=0.0, smoothness=1.0)
    with pytest.raises(ValueError, match="noise on the mean gradient"):
        LastIterateEvent.from_units(
            GaussianEvent(1.0), 5, step_size=1.0, smoothness=1.0, diameter=1.0
        )
    for smoothness in np.random.default_rng(0).uniform(0.01, 10.0, 200):
        run = LastIterateEvent.from_units(
            GaussianEvent(1.0), 5, step_size=2.0 / smoothness, smoothness=smoothness
        )
        assert run.smoothness == pytest.approx(2.0)


def test_uniform_batches_need_replace_one():
    run = sampled_run(poisson=False)
    assert not HiddenStateAccountant("add-remove").supports(run)
    assert HiddenStateAccountant("replace-one").supports(run)


# Audit: many runs of the algorithm itself.


def test_audit_of_projected_logistic_descent():
    """No threshold on the last iterate tells two tables apart better than the bound allows."""
    rng = np.random.default_rng(5)
    n, eta, noise, radius, steps, runs = 4, 2.0, 0.3, 1.0, 60, 100_000
    finals = []
    for row in (1.0, -1.0):
        x = np.zeros(runs)
        total = np.array([1.0, -1.0, 1.0, row])
        for _ in range(steps):
            gradient = sum(-r * expit(-r * x) for r in total) / n
            x = x - eta * (gradient + noise * rng.standard_normal(runs))
            x = np.clip(x, -radius, radius)
        finals.append(x)
    run = full_run(n, noise, 0.0, 0.25, eta, steps, gap=1.0, diameter=2 * radius)
    accountant = HiddenStateAccountant("replace-one").compose(run)
    # Hoeffding on each of 2 * 21 frequencies: all hold but for one case in 1e7.
    slack = math.sqrt(math.log(2 * 42 / 1e-7) / (2 * runs))
    seen = 0.0
    for threshold in np.linspace(-0.99, 0.99, 21):
        hit, false = (float(np.mean(x > threshold)) for x in finals)
        for epsilon in (0.0, 0.25, 0.5, 1.0):
            attack = hit - slack - math.exp(epsilon) * (false + slack)
            assert attack <= accountant.delta(epsilon)
            seen = max(seen, attack)
    # The attack is not blind: it would refute noise calibrated for less.
    assert seen > 0.2
