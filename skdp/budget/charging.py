"""Which budget a fit charges, and which search the fit is part of."""

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
    """Make a budget the one that fits without an accountant of their own charge."""
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


# From here on guesses about a row are as good as certain: e^10 is 22,000.
_LARGE_EPSILON = 10.0


class Account:
    """What fits charge: a budget, or a plan that it has paid for. Copies of one are the same."""

    desk: Desk
    _needs_numbers = True  # where the currency does

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
        """Charge a release that is about to run.

        Whether it fits is decided, and the charge recorded, in one transaction that excludes all
        other processes. The charge is on the disk when this returns. A plan has paid already: one
        of its events is redeemed.

        Parameters
        ----------
        event : Event or PrivacySpent
            What will run. A `PrivacySpent`, as `privacy_plan` of an estimator returns it, brings
            its adjacency, epsilon, delta and seed along.
        label : str, optional
            What the charge is for.
        adjacency : {"replace-one", "add-remove"}, optional
            The relation that `event`, `epsilon` and `delta` refer to; None means the budget's.
        epsilon, delta : float, optional
            A guarantee of the event by itself. ``"basic"`` and ``"approx"`` composition count it;
            with `delta` alone they compute epsilon from the event. Numbers that say of themselves
            that they are no guarantee (`PrivacyValue.is_guarantee`) are refused.
        estimator : str or estimator, optional
            Who charges.
        parameters : mapping, optional
            Its parameters, for the record: described in plain values, seeds left out.
        seeded : bool, default=False
            Whether the noise comes from a seed.
        unit : {"row", "group", "mixed"}, default="row"
            What one record is: a row, or all rows that share an id in groups=.

        Raises
        ------
        BudgetExceededError
            If the charge does not fit, or the plan has no such event left; nothing is charged then.
        LedgerError
            If the ledger cannot be read, written or trusted: one class for each reason.
        TypeError, ValueError
            If the charge is none, or cannot be converted to the budget's relation.
        UnsupportedEventError
            If nothing is proved of such an event in the budget's currency.
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
        """Have a request paid for and recorded."""
        return self.desk.admit(request)

    def _address(self) -> dict[str, Any]:
        """Say where other processes find it."""
        return self.desk.address()

    def __enter__(self) -> Self:
        """Have the fits of a block charge this budget or plan.

        A fit charges its estimator's ``accountant=``; else the innermost block that is open in its
        own thread; else the budget that its estimator was bound to, by being constructed, cloned or
        pickled in a block; else the block that is open in another thread, or in the process that
        started this one. It raises where such blocks are of several budgets. Where there is none it
        is *not charged*, unless ``skdp.set_config(require_budget=True)`` has it raise. The guide on
        budgets lists the cases.
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
    """Stands for several budgets of which nobody knows which one is meant."""

    def reserve(self, event: Any, **_: Any) -> None:
        raise RuntimeError(
            "It is unclear which budget to charge: this thread or process has no `with` block of "
            "its own, and the blocks that it may work for, or the one that the estimator was made "
            "in, are of several budgets, or of one that only their own process can reach. Give "
            "the estimator its accountant=, or construct it anew in the block."
        )


def _address(accountant: Any) -> Any:
    """Say where other processes find a budget; None if they cannot."""
    address = getattr(accountant, "_address", None)
    return None if address is None else address()


_reach: Callable[[Any], Any]


def reach_budgets_by(reach: Callable[[Any], Any]) -> None:
    """Let the module of budgets, which imports this one, say how one is found at its address."""
    global _reach
    _reach = reach


def find_accountant(bound: Any = None) -> Any:
    """Return the budget that a fit without an accountant of its own charges."""
    # The innermost block of this thread comes first. A thread or process without one may work for
    # the block that another thread or an ancestor has open. Where there are several, what the
    # estimator is bound to decides; if that is none of them, nobody knows which budget is meant.
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


def find_relation(estimator: Any) -> Adjacency:
    """Return the relation that a fit counts in: its own, its budget's, or else replace-one."""
    own: Adjacency | None = getattr(estimator, "adjacency", None)
    if own is not None:
        return own
    budget = getattr(estimator, "accountant", None)
    if budget is None:
        budget = find_accountant(getattr(estimator, "_bound_accountant", None))
    ledger = getattr(budget, "accountant", budget)  # a plan names its budget
    found: Adjacency = getattr(ledger, "adjacency", "replace-one")
    return found


@contextmanager
def supposed(accountant: Any) -> Iterator[None]:
    """Have this thread take a budget for that of a block, to ask what its fits would charge."""
    outer = _blocks_here.get()
    token = _blocks_here.set((*outer, (os.getpid(), 0, accountant)))
    try:
        yield
    finally:
        _blocks_here.reset(token)


def _known(left: LeftBehind, known: Iterable[Any] = ()) -> Any:
    """Return the budget that was left behind if it is known here, None elsewhere."""
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
    """Tell budgets apart, and find the same under two names of its file."""
    address = _address(budget)
    if address is None:
        return id(budget)
    return address["identity"], os.path.realpath(address["path"]), address.get("plan")


class ChargesBudget(PlainParameters):
    """Mixin of everything that fits privately: it stays with the budget of its block."""

    # What is constructed, cloned, pickled or unpickled inside ``with accountant:`` is bound to the
    # block's budget, so that a fit in another process or thread, or after the block, charges it
    # too. An estimator that came back from a worker stays bound to that budget.

    _bound_accountant: Any = None
    # What stands for the budget that the last fit has charged: a file of it is bound to that.
    _charged: LeftBehind | None = None
    # Public name of a schema's unit, and its bound on rows; `TableSchema.pipeline` sets it.
    _protects: dict[str, Any] | None = None

    def __new__(cls, *_: Any, **__: Any) -> Self:
        """Bind what is constructed, copied or unpickled in a block."""
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
    """Refuse a parameter that is no budget."""
    if accountant is not None and not callable(getattr(accountant, "reserve", None)):
        raise TypeError(
            "accountant must be None or a budget such as skdp.budget.BudgetAccountant, got "
            f"{type(accountant).__name__}."
        )


def is_counted(release: Any) -> bool:
    """Tell whether a release charges a budget."""
    own = release.accountant
    bound = getattr(release, "_bound_accountant", None)
    return isinstance(find_accountant(bound) if own is None else own, Account)


def charge_fit(estimator: Any, spent: PrivacySpent, task: Any = None, method: str = ".fit") -> None:
    """Charge what a fit is about to spend; `task`, its `CallbackContext`, may name its search."""
    parameters = estimator.get_params(deep=False)
    bound = getattr(estimator, "_bound_accountant", None)
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
    """Charge what a call is about to spend to its budget, or to what `find_accountant` returns.

    Return what was charged; None if nobody keeps count.
    """
    # Without any nobody keeps count, unless the configuration requires a budget.
    check_accountant(accountant)
    if accountant is None:
        accountant = find_accountant(bound)
    if accountant is None:
        if get_config()["require_budget"]:
            # Functions are bound to no budget: nothing of them is constructed in a block.
            construct = "construct and fit it" if method else "call it"
            raise BudgetRequiredError(
                f"{name}{method} has no budget to charge, and require_budget is set. Give it "
                f"accountant=BudgetAccountant(...), or {construct} inside `with budget:`; "
                "skdp.config_context(require_budget=False) lets uncounted fits run."
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
    """Warn of what is charged and protects nobody."""
    if spent.seeded:
        warn_once(
            f"{call} takes its noise from random_state=, and charges a budget: whoever knows or "
            "guesses the seed can take the noise away again. Give random_state=None to what you "
            "publish; seeds are for made-up rows."
        )
    if spent.epsilon > _LARGE_EPSILON:
        warn_once(
            f"{call} asks for epsilon={spent.epsilon:g}: what one row adds to the odds of a guess "
            f"about it may be a factor of e^{spent.epsilon:g}, which protects nobody. Take 1 to 3 "
            "for a release, and large ones for made-up rows."
        )
