"""Which ordinary search a fit is a part of, for the ledger and for errors."""

from __future__ import annotations

from contextlib import suppress
from typing import Any, NamedTuple

from skdp.budget.ledger.home import at_home
from skdp.exceptions import BudgetExceededError

_EVALUATION, _REFIT = "candidate-split-evaluation", "refit-with-best-params"


class SearchFit(NamedTuple):
    """One fit of a search by scikit-learn; all of it is public.

    How many it will make is left out: splits by ids are as many as private ids may be.
    """

    search: str  # its class
    run: str  # which call of its fit
    fit: str  # which of its fits

    def record(self) -> dict[str, Any]:
        """Return what the ledger keeps among the parameters of a charge."""
        return {"class": self.search, "run": self.run, "fit": self.fit}


def find_search(estimator: Any) -> SearchFit | None:
    """Return the search that is fitting an estimator, also from a worker; None if none is seen."""
    # scikit-learn >= 1.9 hands a tree of tasks, made for its callbacks, to what it fits. Its names
    # may change: then no search is seen.
    with suppress(AttributeError, TypeError, StopIteration):
        task = getattr(estimator, "_parent_callback_ctx", None)
        while task is not None and not {_EVALUATION, _REFIT} & _names(task):
            task = task.parent
        if task is None:
            return None
        root = task.parent
        while "fit" not in _names(root):
            root = root.parent
        run = f"{root.root_uuid.hex}.{root.task_id}"
        return SearchFit(root.estimator_name, run, "-".join(_path(task, root)))
    return None


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
