"""The budget that a fit charges, and the search that it belongs to."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Self

from skdp.accounting import Event
from skdp.accounting.privacy_spent import PrivacySpent
from skdp.base.parameters import Adjacency, PlainParameters, Unit
from skdp.budget import config
from skdp.budget.config import get_config
from skdp.budget.entries import BudgetEntry, is_recorded
from skdp.budget.refusals import find_search, name_search
from skdp.budget.travelling import LeftBehind, goes_to_a_worker
from skdp.exceptions import BudgetExceededError, BudgetRequiredError
from skdp.running import warn_once

if TYPE_CHECKING:
    from skdp.budget.desk import Desk
    from skdp.budget.ledger.chain import Row
    from skdp.budget.request import Request

# Blocks with the number of their notice; of this thread also with the process that opened them.
_blocks_here: ContextVar[tuple[tuple[int, int, Any], ...]] = ContextVar("skdp_blocks", default=())
# By number: the budget, and the number of the block around it in the same thread.
_blocks_anywhere: dict[int, tuple[Any, int | None]] = {}


def open_block(accountant: Any) -> None:
    """Make fits without an accountant charge this budget."""
    here = _blocks_here.get()
    outer = here[-1][1] if here and here[-1][0] == os.getpid() else None
    number = config.post("budget", _address(accountant), hides=outer)
    try:
        _blocks_anywhere[number] = accountant, outer
        _blocks_here.set((*here, (os.getpid(), number, accountant)))
    except BaseException:
        _blocks_anywhere.pop(number, None)
        config.withdraw(number)
        raise


def close_block(accountant: Any) -> None:
    """End the innermost block of a budget."""
    here = _blocks_here.get()
    # A block may be left in another thread or context than it was entered in.
    mine = [number for _, number, budget in here if budget is accountant]
    anywhere = list(_blocks_anywhere.items())
    others = [number for number, (budget, _) in anywhere if budget is accountant]
    if number := (mine or others)[-1:]:
        _blocks_here.set(tuple(block for block in here if block[1] != number[0]))
        _blocks_anywhere.pop(number[0], None)
        config.withdraw(number[0])


# A larger epsilon allows practically certain guesses about a row: e^10 is 22,000.
_LARGE_EPSILON = 10.0


class Account:
    """Anything that fits charge: a budget or a plan. Copies charge the same ledger."""

    desk: Desk
    _needs_numbers = True  # if the composition rule does

    def reserve(
        self,
        event: Event | PrivacySpent,
        *,
        label: str | None = None,
        adjacency: Adjacency | None = None,
        epsilon: float | None = None,
        delta: float | None = None,
        estimator: Any = None,
        parameters: Mapping[str, Any] | None = None,
        seeded: bool = False,
        unit: Unit = "row",
    ) -> BudgetEntry:
        """Charge a release before it runs.

        One transaction that excludes all other processes decides whether the charge fits, and
        records it. The charge is on disk when the method returns. A plan is charged already; one of
        its events is redeemed.

        Parameters
        ----------
        event : Event or PrivacySpent
            Release to charge. A `PrivacySpent`, as returned by the estimators' `privacy_plan`,
            includes adjacency, epsilon, delta and whether the noise is seeded.
        label : str, optional
            Purpose of the charge.
        adjacency : {"replace-one", "add-remove"}, optional
            Adjacency relation of `event`, `epsilon` and `delta`. None means the budget's.
        epsilon, delta : float, optional
            Guarantee of the event, used by ``"basic"`` and ``"approx"`` composition. With only
            `delta`, they compute epsilon from the event. Numbers marked as no guarantee
            (`PrivacyValue.is_guarantee`) are refused.
        estimator : str or estimator, optional
            Estimator that charges, or its name.
        parameters : mapping, optional
            Parameters of the estimator for the record, as plain values without seeds.
        seeded : bool, default=False
            Whether the noise comes from a seed.
        unit : {"row", "group", "mixed"}, default="row"
            Record that the guarantee protects: a row, or all rows that share an id in ``groups=``.

        Raises
        ------
        BudgetExceededError
            If the charge does not fit, or the plan has no such event left; nothing is charged then.
        LedgerError
            If the ledger cannot be read, written or trusted, with a subclass for each reason.
        TypeError, ValueError
            If the charge is invalid, or cannot be converted to the budget's adjacency relation.
        UnsupportedEventError
            If the budget's composition rule has no proved bound for the event.
        """
        request = self.desk.prepare(
            event,
            needs_numbers=self._needs_numbers,
            label=label,
            adjacency=adjacency,
            epsilon=epsilon,
            delta=delta,
            estimator=estimator,
            parameters=parameters,
            seeded=seeded,
            unit=unit,
        )
        row = self._record(request)
        return BudgetEntry.from_row(row, self.desk.currency.units, request.event)

    def _record(self, request: Request) -> Row:
        """Charge and record a request."""
        return self.desk.admit(request)

    def _address(self) -> dict[str, Any]:
        """Return the address at which other processes find it."""
        return self.desk.address()

    def __enter__(self) -> Self:
        """Make the fits of a block charge this budget or plan.

        A fit charges the first of these that exists:

        - its estimator's ``accountant=``;
        - the innermost block that is open in its thread;
        - the budget that its estimator was bound to, by being constructed, cloned or pickled in a
          block;
        - the block that is open in another thread, or in the process that started this one.

        If several budgets are possible, the fit raises. If there is none, it is *not charged*, or
        raises with ``skdp.set_config(require_budget=True)``. See the guide on budgets.
        """
        open_block(self)
        return self

    def __exit__(self, *exception: object) -> None:
        close_block(self)

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        # scikit-learn's clone deep-copies parameters: a copy would be a second budget.
        return self


class _Unclear:
    """Stands for several open budgets if none of them is clearly the one to charge."""

    def reserve(self, event: Any, **_: Any) -> None:
        raise RuntimeError(
            "It is unclear which budget to charge: this thread or process has no open `with` "
            "block. The blocks open elsewhere, and the one in which the estimator was made, belong "
            "to several budgets, or to one that only another process can reach. Pass accountant= "
            "to the estimator, or construct it again in the block."
        )


def _address(accountant: Any) -> Any:
    """Return the address at which other processes find a budget; None if they cannot."""
    address = getattr(accountant, "_address", None)
    return None if address is None else address()


_reach: Callable[[Any], Any]


def reach_budgets_by(reach: Callable[[Any], Any]) -> None:
    """Register the function that returns the budget at an address."""
    global _reach
    _reach = reach


def find_accountant(bound: Any = None) -> Any:
    """Return the budget that a fit without `accountant` charges."""
    # The innermost block of this thread comes first. A thread or process without one may work for
    # the block that another thread or an ancestor has open. If there are several, the budget to
    # which the estimator is bound decides; if that is not one of them, the budget is unclear.
    here = _blocks_here.get()
    if here and here[-1][0] == os.getpid():
        return here[-1][2]
    # A process that was forked in a block may work for it, or for one that was opened later.
    known = [accountant for _, _, accountant in here[-1:]] or _innermost_blocks()
    known += [_Unclear() if each is None else _reach(each) for each in config.heard("budget")]
    distinct = {_identity(budget): budget for budget in known}
    if isinstance(bound, LeftBehind):
        bound = _known(bound, distinct.values()) or bound
    if bound is not None and (not distinct or _identity(bound) in distinct):
        return bound
    unclear = len(distinct) > 1 or (bound is not None and distinct)
    return _Unclear() if unclear else next(iter(distinct.values()), None)


def binding_of(release: Any) -> Any:
    """Return the budget to which a release is bound, None if to none.

    A search that is not bound has the binding of its candidates, which must be a single one.
    """
    bound = getattr(release, "_bound_accountant", None)
    if bound is not None:
        return bound
    bindings = [each._bound_accountant for each in getattr(release, "_searched", tuple)()]
    found = {
        each if isinstance(each, LeftBehind) else _identity(each): each
        for each in bindings
        if each is not None
    }
    return _Unclear() if len(found) > 1 else next(iter(found.values()), None)


def find_relation(estimator: Any) -> Adjacency:
    """Return the adjacency of a fit: the estimator's, its budget's, or else replace-one."""
    own: Adjacency | None = getattr(estimator, "adjacency", None)
    if own is not None:
        return own
    budget = getattr(estimator, "accountant", None)
    if budget is None:
        budget = find_accountant(binding_of(estimator))
    ledger = getattr(budget, "accountant", budget)  # a plan names its budget
    found: Adjacency = getattr(ledger, "adjacency", "replace-one")
    return found


@contextmanager
def supposed(accountant: Any) -> Iterator[None]:
    """Treat a budget as that of a block in this thread, for forecasts."""
    outer = _blocks_here.get()
    token = _blocks_here.set((*outer, (os.getpid(), 0, accountant)))
    try:
        yield
    finally:
        _blocks_here.reset(token)


def _known(left: LeftBehind, known: Iterable[Any] = ()) -> Any:
    """Return the budget of a file if this process knows it, else None."""
    for budget in known:
        address = _address(budget)
        if address is not None and LeftBehind.of(address) == left:
            return budget
    address = left.address()
    return None if address is None else _reach(address)


def _innermost_blocks() -> list[Any]:
    blocks = dict(_blocks_anywhere)
    around = {outer for _, outer in blocks.values()}
    return [budget for number, (budget, _) in blocks.items() if number not in around]


def _identity(budget: Any) -> Any:
    """Return a key that is equal for the same budget, also under two names of its file."""
    address = _address(budget)
    if address is None:
        return id(budget)
    return address["identity"], os.path.realpath(address["path"]), address.get("plan")


class ChargesBudget(PlainParameters):
    """Mixin of private estimators, which binds them to the budget of their block."""

    # An estimator that is constructed, cloned, pickled or unpickled inside ``with accountant:`` is
    # bound to the block's budget. A fit in another process or thread, or after the block, charges
    # it too. An estimator that came back from a worker stays bound to that budget.

    _bound_accountant: Any = None
    # Placeholder for the budget that the last fit charged; a file of the estimator is bound to it.
    _charged: LeftBehind | None = None
    # Public name of a schema's unit, and its bound on rows; `TableSchema.pipeline` sets it.
    _protects: dict[str, Any] | None = None

    def __new__(cls, *_: Any, **__: Any) -> Self:
        """Bind an estimator that is constructed, copied or unpickled in a block."""
        return super().__new__(cls)._bind(None)

    def _bind(self, bound: Any) -> Self:
        accountant = find_accountant(bound)
        if isinstance(accountant, _Unclear):
            accountant = bound  # it may be clear when it is fitted
        if accountant is not None:
            self._bound_accountant = accountant
        return self

    def __getstate__(self) -> dict[str, Any]:
        state: dict[str, Any] = dict(super().__getstate__())  # type: ignore[call-overload]
        accountant = find_accountant(self._bound_accountant)
        if accountant is not None and not isinstance(accountant, _Unclear):
            state["_bound_accountant"] = accountant
        if not goes_to_a_worker():
            if self._charged is not None:
                state.setdefault("_bound_accountant", self._charged)
            accounts = {name: state.get(name) for name in ("accountant", "_bound_accountant")}
            fitted = any(name.endswith("_") for name in state)
            for name, account in accounts.items():
                if isinstance(account, Account):
                    state[name] = LeftBehind.of(account._address(), tell=not fitted)
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        state = {**state}
        left = state.get("_bound_accountant")
        if isinstance(left, LeftBehind) and self._bound_accountant is not None:
            # Of a budget that is not known here: that of the block in which this is loaded.
            state["_bound_accountant"] = _known(left) or self._bound_accountant
        if isinstance(own := state.get("accountant"), LeftBehind):
            found = _known(own)
            unknown = {"accountant": None, "_bound_accountant": own}
            state |= unknown if found is None else {"accountant": found}
        parent = getattr(super(), "__setstate__", vars(self).update)
        parent(state)

    def __sklearn_clone__(self) -> Any:
        clone = super().__sklearn_clone__()  # type: ignore[misc]
        if self._protects is not None:
            clone._protects = self._protects
        return clone._bind(self._bound_accountant)


def check_accountant(accountant: Any) -> None:
    """Refuse a parameter that is not a budget."""
    if accountant is not None and not callable(getattr(accountant, "reserve", None)):
        raise TypeError(
            "accountant must be None or a budget such as skdp.budget.BudgetAccountant, got "
            f"{type(accountant).__name__}."
        )


def is_counted(release: Any) -> bool:
    """Return whether a release charges a budget."""
    own = release.accountant
    bound = binding_of(release)
    return isinstance(find_accountant(bound) if own is None else own, Account)


def charge_fit(estimator: Any, spent: PrivacySpent, task: Any = None, method: str = ".fit") -> None:
    """Charge a fit before it runs; `task`, its `CallbackContext`, may name its search."""
    parameters = estimator.get_params(deep=False)
    bound = binding_of(estimator)
    search = find_search(task)
    if search is not None:
        parameters = {**parameters, "search": search.record()}
    if (whom := getattr(estimator, "_protects", None)) is not None:
        parameters = {**parameters, "protects": whom}
    own = estimator.accountant
    try:
        account = charge(own, spent, type(estimator).__name__, method, parameters, bound)
    except BudgetExceededError as error:
        if search is not None:
            name_search(error, search, find_accountant(bound) if own is None else own)
        raise
    if isinstance(account, Account):
        estimator._charged = LeftBehind.of(account._address())


def charge(
    accountant: Any,
    spent: PrivacySpent,
    name: str,
    method: str = "",
    parameters: Mapping[str, Any] | None = None,
    bound: Any = None,
) -> Any:
    """Charge a call to its budget, or to the budget that `find_accountant` returns.

    Return the budget; None if there is none and none is required.
    """
    check_accountant(accountant)
    if accountant is None:
        accountant = find_accountant(bound)
    if accountant is None:
        if get_config()["require_budget"]:
            # Functions are not bound to a budget, since nothing is constructed in a block.
            construct = "construct and fit it" if method else "call it"
            raise BudgetRequiredError(
                f"{name}{method} has no budget to charge, and require_budget is set. Pass "
                f"accountant=BudgetAccountant(...), or {construct} inside `with budget:`. To run "
                "without a charge, use skdp.config_context(require_budget=False)."
            )
        return None
    if isinstance(accountant, Account):
        _warn_of_waste(f"{name}{method}", spent)
    accountant.reserve(
        spent.event,
        label=f"{name}{method}",
        adjacency=spent.adjacency,
        epsilon=spent.epsilon,
        delta=spent.delta,
        estimator=name,
        parameters={k: v for k, v in (parameters or {}).items() if is_recorded(k)},
        seeded=spent.seeded,
        unit=spent.unit,
    )
    return accountant


def _warn_of_waste(call: str, spent: PrivacySpent) -> None:
    """Warn of charges that protect no one."""
    if spent.seeded:
        warn_once(
            f"{call} takes its noise from random_state= and charges a budget. Anyone who knows or "
            "guesses the seed can remove the noise. Use random_state=None for releases; seeds are "
            "for synthetic rows."
        )
    if spent.epsilon > _LARGE_EPSILON:
        warn_once(
            f"{call} requests epsilon={spent.epsilon:g}: one row may change the odds of a guess "
            f"about it by a factor of e^{spent.epsilon:g}, which protects no one. Use 1 to 3 for a "
            "release, and large values for synthetic rows."
        )
