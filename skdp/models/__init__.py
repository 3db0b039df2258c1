"""Models that plans train. Plans and defaults use only their protocol.

Names here are not covered by ``docs/policy.md``: they may change in any version.
"""

from skdp.models.linear import LinearModel, LinearProblem, VariationalModel, VariationalProblem
from skdp.models.network import NetworkModel, NetworkProblem, network_scores
from skdp.models.protocol import Model, Problem, ScaledUnits, require, with_class_weights

__all__ = [
    "LinearModel",
    "LinearProblem",
    "Model",
    "NetworkModel",
    "NetworkProblem",
    "Problem",
    "ScaledUnits",
    "VariationalModel",
    "VariationalProblem",
    "network_scores",
    "require",
    "with_class_weights",
]
