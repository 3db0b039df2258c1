"""Exceptions raised by skdp; each also derives from the built-in type users would expect."""


class SkdpError(Exception):
    """Base class of all errors that are specific to skdp."""


class UnsupportedEventError(SkdpError, TypeError):
    """An accountant was given an event for which it has no proved bound."""


class CalibrationError(SkdpError, ValueError):
    """No noise, number of steps or sample rate in the searched range meets the privacy target."""


class SchemaError(SkdpError, ValueError):
    """A schema, or a table that does not fit one; the message quotes no cell of the table."""


class RowsChangedError(SkdpError, RuntimeError, ValueError):
    """A table changed in use; nothing was released, and what was charged stays.

    Examples
    --------
    >>> from skdp.exceptions import RowsChangedError
    >>> print(RowsChangedError())
    the table is damaged, or changed in use: ...
    """

    def __init__(self, message: str | None = None) -> None:
        super().__init__(
            message
            or "the table is damaged, or changed in use: rows, labels or ids that were read again "
            "are not what they were, or not in the same order. Nothing is released, and what was "
            "charged stays. Store the table first, in an order that is fixed: persist() it in "
            "Dask, sort what a query returns, or write it to a file that nobody changes."
        )


class BudgetExceededError(SkdpError, RuntimeError):
    """A charge was refused because it would exceed what is left of a budget.

    Attributes
    ----------
    requested : tuple of float or None
        The (epsilon, delta) that was asked for, in the relation of the request.
    remaining : tuple of float or None
        The (epsilon, delta) of the largest single release that would still have fitted.
    fits : tuple of float or None
        The (epsilon, delta) to ask for instead, by a release of the same kind and relation, which
        is granted; None if no release of that kind fits any more.
    search : tuple or None
        Of a fit by scikit-learn's `GridSearchCV` and others of its kind: the name of that class,
        and how many of its other fits are charged, whole or in part.
    """

    requested: tuple[float, float] | None = None
    remaining: tuple[float, float] | None = None
    fits: tuple[float, float] | None = None
    search: tuple[str, int] | None = None


class BudgetRequiredError(SkdpError, RuntimeError):
    """A fit has no budget to charge, though the configuration requires one."""


class LedgerError(SkdpError, RuntimeError):
    """The ledger of a budget cannot be read or written, so that every charge is refused."""


class LedgerDamagedError(LedgerError):
    """The ledger was edited, cut short, rolled back or is no ledger at all."""


class LedgerMismatchError(LedgerError):
    """The ledger belongs to another budget than the one that was asked for."""


class LedgerLockedError(LedgerError):
    """Another process held the ledger for longer than a charge waits."""


class LedgerReadOnlyError(LedgerError):
    """The ledger can be read but not written."""


class LedgerFullError(LedgerError):
    """The disk has no room for another entry of the ledger."""


class LedgerMissingError(LedgerError):
    """There is no ledger where it should be."""


class LedgerUnreachableError(LedgerError):
    """The server of the ledger does not answer, or does not let this user in.

    So does the process that has the ledger, if workers of a Dask cluster ask it in vain.
    """


class PrivacyWarning(UserWarning):
    """A legal choice voids the guarantee in practice, goes beside it, or spends it in vain."""


class ContradictionWarning(RuntimeWarning):
    """Two certified bounds on a privacy cost exclude each other: a bug, met by the larger one."""
