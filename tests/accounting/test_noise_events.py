"""Events of Laplace and discrete noise: values, dictionaries, and who supports them."""

import pytest

from skdp.accounting import (
    DiscreteGaussianEvent,
    DiscreteLaplaceEvent,
    GaussianEvent,
    GDPAccountant,
    LaplaceEvent,
    NormExponentialEvent,
    PLDAccountant,
    PoissonSampledEvent,
    RDPAccountant,
    UniformSampledEvent,
)
from skdp.exceptions import UnsupportedEventError

KINDS = (
    *(GaussianEvent, LaplaceEvent, NormExponentialEvent),
    *(DiscreteGaussianEvent, DiscreteLaplaceEvent),
)
EVENTS = [
    LaplaceEvent(2.0),
    DiscreteGaussianEvent(1.5),
    DiscreteGaussianEvent(1.5, 4),
    DiscreteLaplaceEvent(3.0),
    DiscreteLaplaceEvent(noise_multiplier=3.0, sensitivity=2),
    PoissonSampledEvent(0.1, LaplaceEvent(1.0)),
]


@pytest.mark.parametrize("kind", KINDS)
def test_noise_multiplier_is_validated(kind):
    for value in (0.0, -1.0, float("inf"), float("nan")):
        with pytest.raises(ValueError, match=rf"{kind.__name__}: noise_multiplier must be"):
            kind(value)
    for value in ("1", None, True):
        with pytest.raises(TypeError, match=rf"{kind.__name__}: noise_multiplier must be"):
            kind(value)


@pytest.mark.parametrize("kind", [DiscreteGaussianEvent, DiscreteLaplaceEvent])
def test_sensitivity_is_validated(kind):
    assert kind(1).sensitivity == 1
    for value in (0, -1, 1.5, True, None):
        with pytest.raises(ValueError, match=rf"{kind.__name__}: sensitivity must be an integer"):
            kind(1.0, value)


@pytest.mark.parametrize("event", EVENTS, ids=str)
@pytest.mark.parametrize("adjacency", ["add-remove", "replace-one"])
def test_support(event, adjacency):
    for accountant in (PLDAccountant(adjacency), RDPAccountant(adjacency)):
        assert accountant.supports(event)
        assert 0.0 < accountant.compose(event, 3).epsilon(1e-4) < 10.0
    assert not GDPAccountant(adjacency).supports(event)


@pytest.mark.parametrize(
    "event",
    [
        PoissonSampledEvent(0.1, DiscreteGaussianEvent(1.0)),
        PoissonSampledEvent(0.1, DiscreteLaplaceEvent(1.0)),
        UniformSampledEvent(1, 10, LaplaceEvent(1.0)),
    ],
    ids=str,
)
def test_samples_without_known_divergences_are_refused_by_name(event):
    for adjacency in ("add-remove", "replace-one"):
        with pytest.raises(UnsupportedEventError, match=r"no proved bound for .*PLDAccountant has"):
            RDPAccountant(adjacency).compose(event)
        poisson = isinstance(event, PoissonSampledEvent)
        assert PLDAccountant(adjacency).supports(event) == (poisson or adjacency == "replace-one")


def test_sampling_everyone_is_no_sampling():
    for kind in (PLDAccountant, RDPAccountant):
        full = kind().compose(PoissonSampledEvent(1.0, LaplaceEvent(2.0)), 4)
        assert full.epsilon(1e-5) == kind().compose(LaplaceEvent(2.0), 4).epsilon(1e-5)
        full = kind("replace-one").compose(PoissonSampledEvent(1.0, LaplaceEvent(2.0)), 4)
        assert full.epsilon(1e-5) == kind().compose(LaplaceEvent(1.0), 4).epsilon(1e-5)


@pytest.mark.parametrize("adjacency", ["add-remove", "replace-one"])
def test_nearly_sampling_everyone_is_nearly_that(adjacency):
    nearly = PLDAccountant(adjacency)
    nearly.compose(PoissonSampledEvent(1 - 1e-9, LaplaceEvent(2.0)), 4)
    fully = PLDAccountant(adjacency).compose(PoissonSampledEvent(1.0, LaplaceEvent(2.0)), 4)
    assert nearly.epsilon(1e-3) == pytest.approx(fully.epsilon(1e-3), rel=1e-3)
