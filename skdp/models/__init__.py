"""Models: what a plan trains. Plans and defaults know the protocol alone."""

from skdp.models.class_weights import with_class_weights
from skdp.models.linear import LinearModel, LinearProblem
from skdp.models.network import NetworkModel, NetworkProblem, network_scores
from skdp.models.protocol import Model, Problem, require
from skdp.models.units import ScaledUnits
from skdp.models.variational import VariationalModel, VariationalProblem

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
