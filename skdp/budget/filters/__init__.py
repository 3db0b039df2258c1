"""Privacy filters: what still fits a budget when every release may depend on earlier results.

A filter turns each release into an exact cost in its currency and grants it as long as no sum
exceeds its limit. Five currencies are offered; all are valid under fully adaptive choices.
"""

from skdp.budget.filters._base import BudgetFilter, Charge
from skdp.budget.filters.approx import ApproxFilter
from skdp.budget.filters.basic import BasicFilter
from skdp.budget.filters.gdp import GDPFilter
from skdp.budget.filters.make import COMPOSITIONS, make_filter
from skdp.budget.filters.rdp import RDPFilter
from skdp.budget.filters.zcdp import ZCDPFilter

__all__ = [
    "COMPOSITIONS",
    "ApproxFilter",
    "BasicFilter",
    "BudgetFilter",
    "Charge",
    "GDPFilter",
    "RDPFilter",
    "ZCDPFilter",
    "make_filter",
]
