"""Exceptions raised by skdp; each also derives from the built-in type users would expect."""


class SkdpError(Exception):
    """Base class of all errors that are specific to skdp.

    Examples
    --------
    >>> from skdp.accounting import GaussianEvent
    >>> from skdp.budget import BudgetAccountant
    >>> from skdp.exceptions import SkdpError
    >>> try:
    ...     BudgetAccountant(epsilon=1.0, delta=1e-6).reserve(GaussianEvent(0.1))
    ... except SkdpError as error:
    ...     print(type(error).__name__)
    BudgetExceededError
    """


class UnsupportedEventError(SkdpError, TypeError):
    """An accountant was given an event for which it has no proved bound.

    Examples
    --------
    >>> from skdp.accounting import GaussianEvent, GDPAccountant, PoissonSampledEvent
    >>> GDPAccountant().compose(PoissonSampledEvent(0.1, GaussianEvent(1.0)))
    Traceback (most recent call last):
        ...
    skdp.exceptions.UnsupportedEventError: GDPAccountant has no proved bound for ...
    """


class CalibrationError(SkdpError, ValueError):
    """No noise, number of steps or sample rate in the searched range meets the privacy target.

    Examples
    --------
    >>> from skdp.accounting import PureDPEvent, calibrate_event
    >>> calibrate_event(lambda scale: PureDPEvent(2.0), epsilon=1.0, delta=0.0)
    Traceback (most recent call last):
        ...
    skdp.exceptions.CalibrationError: no noise up to 1000000000000.0 meets epsilon=1.0 ...
    """


class SchemaError(SkdpError, ValueError):
    """A schema, or a table that does not fit one; the message quotes no cell of the table.

    Examples
    --------
    >>> from skdp.preprocessing import NumericColumn
    >>> NumericColumn("age", 120, 0)
    Traceback (most recent call last):
        ...
    skdp.exceptions.SchemaError: column 'age': upper: must exceed lower=120, got 0.
    """


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
        The (epsilon, delta) that the refused charge would have cost by itself.
    remaining : tuple of float or None
        The (epsilon, delta) of the largest single release that would still have fitted.
    fits : tuple of float or None
        The (epsilon, delta) to ask for instead, by a release of the same kind; None if no
        release of that kind fits any more.
    search : tuple or None
        Of a fit by scikit-learn's `GridSearchCV` and others of its kind: the name of that class,
        and how many of its other fits are charged, whole or in part.

    Examples
    --------
    >>> from skdp.accounting import PureDPEvent
    >>> from skdp.budget import BudgetAccountant, BudgetExceededError
    >>> budget = BudgetAccountant(epsilon=1.0, delta=0.0)
    >>> try:
    ...     budget.reserve(PureDPEvent(1.5), label="a count")
    ... except BudgetExceededError as error:
    ...     print(error.requested, error.remaining, error.fits)
    (1.5, 0.0) (1.0, 0.0) (1.0, 0.0)
    """

    requested: tuple[float, float] | None = None
    remaining: tuple[float, float] | None = None
    fits: tuple[float, float] | None = None
    search: tuple[str, int] | None = None


class BudgetRequiredError(SkdpError, RuntimeError):
    """A fit has no budget to charge, though the configuration requires one.

    Examples
    --------
    >>> import skdp
    >>> with skdp.config_context(require_budget=True):
    ...     skdp.OperaSVC(data_norm=1.0, classes=[0, 1]).fit([[0.1], [0.9]], [0, 1])
    Traceback (most recent call last):
        ...
    skdp.exceptions.BudgetRequiredError: OperaSVC.fit has no budget to charge, ...
    """


class LedgerError(SkdpError, RuntimeError):
    """The ledger of a budget cannot be read or written, so that every charge is refused.

    Examples
    --------
    >>> from skdp.budget import BudgetAccountant, LedgerError
    >>> try:
    ...     BudgetAccountant.open("a-ledger-that-is-not-there.db")
    ... except LedgerError as error:
    ...     print(type(error).__name__)
    LedgerMissingError
    """


class LedgerDamagedError(LedgerError):
    """The ledger was edited, cut short, rolled back or is no ledger at all.

    Examples
    --------
    >>> import tempfile
    >>> from skdp.budget import BudgetAccountant
    >>> with tempfile.NamedTemporaryFile() as file:
    ...     _ = file.write(b"edited by hand" * 100)
    ...     file.flush()
    ...     BudgetAccountant.open(file.name)
    Traceback (most recent call last):
        ...
    skdp.exceptions.LedgerDamagedError: The ledger ... is damaged, or no ledger at all ...
    """


class LedgerMismatchError(LedgerError):
    """The ledger belongs to another budget than the one that was asked for.

    Examples
    --------
    >>> import os, tempfile
    >>> from skdp.budget import BudgetAccountant
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "ledger.db")
    ...     budget = BudgetAccountant(epsilon=1.0, delta=1e-6, ledger=path)
    ...     BudgetAccountant(epsilon=8.0, delta=1e-6, ledger=path)
    Traceback (most recent call last):
        ...
    skdp.exceptions.LedgerMismatchError: The ledger ... was created with epsilon=1.0 and ...
    """


class LedgerLockedError(LedgerError):
    """Another process held the ledger for longer than a charge waits.

    Examples
    --------
    >>> from skdp.accounting import PureDPEvent
    >>> from skdp.budget import BudgetAccountant, LedgerLockedError
    >>> budget = BudgetAccountant(epsilon=1.0, delta=0.0)
    >>> try:
    ...     entry = budget.reserve(PureDPEvent(0.1), label="a count")
    ... except LedgerLockedError:
    ...     print("nothing was charged: try again")
    >>> budget.spent()
    (0.1, 0.0)
    """


class LedgerReadOnlyError(LedgerError):
    """The ledger can be read but not written.

    Examples
    --------
    >>> from skdp.accounting import PureDPEvent
    >>> from skdp.budget import BudgetAccountant, LedgerReadOnlyError
    >>> budget = BudgetAccountant(epsilon=1.0, delta=0.0)
    >>> try:
    ...     entry = budget.reserve(PureDPEvent(0.1), label="a count")
    ... except LedgerReadOnlyError:
    ...     print("nothing was charged: ask the ledger's owner for write access")
    >>> budget.spent()
    (0.1, 0.0)
    """


class LedgerFullError(LedgerError):
    """The disk has no room for another entry of the ledger.

    Examples
    --------
    >>> from skdp.accounting import PureDPEvent
    >>> from skdp.budget import BudgetAccountant, LedgerFullError
    >>> budget = BudgetAccountant(epsilon=1.0, delta=0.0)
    >>> try:
    ...     entry = budget.reserve(PureDPEvent(0.1), label="a count")
    ... except LedgerFullError:
    ...     print("nothing was charged: free some space on the disk")
    >>> budget.spent()
    (0.1, 0.0)
    """


class LedgerMissingError(LedgerError):
    """There is no ledger where it should be.

    Examples
    --------
    >>> from skdp.budget import BudgetAccountant
    >>> BudgetAccountant.open("a-ledger-that-is-not-there.db")
    Traceback (most recent call last):
        ...
    skdp.exceptions.LedgerMissingError: The ledger ... is not there. ...
    """


class LedgerUnreachableError(LedgerError):
    """The server of the ledger does not answer, or does not let this user in.

    So does the process that has the ledger, if workers of a Dask cluster ask it in vain.

    Examples
    --------
    >>> from skdp.accounting import PureDPEvent
    >>> from skdp.budget import BudgetAccountant, LedgerUnreachableError
    >>> budget = BudgetAccountant(epsilon=1.0, delta=0.0)  # or ledger="postgresql://..."
    >>> try:
    ...     entry = budget.reserve(PureDPEvent(0.1), label="a count")
    ... except LedgerUnreachableError:
    ...     print("no row was read: try again when the server is back")
    >>> budget.spent()
    (0.1, 0.0)
    """


class PrivacyWarning(UserWarning):
    """A legal choice of parameters voids the guarantee in practice, or spends it in vain.

    Examples
    --------
    >>> import warnings
    >>> from skdp import OperaLogisticRegression
    >>> from skdp.exceptions import PrivacyWarning
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("error", PrivacyWarning)  # none passes unnoticed
    ...     OperaLogisticRegression(classes=[0, 1]).fit([[0.1], [0.9]], [0, 1])
    Traceback (most recent call last):
        ...
    skdp.exceptions.PrivacyWarning: OperaLogisticRegression was given no data_norm ...
    """


class ContradictionWarning(RuntimeWarning):
    """Two certified bounds on a privacy cost exclude each other: a bug, met by the larger one.

    Examples
    --------
    >>> import warnings
    >>> from skdp.exceptions import ContradictionWarning
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("error", ContradictionWarning)  # to find out where
    """
