"""What a pickled estimator takes along of its budget: the way to it for workers, none into files.

Whoever pickles decides. What joblib, multiprocessing, Dask and others hand to workers of a running
study leads to its ledger, so that a fit there charges it. What is written to a file, or dumped by
hand, holds which budget it was, as a hash, and no place: a fitted model may leave the building.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from types import FrameType
from typing import Any, NoReturn

from skdp.budget.ledger.store import Ledger
from skdp.exceptions import BudgetRequiredError

# Modules that hand pickles to workers, or copy in memory; those between them and a `__getstate__`.
_CARRIERS = (
    *("copy", "multiprocessing", "multiprocess", "concurrent.futures", "loky", "joblib.pool"),
    *("joblib.externals.loky", "distributed", "dask", "ray", "mpi4py", "pyspark", "ipyparallel"),
)
_METHODS = ("__getstate__", "__reduce__", "__reduce_ex__")  # of classes that extend an estimator
_BETWEEN = ("skdp", "sklearn", "pickle", "copyreg", "cloudpickle", "joblib.externals.cloudpickle")


def goes_to_a_worker() -> bool:
    """Tell whether the object that is being pickled goes to a worker, and into no file."""
    frame = sys._getframe(1)
    while frame.f_back and (frame.f_code.co_name in _METHODS or _is_of(frame, _BETWEEN)):
        frame = frame.f_back
    return _is_of(frame, _CARRIERS)


def _is_of(frame: FrameType, packages: tuple[str, ...]) -> bool:
    module = str(frame.f_globals.get("__name__", ""))
    return any(module == each or module.startswith(f"{each}.") for each in packages)


@dataclass(frozen=True)
class LeftBehind:
    """Stands in a file for a budget: says which one it was, and not where it is."""

    identity: str
    plan: int | None = None

    @classmethod
    def of(cls, address: Mapping[str, Any]) -> LeftBehind:
        """Return what stands for the budget at an address."""
        return cls(address["identity"], address.get("plan"))

    def address(self) -> dict[str, Any] | None:
        """Return the budget's address if this process uses its ledger; None elsewhere."""
        ledger = Ledger.in_use(self.identity)
        if ledger is None:
            return None
        place = {"path": str(ledger.where), "identity": self.identity, "genesis": ledger.genesis}
        return place if self.plan is None else {**place, "plan": self.plan}

    def reserve(self, event: Any, *, label: str = "the fit", **_: Any) -> NoReturn:
        """Refuse: a fit that belonged to a budget is not to go uncounted."""
        raise BudgetRequiredError(
            f"{label} has no budget to charge: the one that it was made with stayed where the file "
            "was written. Give it accountant=BudgetAccountant(...), with the ledger of the people "
            "in this table, or fit it inside `with budget:`."
        )
