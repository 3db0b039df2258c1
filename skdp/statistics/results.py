"""Results of statistics: released numbers with intervals and their privacy record."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np

from skdp.accounting.privacy_spent import PrivacySpent
from skdp.accounting.records import html_table
from skdp.base.parameters import check_integer, check_real
from skdp.mechanisms.release import Release


@dataclass(frozen=True, eq=False, repr=False)
class PrivateStatistic:
    """Released statistic of a column.

    Parameters
    ----------
    name : str
        Name of the statistic, such as "mean".
    values : ndarray
        Released numbers; for a single number, an array without dimensions.
    interval : tuple of two floats, or of two arrays like `values`
        Bounds on the statistic of the table, each valid with probability `confidence` over the
        noise. They do not cover the sampling of the table from a population.
    scale : float
        Scale of the noise on sums, in records.
    noise_interval : tuple of two floats
        Bounds on the noise of one sum, in records, with the same probability.
    confidence : float
        Coverage probability of the intervals.
    privacy_spent_ : PrivacySpent
        Guarantee, mechanism and assumptions.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp.statistics import private_mean
    >>> ages = np.random.default_rng(0).uniform(20.0, 90.0, 5000)
    >>> result = private_mean(ages, lower=0.0, upper=120.0, epsilon=1.0)
    >>> low, high = result.interval
    >>> low < result.value < high, result.privacy_spent_.epsilon
    (True, 1.0)
    """

    name: str
    values: np.ndarray
    interval: tuple[Any, Any]
    scale: float
    noise_interval: tuple[float, float]
    confidence: float
    privacy_spent_: PrivacySpent

    @property
    def value(self) -> float:
        """Released number, for a statistic with a single value."""
        return float(self.values)

    def __float__(self) -> float:
        return self.value

    def _cells(self) -> list[tuple[str, float, float, float]]:
        """Return name, value and bounds of every released number."""
        low, high = self.interval
        return [(self.name, float(self.values), float(low), float(high))]

    def _lines(self) -> list[tuple[str, str]]:
        return [
            (name, f"{at:.6g}  [{low:.6g}, {high:.6g}]") for name, at, low, high in self._cells()
        ]

    def __repr__(self) -> str:
        lines = "\n".join(f"  {name}: {text}" for name, text in self._lines())
        return (
            f"{type(self).__name__}: {self.name}, {self.confidence:.6g} intervals for the table\n"
            f"{lines}\n  {self.privacy_spent_!r}"
        )

    def _repr_html_(self) -> str:
        return html_table(f"{self.name}, {self.privacy_spent_!r}", self._lines())


@dataclass(frozen=True, eq=False, repr=False)
class PrivateCounts(PrivateStatistic):
    """Released counts; the methods are post-processing and free.

    Parameters
    ----------
    name, values, interval, scale, noise_interval, confidence, privacy_spent_
        As for `PrivateStatistic`. Counts are integers and may be negative.
    categories : tuple
        Names of the cells; for a contingency table, one tuple per dimension.
    noise : object
        Law of the noise.
    released : ndarray or None
        Counts before any post-processing. None uses `values`.

    Examples
    --------
    >>> from skdp.statistics import private_histogram
    >>> wards = ["A"] * 300 + ["B"] * 200
    >>> counts = private_histogram(wards, categories=["A", "B", "C"], epsilon=1.0)
    >>> counts.categories
    ('A', 'B', 'C')
    >>> round(float(counts.consistent_with(500).values.sum()), 6)  # a public total
    500.0
    """

    categories: tuple[Any, ...] = ()
    noise: Release = field(kw_only=True)
    released: Any = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        if self.released is None:
            object.__setattr__(self, "released", np.array(self.values))

    def simultaneous_interval(self, confidence: float | None = None) -> tuple[Any, Any]:
        """Return bounds that are valid for all counts of the table at once.

        Parameters
        ----------
        confidence : float or None, default=None
            Joint coverage probability, over the noise. None uses the one of `interval`.

        Returns
        -------
        tuple of two arrays
            Lower and upper bounds, around the released counts without post-processing.

        Examples
        --------
        >>> from skdp.statistics import private_histogram
        >>> wards = ["A"] * 300 + ["B"] * 200
        >>> counts = private_histogram(wards, categories=["A", "B"], epsilon=1.0)
        >>> low, high = counts.simultaneous_interval(0.99)
        >>> bool((low < counts.interval[0]).all())  # wider than one by one
        True
        """
        level = self.confidence if confidence is None else confidence
        check_real("confidence", level, at_least=1e-12, at_most=1.0 - 1e-12)
        width = self.noise.half_width(1.0 - level, max(self.values.size, 1))
        return self.released - width, self.released + width

    def rounded(self, base: int = 1) -> Self:
        """Return counts rounded to multiples of a number; intervals do not change.

        Parameters
        ----------
        base : int, default=1
            Number to whose multiples counts are rounded, such as 5 or 10.

        Returns
        -------
        PrivateCounts
            Rounded counts.

        Examples
        --------
        >>> from skdp.statistics import private_histogram
        >>> wards = ["A"] * 300 + ["B"] * 200
        >>> counts = private_histogram(wards, categories=["A", "B"], epsilon=1.0)
        >>> set(counts.rounded(5).values % 5) == {0}
        True
        """
        base = check_integer("base", base, at_least=1)
        return replace(self, values=base * np.round(self.values / base))

    def nonnegative(self) -> Self:
        """Return counts and intervals with negative values replaced by 0.

        Examples
        --------
        >>> from skdp.statistics import private_histogram
        >>> counts = private_histogram(["A"] * 300, categories=["A", "B"], epsilon=1.0)
        >>> bool((counts.nonnegative().values >= 0).all())
        True
        """
        low, high = (np.maximum(bound, 0.0) for bound in self.interval)
        return replace(self, values=np.maximum(self.values, 0.0), interval=(low, high))

    def consistent_with(self, total: float) -> Self:
        """Return the nearest counts that add up to a public total; intervals do not change.

        Parameters
        ----------
        total : float
            Public total, such as a published number of patients.

        Returns
        -------
        PrivateCounts
            Adjusted counts, which need not be integers.
        """
        check_real("total", total)
        excess = float(self.values.sum()) - total
        return replace(self, values=self.values - excess / max(self.values.size, 1))

    def _cells(self) -> list[tuple[str, float, float, float]]:
        if self.values.ndim == 0:
            return super()._cells()
        axes = self.categories if self.values.ndim > 1 else (self.categories,)
        names = [", ".join(map(str, key)) for key in itertools.product(*axes)]
        bounds = (np.ravel(bound).tolist() for bound in (self.values, *self.interval))
        return list(zip(names, *bounds, strict=True))


@dataclass(frozen=True, repr=False)
class PrivateTopK:
    """Most frequent categories, found privately.

    Parameters
    ----------
    categories : tuple
        Found categories, most frequent first.
    shortfall : float
        Bound on the error: with probability `confidence`, the count of each found category is at
        most this much below the largest count among the categories not chosen before it.
    counts : PrivateCounts or None
        Noisy counts, if requested.
    confidence : float
        Probability of `shortfall`, and of each interval of `counts` by itself.
    privacy_spent_ : PrivacySpent
        Guarantee, mechanism and assumptions.

    Examples
    --------
    >>> from skdp.statistics import private_top_k
    >>> wards = ["A"] * 300 + ["B"] * 200 + ["C"] * 10
    >>> top = private_top_k(wards, categories=["A", "B", "C"], k=2, epsilon=5.0)
    >>> top.categories
    ('A', 'B')
    """

    categories: tuple[Any, ...]
    shortfall: float
    counts: PrivateCounts | None
    confidence: float
    privacy_spent_: PrivacySpent

    def __repr__(self) -> str:
        listed = ", ".join(map(repr, self.categories))
        return f"PrivateTopK: {listed} (each at most {self.shortfall:.4g} records short)"

    def _repr_html_(self) -> str:
        rows = [(str(rank), str(name)) for rank, name in enumerate(self.categories, 1)]
        return html_table(f"Most frequent first, {self.privacy_spent_!r}", rows)
