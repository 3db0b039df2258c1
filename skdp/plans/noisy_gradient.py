"""Plan shared by all noisy-gradient methods: sampling, noise, clipping, schedule.

At each step a batch of rows is drawn and the gradients of its rows are summed. Noise is added to
the sum, which is divided by the *public* expected batch size. Step size, momentum, projection and
averaging are post-processing of the noisy sums. Usually every iterate is paid for; a plan that
releases only its last iterate may pay for that one only. Proofs:
``docs/proofs/gradient_perturbation.md``, ``docs/proofs/dpsgd.md``, ``docs/proofs/hidden_state.md``.

Adaptive clipping follows Andrew, Thakkar, McMahan and Ramaswamy (2021), with one noise vector for
the sum and for the count of clipped gradients. Each record adds a vector of norm at most 1, in
units of the clipping norm. It consists of the clipped gradient times ``sqrt(1 - SHARE)``, and of
``sqrt(SHARE)`` if the gradient was clipped, else 0. Proof: Theorem 3 of
``docs/proofs/networks.md``.

Lengths and step sizes are in scaled units; `batch_size` and `max_iter` are as the user gave them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from skdp.accounting import (
    Event,
    GaussianEvent,
    LastIterateEvent,
    PoissonSampledEvent,
    RandomAllocationEvent,
    RepeatedEvent,
    UniformSampledEvent,
)
from skdp.base.parameters import LearningRate, NoiseCalibration, StepRule, StepSolver
from skdp.mechanisms.contribution import ROUND_UP, Adjacency, ContributionBound
from skdp.mechanisms.random_stream import RandomStream
from skdp.mechanisms.release import Release
from skdp.mechanisms.samplers import AllocationSampler, PoissonSampler, UniformSubsetSampler
from skdp.models import Model
from skdp.plans.protocol import FitPlan
from skdp.solvers import UpdateRule

# Share of gradients that are not to be cut: where many are, probabilities get too close to 0 and 1.
QUANTILE = 0.8
RATE = 0.2  # of change: the norm's logarithm moves by at most that in a step, but noise
SHARE = 0.01  # of the signal's square that the count gets
# The norm stays within a factor of 10,000 of the one that it starts from, which is one of these:
# all are norms to which gradients can be clipped.
_REACH = math.log(1e4)
_STARTS = (1.001e-6, 0.999e6)
MOST_ROWS = 10**7
_ROUNDING = 1.0 - 1e-8  # far above errors of both coordinates, in sums of so many records at most


def adaptive_contribution(start: float) -> ContributionBound:
    """Return one record's contribution to a release in units of the norm, which begins at `start`.

    Two records are farthest apart if their gradients are opposite, both have the clipping norm, and
    one of them was clipped.
    """
    if not _STARTS[0] <= start <= _STARTS[1]:
        raise ValueError(f"max_grad_norm must be in {_STARTS} if it adapts, got {start:g}.")
    return ContributionBound(
        1.0,
        math.sqrt(4.0 - 3.0 * SHARE) * ROUND_UP,
        "in units of the clipping norm, a record adds its clipped gradient, and a mark if it was "
        f"clipped: together a vector of norm at most 1. The clipping norm starts at {start:.6g} "
        "(scaled units) and follows noisy counts of these marks",
    )


def _lengths() -> tuple[float, float]:
    """Return the length of the longest gradient in a release, and the size of a mark."""
    return math.sqrt(1.0 - SHARE) * _ROUNDING, math.sqrt(SHARE) * _ROUNDING


def pack_sum(total: np.ndarray, n_cut: int, clip: float) -> np.ndarray:
    """Return a sum of clipped gradients and the number of clipped ones as one vector."""
    length, mark = _lengths()
    return np.append(total.ravel() * (length / clip), mark * n_cut)


def unpack_sum(
    released: np.ndarray, clip: float, start: float, lot_size: float
) -> tuple[np.ndarray, float]:
    """Return the noisy sum of gradients in units where `start` is the norm, and the next norm.

    In these units the noise is the same in all steps, as step sizes expect. The next norm follows
    from the noisy share of clipped gradients in a batch of the public expected size.
    """
    length, mark = _lengths()
    total, share_cut = released[:-1] * (start / length), released[-1] / mark / lot_size
    moved = math.log(clip / start) + RATE * (share_cut - (1.0 - QUANTILE))
    return total, start * math.exp(min(max(moved, -_REACH), _REACH))


ScheduleKind = Literal["constant", "inverse", "inverse-sqrt", "linear", "cosine"]


@dataclass(frozen=True)
class LearningRateSchedule:
    """Step sizes as a function of the step number t = 1, 2, ...; none is longer than `cap`.

    ``initial / t`` suits strongly convex losses, and ``initial / sqrt(t)`` convex ones. "linear"
    falls to `final` over `decay_steps` and stays there (Abadi et al. 2016, section 5.2). "cosine"
    does so along half a wave (Loshchilov and Hutter 2017).
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


Sampling = Literal["full", "poisson", "uniform", "allocation"]
Sampler = PoissonSampler | UniformSubsetSampler | AllocationSampler

# Weights are kept in this ball on every table: far beyond any use, and far from overflow.
LARGEST_WEIGHTS = 1e100


@dataclass(frozen=True)
class Lots:
    """Sampling of the rows of each step: all, each independently, or a subset of fixed size.

    With "allocation", each row is in one step of each epoch.
    """

    sampling: Sampling
    n_rows: int
    size: float  # expected, and the public divisor; a whole number for "uniform"

    @property
    def sample_rate(self) -> float:
        """Probability that a row is in a batch."""
        return 1.0 if self.sampling == "full" else self.size / self.n_rows

    def event(self, noise_multiplier: float, sensitivity_ratio: float) -> Event:
        """Return the event of one step, with noise in units of the bound on one record's norm.

        The sensitivity of the full sum (1 to 2) has the same unit; it matters for full batches
        only.
        """
        if self.sampling == "allocation":
            raise ValueError("Only an epoch of random allocation has an event, not a single step.")
        if self.sampling == "full":
            return GaussianEvent(noise_multiplier / sensitivity_ratio)
        step = GaussianEvent(noise_multiplier)
        if self.sampling == "poisson":
            return PoissonSampledEvent(self.sample_rate, step)
        return UniformSampledEvent(int(self.size), self.n_rows, step)

    @property
    def epoch(self) -> int:
        """Number of steps that are sampled, and accounted for, together."""
        return round(self.n_rows / self.size) if self.sampling == "allocation" else 1

    def run_event(self, noise_multiplier: float, sensitivity_ratio: float, steps: int) -> Event:
        """Return the event of a number of steps, which must be whole epochs."""
        if steps % self.epoch:
            raise ValueError(
                f"The number of steps must be a multiple of {self.epoch}, one epoch; got {steps}."
            )
        if self.sampling == "allocation":
            step: Event = RandomAllocationEvent(self.epoch, GaussianEvent(noise_multiplier))
        else:
            step = self.event(noise_multiplier, sensitivity_ratio)
        return RepeatedEvent(step, steps // self.epoch)

    def sampler(self, stream: RandomStream) -> Sampler | None:
        """Return the sampler of these batches; None if every batch contains all rows."""
        if self.sampling == "full":
            return None
        if self.sampling == "poisson":
            return PoissonSampler(self.n_rows, self.sample_rate, stream)
        if self.sampling == "allocation":
            return AllocationSampler(self.n_rows, self.epoch, stream)
        return UniformSubsetSampler(self.n_rows, int(self.size), stream)


@dataclass(frozen=True)
class Execution:
    """Settings of time and memory, which no accounting reads."""

    physical_batch_size: int | None = None  # rows handled at once, at most, or a few hundred


@dataclass(frozen=True)
class NoisyGradientPlan(FitPlan):
    """Everything that must agree in one fit by noisy gradients."""

    model: Model
    adjacency: Adjacency
    lots: Lots
    steps: int  # the same for every data set
    bound: ContributionBound  # one record's part in the sum
    # Norm to which each record's gradient is clipped, at first if it adapts; inf where the loss
    # bounds it.
    clip: float
    sigma: float  # standard deviation of the noise on the *sum*
    schedule: LearningRateSchedule
    rule: UpdateRule
    # Released is the mean of the iterates from this step, counted from 0, on. One that is k steps
    # older than the last has the weight average_decay**k.
    average_from: int
    average_decay: float = 1.0
    # Whether the clipping norm changes; sums, `bound` and `sigma` are in units of that norm then.
    adaptive: bool = False
    # Whether the event relies on earlier iterates staying hidden.
    last_iterate_only: bool = False
    # Plans that differ only here are equal.
    execution: Execution = field(default=Execution(), compare=False)

    grid = 0.0

    def __post_init__(self) -> None:
        plain = self.rule.code == 0.0 and self.rule.momentum == 0.0 and math.isinf(self.clip)
        constant = self.schedule.kind == "constant" and math.isinf(self.schedule.cap)
        if self.last_iterate_only and not (
            plain and constant and self.average_from == self.steps - 1
        ):
            raise ValueError(
                "last_iterate_only needs plain steps of constant size without momentum, clipping "
                "or averaging."
            )
        if not self.adaptive:
            return
        if self.model.heaviest != 1.0 or self.model.rows_per_unit != 1:
            raise ValueError(
                "Adaptive clipping is proved for one row of weight 1 per record: give a fixed "
                "max_grad_norm, or no class_weight and unit_weighting='random-row'."
            )
        if "counts cut gradients" not in self.model.facts or self.model.n_parts != 1:
            raise ValueError(
                "Adaptive clipping needs a model of one problem that counts clipped gradients, "
                f"such as a network, got {self.model.name}. Give a fixed max_grad_norm."
            )
        if self.lots.n_rows > MOST_ROWS:
            raise ValueError(f"Adaptive clipping is proved for {MOST_ROWS:.0e} rows at most.")
        if self.bound != adaptive_contribution(self.clip):
            raise ValueError("The bound is not that of this adaptive clipping norm.")

    @property
    def accountant(self) -> str:
        """Name of the accountant that bounds the event."""
        return "hidden-state" if self.last_iterate_only else "pld"

    @property
    def diameter(self) -> float | None:
        """Diameter of the set of projected iterates; None if the accounting does not use it."""
        if self.rule.radius >= LARGEST_WEIGHTS:
            return None
        # Problems that are solved side by side have a ball each.
        return 2.0 * self.rule.radius * math.sqrt(self.model.n_parts)

    @property
    def sensitivity(self) -> float:
        """L2 sensitivity of one step's sum when the changed record is in the batch."""
        return self.bound.sensitivity(self.adjacency)

    @property
    def noise_multiplier(self) -> float:
        """Noise on the sum over the bound on one record's norm."""
        return self.sigma / self.bound.norm

    @property
    def release(self) -> Release:
        """The noisy sums of all steps."""
        return Release("gradient sum", self.sensitivity, scale=self.sigma, times=self.steps)

    @property
    def own_event(self) -> Event:
        """The descent, for the accountants: all steps, or the last iterate only."""
        ratio = self.sensitivity / self.bound.norm
        if not self.last_iterate_only:
            return self.lots.run_event(self.noise_multiplier, ratio, self.steps)
        step = self.lots.event(self.noise_multiplier, ratio)
        penalty = self.rule.penalty
        return LastIterateEvent.from_units(
            step,
            self.steps,
            step_size=self.schedule.initial,
            smoothness=self.model.smoothness + penalty,
            strong_convexity=penalty,
            diameter=self.diameter,
            noise=self.sigma / self.rule.divisor,
            dataset_size=self.lots.n_rows if self.lots.sampling == "poisson" else None,
        )

    def averaging_weights(self, first: int, count: int) -> np.ndarray:
        """Return the weights of `count` iterates from step `first` in the released average."""
        steps = np.arange(first, first + count)
        decay = self.average_decay ** (self.steps - 1.0 - steps)
        return np.where(steps >= self.average_from, decay, 0.0)


def clipped_contribution(model: Model, clip: float) -> ContributionBound:
    """Bound one record's clipped gradient times its weight."""
    bound = ContributionBound.from_clipping(clip)
    if model.heaviest == 1.0:
        return bound
    norm = model.heaviest * clip * ROUND_UP
    reason = f"{bound.reason} and then multiplied by its weight, {model.heaviest:.6g} at most"
    return ContributionBound(norm, 2.0 * norm, reason)


def contribution_in_ball(model: Model, radius: float) -> ContributionBound:
    """Bound one record's gradient at weights inside a ball around zero.

    At short weights, gradients of two records cannot be both long and opposite.
    """
    if not radius >= 0.0:
        raise ValueError(f"{model.name}: the bound on the norm of weights is {radius}.")
    norm = min(model.zero_out_gap(radius), model.lipschitz)
    gap = min(model.gradient_gap(radius), 2.0 * norm)
    return ContributionBound(
        norm,
        gap,
        f"gradients are bounded by {norm:.6g}, and {gap:.6g} apart, on rows of the public norm at "
        f"weights in the ball of radius {radius:.6g} (scaled units)",
    )


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
