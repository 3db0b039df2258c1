"""What a display is given, checked."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from skdp.accounting import Accountant


def check_accountant(accountant: Accountant) -> None:
    """Refuse what is no accountant, and say where fitted models go."""
    if not isinstance(accountant, Accountant):
        raise TypeError(
            f"accountant must be an Accountant that holds a plan, got "
            f"{type(accountant).__name__}; fitted models are drawn by from_estimator."
        )


def whole_numbers(steps: Sequence[int]) -> list[int]:
    """Return numbers of steps as integers, or refuse to round them."""
    found = np.asarray(steps)
    if found.ndim != 1 or found.dtype.kind not in "iuf" or bool((found % 1 != 0).any()):
        raise ValueError(f"steps must be a sequence of whole numbers, got {steps!r}.")
    return [int(count) for count in found]
