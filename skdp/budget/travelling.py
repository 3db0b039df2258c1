"""What a pickled estimator takes along of its budget: the way to it for workers, none into files.

Whoever pickles decides. What joblib, multiprocessing, Dask and others hand to workers of a running
study leads to its ledger, so that a fit there charges it. What is written to a file, or dumped by
hand, holds which budget it was, as a hash, and no place: a fitted model may leave the building. Of
what is not fitted yet, processes that are started from here are told the place, as of blocks.
"""

from __future__ import annotations

import sys
import weakref
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from types import FrameType
from typing import Any, NoReturn

from skdp.budget import config
from skdp.budget.ledger.store import Ledger
from skdp.exceptions import BudgetRequiredError

# Modules that hand pickles to workers, or copy in memory. Others of their packages run functions of
# users in workers and threads, of which one may be `pickle.dump`.
_CARRIERS = (
    *("copy", "multiprocessing.reduction", "multiprocess.reduction", "joblib.pool"),
    *("loky.backend", "joblib.externals.loky.backend", "dask.local", "dask.multiprocessing"),
    *("distributed.protocol", "ray._private.serialization", "ray._common.serialization"),
    *("mpi4py", "pyspark.serializers", "ipyparallel"),
)
# What lies between them and a `__getstate__`: picklers, and methods of what holds an estimator.
_METHODS = ("__getstate__", "__reduce__", "__reduce_ex__")
_BETWEEN = (
    *("skdp", "sklearn", "pickle", "copyreg", "dill", "cloudpickle"),
    *("joblib.externals.cloudpickle", "pyspark.cloudpickle", "ray.cloudpickle"),
)


def goes_to_a_worker() -> bool:
    """Tell whether the object that is being pickled goes to a worker, and into no file."""
    frame = sys._getframe(1)
    while frame.f_back and (frame.f_code.co_name in _METHODS or _is_of(frame, _BETWEEN)):
        frame = frame.f_back
    return _is_of(frame, _CARRIERS)


def _is_of(frame: FrameType, packages: tuple[str, ...]) -> bool:
    module = str(frame.f_globals.get("__name__", ""))
    return any(module == each or module.startswith(f"{each}.") for each in packages)


_PLACE = "path", "identity", "genesis"
_told: weakref.WeakSet[Ledger] = weakref.WeakSet()  # of which descendants know


@dataclass(frozen=True)
class LeftBehind:
    """Stands in a file for a budget: says which one it was, and not where it is."""

    identity: str
    plan: int | None = None
    is_told: bool = field(default=False, compare=False)  # to descendants

    @classmethod
    def of(cls, address: Mapping[str, Any], *, tell: bool = False) -> LeftBehind:
        """Return what stands for the budget at an address; descendants may be told that."""
        ledger = Ledger.in_use(address["identity"])
        if tell and ledger is not None and ledger not in _told:
            with suppress(OSError):  # then no descendant finds it
                notice = config.post("left behind", {name: address[name] for name in _PLACE})
                weakref.finalize(ledger, config.withdraw, notice)
                _told.add(ledger)
        return cls(address["identity"], address.get("plan"), tell)

    def address(self) -> dict[str, Any] | None:
        """Return the budget's address if this process uses its ledger, or was told; else None."""
        ledger = Ledger.in_use(self.identity)
        if ledger is not None:
            where = str(ledger.where)
            found = [{"path": where, "identity": self.identity, "genesis": ledger.genesis}]
        else:
            told = config.heard("left behind") if self.is_told else []
            found = [place for place in told if place and place["identity"] == self.identity]
        if len(found) != 1:
            return None
        return found[0] if self.plan is None else {**found[0], "plan": self.plan}

    def reserve(self, event: Any, *, label: str = "the fit", **_: Any) -> NoReturn:
        """Refuse: a fit that belonged to a budget is not to go uncounted."""
        raise BudgetRequiredError(
            f"{label} has no budget to charge: the one that it was made with stayed where the file "
            "was written. Give it accountant=BudgetAccountant(...), with the ledger of the people "
            "in this table, or fit it inside `with budget:`."
        )
