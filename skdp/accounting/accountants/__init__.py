"""Accountants: each computes the privacy cost of a plan of releases from their analyses."""

from __future__ import annotations

from skdp.accounting.accountants.base import Accountant
from skdp.accounting.accountants.composition import (
    AdvancedCompositionAccountant,
    OptimalCompositionAccountant,
)
from skdp.accounting.accountants.gdp import GDPAccountant
from skdp.accounting.accountants.generic import BayesianAccountant, GenericAccountant
from skdp.accounting.accountants.hidden_state import HiddenStateAccountant
from skdp.accounting.accountants.pld import PLDAccountant
from skdp.accounting.accountants.rdp import MomentsAccountant, RDPAccountant
from skdp.accounting.accountants.stepwise import BasicCompositionAccountant

_ALL: tuple[type[Accountant], ...] = (
    *(PLDAccountant, RDPAccountant, GDPAccountant, HiddenStateAccountant),
    *(GenericAccountant, MomentsAccountant, OptimalCompositionAccountant),
    *(AdvancedCompositionAccountant, BasicCompositionAccountant, BayesianAccountant),
)
Accountant._known.update({cls.name: cls for cls in _ALL})


def accountants() -> dict[str, type[Accountant]]:
    """Return all accountants by name, the tightest first."""
    return dict(Accountant._known)


def resolve_accountant(accountant: str | type[Accountant]) -> type[Accountant]:
    """Return the class with a name such as ``"pld"``, or the given class."""
    return Accountant._named(accountant)
