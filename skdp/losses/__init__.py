"""Losses: values, derivatives and the constants that sensitivities are made of."""

from skdp.losses.clipped import ClippedLoss
from skdp.losses.logistic import LogisticLoss
from skdp.losses.one_vs_rest import OneVsRestLoss
from skdp.losses.real import (
    ClippedSquaredLoss,
    HuberLoss,
    PoissonLoss,
    PseudoHuberLoss,
    QuantileLoss,
)
from skdp.losses.smoothed_hinge import SmoothedHingeLoss
from skdp.losses.softmax import SoftmaxLoss

__all__ = [
    "ClippedLoss",
    "ClippedSquaredLoss",
    "HuberLoss",
    "LogisticLoss",
    "OneVsRestLoss",
    "PoissonLoss",
    "PseudoHuberLoss",
    "QuantileLoss",
    "SmoothedHingeLoss",
    "SoftmaxLoss",
]
