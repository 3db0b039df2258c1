"""The central-limit estimate of sampled Gaussians, and its label."""

import math

import numpy as np
import pytest
from scipy import integrate, stats

from skdp.accounting import (
    GaussianEvent,
    GDPAccountant,
    PLDAccountant,
    PoissonSampledEvent,
    UniformSampledEvent,
)
from skdp.accounting.accountants.gdp import limiting_square
from skdp.accounting.analysis import analysis_of


def clt(adjacency="add-remove"):
    return GDPAccountant(adjacency, subsampling="clt")


def test_published_formula():
    step = PoissonSampledEvent(0.01, GaussianEvent(1.3))
    wanted = 0.01 * math.sqrt(5000 * (math.exp(1 / 1.3**2) - 1))
    assert clt().compose(step, 5000).mu == pytest.approx(wanted, rel=1e-12)


def loss_variance(kind, rate, mu):
    """Variance of one step's loss under the reference, by quadrature."""

    def mixture(x, shift):
        return 1 - rate + rate * np.exp(shift * x - shift * shift / 2)

    if kind == "poisson-add-remove":
        return _variance(lambda x: np.log(mixture(x, mu)), lambda x: 1.0, -12, 12 + mu)
    if kind == "poisson-replace-one":
        return _variance(
            lambda x: np.log(mixture(x, mu) / mixture(x, -mu)),
            lambda x: mixture(x, -mu),
            -12 - mu,
            12 + mu,
        )
    # The symmetric pair: losses of either sign beyond mu/2, none otherwise.
    up = _moments(lambda x: np.log(mixture(x, mu)), lambda x: 1.0, mu / 2, 12 + mu)
    down = _moments(lambda x: np.log(mixture(x, mu)), lambda x: mixture(x, mu), mu / 2, 12 + mu)
    return up[1] + down[1] - (up[0] - down[0]) ** 2


def _moments(loss, weight, low, high):
    return [
        integrate.quad(
            lambda x, k=k: loss(x) ** k * weight(x) * stats.norm.pdf(x), low, high, epsabs=1e-18
        )[0]
        for k in (1, 2)
    ]


def _variance(loss, weight, low, high):
    first, second = _moments(loss, weight, low, high)
    return second - first**2


@pytest.mark.parametrize(
    ("adjacency", "event"),
    [
        ("add-remove", PoissonSampledEvent(1e-4, GaussianEvent(1.1))),
        ("replace-one", PoissonSampledEvent(1e-4, GaussianEvent(1.1))),
        ("replace-one", UniformSampledEvent(1, 10_000, GaussianEvent(2.5))),
    ],
)
def test_square_is_the_variance_of_the_loss(adjacency, event):
    pair = analysis_of(event, adjacency).mixture()
    assert limiting_square(pair) == pytest.approx(loss_variance(*pair[:3]), rel=2e-3)


@pytest.mark.parametrize(
    ("adjacency", "event", "count", "truth"),
    [
        ("add-remove", PoissonSampledEvent(0.01, GaussianEvent(4.0)), 10_000, 0.946872),
        ("replace-one", PoissonSampledEvent(0.01, GaussianEvent(4.0)), 10_000, 1.993132),
        ("replace-one", UniformSampledEvent(1, 100, GaussianEvent(4.0)), 10_000, 2.561571),
    ],
)
def test_estimate_is_near_where_many_steps_have_much_noise(adjacency, event, count, truth):
    assert clt(adjacency).compose(event, count).epsilon(1e-5) == pytest.approx(truth, rel=6e-3)


@pytest.mark.parametrize(
    ("sigma", "count", "truth"), [(0.5, 100, 6.471166), (0.7, 100, 2.362336), (1.0, 1000, 1.77824)]
)
def test_estimate_can_lie_below_the_truth_and_says_so(sigma, count, truth):
    value = clt().compose(PoissonSampledEvent(0.01, GaussianEvent(sigma)), count).epsilon(1e-5)
    assert value < truth
    assert not value.is_upper_bound and not value.is_guarantee
    assert "no upper bound" in repr(value)


def test_unsampled_parts_stay_exact_and_add_up():
    plan = clt().compose(GaussianEvent(5.0), 3)
    assert plan.mu == pytest.approx(math.sqrt(3) / 5)
    sampled = PoissonSampledEvent(0.02, GaussianEvent(2.0))
    square = plan.mu**2 + 700 * limiting_square(analysis_of(sampled, "add-remove").mixture())
    assert plan.compose(sampled, 700).mu == pytest.approx(math.sqrt(square))
    assert plan.epsilon(1e-5) == pytest.approx(
        PLDAccountant().compose(plan.event).epsilon(1e-5), rel=0.02
    )


@pytest.mark.parametrize("multiplier", [1e-8, 1e-2, 1.0, 1e4, 1e150])
def test_no_overflow(multiplier):
    for adjacency, event in (
        ("add-remove", PoissonSampledEvent(0.01, GaussianEvent(multiplier))),
        ("replace-one", PoissonSampledEvent(0.01, GaussianEvent(multiplier))),
        ("replace-one", UniformSampledEvent(1, 100, GaussianEvent(multiplier))),
    ):
        value = clt(adjacency).compose(event, 10).epsilon(1e-5)
        assert value >= 0.0
        assert value < 1e-3 or multiplier < 100


def test_default_refuses_and_old_records_can_be_read():
    assert not GDPAccountant().supports(PoissonSampledEvent(0.5, GaussianEvent(1.0)))
    old = GDPAccountant().compose(GaussianEvent(2.0)).to_dict()
    del old["subsampling"]
    assert GDPAccountant.from_dict(old).epsilon(1e-5).is_guarantee
    with pytest.raises(ValueError, match="subsampling must be"):
        GDPAccountant(subsampling="gdp")
