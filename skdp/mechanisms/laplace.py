"""The Laplace mechanism: add independent Laplace noise to a vector of bounded L1 sensitivity."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from skdp.mechanisms.analytic_gaussian import check_positive, check_representable
from skdp.mechanisms.random_stream import resolve_random_state
from skdp.mechanisms.trace import note_release
from skdp.parameters import plain_arguments


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

    Returns
    -------
    ndarray of float64
        The noisy value.

    Raises
    ------
    ValueError
        If a parameter is out of range.

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
