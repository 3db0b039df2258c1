"""Losses: values, derivatives and the constants that sensitivities are made of."""

from skdp.losses.classification import LogisticLoss, SmoothedHingeLoss, SoftmaxLoss
from skdp.losses.real import (
    ClippedSquaredLoss,
    HuberLoss,
    PoissonLoss,
    PseudoHuberLoss,
    QuantileLoss,
)
from skdp.losses.wrapped import ClippedLoss, OneVsRestLoss

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
