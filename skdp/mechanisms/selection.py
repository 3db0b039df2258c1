"""Choose the index of a high score privately.

Scores must be such that one record changes each of them by at most the sensitivity. Then all
mechanisms here are epsilon-DP. If in addition a record can only change all of them in the same
direction (counts under add-remove), they are ``monotone`` and half the noise suffices. Real
arithmetic is assumed: chances are computed in double precision, about 1e-15 of themselves away.
Proofs: Theorem 9 of ``docs/proofs/private_selection.md``; Theorems 3 and 4 of
``docs/proofs/selection_mechanisms.md``.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from skdp.choices import SelectionNoise
from skdp.mechanisms.analytic_gaussian import check_positive
from skdp.mechanisms.random_stream import RandomStream
from skdp.mechanisms.trace import note_release
from skdp.parameters import plain_arguments


@plain_arguments
def permute_and_flip(
    scores: Any, epsilon: float, sensitivity: float, stream: RandomStream, *, monotone: bool = False
) -> int:
    """Choose an index by permute-and-flip: never worse than the exponential mechanism.

    Indices are visited in random order; one with score q is chosen with probability
    ``e^(-epsilon (max - q) / (2 sensitivity))``, else the next one is visited (McKenna and Sheldon,
    2020, Algorithm 1 and Theorem 1). It has the same distribution as `report_noisy_max` with
    exponential noise, but no score is ever noised. Accountants know it as `PureDPEvent`.

    Parameters
    ----------
    scores : array-like of shape (n_candidates,)
        Finite scores; the higher the better.
    epsilon : float
        Privacy parameter in nats, positive.
    sensitivity : float
        Bound on the change of any single score under the adjacency in force, positive.
    stream : RandomStream
        Source of randomness.
    monotone : bool, default=False
        Whether a record changes all scores in the same direction.

    Examples
    --------
    >>> from skdp.mechanisms import RandomStream, permute_and_flip
    >>> permute_and_flip([90, 60, 30], 2.0, 1.0, RandomStream.from_seed(0))
    0
    """
    exact, scale = _check("permute_and_flip", scores, epsilon, sensitivity, monotone)
    exponents = _shortfalls(exact, scale)
    left = list(range(len(exact)))
    while True:
        # The last index left is the best one, whose exponent is 0.
        place = stream.integer(len(left))
        index = left[place]
        if stream.bernoulli_exp(exponents[index]):
            break
        left[place] = left[-1]
        left.pop()
    return _note("permute_and_flip", exact, index, sensitivity, scale)


@plain_arguments
def exponential_mechanism(
    scores: Any, epsilon: float, sensitivity: float, stream: RandomStream, *, monotone: bool = False
) -> int:
    """Choose an index with probability proportional to ``e^(epsilon score / (2 sensitivity))``.

    McSherry and Talwar (2007), Theorem 6. Besides epsilon-DP, its range is bounded: the privacy
    loss varies by at most epsilon, so that it is ``epsilon^2 / 8``-zCDP (Cesar and Rogers, 2021).
    Accountants know it as ``BoundedRangeEvent(epsilon)``: of many choices together it may cost
    least, of one alone `permute_and_flip` is better.

    Parameters
    ----------
    scores : array-like of shape (n_candidates,)
        Finite scores; the higher the better.
    epsilon : float
        Privacy parameter in nats, positive.
    sensitivity : float
        Bound on the change of any single score under the adjacency in force, positive.
    stream : RandomStream
        Source of randomness.
    monotone : bool, default=False
        Whether a record changes all scores in the same direction.

    Examples
    --------
    >>> from skdp.mechanisms import RandomStream, exponential_mechanism
    >>> exponential_mechanism([90, 60, 30], 2.0, 1.0, RandomStream.from_seed(0))
    0
    """
    exact, scale = _check("exponential_mechanism", scores, epsilon, sensitivity, monotone)
    exponents = _shortfalls(exact, scale)
    while True:
        index = stream.integer(len(exact))
        if stream.bernoulli_exp(exponents[index]):
            return _note("exponential_mechanism", exact, index, sensitivity, scale)


@plain_arguments
def report_noisy_max(
    scores: Any,
    epsilon: float,
    sensitivity: float,
    stream: RandomStream,
    *,
    noise: SelectionNoise = "exponential",
    monotone: bool = False,
) -> int:
    """Choose the index of the highest score after adding noise to each.

    Parameters
    ----------
    scores : array-like of shape (n_candidates,)
        Finite scores; the higher the better.
    epsilon : float
        Privacy parameter in nats, positive.
    sensitivity : float
        Bound on the change of any single score under the adjacency in force, positive.
    stream : RandomStream
        Source of randomness.
    noise : {"exponential", "laplace", "gumbel"}, default="exponential"
        Independent noise of scale ``2 sensitivity / epsilon``, or half of that if monotone.
        ``"exponential"`` gives the distribution of `permute_and_flip` (Ding, Kifer, Steinke, Wang,
        Xiao and Zhang, 2021), ``"gumbel"`` that of `exponential_mechanism`, a `BoundedRangeEvent`,
        and ``"laplace"`` is the classical choice (Dwork and Roth, 2014, Claim 3.9: of counts under
        add-remove, with half the noise), less accurate than the first; both are a `PureDPEvent`.
    monotone : bool, default=False
        Whether a record changes all scores in the same direction.

    Returns
    -------
    int
        An index. The noisy scores must not be released.

    Examples
    --------
    >>> from skdp.mechanisms import RandomStream, report_noisy_max
    >>> report_noisy_max([90, 60, 30], 2.0, 1.0, RandomStream.from_seed(0))
    0
    """
    exact, scale = _check("report_noisy_max", scores, epsilon, sensitivity, monotone)
    if noise == "exponential":
        drawn = stream.exponential(len(exact))
    elif noise == "laplace":
        drawn = stream.laplace(len(exact))
    elif noise == "gumbel":
        drawn = stream.gumbel(len(exact))
    else:
        raise ValueError(f"noise must be 'exponential', 'laplace' or 'gumbel', got {noise!r}.")
    index = int(np.argmax(drawn - _shortfalls(exact, scale)))
    return _note("report_noisy_max", exact, index, sensitivity, scale)


def _check(
    owner: str, scores: Any, epsilon: float, sensitivity: float, monotone: bool
) -> tuple[np.ndarray, float]:
    """Return the scores as an array, and the scale of the noise."""
    check_positive(f"{owner}: epsilon", epsilon)
    check_positive(f"{owner}: sensitivity", sensitivity)
    exact = np.array(scores, dtype=np.float64)
    if exact.ndim != 1 or exact.size == 0:
        raise ValueError(
            f"{owner}: scores must be a list of at least one number, got shape {exact.shape}."
        )
    if not np.all(np.isfinite(exact)):
        raise ValueError(
            f"{owner}: scores must be finite; bound each of them before, for instance by counting "
            "a failed candidate as the lowest possible score."
        )
    return exact, math.nextafter(float(sensitivity) / float(epsilon), math.inf) * (
        1.0 if monotone else 2.0
    )


def _shortfalls(scores: np.ndarray, scale: float) -> np.ndarray:
    """Return by how much scores fall short of the highest one, in units of the noise."""
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        distances = (scores.max() - scores) / scale
    # A distance of 0 counts as 0 even where the scale underflows.
    return np.where(scores == scores.max(), 0.0, np.nan_to_num(distances, nan=math.inf))


def _note(label: str, scores: np.ndarray, index: int, sensitivity: float, scale: float) -> int:
    output = note_release(label, scores, np.array([index]), sensitivity, scale, np.inf)
    return int(output[0])
