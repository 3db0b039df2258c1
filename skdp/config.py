"""Settings of the library: whether fits without a budget are refused."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from contextvars import ContextVar

from skdp.notices import heard, post, withdraw

_REQUIRE_BUDGET = "require_budget"
# What the innermost context of this thread says, and the process that it was entered in.
_here: ContextVar[tuple[int, bool] | None] = ContextVar("skdp_require_budget", default=None)
# Notices of this process that budgets are required: of `set_config`, and of open contexts.
_setting: int | None = None
_contexts: set[int] = set()


def get_config() -> dict[str, bool]:
    """Return the settings that hold here and now.

    Returns
    -------
    dict
        ``"require_budget"``: whether a fit that no budget is charged for raises. It is what an
        enclosing `config_context` of this thread says. Outside them it is true if a context of any
        thread, `set_config`, the environment variable ``SKDP_REQUIRE_BUDGET`` (``1`` or ``true``)
        or a process that this one was started by requires budgets.

    Examples
    --------
    >>> import skdp
    >>> with skdp.config_context(require_budget=True):
    ...     skdp.get_config()
    {'require_budget': True}
    """
    here = _here.get()
    if here is not None and here[0] == os.getpid():
        return {_REQUIRE_BUDGET: here[1]}
    variable = os.environ.get("SKDP_REQUIRE_BUDGET", "").lower() in ("1", "true")
    own = variable or _setting is not None or bool(_contexts)
    return {_REQUIRE_BUDGET: own or bool(heard(_REQUIRE_BUDGET))}


def set_config(*, require_budget: bool | None = None) -> None:
    """Change settings, for all threads of this process and for the processes started by it.

    Parameters
    ----------
    require_budget : bool or None, default=None
        Whether fits without a budget raise `BudgetRequiredError`; None changes nothing. False takes
        back what an earlier call required, but not what the environment or a parent process does.

    Examples
    --------
    >>> import skdp
    >>> skdp.set_config(require_budget=True)
    >>> skdp.get_config()["require_budget"]
    True
    >>> skdp.set_config(require_budget=False)  # takes it back
    """
    global _setting
    if require_budget is None:
        return
    _check(require_budget)
    if _setting is not None:
        withdraw(_setting)
    _setting = post(_REQUIRE_BUDGET, True) if require_budget else None


@contextlib.contextmanager
def config_context(*, require_budget: bool | None = None) -> Iterator[None]:
    """Change settings for a block.

    Unlike in scikit-learn, what is made stricter is so for all threads and processes that have no
    settings of their own: work that a block hands over must not become lax. What is made laxer is
    so for this thread alone.

    Parameters
    ----------
    require_budget : bool or None, default=None
        As for `set_config`.

    Yields
    ------
    None
        The settings before the block return after it.

    Examples
    --------
    >>> import skdp
    >>> classifier = skdp.OperaLogisticRegression(epsilon=1.0, data_norm=1.0, classes=[0, 1])
    >>> with skdp.config_context(require_budget=True):
    ...     classifier.fit([[0.1], [0.9]], [0, 1])
    Traceback (most recent call last):
        ...
    skdp.exceptions.BudgetRequiredError: OperaLogisticRegression.fit has no budget to charge, ...
    """
    if require_budget is None:
        yield
        return
    _check(require_budget)
    token = _here.set((os.getpid(), require_budget))
    notice = post(_REQUIRE_BUDGET, True) if require_budget else None
    try:
        if notice is not None:
            _contexts.add(notice)
        yield
    finally:
        _here.reset(token)
        if notice is not None:
            _contexts.discard(notice)
            withdraw(notice)


def _check(require_budget: bool) -> None:
    if not isinstance(require_budget, bool):
        raise TypeError(f"require_budget must be True, False or None, got {require_budget!r}.")
