"""Private means, variances and quantiles of a column with public bounds."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from skdp.base.parameters import Adjacency, check_real
from skdp.mechanisms import RandomStream
from skdp.mechanisms.release import Release
from skdp.preprocessing import NumericColumn
from skdp.statistics._terms import (
    Terms,
    bounded_column,
    bounds_of,
    describe_noise,
    numbers_of,
    positions,
)
from skdp.statistics.noise import (
    UNIT,
    Plan,
    corners_of,
    mean_bounds,
    mean_of,
    shares,
    variance_bounds,
    variance_of,
    with_first,
)
from skdp.statistics.results import PrivateStatistic


def private_mean(
    column: Any,
    *,
    lower: float | None = None,
    upper: float | None = None,
    schema: Any = None,
    epsilon: float,
    delta: float = 0.0,
    adjacency: Adjacency | None = None,
    mechanism: str = "auto",
    confidence: float = 0.95,
    accountant: Any = None,
    random_state: Any = None,
) -> PrivateStatistic:
    """Release the mean of a numeric column, clipped to public bounds.

    Parameters
    ----------
    column : series, array or list of shape (n_samples,)
        One cell per record. Missing cells are left out. Under replace-one, which treats the number
        of values as public, they are refused unless the schema allows missing cells.
    lower, upper : float or None, default=None
        Public bounds, from a code book, a device or physiology. Values beyond a bound are clipped
        to it before the mean is computed. None requires `schema`.
    schema : TableSchema, column of one or None, default=None
        Description with the bounds, found by the column's name, and with a policy for missing
        cells. None requires `lower` and `upper`.
    epsilon, delta, adjacency, mechanism, confidence, accountant, random_state
        As for `private_count`, with the same errors.

    Returns
    -------
    PrivateStatistic
        Noisy mean in ``value``, not clipped to the bounds. Its ``interval`` is for the clipped mean
        of a table with at least one value.

    Notes
    -----
    A value at relative position u between the bounds splits one record among two cells, ``1 - u``
    and u. Under add-remove, both noisy sums are released. Shares sum to one record, so the L1
    sensitivity is 1, as for one count, and covers sum and number of values. Under replace-one, only
    the sum of u is released, with sensitivity 1; if the schema allows missing cells, both sums are,
    with sensitivity 2. Shares are integers, in steps of 2^-30 of a record, and the interval allows
    for this. It is the range of the mean over the box that the noise leaves (a union bound). Proof:
    :ref:`Theorems 1 to 3 of statistics <statistics-1>`.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp.statistics import private_mean
    >>> ages = np.random.default_rng(0).integers(20, 80, 10_000)
    >>> mean = private_mean(ages, lower=0, upper=120, epsilon=1.0)
    >>> bool(abs(mean.value - ages.mean()) < 0.5)
    True
    """
    terms = Terms(
        "private_mean",
        *(epsilon, delta, adjacency, mechanism, confidence, accountant, random_state),
    )
    described = bounded_column(column, lower, upper, schema)
    return _moment(terms, "mean", 1, column, described, _is_whole(described, schema))


def private_variance(
    column: Any,
    *,
    lower: float | None = None,
    upper: float | None = None,
    schema: Any = None,
    epsilon: float,
    delta: float = 0.0,
    adjacency: Adjacency | None = None,
    mechanism: str = "auto",
    confidence: float = 0.95,
    accountant: Any = None,
    random_state: Any = None,
) -> PrivateStatistic:
    """Release the variance (with divisor n) of a numeric column, clipped to public bounds.

    Parameters
    ----------
    column, lower, upper, schema
        As for `private_mean`.
    epsilon, delta, adjacency, mechanism, confidence, accountant, random_state
        As for `private_count`, with the same errors.

    Returns
    -------
    PrivateStatistic
        Noisy variance in ``value``, possibly negative. Its ``interval`` is for the variance of a
        table with at least one value.

    Notes
    -----
    A value at relative position u between the bounds splits one record among three cells, ``(1 -
    u)^2``, ``2 u (1 - u)`` and ``u^2``. Under add-remove, the L1 sensitivity of all three sums is
    1. Under replace-one, the last two are released, with L1 sensitivity 4/3; if the schema allows
    missing cells, all three are, with sensitivity 2. Number, mean and variance follow from them.
    Proof: :ref:`Theorems 1 to 3 of statistics <statistics-1>`.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp.statistics import private_variance
    >>> ages = np.random.default_rng(0).integers(20, 80, 10_000)
    >>> variance = private_variance(ages, lower=0, upper=120, epsilon=1.0)
    >>> bool(abs(variance.value / ages.var() - 1.0) < 0.1)
    True
    """
    terms = Terms(
        "private_variance",
        *(epsilon, delta, adjacency, mechanism, confidence, accountant, random_state),
    )
    described = bounded_column(column, lower, upper, schema)
    return _moment(terms, "variance", 2, column, described, _is_whole(described, schema))


def _is_whole(described: NumericColumn, schema: Any) -> bool:
    """Return whether the public description excludes missing cells."""
    return schema is None or described.missing not in ("ignore", "indicator")


def _release(name: str, degree: int, adjacency: Adjacency, whole: bool = True) -> Release:
    """Return the release of sums, in shares of a record."""
    if adjacency == "add-remove" or not whole:
        return Release.shares(name, adjacency, UNIT)
    if degree == 1:
        return Release.number(name, UNIT, UNIT)
    # Rounding down adds less than two steps to the change of a share as a real number.
    l1, l2_squared = 4 * UNIT // 3 + 5, UNIT**2 + (UNIT // 2 + 4) ** 2
    return Release.integers(name, l1, l2_squared, UNIT, largest=UNIT + 2)


def _moment(
    terms: Terms, name: str, degree: int, column: Any, described: NumericColumn, whole: bool
) -> PrivateStatistic:
    """Release the cells that records are split among, and the statistic computed from them.

    Under replace-one, the number of values of a column without missing cells is public and free.
    """
    of_all = terms.adjacency == "replace-one" and whole
    (noisy, size), plan, spent = terms.release(
        [(column, partial(_read, column=described, whole=of_all))],
        lambda: terms.noise_of(_release(name, degree, terms.adjacency, whole)),
        lambda plan: (
            f"{name}: {describe_noise(plan)}",
            (f"bounds {described.lower:g} and {described.upper:g} are public",)
            + (("the number of rows is public",) if of_all else ()),
            (name,),
        ),
        lambda plan, places: (
            *terms.add_noise(plan, [shares(places, degree).sum(axis=0)[of_all:]], places),
            max(places.size, 1) * UNIT if of_all else None,
        ),
    )
    noise = plan.releases[0]
    reach = noise.half_width(terms.failure) / UNIT
    return PrivateStatistic(
        name,
        *moment(name, noisy, noise, described, terms.failure, size),
        noise.people,
        (-reach, reach),
        terms.confidence,
        spent,
    )


def _read(cells: np.ndarray, column: NumericColumn, whole: bool) -> np.ndarray:
    """Return positions of cells between the bounds; refuse missing cells in a `whole` column."""
    places = positions(cells, column)
    if whole and np.isnan(places).any():
        raise ValueError(
            f"column {column.name!r} has missing cells, so the number of values is not public: "
            "declare it, schema=NumericColumn(..., missing='ignore'), or fill them with a public "
            "number."
        )
    return places


class Moment(NamedTuple):
    """Statistic in the unit of the column, with bounds."""

    value: np.ndarray
    interval: tuple[float, float]


def moment(
    name: str,
    noisy: np.ndarray,
    noise: Release,
    column: NumericColumn,
    failure: float,
    size: int | None = None,
) -> Moment:
    """Return mean, variance or deviation from noisy cells; with `size`, the first one is absent."""
    corners = corners_of(noisy, noise.half_width(failure, noisy.size), size)
    if size is not None:
        noisy = with_first(noisy, size)
    elif noisy.sum() < UNIT:
        noisy = np.ones(noisy.size)  # no record is left after the noise
    lower, upper = bounds_of(column)
    span = upper - lower
    if name == "mean":
        places = (mean_of(noisy), *mean_bounds(corners))
        value, least, most = (lower + span * place for place in places)
        rounding = 4.0 * math.ulp(max(abs(lower), abs(upper)))
        least, most = max(least - rounding, lower), min(most + rounding, upper)
    elif name == "sd":
        squares = (variance_of(noisy), *variance_bounds(corners))
        value, least, most = (span * math.sqrt(max(square, 0.0)) for square in squares)
    else:
        squares = (variance_of(noisy), *variance_bounds(corners))
        value, least, most = (span * square * span for square in squares)
    return Moment(np.array(value), (least, most))


_STEPS = 10
# Additional steps for the sides of the interval, and the weights of the lengths of pieces.
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
    adjacency: Adjacency | None = None,
    mechanism: str = "auto",
    confidence: float = 0.95,
    accountant: Any = None,
    random_state: Any = None,
) -> PrivateStatistic:
    """Release a quantile of a numeric column, such as its median.

    Parameters
    ----------
    column : series, array or list of shape (n_samples,)
        One cell per record. Missing cells are left out.
    q : float, default=0.5
        Level in (0, 1), a fraction with a denominator of at most 1000.
    lower, upper : float or None, default=None
        Public bounds; values beyond a bound are clipped to it. None requires `schema`.
    resolution : float or None, default=None
        Approximate resolution of the search, in the unit of the column. Each halving of the range
        takes one noisy count; a coarser resolution has fewer counts with less noise each. None uses
        a 1024th of the range.
    schema : TableSchema, column of one or None, default=None
        Description with the bounds, found by the column's name, and with a policy for missing
        cells. None requires `lower` and `upper`.
    epsilon, delta, adjacency, mechanism, confidence, accountant, random_state
        As for `private_count`, with the same errors.

    Returns
    -------
    PrivateStatistic
        Noisy quantile in ``value``. The exact quantile is the smallest value x such that a share q
        of all values is at most x; ``interval`` is for a table with at least one value.

    Notes
    -----
    At a threshold t, each value of at most t counts ``1 - q`` and each other value ``-q``. The sign
    of the sum shows on which side of t the quantile is. Its sensitivity is ``max(q, 1 - q)`` under
    add-remove and 1 under replace-one. Sums at thresholds that depend on earlier ones compose
    adaptively. A sum beyond the reach of all noise makes the side certain; these thresholds are the
    interval. Proof: :ref:`Theorem 4 of statistics <statistics-4>`; for the noise,
    :ref:`Theorem 1 <statistics-1>`.

    References
    ----------
    Smith (2011), "Privacy-preserving statistical estimation with optimal convergence rates", solves
    the same problem with the exponential mechanism, without bounds on the value.

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
    """Return a level as an exact fraction."""
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
    """Return the middle of the last piece, and the nearest thresholds with a certain side.

    Values are sorted; only the noisy sums depend on them.
    """
    # The longest of three pieces is halved: the one in which sums change sign, and on each side of
    # it the one in which they become certain.
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
    least, most = sorted((least, most))  # they cross if noise is extreme
    return min(max(low / 2.0 + high / 2.0, least), most), (least, most)
