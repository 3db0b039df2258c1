"""The Gaussian mechanism: add isotropic normal noise to a vector of bounded sensitivity."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np

from skdp.mechanisms.additive import AdditiveMechanism
from skdp.mechanisms.analytic_gaussian import analytic_gaussian_sigma
from skdp.mechanisms.discrete_gaussian import discrete_gaussians
from skdp.mechanisms.random_stream import resolve_random_state
from skdp.parameters import plain_arguments


@plain_arguments
class GaussianMechanism(AdditiveMechanism):
    """Release vectors with independent normal noise of one standard deviation.

    A release of a value whose L2 sensitivity is at most `sensitivity` is exactly
    ``sensitivity / sigma``-GDP (Dong, Roth & Su 2022, Theorem 2.7), under the adjacency relation
    that the sensitivity refers to; its (epsilon, delta) is the analytic Gaussian profile (Balle
    & Wang 2018, Theorem 8). Real arithmetic is assumed: the noise is drawn in double precision.

    With a `grid`, values are rounded to its multiples and noise is a discrete Gaussian on them,
    drawn exactly; no real arithmetic is assumed then. What it costs, and by how much rounding
    raises a sensitivity: :ref:`Theorems 2 and 3 of discrete numerics <discrete-noise-2>`.

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

    Examples
    --------
    >>> import numpy as np
    >>> from skdp.mechanisms import GaussianMechanism, RandomStream, analytic_gaussian_sigma
    >>> ages = np.clip([34.0, 51.0, 47.0, 102.0], 0.0, 100.0)  # public bounds
    >>> sigma = analytic_gaussian_sigma(1.0, 1e-5, sensitivity=25.0)  # replaced: 100 / 4
    >>> mechanism = GaussianMechanism(
    ...     sensitivity=25.0, sigma=sigma, stream=RandomStream.from_entropy(), label="mean age"
    ... )
    >>> noisy = mechanism.release(ages.mean(keepdims=True))
    >>> noisy.shape, round(sigma, 1)
    ((1,), 93.3)
    """

    def _draw(self, shape: int | tuple[int, ...]) -> np.ndarray:
        return self._stream.standard_normal(shape)

    def _draw_steps(self, scale: Fraction, count: int) -> list[int]:
        return discrete_gaussians(self._stream, scale, count)


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

    References
    ----------
    Balle & Wang (2018), Theorem 8 and Algorithm 1.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp.mechanisms import gaussian_mechanism
    >>> bits = np.random.default_rng(0).integers(0, 2, (1000, 3))
    >>> counts = bits.sum(axis=0)  # a row moves each by at most 1
    >>> noisy = gaussian_mechanism(counts, epsilon=1.0, delta=1e-6, sensitivity=3**0.5)
    >>> bool(np.abs(noisy - counts).max() < 100)
    True
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
