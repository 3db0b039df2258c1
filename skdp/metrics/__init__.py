"""Figures of a model's performance on private rows, each with an interval, from one release."""

from skdp.metrics.by_group import PrivateMetricFrame
from skdp.metrics.calibrator import PrivateCalibrator
from skdp.metrics.displays import (
    PrivateCalibrationDisplay,
    PrivateErrorDisplay,
    PrivateRocCurveDisplay,
)
from skdp.metrics.evaluation import PrivateEvaluation
from skdp.metrics.intervals import Figure
from skdp.metrics.regression import PrivateRegressionEvaluation
from skdp.metrics.regression_result import PrivateRegressionResult
from skdp.metrics.result import Point, PrivateEvaluationResult
from skdp.metrics.threshold import PrivateThreshold

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
