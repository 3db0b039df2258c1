"""Tasks of a cluster's workers, which know this module by its name."""

import sqlite3

from skdp.accounting import PureDPEvent


def leave_the_machine():
    """Have a process reach no file of a ledger, as on another machine."""

    def connect(*_, **__):
        raise sqlite3.OperationalError("no such machine")

    sqlite3.connect = connect


def reserve(budget, epsilon):
    """Charge a release, and return the entry."""
    return budget.reserve(PureDPEvent(epsilon), label="on a worker")
