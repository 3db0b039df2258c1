"""Private counts, histograms, contingency tables, and the most frequent categories."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np

from skdp.accounting import ComposedEvent, Event, PureDPEvent
from skdp.accounting.privacy_spent import PrivacySpent
from skdp.base.parameters import Adjacency, CountMechanism, check_integer
from skdp.mechanisms import RandomStream, permute_and_flip
from skdp.mechanisms.release import Release, repeated
from skdp.preprocessing.schema.base import UNKNOWN, positions_in
from skdp.statistics._terms import Terms, describe_noise, listed_column
from skdp.statistics.noise import Plan
from skdp.statistics.results import PrivateCounts, PrivateTopK


def private_count(
    column: Any,
    *,
    epsilon: float,
    delta: float = 0.0,
    adjacency: Adjacency | None = None,
    mechanism: CountMechanism = "auto",
    confidence: float = 0.95,
    accountant: Any = None,
    random_state: Any = None,
) -> PrivateCounts:
    """Count the rows of a column that are neither missing nor False.

    For a column of values, this counts rows with a value. For a condition such as ``age > 60``, it
    counts rows that satisfy it.

    Parameters
    ----------
    column : series, array or list of shape (n_samples,)
        One cell per record, from pandas, polars or NumPy.
    epsilon : float
        Privacy parameter in nats, positive.
    delta : float, default=0.0
        Failure probability, in [0, 1), well below 1/n. Gaussian noise needs a positive value.
    adjacency : {"replace-one", "add-remove"} or None, default=None
        Neighbouring tables: one record replaced, or one added or removed. Only the first treats the
        number of rows as public. None uses the adjacency of the privacy budget, or
        ``"replace-one"`` without one.
    mechanism : {"auto", "laplace", "gaussian"}, default="auto"
        Discrete Laplace or discrete Gaussian noise. ``"auto"`` selects the one with the narrower
        interval, which is Laplace at ``delta=0``.
    confidence : float, default=0.95
        Coverage probability of an interval, over the noise.
    accountant : BudgetAccountant or None, default=None
        Budget to charge before rows are used. None uses the budget of the enclosing ``with`` block.
        Without one, the call is not counted, or it is refused if ``set_config`` requires a budget.
    random_state : int, RandomState, RandomStream or None, default=None
        Source of the noise. None uses the operating system. Use a seed for tests only: the
        guarantee does not hold against those who know it.

    Returns
    -------
    PrivateCounts
        Noisy count in ``value``, with ``interval`` and ``privacy_spent_``.

    Raises
    ------
    ValueError, TypeError
        For invalid parameters or input, before the charge.
    BudgetExceededError
        If the charge exceeds the remaining budget; the rows are not used.

    Notes
    -----
    The sensitivity is 1 under both adjacency relations. The noise is drawn on the integers with
    exact probabilities (Canonne, Kamath and Steinke, 2020); there is no assumption about floating
    point. Proof: :ref:`Theorems 1 and 2 of statistics <statistics-1>`.

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
    adjacency: Adjacency | None = None,
    mechanism: str = "auto",
    confidence: float = 0.95,
    accountant: Any = None,
    random_state: Any = None,
) -> PrivateCounts:
    """Count the rows of each listed category.

    Parameters
    ----------
    column : series, array or list of shape (n_samples,)
        One cell per record.
    categories : sequence or None, default=None
        Public list of categories, from a code book, including categories that do not occur. None
        requires `schema`.
    schema : TableSchema, column of one or None, default=None
        Description with the list, found by the column's name, and with policies for missing and
        unknown cells. None requires `categories`.
    other : str or None, default=None
        Name of an additional last cell for missing and unlisted values. None leaves such rows out.
    epsilon, delta, adjacency, mechanism, confidence, accountant, random_state
        As for `private_count`, with the same errors.

    Returns
    -------
    PrivateCounts
        Noisy counts in ``values``, in the order of ``categories``. The bounds in ``interval`` are
        valid one at a time; for all at once see ``simultaneous_interval``.

    Notes
    -----
    A record is in at most one cell. For any number of cells, the L1 and L2 sensitivities are 1
    under add-remove, and 2 and the square root of 2 under replace-one. Unlisted values never
    appear, because their presence is private. Proof: :ref:`Lemma 1 of statistics
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
    adjacency: Adjacency | None = None,
    mechanism: str = "auto",
    confidence: float = 0.95,
    accountant: Any = None,
    random_state: Any = None,
) -> PrivateCounts:
    """Count the rows of each combination of listed categories.

    Parameters
    ----------
    columns : sequence of columns, or DataFrame
        Series, arrays or lists of equal length. All columns of a frame are used: ``frame[["sex",
        "ward"]]``.
    categories : sequence of sequences, mapping or None, default=None
        Public lists of categories, one per column, in order or by name. None requires `schema`.
    schema : TableSchema or None, default=None
        Description with the lists, found by the names of the columns. None requires `categories`.
    epsilon, delta, adjacency, mechanism, confidence, accountant, random_state
        As for `private_count`, with the same errors.

    Returns
    -------
    PrivateCounts
        Noisy counts in ``values``, an array with one dimension per column. ``categories`` has one
        tuple for each. Rows with a missing or unlisted cell are left out.

    Notes
    -----
    A record is in at most one cell: the sensitivities are those of `private_histogram`, and sums
    over rows or columns of the table are free. Proof: :ref:`Lemma 1 of statistics
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
        raise ValueError("pass at least one column, and one list of categories for each.")
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
    """Return positions in a list; unlisted cells are at the last one, if there is one for them."""
    places = read(cells)
    return places if last is None else np.where(places < 0, last, places)


def table_of(places: list[np.ndarray], shape: list[int], weights: Any = None) -> np.ndarray:
    """Return sums over the rows of each cell; rows with negative positions are left out."""
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
    """Return released counts with their intervals."""
    width = float(noise.half_width(terms.failure))
    # The bounds of an array without dimensions are numbers.
    reach = (values - width, values + width), noise.people, (-width, width), terms.confidence
    return PrivateCounts(name, values, *reach, spent, categories, noise=noise)


def private_top_k(
    column: Any,
    k: int,
    *,
    categories: Any = None,
    schema: Any = None,
    counts: bool = False,
    epsilon: float,
    adjacency: Adjacency | None = None,
    confidence: float = 0.95,
    accountant: Any = None,
    random_state: Any = None,
) -> PrivateTopK:
    """Find the k most frequent of the listed categories, most frequent first.

    Parameters
    ----------
    column : series, array or list of shape (n_samples,)
        One cell per record. Missing and unlisted values are left out.
    k : int
        Number of categories to find, at least 1 and less than the number of categories.
    categories : sequence or None, default=None
        Public list of categories, from a code book. None requires `schema`.
    schema : TableSchema, column of one or None, default=None
        Description with the list, found by the column's name. None requires `categories`.
    counts : bool, default=False
        Whether to release the noisy counts of the found categories too, for half of the budget.
    epsilon, adjacency, confidence, accountant, random_state
        As for `private_count`, with the same errors.

    Returns
    -------
    PrivateTopK
        ``categories``, their largest possible ``shortfall``, and their ``counts``.

    Notes
    -----
    Each of k choices selects one of the remaining categories by `permute_and_flip` (peeling). Its
    law is that of the largest count with exponential noise. Its shortfall exceeds any given size
    with at most the probability of the exponential mechanism. (With Gumbel noise, peeling is
    one-shot: Durfee and Rogers, 2019.) One count changes by 1, under add-remove all in the same
    direction. Therefore scale ``1 / epsilon`` suffices for an epsilon-DP choice; under replace-one
    it is twice that. One record changes one of the released counts under add-remove, and two under
    replace-one. Proof: :ref:`Theorem 5 of statistics <statistics-5>`.

    References
    ----------
    McKenna & Sheldon (2020), "Permute-and-flip: a new mechanism for differentially private
    selection". Durfee & Rogers (2019), "Practical differentially private top-k selection with
    pay-what-you-get composition".

    Examples
    --------
    >>> from skdp.statistics import private_top_k
    >>> names = ["Anna"] * 500 + ["Emma"] * 300 + ["Mia"] * 20
    >>> private_top_k(names, 2, categories=["Mia", "Emma", "Anna", "Ida"], epsilon=1.0).categories
    ('Anna', 'Emma')
    """
    terms = Terms(
        "private_top_k", epsilon, 0.0, adjacency, "laplace", confidence, accountant, random_state
    )
    k = check_integer("k", k, at_least=1)
    listed = listed_column(column, categories, schema)
    names = tuple(listed.listed() or ())
    if k >= len(names):
        raise ValueError(f"k must be less than the number of categories, {len(names)}, got {k}.")
    # Rounded down by more than the sum of the shares may be rounded up.
    share = terms.epsilon / (2 * k if counts else k) * (1.0 - 1e-12)
    event: Event = repeated(PureDPEvent(share), k)
    noises: tuple[Release, ...] = ()
    if counts:
        changed = Release.shares("counts of the chosen", terms.adjacency)
        noises = (changed.laplace(changed.l1 / (k * share)),)
        event = ComposedEvent((event, noises[0].event))

    def use(plan: Plan, places: np.ndarray) -> Any:
        exact = table_of([places], [len(names)])
        stream = terms.stream(event, exact, places)
        chosen = _peel(exact, k, share, terms.adjacency, stream)
        return chosen, [noise.make(exact[chosen], stream) for noise in noises]

    (chosen, values), _, spent = terms.release(
        [(column, listed.read)],
        lambda: Plan(noises, event),
        lambda plan: (
            f"{k} choices by permute-and-flip, each {share:.6g}-DP (McKenna & Sheldon 2020)"
            + ("; counts with discrete Laplace noise" if counts else ""),
            ("the list of categories is public",),
            ("categories", "counts") if counts else ("categories",),
        ),
        use,
        "choices assume real arithmetic: chances are computed in double precision; counts are "
        "integers with exact noise (docs/proofs/statistics.md)",
    )
    scale = (1.0 if terms.adjacency == "add-remove" else 2.0) / share
    shortfall = scale * math.log(len(names) * k / terms.failure) * (1.0 + 1e-12)
    found = tuple(names[place] for place in chosen)
    released = None
    if counts:
        released = counts_with_intervals(terms, "counts", values[0], noises[0], spent, found)
    return PrivateTopK(found, shortfall, released, terms.confidence, spent)


def _peel(
    exact: np.ndarray, k: int, share: float, adjacency: Adjacency, stream: RandomStream
) -> list[int]:
    """Return the positions of the chosen categories, in order of choice."""
    left, chosen = list(range(exact.size)), []
    for _ in range(k):
        place = permute_and_flip(
            exact[left], share, 1.0, stream, monotone=adjacency == "add-remove"
        )
        chosen.append(left.pop(place))
    return chosen
