"""scikit-learn estimators that train under differential privacy."""

from skdp.estimators._dpsgd import DPSGDClassifier, DPSGDRegressor
from skdp.estimators._grpua import GrpuaLogisticRegression, GrpuaMLPClassifier, GrpuaSVC
from skdp.estimators._least_squares import PrivateLinearRegression, PrivateRidge
from skdp.estimators._objective import (
    ObjectivePerturbationLogisticRegression,
    ObjectivePerturbationSVC,
)
from skdp.estimators._opera import OperaLogisticRegression, OperaSVC
from skdp.estimators._pate import PATEClassifier
from skdp.estimators._regressors import (
    GrpuaHuberRegressor,
    ObjectivePerturbationHuberRegressor,
    OperaHuberRegressor,
)
from skdp.estimators._variational import VariationalLogisticRegression
from skdp.estimators._warm_up import warm_up

__all__ = [
    "DPSGDClassifier",
    "DPSGDRegressor",
    "GrpuaHuberRegressor",
    "GrpuaLogisticRegression",
    "GrpuaMLPClassifier",
    "GrpuaSVC",
    "ObjectivePerturbationHuberRegressor",
    "ObjectivePerturbationLogisticRegression",
    "ObjectivePerturbationSVC",
    "OperaHuberRegressor",
    "OperaLogisticRegression",
    "OperaSVC",
    "PATEClassifier",
    "PrivateLinearRegression",
    "PrivateRidge",
    "VariationalLogisticRegression",
    "warm_up",
]
