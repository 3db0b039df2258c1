"""Filters by name."""

from __future__ import annotations

from skdp.budget.currencies.approx import ApproxFilter
from skdp.budget.currencies.base import BudgetFilter
from skdp.budget.currencies.basic import BasicFilter
from skdp.budget.currencies.gdp import GDPFilter
from skdp.budget.currencies.mixed import MixedFilter
from skdp.budget.currencies.rdp import RDPFilter
from skdp.budget.currencies.zcdp import ZCDPFilter

_FILTERS: dict[str, type[BudgetFilter]] = {
    cls.name: cls
    for cls in (MixedFilter, BasicFilter, GDPFilter, ZCDPFilter, RDPFilter, ApproxFilter)
}
COMPOSITIONS = ("auto", *_FILTERS)


def make_filter(
    composition: str,
    epsilon: float,
    delta: float,
    adjacency: str,
    stated_epsilon: float | None = None,
) -> BudgetFilter:
    """Return the filter of a composition.

    Parameters
    ----------
    composition : {"auto", "mixed", "basic", "gdp", "zcdp", "rdp", "approx"}
        The currency. ``"auto"`` is ``"mixed"`` if delta is positive, else ``"basic"``; the filter's
        ``name`` says which it was.
    epsilon : float
        Total epsilon, positive; ``inf`` counts without limit.
    delta : float
        Total delta, in [0, 1); positive for all but ``"basic"``.
    adjacency : {"replace-one", "add-remove"}
        The relation between neighbouring data sets of all charges.
    stated_epsilon : float, optional
        As `MixedFilter` takes it; None for all others.

    Returns
    -------
    BudgetFilter
        The filter. It holds no state: what is spent is handed to its methods.

    Raises
    ------
    ValueError
        If a parameter is out of range.

    Examples
    --------
    >>> from skdp.budget.currencies import make_filter
    >>> make_filter("auto", 1.0, 1e-5, "replace-one").name
    'mixed'
    """
    if composition not in COMPOSITIONS:
        raise ValueError(f"composition must be one of {COMPOSITIONS}, got {composition!r}.")
    if composition == "auto":
        composition = "mixed" if delta > 0.0 else "basic"
    if composition == "mixed":
        return MixedFilter(epsilon, delta, adjacency, stated_epsilon)
    if stated_epsilon is not None:
        raise ValueError(
            f"stated_epsilon={stated_epsilon!r} is for composition='mixed', not {composition!r}."
        )
    return _FILTERS[composition](epsilon, delta, adjacency)
