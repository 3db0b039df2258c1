"""skdp: differentially private empirical-risk-minimisation estimators for scikit-learn.

Estimators and subpackages are imported at first use.
"""

from importlib import import_module
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from skdp import accounting as accounting
    from skdp import audit as audit
    from skdp import budget as budget
    from skdp import data as data
    from skdp import datasets as datasets
    from skdp import estimators as estimators
    from skdp import exceptions as exceptions
    from skdp import inspection as inspection
    from skdp import losses as losses
    from skdp import mechanisms as mechanisms
    from skdp import metrics as metrics
    from skdp import model_selection as model_selection
    from skdp import preprocessing as preprocessing
    from skdp import reporting as reporting
    from skdp import statistics as statistics
    from skdp import testing as testing
    from skdp.budget.config import config_context as config_context
    from skdp.budget.config import get_config as get_config
    from skdp.budget.config import set_config as set_config
    from skdp.estimators import (
        DPSGDClassifier,
        DPSGDRegressor,
        GrpuaHuberRegressor,
        GrpuaLogisticRegression,
        GrpuaMLPClassifier,
        GrpuaSVC,
        ObjectivePerturbationHuberRegressor,
        ObjectivePerturbationLogisticRegression,
        ObjectivePerturbationSVC,
        OperaHuberRegressor,
        OperaLogisticRegression,
        OperaSVC,
        PATEClassifier,
        PrivateLinearRegression,
        PrivateRidge,
        VariationalLogisticRegression,
        warm_up,
    )

__version__ = version("skdp")

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
    "config_context",
    "get_config",
    "set_config",
    "warm_up",
]

_SUBPACKAGES = (
    "accounting",
    "audit",
    "budget",
    "data",
    "datasets",
    "estimators",
    "exceptions",
    "inference",
    "inspection",
    "losses",
    "mechanisms",
    "metrics",
    "model_selection",
    "preprocessing",
    "reporting",
    "statistics",
    "testing",
)

if not TYPE_CHECKING:  # which would take any name for one of these

    def __getattr__(name: str) -> Any:
        if name in _SUBPACKAGES:
            return import_module(f"{__name__}.{name}")
        if name not in __all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        home = "budget.config" if name.endswith(("config", "config_context")) else "estimators"
        found = getattr(import_module(f"{__name__}.{home}"), name)
        return globals().setdefault(name, found)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *_SUBPACKAGES})
