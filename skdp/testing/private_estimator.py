"""`check_private_estimator`: checks for private estimators of any author."""

from __future__ import annotations

from typing import Any
from unittest import SkipTest

from skdp.base.parameters import OnFail
from skdp.reporting.leaks import warn_of_leaks
from skdp.testing._case import Case
from skdp.testing._checks import CHECKS


def check_private_estimator(
    estimator: Any,
    X: Any = None,
    y: Any = None,
    *,
    neighbours: Any = None,
    n_draws: int = 200,
    on_fail: OnFail | None = "raise",
) -> list[dict[str, Any]]:
    """Check that an estimator follows the rules of a private estimator.

    Parameters
    ----------
    estimator : private classifier, transformer, pipeline or search
        Estimator to check. Only clones are fitted, which charge only budgets of the check. It must
        use mechanisms of `skdp.mechanisms`, or report releases with
        ``skdp.mechanisms.trace.note_release``. Parts with private noise must have
        ``random_state=None``.
    X : ndarray of shape (n_samples, n_features), optional
        Rows; by default 60 synthetic rows of norm at most 1, with 4 columns.
    y : array-like of shape (n_samples,), optional
        Labels; without X, synthetic zeros and ones by default.
    neighbours : list of pairs ((X, y), (X2, y2)), optional
        Neighbouring tables under the estimator's adjacency. By default they differ in one row
        (random, extreme, null, a duplicate, with another or a new label), or in all rows of an id.
        Under add-remove the last row is missing.
    n_draws : int, default=200
        Numbers drawn per mechanism to test its law. The default detects half or twice the noise;
        see :func:`check_noise`. This uses at most 60 fits.
    on_fail : {"raise", None}, default="raise"
        Whether the first failing check raises. None returns all results.

    Returns
    -------
    list of dict
        ``check_name``, ``status`` ("passed", "failed" or "skipped") and ``exception`` per check.

    Raises
    ------
    AssertionError
        If a check fails, with the fault and a remedy.

    Notes
    -----
    The checks are:

    - The budget is charged once, in full, before rows are used or copied. A refusal ends the fit.
    - The method ``privacy_plan`` returns this charge from the shape of a table.
    - Replays on neighbours change no release by more than its declared sensitivity, under both
      adjacency relations if there is a parameter ``adjacency``.
    - Noise has the declared law and is never used twice. Releases cost at most the charge (for
      Gaussian and Laplace noise without sampling).
    - Under frozen noise, neither the fitted object nor its output distinguishes neighbours.
    - Seeds are reported; clones and pickles keep parameters, budget and record.
    - Errors quote no value.

    Under add-remove the number of rows is private, unless an assumption of the record names "the
    number of rows" (or units). Zeros may then represent the row, without an intercept, and sums may
    be over n. The set of occurring labels is private, unless an assumption names the "label set".

    A correct estimator fails by chance with a probability below 1e-6. For discrete noise, reuse of
    a few numbers may remain undetected. Passing proves no guarantee: neighbours are samples, and
    releases outside the trace are not checked. Check the steps of a container too.

    References
    ----------
    Cebere, Erb, Desfontaines, Bellet and Fitzsimons (2026), Privacy in Theory, Bugs in Practice,
    arXiv 2602.17454: replays on neighbours, component by component.

    Examples
    --------
    >>> from skdp.preprocessing import DPStandardScaler
    >>> from skdp.testing import check_private_estimator
    >>> results = check_private_estimator(DPStandardScaler(lower=-1.0, upper=1.0))
    >>> {result["status"] for result in results}
    {'passed'}
    """
    warn_of_leaks(estimator)
    case = Case(estimator, X, y, neighbours, n_draws)
    results: list[dict[str, Any]] = []
    for check in CHECKS:
        status: str = "passed"
        exception: Exception | None = None
        try:
            check(case)
        except SkipTest as reason:
            status, exception = "skipped", reason
        except Exception as error:
            if on_fail is not None:
                raise
            status, exception = "failed", error
        results.append({"check_name": check.__name__, "status": status, "exception": exception})
    return results
