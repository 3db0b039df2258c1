"""Privacy filters, by name: the releases that fit a budget after any earlier results.

A filter converts each release into an exact cost in its units and grants it if no sum exceeds its
limit. All are valid under fully adaptive choices.
"""

from __future__ import annotations

from skdp.base.parameters import Adjacency
from skdp.budget.currencies.base import BudgetFilter, Charge, as_float
from skdp.budget.currencies.filters import (
    ApproxFilter,
    BasicFilter,
    GDPFilter,
    RDPFilter,
    ZCDPFilter,
)
from skdp.budget.currencies.mixed import MixedFilter

__all__ = ["COMPOSITIONS", "BudgetFilter", "Charge", "make_filter"]

_FILTERS: dict[str, type[BudgetFilter]] = {
    cls.name: cls
    for cls in (MixedFilter, BasicFilter, GDPFilter, ZCDPFilter, RDPFilter, ApproxFilter)
}
COMPOSITIONS = ("auto", *_FILTERS)


def make_filter(
    composition: str,
    epsilon: float,
    delta: float,
    adjacency: Adjacency,
    stated_epsilon: float | None = None,
) -> BudgetFilter:
    """Return the filter of a composition."""
    if composition not in COMPOSITIONS:
        raise ValueError(f"composition must be one of {COMPOSITIONS}, got {composition!r}.")
    if composition == "auto":
        composition = "mixed" if as_float(delta) > 0.0 else "basic"
    if composition == "mixed":
        return MixedFilter(epsilon, delta, adjacency, stated_epsilon)
    if stated_epsilon is not None:
        raise ValueError(
            f"stated_epsilon={stated_epsilon!r} requires composition='mixed', got {composition!r}."
        )
    return _FILTERS[composition](epsilon, delta, adjacency)
