"""Performance metrics of a model on private rows, with intervals, from one release."""

from skdp.metrics.displays import (
    PrivateCalibrationDisplay,
    PrivateErrorDisplay,
    PrivateMetricFrame,
    PrivateRocCurveDisplay,
)
from skdp.metrics.evaluation import PrivateEvaluation
from skdp.metrics.figures import Figure
from skdp.metrics.regression import PrivateRegressionEvaluation
from skdp.metrics.regression_result import PrivateRegressionResult
from skdp.metrics.result import Point, PrivateEvaluationResult
from skdp.metrics.threshold import PrivateCalibrator, PrivateThreshold

__all__ = [
    "Figure",
    "Point",
    "PrivateCalibrationDisplay",
    "PrivateCalibrator",
    "PrivateErrorDisplay",
    "PrivateEvaluation",
    "PrivateEvaluationResult",
    "PrivateMetricFrame",
    "PrivateRegressionEvaluation",
    "PrivateRegressionResult",
    "PrivateRocCurveDisplay",
    "PrivateThreshold",
]
