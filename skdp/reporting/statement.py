"""A privacy statement in words, for a data-protection officer or a paper's appendix."""

from __future__ import annotations

from importlib import metadata
from typing import Any

from skdp.reporting.privacy_spent import spending_of

_ADJACENCY_TEXT = {
    "replace-one": "two tables are neighbours if one row is replaced by another (n is public)",
    "add-remove": "two tables are neighbours if one row is added or removed, the public "
    "sample rate, lot size or row count that the mechanism divides by being unchanged",
}

_NOT_COVERED = (
    "anything computed from the rows outside this fit: preprocessing fitted on them, feature "
    "selection, tuning, cross-validation scores, other models",
    "how long the fit took, and whether validation refused the table (missing values, labels)",
    "the table itself, access to it, and what predictions for new people reveal about them",
)


def privacy_statement(estimator: Any) -> str:
    """Return the privacy statement of a fitted private estimator.

    Parameters
    ----------
    estimator : estimator with ``privacy_spent_``, or a pipeline that ends in one
        What was fitted.

    Returns
    -------
    str
        Plain text: what was released, the guarantee, the unit of privacy, the mechanism, the
        assumptions, and what is not covered (the items of Ponomareva et al. 2023 and NIST SP
        800-226).

    Raises
    ------
    TypeError
        If the estimator reports no privacy spending.
    """
    final, spent = spending_of(estimator)
    lines = [
        f"Privacy statement of {type(final).__name__} (skdp {metadata.version('skdp')})",
        "",
        f"Guarantee: ({spent.epsilon:.6g}, {spent.delta:.3g})-differential privacy, central model.",
        f"Neighbours: {spent.adjacency}: {_ADJACENCY_TEXT[spent.adjacency]}.",
        "Unit of privacy: one row. If a person has k rows, group privacy applies.",
        f"Mechanism: {spent.mechanism}",
        f"Accounting: {spent.accountant} accountant, upper bound, of {spent.event}.",
        *_list("Released", spent.released),
        *_list("Assumptions", spent.assumptions),
        *_list("Not covered", _NOT_COVERED),
        "Arithmetic: proofs assume real numbers; noise and sums are double precision.",
        _randomness_line(spent.seeded),
    ]
    return "\n".join(lines)


def _list(title: str, items: tuple[str, ...]) -> list[str]:
    return [f"{title}:", *(f"  - {item}" for item in items)]


def _randomness_line(seeded: bool) -> str:
    if seeded:
        return (
            "Randomness: noise came from a fixed seed. The guarantee does NOT hold against "
            "anyone who knows or guesses it; use random_state=None for a release."
        )
    return "Randomness: SHAKE-256 stream with a fresh key from the operating system."
