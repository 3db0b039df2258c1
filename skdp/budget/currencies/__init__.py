"""Privacy filters: what still fits a budget when every release may depend on earlier results.

A filter turns each release into an exact cost in its currency and grants it as long as no sum
exceeds its limit. All are valid under fully adaptive choices.
"""

from skdp.budget.currencies.base import BudgetFilter, Charge
from skdp.budget.currencies.make import COMPOSITIONS, make_filter

__all__ = ["COMPOSITIONS", "BudgetFilter", "Charge", "make_filter"]
