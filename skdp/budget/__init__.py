"""Budgets: how much privacy may be spent, and what has been."""

from skdp.budget.accountant import BudgetAccountant, BudgetEntry
from skdp.exceptions import BudgetExceededError

__all__ = ["BudgetAccountant", "BudgetEntry", "BudgetExceededError"]
