"""Privacy filters: what still fits a budget when every release may depend on earlier results.

A filter turns each release into an exact cost in its currency and grants it as long as no sum
exceeds its limit. Six currencies are offered; all are valid under fully adaptive choices.
"""

from skdp.budget.currencies.approx import ApproxFilter
from skdp.budget.currencies.base import BudgetFilter, Charge
from skdp.budget.currencies.basic import BasicFilter
from skdp.budget.currencies.gdp import GDPFilter
from skdp.budget.currencies.make import COMPOSITIONS, make_filter
from skdp.budget.currencies.mixed import MixedFilter
from skdp.budget.currencies.rdp import RDPFilter
from skdp.budget.currencies.zcdp import ZCDPFilter

__all__ = [
    "COMPOSITIONS",
    "ApproxFilter",
    "BasicFilter",
    "BudgetFilter",
    "Charge",
    "GDPFilter",
    "MixedFilter",
    "RDPFilter",
    "ZCDPFilter",
    "make_filter",
]
