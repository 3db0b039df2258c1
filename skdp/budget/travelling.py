"""The budget in a pickled estimator: its address for workers, only a hash in files.

Pickles that joblib, multiprocessing, Dask and others send to workers contain the address of the
ledger, so a fit there charges it. Pickles in files contain a hash of the budget and no address,
since a fitted model may leave the building. Processes started from here learn the address for
estimators that are not fitted yet, as they do for blocks.
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

# Modules that send pickles to workers, or copy in memory. Others of these packages run users'
# functions, which may call `pickle.dump`.
_CARRIERS = (
    *("copy", "multiprocessing.reduction", "multiprocess.reduction", "joblib.pool"),
    *("loky.backend", "joblib.externals.loky.backend", "dask.local", "dask.multiprocessing"),
    *("distributed.protocol", "ray._private.serialization", "ray._common.serialization"),
    *("mpi4py", "pyspark.serializers", "ipyparallel"),
)
# Frames between them and a `__getstate__`: picklers, and methods of containers of an estimator.
_METHODS = ("__getstate__", "__reduce__", "__reduce_ex__")
_BETWEEN = (
    *("skdp", "sklearn", "pickle", "copyreg", "dill", "cloudpickle"),
    *("joblib.externals.cloudpickle", "pyspark.cloudpickle", "ray.cloudpickle"),
)


def goes_to_a_worker() -> bool:
    """Return whether the object being pickled goes to a worker, not into a file."""
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
    """Placeholder for a budget in a file: identifies the budget without its address."""

    identity: str
    plan: int | None = None
    is_told: bool = field(default=False, compare=False)  # to descendants

    @classmethod
    def of(cls, address: Mapping[str, Any], *, tell: bool = False) -> LeftBehind:
        """Return the placeholder of the budget at an address, and optionally tell descendants."""
        ledger = Ledger.in_use(address["identity"])
        if tell and ledger is not None and ledger not in _told:
            with suppress(OSError):  # then no descendant finds it
                notice = config.post("left behind", {name: address[name] for name in _PLACE})
                weakref.finalize(ledger, config.withdraw, notice)
                _told.add(ledger)
        return cls(address["identity"], address.get("plan"), tell)

    def address(self) -> dict[str, Any] | None:
        """Return the budget's address if this process uses its ledger or was told it, else None."""
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
        """Refuse, since the fit belongs to a budget that is not known here."""
        raise BudgetRequiredError(
            f"{label} has no budget to charge: its former budget is not stored in the file. Pass "
            "accountant=BudgetAccountant(...) with the ledger for these records, or fit it inside "
            "`with budget:`."
        )
