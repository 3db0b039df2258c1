"""Figures of a model's performance on private rows, each with an interval, from one release."""

from skdp.metrics.evaluation import PrivateEvaluation
from skdp.metrics.intervals import Figure
from skdp.metrics.result import Point, PrivateEvaluationResult

__all__ = ["Figure", "Point", "PrivateEvaluation", "PrivateEvaluationResult"]
