"""Sensitivities in closed form are never below their formula in high precision."""

import math

import mpmath as mp
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skdp.losses import ClippedLoss, LogisticLoss, OneVsRestLoss, SmoothedHingeLoss, SoftmaxLoss
from skdp.mechanisms import RandomStream, analytic_gaussian_sigma, laplace_mechanism
from skdp.mechanisms.release import Release
from skdp.mechanisms.trace import record_releases
from skdp.models import LinearModel
from skdp.plans.gradient_perturbation import lipschitz_contribution
from skdp.plans.noisy_gradient import contribution_in_ball
from skdp.plans.objective_perturbation import curvature_ratio
from skdp.plans.output_perturbation import minimiser_sensitivity
from skdp.plans.second_moments import second_moment_bound
from skdp.preprocessing.dp_quantile_clipper import histogram_bound
from skdp.preprocessing.dp_standard_scaler import _SQUARE_WEIGHTS, moment_bound

# Excess that is allowed: that of the row norm, 1e-12, a few times over.
MUCH = 1 + mp.mpf(10) ** -11
LOSSES = {
    "logistic": (LogisticLoss(), 1, mp.mpf(1) / 4),
    "hinge": (SmoothedHingeLoss(0.3), 1, mp.mpf(1) / (2 * mp.mpf(0.3))),
    "softmax": (SoftmaxLoss(5), mp.sqrt(2), mp.mpf(1) / 2),
    "rest": (OneVsRestLoss(SmoothedHingeLoss(0.7), 7), None, mp.mpf(1) / (2 * mp.mpf(0.7))),
}

few = settings(max_examples=60, deadline=None)
positive = st.floats(1e-9, 1e3)


@pytest.mark.parametrize("name", LOSSES)
@few
@given(n=st.integers(1, 10**7), s=st.floats(1e-6, 1e3), penalty=positive, tau=st.floats(0, 1e-3))
def test_constants_of_plans(name, n, s, penalty, tau):
    loss, slope, curvature = LOSSES[name]
    model = LinearModel(loss, n, 3, loss.n_outputs, s)
    with mp.workdps(60):
        root = mp.sqrt(1 + mp.mpf(s) ** 2)
        steepest = root * (mp.sqrt(7) if slope is None else slope)
        bound = lipschitz_contribution(model)
        assert steepest <= bound.norm <= steepest * MUCH
        assert 2 * steepest <= bound.gap <= 2 * steepest * MUCH
        bent = curvature * root**2
        assert bent <= model.part_loss.smoothness(model.row_norm) <= bent * MUCH
        ratio = bent / (n * mp.mpf(penalty))
        assert ratio <= curvature_ratio(model, penalty) <= ratio * MUCH
        if name in ("hinge", "rest"):
            for adjacency, gap in (("replace-one", 2 * steepest), ("add-remove", steepest)):
                exact = (gap + 2 * n * mp.mpf(tau)) / (n * mp.mpf(penalty))
                computed = minimiser_sensitivity(model, penalty, tau, adjacency)
                assert exact <= computed <= exact * MUCH


@few
@given(s=st.floats(0, 10), radius=st.floats(1e-6, 1e6))
def test_contributions_in_a_ball(s, radius):
    with mp.workdps(60):
        root = mp.sqrt(1 + mp.mpf(s) ** 2)
        for loss, exact in (
            (LogisticLoss(), root / (1 + mp.exp(-radius * root))),
            (
                SoftmaxLoss(4),
                mp.sqrt(2) * root / (1 + mp.exp(-mp.sqrt(2) * radius * root) / 3),
            ),
        ):
            bound = contribution_in_ball(LinearModel(loss, 100, 3, loss.n_outputs, s), radius)
            assert exact <= bound.norm <= exact * MUCH


@few
@given(s=st.floats(0, 10), clip=st.floats(1e-6, 10))
def test_clipped_losses(s, clip):
    model = LinearModel(ClippedLoss(LogisticLoss(), clip), 100, 3, 1, s)
    with mp.workdps(60):
        root, cut = mp.sqrt(1 + mp.mpf(s) ** 2), mp.mpf(clip)
        bent = root**2 / 4 if cut >= root / 2 else cut * (root - cut)
        assert bent <= model.loss.smoothness(model.row_norm)
        assert min(cut, root) <= model.loss.lipschitz(model.row_norm)


@pytest.mark.parametrize("d", [1, 2, 3, 5, 7, 10, 30, 1000, 123_457])
def test_bounds_of_private_transformers(d):
    with mp.workdps(60):
        root = mp.sqrt(d)
        bound = histogram_bound(d)
        assert mp.sqrt(mp.mpf(2) / 3) * root <= bound.norm
        assert mp.sqrt(2) * root <= bound.gap
        for weight in (*_SQUARE_WEIGHTS.values(), 0.0):
            bound, w = moment_bound(d, weight), mp.mpf(weight)
            assert ((w + 1 / w) / 2 if w else 1) * root <= bound.norm
            assert 2 * root <= bound.gap
        for squared in (0.0, 0.5, 0.7):
            bound, a = second_moment_bound(d, squared), mp.mpf(squared)
            assert mp.sqrt(1 + a) <= bound.norm
            gap = (2 + a) / mp.sqrt(2) if d > 1 else max(mp.mpf(1), 2 * mp.sqrt(a))
            assert gap <= bound.gap


@few
@given(sensitivity=positive, epsilon=positive)
def test_scales_of_laplace_noise(sensitivity, epsilon):
    with record_releases() as trace:
        laplace_mechanism([0.0], sensitivity, epsilon, random_state=RandomStream.from_seed(0))
    (release,) = trace.releases
    with mp.workdps(60):
        exact = mp.mpf(sensitivity) / mp.mpf(epsilon)
        assert exact <= release.sigma <= exact * (1 + mp.mpf(10) ** -15)


@few
@given(releases=st.integers(1, 50), epsilon=st.floats(0.01, 10), logarithm=st.floats(-30, -1))
def test_noise_of_several_sums_meets_its_target(releases, epsilon, logarithm):
    delta = math.exp(logarithm)
    sums = Release.bounded("x", histogram_bound(3), "replace-one", releases)
    plan = sums.least(epsilon, delta)
    with mp.workdps(60):
        mu = mp.sqrt(releases) * mp.sqrt(6) / mp.mpf(plan.sigma)
        least = 1 / mp.mpf(analytic_gaussian_sigma(epsilon, delta))
        assert mu <= least
        spent = mp.ncdf(mu / 2 - epsilon / mu) - mp.exp(epsilon) * mp.ncdf(-mu / 2 - epsilon / mu)
        assert spent <= delta
