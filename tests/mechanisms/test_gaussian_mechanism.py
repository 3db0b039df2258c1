"""The Gaussian mechanism and the trace of its releases."""

import numpy as np
import pytest
from scipy import stats

from skdp.mechanisms import (
    ContributionBound,
    GaussianMechanism,
    RandomStream,
    active_trace,
    analytic_gaussian_sigma,
    gaussian_mechanism,
    laplace_mechanism,
    record_releases,
)
from skdp.testing import check_noise


def mechanism(seed=0, sigma=2.0):
    return GaussianMechanism(
        sensitivity=1.0, sigma=sigma, stream=RandomStream.from_seed(seed), label="test"
    )


def test_function_adds_calibrated_noise():
    noisy = gaussian_mechanism(
        np.full(100_000, 3.0), epsilon=1.0, delta=1e-5, sensitivity=0.5, random_state=0
    )
    check_noise(noisy, stats.norm(3.0, analytic_gaussian_sigma(1.0, 1e-5, 0.5)))


@pytest.mark.parametrize(
    "wrong", [{"epsilon": 0.0}, {"delta": 0.0}, {"delta": 1.0}, {"sensitivity": -1.0}]
)
def test_function_refuses_bad_parameters(wrong):
    good = {"epsilon": 1.0, "delta": 1e-5, "sensitivity": 1.0}
    with pytest.raises(ValueError, match=next(iter(wrong))):
        gaussian_mechanism([0.0], **(good | wrong))


def test_trace_records_values_and_outputs():
    value = np.array([1.0, 2.0])
    with record_releases() as trace:
        output = mechanism().release(value)
    assert active_trace() is None
    (release,) = trace.releases
    assert np.array_equal(release.value, value) and np.array_equal(release.output, output)
    assert (release.sensitivity, release.sigma) == (1.0, 2.0)
    assert np.array_equal(output, mechanism().release(value)), "tracing must not change the noise"


def test_replay_returns_recorded_outputs_and_notices_extra_releases():
    with record_releases() as trace:
        output = mechanism(seed=0).release(np.zeros(3))
    with record_releases(trace) as replayed:
        again = mechanism(seed=1)
        assert np.array_equal(again.release(np.ones(3)), output)
        with pytest.raises(RuntimeError, match="more releases"):
            again.release(np.ones(3))
    assert np.array_equal(replayed.releases[0].value, np.ones(3))


def test_contribution_bound_gives_sensitivities():
    clipped = ContributionBound.from_clipping(1.5)
    assert clipped.sensitivity("add-remove") == 1.5
    assert clipped.sensitivity("replace-one") == 3.0
    for norm, gap in ((0.0, 1.0), (float("inf"), 1.0), (1.0, 0.0), (1.0, 2.5)):
        with pytest.raises(ValueError, match=r"norm|gap"):
            ContributionBound(norm, gap, "test")


@pytest.mark.parametrize("mechanism", [gaussian_mechanism, laplace_mechanism])
def test_seeded_calls_share_no_noise(mechanism):
    """With shared noise the difference of two releases, at one scale, would be exact."""

    def noise(value, **changes):
        settings = {"epsilon": 1.0, "sensitivity": 1.0} | changes
        scale = settings["sensitivity"] / settings["epsilon"]
        if mechanism is gaussian_mechanism:
            settings = {"delta": 1e-5} | settings
            scale = analytic_gaussian_sigma(**settings)
        return (mechanism(value, **settings, random_state=0)[0] - value[0]) / scale

    own = noise([5.0])
    assert own == noise([5.0])
    changes = [{"epsilon": 1.1}, {"sensitivity": 1.1}]
    changes += [{"delta": 1.1e-5}] if mechanism is gaussian_mechanism else []
    for other in (noise([3.0]), noise([5.0, 0.0]), *(noise([5.0], **c) for c in changes)):
        assert abs(other - own) > 1e-6
