"""From what a caller says about a release to what the budget's filter is asked."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from skdp.accounting import ApproxDPEvent, Event, PLDAccountant
from skdp.accounting.analysis import analysis_of
from skdp.accounting.refutation import refuse_disproved
from skdp.accounting.value import check_guarantee
from skdp.budget.conversion import convert_adjacency
from skdp.budget.currencies import Charge
from skdp.budget.currencies.pairs import pair_of
from skdp.budget.entries import CHARGE, describe_parameters, write_event
from skdp.budget.ledger.chain import Row
from skdp.choices import Adjacency
from skdp.mechanisms.contribution import ADJACENCIES
from skdp.parameters import check_choice
from skdp.reporting.privacy_spent import UNITS, PrivacySpent


@dataclass(frozen=True)
class Request:
    """A charge as the filter prices it and as the ledger records it."""

    event: Event
    charge: Charge
    row: Row

    @property
    def label(self) -> str:
        """What the charge is for."""
        return str(self.row["label"])


def prepare(
    event: Event | PrivacySpent,
    ledger_adjacency: Adjacency,
    needs_numbers: bool,
    *,
    label: str | None = None,
    adjacency: Adjacency | None = None,
    epsilon: float | None = None,
    delta: float | None = None,
    estimator: Any = None,
    parameters: Mapping[str, Any] | None = None,
    seeded: bool = False,
    unit: str = "row",
) -> Request:
    """Check and convert what a caller says about a release."""
    if isinstance(event, PrivacySpent):
        adjacency, seeded, unit = event.adjacency, event.seeded, event.unit
        epsilon, delta, event = event.epsilon, event.delta, event.event
        by_hand = False
    else:  # the pair of a fit is that of its plan
        by_hand = estimator is None
    if not isinstance(event, Event):
        raise TypeError(f"event must be an Event or a PrivacySpent, got {event!r}.")
    adjacency = ledger_adjacency if adjacency is None else adjacency
    if adjacency not in ADJACENCIES:
        raise ValueError(f"adjacency must be one of {ADJACENCIES}, got {adjacency!r}.")
    check_choice("unit", unit, UNITS)
    guarantee = _guarantee(event, epsilon, delta, adjacency, needs_numbers)
    if by_hand and epsilon is not None and guarantee is not None and not needs_numbers:
        # Such a currency does not count the pair, but the ledger and its statement repeat it.
        pair_of(Charge(event, *guarantee), adjacency)
    if guarantee is not None:
        refuse_disproved(event, adjacency, *guarantee)
    named = estimator is None or isinstance(estimator, str)
    name = estimator if named else type(estimator).__name__
    if parameters is None and hasattr(estimator, "get_params"):
        parameters = estimator.get_params(deep=False)
    own = guarantee or (None, None)
    row = {
        "kind": CHARGE,
        "label": str(label or name or type(event).__name__),
        "estimator": name,
        "parameters": describe_parameters(parameters),
        "event": write_event(event),
        "epsilon": own[0],
        "delta": own[1],
        "adjacency": adjacency,
        "seeded": bool(seeded),
        "unit": unit,
        "plan": None,
        "place": None,
    }
    return Request(event, restate(event, guarantee, adjacency, ledger_adjacency), row)


def _check_numbers(epsilon: float, delta: float) -> None:
    """Refuse numbers that no release costs."""
    if not (0.0 <= epsilon < math.inf and 0.0 <= delta < 1.0):
        raise ValueError(
            f"A charge needs a finite epsilon >= 0 and a delta in [0, 1), got epsilon={epsilon!r} "
            f"and delta={delta!r}: charges are never refunded."
        )
    check_guarantee("epsilon", epsilon)
    check_guarantee("delta", delta)


def _guarantee(
    event: Event, epsilon: float | None, delta: float | None, adjacency: Adjacency, needed: bool
) -> tuple[float, float] | None:
    """Return the event's own (epsilon, delta), if the caller or the event says it."""
    if delta is None:
        if epsilon is not None:
            raise ValueError(f"epsilon={epsilon!r} was given without its delta: give both.")
        stated = _stated(event, adjacency)
        if stated is not None:
            epsilon, delta = stated
        elif needed:
            raise ValueError(
                f"This budget counts epsilon and delta, and {type(event).__name__} names neither: "
                "give delta=, and epsilon is computed from the event, or give both."
            )
        else:
            return None
    elif epsilon is None:
        _check_numbers(0.0, delta)
        epsilon = PLDAccountant(adjacency=adjacency).compose(event).epsilon(float(delta))
    _check_numbers(epsilon, delta)
    return float(epsilon), float(delta)


def _stated(event: Event, adjacency: Adjacency) -> tuple[float, float] | None:
    """Return the pair of an event that is nothing but one."""
    card = analysis_of(event, adjacency)
    pair = card.stated() if card.only_stated else None
    return None if pair is None else (float(pair.epsilon), float(pair.delta))


def restate(
    event: Event, guarantee: tuple[float, float] | None, given: str, wanted: Adjacency
) -> Charge:
    """Restate a release under the ledger's adjacency."""
    if guarantee is None:
        return Charge(convert_adjacency(event, given, wanted))
    epsilon, delta = guarantee
    event = convert_adjacency(event, given, wanted, epsilon=epsilon, delta=delta)
    numbers = _stated(convert_adjacency(ApproxDPEvent(epsilon, delta), given, wanted), wanted)
    return Charge(event, *(numbers or guarantee))
