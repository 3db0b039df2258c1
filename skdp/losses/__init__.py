"""Losses: values, derivatives and the constants that determine sensitivities.

Objects of these classes can be given to estimators as ``loss=``. Only their constructors are
covered by ``docs/policy.md``; the rest may change in any version.
"""

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
