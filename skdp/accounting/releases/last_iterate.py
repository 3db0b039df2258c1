"""The last iterate of a noisy gradient descent, which forgets the leaks of early steps.

At the start of the last ``j`` steps, two runs have a bounded distance. The noise of these steps is
split: one share hides the changed record in each sampled batch, the other closes the distance. A
`Window` therefore stands for ``j`` sampled Gaussian releases and one unsampled one. Every window
gives a valid bound; Renyi divergences on a logarithmic grid only rank them. Proofs: Theorems 4 to 6
of ``docs/proofs/hidden_state.md``, after Altschuler and Talwar (2022) and Bok, Su and Altschuler
(2024).
"""

from __future__ import annotations

import math
from dataclasses import replace
from functools import lru_cache
from typing import NamedTuple, Self

import numpy as np

from skdp.accounting.analysis import SMALLEST, Analysis, Domination, analysis_of, card_of
from skdp.accounting.events import (
    ComposedEvent,
    Event,
    GaussianEvent,
    LastIterateEvent,
    PoissonSampledEvent,
    RepeatedEvent,
    UniformSampledEvent,
)
from skdp.accounting.numerics.arithmetic import Array, power, squeeze, sum_of_powers
from skdp.accounting.numerics.counts import oversize_probability
from skdp.base.parameters import Adjacency

_ROUND_UP = 1.0 + 1e-12
_SHARES = np.array(
    [0.03, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.85, 0.9, 0.94, 0.97, 0.985, 0.993, 0.997]
)
_ODDS = (0.02, 1e4)  # of the share; less noise tells who was sampled, and costs time to compose
_GROUPS = (6, 11)  # where lists of shares are cut for one candidate each
_WORSE = 0.5  # relative excess over the best rank at which a candidate is dropped
_WINDOWS = 80
_ORDERS = 1.0 + np.geomspace(0.1, 3000.0, 32)
_POINTS = 1500


class Window(NamedTuple):
    """Number of last steps, and the noise share that hides records."""

    steps: int
    share: float


class SampledRun(NamedTuple):
    """Numbers of a run on sampled batches, in units of the noise."""

    rate: float  # with which a record is in a batch
    radius: float  # by which the changed record moves the gradient, compared with the common part
    one_sided: bool  # the record is absent from one of the runs
    steps: int
    gap: float  # one minus the contraction factor of the part that is common to both runs
    drift: float  # how far one step on the same batch and noise can move two runs apart
    diameter: float  # of the set that iterates are projected onto
    failure: float  # probability that some batch is so large that its step does not contract

    @classmethod
    def from_event(cls, run: LastIterateEvent, adjacency: Adjacency) -> Self | None:
        """Return the numbers, or None if no step need contract."""
        step, gap, failure = run.step, run.contraction_gap, 0.0
        if isinstance(step, PoissonSampledEvent):
            most = _largest_batch(run)
            if most is None:
                return None
            rate, radius, gap = step.sample_rate, 1.0, run.strong_convexity
            failure = oversize_probability(most, run.dataset_size or 0, rate, run.steps)
        elif isinstance(step, UniformSampledEvent):
            rate, radius = step.batch_size / step.dataset_size, 2.0
        else:
            return None
        noise_multiplier = step.event.noise_multiplier  # type: ignore[attr-defined]
        one_sided = adjacency == "add-remove"
        return cls(
            rate=rate,
            radius=radius / noise_multiplier,
            one_sided=one_sided,
            steps=run.steps,
            gap=gap,
            drift=(1.0 if one_sided else 2.0) / noise_multiplier,
            diameter=math.inf if run.diameter is None else run.diameter,
            failure=failure,
        )

    def squared_shift(self, steps: int) -> float:
        """Return the squared mu of closing the distance at the start."""
        apart = min(self.diameter, self.drift * sum_of_powers(self.gap, self.steps - steps))
        left = power(self.gap, steps)[0] * apart
        return left * left * squeeze(self.gap, steps)

    def event(self, window: Window) -> Event:
        """Return releases that dominate the last iterate, failures excepted."""
        hiding = GaussianEvent(math.sqrt(window.share) / self.radius / _ROUND_UP)
        # Under replace-one this stands for the antiparallel pair, also where the batch is a
        # uniform subset: the two runs are at different iterates, so that no sharper pair holds.
        sampled = RepeatedEvent(PoissonSampledEvent(self.rate, hiding), window.steps)
        shift = math.sqrt(self.squared_shift(window.steps) / (1.0 - window.share))
        if shift == 0.0:
            return sampled
        return ComposedEvent((sampled, GaussianEvent(1.0 / (shift * _ROUND_UP))))

    def candidates(
        self, *, delta: float | None = None, epsilon: float | None = None
    ) -> list[Window]:
        """Return windows that Renyi divergences favour.

        At most one with little, middling and much of the noise hiding records.
        """
        if self.steps < 2:
            return []
        lengths = np.unique(np.geomspace(1, self.steps - 1, _WINDOWS).round())
        shifts = np.array([self.squared_shift(int(j)) for j in lengths])
        hiding = np.array([self._log_moments(share) for share in _SHARES])
        orders = _ORDERS[None, :, None]
        total = lengths * hiding[:, :, None] + 0.5 * orders * (orders - 1.0) * (
            shifts / (1.0 - _SHARES)[:, None, None]
        )
        if delta is not None:
            cost = (total - math.log(delta)) / (orders - 1.0)
        else:
            cost = total - (orders - 1.0) * (epsilon or 0.0)
        least = np.min(np.where(np.isfinite(cost), cost, np.inf), axis=1)
        limit = least.min() + _WORSE * abs(least.min())
        found = []
        for group in np.split(np.arange(len(_SHARES)), _GROUPS):
            share, length = np.unravel_index(np.argmin(least[group]), least[group].shape)
            if least[group[share], length] <= limit:
                found.append(Window(int(lengths[length]), float(_SHARES[group[share]])))
        return found

    def _log_moments(self, share: float) -> Array:
        return _log_moments(self.rate, self.radius / math.sqrt(share), self.one_sided)

    def neighbours(self, window: Window, factor: float) -> list[Window]:
        """Return windows with other lengths, or other noise shares."""
        longest = self.steps - 1
        lengths = {min(max(round(window.steps * f), 1), longest) for f in (factor, 1.0 / factor)}
        odds = window.share / (1.0 - window.share)
        shares = {o / (1.0 + o) for o in (odds / factor, odds * factor) if _ODDS[0] < o < _ODDS[1]}
        return [
            *(Window(j, window.share) for j in sorted(lengths - {window.steps})),
            *(Window(window.steps, share) for share in sorted(shares)),
        ]


def _largest_batch(run: LastIterateEvent) -> int | None:
    """Return the largest Poisson batch with the full contraction of the penalty."""
    assert isinstance(run.step, PoissonSampledEvent) and run.dataset_size is not None
    convexity = run.strong_convexity
    if convexity >= 1.0:
        return None
    by_records = run.smoothness - convexity
    if by_records <= 0.0:
        return run.dataset_size
    expected = run.step.sample_rate * run.dataset_size
    allowed = expected * (2.0 * (1.0 - convexity) / by_records) * (1.0 - 1e-12)
    return run.dataset_size if allowed >= run.dataset_size else math.floor(allowed)


@lru_cache(maxsize=512)
def _log_moments(rate: float, shift: float, one_sided: bool) -> Array:
    """Estimate ``log E_Q[(P/Q)^order]`` of a sampled Gaussian pair."""
    reach = np.sinh(np.linspace(0.0, math.asinh(2.0 * _ORDERS[-1] * shift + 12.0), _POINTS))
    x = np.concatenate([-reach[reach < shift + 12.0][:0:-1], reach])
    up, down = shift * x - 0.5 * shift**2, -shift * x - 0.5 * shift**2
    keep, take = math.log1p(-rate), math.log(rate)
    log_p = np.logaddexp(keep, take + up)
    log_q = np.zeros_like(x) if one_sided else np.logaddexp(keep, take + down)
    weights = np.log(np.gradient(x)) - 0.5 * x * x - 0.5 * math.log(2.0 * math.pi)
    exponents = weights + log_q + _ORDERS[:, None] * (log_p - log_q)
    top = exponents.max(axis=1)
    moments = top + np.log(np.exp(exponents - top[:, None]).sum(axis=1))
    return np.maximum(moments, 0.0)


@card_of(LastIterateEvent)
class LastIterate(Analysis):
    """Gaussian-DP without samples; otherwise bounded by some last steps."""

    event: LastIterateEvent

    def mu(self) -> float | None:
        """Return a bound on mu, which quadratic objectives with moderate steps attain."""
        shift = analysis_of(self.event.step, self.adjacency).mu()
        return shift if not shift else max(run_mu(self.event, shift), SMALLEST)

    def dominated_by(self) -> Domination:
        """Return all steps, and windows of sampled runs."""
        everything = RepeatedEvent(self.event.step, self.event.steps)
        if self.mu() is not None:
            return Domination(everything)
        return Domination(everything, SampledRun.from_event(self.event, self.adjacency))

    def of_two(self) -> Event | None:
        """Return the run with the steps of two records."""
        if isinstance(self.event.step, UniformSampledEvent):
            return None
        step = analysis_of(self.event.step, self.adjacency).of_two()
        return None if step is None else replace(self.event, step=step)


def run_mu(run: LastIterateEvent, shift: float) -> float:
    """Return mu of a run without samples."""
    if run.batches > 1:
        return _cyclic_mu(shift, -(-run.steps // run.batches), run.batches, run)
    return _full_batch_mu(shift, run)


def _full_batch_mu(shift: float, run: LastIterateEvent) -> float:
    gap, steps = run.contraction_gap, run.steps
    bound = shift * math.sqrt(_from_the_start(gap, steps))
    if run.diameter is not None and steps > 1:
        diameter = run.diameter

        def cost(window: int) -> float:
            moved = power(gap, window)[0] * diameter + shift * sum_of_powers(gap, window)
            return moved * math.sqrt(squeeze(gap, window))

        # Any window gives a valid bound; the best is near the real one.
        middle = int(min(max(_real_window(shift, diameter, gap), 1.0), steps - 1.0))
        windows = {min(max(middle + k, 1), steps - 1) for k in range(-2, 3)}
        bound = min(bound, *map(cost, windows))
    return bound * _ROUND_UP


def _from_the_start(gap: float, steps: int) -> float:
    """Return ``(1 - c^t) / (1 + c^t) * (1 + c) / (1 - c)``, which is t if c = 1."""
    if gap == 0.0:
        return float(steps)
    left, gone = power(gap, steps)
    return min(float(steps), gone / (1.0 + left) * (2.0 - gap) / gap)


def _real_window(shift: float, diameter: float, gap: float) -> float:
    """Return the best real window of a projected run."""
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
