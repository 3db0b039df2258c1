"""The Laplace mechanism: add independent Laplace noise to a vector of bounded L1 sensitivity.

How large the noise of many numbers gets at once is known beforehand, without any data.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from skdp.choices import CountNoise, SumBound
from skdp.mechanisms.analytic_gaussian import check_positive, check_representable
from skdp.mechanisms.random_stream import resolve_random_state
from skdp.mechanisms.trace import note_release
from skdp.parameters import check_choice, check_integer, check_real, plain_arguments


@plain_arguments
def laplace_mechanism(
    value: Any, sensitivity: float, epsilon: float, random_state: Any = None
) -> np.ndarray:
    """Release a value with Laplace noise of scale ``sensitivity / epsilon``.

    The release is epsilon-DP (Dwork, McSherry, Nissim and Smith, 2006, Proposition 1); accountants
    know it as ``LaplaceEvent(1 / epsilon)``, which composes better. Real arithmetic is assumed:
    the noise is drawn in double precision.

    Parameters
    ----------
    value : array-like
        What to release: a number, or an array whose entries get independent noise.
    sensitivity : float
        Bound on the L1 norm of the change of `value` under the adjacency in force, positive.
    epsilon : float
        Privacy parameter in nats, positive.
    random_state : None, int, RandomState or RandomStream, default=None
        Source of noise; only ``None`` gives a guarantee against whoever knows the seed.

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
    """Return the error that none of k numbers with Laplace noise exceeds, but for a probability.

    Parameters
    ----------
    epsilon : float
        Privacy parameter in nats of all k numbers together, positive.
    beta : float
        Probability, in (0, 1), with which some error may be larger.
    k : int, default=1
        How many numbers take independent noise, at least 1.
    sensitivity : float, default=1.0
        Bound on the L1 norm of their change under the adjacency in force, positive: 1 for the cells
        of a histogram under add-remove, k for k counts of which a record may be in all.
    noise : {"laplace", "discrete"}, default="laplace"
        Whether the noise, of scale ``sensitivity / epsilon``, is that of `laplace_mechanism` or
        discrete Laplace noise on the integers.
    bound : {"exact", "union"}, default="exact"
        Whether the quantile of the largest error is exact, or the simple bound
        ``log(k / beta) sensitivity / epsilon`` on it (of discrete noise, what that argument gives).

    Returns
    -------
    float
        The error; of discrete noise a whole number.

    Notes
    -----
    The bound by the sum of k probabilities is Theorem 3.8 of Dwork and Roth (2014). As errors are
    independent, all are at most t with probability ``P(|Y| <= t)^k``, where
    ``P(|Y| > t) = e^(-t epsilon / sensitivity)``; of discrete noise the same at t + 1 times
    ``2 / (1 + e^(-epsilon / sensitivity))``. Results are rounded up.

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
    # Of smaller beta both are the same number.
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
