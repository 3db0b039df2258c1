"""The sparse vector technique: only queries that are above a threshold cost privacy."""

from __future__ import annotations

import math
import os
import threading
from fractions import Fraction
from typing import Any

import numpy as np

from skdp.accounting import PureDPEvent
from skdp.mechanisms.analytic_gaussian import check_positive, check_representable
from skdp.mechanisms.discrete_laplace import discrete_laplaces
from skdp.mechanisms.random_stream import RandomStream
from skdp.mechanisms.trace import note_release
from skdp.parameters import check_choice, check_integer, check_real, plain_arguments

# Values are rounded to a grid this many binary digits finer than the sensitivity.
_DIGITS = 20
_LARGEST = 1e300
_TWICE = "both would go on with answers that are paid for once"


@plain_arguments
class SparseVector:
    """Tell which queries of a stream are above a threshold, for one epsilon in all.

    However many queries are below it, they cost nothing more. After `max_positives` answers
    "above" the stream ends. What queries are asked may depend on the answers so far.

    Parameters
    ----------
    epsilon : float
        Privacy parameter in nats of all answers together, positive.
    sensitivity : float
        Bound on the change of any single query under the adjacency in force, positive.
    stream : RandomStream
        Source of randomness.
    max_positives : int, default=1
        After how many answers "above" the stream ends, at least 1.
    monotone : bool, default=False
        Whether a record changes all queries in the same direction, as it does counts under
        add-remove. Less noise suffices then.
    accountant : BudgetAccountant or None, default=None
        What to charge. The whole stream is charged here, before any query can be asked; None
        charges nothing, also within ``with budget:``.

    Attributes
    ----------
    event : PureDPEvent
        What the whole stream costs.

    Raises
    ------
    ValueError, TypeError
        If a parameter is out of range; nothing is charged then.
    BudgetExceededError
        If the budget does not have that much left.

    Notes
    -----
    Dwork and Roth (2014), Algorithms 1 and 2, with the constants of Lyu, Su and Li (2017),
    Algorithm 7, who also show that four of six published variants are not private. The threshold
    takes noise *once*, of scale ``sensitivity / epsilon_1``; each query fresh noise of scale
    ``2 c sensitivity / epsilon_2``, or half of that if monotone, where c is `max_positives`;
    ``epsilon_2 / epsilon_1`` is ``(2 c)^(2/3)``, or ``c^(2/3)``, for which their sum varies least.
    Released are the answers alone, never a noisy value: one that is wanted of a query above the
    threshold is a release of its own, with fresh noise and a charge of its own.

    Noise is a discrete Laplace variable on a grid, drawn exactly, and comparisons are between
    integers, so that the guarantee assumes no real arithmetic; rounding values to the grid adds a
    millionth to the noise. Proof: :ref:`Theorem 5 of selection mechanisms
    <selection-mechanisms-5>`. The object keeps the noise of its threshold, which must stay secret,
    and belongs to one process.

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
        """Tell whether a query is above its threshold, both noised.

        Parameters
        ----------
        value : float
            The query's exact value, at most 1e300 in size.
        threshold : float, default=0.0
            A public number, at most 1e300 in size, which need not be the same for all queries.

        Returns
        -------
        bool
            The answer, which may be released.

        Raises
        ------
        RuntimeError
            If the stream has ended, or in a forked process.
        ValueError
            If a number is not finite, or larger.
        """
        if os.getpid() != self._process:
            raise RuntimeError(f"A SparseVector belongs to the process that made it: {_TWICE}.")
        with self._lock:
            if self._positives_left == 0:
                raise RuntimeError(
                    "This stream has given all its answers 'above'; another SparseVector, which "
                    "costs another epsilon, can go on."
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
        """How many answers "above" are left."""
        return self._positives_left

    def __reduce__(self) -> tuple[Any, ...]:
        raise TypeError(f"A SparseVector cannot be copied or pickled: {_TWICE}.")


def _exact(number: Any) -> Fraction:
    if not (isinstance(number, int | float) and -_LARGEST <= number <= _LARGEST):
        raise ValueError(
            "SparseVector: value and threshold must be finite numbers, at most 1e300 in size; "
            "bound queries before."
        )
    return Fraction(number)
