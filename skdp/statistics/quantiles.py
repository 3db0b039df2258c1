"""Private quantiles of a column with public bounds, by bisection with noisy counts."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np

from skdp.choices import Adjacency
from skdp.mechanisms import RandomStream
from skdp.mechanisms.release import Release
from skdp.parameters import check_real
from skdp.statistics._columns import bounded_column, bounds_of, numbers_of
from skdp.statistics._terms import Terms, describe_noise
from skdp.statistics.noise import Plan
from skdp.statistics.results import PrivateStatistic

_STEPS = 10
# Further ones, and how much of their length counts, for the sides of the interval.
_MORE_STEPS, _PARTS = 2, (1.0, 0.5, 0.5)
# Binary digits below one count, so that Gaussian noise is on a fine grid.
_DIGITS = 20


def private_quantile(
    column: Any,
    q: float = 0.5,
    *,
    lower: float | None = None,
    upper: float | None = None,
    resolution: float | None = None,
    schema: Any = None,
    epsilon: float,
    delta: float = 0.0,
    adjacency: Adjacency = "add-remove",
    mechanism: str = "auto",
    confidence: float = 0.95,
    accountant: Any = None,
    random_state: Any = None,
) -> PrivateStatistic:
    """Release a quantile of a column of numbers, such as its median.

    Parameters
    ----------
    column : series, array or list of shape (n_samples,)
        One cell a record; missing cells are left out.
    q : float, default=0.5
        Level in (0, 1), a fraction with a denominator of at most 1000.
    lower, upper : float or None, default=None
        Public bounds; values beyond them count as the bound.
    resolution : float or None, default=None
        About how finely to look, in the column's unit: halving the range down to it takes noisy
        counts, and the fewer there are the less noise each has. None takes a 1024th of the range.
    schema : TableSchema, column of one or None, default=None
        Has the bounds instead, for the column's name, and a policy for missing cells.
    epsilon, delta, adjacency, mechanism, confidence, accountant, random_state
        As for `private_count`.

    Returns
    -------
    PrivateStatistic
        The quantile in ``value``; ``interval`` holds for that of a table with at least one value:
        the smallest value x such that a share q of all values is at most x.

    Raises
    ------
    ValueError, TypeError, BudgetExceededError
        As for `private_count`, before rows are used.

    Notes
    -----
    At a threshold t, the values at most t count ``1 - q`` each and the others ``-q``: the sum says
    on which side of t the quantile is. Its sensitivity is ``max(q, 1 - q)`` under add-remove and 1
    under replace-one; sums at thresholds that depend on earlier ones compose adaptively. Where a
    sum is beyond the reach of all the noise the side is certain, and these thresholds are the
    interval. Proof: :ref:`Theorem 4 of statistics <statistics-4>`; of the noise,
    :ref:`Theorem 1 <statistics-1>`.

    References
    ----------
    Smith (2011), "Privacy-preserving statistical estimation with optimal convergence rates", solves
    the same problem with the exponential mechanism, whose output bounds no value.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp.statistics import private_quantile
    >>> ages = np.random.default_rng(0).integers(20, 80, 10_000)
    >>> median = private_quantile(ages, lower=0, upper=128, resolution=1, epsilon=1.0)
    >>> bool(abs(median.value - np.median(ages)) < 3.0)
    True
    """
    terms = Terms(
        "private_quantile",
        *(epsilon, delta, adjacency, mechanism, confidence, accountant, random_state),
    )
    level = _level(q)
    described = bounded_column(column, lower, upper, schema)
    low, high = bounds_of(described)
    steps = _STEPS
    if resolution is not None:
        resolution = check_real("resolution", resolution, above=0.0)
        steps = max(1, math.ceil(math.log2(high - low) - math.log2(resolution)))
    steps += _MORE_STEPS
    top, whole = level.numerator, level.denominator
    change = max(top, whole - top) if terms.adjacency == "add-remove" else whole
    side = Release.number("side of the quantile", change << _DIGITS, whole << _DIGITS)

    def use(plan: Plan, numbers: np.ndarray) -> Any:
        values = np.sort(numbers[~np.isnan(numbers)])
        width = plan.releases[0].half_width(terms.failure, steps)
        stream = terms.stream(plan.event, values, np.array([low, high, float(level)]))
        return _bisect(values, level, (low, high), plan.releases[0], steps, width, stream)

    (value, interval), plan, spent = terms.release(
        [(column, partial(numbers_of, column=described))],
        lambda: terms.noise_of(*[side] * steps),
        lambda plan: (
            f"quantile {level} by bisection, {describe_noise(plan)}",
            (f"bounds {low:g} and {high:g} are public",),
            ("quantile",),
        ),
        use,
    )
    noise = plan.releases[0]
    reach = noise.half_width(terms.failure) / side.unit
    return PrivateStatistic(
        f"quantile {level}",
        np.array(value),
        interval,
        noise.people,
        (-reach, reach),
        terms.confidence,
        spent,
    )


def _level(q: float) -> Fraction:
    """Return a level as the fraction that it stands for."""
    level = Fraction(check_real("q", q, above=0.0, below=1.0)).limit_denominator(1000)
    if not 0 < level < 1 or abs(float(level) - q) > 1e-12:
        raise ValueError(
            f"q must be a fraction with a denominator of at most 1000, such as 0.025, got {q!r}."
        )
    return level


def _bisect(
    values: np.ndarray,
    level: Fraction,
    ends: tuple[float, float],
    noise: Release,
    steps: int,
    width: int,
    stream: RandomStream,
) -> tuple[float, tuple[float, float]]:
    """Return the middle of the last piece, and the nearest thresholds whose side is certain.

    Values are sorted; only the noisy sums depend on them.
    """
    # Three pieces are halved in turn, the longest first: the one in which sums change their sign,
    # and on either side of it the one in which they begin to be certain.
    low, high = least, below = above, most = ends
    for _ in range(steps):
        pieces = [(low, high), (least, below), (above, most)]
        lengths = [(end - start) * part for (start, end), part in zip(pieces, _PARTS, strict=True)]
        start, end = pieces[int(np.argmax(lengths))]
        middle = start / 2.0 + end / 2.0
        count = int(np.searchsorted(values, middle, side="right"))
        exact = level.denominator * count - level.numerator * values.size
        noisy = float(noise.make(np.array(exact << _DIGITS), stream))
        if noisy + width < 0.0:
            least = max(least, middle)
        else:
            below = min(below, middle)
        if noisy - width >= 0.0:
            most = min(most, middle)
        else:
            above = max(above, middle)
        if low < middle < high:
            low, high = (middle, high) if noisy < 0.0 else (low, middle)
    least, most = sorted((least, most))  # they cross where noise goes too far
    return min(max(low / 2.0 + high / 2.0, least), most), (least, most)
