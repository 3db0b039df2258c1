"""Random plans from the whole documented range: both bounds against truths from elsewhere.

Where epsilon lies between 1e-6 and 1e3 the interval must also be narrow. Rare sampling with little
noise, where truths are hard to come by, has tests of its own (`test_rare_losses`).
"""

import math

import contour_oracle
import mpmath as mp
import numpy as np
import pytest
from dp_accounting import NeighboringRelation
from dp_accounting.pld import common
from dp_accounting.pld import privacy_loss_distribution as peer
from exact_profiles import (
    LongComposition,
    OutOfReachError,
    discrete_delta,
    gaussian_delta,
    mixture_delta,
    response_delta,
)

from skdp.accounting import (
    ApproxDPEvent,
    DiscreteGaussianEvent,
    DiscreteLaplaceEvent,
    GaussianEvent,
    LaplaceEvent,
    PLDAccountant,
    PoissonSampledEvent,
    PureDPEvent,
    UniformSampledEvent,
)

GAP = 1e-3
SLIP = 1e-11  # relative, of delta: what rounding of parameters may do
ROWS = 10**7
ADJACENCIES = ("add-remove", "replace-one")


class Draw:
    """Random parameters, log-uniform over the documented ranges."""

    def __init__(self, seed):
        self._generator = np.random.default_rng(seed)

    def number(self, low, high):
        return math.exp(self._generator.uniform(math.log(low), math.log(high)))

    def count(self, low, high):
        return round(self.number(low, high))

    def rate(self):
        return self.number(1e-7, 1.0)

    def multiplier(self, high=1e4):
        return self.number(0.2, high)

    def delta(self, low=1e-15):
        return self.number(low, 0.1)

    def choice(self, options):
        return options[self._generator.integers(len(options))]


def check_epsilon(value, truth, delta, *, gap=GAP):
    """Demand that an interval holds the smallest epsilon of a profile, and closely."""
    lower, upper = value
    assert 0.0 <= lower <= upper
    assert upper == math.inf or truth(upper) <= delta * (1 + SLIP)
    assert lower == 0.0 or truth(lower if lower < math.inf else 1e6) >= delta * (1 - SLIP)
    if 1e-6 <= upper <= 1e3:
        assert upper - lower <= gap * upper


def check_delta(value, truth, *, gap=None):
    """Demand that an interval holds a value of a profile."""
    lower, upper = value
    assert lower * (1 - SLIP) <= truth <= upper * (1 + SLIP)
    assert gap is None or upper - lower <= gap * upper + 1e-290


def check_single(event, adjacency, draw, truth):
    plan = PLDAccountant(adjacency).compose(event)
    delta = draw.delta()
    value = plan.epsilon(delta)
    check_epsilon(value, truth, delta)
    for epsilon in (draw.number(1e-6, 20.0), 0.7 * value.lower):
        if epsilon < 1e3:
            check_delta(plan.delta(epsilon), truth(epsilon))


# Single releases: the definition.


@pytest.mark.parametrize("kind", ["poisson-remove-add", "poisson-replace", "uniform"])
@pytest.mark.parametrize("noise", ["gaussian", "laplace"])
def test_one_sampled_release(kind, noise):
    draw = Draw(1)
    leaf = GaussianEvent if noise == "gaussian" else LaplaceEvent
    if kind == "uniform" and noise == "laplace":
        pytest.skip("no bound is proved")
    for _ in range(18):
        rate, z = draw.rate(), draw.multiplier()
        shift = 1 / mp.mpf(z)
        if kind == "poisson-remove-add":

            def truth(epsilon, rate=rate, shift=shift):
                kinds = ("remove", "add")
                return max(mixture_delta(noise, k, rate, shift, epsilon) for k in kinds)

            check_single(PoissonSampledEvent(rate, leaf(z)), "add-remove", draw, truth)
        elif kind == "poisson-replace":

            def truth(epsilon, rate=rate, shift=shift):
                return mixture_delta(noise, "replace", rate, shift, epsilon)

            check_single(PoissonSampledEvent(rate, leaf(z)), "replace-one", draw, truth)
        else:
            batch = max(1, round(rate * ROWS))

            def truth(epsilon, batch=batch, shift=2 * shift):
                return mixture_delta(noise, "remove", mp.mpf(batch) / ROWS, shift, epsilon)

            event = UniformSampledEvent(batch, ROWS, leaf(z))
            check_single(event, "replace-one", draw, truth)


@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_one_plain_release(adjacency):
    draw = Draw(2)
    for _ in range(10):
        z = draw.multiplier()
        check_single(GaussianEvent(z), adjacency, draw, lambda e, z=z: gaussian_delta(1 / z, e))
        check_single(
            LaplaceEvent(z),
            adjacency,
            draw,
            lambda e, z=z: max(-mp.expm1((mp.mpf(e) - 1 / mp.mpf(z)) / 2), 0),
        )
        stated, failure = draw.number(1e-6, 20.0), draw.number(1e-18, 1e-3)
        check_single(
            PureDPEvent(stated), adjacency, draw, lambda e, s=stated: response_delta(s, 0, e)
        )
        check_single(
            ApproxDPEvent(stated, failure),
            adjacency,
            draw,
            lambda e, s=stated, f=failure: response_delta(s, f, e),
        )


def test_one_discrete_release():
    draw = Draw(3)
    for _ in range(8):
        shift = draw.count(1, 12)
        z = draw.multiplier(20.0)
        scale = mp.mpf(z) * shift

        def gaussian(epsilon, shift=shift, scale=scale):
            reach = math.ceil(38 * scale) + shift
            return discrete_delta(
                lambda x: -(mp.mpf(x) ** 2) / (2 * scale**2), reach, shift, epsilon
            )

        def laplace(epsilon, shift=shift, scale=scale):
            # Beyond the shift the loss is constant, and the rest is a geometric series.
            with mp.workdps(60):
                decay, growth = mp.exp(-1 / scale), mp.exp(mp.mpf(epsilon))
                inner = [decay ** abs(x - shift) - growth * decay**x for x in range(shift)]
                outer = (1 - growth * decay**shift) / (1 - decay)
                kept = mp.fsum(max(e, 0) for e in [*inner, outer])
                return kept * (1 - decay) / (1 + decay)

        check_single(DiscreteGaussianEvent(z, shift), "add-remove", draw, gaussian)
        check_single(DiscreteLaplaceEvent(z, shift), "replace-one", draw, laplace)


# Gaussian compositions: one exact Gaussian.


@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_gaussian_compositions_are_exact(adjacency):
    draw = Draw(4)
    for _ in range(20):
        plan, square = PLDAccountant(adjacency), mp.mpf(0)
        moved = 2 if adjacency == "replace-one" else 1
        # Start from the total, so that epsilon is of a reasonable size.
        total, parts = draw.number(1e-3, 10.0), draw.count(1, 3)
        for part in range(parts):
            count = draw.count(1, 1e10)
            z = min(max(math.sqrt(count * parts) / total, 0.2), 1e5)
            full = [GaussianEvent(z), PoissonSampledEvent(1.0, GaussianEvent(moved * z))]
            if adjacency == "replace-one":
                full.append(UniformSampledEvent(ROWS, ROWS, GaussianEvent(2 * z)))
            plan.compose(full[part % len(full)], count)
            square += count / mp.mpf(z) ** 2
        mu, delta = mp.sqrt(square), draw.delta()
        value = plan.epsilon(delta)
        check_epsilon(value, lambda e, mu=mu: gaussian_delta(mu, e), delta, gap=1e-8)
        epsilon = draw.number(1e-6, 20.0)
        check_delta(plan.delta(epsilon), gaussian_delta(mu, epsilon))


EXACT = {1e-5: 4.377178, 1e-10: 6.547924, 1e-12: 7.238494, 1e-13: 7.560198, 1e-14: 7.868736}


@pytest.mark.parametrize(
    "event", [GaussianEvent(100.0), PoissonSampledEvent(1.0, GaussianEvent(100.0))]
)
def test_where_other_transforms_fall_below_the_truth(event):
    """At mu = 1 exactly, down to where rounding is a hundred times delta."""
    plan = PLDAccountant().compose(event, 10_000)
    for delta in (*EXACT, 1e-15):
        value = plan.epsilon(delta)
        check_epsilon(value, lambda e: gaussian_delta(1, e), delta)
        if delta in EXACT:
            assert value.lower - 5e-7 <= EXACT[delta] <= value.upper + 5e-7


WAYS = [("poisson", "add-remove"), ("poisson", "replace-one"), ("uniform", "replace-one")]
TINY = [(0.5, 50.0, 10_000), (0.01, 4.0, 10_000), (1e-3, 0.6, 50_000)]


@pytest.mark.parametrize(
    ("sampling", "adjacency", "rate", "z", "count"),
    [
        pytest.param(*way, *plan, marks=[] if i == j else pytest.mark.slow)
        for i, way in enumerate(WAYS)
        for j, plan in enumerate(TINY)
    ],
)
def test_tiny_deltas_of_sampled_releases(sampling, adjacency, rate, z, count):
    event, truth = sampled(sampling, adjacency, rate, z)
    plan = PLDAccountant(adjacency).compose(event, count)
    exact = LongComposition([(*truth, count)])
    for delta in (1e-10, 1e-13, 1e-15):
        check_epsilon(plan.epsilon(delta), exact.delta, delta)


# Long compositions: an inversion integral in extended precision.


def sampled(sampling, adjacency, rate, z):
    """Return an event, and the same for the oracles as (kind, rate, mu)."""
    if sampling == "uniform":
        batch = max(1, round(rate * ROWS))
        event = UniformSampledEvent(batch, ROWS, GaussianEvent(z))
        return event, ("uniform", batch / ROWS, 2.0 / z)
    kind = "remove" if adjacency == "add-remove" else "poisson-replace-one"
    return PoissonSampledEvent(rate, GaussianEvent(z)), (kind, rate, 1.0 / z)


@pytest.mark.daily(1)
@pytest.mark.parametrize(
    ("seed", "plans"),
    [
        *((0, 3), (1, 3), (2, 2)),
        *(
            pytest.param(seed, 3 if WAYS[seed % 3][0] == "uniform" else 8, marks=pytest.mark.slow)
            for seed in range(9)
        ),
    ],
)
def test_long_compositions(seed, plans):
    """Homogeneous plans, and such of two or three kinds of step."""
    draw, checked = Draw(100 + seed), 0
    sampling, adjacency = WAYS[seed % 3]
    while checked < plans:
        plan, truths, large = PLDAccountant(adjacency), [], 0.0
        for _ in range(1 + seed // 3):
            rate, z, count = draw.rate(), draw.multiplier(), draw.count(300, 1e10)
            event, truth = sampled(sampling, adjacency, rate, z)
            plan.compose(event, count)
            truths.append((*truth, count))
            large = max(large, truth[1] * truth[2] * math.sqrt(count))
        if not 1e-4 < large < 10.0:
            continue
        delta = draw.delta()
        value = plan.epsilon(delta)
        if not 1e-6 <= value.upper <= 1e3:
            continue
        exact = LongComposition(truths)
        try:
            check_epsilon(value, exact.delta, delta)
            at = plan.delta(0.9 * value.upper)
            check_delta(at, exact.delta(0.9 * value.upper), gap=GAP)
        except OutOfReachError:
            continue
        checked += 1


CONTOURS = [
    # kind, rate, multiplier, count, delta
    ("remove", 0.01, 4.0, 10_000, 1e-5),
    ("poisson-replace-one", 0.01, 4.0, 10_000, 1e-12),
    ("remove", 0.3, 3.0, 400, 1e-15),
    ("remove", 0.5, 50.0, 1000, 1e-14),
    ("remove", 0.004, 1.1, 15_000, 1e-5),
    ("remove", 1e-4, 2.0, 10**7, 1e-10),
    ("remove", 0.05, 30.0, 10**6, 1e-3),
    ("poisson-replace-one", 0.2, 40.0, 30_000, 1e-9),
    ("poisson-replace-one", 1e-5, 3.0, 10**9, 1e-6),
    ("poisson-replace-one", 0.9, 200.0, 20_000, 1e-15),
    ("add", 0.5, 50.0, 1000, 1e-14),
]


@pytest.mark.daily(1)
@pytest.mark.parametrize(
    ("kind", "rate", "z", "count", "delta"),
    [*CONTOURS[:4], *(pytest.param(*case, marks=pytest.mark.oracle) for case in CONTOURS[4:])],
)
def test_against_thirty_digits(kind, rate, z, count, delta):
    """The bounds, and the oracle in extended precision, against one in thirty digits."""
    adjacency = "replace-one" if kind == "poisson-replace-one" else "add-remove"
    plan = PLDAccountant(adjacency).compose(PoissonSampledEvent(rate, GaussianEvent(z)), count)
    epsilon = plan.epsilon(delta).upper
    # A tilt near the saddle point of a normal loss, and a period of about thirty deviations.
    deviation = (
        rate * math.sqrt(count * math.expm1(1 / z**2)) * (2 if adjacency != "add-remove" else 1)
    )
    theta = max(epsilon / deviation**2 - 0.5, 1.0 / deviation)
    period = max(30.0 * deviation, 60.0 / theta)
    terms = math.ceil(10.0 / deviation * period / (2 * math.pi))
    exact = contour_oracle.delta(kind, rate, 1 / z, count, epsilon, theta, period, terms)
    assert LongComposition([(kind, rate, 1 / z, count)]).delta(epsilon) == pytest.approx(
        float(exact), rel=1e-9
    )
    lower, upper = plan.delta(epsilon)
    assert exact <= upper
    if kind != "add":  # the direction that is never the larger one
        assert lower <= exact <= delta


# A few to thousands of releases of any kind: dp-accounting, from above and from below.


def theirs(event, adjacency, step, pessimistic):
    """Return dp-accounting's loss distribution of one release."""
    options = {
        "value_discretization_interval": step,
        "pessimistic_estimate": pessimistic,
        "use_connect_dots": pessimistic,
    }
    rate = 1.0
    if isinstance(event, PoissonSampledEvent):
        rate, event = event.sample_rate, event.event
    if isinstance(event, GaussianEvent):
        if rate < 1.0:
            options["neighboring_relation"] = {
                "add-remove": NeighboringRelation.ADD_OR_REMOVE_ONE,
                "replace-one": NeighboringRelation.REPLACE_ONE,
            }[adjacency]
        return peer.from_gaussian_mechanism(event.noise_multiplier, sampling_prob=rate, **options)
    if isinstance(event, LaplaceEvent):
        return peer.from_laplace_mechanism(event.noise_multiplier, sampling_prob=rate, **options)
    stated = common.DifferentialPrivacyParameters(event.epsilon, getattr(event, "delta", 0.0))
    return peer.from_privacy_parameters(stated, value_discretization_interval=step)


def few_releases(draw, adjacency):
    """Return one to three leaves with counts."""
    leaves = []
    for _ in range(draw.count(1, 3)):
        count = draw.count(2, 400)
        rate, z = draw.number(1e-3, 1.0), draw.number(0.5, 30.0)
        leaf = draw.choice(
            [
                GaussianEvent(z * math.sqrt(count)),
                PoissonSampledEvent(rate, GaussianEvent(z)),
                PoissonSampledEvent(rate, GaussianEvent(z)),
                PoissonSampledEvent(rate, LaplaceEvent(z)),
                LaplaceEvent(z * math.sqrt(count)),
                PureDPEvent(1.0 / z / count),
                ApproxDPEvent(1.0 / z / count, 1e-10 / count),
            ]
        )
        if adjacency == "replace-one" and isinstance(getattr(leaf, "event", None), LaplaceEvent):
            leaf = LaplaceEvent(z * math.sqrt(count))  # the peer has add-remove only
        leaves.append((leaf, count))
    return leaves


@pytest.mark.parametrize(
    "adjacency", ["replace-one", pytest.param("add-remove", marks=pytest.mark.slow)]
)
def test_mixed_plans_against_dp_accounting(adjacency):
    draw, step = Draw(5), 5e-4
    for _ in range(8):
        leaves = few_releases(draw, adjacency)
        plan, sides = PLDAccountant(adjacency), []
        for leaf, count in leaves:
            plan.compose(leaf, count)
        for pessimistic in (True, False):
            total = peer.identity(step, pessimistic)
            for leaf, count in leaves:
                # Without some of the releases the rest is still a bound from below.
                if pessimistic or not isinstance(leaf, PureDPEvent | ApproxDPEvent):
                    one = theirs(leaf, adjacency, step, pessimistic)
                    total = total.compose(one.self_compose(count))
            sides.append(total)
        for delta in (1e-8, 1e-6, 1e-3):
            above, below = (side.get_epsilon_for_delta(delta) for side in sides)
            value = plan.epsilon(delta)
            assert value.lower <= above * (1 + 1e-9)
            assert value.upper >= below * (1 - 1e-9)
            # Connecting the dots multiplies delta by about 1 + tilt^2 step^2 / 8 per release; a
            # stated guarantee is rounded up.
            tilt = 1.0 - 2.0 * math.log(delta) / max(above, step)
            error = sum(
                count * (step if isinstance(leaf, PureDPEvent | ApproxDPEvent) else tilt * step**2)
                for leaf, count in leaves
            )
            assert abs(value.upper - above) <= GAP * above + error + 0.1 * step
            if value.upper >= 1e-6:
                assert value.upper - value.lower <= GAP * value.upper


# Plans that random search found wanting once.


@pytest.mark.daily(1)
@pytest.mark.parametrize(
    ("sampling", "adjacency", "rate", "z", "count", "delta"),
    [
        pytest.param(
            *("uniform", "replace-one", 6e-7, 8.7252, 2_275_971_303, 1.7e-13),
            marks=pytest.mark.slow,
        ),
        ("poisson", "replace-one", 2.63695e-7, 3.82113, 152_288_063, 1.266e-12),
        ("poisson", "replace-one", 2.9e-5, 1.35, 4, 1e-7),
        ("poisson", "add-remove", 7e-6, 1.61, 12, 7e-12),
        ("uniform", "replace-one", 1.9e-3, 3.25, 15, 3e-15),
        ("poisson", "replace-one", 3.5e-6, 258.0, 164, 4.4e-13),
    ],
)
def test_heavy_tails_that_hardly_ever_show(sampling, adjacency, rate, z, count, delta):
    """Moments are governed by losses that are never seen: epsilon and delta agree all the same."""
    event, _ = sampled(sampling, adjacency, rate, z)
    plan = PLDAccountant(adjacency).compose(event, count)
    lower, upper = plan.epsilon(delta)
    assert 0.0 < upper - lower <= GAP * upper
    at_upper, at_lower = plan.delta(upper), plan.delta(lower)
    assert at_upper.lower <= delta <= at_lower.upper
    assert at_upper.upper <= (1 + GAP) * delta and at_lower.lower >= (1 - 2 * GAP) * delta


def test_epsilons_beyond_the_exponential_function():
    event = PoissonSampledEvent(1e-6, GaussianEvent(0.25))
    for count in (1, 2, 300):
        value = PLDAccountant().compose(event, count).delta(731.7)
        assert 0.0 <= value.lower <= value.upper <= 1.0


@pytest.mark.filterwarnings("error")
def test_sampled_laplace_of_tiny_losses():
    event = PoissonSampledEvent(3.5e-6, LaplaceEvent(258.0))
    plan = PLDAccountant("replace-one").compose(event, 164)
    lower, upper = plan.epsilon(4.4e-13)
    assert 0.0 < upper - lower <= GAP * upper
    assert plan.delta(lower).upper >= 4.4e-13 >= plan.delta(upper).lower


# Closer on request.


@pytest.mark.parametrize(("sampling", "adjacency"), WAYS)
def test_one_in_a_hundred_thousand_on_request(sampling, adjacency):
    draw = Draw(6)
    for _ in range(3):
        rate, count = draw.number(1e-4, 1.0), draw.count(500, 1e7)
        z = max(1.0, rate * math.sqrt(count) / draw.number(0.1, 3.0))
        event, truth = sampled(sampling, adjacency, rate, z)
        delta = draw.delta()
        value = PLDAccountant(adjacency).compose(event, count).epsilon(delta, rtol=1e-5)
        try:
            check_epsilon(value, LongComposition([(*truth, count)]).delta, delta, gap=1e-5)
        except OutOfReachError:
            continue
