"""The Gaussian mechanism: add isotropic normal noise to a vector of bounded sensitivity."""

from __future__ import annotations

from typing import Any

import numpy as np

from skdp.mechanisms.analytic_gaussian import analytic_gaussian_sigma
from skdp.mechanisms.discrete_gaussian import discrete_gaussians
from skdp.mechanisms.random_stream import RandomStream, resolve_random_state
from skdp.mechanisms.trace import note_release
from skdp.parameters import plain_arguments


@plain_arguments
class GaussianMechanism:
    """Release vectors with independent normal noise of one standard deviation.

    A release of a value whose L2 sensitivity is at most `sensitivity` is exactly
    ``sensitivity / sigma``-GDP (Dong, Roth & Su 2022, Theorem 2.7), under the adjacency relation
    that the sensitivity refers to; its (epsilon, delta) is the analytic Gaussian profile (Balle
    & Wang 2018, Theorem 8). Real arithmetic is assumed: the noise is drawn in double precision.

    With a `grid`, values are rounded to its multiples and noise is a discrete Gaussian on them,
    drawn exactly; no real arithmetic is assumed then. What it costs, and by how much rounding
    raises a sensitivity: ``docs/proofs/discrete_noise.md``.

    Parameters
    ----------
    sensitivity : float
        L2 sensitivity of what will be released, that of rounding to the grid included.
    sigma : float
        Standard deviation of the noise in every coordinate; with a grid the multiple of it that is
        the parameter of the discrete Gaussian.
    stream : RandomStream
        Source of the noise.
    label : str
        What is released, for traces.
    grid : float, default=0.0
        A power of two of which values and noise are multiples; 0 for continuous noise.
    """

    def __init__(
        self,
        *,
        sensitivity: float,
        sigma: float,
        stream: RandomStream,
        label: str,
        grid: float = 0.0,
    ) -> None:
        self.sensitivity = sensitivity
        self.sigma = sigma
        self.label = label
        self.grid = grid
        self._stream = stream

    def noise(self, shape: int | tuple[int, ...]) -> np.ndarray:
        """Draw noise of the given shape."""
        if self.grid > 0.0:
            steps = self._steps(int(np.prod(shape)))
            return self.grid * np.array(steps, dtype=float).reshape(shape)
        noise = self._stream.standard_normal(shape)
        noise *= self.sigma
        return noise

    def release(self, value: np.ndarray) -> np.ndarray:
        """Return `value` plus fresh noise, and note it in the active trace, if any."""
        if self.grid > 0.0:
            value = np.rint(value / self.grid)  # exact, as the grid is a power of two
            # Integers are added as such: what is released is a function of their sum alone.
            sums = [int(v) + z for v, z in zip(value.flat, self._steps(value.size), strict=True)]
            output = self.grid * np.array(sums, dtype=float).reshape(value.shape)
            value *= self.grid
        else:
            output = self.noise(value.shape)
            output += value
        return note_release(self.label, value, output, self.sensitivity, self.sigma)

    def _steps(self, count: int) -> list[int]:
        """Draw noise in steps of the grid."""
        return discrete_gaussians(self._stream, round(self.sigma / self.grid), count)


@plain_arguments
def gaussian_mechanism(
    value: Any,
    *,
    epsilon: float,
    delta: float,
    sensitivity: float,
    random_state: Any = None,
) -> np.ndarray:
    """Release a value with the least Gaussian noise that gives (epsilon, delta).

    Parameters
    ----------
    value : array-like
        What to release; its L2 sensitivity must not exceed `sensitivity`.
    epsilon : float
        Privacy parameter, positive.
    delta : float
        Privacy parameter in (0, 1).
    sensitivity : float
        L2 sensitivity of `value` under the adjacency relation of the guarantee.
    random_state : None, int, RandomState or RandomStream, default=None
        Source of noise; only ``None`` gives a guarantee against whoever knows the seed.

    Returns
    -------
    ndarray of float64
        The noisy value.

    Raises
    ------
    ValueError
        If a parameter is out of range.

    References
    ----------
    Balle & Wang (2018), Theorem 8 and Algorithm 1.
    """
    sigma = analytic_gaussian_sigma(epsilon, delta, sensitivity)
    exact = np.asarray(value, dtype=np.float64)
    # With a seed, calls that differ in anything must not share noise.
    context = f"{epsilon!r} {delta!r} {sensitivity!r} {exact.shape}".encode() + exact.tobytes()
    mechanism = GaussianMechanism(
        sensitivity=sensitivity,
        sigma=sigma,
        stream=resolve_random_state(random_state, context),
        label="gaussian_mechanism",
    )
    return mechanism.release(exact)
