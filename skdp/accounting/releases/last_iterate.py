"""The event of a noisy gradient descent that releases its last iterate alone.

A convex, smooth objective makes each step non-expansive, a penalty makes it a contraction and a
projection bounds how far two runs can be apart. Whoever sees the last iterate only then learns
less than all noisy gradients together tell: what early steps leaked is forgotten (Altschuler and
Talwar, 2022; Bok, Su and Altschuler, 2024). Proofs: ``docs/proofs/hidden_state.md``.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Self

from skdp.accounting.checks import check_integer, check_real
from skdp.accounting.events import (
    Event,
    GaussianEvent,
    PoissonSampledEvent,
    UniformSampledEvent,
    check_event,
)
from skdp.parameters import plain_arguments

_OWNER = "LastIterateEvent"
_ROUND_UP = 1.0 + 1e-12  # far above the rounding errors of the closed forms below
_SMALLEST_GAP = 1e-290  # contractions closer to 1 are taken for none
_TWO = 2.0 * (1.0 - 1e-15)  # twos are subtracted from with their rounding errors


@dataclass(frozen=True)
class LastIterateEvent(Event):
    """Noisy projected gradient descent of which nothing but the last iterate is released.

    From a point that does not depend on the data, each step subtracts the step size times the
    noisy gradient of the objective on that step's batch and projects onto a convex set (or
    nothing). Step size and noise are the same at all steps. No iterate but the last one, no
    average of iterates and no loss leaves the run, and its length does not depend on the data.

    Parameters
    ----------
    step : Event
        What one step would cost if its noisy gradient were released: a `GaussianEvent` (all
        records, or a batch of a fixed round of batches), or a `PoissonSampledEvent` or
        `UniformSampledEvent` of one.
    steps : int
        Number of steps, at least 1.
    smoothness : float
        Step size times the smoothness M of the objective, in [0, 2]. Under Poisson sampling, M of
        a batch of the expected size.
    strong_convexity : float, default=0.0
        Step size times the strong convexity m of the objective on every batch, in
        [0, `smoothness`]. For sampled batches it is the part that no record contributes to, such
        as an L2 penalty.
    diameter : float or None, default=None
        Diameter of the set that iterates are projected onto, over the standard deviation of the
        noise that one step adds to each coordinate of the iterate; None without projection.
    batches : int, default=1
        Number of disjoint batches that are visited in an order which does not depend on the data,
        always the same; 1 if every step reads all records or samples.
    dataset_size : int or None, default=None
        Public number of records; needed under Poisson sampling, where the sum is divided by the
        public expected batch size.

    Raises
    ------
    ValueError, TypeError
        If a parameter lies outside its range.

    Notes
    -----
    Per-example clipping is not covered in general, since a clipped gradient need not be the
    gradient of a convex function; nor are momentum, Adam, or steps of varying size.

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
        object.__setattr__(self, "steps", check_integer(_OWNER, "steps", self.steps, 1))
        object.__setattr__(self, "batches", check_integer(_OWNER, "batches", self.batches, 1))
        smoothness = check_real(_OWNER, "smoothness", self.smoothness)
        if not 0.0 <= smoothness <= 2.0:
            raise ValueError(
                f"{_OWNER}: smoothness, the step size times the smoothness constant, must lie in "
                f"[0, 2], got {smoothness!r}: longer steps can drive iterates apart. Shorten them."
            )
        object.__setattr__(self, "smoothness", smoothness)
        convexity = check_real(_OWNER, "strong_convexity", self.strong_convexity)
        if not 0.0 <= convexity <= smoothness * (1.0 + 1e-15):
            raise ValueError(
                f"{_OWNER}: strong_convexity must lie in [0, smoothness={smoothness!r}], got "
                f"{convexity!r}."
            )
        object.__setattr__(self, "strong_convexity", convexity)
        if self.diameter is not None:
            diameter = check_real(_OWNER, "diameter", self.diameter)
            if not (math.isfinite(diameter) and diameter > 0.0):
                raise ValueError(
                    f"{_OWNER}: diameter must be a finite number > 0, or None without projection; "
                    f"got {diameter!r}."
                )
            object.__setattr__(self, "diameter", diameter)
        if self.batches > 1 and not isinstance(self.step, GaussianEvent):
            raise ValueError(
                f"{_OWNER}: batches={self.batches} stands for a fixed round of batches, which are "
                "not sampled: give a GaussianEvent as step, or batches=1."
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
            size = check_integer(_OWNER, "dataset_size", self.dataset_size, 1)
            object.__setattr__(self, "dataset_size", size)
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
        """Describe a run by lengths and constants in the units of its iterates.

        Parameters
        ----------
        step, steps, batches, dataset_size
            As for the class.
        step_size : float
            Step size, positive.
        smoothness, strong_convexity : float
            Constants M and m of the objective.
        diameter : float or None, default=None
            Diameter of the set that iterates are projected onto.
        noise : float or None, default=None
            Standard deviation of the noise on the mean gradient; needed with a diameter.

        Returns
        -------
        LastIterateEvent
            The event.
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
                    f"{_OWNER}: noise on the mean gradient must be given, positive, with a "
                    f"diameter; got {noise!r}."
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
        """One minus the factor by which a step on a batch of nominal size contracts distances."""
        gap = min(self.strong_convexity, max(0.0, _TWO - self.smoothness))
        return gap if gap > _SMALLEST_GAP else 0.0

    def mu(self, shift: float) -> float:
        """Return the Gaussian-DP parameter of a run whose batches are not sampled.

        Parameters
        ----------
        shift : float
            The Gaussian-DP parameter of one step that reads the changed record.

        Returns
        -------
        float
            An upper bound; exact for a quadratic objective of curvature m whose step size is at
            most ``2 / (M + m)``.
        """
        if self.batches > 1:
            return _cyclic_mu(shift, -(-self.steps // self.batches), self.batches, self)
        return _full_batch_mu(shift, self)


def power(gap: float, exponent: int) -> tuple[float, float]:
    """Return ``c^k`` and ``1 - c^k`` for ``c = 1 - gap``, both without cancellation.

    Parameters
    ----------
    gap : float
        In [0, 1].
    exponent : int
        k, at least 0.

    Returns
    -------
    tuple of float
        The power and its complement.
    """
    if gap == 0.0 or exponent == 0:
        return 1.0, 0.0
    if gap >= 1.0:
        return 0.0, 1.0
    logarithm = exponent * math.log1p(-gap)
    return math.exp(logarithm), -math.expm1(logarithm)


def sum_of_powers(gap: float, count: int) -> float:
    """Return ``1 + c + ... + c^(count - 1)`` for ``c = 1 - gap``."""
    return float(count) if gap == 0.0 else power(gap, count)[1] / gap


def squeeze(gap: float, count: int) -> float:
    """Return ``1 / (1 + c^2 + ... + c^(2 count - 2))`` for ``c = 1 - gap``.

    A distance of 1, left at the end of `count` contracting steps with unit noise, can be made up
    for by these steps at the expense of this squared Gaussian-DP parameter.
    """
    return 1.0 / count if gap == 0.0 else gap * (2.0 - gap) / power(gap, 2 * count)[1]


def best_window(
    cost: Callable[[int], float], guess: float, longest: int, *, around: int = 2
) -> float:
    """Return the least cost of the windows near a guess; any window gives a valid bound.

    Parameters
    ----------
    cost : callable
        Maps a number of last steps to a bound.
    guess : float
        Where the cost of real arguments is least; perhaps infinite.
    longest : int
        The longest window.
    around : int, default=2
        How many integers on either side are tried.

    Returns
    -------
    float
        The least cost tried; infinite if there is no window.
    """
    if longest < 1:
        return math.inf
    middle = int(min(max(guess, 1.0), float(longest)))
    tried = {min(max(middle + k, 1), longest) for k in range(-around, around + 1)}
    return min(cost(j) for j in tried)


def _full_batch_mu(shift: float, run: LastIterateEvent) -> float:
    gap, steps = run.contraction_gap, run.steps
    bound = shift * math.sqrt(_from_the_start(gap, steps))
    if run.diameter is not None:
        diameter = run.diameter

        def cost(window: int) -> float:
            moved = power(gap, window)[0] * diameter + shift * sum_of_powers(gap, window)
            return moved * math.sqrt(squeeze(gap, window))

        bound = min(bound, best_window(cost, _real_window(shift, diameter, gap), steps - 1))
    return bound * _ROUND_UP


def _from_the_start(gap: float, steps: int) -> float:
    """Return ``(1 - c^t) / (1 + c^t) * (1 + c) / (1 - c)``, which is t where c = 1."""
    if gap == 0.0:
        return float(steps)
    left, gone = power(gap, steps)
    return min(float(steps), gone / (1.0 + left) * (2.0 - gap) / gap)


def _real_window(shift: float, diameter: float, gap: float) -> float:
    """Return the real window at which the bound of a projected run is least."""
    if gap == 0.0:
        return diameter / shift
    # In q = c^j the bound is least at q = 1 - diameter * gap / shift, or at the longest window.
    share = diameter * gap / shift
    return math.log1p(-share) / math.log1p(-gap) if share < 1.0 and gap < 1.0 else math.inf


def _cyclic_mu(shift: float, epochs: int, batches: int, run: LastIterateEvent) -> float:
    gap = run.contraction_gap
    if gap == 0.0:
        squares = 1.0 + (epochs - 1) / batches
    else:
        left, gone = power(gap, batches * (epochs - 1))
        weight = power(gap, batches - 1)[0] / sum_of_powers(gap, batches)
        squares = 1.0 + weight**2 * (2.0 - gap) / gap * gone / (1.0 + left)
    return shift * math.sqrt(min(squares, float(epochs))) * _ROUND_UP
