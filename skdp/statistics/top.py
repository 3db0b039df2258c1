"""The most frequent categories, chosen privately one after the other."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from skdp.accounting import ComposedEvent, Event, PureDPEvent
from skdp.choices import Adjacency
from skdp.mechanisms import RandomStream, permute_and_flip
from skdp.mechanisms.release import Release, repeated
from skdp.parameters import check_integer
from skdp.statistics._columns import listed_column
from skdp.statistics._terms import Terms
from skdp.statistics.counts import counts_with_intervals, table_of
from skdp.statistics.noise import Plan
from skdp.statistics.results import PrivateTopK


def private_top_k(
    column: Any,
    k: int,
    *,
    categories: Any = None,
    schema: Any = None,
    counts: bool = False,
    epsilon: float,
    adjacency: Adjacency = "add-remove",
    confidence: float = 0.95,
    accountant: Any = None,
    random_state: Any = None,
) -> PrivateTopK:
    """Find the k most frequent of listed categories, the first one first.

    Parameters
    ----------
    column : series, array or list of shape (n_samples,)
        One cell a record; what is missing or not listed counts nowhere.
    k : int
        How many, at least 1 and fewer than there are categories.
    categories : sequence or None, default=None
        The public list, from a code book.
    schema : TableSchema, column of one or None, default=None
        Has the list instead, for the column's name.
    counts : bool, default=False
        Whether to release their noisy counts too, for half of the budget.
    epsilon, adjacency, confidence, accountant, random_state
        As for `private_count`.

    Returns
    -------
    PrivateTopK
        The ``categories``, by how much each may fall short, and their ``counts``.

    Raises
    ------
    ValueError, TypeError, BudgetExceededError
        As for `private_count`, before rows are used.

    Notes
    -----
    Peeling: each of k choices takes one of the categories that are left by `permute_and_flip`,
    whose law is that of the largest count with exponential noise and which never falls short by
    more than the exponential mechanism (with Gumbel noise, peeling is one-shot: Durfee and Rogers,
    2019). One count changes by 1, and under add-remove all in the same direction, so that scale
    ``1 / epsilon`` suffices for an epsilon-DP choice; under replace-one it is twice that. Of the
    counts of what was chosen, one record changes one under add-remove and two under replace-one.
    Proof: :ref:`Theorem 5 of statistics <statistics-5>`.

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
    # Rounded down by more than the sum of the shares is rounded up.
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
    """Return the places that are chosen, one after the other."""
    left, chosen = list(range(exact.size)), []
    for _ in range(k):
        place = permute_and_flip(
            exact[left], share, 1.0, stream, monotone=adjacency == "add-remove"
        )
        chosen.append(left.pop(place))
    return chosen
