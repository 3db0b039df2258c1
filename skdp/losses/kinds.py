"""Which losses the compiled kernels compute, and the numbers that they know them by."""

from __future__ import annotations

from typing import Any

from skdp.losses.clipped import ClippedLoss
from skdp.losses.logistic import LogisticLoss
from skdp.losses.smoothed_hinge import SmoothedHingeLoss
from skdp.losses.softmax import SoftmaxLoss

LOGISTIC, SMOOTHED_HINGE, SOFTMAX = 0, 1, 2

KINDS: dict[type, int] = {
    LogisticLoss: LOGISTIC,
    SmoothedHingeLoss: SMOOTHED_HINGE,
    SoftmaxLoss: SOFTMAX,
}


def kernel_kind(loss: Any) -> int:
    """Return the number by which kernels know a loss, clipped or not; refuse any other.

    Subclasses of the known ones are others: kernels would compute their base.
    """
    known = type(loss.unclipped if type(loss) is ClippedLoss else loss)
    if known not in KINDS:
        names = ", ".join(cls.__name__ for cls in KINDS)
        raise TypeError(
            f"{known.__name__} has no compiled kernel: solvers compute {names}, clipped or not, "
            "and no subclass of these."
        )
    return KINDS[known]
