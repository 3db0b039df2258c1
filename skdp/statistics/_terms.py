"""What all statistics share: their terms, and the order of check, plan, charge and use of rows."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from skdp.accounting import Event
from skdp.budget.charging import charge, check_accountant
from skdp.mechanisms import RandomStream, resolve_random_state
from skdp.mechanisms.contribution import ADJACENCIES
from skdp.mechanisms.random_stream import is_seeded
from skdp.parameters import SMALLEST_DELTA, check_choice, check_real, plain
from skdp.reporting.privacy_spent import PrivacySpent
from skdp.statistics._columns import cells_of
from skdp.statistics.noise import Plan, Query, plan_noise
from skdp.tables.places import read_each, taken_for_granted

MECHANISMS = ("auto", "laplace", "gaussian")
_ARITHMETIC = (
    "counts and grids are integers, and their noise is drawn on the integers with exact "
    "probabilities (docs/proofs/statistics.md)"
)


@dataclass(frozen=True)
class Terms:
    """Checked parameters that every statistic has."""

    owner: str
    epsilon: float
    delta: float
    adjacency: Any
    mechanism: str
    confidence: float
    accountant: Any
    random_state: Any
    trusts: dict[str, None] = field(default_factory=dict, init=False)  # in order

    def __post_init__(self) -> None:
        for name in ("epsilon", "delta", "confidence"):
            object.__setattr__(self, name, plain(getattr(self, name)))
        check_real("epsilon", self.epsilon, at_least=1e-9, at_most=1e6)
        if self.delta != 0.0 or isinstance(self.delta, bool):
            check_real("delta", self.delta, at_least=SMALLEST_DELTA, below=1.0, remedy="Or take 0.")
        check_choice("adjacency", self.adjacency, ADJACENCIES)
        check_choice("mechanism", self.mechanism, MECHANISMS)
        if self.mechanism == "gaussian" and self.delta == 0.0:
            raise ValueError(
                "mechanism='gaussian' needs a positive delta, such as 1e-6; with delta=0 take "
                "'laplace' or 'auto'."
            )
        check_real("confidence", self.confidence, at_least=1e-12, at_most=1.0 - 1e-12)
        check_accountant(self.accountant)
        is_seeded(self.random_state)

    def read(self, column: Any, read: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
        """Return the number that is read of each cell of a column, where they lie."""
        return self.read_all([(column, read)])[0]

    def read_all(
        self, asked: Sequence[tuple[Any, Callable[[np.ndarray], np.ndarray]]]
    ) -> list[np.ndarray]:
        """Do the same for some columns; each row is read once for all of them."""
        self.trusts.update(dict.fromkeys(taken_for_granted(*(column for column, _ in asked))))
        found = read_each([(partial(_read, read), column) for column, read in asked])
        if len(set(map(len, found))) > 1:
            raise ValueError("columns must have one cell for each record, all of one length.")
        return found

    @property
    def failure(self) -> float:
        """Probability that an interval may miss."""
        return 1.0 - float(self.confidence)

    def plan(self, queries: Sequence[Query]) -> Plan:
        """Return the noise for some queries under these terms."""
        return plan_noise(
            queries, self.epsilon, self.delta, self.adjacency, self.mechanism, self.failure
        )

    def charge(
        self,
        event: Event,
        mechanism: str,
        assumptions: tuple[str, ...],
        released: tuple[str, ...],
        arithmetic: str = _ARITHMETIC,
    ) -> PrivacySpent:
        """Charge an event, and return its record; afterwards the rows may be used."""
        spent = PrivacySpent(
            epsilon=float(self.epsilon),
            delta=float(self.delta),
            adjacency=self.adjacency,
            event=event,
            accountant="pld",
            mechanism=mechanism,
            assumptions=(*assumptions, "all parameters are public", *self.trusts),
            released=released,
            seeded=is_seeded(self.random_state),
            arithmetic=arithmetic,
        )
        parameters = {
            name: getattr(self, name)
            for name in ("epsilon", "delta", "adjacency", "mechanism", "confidence")
        }
        charge(self.accountant, spent, self.owner, parameters=parameters)
        return spent

    def stream(self, event: Event, *exact: np.ndarray) -> RandomStream:
        """Return the stream of one call: with one seed, calls that differ share no noise."""
        if not is_seeded(self.random_state):
            return resolve_random_state(self.random_state)
        digest = hashlib.blake2b(
            f"{self.owner}{event!r}{self.confidence!r}{self.adjacency}".encode()
        )
        for array in exact:
            digest.update(f"{array.shape}{array.dtype}".encode())
            digest.update(np.ascontiguousarray(array).tobytes())
        return resolve_random_state(self.random_state, digest.digest())


def _read(read: Callable[[np.ndarray], np.ndarray], part: Any) -> np.ndarray:
    return read(cells_of(part))


def describe_noise(plan: Plan) -> str:
    """Name the noise and its theorem, for the statement."""
    noise = plan.noises[0]
    law = {"laplace": "discrete Laplace", "gaussian": "discrete Gaussian"}[noise.kind]
    if noise.query.unit == 1 or noise.kind == "laplace":
        distance = f"L1 sensitivity {noise.query.l1 / noise.query.unit:.6g}"
    else:
        distance = f"L2 sensitivity {noise.query.l2_squared**0.5 / noise.query.unit:.6g}"
    times = "" if len(plan.noises) == 1 else f", {len(plan.noises)} times"
    return (
        f"{distance} (records), {law} noise of scale {noise.people:.6g}{times} (Canonne, Kamath & "
        "Steinke 2020; docs/proofs/statistics.md)"
    )
