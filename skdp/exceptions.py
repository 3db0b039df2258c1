"""Exceptions of skdp; each also derives from a built-in type."""


class SkdpError(Exception):
    """Base class of all errors of skdp."""


class UnsupportedEventError(SkdpError, TypeError):
    """Error for an event without a proved bound under the accountant."""


class CalibrationError(SkdpError, ValueError):
    """Error if no noise, number of steps or sample rate in range meets the privacy target."""


class SchemaError(SkdpError, ValueError):
    """Error in a schema, or in a table for it; the message quotes no cell of the table."""


class RowsChangedError(SkdpError, RuntimeError, ValueError):
    """Error for a table that changed during a fit: nothing is released, the charge remains.

    Examples
    --------
    >>> from skdp.exceptions import RowsChangedError
    >>> print(RowsChangedError())
    the table is damaged, or changed in use: ...
    """

    def __init__(self, message: str | None = None) -> None:
        super().__init__(
            message
            or "the table is damaged, or changed in use: rows, labels or ids, or their order, "
            "differ when read again. Nothing is released, and the charge is not refunded. Store "
            "the table in a fixed order first: persist() it in Dask, sort the results of a query, "
            "or write it to a file that no program changes."
        )


class BudgetExceededError(SkdpError, RuntimeError):
    """Error for a charge that exceeds the remaining budget.

    Attributes
    ----------
    requested : tuple of float or None
        Requested (epsilon, delta), under the adjacency relation of the request.
    remaining : tuple of float or None
        The (epsilon, delta) of the largest single release that still fits.
    fits : tuple of float or None
        The (epsilon, delta) that is granted to a release of the same kind and adjacency relation.
        None if no release of that kind fits any more.
    search : tuple or None
        Class name of the search by scikit-learn that the fit belongs to, such as `GridSearchCV`,
        and number of its other fits that are charged, fully or in part.
    """

    requested: tuple[float, float] | None = None
    remaining: tuple[float, float] | None = None
    fits: tuple[float, float] | None = None
    search: tuple[str, int] | None = None


class BudgetRequiredError(SkdpError, RuntimeError):
    """Error for a fit without a budget if the configuration requires one."""


class LedgerError(SkdpError, RuntimeError):
    """Error for a ledger that cannot be read or written; every charge is refused."""


class LedgerDamagedError(LedgerError):
    """Error for a ledger that was edited, truncated or rolled back, or is not a ledger."""


class LedgerMismatchError(LedgerError):
    """Error for a ledger of another budget, or with other terms."""


class LedgerLockedError(LedgerError):
    """Error if another process holds the ledger for longer than a charge waits."""


class LedgerReadOnlyError(LedgerError):
    """Error for a ledger that can be read but not written."""


class LedgerFullError(LedgerError):
    """Error if the disk has no space for another entry of the ledger."""


class LedgerMissingError(LedgerError):
    """Error for a ledger that does not exist."""


class LedgerUnreachableError(LedgerError):
    """Error for a ledger server that does not answer, or does not accept this user.

    Also raised if the process with the ledger does not answer workers of a Dask cluster.
    """


class PrivacyWarning(UserWarning):
    """Warning of a valid choice that voids or bypasses the guarantee, or wastes budget."""


class ContradictionWarning(RuntimeWarning):
    """Warning of contradictory certified bounds, which is a bug; the larger one is used."""
