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

# Points of the claimed privacy curve that the errors are held against.
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
    """Try to disprove what a private fit claims, and say how close the attempt came.

    It is repeated many times on each of two neighbouring tables. The first half of the runs chooses
    a test that tells the tables apart by what was released; the second half measures its two error
    rates, which any guarantee bounds from below. No budget is charged.

    **Audit made-up rows.** The result is computed from all runs without noise of its own: what it
    says of private rows is not private, and is covered by no budget.

    Parameters
    ----------
    estimator : private classifier, transformer or search, or a pipeline of these
        Of this library, or others that take an `accountant` and say in `privacy_spent_` what they
        spend; cloned, not changed, and run as it is. Steps of a pipeline claim their sum.
    X : array-like of shape (n_samples, n_features)
        The rows that both tables share, or the first table where `neighbour` is given.
    y : array-like of shape (n_samples,) or None, default=None
        Their labels; None for transformers.
    groups : array-like of shape (n_samples,) or None, default=None
        Ids, which fits are given as ``groups=``: the tables then differ in all rows of one id.
    neighbour : "worst-case", (X2, y2) or (X2, y2, groups2), default="worst-case"
        ``"worst-case"`` adds to `X` one row at the public bound. A classifier's is in a column that
        is zero in all others, of either label (replace-one), or there and absent (add-remove;
        output and objective perturbation need ``fit_intercept=False`` then); a search's is that of
        what it fits; a transformer's is at either end of all ranges, or in either of two columns.
        A pair is the second table; it must differ from `X, y` in one row, which under add-remove it
        may lack if steps are noisy gradients, and else replaces by zeros. With `groups` it has the
        same ids, and differs in the rows of one; absent rows are zeros.
    n_trials : int, default=10_000
        Number of runs on each of the two tables, at least 20. The bound on mu lies below what the
        attack achieves by about ``12 / sqrt(n_trials)``, or half as much again where mu is 3.
    confidence : float, default=0.999
        Probability, in (0, 1), with which the bounds hold.
    release : {"model", "all"}, default="model"
        What the attacker sees: all attributes that a fit publishes, or every noisy release on the
        way to them. ``"all"`` is for Gaussian noise on what depends on no other secret randomness
        than lots, of which the attacker knows all rows but the one that differs.
    method : {"gaussian-dp", "clopper-pearson"}, default="gaussian-dp"
        Whether the test is chosen for its bound on mu, which needs few runs, or for its bound on
        epsilon at the claimed delta, which takes more the smaller delta is. The error rates are
        bounded by Clopper and Pearson either way; only ``"gaussian-dp"`` reads `epsilon_lower` off
        `mu_lower`, and only where the claim itself is a Gaussian guarantee.
    random_state : int, RandomState or None, default=None
        Makes an audit repeatable; its runs have independent noise in any case.

    Returns
    -------
    AuditResult
        The bounds, the claim, and whether it is disproved.

    Notes
    -----
    With the claim sound, the bounds exceed it with probability at most ``1 - confidence``. For
    Gaussian noise the test's statistic is the likelihood ratio. Proofs:
    :ref:`Theorems 1 and 2 of audits <audits-1>`; of all releases, :ref:`Theorem 3 <audits-3>`.

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
    # A plan that depends on rows may claim different figures: the larger one is disproved less.
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
    """Refuse what no audit takes."""
    steps = {id(step.estimator) for step in walk(estimator)}
    paying = paying_parts(estimator) if hasattr(estimator, "get_params") else []
    # What other estimators fit is not seen, and neither is its claim.
    if not paying or not steps.issuperset(map(id, paying)):
        raise TypeError(
            "Audits are for estimators, transformers and searches that are private, and for "
            f"pipelines of these, not for {type(estimator).__name__}, nor for estimators inside "
            "others."
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
    """Return the scores of the runs on both tables; the first half of them chose the statistic."""

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
    """Hold evidence against the claim: errors of a test, or right guesses in one run.

    Of a Gaussian claim epsilon is read off mu if that is asked for.
    """
    gdp = GDPAccountant(spent.adjacency)
    mu_claimed = gdp.compose(spent.event).mu if gdp.supports(spent.event) else math.inf
    # Other guarantees imply a Gaussian one as well, but claim a smaller epsilon than that.
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
