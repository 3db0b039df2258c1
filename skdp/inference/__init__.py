"""Odds ratios of private linear models with intervals, from one more release."""

from skdp.inference._evaluation import PrivateInference
from skdp.inference._models import PublicWeights
from skdp.inference._regression import RegressionResult
from skdp.inference._result import InferenceResult

__all__ = ["InferenceResult", "PrivateInference", "PublicWeights", "RegressionResult"]
