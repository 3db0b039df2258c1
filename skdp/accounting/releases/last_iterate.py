"""The last iterate of a noisy gradient descent, which forgets what early steps leaked.

A convex, smooth objective makes each step non-expansive, a penalty makes it a contraction and a
projection bounds how far two runs can be apart. Whoever sees the last iterate only then learns
less than all noisy gradients together tell (Altschuler and Talwar, 2022; Bok, Su and Altschuler,
2024). Proofs: Theorems 4 to 6 of ``docs/proofs/hidden_state.md``.
"""

from __future__ import annotations

import math
from dataclasses import replace

from skdp.accounting.analysis import SMALLEST, Analysis, Domination, analysis_of, card_of
from skdp.accounting.events import Event, LastIterateEvent, RepeatedEvent, UniformSampledEvent
from skdp.accounting.numerics.contractions import power, squeeze, sum_of_powers
from skdp.accounting.releases.last_iterate_windows import SampledRun

_ROUND_UP = 1.0 + 1e-12  # far above the rounding errors of the closed forms below


@card_of(LastIterateEvent)
class LastIterate(Analysis):
    """Gaussian-DP if no step samples; otherwise bounded by some of its last steps."""

    event: LastIterateEvent

    def mu(self) -> float | None:
        """Return a bound on mu, which quadratic objectives with moderate steps attain."""
        shift = analysis_of(self.event.step, self.adjacency).mu()
        return shift if not shift else max(run_mu(self.event, shift), SMALLEST)

    def dominated_by(self) -> Domination:
        """Return all steps, of which the iterate is a function; of sampled runs windows, too."""
        everything = RepeatedEvent(self.event.step, self.event.steps)
        if self.mu() is not None:
            return Domination(everything)
        return Domination(everything, SampledRun.from_event(self.event, self.adjacency))

    def of_two(self) -> Event | None:
        """Return the run whose steps count two records."""
        if isinstance(self.event.step, UniformSampledEvent):
            return None
        step = analysis_of(self.event.step, self.adjacency).of_two()
        return None if step is None else replace(self.event, step=step)


def run_mu(run: LastIterateEvent, shift: float) -> float:
    """Return mu of a run without samples, from that of a step that reads the changed record."""
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
