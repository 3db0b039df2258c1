"""Which budget a fit charges, and how it does."""

from __future__ import annotations

import threading
from contextvars import ContextVar
from typing import Any

from skdp.parameters import PlainParameters
from skdp.reporting.privacy_spent import PrivacySpent

# Parameters that do not describe what is computed from the rows.
_NOT_RECORDED = frozenset({"accountant", "random_state", "verbose", "n_jobs", "pre_dispatch"})

_blocks_here: ContextVar[tuple[Any, ...]] = ContextVar("skdp_budget_blocks", default=())
_blocks_anywhere: list[Any] = []
_lock = threading.Lock()


def open_block(accountant: Any) -> None:
    """Make a budget the one that fits without an accountant of their own charge.

    Parameters
    ----------
    accountant : BudgetAccountant
        The budget; blocks nest, the innermost counts.
    """
    _blocks_here.set((*_blocks_here.get(), accountant))
    with _lock:
        _blocks_anywhere.append(accountant)


def close_block(accountant: Any) -> None:
    """End the innermost block of a budget.

    Parameters
    ----------
    accountant : BudgetAccountant
        The budget that `open_block` was given.
    """
    blocks = list(_blocks_here.get())
    _remove_last(blocks, accountant)
    _blocks_here.set(tuple(blocks))
    with _lock:
        _remove_last(_blocks_anywhere, accountant)


def _remove_last(blocks: list[Any], accountant: Any) -> None:
    for place in reversed(range(len(blocks))):
        if blocks[place] is accountant:
            del blocks[place]
            return


def active_accountant() -> Any:
    """Return the budget of the innermost open block.

    A thread without a block of its own takes the block that another thread has open: that is
    where a thread pool's work comes from, and a charge too many harms nobody's privacy.

    Returns
    -------
    BudgetAccountant or None
        The budget, None outside all blocks.

    Raises
    ------
    RuntimeError
        If other threads have blocks of several budgets open, so that it is not clear which one
        this thread works for.
    """
    here = _blocks_here.get()
    if here:
        return here[-1]
    with _lock:
        others = list(_blocks_anywhere)
    if any(other is not others[0] for other in others):
        raise RuntimeError(
            "Several threads have `with` blocks of different budgets open, and this thread has "
            "none: it is unclear which budget to charge. Give the estimator its accountant=."
        )
    return others[0] if others else None


class ChargesBudget(PlainParameters):
    """Mixin of everything that fits privately: it stays with the budget of its block.

    Inside ``with accountant:`` clones, pickles and hence joblib's workers take the block's budget
    along, so that a fit in another process or thread charges it too. An estimator that came back
    from a worker stays bound to that budget.
    """

    _bound_accountant: Any = None

    def __getstate__(self) -> dict[str, Any]:
        state: dict[str, Any] = dict(super().__getstate__())  # type: ignore[call-overload]
        accountant = active_accountant()
        if accountant is not None:
            state["_bound_accountant"] = accountant
        return state

    def __sklearn_clone__(self) -> Any:
        clone = super().__sklearn_clone__()  # type: ignore[misc]
        accountant = active_accountant() or self._bound_accountant
        if accountant is not None:
            clone._bound_accountant = accountant
        return clone


def check_accountant(accountant: Any) -> None:
    """Refuse a parameter that is no budget.

    Parameters
    ----------
    accountant : object
        What the user gave as ``accountant=``.

    Raises
    ------
    TypeError
        If it is neither None nor has a method `reserve`.
    """
    if accountant is not None and not callable(getattr(accountant, "reserve", None)):
        raise TypeError(
            "accountant must be None or a budget such as skdp.budget.BudgetAccountant, got "
            f"{type(accountant).__name__}."
        )


def charge_fit(estimator: Any, spent: PrivacySpent) -> None:
    """Charge what a fit is about to spend; afterwards the rows may be used.

    The budget is the estimator's `accountant`, else that of the enclosing ``with`` block, else
    the one that the estimator was bound to when it was cloned or pickled in such a block. Without
    any of them nobody keeps count.

    Parameters
    ----------
    estimator : estimator
        Who charges; its class and parameters are recorded.
    spent : PrivacySpent
        What the fit will spend.

    Raises
    ------
    BudgetExceededError
        If the budget cannot take the charge.
    TypeError
        If the estimator's `accountant` is no budget.
    """
    check_accountant(estimator.accountant)
    accountant = estimator.accountant
    if accountant is None:
        accountant = active_accountant() or getattr(estimator, "_bound_accountant", None)
    if accountant is None:
        return
    name = type(estimator).__name__
    accountant.reserve(
        spent.event,
        label=f"{name}.fit",
        adjacency=spent.adjacency,
        epsilon=spent.epsilon,
        delta=spent.delta,
        estimator=name,
        parameters={
            parameter: value
            for parameter, value in estimator.get_params(deep=False).items()
            if parameter not in _NOT_RECORDED
        },
        seeded=spent.seeded,
    )
