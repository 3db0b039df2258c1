"""Mechanisms: the only modules that draw noise or sample rows."""

from skdp.mechanisms.additive import (
    GaussianMechanism,
    gaussian_mechanism,
    laplace_accuracy,
    laplace_mechanism,
)
from skdp.mechanisms.analytic_gaussian import (
    analytic_gaussian_delta,
    analytic_gaussian_epsilon,
    analytic_gaussian_sigma,
    classical_gaussian_sigma,
)
from skdp.mechanisms.contribution import ContributionBound
from skdp.mechanisms.random_stream import RandomStream, resolve_random_state
from skdp.mechanisms.samplers import (
    AllocationSampler,
    PoissonSampler,
    RandomStopping,
    UniformSubsetSampler,
)
from skdp.mechanisms.selection import (
    SparseVector,
    exponential_mechanism,
    permute_and_flip,
    report_noisy_max,
)
from skdp.mechanisms.trace import ReleaseTrace, active_trace, record_releases

__all__ = [
    "AllocationSampler",
    "ContributionBound",
    "GaussianMechanism",
    "PoissonSampler",
    "RandomStopping",
    "RandomStream",
    "ReleaseTrace",
    "SparseVector",
    "UniformSubsetSampler",
    "active_trace",
    "analytic_gaussian_delta",
    "analytic_gaussian_epsilon",
    "analytic_gaussian_sigma",
    "classical_gaussian_sigma",
    "exponential_mechanism",
    "gaussian_mechanism",
    "laplace_accuracy",
    "laplace_mechanism",
    "permute_and_flip",
    "record_releases",
    "report_noisy_max",
    "resolve_random_state",
]
