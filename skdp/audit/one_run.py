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
    "audit_in_one_run supports only linear models, since it needs a weight per canary. Use "
    "audit_epsilon for networks."
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

    The run is replayed with its released outputs on the other two tables, with all canaries in one
    state and with all in the other. Also return whether canaries always added the same to a sum.
    """
    plan = tables[0].plan
    if plan.lots is None or plan.last_iterate_only:
        raise ValueError(
            "audit_in_one_run supports release='all' only for noisy gradients with a cost for "
            "every step. Use release='model'."
        )

    if "linear" not in plan.model.facts:
        raise ValueError(NOT_LINEAR)

    def columns(trace: ReleaseTrace, what: str) -> Array:
        """Return an array of shape (steps, outputs of a row, canaries)."""
        # Counts of labels and tables of scores reveal little about a row.
        sums = [each for each in trace.releases if each.value.size == plan.model.n_weights]
        sums = sums[: plan.steps]
        shape = (len(sums), -1, plan.model.n_weights_per_output)
        table = np.reshape([getattr(release, what) for release in sums], shape)
        return table[:, :, plan.model.n_features - n_canaries : plan.model.n_features]

    with record_releases() as seen:
        tables[0].fit(stream)
    outputs, variance = columns(seen, "output"), plan.sigma**2
    # Contribution of each canary: all rows are in all batches.
    everyone = replace(plan.lots, sampling="full")
    with np.errstate(divide="ignore"):
        drawn, left_out = np.log([plan.lots.sample_rate, 1.0 - plan.lots.sample_rate])
    ratios, steady = [], True
    for table in tables[1:]:
        with record_releases(seen) as trace:
            # Another stream: scores must depend only on released values.
            table.fit(stream.spawn("replay"), replace(table.plan, lots=everyone))
        added = columns(trace, "value")
        steady = steady and np.allclose(added, added[:1, :, :1], rtol=1e-9, atol=0.0)
        ratio = np.sum(added * (outputs - 0.5 * added), axis=1) / variance
        ratios.append(np.logaddexp(left_out, drawn + ratio).sum(axis=0))
    return ratios[0] - ratios[1], steady


# Without assumptions, guesses about the surest quarter of the canaries show most.
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
    """Attack the privacy claim of a classifier with a single fit.

    Canaries are added to the table: rows at the norm bound, in separate columns. Each is
    independently present (add-remove), or has one of two labels (replace-one), with probability
    1/2. After one fit, the audit guesses these choices from the released values. No budget is
    charged.

    **Use made-up rows**, as with `audit_epsilon`.

    Parameters
    ----------
    estimator : private classifier
        Classifier that `audit_epsilon` accepts, or a search for one, with `data_norm`, `classes`
        and `fit_intercept`.
    X : array-like of shape (n_samples, n_features)
        Rows other than the canaries.
    y : array-like of shape (n_samples,)
        Labels of these rows.
    n_canaries : int, default=1000
        Number of canaries, at least 100. Each adds a row and a column to the table.
    confidence : float, default=0.999
        Probability, in (0, 1), with which the bounds are valid.
    release : {"model", "all"}, default="model"
        Values that the attacker sees: the coefficients, or all noisy sums of gradients.
    method : {"f-dp", "binomial", "gaussian"}, default="f-dp"
        Assumptions about the fit. ``"f-dp"`` assumes nothing and shows least.

        ``"binomial"`` assumes that the column of a canary is independent of other canaries. It
        supports noisy gradients of linear models on full or Poisson batches, without intercept and
        projection. Noise must be independent in all columns, and the fit must have no other release
        (``calibrate=None``, no ``prevalence="private"``).

        ``"gaussian"`` also assumes normal noise of equal size in all columns. It requires
        ``release="all"``, full batches and constant slopes.
    random_state : int, RandomState or None, default=None
        Seed for a repeatable audit.

    Returns
    -------
    AuditResult
        The bounds, the claim, and whether it is disproved.

    Notes
    -----
    If the claim and the assumptions are true, the bounds exceed the claim with probability at
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
    """Refuse fits without a proof that a canary's column is independent of other canaries."""
    plan = table.plan
    if plan.lots is not None and "linear" not in plan.model.facts:
        raise ValueError(NOT_LINEAR)
    allowed = ("full",) if method == "gaussian" else ("full", "poisson")
    # Tables of scores and counts of labels depend on all canaries. Sums come before the table of a
    # default; an explicit table must be audited.
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
            f"method={method!r} needs independent canaries: noisy gradients of a linear model on "
            f"{' or '.join(allowed)} batches, fit_intercept=False, no projection, and no other "
            "release (calibrate=None, no prevalence='private'). Use method='f-dp', which has no "
            "such conditions."
        )
    if method == "gaussian" and release != "all":
        raise ValueError("method='gaussian' requires release='all', since it compares noisy sums.")


def _normal_errors(up: Array, down: Array, steady: bool, failure: float) -> Errors:
    """Bound the errors of the best test between the normal laws of scores."""
    if not steady:
        raise ValueError(
            "Slopes changed during the run, and scores are not normal. Use method='binomial'."
        )
    error = ndtr(-0.5 * distance_lower(up, down, 0.5 * failure))
    # Largest rate at which slopes change in a canary's column, if none changed here.
    change = -np.expm1(np.log(0.5 * failure) / (up.size + down.size))
    return Errors(error, np.minimum(error + change, 1.0))
