"""What a user may choose of a noisy-gradient fit; None leaves a choice to the public rules.

Lengths and step sizes are in scaled units; `batch_size` and `max_iter` are as the user gave them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from skdp.choices import LearningRate, NoiseCalibration, StepRule, StepSolver
from skdp.plans.noisy_gradient import Sampling

Averaging = bool | float | Literal["ema"]


@dataclass(frozen=True)
class GradientPerturbationChoices:
    """The user's part of a plan of gradient perturbation."""

    penalty: float | None
    batch_size: int | None
    max_iter: int | None
    step_sizes: StepRule
    initial_step: float | None
    radius: float | None
    average: Averaging
    sampling: Sampling
    calibration: NoiseCalibration
    max_grad_norm: float | None = None  # None clips nothing that a bound does not hold for


@dataclass(frozen=True)
class DPSGDChoices:
    """The user's part of a plan of DP-SGD."""

    penalty: float | None
    noise_multiplier: float | None
    max_grad_norm: float | None
    batch_size: int | None
    max_iter: int | None
    solver: StepSolver
    momentum: float | None
    beta_1: float
    beta_2: float
    learning_rate: LearningRate
    initial_step: float | None
    final_share: float
    decay_share: float
    average: Averaging
    sampling: Sampling = "poisson"
    adaptive: bool = False  # whether the clipping norm changes; max_grad_norm is where it starts
