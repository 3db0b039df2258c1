"""Mechanisms that add noise to a vector: Gaussian, Laplace, norm-exponential.

Proofs: Theorems 1 and 2 of ``docs/proofs/pure.md``.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from fractions import Fraction
from typing import Any

import numpy as np

from skdp.base.parameters import (
    CountNoise,
    SumBound,
    check_choice,
    check_integer,
    check_real,
    plain_arguments,
)
from skdp.mechanisms.analytic_gaussian import (
    analytic_gaussian_sigma,
    check_positive,
    check_representable,
)
from skdp.mechanisms.discrete import discrete_gaussians, discrete_laplaces
from skdp.mechanisms.random_stream import RandomStream, resolve_random_state
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
        """Draw noise of a scale in steps of the grid."""

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
        """Return the output of `release` with noise that is already drawn and used once."""
        # Exact, as the grid is a power of two; large integers are no doubles.
        integers = self.grid == 1.0 and value.dtype.kind == "i"
        whole = value if integers else np.rint(value / self.grid)
        # Integers are added as such: the output is a function of their sum only.
        sums = [int(v) + z for v, z in zip(whole.flat, noise, strict=True)]
        output = np.array(sums, dtype=float).reshape(value.shape)
        output *= self.grid
        return self._note(np.asarray(whole, dtype=float) * self.grid, output)

    def _note(self, value: np.ndarray, output: np.ndarray) -> np.ndarray:
        norm = 1.0 if self.grid > 0.0 and self._exponential else 2.0
        declared = (self.sensitivity, float(self.sigma), norm, self._exponential)
        return note_release(self.label, value, output, *declared)


@plain_arguments
class GaussianMechanism(AdditiveMechanism):
    """Release vectors with independent normal noise of one standard deviation.

    Let the L2 sensitivity of the value be at most `sensitivity` under some adjacency relation. Its
    release is exactly ``sensitivity / sigma``-GDP (Dong, Roth & Su 2022, Theorem 2.7). Its
    (epsilon, delta) is the analytic Gaussian profile (Balle & Wang 2018, Theorem 8). Noise is drawn
    in double precision, so real arithmetic is assumed.

    With a `grid`, values are rounded to its multiples, and the noise is an exactly drawn discrete
    Gaussian on them. Real arithmetic is then not assumed. For the privacy cost and the effect of
    rounding on the sensitivity, see :ref:`Theorems 2 and 3 of discrete numerics
    <discrete-noise-2>`.

    Parameters
    ----------
    sensitivity : float
        L2 sensitivity of the released values, including rounding to the grid.
    sigma : float
        Standard deviation of the noise in every coordinate. With a grid: the parameter of the
        discrete Gaussian, a multiple of the grid.
    stream : RandomStream
        Source of the noise.
    label : str
        Name of the release in traces.
    grid : float, default=0.0
        Power of two; values and noise are multiples of it. 0 means continuous noise.

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
    """Release a value with the least Gaussian noise for an (epsilon, delta) guarantee.

    Parameters
    ----------
    value : array-like
        Value to release; its L2 sensitivity must not exceed `sensitivity`.
    epsilon : float
        Privacy parameter, positive.
    delta : float
        Privacy parameter in (0, 1).
    sensitivity : float
        L2 sensitivity of `value` under the adjacency relation of the guarantee.
    random_state : None, int, RandomState or RandomStream, default=None
        Source of noise. Seeded noise does not protect against anyone with the seed; ``None`` has no
        seed.

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


@plain_arguments
def laplace_mechanism(
    value: Any, sensitivity: float, epsilon: float, random_state: Any = None
) -> np.ndarray:
    """Release a value with Laplace noise of scale ``sensitivity / epsilon``.

    The release is epsilon-DP (Dwork, McSherry, Nissim and Smith, 2006, Proposition 1). For
    accountants it is a ``LaplaceEvent(1 / epsilon)``, which composes better. Noise is drawn in
    double precision, so real arithmetic is assumed.

    Parameters
    ----------
    value : array-like
        Number to release, or array whose entries get independent noise.
    sensitivity : float
        Bound on the L1 norm of the change of `value` under the adjacency relation, positive.
    epsilon : float
        Privacy parameter in nats, positive.
    random_state : None, int, RandomState or RandomStream, default=None
        Source of noise. Seeded noise does not protect against anyone with the seed; ``None`` has no
        seed.

    Examples
    --------
    >>> from skdp.mechanisms import laplace_mechanism
    >>> laplace_mechanism([10.0, 20.0], sensitivity=1.0, epsilon=0.5).shape
    (2,)
    """
    check_positive("sensitivity", sensitivity)
    check_positive("epsilon", epsilon)
    scale = check_representable(math.nextafter(float(sensitivity) / float(epsilon), math.inf))
    exact = np.asarray(value, dtype=np.float64)
    # With a seed, calls that differ in anything must not share noise.
    context = f"{epsilon!r} {sensitivity!r} {exact.shape}".encode() + exact.tobytes()
    noise = scale * resolve_random_state(random_state, context).laplace(exact.shape)
    return note_release("laplace_mechanism", exact, exact + noise, sensitivity, scale, norm=1.0)


@plain_arguments
def laplace_accuracy(
    epsilon: float,
    beta: float,
    k: int = 1,
    *,
    sensitivity: float = 1.0,
    noise: CountNoise = "laplace",
    bound: SumBound = "exact",
) -> float:
    """Return a bound on the errors of k numbers with Laplace noise.

    Parameters
    ----------
    epsilon : float
        Privacy parameter in nats of all k numbers together, positive.
    beta : float
        Probability, in (0, 1), with which some error may exceed the bound.
    k : int, default=1
        Number of values with independent noise, at least 1.
    sensitivity : float, default=1.0
        Bound on the L1 norm of their change under the adjacency relation, positive. It is 1 for the
        cells of a histogram under add-remove, and k for k counts that may all include the same
        record.
    noise : {"laplace", "discrete"}, default="laplace"
        Noise of scale ``sensitivity / epsilon``: that of `laplace_mechanism`, or discrete Laplace
        noise on the integers.
    bound : {"exact", "union"}, default="exact"
        Exact quantile of the largest error, or the simple bound ``log(k / beta) sensitivity /
        epsilon`` on it. For discrete noise, the latter is the result of the same argument.

    Returns
    -------
    float
        Bound on the errors; an integer for discrete noise.

    Notes
    -----
    The union bound is Theorem 3.8 of Dwork and Roth (2014). As errors are independent, all are at
    most t with probability ``P(|Y| <= t)^k``, where ``P(|Y| > t) = e^(-t epsilon / sensitivity)``.
    For discrete noise this is the same at t + 1, times ``2 / (1 + e^(-epsilon / sensitivity))``.
    Results are rounded up.

    Examples
    --------
    The frequencies of 10,000 first names:

    >>> from skdp.mechanisms import laplace_accuracy
    >>> round(laplace_accuracy(1.0, 0.05, 10_000, bound="union"), 3)
    12.206
    >>> round(laplace_accuracy(1.0, 0.05, 10_000), 3)
    12.181
    """
    check_positive("epsilon", epsilon)
    check_positive("sensitivity", sensitivity)
    check_real("beta", beta, above=0.0, below=1.0)
    check_integer("k", k, at_least=1)
    check_real("k", k, at_most=2.0**53)
    check_choice("noise", noise, ("laplace", "discrete"))
    check_choice("bound", bound, ("exact", "union"))
    scale = math.nextafter(sensitivity / epsilon, math.inf)
    quantile = math.log(k) - math.log(beta)
    # For smaller beta both are the same number.
    if bound == "exact" and beta > 1e-17:
        log_all = math.log1p(-beta) / k
        each = -math.expm1(log_all)
        least = -math.log(each) if each < 0.5 else -math.log1p(-math.exp(log_all))
        quantile = min(quantile, least)
    if noise == "laplace":
        return check_representable(scale * quantile * (1.0 + 1e-13))
    quantile += math.log(2.0) - math.log1p(math.exp(-epsilon / sensitivity))
    steps = check_representable(scale * quantile * (1.0 + 1e-13)) - 1.0
    return float(max(math.ceil(steps), 0))


# Largest length of noise, in scales times its number of coordinates: no exponential of a stream
# exceeds it, as uniforms are at least 2^-961.
LARGEST_LENGTH = 667.0


class NormExponentialMechanism(AdditiveMechanism):
    """Release vectors with noise of density ~ ``e^(-|x| / sigma)`` over all numbers.

    Its length is a Gamma variable and its direction uniform. On a grid, noise is independent
    discrete Laplace, drawn exactly, with the sensitivity of the L1 norm.
    """

    _exponential = True

    def _draw(self, shape: int | tuple[int, ...]) -> np.ndarray:
        count = int(np.prod(shape))
        length = float(np.sum(self._stream.exponential(count)))
        size = 0.0
        while size == 0.0:  # which has no direction
            normals = self._stream.standard_normal(shape)
            size = float(np.linalg.norm(normals.ravel()))
        return normals * (length / size)

    def _draw_steps(self, scale: Fraction, count: int) -> list[int]:
        return discrete_laplaces(self._stream, scale, count)
