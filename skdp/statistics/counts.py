"""Private counts, histograms and contingency tables: one record, one cell."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np

from skdp.choices import Adjacency, CountMechanism
from skdp.mechanisms.release import Release
from skdp.preprocessing.schema.base import UNKNOWN, positions_in
from skdp.reporting.privacy_spent import PrivacySpent
from skdp.statistics._columns import listed_column
from skdp.statistics._terms import Terms, describe_noise
from skdp.statistics.results import PrivateCounts


def private_count(
    column: Any,
    *,
    epsilon: float,
    delta: float = 0.0,
    adjacency: Adjacency = "add-remove",
    mechanism: CountMechanism = "auto",
    confidence: float = 0.95,
    accountant: Any = None,
    random_state: Any = None,
) -> PrivateCounts:
    """Count the rows of a column that are neither missing nor False.

    So rows are counted that have a value, and of a condition such as ``age > 60`` those that meet
    it.

    Parameters
    ----------
    column : series, array or list of shape (n_samples,)
        One cell a record, of pandas, polars or numpy.
    epsilon : float
        Privacy parameter in nats, positive.
    delta : float, default=0.0
        Failure probability, in [0, 1). Noise that is Gaussian needs a positive one, well below 1/n.
    adjacency : {"add-remove", "replace-one"}, default="add-remove"
        Which tables are neighbours: one has a record more, or one record is another. Only the
        second takes the number of rows for public.
    mechanism : {"auto", "laplace", "gaussian"}, default="auto"
        Discrete Laplace or discrete Gaussian noise; ``"auto"`` takes the one with the narrower
        interval, which is Laplace at ``delta=0``.
    confidence : float, default=0.95
        Probability, over the noise, that an interval holds.
    accountant : BudgetAccountant or None, default=None
        Budget to charge before rows are used; None takes that of the ``with`` block around the
        call. Without one the call is not counted, or refused where ``set_config`` requires a
        budget.
    random_state : int, RandomState, RandomStream or None, default=None
        None draws noise from the operating system. A seed is for tests: the guarantee does not hold
        against whoever knows it.

    Returns
    -------
    PrivateCounts
        The noisy count in ``value``, its ``interval`` and ``privacy_spent_``.

    Raises
    ------
    ValueError, TypeError
        For bad parameters or input, before anything is charged.
    BudgetExceededError
        If the budget cannot take the charge; the rows are not used then.

    Notes
    -----
    Sensitivity 1 under either relation. The noise is drawn on the integers with exact probabilities
    (Canonne, Kamath and Steinke, 2020), so that nothing is assumed of floating point. Proof:
    :ref:`Theorems 1 and 2 of statistics <statistics-1>`.

    References
    ----------
    Ghosh, Roughgarden & Sundararajan (2012), "Universally utility-maximizing privacy mechanisms".
    Canonne, Kamath & Steinke (2020), "The discrete Gaussian for differential privacy".

    Examples
    --------
    >>> import numpy as np
    >>> from skdp.statistics import private_count
    >>> ages = np.arange(1000) % 90
    >>> older = private_count(ages > 60, epsilon=1.0)
    >>> low, high = older.interval
    >>> float(high - low)
    6.0
    """
    terms = Terms(
        "private_count",
        *(epsilon, delta, adjacency, mechanism, confidence, accountant, random_state),
    )
    return _released(terms, Release.number("count", 1), (), [(column, _is_counted)], _total)


def _is_counted(cells: np.ndarray) -> np.ndarray:
    present = positions_in(cells, {}, ()) == UNKNOWN
    false = [isinstance(cell, bool | np.bool_) and not cell for cell in cells.tolist()]
    return np.asarray(present & ~np.array(false, dtype=bool))


def _total(counted: np.ndarray) -> np.ndarray:
    return np.array(counted.sum(), dtype=np.int64)


def private_histogram(
    column: Any,
    *,
    categories: Any = None,
    schema: Any = None,
    other: Any = None,
    epsilon: float,
    delta: float = 0.0,
    adjacency: Adjacency = "add-remove",
    mechanism: str = "auto",
    confidence: float = 0.95,
    accountant: Any = None,
    random_state: Any = None,
) -> PrivateCounts:
    """Count how often each listed category occurs.

    Parameters
    ----------
    column : series, array or list of shape (n_samples,)
        One cell a record.
    categories : sequence or None, default=None
        The public list, from a code book, whether a category occurs or not.
    schema : TableSchema, column of one or None, default=None
        Has the list instead, for the column's name. Its policies for missing and unknown cells
        hold.
    other : str or None, default=None
        Name of a last cell for what is missing or not listed. None counts such rows in no cell.
    epsilon, delta, adjacency, mechanism, confidence, accountant, random_state
        As for `private_count`.

    Returns
    -------
    PrivateCounts
        One noisy count a category in ``values``, in the order of ``categories``. Each of the
        bounds in ``interval`` holds with the stated probability by itself; for all at once see
        ``simultaneous_interval``.

    Raises
    ------
    ValueError, TypeError, BudgetExceededError
        As for `private_count`, before rows are used.

    Notes
    -----
    A record lies in one cell at most: L1 sensitivity 1 and L2 sensitivity 1 under add-remove, 2 and
    the root of 2 under replace-one, however many cells there are. What is not on the list never
    shows, as its very presence would be private. Proof: :ref:`Lemma 1 of statistics
    <statistics-lemma-1>`, :ref:`Theorems 1 and 2 <statistics-1>`.

    Examples
    --------
    >>> from skdp.statistics import private_histogram
    >>> wards = ["A"] * 700 + ["B"] * 300
    >>> found = private_histogram(wards, categories=["A", "B", "C"], epsilon=1.0)
    >>> found.values.shape
    (3,)
    >>> found.privacy_spent_.epsilon
    1.0
    """
    terms = Terms(
        "private_histogram",
        *(epsilon, delta, adjacency, mechanism, confidence, accountant, random_state),
    )
    return _table(terms, "histogram", [column], [categories], schema, other)


def private_contingency_table(
    columns: Any,
    *,
    categories: Any = None,
    schema: Any = None,
    epsilon: float,
    delta: float = 0.0,
    adjacency: Adjacency = "add-remove",
    mechanism: str = "auto",
    confidence: float = 0.95,
    accountant: Any = None,
    random_state: Any = None,
) -> PrivateCounts:
    """Count how often each combination of listed categories occurs.

    Parameters
    ----------
    columns : sequence of columns, or DataFrame
        Series, arrays or lists of one length. Of a frame all columns are taken: ``frame[["sex",
        "ward"]]``.
    categories : sequence of sequences, mapping or None, default=None
        One public list for each column, in their order or by their names.
    schema : TableSchema or None, default=None
        Has the lists instead, for columns that have names.
    epsilon, delta, adjacency, mechanism, confidence, accountant, random_state
        As for `private_count`.

    Returns
    -------
    PrivateCounts
        Noisy counts in ``values``, an array with one dimension a column; ``categories`` has one
        tuple for each. A row with a missing or unlisted cell is counted nowhere.

    Raises
    ------
    ValueError, TypeError, BudgetExceededError
        As for `private_count`, before rows are used.

    Notes
    -----
    One record lies in one cell at most: sensitivities are those of `private_histogram`, and sums
    over rows or columns of the table cost nothing more. Proof: :ref:`Lemma 1 of statistics
    <statistics-lemma-1>`, :ref:`Theorems 1 and 2 <statistics-1>`.

    Examples
    --------
    >>> from skdp.statistics import private_contingency_table
    >>> table = private_contingency_table(
    ...     [["A", "B"] * 50, [True, False] * 50],
    ...     categories=[["A", "B"], [False, True]],
    ...     epsilon=1.0,
    ... )
    >>> table.values.shape
    (2, 2)
    """
    terms = Terms(
        "private_contingency_table",
        *(epsilon, delta, adjacency, mechanism, confidence, accountant, random_state),
    )
    is_frame = hasattr(columns, "dtypes") and hasattr(columns, "columns")
    parts = [columns[name] for name in columns.columns] if is_frame else list(columns)
    if isinstance(categories, Mapping):
        categories = [categories.get(getattr(part, "name", None)) for part in parts]
    lists = [None] * len(parts) if categories is None else list(categories)
    if not parts or len(lists) != len(parts):
        raise ValueError("give at least one column, and one list of categories for each.")
    return _table(terms, "contingency table", parts, lists, schema)


def _table(
    terms: Terms, name: str, columns: list[Any], lists: list[Any], schema: Any, other: Any = None
) -> PrivateCounts:
    """Read the columns, and release the table of their combinations."""
    listed = [listed_column(part, own, schema) for part, own in zip(columns, lists, strict=True)]
    axes = [tuple(column.listed() or ()) + (() if other is None else (other,)) for column in listed]
    if any(len(set(axis)) < len(axis) for axis in axes):
        raise ValueError("other must not be one of the categories.")
    if len(axes) > 64 or math.prod(map(len, axes)) > 2**28:
        raise ValueError("the table would have too many dimensions or cells.")
    last = None if other is None else len(axes[0]) - 1
    read = [partial(_places, column.read, last) for column in listed]
    return _released(
        terms,
        Release.shares(name, terms.adjacency),
        axes[0] if len(axes) == 1 else tuple(axes),
        list(zip(columns, read, strict=True)),
        lambda *places: table_of(list(places), [len(axis) for axis in axes]),
    )


def _places(read: Any, last: int | None, cells: np.ndarray) -> np.ndarray:
    """Return places on a list; what is on none is at the last one, if there is one for it."""
    places = read(cells)
    return places if last is None else np.where(places < 0, last, places)


def table_of(places: list[np.ndarray], shape: list[int], weights: Any = None) -> np.ndarray:
    """Return sums over the rows that lie in each cell; negative places lie in none."""
    inside = np.all([part >= 0 for part in places], axis=0)
    flat = np.ravel_multi_index([part[inside] for part in places], shape)
    totals = np.zeros(int(np.prod(shape)), dtype=np.int64)
    np.add.at(totals, flat, 1 if weights is None else weights[inside])
    return totals.reshape(shape)


def _released(
    terms: Terms, release: Release, categories: Any, columns: list[Any], count: Callable[..., Any]
) -> PrivateCounts:
    """Release counts of the places of cells."""
    name = release.label
    (values,), plan, spent = terms.release(
        columns,
        lambda: terms.noise_of(release),
        lambda plan: (f"{name}: {describe_noise(plan)}", ("one record is one row",), (name,)),
        lambda plan, *places: terms.add_noise(plan, [count(*places)], *places),
    )
    return counts_with_intervals(terms, name, values, plan.releases[0], spent, categories)


def counts_with_intervals(
    terms: Terms,
    name: str,
    values: np.ndarray,
    noise: Release,
    spent: PrivacySpent,
    categories: Any,
) -> PrivateCounts:
    """Return released counts with the reach of their noise."""
    width = float(noise.half_width(terms.failure))
    # Of an array without dimensions the bounds are numbers.
    reach = (values - width, values + width), noise.people, (-width, width), terms.confidence
    return PrivateCounts(name, values, *reach, spent, categories, noise=noise)
