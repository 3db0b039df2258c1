"""The accountants by name."""

from __future__ import annotations

from skdp.accounting.accountants.advanced_composition import AdvancedCompositionAccountant
from skdp.accounting.accountants.base import Accountant
from skdp.accounting.accountants.basic_composition import BasicCompositionAccountant
from skdp.accounting.accountants.bayesian import BayesianAccountant
from skdp.accounting.accountants.gdp import GDPAccountant
from skdp.accounting.accountants.generic import GenericAccountant
from skdp.accounting.accountants.hidden_state import HiddenStateAccountant
from skdp.accounting.accountants.moments import MomentsAccountant
from skdp.accounting.accountants.optimal_composition import OptimalCompositionAccountant
from skdp.accounting.accountants.pld import PLDAccountant
from skdp.accounting.accountants.rdp import RDPAccountant

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
    """Return the class that a name such as ``"pld"`` stands for, or the class that is given."""
    return Accountant._named(accountant)
