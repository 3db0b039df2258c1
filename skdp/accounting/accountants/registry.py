"""The accountants by name."""

from __future__ import annotations

from skdp.accounting.accountants.base import Accountant


def accountants() -> dict[str, type[Accountant]]:
    """Return all accountants.

    Returns
    -------
    dict of str to type
        Name and class, the tightest first.
    """
    from skdp.accounting.accountants.advanced_composition import AdvancedCompositionAccountant
    from skdp.accounting.accountants.basic_composition import BasicCompositionAccountant
    from skdp.accounting.accountants.bayesian import BayesianAccountant
    from skdp.accounting.accountants.gdp import GDPAccountant
    from skdp.accounting.accountants.generic import GenericAccountant
    from skdp.accounting.accountants.hidden_state import HiddenStateAccountant
    from skdp.accounting.accountants.moments import MomentsAccountant
    from skdp.accounting.accountants.optimal_composition import OptimalCompositionAccountant
    from skdp.accounting.accountants.pld import PLDAccountant
    from skdp.accounting.accountants.rdp import RDPAccountant

    classes: tuple[type[Accountant], ...] = (
        *(PLDAccountant, RDPAccountant, GDPAccountant, HiddenStateAccountant),
        *(GenericAccountant, MomentsAccountant, OptimalCompositionAccountant),
        *(AdvancedCompositionAccountant, BasicCompositionAccountant, BayesianAccountant),
    )
    return {cls.name: cls for cls in classes}


def resolve_accountant(accountant: str | type[Accountant]) -> type[Accountant]:
    """Return the accountant class that a name stands for.

    Parameters
    ----------
    accountant : str or Accountant class
        A name, one of ``"pld"``, ``"rdp"``, ``"gdp"``, ``"hidden-state"``, ``"generic"``,
        ``"moments"``, ``"optimal"``, ``"advanced"``, ``"basic"`` and ``"bayesian"``, or a class,
        which is returned as it is.

    Returns
    -------
    type
        A subclass of `Accountant`.

    Raises
    ------
    ValueError
        If the name is unknown.
    """
    if isinstance(accountant, type) and issubclass(accountant, Accountant):
        return accountant
    known = accountants()
    if not isinstance(accountant, str) or accountant not in known:
        raise ValueError(
            f"accountant must be one of {tuple(known)} or an Accountant class, got {accountant!r}."
        )
    return known[accountant]
