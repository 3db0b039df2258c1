"""skdp: differentially private empirical-risk-minimisation estimators for scikit-learn."""

from importlib.metadata import version

from skdp.config import config_context, get_config, set_config
from skdp.estimators import (
    DPSGDClassifier,
    GrpuaLogisticRegression,
    GrpuaMLPClassifier,
    GrpuaSVC,
    ObjectivePerturbationLogisticRegression,
    ObjectivePerturbationSVC,
    OperaLogisticRegression,
    OperaSVC,
    PATEClassifier,
    PrivateRidge,
    VariationalLogisticRegression,
)

__version__ = version("skdp")

__all__ = [
    "DPSGDClassifier",
    "GrpuaLogisticRegression",
    "GrpuaMLPClassifier",
    "GrpuaSVC",
    "ObjectivePerturbationLogisticRegression",
    "ObjectivePerturbationSVC",
    "OperaLogisticRegression",
    "OperaSVC",
    "PATEClassifier",
    "PrivateRidge",
    "VariationalLogisticRegression",
    "config_context",
    "get_config",
    "set_config",
]
