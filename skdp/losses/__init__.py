"""Losses: values, derivatives and the constants that sensitivities are made of.

Objects of these classes can be given to estimators as ``loss=``. What they have beside their
constructors is outside the promise of ``docs/policy.md``: it may change in any version.
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
