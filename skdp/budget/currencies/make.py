"""Filters by name."""

from __future__ import annotations

from skdp.budget.currencies.approx import ApproxFilter
from skdp.budget.currencies.base import BudgetFilter, as_float
from skdp.budget.currencies.basic import BasicFilter
from skdp.budget.currencies.gdp import GDPFilter
from skdp.budget.currencies.mixed import MixedFilter
from skdp.budget.currencies.rdp import RDPFilter
from skdp.budget.currencies.zcdp import ZCDPFilter
from skdp.choices import Adjacency

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
            f"stated_epsilon={stated_epsilon!r} is for composition='mixed', not {composition!r}."
        )
    return _FILTERS[composition](epsilon, delta, adjacency)
