"""Noisy gradient descent that releases only its last iterate."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Self

from skdp.accounting.checks import check_real, store_integer, store_number
from skdp.accounting.events.base import Event, check_event
from skdp.accounting.events.noise import GaussianEvent
from skdp.accounting.events.samples import PoissonSampledEvent, UniformSampledEvent
from skdp.base.parameters import plain_arguments

_OWNER = "LastIterateEvent"
_SMALLEST_GAP = 1e-290  # contractions closer to 1 count as none
_TWO = 2.0 * (1.0 - 1e-15)  # twos are subtracted from with their rounding errors


@dataclass(frozen=True)
class LastIterateEvent(Event):
    """Noisy projected gradient descent that releases only its last iterate.

    The start does not depend on the data. Each step subtracts the step size times the noisy
    gradient of the objective on its batch, and may project onto a convex set. All steps have the
    same step size and noise. No other iterate, no average of iterates and no loss is released, and
    the number of steps does not depend on the data.

    Parameters
    ----------
    step : Event
        Event of one step as if its noisy gradient were released: a `GaussianEvent`, or a
        `PoissonSampledEvent` or `UniformSampledEvent` of one. A `GaussianEvent` stands for a step
        on all records, or on a batch of a fixed round of batches.
    steps : int
        Number of steps, at least 1.
    smoothness : float
        Step size times the smoothness M of the objective, in [0, 2]. Under Poisson sampling, M is
        that of a batch of the expected size.
    strong_convexity : float, default=0.0
        Step size times the strong convexity m of the objective on every batch, in [0,
        `smoothness`]. For sampled batches it is the part to which no record contributes, such as an
        L2 penalty.
    diameter : float or None, default=None
        Diameter of the set onto which iterates are projected, over the standard deviation of the
        noise of one step in each coordinate of the iterate. None without projection.
    batches : int, default=1
        Number of disjoint batches, visited in a fixed order that does not depend on the data; 1 if
        every step uses all records or samples.
    dataset_size : int or None, default=None
        Public number of records. Required under Poisson sampling, where the sum is divided by the
        public expected batch size.

    Notes
    -----
    In general, per-example clipping is not covered, as a clipped gradient need not be the gradient
    of a convex function. Momentum, Adam and steps of varying size are not covered either.

    Examples
    --------
    >>> from skdp.accounting import GaussianEvent, HiddenStateAccountant, LastIterateEvent
    >>> step = GaussianEvent(100.0)
    >>> run = LastIterateEvent(step, 10**6, smoothness=0.25, strong_convexity=2e-3)
    >>> round(HiddenStateAccountant().compose(run).epsilon(1e-5), 3)
    1.199
    """

    step: Event
    steps: int
    smoothness: float
    strong_convexity: float = 0.0
    diameter: float | None = None
    batches: int = 1
    dataset_size: int | None = None

    def __post_init__(self) -> None:
        self._check_step()
        store_integer(self, "steps", 1)
        store_integer(self, "batches", 1)
        store_number(self, "smoothness")
        store_number(self, "strong_convexity")
        smoothness, convexity = self.smoothness, self.strong_convexity
        if not 0.0 <= smoothness <= 2.0:
            raise ValueError(
                f"{_OWNER}: smoothness, the step size times the smoothness constant, must lie in "
                f"[0, 2], got {smoothness!r}; reduce the step size."
            )
        if not 0.0 <= convexity <= smoothness * (1.0 + 1e-15):
            raise ValueError(
                f"{_OWNER}: strong_convexity must lie in [0, smoothness={smoothness!r}], got "
                f"{convexity!r}."
            )
        if self.diameter is not None:
            store_number(self, "diameter", "> 0, or None without projection")
        if self.batches > 1 and not isinstance(self.step, GaussianEvent):
            raise ValueError(
                f"{_OWNER}: batches={self.batches} is for a fixed round of batches, which are not "
                "sampled; pass a GaussianEvent as step, or batches=1."
            )

    def _check_step(self) -> None:
        check_event(_OWNER, "step", self.step)
        sampled = isinstance(self.step, PoissonSampledEvent | UniformSampledEvent)
        inner = self.step.event if sampled else self.step  # type: ignore[attr-defined]
        if not isinstance(inner, GaussianEvent):
            raise ValueError(
                f"{_OWNER}: step must be a GaussianEvent, or a PoissonSampledEvent or "
                f"UniformSampledEvent of one, got {self.step!r}."
            )
        if isinstance(self.step, PoissonSampledEvent):
            if self.dataset_size is None:
                raise ValueError(
                    f"{_OWNER}: dataset_size must be given for Poisson batches, whose actual sizes "
                    "vary around sample_rate * dataset_size."
                )
            store_integer(self, "dataset_size", 1)
        elif self.dataset_size is not None:
            raise ValueError(f"{_OWNER}: dataset_size is for Poisson batches only; leave it out.")

    @classmethod
    @plain_arguments
    def from_units(
        cls,
        step: Event,
        steps: int,
        *,
        step_size: float,
        smoothness: float,
        strong_convexity: float = 0.0,
        diameter: float | None = None,
        noise: float | None = None,
        batches: int = 1,
        dataset_size: int | None = None,
    ) -> Self:
        """Return the event for lengths and constants in the units of the iterates.

        Parameters
        ----------
        step, steps, batches, dataset_size
            As for the class.
        step_size : float
            Step size, positive.
        smoothness, strong_convexity : float
            Constants M and m of the objective.
        diameter : float or None, default=None
            Diameter of the set onto which iterates are projected.
        noise : float or None, default=None
            Standard deviation of the noise on the mean gradient; required with a diameter.
        """
        step_size = check_real(_OWNER, "step_size", step_size)
        smoothness = check_real(_OWNER, "smoothness", smoothness)
        strong_convexity = check_real(_OWNER, "strong_convexity", strong_convexity)
        if not (math.isfinite(step_size) and step_size > 0.0):
            raise ValueError(f"{_OWNER}: step_size must be a finite number > 0, got {step_size!r}.")
        scaled = None
        if diameter is not None:
            diameter = check_real(_OWNER, "diameter", diameter)
            if noise is None or not check_real(_OWNER, "noise", noise) > 0.0:
                raise ValueError(
                    f"{_OWNER}: noise on the mean gradient must be positive if diameter is given, "
                    f"got {noise!r}."
                )
            scaled = diameter / (step_size * noise)
        # A step of exactly 2 / M is allowed: rounding must not push the product over 2.
        product = step_size * smoothness
        product = 2.0 if 2.0 < product <= 2.0 * (1.0 + 4e-16) else product
        return cls(
            step,
            steps,
            smoothness=product,
            strong_convexity=min(step_size * strong_convexity, product),
            diameter=scaled,
            batches=batches,
            dataset_size=dataset_size,
        )

    @property
    def contraction_gap(self) -> float:
        """One minus the contraction factor of a step on a batch of nominal size."""
        gap = min(self.strong_convexity, max(0.0, _TWO - self.smoothness))
        return gap if gap > _SMALLEST_GAP else 0.0
