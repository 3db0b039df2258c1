"""What mechanisms that add noise to a vector have in common, on a grid or not."""

from __future__ import annotations

from abc import ABC, abstractmethod
from fractions import Fraction

import numpy as np

from skdp.mechanisms.random_stream import RandomStream
from skdp.mechanisms.trace import note_release


class AdditiveMechanism(ABC):
    """Release vectors with fresh noise of one scale; for parameters see `GaussianMechanism`."""

    # Whether noise has a density ~ e^(-|x| / sigma): in the Euclidean norm, on a grid in L1.
    _exponential = False

    def __init__(
        self,
        *,
        sensitivity: float,
        sigma: float | Fraction,
        stream: RandomStream,
        label: str,
        grid: float = 0.0,
    ) -> None:
        self.sensitivity = sensitivity
        self.sigma = sigma
        self.label = label
        self.grid = grid
        self._stream = stream

    @abstractmethod
    def _draw(self, shape: int | tuple[int, ...]) -> np.ndarray:
        """Draw continuous noise in units of its scale."""

    @abstractmethod
    def _draw_steps(self, scale: Fraction, count: int) -> list[int]:
        """Draw noise in steps of the grid, as is its scale."""

    def steps(self, count: int) -> list[int]:
        """Draw noise for `add`, in steps of the grid."""
        return self._draw_steps(Fraction(self.sigma) / Fraction(self.grid), count)

    def noise(self, shape: int | tuple[int, ...]) -> np.ndarray:
        """Draw noise of the given shape."""
        if self.grid > 0.0:
            steps = self.steps(int(np.prod(shape)))
            return self.grid * np.array(steps, dtype=float).reshape(shape)
        noise = self._draw(shape)
        noise *= self.sigma
        return noise

    def release(self, value: np.ndarray) -> np.ndarray:
        """Return `value` plus fresh noise, and note it in the active trace, if any."""
        if self.grid > 0.0:
            return self.add(value, self.steps(value.size))
        output = self.noise(value.shape)
        output += value
        return self._note(value, output)

    def add(self, value: np.ndarray, noise: list[int]) -> np.ndarray:
        """Return what `release` does, with noise that is drawn already and used once."""
        # Exact, as the grid is a power of two; large integers are no doubles.
        integers = self.grid == 1.0 and value.dtype.kind == "i"
        whole = value if integers else np.rint(value / self.grid)
        # Integers are added as such: what is released is a function of their sum alone.
        sums = [int(v) + z for v, z in zip(whole.flat, noise, strict=True)]
        output = np.array(sums, dtype=float).reshape(value.shape)
        output *= self.grid
        return self._note(np.asarray(whole, dtype=float) * self.grid, output)

    def _note(self, value: np.ndarray, output: np.ndarray) -> np.ndarray:
        norm = 1.0 if self.grid > 0.0 and self._exponential else 2.0
        declared = (self.sensitivity, float(self.sigma), norm, self._exponential)
        return note_release(self.label, value, output, *declared)
