"""scikit-learn estimators that train under differential privacy."""

from skdp.estimators._dpsgd import DPSGDClassifier
from skdp.estimators._dpsgd_regressor import DPSGDRegressor
from skdp.estimators._grpua import GrpuaLogisticRegression
from skdp.estimators._grpua_mlp import GrpuaMLPClassifier
from skdp.estimators._grpua_svc import GrpuaSVC
from skdp.estimators._huber import GrpuaHuberRegressor, OperaHuberRegressor
from skdp.estimators._linear_regression import PrivateLinearRegression
from skdp.estimators._objective import ObjectivePerturbationLogisticRegression
from skdp.estimators._objective_huber import ObjectivePerturbationHuberRegressor
from skdp.estimators._objective_svc import ObjectivePerturbationSVC
from skdp.estimators._opera import OperaLogisticRegression, OperaSVC
from skdp.estimators._pate import PATEClassifier
from skdp.estimators._ridge import PrivateRidge
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
