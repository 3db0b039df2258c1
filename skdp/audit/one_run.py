"""Lower bounds on epsilon from one run of a fit on a table with many canaries."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from scipy.special import ndtr

from skdp.audit.bounds import Array, Errors, Guesses, distance_lower, rate_upper
from skdp.audit.epsilon import check_audit, judge
from skdp.audit.neighbours import with_canaries
from skdp.audit.result import AuditResult
from skdp.audit.runs import AuditedTable, StepsTold
from skdp.base.parameters import OneRunMethod, Release, check_choice, check_integer, plain_arguments
from skdp.base.scikit_learn import fitted_model, responds
from skdp.mechanisms.random_stream import RandomStream, resolve_random_state
from skdp.mechanisms.trace import ReleaseTrace, record_releases
from skdp.running import shown
from skdp.tables.places import in_memory

NOT_LINEAR = (
    "In one run, canaries are scored by weights of their own, which linear models have and "
    "networks have not: take audit_epsilon."
)


def score_model(table: AuditedTable, stream: RandomStream, n_canaries: int) -> Array:
    """Fit once, and score canaries by their coefficients."""
    fitted = fitted_model(table.fit(stream))
    if not responds(fitted, "coef_"):
        raise ValueError(NOT_LINEAR)
    weights = np.array(fitted.coef_[-1, -n_canaries:])
    return weights - weights.mean()


def score_sums(
    tables: list[AuditedTable], stream: RandomStream, n_canaries: int
) -> tuple[Array, bool]:
    """Fit the first table; score canaries by the likelihood ratio of the sums in their columns.

    The run is replayed with the outputs that it released on the other two tables, with all coins up
    and with all down. Also told is whether what a canary adds to a sum was always the same.
    """
    plan = tables[0].plan
    if plan.lots is None or plan.last_iterate_only:
        raise ValueError(
            "In one run, release='all' is for noisy gradients that pay for every step: take "
            "release='model'."
        )

    if "linear" not in plan.model.facts:
        raise ValueError(NOT_LINEAR)

    def columns(trace: ReleaseTrace, what: str) -> Array:
        """Return an array of shape (steps, outputs of a row, canaries)."""
        # And no count of labels and no table of scores, which say little of a row.
        sums = [each for each in trace.releases if each.value.size == plan.model.n_weights]
        sums = sums[: plan.steps]
        shape = (len(sums), -1, plan.model.n_weights_per_output)
        table = np.reshape([getattr(release, what) for release in sums], shape)
        return table[:, :, plan.model.n_features - n_canaries : plan.model.n_features]

    with record_releases() as seen:
        tables[0].fit(stream)
    outputs, variance = columns(seen, "output"), plan.sigma**2
    # What a canary adds where it is drawn: all rows in all lots.
    everyone = replace(plan.lots, sampling="full")
    with np.errstate(divide="ignore"):
        drawn, left_out = np.log([plan.lots.sample_rate, 1.0 - plan.lots.sample_rate])
    ratios, steady = [], True
    for table in tables[1:]:
        with record_releases(seen) as trace:
            # Another stream: scores may depend on nothing but what was released.
            table.fit(stream.spawn("replay"), replace(table.plan, lots=everyone))
        added = columns(trace, "value")
        steady = steady and np.allclose(added, added[:1, :, :1], rtol=1e-9, atol=0.0)
        ratio = np.sum(added * (outputs - 0.5 * added), axis=1) / variance
        ratios.append(np.logaddexp(left_out, drawn + ratio).sum(axis=0))
    return ratios[0] - ratios[1], steady


# Where nothing is assumed, guesses about the surest quarter of the canaries show most.
_ABSTAIN = 4


@plain_arguments
def audit_in_one_run(
    estimator: Any,
    X: Any,
    y: Any,
    *,
    n_canaries: int = 1000,
    confidence: float = 0.999,
    release: Release = "model",
    method: OneRunMethod = "f-dp",
    random_state: Any = None,
) -> AuditResult:
    """Try to disprove what a private classifier claims from a single fit.

    Canaries are added to the table, rows at the norm bound in columns of their own; a fair coin
    decides for each whether it is there (add-remove) or which label it has (replace-one). After one
    fit the coins are guessed from what was released. No budget is charged.

    **Audit made-up rows**, as with `audit_epsilon`.

    Parameters
    ----------
    estimator : private classifier
        One that `audit_epsilon` takes, or a search for one, with `data_norm`, `classes` and
        `fit_intercept`.
    X : array-like of shape (n_samples, n_features)
        Rows besides the canaries.
    y : array-like of shape (n_samples,)
        Their labels.
    n_canaries : int, default=1000
        Number of canaries, at least 100. Each adds a row and a column to the table.
    confidence : float, default=0.999
        Probability, in (0, 1), with which the bounds hold.
    release : {"model", "all"}, default="model"
        What the attacker sees: the coefficients, or all noisy sums of gradients.
    method : {"f-dp", "binomial", "gaussian"}, default="f-dp"
        ``"f-dp"`` assumes nothing of the fit, and shows the least. ``"binomial"`` assumes that what
        happens in a canary's column is independent of the other canaries. It is for noisy gradients
        of linear models on full or Poisson lots, without intercept and projection. Nothing may be
        released beside them (``calibrate=None``, no ``prevalence="private"``), and noise must be
        independent in all columns. ``"gaussian"`` assumes, besides, that noise is normal and of the
        same size in all columns; it is for ``release="all"`` on full lots while slopes stay what
        they were.
    random_state : int, RandomState or None, default=None
        Makes an audit repeatable.

    Returns
    -------
    AuditResult
        The bounds, the claim, and whether it is disproved.

    Notes
    -----
    With the claim sound and the assumptions met, the bounds exceed the claim with probability at
    most ``1 - confidence``. Proofs: :ref:`Theorem 5 of audits <audits-5>` for
    ``"f-dp"``, :ref:`Theorem 7 <audits-7>` for ``"binomial"``, :ref:`Theorem 8 <audits-8>` for
    ``"gaussian"``.

    References
    ----------
    Steinke, Nasr & Jagielski (2023), "Privacy Auditing with One (1) Training Run". Mahloujifar,
    Melis & Chaudhuri (2025), "Auditing f-Differential Privacy in One Run".

    Examples
    --------
    >>> import numpy as np
    >>> from skdp import GrpuaSVC
    >>> from skdp.audit import audit_in_one_run
    >>> X, y = np.zeros((10, 1)), np.arange(10) % 2  # made-up rows
    >>> classifier = GrpuaSVC(8.0, 1e-5, data_norm=1.0, fit_intercept=False, batch_size=1010)
    >>> result = audit_in_one_run(classifier, X, y, method="binomial", random_state=0)
    >>> result.violated, 0.0 < result.mu_lower < result.mu_claimed
    (False, True)
    """
    check_audit(estimator, confidence, release)
    check_integer("n_canaries", n_canaries, at_least=100)
    check_choice("method", method, ("f-dp", "binomial", "gaussian"))
    stream = resolve_random_state(random_state, b"audit in one run")
    X, y = in_memory(X, y)
    inside = stream.spawn("coins").uniform(n_canaries) < 0.5
    coins = [inside, np.full(n_canaries, True), np.full(n_canaries, False)]
    tables = [
        AuditedTable(estimator, with_canaries(estimator, X, y, each), stream.spawn(f"table {k}"))
        for k, each in enumerate(coins if release == "all" else coins[:1])
    ]
    if method != "f-dp":
        _refuse_meetings(estimator, tables[0], method, release)
    steps = tables[0].public_steps()
    with shown("audit_in_one_run", len(tables) * steps) as done:
        for place, table in enumerate(tables):
            table.progress = StepsTold(done, place * steps)
        if release == "all":
            scores, steady = score_sums(tables, stream.spawn("run"), n_canaries)
        else:
            scores, steady = score_model(tables[0], stream.spawn("run"), n_canaries), False
    made = n_canaries // _ABSTAIN if method == "f-dp" else n_canaries
    surest = np.argsort(-np.abs(scores), kind="stable")[:made]
    right = int(np.sum((scores[surest] > 0.0) == inside[surest]))
    evidence: Any = Guesses(n_canaries, made, right, 1.0 - confidence)
    if method == "gaussian":
        evidence = _normal_errors(scores[inside], scores[~inside], steady, 1.0 - confidence)
    elif method == "binomial":
        mean_error = rate_upper(made - right, made, 1.0 - confidence)
        evidence = Errors(mean_error, mean_error)
    rates = () if method == "f-dp" else (evidence.false_positive, evidence.false_negative)
    return AuditResult(
        **judge(evidence, tables[0].spent, by_mu=True),
        confidence=confidence,
        false_positive_rate=float(rates[0]) if rates else None,
        false_negative_rate=float(rates[1]) if rates else None,
        estimator=type(estimator).__name__,
        release=release,
        method=method,
        n_trials=1,
        n_canaries=n_canaries,
        n_guesses=made,
        n_right=right,
    )


def _refuse_meetings(estimator: Any, table: AuditedTable, method: str, release: str) -> None:
    """Allow only fits of which it is proved that a canary's column depends on no other canary."""
    plan = table.plan
    if plan.lots is not None and "linear" not in plan.model.facts:
        raise ValueError(NOT_LINEAR)
    allowed = ("full",) if method == "gaussian" else ("full", "poisson")
    # A table of scores or a count of labels is of all canaries. Sums come before a default's table;
    # who asks for one wants it audited.
    if (
        plan.lots is None
        or plan.lots.sampling not in allowed
        or estimator.fit_intercept
        or plan.diameter is not None
        or plan.adaptive
        or not {"linear", "convex"} <= plan.model.facts
        or plan.before
        or (plan.after and (release == "model" or estimator.calibrate == "private"))
        or table.spent.event != plan.event
    ):
        raise ValueError(
            f"method={method!r} needs canaries that do not meet: noisy gradients of a linear model "
            f"on {' or '.join(allowed)} lots, fit_intercept=False, no projection, and nothing "
            "released beside (calibrate=None, no prevalence='private'). method='f-dp' needs "
            "nothing of the kind."
        )
    if method == "gaussian" and release != "all":
        raise ValueError("method='gaussian' compares noisy sums: take release='all'.")


def _normal_errors(up: Array, down: Array, steady: bool, failure: float) -> Errors:
    """Bound the errors of the best test between the normal laws that scores would have."""
    if not steady:
        raise ValueError(
            "Slopes changed during the run, and scores are not normal: take method='binomial'."
        )
    error = ndtr(-0.5 * distance_lower(up, down, 0.5 * failure))
    # So often, at most, slopes change in the column of a canary, if they did in none of them.
    change = -np.expm1(np.log(0.5 * failure) / (up.size + down.size))
    return Errors(error, np.minimum(error + change, 1.0))
