"""What other processes do with a budget; importable by workers that were spawned."""

import os

from skdp.accounting import PureDPEvent
from skdp.budget import BudgetExceededError


def charge_many(budget, times, epsilon=0.01, label=None):
    """Charge a number of times; return how many charges were granted."""
    granted = 0
    for _ in range(times):
        try:
            budget.reserve(PureDPEvent(epsilon), label=label or f"process {os.getpid()}")
            granted += 1
        except BudgetExceededError:
            pass
    return granted


def charge_and_report(budget, times, queue):
    """As `charge_many`, for a process with a queue."""
    queue.put(charge_many(budget, times))


def redeem_all(plan, event, times, queue):
    """Redeem events of a plan; report how many were granted."""
    granted = 0
    for _ in range(times):
        try:
            plan.reserve(event)
            granted += 1
        except BudgetExceededError:
            pass
    queue.put(granted)


def charge_with_evidence(budget, evidence, epsilon=1e-6):
    """Charge for ever; once a charge is granted, write its index as the release would be."""
    handle = os.open(evidence, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    while True:
        entry = budget.reserve(PureDPEvent(epsilon))
        os.write(handle, f"{entry.index}\n".encode())
