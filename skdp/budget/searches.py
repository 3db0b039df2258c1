"""Which ordinary search a fit is a part of, for the ledger and for errors."""

from __future__ import annotations

from contextlib import suppress
from typing import Any, NamedTuple

from skdp.budget.ledger.home import at_home
from skdp.exceptions import BudgetExceededError

# What scikit-learn's searches call their tasks; if that changes, no search is named.
_EVALUATION, _REFIT = "candidate-split-evaluation", "refit-with-best-params"


class SearchFit(NamedTuple):
    """One fit of a search by scikit-learn; all of it is public."""

    # How many it will make is left out: splits by ids are as many as private ids may be.

    search: str  # its class
    run: str  # which call of its fit
    fit: str  # which of its fits

    def record(self) -> dict[str, Any]:
        """Return what the ledger keeps among the parameters of a charge."""
        return {"class": self.search, "run": self.run, "fit": self.fit}


def find_search(task: Any) -> SearchFit | None:
    """Return the search that a fit's `CallbackContext` is a part of; None if none is seen."""
    with suppress(AttributeError):  # of a version whose tasks are made otherwise
        return _find_search(task)
    return None


def _find_search(task: Any) -> SearchFit | None:
    while task is not None and not {_EVALUATION, _REFIT} & _names(task):
        task = task.parent
    if task is None:
        return None
    search = task.parent
    while search.parent is not None and "fit" not in _names(search):
        search = search.parent
    run = f"{search.root_uuid.hex}.{search.task_id}"
    return SearchFit(search.estimator_name, run, "-".join(_path(task, search)))


def _names(task: Any) -> set[str]:
    # A task may have been merged with that of the estimator which it fits.
    return {task.task_name, task.source_task_name}


def _path(task: Any, root: Any) -> list[str]:
    return [] if task is root else [*_path(task.parent, root), str(task.task_id)]


@at_home
def _charged_fits(desk: Any, run: str) -> set[str]:
    searches = [row["parameters"].get("search") or {} for row in desk.file.rows()]
    return {each["fit"] for each in searches if each.get("run") == run}


def name_search(error: BudgetExceededError, fit: SearchFit, accountant: Any) -> None:
    """Have a refusal say which search it ends, and how far that had come."""
    ledger = getattr(accountant, "accountant", accountant)
    charged: set[str] = set()
    with suppress(AttributeError, KeyError, TypeError):
        charged = _charged_fits(ledger.desk, fit.run)
    part = ", and a part of this one," if fit.fit in charged else ""
    others = len(charged - {fit.fit})
    error.search = fit.search, others
    error.args = (
        f"{error} It was a fit of {fit.search}: {others} of its other fits{part} are charged, "
        "whole or in part, and stay so. Before the next search, skdp.budget.plan_fits(search, ...) "
        "lists its charges, budget.check(search, ...) tells whether they fit, and budget.plan "
        "commits to them.",
    )
