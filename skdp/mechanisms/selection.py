"""Private choices: the index of a high score, and queries above a threshold.

One record must change each score by at most the sensitivity. All mechanisms here are then
epsilon-DP. If a record can only change all scores in the same direction (counts under add-remove),
they are ``monotone`` and half the noise suffices. Real arithmetic is assumed: probabilities are
computed in double precision, with relative errors of about 1e-15. Proofs: Theorem 9 of
``docs/proofs/private_selection.md``; Theorems 3 and 4 of ``docs/proofs/selection_mechanisms.md``.
"""

from __future__ import annotations

import math
import os
import threading
from fractions import Fraction
from typing import Any

import numpy as np

from skdp.accounting import PureDPEvent
from skdp.base.parameters import (
    SelectionNoise,
    check_choice,
    check_integer,
    check_real,
    plain_arguments,
)
from skdp.mechanisms.analytic_gaussian import check_positive, check_representable
from skdp.mechanisms.discrete import discrete_laplaces
from skdp.mechanisms.random_stream import RandomStream
from skdp.mechanisms.trace import note_release


@plain_arguments
def permute_and_flip(
    scores: Any, epsilon: float, sensitivity: float, stream: RandomStream, *, monotone: bool = False
) -> int:
    """Choose an index by permute-and-flip: never worse than the exponential mechanism.

    Indices are visited in random order. One with score q is chosen with probability ``e^(-epsilon
    (max - q) / (2 sensitivity))``. Otherwise the next one is visited (McKenna and Sheldon, 2020,
    Algorithm 1 and Theorem 1). The distribution is that of `report_noisy_max` with exponential
    noise, but no score gets noise. For accountants it is a `PureDPEvent`.

    Parameters
    ----------
    scores : array-like of shape (n_candidates,)
        Finite scores; higher is better.
    epsilon : float
        Privacy parameter in nats, positive.
    sensitivity : float
        Bound on the change of any single score under the adjacency relation, positive.
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

    It is epsilon-DP (McSherry and Talwar, 2007, Theorem 6). Its privacy loss also varies by at most
    epsilon, so it is ``epsilon^2 / 8``-zCDP (Cesar and Rogers, 2021). For accountants it is a
    ``BoundedRangeEvent(epsilon)``. This may cost least for many choices; for a single one
    `permute_and_flip` is better.

    Parameters
    ----------
    scores, epsilon, sensitivity, stream, monotone
        As for `permute_and_flip`.

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
    scores, epsilon, sensitivity, stream
        As for `permute_and_flip`.
    noise : {"exponential", "laplace", "gumbel"}, default="exponential"
        Independent noise of scale ``2 sensitivity / epsilon``, or half of that if monotone:

        - ``"exponential"`` has the distribution of `permute_and_flip` (Ding, Kifer, Steinke, Wang,
          Xiao and Zhang, 2021), a `PureDPEvent`.
        - ``"gumbel"`` has that of `exponential_mechanism`, a `BoundedRangeEvent`.
        - ``"laplace"`` is the classical choice, less accurate than the first, a `PureDPEvent`.
          Dwork and Roth (2014), Claim 3.9, is for counts under add-remove, with half the noise.
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
            f"{owner}: scores must be finite; bound them first, for example give a failed "
            "candidate the lowest possible score."
        )
    return exact, math.nextafter(float(sensitivity) / float(epsilon), math.inf) * (
        1.0 if monotone else 2.0
    )


def _shortfalls(scores: np.ndarray, scale: float) -> np.ndarray:
    """Return the distances of scores to the highest one, in units of the noise."""
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        distances = (scores.max() - scores) / scale
    # A distance of 0 counts as 0 even where the scale underflows.
    return np.where(scores == scores.max(), 0.0, np.nan_to_num(distances, nan=math.inf))


def _note(label: str, scores: np.ndarray, index: int, sensitivity: float, scale: float) -> int:
    output = note_release(label, scores, np.array([index]), sensitivity, scale, np.inf)
    return int(output[0])


# Values are rounded to a grid this many binary digits finer than the sensitivity.
_DIGITS = 20
_LARGEST = 1e300
_TWICE = "two copies would give answers that are charged once"


@plain_arguments
class SparseVector:
    """Report which queries of a stream are above a threshold, with one epsilon for all.

    Queries below the threshold are free, in any number. The stream ends after `max_positives`
    answers "above". Queries may depend on earlier answers.

    Parameters
    ----------
    epsilon : float
        Privacy parameter in nats of all answers together, positive.
    sensitivity : float
        Bound on the change of any single query under the adjacency relation, positive.
    stream : RandomStream
        Source of randomness.
    max_positives : int, default=1
        Number of answers "above" that ends the stream, at least 1.
    monotone : bool, default=False
        Whether a record changes all queries in the same direction, as for counts under add-remove.
        If so, less noise suffices.
    accountant : BudgetAccountant or None, default=None
        Budget for the charge. The entire stream is charged before the first query. None charges
        nothing, even within ``with budget:``.

    Attributes
    ----------
    event : PureDPEvent
        Event of the entire stream.

    Raises
    ------
    ValueError, TypeError
        If a parameter is out of range; nothing is charged then.
    BudgetExceededError
        If the remaining budget is too small.

    Notes
    -----
    Dwork and Roth (2014), Algorithms 1 and 2, with the constants of Lyu, Su and Li (2017),
    Algorithm 7. The latter show that four of six published variants are not private. The threshold
    gets noise *once*, of scale ``sensitivity / epsilon_1``. Each query gets fresh noise of scale
    ``2 c sensitivity / epsilon_2``, or half of that if monotone, where c is `max_positives`. The
    ratio ``epsilon_2 / epsilon_1`` is ``(2 c)^(2/3)``, or ``c^(2/3)``, which minimises the variance
    of the sum of both noises.

    Only the answers are released, never a noisy value. To release the value of a query above the
    threshold, use a separate mechanism with fresh noise and a separate charge.

    The noise is discrete Laplace on a grid, drawn exactly, and integers are compared, so the
    guarantee assumes no real arithmetic. Rounding values to the grid adds a millionth to the noise.
    Proof: :ref:`Theorem 5 of selection mechanisms <selection-mechanisms-5>`. The object contains
    the noise of its threshold, which must stay secret, and belongs to one process.

    References
    ----------
    Lyu, Su & Li (2017), "Understanding the Sparse Vector Technique for Differential Privacy".

    Examples
    --------
    >>> from skdp.mechanisms import RandomStream, SparseVector
    >>> alarm = SparseVector(2.0, 1.0, RandomStream.from_seed(0), monotone=True)
    >>> [alarm.is_above(count, threshold=100) for count in (3, 12, 7, 250)]
    [False, False, False, True]
    >>> alarm.positives_left
    0
    """

    def __init__(
        self,
        epsilon: float,
        sensitivity: float,
        stream: RandomStream,
        *,
        max_positives: int = 1,
        monotone: bool = False,
        accountant: Any = None,
    ) -> None:
        check_positive("SparseVector: epsilon", epsilon)
        check_positive("SparseVector: sensitivity", sensitivity)
        check_integer("max_positives", max_positives, at_least=1)
        check_real("max_positives", max_positives, at_most=2.0**53)
        check_choice("monotone", monotone, (True, False))
        factor = max_positives if monotone else 2 * max_positives
        check_representable(2.0 * factor * (sensitivity / epsilon))
        self.event = PureDPEvent(epsilon)
        self._positives_left = max_positives
        self._sensitivity = float(sensitivity)
        self._grid = Fraction(2) ** (math.frexp(sensitivity)[1] - 1 - _DIGITS)
        # Rounding to the nearest multiple moves the distance of two values by one step at most.
        moved = math.floor(Fraction(sensitivity) / self._grid) + 1
        ratio = Fraction(factor ** (2 / 3))
        first = Fraction(epsilon) / (1 + ratio)
        self._scale = math.ceil(factor * moved / (first * ratio))
        threshold_scale = math.ceil(moved / first)
        if accountant is not None:
            accountant.reserve(
                self.event, label="SparseVector", estimator="SparseVector", seeded=stream.seeded
            )
        self._stream, self._lock = stream, threading.Lock()
        self._process = os.getpid()
        self._threshold_noise = discrete_laplaces(stream, threshold_scale, 1)[0]

    @plain_arguments
    def is_above(self, value: float, threshold: float = 0.0) -> bool:
        """Return whether a query is above its threshold, both with noise.

        Parameters
        ----------
        value : float
            Exact value of the query, at most 1e300 in size.
        threshold : float, default=0.0
            Public number, at most 1e300 in size, which may differ between queries.

        Returns
        -------
        bool
            The answer, which may be released.

        Raises
        ------
        RuntimeError
            If the stream has ended, or in a forked process.
        ValueError
            If a number is not finite, or is too large.
        """
        if os.getpid() != self._process:
            raise RuntimeError(f"A SparseVector belongs to the process that made it: {_TWICE}.")
        with self._lock:
            if self._positives_left == 0:
                raise RuntimeError(
                    "This stream has used all its answers 'above'. To continue, create another "
                    "SparseVector, which costs another epsilon."
                )
            excess = _exact(value) - _exact(threshold)
            noise = discrete_laplaces(self._stream, self._scale, 1)[0]
            is_above = round(excess / self._grid) + noise >= self._threshold_noise
            seen = np.array([float(excess)]), np.array([is_above])
            scale = float(self._scale * self._grid)
            (noted,) = note_release("SparseVector", *seen, self._sensitivity, scale, norm=np.inf)
            self._positives_left -= bool(noted)
            return bool(noted)

    @property
    def positives_left(self) -> int:
        """Number of answers "above" that are left."""
        return self._positives_left

    def __reduce__(self) -> tuple[Any, ...]:
        raise TypeError(f"A SparseVector cannot be copied or pickled: {_TWICE}.")


def _exact(number: Any) -> Fraction:
    if not (isinstance(number, int | float) and -_LARGEST <= number <= _LARGEST):
        raise ValueError(
            "SparseVector: value and threshold must be finite numbers, at most 1e300 in size; "
            "bound queries first."
        )
    return Fraction(number)
