"""The record of what one private fit spent."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, get_args

from skdp.accounting import Accountant, Event, PrivacyValue
from skdp.accounting.accountants.registry import resolve_accountant
from skdp.accounting.refutation import refuse_disproved
from skdp.accounting.value import check_guarantee
from skdp.choices import Unit
from skdp.identity import UNKNOWN, code_digest, package_version
from skdp.mechanisms.contribution import Adjacency
from skdp.parameters import check_choice
from skdp.reporting.records import JsonRecord, html_table

UNITS = get_args(Unit)

_RECORDS = {"row": "a row", "group": "all rows that share an id in groups="}
_RECORDS["mixed"] = "of some charges a row, of others all rows that share an id in groups="

# What the arithmetic of a fit is, and what is assumed of it.
REAL_NUMBERS = "proofs assume real numbers; noise and sums are double precision"
# Of noise with delta=0, which only discrete noise keeps in the doubles that are released.
REAL_PURE_NOISE = f"{REAL_NUMBERS}: delta=0 is about the real numbers, not about their last bits"
DISCRETE_NOISE = (
    "noise is discrete (Gaussian; Laplace if delta=0), drawn exactly and released on a grid; "
    "rounding to it is in the sensitivity, and bounds on the rounding errors of sums are in the "
    "tolerance (docs/proofs/discrete_noise.md). Assumed: IEEE doubles, and slopes of the loss "
    "right to a few last places"
)


@dataclass(frozen=True)
class PrivacySpent(JsonRecord):
    """What a fit released, under which guarantee, and on which assumptions.

    Unpacks as ``epsilon, delta = estimator.privacy_spent_``.

    Parameters
    ----------
    epsilon, delta : float
        The guarantee: an upper bound, never an estimate.
    adjacency : {"replace-one", "add-remove"}
        Which data sets are neighbours.
    event : Event
        What happened, as the accountants understand it.
    accountant : str
        Name of the accountant behind `epsilon`, `epsilon_at` and `delta_at`.
    mechanism : str
        The mechanism and the theorem it rests on.
    assumptions : tuple of str
        What the guarantee takes for granted, public inputs above all.
    released : tuple of str
        What left the fit.
    seeded : bool
        Whether the noise came from a seed: then the guarantee does not hold against whoever
        knows the seed.
    arithmetic : str
        Whether the proof takes doubles for real numbers, or what it assumes of them instead.
    unit : {"row", "group"}
        What one record is, by which neighbours differ: a row, or all rows that share an id in
        groups=.
    skdp, code : str
        Version of the package that made the record, and digest of its code; "unknown" of records
        that do not say.

    Raises
    ------
    ValueError
        If epsilon or delta say of themselves that they are no guarantee, the accountant is one
        that gives none, or the event is certified to cost more. Pickles are read with the same
        checks. Of events that have upper bounds alone no claim is refused.

    Examples
    --------
    >>> from skdp import OperaLogisticRegression
    >>> classifier = OperaLogisticRegression(epsilon=1.0, delta=1e-6, data_norm=1.0, classes=[0, 1])
    >>> spent = classifier.fit([[0.1], [0.9], [0.2], [0.8]], [0, 1, 0, 1]).privacy_spent_
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
                "privacy and cannot stand behind a record; use 'pld'."
            )
        refuse_disproved(self.event, self.adjacency, self.epsilon, self.delta)

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        for name in ("skdp", "code"):  # which older records lack
            vars(self).setdefault(name, UNKNOWN)
        self.__post_init__()

    def __iter__(self) -> Iterator[float]:
        return iter((self.epsilon, self.delta))

    def epsilon_at(self, delta: float) -> PrivacyValue:
        """Return an upper bound on epsilon at another delta, with its lower bound.

        It is never more than `epsilon` at or above the reported delta.
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
        """Return the record as plain, JSON-ready values."""
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
