"""Lower bounds on epsilon from many runs of a fit on two neighbouring tables."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from skdp.accounting import GDPAccountant
from skdp.accounting.numerics import gaussian_profile
from skdp.accounting.privacy_spent import PrivacySpent
from skdp.audit.bounds import Array, choose_threshold, discriminant, errors_above
from skdp.audit.neighbours import given_pair, worst_case
from skdp.audit.result import AuditResult
from skdp.audit.runs import (
    AuditedTable,
    RepeatableStream,
    Transcripts,
    paying_parts,
    published,
    read,
)
from skdp.base.parameters import (
    AuditMethod,
    Release,
    check_choice,
    check_integer,
    check_real,
    plain_arguments,
)
from skdp.base.pipelines import walk
from skdp.mechanisms.random_stream import RandomStream, resolve_random_state
from skdp.reporting.leaks import warn_of_leaks
from skdp.running import shown
from skdp.tables.places import in_memory

# Number of points of the claimed privacy curve that are compared with the errors.
_CURVE_POINTS = 33
_SAME = 1.0 + 1e-6  # two computations of one epsilon


@plain_arguments
def audit_epsilon(
    estimator: Any,
    X: Any,
    y: Any = None,
    *,
    groups: Any = None,
    neighbour: Any = "worst-case",
    n_trials: int = 10_000,
    confidence: float = 0.999,
    release: Release = "model",
    method: AuditMethod = "gaussian-dp",
    random_state: Any = None,
) -> AuditResult:
    """Attack the privacy claim of a fit, and return lower bounds on its privacy loss.

    The fit is repeated many times on each of two neighbouring tables. The first half of the runs
    chooses a test that distinguishes the tables by the released values. The second half measures
    its two error rates, for which every guarantee implies lower bounds. No budget is charged.

    **Use made-up rows.** The result has no noise: it is not private, and no budget covers it.

    Parameters
    ----------
    estimator : private classifier, transformer or search, or a pipeline of these
        From this library, or others with an `accountant` parameter and the attribute
        `privacy_spent_`. It is cloned and not changed. A pipeline claims the joint cost of its
        steps.
    X : array-like of shape (n_samples, n_features)
        Rows of both tables, or the first table if `neighbour` is given.
    y : array-like of shape (n_samples,) or None, default=None
        Labels; None for transformers.
    groups : array-like of shape (n_samples,) or None, default=None
        Ids, passed to `fit` as ``groups=``. The tables then differ in all rows of one id.
    neighbour : "worst-case", (X2, y2) or (X2, y2, groups2), default="worst-case"
        Second table. ``"worst-case"`` adds one row at the public bound to `X`:

        - for a classifier, in a column that is zero in all other rows. The tables have it with
          different labels (replace-one), or present and absent (add-remove; output and objective
          perturbation then require ``fit_intercept=False``);
        - for a transformer, at either end of all ranges, or in either of two columns;
        - for a search, the row of its inner estimator.

        A tuple is the second table. It must differ from `X, y` in one row. Under add-remove it may
        lack this row if steps are noisy gradients; otherwise zeros replace it. With
        `groups`, the ids are the same, and the rows of one id differ; absent rows are zeros.
    n_trials : int, default=10_000
        Number of runs on each table, at least 20. The bound on mu is smaller than the
        attack's mu by about ``12 / sqrt(n_trials)``, and by half as much again for mu = 3.
    confidence : float, default=0.999
        Probability, in (0, 1), with which the bounds are valid.
    release : {"model", "all"}, default="model"
        Values that the attacker sees: all published attributes, or every noisy release of the fit.
        ``"all"`` requires Gaussian noise on values without other secret randomness than batches;
        the attacker knows all rows of a batch except the differing one.
    method : {"gaussian-dp", "clopper-pearson"}, default="gaussian-dp"
        Criterion for choosing the test. ``"gaussian-dp"`` uses the bound on mu, which needs few
        runs. ``"clopper-pearson"`` uses the bound on epsilon at the claimed delta, which needs more
        runs for a smaller delta. Both bound error rates by Clopper and Pearson. Only
        ``"gaussian-dp"`` derives `epsilon_lower` from `mu_lower`, and only if the claim is a
        Gaussian guarantee.
    random_state : int, RandomState or None, default=None
        Seed for a repeatable audit; its runs have independent noise in any case.

    Returns
    -------
    AuditResult
        The bounds, the claim, and whether it is disproved.

    Notes
    -----
    If the claim is true, the bounds exceed it with probability at most ``1 - confidence``. For
    Gaussian noise the test statistic is the likelihood ratio. Proofs: :ref:`Theorems 1 and 2 of
    audits <audits-1>`, and for all releases :ref:`Theorem 3 <audits-3>`.

    References
    ----------
    Nasr et al. (2023), "Tight Auditing of Differentially Private Machine Learning". Dong, Roth &
    Su (2022), "Gaussian Differential Privacy".

    Examples
    --------
    >>> import numpy as np
    >>> from skdp import OperaSVC
    >>> from skdp.audit import audit_epsilon
    >>> X, y = np.zeros((10, 1)), np.arange(10) % 2  # made-up rows
    >>> classifier = OperaSVC(epsilon=8.0, delta=1e-5, data_norm=1.0, alpha=10.0)
    >>> result = audit_epsilon(classifier, X, y, n_trials=400, random_state=0)
    >>> result.violated, result.epsilon_lower < result.claimed
    (False, True)
    """
    check_audit(estimator, confidence, release)
    check_integer("n_trials", n_trials, at_least=20)
    check_choice("method", method, ("gaussian-dp", "clopper-pearson"))
    X, y, groups = in_memory(X, y, groups)
    if isinstance(neighbour, str) and neighbour == "worst-case":
        *pair, changed = worst_case(estimator, X, y, groups)
    else:
        *pair, changed = given_pair(estimator, X, y, neighbour, groups)
    key = resolve_random_state(random_state, b"audit").words(4).tobytes()
    stream = RepeatableStream(key, seeded=False)
    with shown("audit_epsilon", 2 * n_trials) as done:
        tables = [
            AuditedTable(estimator, table, stream.spawn(f"table {side}"))
            for side, table in enumerate(pair)
        ]
        scores = _scores(tables, changed, release, n_trials, stream, done)
    half, failure = n_trials // 2, 1.0 - confidence
    # If a plan depends on rows, claims may differ: the larger one is harder to disprove.
    spent = max((table.spent for table in tables), key=lambda record: record.epsilon)
    threshold = choose_threshold(scores[0][:half], scores[1][:half], failure, method, spent.delta)
    errors = errors_above(threshold, scores[0][half:], scores[1][half:], failure)
    return AuditResult(
        **judge(errors, spent, by_mu=method == "gaussian-dp"),
        false_positive_rate=float(errors.false_positive),
        false_negative_rate=float(errors.false_negative),
        confidence=confidence,
        estimator=type(estimator).__name__,
        release=release,
        method=method,
        n_trials=n_trials,
    )


def check_audit(estimator: Any, confidence: float, release: str) -> None:
    """Refuse estimators and parameters that audits do not support."""
    steps = {id(step.estimator) for step in walk(estimator)}
    paying = paying_parts(estimator) if hasattr(estimator, "get_params") else []
    # Fits and claims inside other estimators are not visible.
    if not paying or not steps.issuperset(map(id, paying)):
        raise TypeError(
            "estimator must be a private estimator, transformer or search, or a pipeline of these, "
            f"got {type(estimator).__name__}. Estimators inside other estimators cannot be audited."
        )
    check_real("confidence", confidence, above=0.0, below=1.0)
    check_choice("release", release, ("model", "all"))
    warn_of_leaks(estimator)


def _scores(
    tables: list[AuditedTable],
    changed: int,
    release: str,
    n_trials: int,
    stream: RandomStream,
    done: Callable[[int], None],
) -> list[Array]:
    """Return the scores of the runs on both tables; the first half chose the statistic."""

    def runs(score: Callable[[int, RandomStream], Any]) -> list[Array]:
        found: list[list[Any]] = [[], []]
        for k in (0, 1):
            for t in range(n_trials):
                found[k].append(score(k, stream.spawn(f"run {t} on table {k}")))
                done(k * n_trials + t + 1)
        return [np.array(each) for each in found]

    if release == "all":
        return runs(Transcripts(tables, changed, stream.spawn("transcripts")).score)
    reference = published(tables[0].fit(stream.spawn("reference")))
    vectors = runs(lambda side, own: read(tables[side].fit(own), reference))
    direction = discriminant(*(each[: n_trials // 2] for each in vectors))
    return [each @ direction for each in vectors]


def judge(evidence: Any, spent: PrivacySpent, by_mu: bool) -> dict[str, Any]:
    """Compare evidence, errors of a test or correct guesses, with the claim.

    With `by_mu`, epsilon of a Gaussian claim follows from mu.
    """
    gdp = GDPAccountant(spent.adjacency)
    mu_claimed = gdp.compose(spent.event).mu if gdp.supports(spent.event) else math.inf
    # Other guarantees also imply a Gaussian one, but claim a smaller epsilon.
    gaussian = gaussian_profile.epsilon(mu_claimed, spent.delta) <= spent.epsilon * _SAME
    if not gaussian:
        pure = spent.delta == 0.0
        mu_claimed = math.inf if pure else gaussian_profile.mu(spent.epsilon, spent.delta)
    mu_lower = max(float(evidence.mu_lower()), 0.0)
    epsilon_lower = max(float(evidence.epsilon_lower(spent.delta)), 0.0)
    by_guarantee = gaussian and by_mu
    if by_guarantee:
        epsilon_lower = gaussian_profile.epsilon_bounds(mu_lower, spent.delta)[0]
    curve = np.linspace(0.0, spent.epsilon, _CURVE_POINTS).tolist()
    profile = tuple((point, float(spent.delta_at(point))) for point in curve)
    return {
        "mu_lower": mu_lower,
        "epsilon_lower": epsilon_lower,
        "delta": float(spent.delta),
        "claimed": float(spent.epsilon),
        "adjacency": spent.adjacency,
        "mu_claimed": mu_claimed,
        "basis": "gaussian-guarantee" if by_guarantee else "tested-event",
        "violated": (
            epsilon_lower > spent.epsilon
            or (gaussian and mu_lower > mu_claimed)
            or evidence.disproves(np.array(profile))
        ),
        "profile": profile,
    }
