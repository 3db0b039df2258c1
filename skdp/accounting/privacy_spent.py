"""The record of one private fit's privacy cost, and the refusal of disproved claims."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, get_args

import numpy as np

from skdp.accounting import Accountant, PrivacyValue
from skdp.accounting.accountants import resolve_accountant
from skdp.accounting.accountants.pld import PLDAccountant
from skdp.accounting.events import Event, leaf_counts
from skdp.accounting.pld.composed_bounds import Direction, delta_bounds, is_supported, plan_of
from skdp.accounting.records import UNKNOWN, JsonRecord, code_digest, html_table, package_version
from skdp.accounting.value import certified_epsilon, check_guarantee
from skdp.base.parameters import Adjacency, Unit, check_choice

# Rounding error of sums of floats.
_ROUNDING = 1.0 + 1e-9
_RTOL = 1e-3  # relative accuracy of delta


def refuse_disproved(event: Event, adjacency: Adjacency, epsilon: float, delta: float) -> None:
    """Refuse an (epsilon, delta) that an event is certified to exceed.

    Parts with only upper bounds refuse nothing, and do not hide other parts.
    """
    epsilon, delta = float(epsilon), float(delta)
    if not (epsilon >= 0.0 and delta >= 0.0):
        raise ValueError(f"epsilon and delta must be >= 0, got {epsilon!r} and {delta!r}.")
    if delta >= 1.0 or _may_be(event, adjacency, epsilon * _ROUNDING, delta):
        return
    accountant = PLDAccountant(adjacency)
    for leaf, count in _told(event, adjacency).items():
        accountant.compose(leaf, count)
    least = accountant.epsilon(delta).lower
    raise ValueError(
        f"epsilon={epsilon:.6g} at delta={delta:.3g} is not a guarantee for the event: under "
        f"{adjacency!r} adjacency it costs at least {max(least, epsilon):.6g}. Use an (epsilon, "
        "delta) that an accountant returns for the event."
    )


def _told(event: Event, adjacency: Adjacency) -> dict[Event, int]:
    """Return the leaves with lower bounds; other releases cannot lower their cost."""
    found = {}
    for leaf, count in leaf_counts(event).items():
        plan = plan_of({leaf: 1}, adjacency) if is_supported(leaf, adjacency) else None
        if plan is not None and plan.attained:
            found[leaf] = count
    return found


@lru_cache(maxsize=4096)
def _may_be(event: Event, adjacency: Adjacency, epsilon: float, delta: float) -> bool:
    """Return whether no lower bound contradicts a claim."""
    least_epsilon = certified_epsilon(leaf_counts(event), adjacency, delta)
    if least_epsilon is not None:
        return least_epsilon <= epsilon
    plan = plan_of(_told(event, adjacency), adjacency)
    if plan is None or math.isinf(epsilon):
        return True
    if delta == 0.0 and any(map(_is_endless, plan.directions)):  # a tail smaller than any float
        return False
    try:
        with np.errstate(all="ignore"):
            bounds = [delta_bounds(*pair, epsilon, _RTOL)[0] for pair in plan.directions]
    except ArithmeticError:  # numbers leave the range of floats, and nothing is certified
        return True
    return not any(least > delta * _ROUNDING for least in bounds)


def _is_endless(direction: Direction) -> bool:
    """Return whether losses are unbounded, so that no epsilon is enough at delta zero."""
    return direction.mu > 0.0 or any(pair.largest_loss == math.inf for pair, _ in direction.pairs)


UNITS = get_args(Unit)

_RECORDS = {"row": "a row", "group": "all rows that share an id in groups="}
_RECORDS["mixed"] = "for some charges a row, for others all rows that share an id in groups="

# The arithmetic of a fit, and its assumptions.
REAL_NUMBERS = "proofs assume real numbers; noise and sums are double precision"
# For noise with delta=0, which only discrete noise preserves in the released doubles.
REAL_PURE_NOISE = f"{REAL_NUMBERS}: delta=0 is about the real numbers, not about their last bits"
DISCRETE_NOISE = (
    "noise is discrete (Gaussian; Laplace if delta=0), drawn exactly and released on a grid; "
    "rounding to it is in the sensitivity, and bounds on the rounding errors of sums are in the "
    "tolerance (docs/proofs/discrete_noise.md). Assumed: IEEE doubles, and slopes of the loss "
    "right to a few last places"
)


@dataclass(frozen=True)
class PrivacySpent(JsonRecord):
    """Privacy record of a fit: the guarantee, the released values and the assumptions.

    Unpacks as ``epsilon, delta = estimator.privacy_spent_``.

    Parameters
    ----------
    epsilon, delta : float
        The guarantee: an upper bound, never an estimate.
    adjacency : {"replace-one", "add-remove"}
        Adjacency relation between neighbouring data sets.
    event : Event
        Description of the releases for accountants.
    accountant : str
        Name of the accountant that computes `epsilon`, `epsilon_at` and `delta_at`.
    mechanism : str
        The mechanism and the theorem behind it.
    assumptions : tuple of str
        Assumptions of the guarantee, above all public inputs.
    released : tuple of str
        Values that left the fit.
    seeded : bool
        Whether the noise came from a seed. If so, the guarantee does not protect against anyone
        with the seed.
    arithmetic : str
        Arithmetic that the proof assumes: real numbers, or the stated properties of doubles.
    unit : {"row", "group"}
        Meaning of a record: a row, or all rows that share an id in groups=. Neighbouring data sets
        differ in one record.
    skdp, code : str
        Version of the package that made the record, and digest of its code; "unknown" for records
        without them.

    Raises
    ------
    ValueError
        If epsilon or delta are marked as no guarantee, the accountant gives no guarantees, or the
        event is certified to cost more. The same checks apply to pickles. No claim is refused for
        events with only upper bounds.

    Examples
    --------
    >>> from skdp import OperaLogisticRegression
    >>> classifier = OperaLogisticRegression(epsilon=1.0, delta=1e-6, data_norm=1.0, classes=[0, 1])
    >>> spent = classifier.fit([[0.1], [0.9]] * 50, [0, 1] * 50).privacy_spent_
    >>> epsilon, delta = spent
    >>> round(epsilon, 6), delta, spent.adjacency
    (1.0, 1e-06, 'replace-one')
    >>> bool(spent.epsilon_at(1e-9) > epsilon), bool(spent.delta_at(2.0) < delta)
    (True, True)
    """

    epsilon: float
    delta: float
    adjacency: Adjacency
    event: Event
    accountant: str
    mechanism: str
    assumptions: tuple[str, ...]
    released: tuple[str, ...]
    seeded: bool
    arithmetic: str = REAL_NUMBERS
    unit: Unit = "row"
    skdp: str = field(default_factory=package_version, compare=False)
    code: str = field(default_factory=code_digest, compare=False)

    def __post_init__(self) -> None:
        check_choice("unit", self.unit, UNITS)
        check_guarantee("epsilon", self.epsilon)
        check_guarantee("delta", self.delta)
        accountant = resolve_accountant(self.accountant)(adjacency=self.adjacency)
        if not (accountant.is_upper_bound and accountant.is_differential_privacy):
            raise ValueError(
                f"accountant={self.accountant!r} does not return guarantees of differential "
                "privacy, which a record requires; use 'pld'."
            )
        refuse_disproved(self.event, self.adjacency, self.epsilon, self.delta)

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        for name in ("skdp", "code"):  # missing in older records
            vars(self).setdefault(name, UNKNOWN)
        self.__post_init__()

    def __iter__(self) -> Iterator[float]:
        return iter((self.epsilon, self.delta))

    def epsilon_at(self, delta: float) -> PrivacyValue:
        """Return an upper bound on epsilon at another delta, with its lower bound.

        It never exceeds `epsilon` at or above the reported delta.
        """
        value = self._composed().epsilon(delta)
        return _at_most(value, self.epsilon) if delta >= self.delta else value

    def delta_at(self, epsilon: float) -> PrivacyValue:
        """Return an upper bound on delta at another epsilon (non-negative)."""
        value = self._composed().delta(epsilon)
        return _at_most(value, self.delta) if epsilon >= self.epsilon else value

    def _composed(self) -> Accountant:
        return resolve_accountant(self.accountant)(adjacency=self.adjacency).compose(self.event)

    def to_dict(self) -> dict[str, Any]:
        """Return the record as plain values, ready for JSON."""
        lists = {"assumptions": list(self.assumptions), "released": list(self.released)}
        return {**vars(self), "event": self.event.to_dict(), **lists}

    @classmethod
    def from_dict(cls, record: dict[str, Any]) -> PrivacySpent:
        """Rebuild a record from :meth:`to_dict`."""
        fields = {"skdp": UNKNOWN, "code": UNKNOWN, **record}
        fields["event"] = Event.from_dict(fields["event"])
        fields["assumptions"] = tuple(fields["assumptions"])
        fields["released"] = tuple(fields["released"])
        return cls(**fields)

    def __repr__(self) -> str:
        seeded = ", seeded" if self.seeded else ""
        return (
            f"PrivacySpent(epsilon={self.epsilon:.6g}, delta={self.delta:.3g}, "
            f"adjacency={self.adjacency!r}, accountant={self.accountant!r}{seeded})"
        )

    def _repr_html_(self) -> str:
        rows = [
            ("epsilon", f"{self.epsilon:.6g}"),
            ("delta", f"{self.delta:.3g}"),
            ("adjacency", self.adjacency),
            ("record", _RECORDS[self.unit]),
            ("mechanism", self.mechanism),
            ("accountant", self.accountant),
            ("released", "; ".join(self.released)),
            ("assumptions", "; ".join(self.assumptions)),
            ("made by", f"skdp {self.skdp}, code {self.code}"),
            ("noise from a seed", "yes: no guarantee against its holder" if self.seeded else "no"),
        ]
        return html_table("Privacy spent", rows)


def _at_most(value: PrivacyValue, reported: float) -> PrivacyValue:
    """Lower a bound to one that was proved otherwise."""
    if value.upper <= reported:
        return value
    return PrivacyValue(reported, min(value.lower, reported))
