"""Step-size schedules of the noisy-gradient methods, in scaled units."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

ScheduleKind = Literal["constant", "inverse", "inverse-sqrt", "linear", "cosine"]


@dataclass(frozen=True)
class LearningRateSchedule:
    """Step sizes as a function of the step number t = 1, 2, ...; none is longer than `cap`.

    ``initial / t`` is for strongly convex losses, ``initial / sqrt(t)`` for convex ones; "linear"
    goes to `final` over `decay_steps` and stays there (Abadi et al. 2016, section 5.2), and so does
    "cosine" along half a wave (Loshchilov and Hutter 2017).
    """

    kind: ScheduleKind
    initial: float
    final: float = 0.0
    decay_steps: int = 1
    cap: float = float("inf")

    def rates(self, first: int, count: int) -> np.ndarray:
        """Return the step sizes of `count` steps from step number `first` (counted from 0)."""
        t = np.arange(first + 1, first + count + 1, dtype=np.float64)
        if self.kind == "constant":
            rates = np.full(count, self.initial)
        elif self.kind == "inverse":
            rates = self.initial / t
        elif self.kind == "inverse-sqrt":
            rates = self.initial / np.sqrt(t)
        else:
            share = np.minimum((t - 1.0) / max(self.decay_steps, 1), 1.0)
            if self.kind == "cosine":
                share = 0.5 - 0.5 * np.cos(np.pi * share)
            rates = self.initial + (self.final - self.initial) * share
        return np.minimum(rates, self.cap)
