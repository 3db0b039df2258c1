"""Checks of private estimators, noise and samplers, for users and authors."""

from skdp.testing.laws import check_noise, check_sampler
from skdp.testing.private_estimator import check_private_estimator
from skdp.testing.replay import FrozenStream, ReplayReport, replay_on_neighbour

__all__ = [
    "FrozenStream",
    "ReplayReport",
    "check_noise",
    "check_private_estimator",
    "check_sampler",
    "replay_on_neighbour",
]
