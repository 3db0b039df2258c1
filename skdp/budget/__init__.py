"""Privacy budgets: totals, charges and ledgers."""

from skdp.budget.accountant import BudgetAccountant, BudgetPlan
from skdp.budget.entries import BudgetEntry
from skdp.budget.ledger.chain import LedgerReceipt
from skdp.budget.planning import plan_fits
from skdp.exceptions import (
    BudgetExceededError,
    BudgetRequiredError,
    LedgerDamagedError,
    LedgerError,
    LedgerFullError,
    LedgerLockedError,
    LedgerMismatchError,
    LedgerMissingError,
    LedgerReadOnlyError,
    LedgerUnreachableError,
)

__all__ = [
    "BudgetAccountant",
    "BudgetEntry",
    "BudgetExceededError",
    "BudgetPlan",
    "BudgetRequiredError",
    "LedgerDamagedError",
    "LedgerError",
    "LedgerFullError",
    "LedgerLockedError",
    "LedgerMismatchError",
    "LedgerMissingError",
    "LedgerReadOnlyError",
    "LedgerReceipt",
    "LedgerUnreachableError",
    "plan_fits",
]
