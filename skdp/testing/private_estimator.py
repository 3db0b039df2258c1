"""`check_private_estimator`: what a private estimator must pass, whoever wrote it."""

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
    """Check that an estimator keeps the rules that its guarantee rests on.

    Parameters
    ----------
    estimator : private classifier, transformer, pipeline or search
        Only clones of it are fitted, which charge budgets of the check alone. Mechanisms are those
        of `skdp.mechanisms`, or show what they do by ``skdp.mechanisms.trace.note_release``; parts
        that draw private noise have ``random_state=None``.
    X : ndarray of shape (n_samples, n_features), optional
        Rows; by default 60 synthetic ones of norm at most 1, with 4 columns.
    y : array-like of shape (n_samples,), optional
        Labels; by default, if X is not given, synthetic zeros and ones.
    neighbours : list of pairs ((X, y), (X2, y2)), optional
        Neighbouring tables in the relation of the estimator, in place of those made here: one row
        random, extreme, null, a duplicate, of another label or of a new one, or all rows of an id.
        Under add-remove the last row is gone.
    n_draws : int, default=200
        Numbers drawn by each mechanism, whose law is tested: these find half or twice the noise;
        see :func:`check_noise`. At most 60 fits are made for it.
    on_fail : {"raise", None}, default="raise"
        Whether the first check that fails ends all; else look at what is returned.

    Returns
    -------
    list of dict
        ``check_name``, ``status`` ("passed", "failed" or "skipped") and ``exception`` of each.

    Raises
    ------
    AssertionError
        If a check fails, with what is wrong and what to do.

    Notes
    -----
    The checks: the budget is charged once, in full, before rows are used or copied, and its refusal
    ends the fit; the method ``privacy_plan`` names that charge from the shape alone; replays on
    neighbours, in both relations if there is a parameter ``adjacency``,
    move no release by more than it declares; noise is of the declared law, never used twice, and
    the releases cost no more than is charged (for Gaussian and Laplace noise without sampling);
    under frozen noise nothing that is reached from the fitted object and nothing that is said aloud
    tells neighbours apart; seeds are reported; clones and pickles keep parameters, budget and
    record; errors quote no value. The number of rows is private under add-remove, unless an
    assumption of the record names "the number of rows" (or units); then zeros may stand for the
    row, without an intercept, and sums may be over n. Labels that occur are private, unless an
    assumption names the "label set". A right estimator fails by chance with a probability below
    1e-6; of discrete noise a few numbers may be used twice unseen. To pass proves no guarantee:
    neighbours are samples, and what is not shown to the trace cannot be judged. Check the steps of
    a container as well.

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
