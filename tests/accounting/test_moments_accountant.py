"""The moments accountant: published numbers, direct sums, and soundness."""

import mpmath as mp
import pytest

from skdp.accounting import (
    ApproxDPEvent,
    GaussianEvent,
    GDPAccountant,
    MomentsAccountant,
    PoissonSampledEvent,
)
from skdp.accounting.accountants.rdp import LARGEST_MOMENT

STEP = PoissonSampledEvent(0.01, GaussianEvent(4.0))


@pytest.mark.parametrize(
    ("count", "wanted", "printed"),
    [(10_000, 1.2585747413, 1.26), (40_000, 2.5758725008, 2.55)],
)
def test_published_setting(count, wanted, printed):
    """The second printed number is that of 392 epochs rather than 400."""
    value = MomentsAccountant().compose(STEP, count).epsilon(1e-5)
    assert value == pytest.approx(wanted, rel=1e-9)
    assert value == pytest.approx(printed, rel=0.011)


def test_the_printed_second_number_is_that_of_fewer_epochs():
    assert MomentsAccountant().compose(STEP, 39_200).epsilon(1e-5) == pytest.approx(2.55, abs=2e-3)


def direct(rate, multiplier, count, delta):
    """Epsilon from exact binomial sums in high precision, and the moment that attains it."""
    with mp.workdps(40):
        q, s = mp.mpf(rate), mp.mpf(multiplier)
        best = []
        for moment in range(1, LARGEST_MOMENT + 1):
            a = moment + 1
            total = mp.fsum(
                mp.binomial(a, k) * (1 - q) ** (a - k) * q**k * mp.exp(k * (k - 1) / (2 * s * s))
                for k in range(a + 1)
            )
            best.append(((count * mp.log(total) - mp.log(mp.mpf(delta))) / moment, moment))
        epsilon, moment = min(best)
        return float(epsilon), moment


@pytest.mark.parametrize(
    ("rate", "multiplier", "count", "delta", "moment"),
    [
        (0.01, 4.0, 10_000, 1e-5, 19),
        (0.01, 4.0, 40_000, 1e-5, 9),
        (0.001, 0.6, 500, 1e-6, None),
        (0.3, 2.0, 7, 1e-3, None),
    ],
)
def test_direct_sum(rate, multiplier, count, delta, moment):
    epsilon, best = direct(rate, multiplier, count, delta)
    assert moment is None or best == moment
    plan = MomentsAccountant().compose(PoissonSampledEvent(rate, GaussianEvent(multiplier)), count)
    assert epsilon * (1 - 1e-14) <= plan.epsilon(delta) <= epsilon * (1 + 1e-9)
    assert plan.delta(epsilon) == pytest.approx(delta, rel=1e-6)


@pytest.mark.parametrize(
    ("rate", "mu", "moment"), [(0.01, 0.25, 19), (0.4, 1.5, 3), (0.9, 2.0, 32), (0.99, 5.0, 8)]
)
def test_reverse_moment_is_the_smaller(rate, mu, moment):
    with mp.workdps(25):
        q, m = mp.mpf(rate), mp.mpf(mu)
        points = [mp.mpf(-14) - moment * m + (28 + moment * m) * k / 30 for k in range(31)]
        exact = mp.log(
            mp.quad(
                lambda x: mp.npdf(x) * (1 - q + q * mp.exp(m * x - m * m / 2)) ** -moment, points
            )
        )
    forward = MomentsAccountant().compose(PoissonSampledEvent(rate, GaussianEvent(1 / mu)))
    assert forward.log_moment(moment + 1.0) >= float(exact)


@pytest.mark.parametrize("adjacency", ["add-remove", "replace-one"])
@pytest.mark.parametrize("delta", [1e-9, 1e-5, 1e-2])
def test_bare_gaussians_are_bounded(adjacency, delta):
    for multiplier, count in ((0.7, 1), (3.0, 20), (50.0, 300)):
        events = GaussianEvent(multiplier), count
        exact = GDPAccountant(adjacency).compose(*events).epsilon(delta)
        assert MomentsAccountant(adjacency).compose(*events).epsilon(delta) >= exact


def test_failures_count():
    plan = MomentsAccountant().compose(ApproxDPEvent(0.1, 1e-6)).compose(GaussianEvent(2.0))
    assert plan.epsilon(1e-7) == float("inf")
    assert plan.epsilon(1e-5) < 10.0
    assert plan.delta(float("inf")) == pytest.approx(1e-6)
