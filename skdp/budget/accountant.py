"""A budget held in memory that every fit charges before it touches rows."""

from __future__ import annotations

import math
import os
import threading
from dataclasses import dataclass
from numbers import Real
from typing import Any, Literal

from skdp.accounting import Event, GDPAccountant
from skdp.accounting._value import check_guarantee
from skdp.exceptions import BudgetExceededError
from skdp.mechanisms.contribution import ADJACENCIES, Adjacency

Composition = Literal["basic", "gdp"]


@dataclass(frozen=True)
class BudgetEntry:
    """One charge: what was run, what it can leak, and what it cost by itself.

    Parameters
    ----------
    label : str
        What the charge is for.
    event : Event
        What was run.
    epsilon, delta : float
        The event's own guarantee.
    """

    label: str
    event: Event
    epsilon: float
    delta: float


class BudgetAccountant:
    """A total (epsilon, delta) that many fits share.

    Attach one object as ``accountant=`` to any number of estimators: each fit charges it before
    rows are touched, and a charge is never refunded. Clones and copies made inside the process
    (grid search with one job or with threads) charge the *same* budget. A budget that was sent to
    another process refuses every charge there, since this process would not see it.

    Parameters
    ----------
    epsilon : float
        Total epsilon, positive; ``inf`` counts without limit.
    delta : float
        Total delta in [0, 1).
    adjacency : {"replace-one", "add-remove"}, default="replace-one"
        The relation of all charges. Charges under the other one are refused.
    composition : {"basic", "gdp"}, default="basic"
        How charges add up; both stay valid when later fits are chosen after looking at earlier
        results. ``"basic"`` adds epsilons and deltas (Rogers, Roth, Ullman & Vadhan 2016).
        ``"gdp"`` adds the squares of Gaussian mechanisms' mu (Smith & Thakurta 2022; Koskela,
        Tobaben & Honkela 2023), which is much tighter for many fits but takes only releases
        that are exactly Gaussian: output perturbation and full-batch gradient perturbation.

    Raises
    ------
    ValueError
        If a parameter is out of range.
    """

    _limits: tuple[float, float]
    _process: int | None
    _lock: threading.Lock

    def __init__(
        self,
        epsilon: float,
        delta: float,
        *,
        adjacency: Adjacency = "replace-one",
        composition: Composition = "basic",
    ) -> None:
        if not isinstance(epsilon, Real) or not epsilon > 0.0:
            raise ValueError(f"epsilon must be a positive number, got {epsilon!r}.")
        if not isinstance(delta, Real) or not 0.0 <= delta < 1.0:
            raise ValueError(f"delta must be a number in [0, 1), got {delta!r}.")
        if adjacency not in ADJACENCIES:
            raise ValueError(f"adjacency must be one of {ADJACENCIES}, got {adjacency!r}.")
        if composition not in ("basic", "gdp"):
            raise ValueError(f"composition must be 'basic' or 'gdp', got {composition!r}.")
        if composition == "gdp" and delta == 0.0:
            raise ValueError("composition='gdp' needs delta > 0: Gaussian noise is never pure DP.")
        self._limits = float(epsilon), float(delta)
        self._adjacency: Adjacency = adjacency
        self._composition: Composition = composition
        self._entries: list[BudgetEntry] = []
        self._lock = threading.Lock()
        self._process = os.getpid()

    @property
    def epsilon(self) -> float:
        """Total epsilon, fixed at creation."""
        return self._limits[0]

    @property
    def delta(self) -> float:
        """Total delta, fixed at creation."""
        return self._limits[1]

    @property
    def adjacency(self) -> Adjacency:
        """The relation of all charges."""
        return self._adjacency

    @property
    def composition(self) -> Composition:
        """How charges add up."""
        return self._composition

    def reserve(
        self,
        event: Event,
        *,
        adjacency: Adjacency,
        epsilon: float,
        delta: float,
        label: str,
        **_record: Any,
    ) -> None:
        """Charge a mechanism that is about to run.

        Parameters
        ----------
        event : Event
            What will run.
        adjacency : {"replace-one", "add-remove"}
            The relation that `event`, `epsilon` and `delta` refer to.
        epsilon, delta : float
            A guarantee of the event by itself, used by ``composition="basic"``. Numbers that say
            of themselves that they are none (`PrivacyValue.is_guarantee`) are refused.
        label : str
            What the charge is for.

        Raises
        ------
        BudgetExceededError
            If the charge does not fit; nothing is charged then.
        ValueError
            If the adjacency differs from the budget's, or the guarantee is no guarantee.
        UnsupportedEventError
            If ``composition="gdp"`` and the event is not exactly Gaussian.
        """
        if self._process != os.getpid():
            raise BudgetExceededError(
                "This budget is a copy from another process and cannot be charged: the original "
                "would not learn of it. Run a search with n_jobs=1 or with threads "
                "(joblib.parallel_config(backend='threading')); give a model that was loaded from "
                "a file a new budget."
            )
        if adjacency != self.adjacency:
            raise ValueError(
                f"The budget counts in adjacency={self.adjacency!r} but the estimator has "
                f"adjacency={adjacency!r}: give both the same relation."
            )
        if not (0.0 <= epsilon < math.inf and 0.0 <= delta < 1.0):
            raise ValueError(
                f"A charge needs a finite epsilon >= 0 and a delta in [0, 1), got epsilon="
                f"{epsilon!r} and delta={delta!r}: charges are never refunded."
            )
        check_guarantee("epsilon", epsilon)
        check_guarantee("delta", delta)
        entry = BudgetEntry(label, event, epsilon, delta)
        with self._lock:
            if not self._fits(entry):
                spent_epsilon, spent_delta = self._total(self._entries)
                raise BudgetExceededError(
                    f"{label} asks for (epsilon={epsilon:.6g}, delta={delta:.3g}), but "
                    f"(epsilon={spent_epsilon:.6g}, delta={spent_delta:.3g}) of "
                    f"(epsilon={self.epsilon:.6g}, delta={self.delta:.3g}) are spent under "
                    f"{self.composition} composition. Ask for less or start a new budget; "
                    "nothing was charged and no row was read."
                )
            self._entries.append(entry)

    def spent(self) -> tuple[float, float]:
        """Return the (epsilon, delta) that all charges so far amount to."""
        with self._lock:
            return self._total(self._entries)

    def remaining(self) -> tuple[float, float]:
        """Return what is left of epsilon and delta, never negative.

        Under ``composition="gdp"`` squares add up, so that a fit of more than the remaining
        epsilon may still fit; delta is shared by all charges and stays whole.
        """
        spent_epsilon, spent_delta = self.spent()
        left_delta = self.delta if self.composition == "gdp" else self.delta - spent_delta
        return max(self.epsilon - spent_epsilon, 0.0), max(left_delta, 0.0)

    def entries(self) -> list[BudgetEntry]:
        """Return the charges in order."""
        with self._lock:
            return list(self._entries)

    def _fits(self, entry: BudgetEntry) -> bool:
        epsilon, delta = self._total([*self._entries, entry])
        return epsilon <= self.epsilon and delta <= self.delta

    def _total(self, entries: list[BudgetEntry]) -> tuple[float, float]:
        if not entries:
            return 0.0, 0.0
        if self.composition == "basic":
            return math.fsum(e.epsilon for e in entries), math.fsum(e.delta for e in entries)
        accountant = GDPAccountant(adjacency=self.adjacency)
        for entry in entries:
            accountant.compose(entry.event)
        return accountant.epsilon(self.delta), self.delta

    def __copy__(self) -> BudgetAccountant:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> BudgetAccountant:
        # scikit-learn's clone deep-copies parameters: a copy would be a second budget.
        return self

    def __getstate__(self) -> dict[str, Any]:
        state = self.__dict__.copy()
        del state["_lock"]
        state["_process"] = None
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._lock = threading.Lock()

    def __repr__(self) -> str:
        epsilon, delta = self.spent()
        return (
            f"BudgetAccountant(epsilon={self.epsilon:g}, delta={self.delta:g}, "
            f"adjacency={self.adjacency!r}, composition={self.composition!r}; "
            f"spent epsilon={epsilon:.6g}, delta={delta:.3g}; {len(self._entries)} charges)"
        )
