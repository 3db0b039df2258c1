"""Odds ratios of private linear models with intervals, from one more release."""

from skdp.inference._classes import ClassResults
from skdp.inference._evaluation import PrivateInference
from skdp.inference._models import PublicWeights
from skdp.inference._regression import RegressionResult
from skdp.inference._result import InferenceResult

__all__ = [
    "ClassResults",
    "InferenceResult",
    "PrivateInference",
    "PublicWeights",
    "RegressionResult",
]
